"""Convolutions: the algorithms that a library chooses from, and what a framework adds to each.

An algorithm is a function from a layer's geometry and phase to the kernels that it launches, or None for a layer that it cannot
run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from archsim.base.errors import InputError, Unsupported, near_words
from archsim.lower import conv_products as products
from archsim.lower import conv_transforms as transforms
from archsim.lower.columns import Role
from archsim.lower.context import Context, element_wise, plan
from archsim.lower.gemm import ones_product
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.lower.layer import Layer, layer_of, untransposed
from archsim.trace.trace import BoundOp

BLOCK = 32  # channels, pixels or taps of a block that a copy between layouts transposes
PACK = 4  # channels of fp32 that fill a SIMD register of 128 bit; those of an image do not


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """How a convolution can run: `option` gives its kernels, or None for a layer that it cannot run.

    `limited`: its workspace counts against the limit of the stack, as that of a library does and a framework's own buffers do
    not. `copied`: its images are copied where framework and library differ in layout; otherwise it reads the framework's.
    """

    option: Callable[[Layer, Context, str], Option | None]
    limited: bool = True
    copied: bool = True


ALGORITHMS = {
    "implicit_gemm": Algorithm(option=products.implicit_gemm),
    "pixel_gemm": Algorithm(option=products.pixel_gemm, copied=False),
    "plain_gemm": Algorithm(option=products.plain_gemm, copied=False),
    "scatter_gemm": Algorithm(option=products.scatter_gemm),
    "im2col": Algorithm(option=products.im2col, limited=False),
    "im2col_batch": Algorithm(option=products.im2col_batch, limited=False),
    "direct": Algorithm(option=products.direct),
    "direct_depthwise": Algorithm(option=products.direct_depthwise),
    "winograd": Algorithm(option=transforms.winograd),
    "winograd_4x4": Algorithm(option=partial(transforms.winograd, side=4, name="winograd_4x4")),
    "winograd_nonfused": Algorithm(option=transforms.winograd_nonfused),
    "winograd_nonfused_2x2": Algorithm(option=partial(transforms.winograd_nonfused, results=2)),
    "winograd_nonfused_6x6": Algorithm(option=partial(transforms.winograd_nonfused, results=6)),
    "winograd_nonfused_5x5": Algorithm(option=partial(transforms.winograd_nonfused, side=5)),
    "fft": Algorithm(option=transforms.fft),
    "fft_tiling": Algorithm(option=transforms.fft_tiling),
    "depthwise": Algorithm(option=products.depthwise),
    "perfect": Algorithm(option=products.perfect),
}


def conv2d(op: BoundOp, context: Context) -> Plan:
    """Every algorithm of the stack that can run this layer within the workspace limit, with copies and bias around it.

    Raises InputError for an algorithm of the stack that does not exist, Unsupported where none can run the layer.
    """
    layer, rules = layer_of(op, context.element), context.stack.conv
    copied, back = _layout_copies(layer, context)
    before = (*copied, *_images_before(op, layer, context))
    after = _bias(op, context)
    constants = context.stack.efficiency
    images = (layer.element == 1 and constants.get("few_channels.byte")) or constants.get("few_channels", "")
    few = images if layer.groups == 1 and layer.ci < PACK else ""
    options = []
    for name, efficiency in context.algorithms(op.phase).items():
        if name not in ALGORITHMS:
            problem = f"conv.algorithms.{op.phase}: no algorithm {name!r}; nearest: {near_words(name, ALGORITHMS)}"
            raise InputError(f"stack {context.stack.id}", problem)
        algorithm = ALGORITHMS[name]
        option = algorithm.option(layer, context, few or efficiency)
        if option is not None and layer.element == 1 and context.wide_values:
            option = _widened(option, context.wide_values)
        if option is not None and (option.workspace <= rules.workspace_limit or not algorithm.limited):
            around = (before, (*back, *after)) if algorithm.copied else ((), after)
            options.append(replace(option, kernels=(*around[0], *option.kernels, *around[1])))
    if not options:
        raise Unsupported(f"stack {context.stack.id} has no algorithm for {op.name} ({op.phase})")
    return plan(op, context, *options)


def conv_transpose2d(op: BoundOp, context: Context) -> Plan:
    """A transposed convolution: the kernels of the plain convolution that it is a phase of, and of its own bias."""
    after = _bias(op, context)
    return conv2d(untransposed(op), context).with_kernels(lambda own: (*own, *after))


def _layout_copies(layer: Layer, context: Context) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    """Copies between the layouts of framework and library, before and after, as `conv.layout_copies` of the stack says.

    `tensor`: kernels for tensor cores read channels last and write either layout, so what they read is copied; a filter gradient
    writes sums in fp32, which another pass rounds to halves. `around`: both operands and the result are copied. A search of
    kernels spares these two where it finds some that work in the framework's layout. `all`: images are copied before and after; a
    1 x 1 convolution with stride 1 is one product in either layout and needs none. `blocked`: the library works on blocks of
    channels, and both operands and the result are copied. Filters of one tap lie alike in all layouts with whole channels.
    """
    rule = context.stack.conv.layout_copies
    plain = layer.taps == 1 and layer.sh == layer.sw == 1
    on_lanes = rule in ("tensor", "around") and not context.tensor
    spared = context.stack.conv.searched and context.architecture in context.stack.conv.uncopied
    if rule == "none" or on_lanes or spared or (rule == "all" and plain):
        return (), ()
    first, second, result = layer.operands
    gradient = layer.phase != "forward"
    filtering = layer.phase == "backward_filter"
    around = rule == "around"
    filters = layer.taps > 1 if around else rule == "blocked"
    read = [first, second] if filtering or filters or (rule == "tensor" and gradient) else [second]
    written = [result] if rule == "blocked" or (rule == "all" and not filtering) or (rule == "tensor" and filtering) else []
    if around:
        written = [result] if not filtering or filters else []
    before = [_copy(size, layer, context, around and size == layer.filter_bytes) for size in read]
    after = [_copy(size, layer, context, around and filtering) for size in written]
    return (*before, *(() if around else after)), tuple(after) if around else ()


def _copy(size: float, layer: Layer, context: Context, filters: bool) -> Kernel:
    """A copy of a tensor from one layout to the other, in blocks of 32 channels by 32 pixels, or taps of which there are fewer.

    Through the L2 passes what whole blocks would: 2 size ceil(taps / 32) 32 / taps        (nchwToNhwcKernel; grids in profiles)
    """
    copy = element_wise("transpose", Role.LAYOUT, size, size, element=layer.element)
    if not filters:
        return copy
    return replace(copy, gpu=replace(copy.gpu, cache_bytes=2.0 * size * ceil(layer.taps / BLOCK) * BLOCK / layer.taps))


def _images_before(op: BoundOp, layer: Layer, context: Context) -> tuple[Kernel, ...]:
    """Passes over the images before a convolution: rounded to one byte (`wide_values`), copied with a border (`conv.border`)."""
    size, element = layer.input_bytes, layer.element
    passes = []
    if element == 1 and context.wide_values:
        passes.append(element_wise("quantise", Role.QUANTISE, size * context.wide_values, size, flop=2.0 * size,
                                   element=element))  # fmt: skip
    if context.stack.conv.border == "copied" and any(getattr(op.kind, "pad", ())):
        passes.append(element_wise("border", Role.LAYOUT, size, size, element=element))
    return tuple(passes)


def _widened(option: Option, width: int) -> Option:
    """The option whose last kernel writes results of `width` bytes."""
    *first, last = option.kernels
    return replace(option, kernels=(*first, replace(last, c_bytes=last.c_bytes * width)))


def _bias(op: BoundOp, context: Context) -> tuple[Kernel, ...]:
    """The kernels of the bias: one pass for the batch or for each image (`conv.bias`), none where the convolution adds it.

    By a `product` with a vector of ones the bias is added to each image, and its gradient is a product of a matrix and that
    vector. So is that of a `prefilled` output, which is written with the bias, or with zeros where there is none, before each
    image's product adds to it.
    """
    rule, out = context.stack.conv.bias, context.bytes(op.shape)
    repeat = 1 if rule == "separate" else op.shape[0]
    fill = rule == "prefilled" and op.phase == "forward"
    if rule == "fused" or not (getattr(op.kind, "bias", False) or fill):
        return ()
    if fill and not getattr(op.kind, "bias", False):
        return (element_wise("zeros", Role.FILL, 0.0, out / repeat, element=context.element, repeat=repeat),)
    if rule in ("product", "prefilled"):
        return ones_product(op, context, channels=op.shape[1], values=op.shape[2] * op.shape[3], repeat=op.shape[0])
    if op.phase == "forward":
        values = out / repeat / context.element
        kernel = element_wise("bias", Role.BIAS, out / repeat, out / repeat, flop=values, element=context.element, repeat=repeat)
        slots = context.passes("bias_add", "forward").value_slots
        return (replace(kernel, gpu=replace(kernel.gpu, slots=values * slots)),)
    if op.phase == "backward_filter":
        return (element_wise("bias_gradient", Role.BIAS_GRADIENT, out / repeat, 0, flop=out / repeat / context.element,
                             element=context.element, repeat=repeat),)  # fmt: skip
    return ()
