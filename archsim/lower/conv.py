"""Convolution: one product, or several smaller ones, depending on the algorithm.

Every algorithm is one function from a layer's geometry and phase to an option, or None where it cannot run. In terms of
a product C[m, n] = A[m, k] B[k, n] (per group; Chetlur et al. 2014, cuDNN, section 3):

    forward            m = output channels    n = N H' W'         k = input channels x taps
    backward_data      m = input channels     n = N H W           k = output channels x taps
    backward_filter    m = output channels    n = input channels x taps      k = N H' W'
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from math import ceil

from archsim.errors import InputError, Unsupported, nearest
from archsim.lower.context import HALF, Context, plan, stream
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.lower.layer import Layer, layer_of, untransposed
from archsim.trace.trace import BoundOp

ATOMIC = 64  # B of L2 traffic for one addition to a value in memory: its sector of 32 B is read and written
INDEX = 4  # B of one stored index
VECTOR = 16  # B of channels that a thread of a tensor-core kernel loads at once (ldg8 in the names of those for halves)
TILE_PIXELS = 128  # pixels of one tile of an implicit product: the tile height of every cuDNN menu
# Values that a fused Winograd kernel reads for one tile of results: 4 x 8 tiles share a patch with its halo.
WINOGRAD_PATCH = {2: 10 * 18 / 32, 4: 18 * 34 / 32}

# Side of the largest image that is transformed in one kernel. A choice: in convnet-benchmarks' Torch the filter gradients of
# 13 x 13 images take 0.7 of the time of the direct product, those of 28 x 28 images and more as long as that.
FFT_IN_ONE_KERNEL = 16


Algorithm = Callable[[Layer, Context, str], Option | None]


def implicit_gemm(layer: Layer, context: Context, efficiency: str) -> Option:
    """The product whose B is gathered from the input while tiles load; no workspace."""
    m, n, k = (padded(layer) if context.tensor else layer).product
    if context.tensor and layer.phase == "backward_data":
        k = ceil(k / (layer.sh * layer.sw))  # kernels for tensor cores leave out the zeros between the pixels
    taps = layer.taps if context.tensor and layer.phase == "backward_filter" and context.stack.conv.filter_taps == "apart" else 1
    n //= taps
    a, b, c = layer.operands
    batched = context.stack.conv.grouped == "batched"
    at_once, repeat = (layer.groups, 1) if batched else (1, layer.groups)
    at_once *= taps
    kernel = Kernel(
        name="implicit_gemm", efficiency=efficiency, menu=context.menu(f"conv_{layer.phase}"), m=m, n=n, k=k, count=at_once,
        operand_a=layer.element, operand_b=layer.element * gathered(layer), a_bytes=a / repeat, b_bytes=b / repeat,
        c_bytes=c / repeat, flop=2.0 * layer.macs / repeat, items=float(m * n * at_once), repeat=repeat,
    )  # fmt: skip
    indices = stream("indices", 0.0, float(layer.taps * layer.ci * INDEX), element=INDEX)
    return Option(algorithm="implicit_gemm", kernels=(*[indices] * context.stack.conv.index_launches, kernel))


def plain_gemm(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """The same beside tensor cores: halves in the layout of the framework, multiplied in fp32, no channels padded."""
    if layer.element < HALF:
        return None
    option = implicit_gemm(layer, replace(context, tensor=False), efficiency)
    kernels = tuple([replace(kernel, name="plain_gemm", plain=float(kernel.menu != "")) for kernel in option.kernels])
    return Option(algorithm="plain_gemm", kernels=kernels)


def padded(layer: Layer) -> Layer:
    """The layer with as many channels as whole loads hold: kernels for tensor cores load 16 B of channels at a time.

    cuDNN 7 developer guide, tensor core operations: channels in multiples of 8 halves, or padded to them.
    """
    whole = VECTOR // layer.element
    return replace(layer, ci=ceil(layer.ci / whole) * whole, co=ceil(layer.co / whole) * whole)


def scatter_gemm(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """The data gradient as the transpose of the forward gather: each tap's product is added to its pixel in the L2.

    m = input channels x taps, n = N H' W', k = output channels: no zeros are multiplied whatever the stride, and few
    input channels still fill a tile, but every product is an atomic addition (cuDNN's BWD_DATA_ALGO_0) to a tensor of
    zeros, which is written before and read again.
    """
    if layer.phase != "backward_data":
        return None
    m, n, k = layer.ci * layer.taps, layer.batch * layer.ho * layer.wo, layer.co
    a, b, c = (size / layer.groups for size in layer.operands)
    kernel = Kernel(
        name="scatter_gemm", efficiency=efficiency, menu=context.menu("conv_backward_data"), m=m, n=n, k=k,
        operand_a=layer.element, operand_b=layer.element, a_bytes=a, b_bytes=b, c_bytes=2 * c,
        cache_bytes=float(m * n * ATOMIC), flop=2.0 * layer.macs / layer.groups, items=float(m * n), repeat=layer.groups,
    )  # fmt: skip
    return Option(algorithm="scatter_gemm", kernels=(stream("zeros", 0.0, layer.input_bytes, element=layer.element), kernel))


def gathered(layer: Layer) -> float:
    """Share of the gathered matrix B that an SM really fetches: taps that overlap hit its own cache.

    A tile of 128 result pixels covers some rows of the image and reads them with their halo once for all taps, instead
    of once for each tap (Lym et al. 2019, DeLTA, section 4.1). The filter gradient gathers along the other dimension and
    walks each row once, so the same holds.
    """
    height, width = (layer.h, layer.w) if layer.phase == "backward_data" else (layer.ho, layer.wo)
    sh, sw = (1, 1) if layer.phase == "backward_data" else (layer.sh, layer.sw)
    columns = min(TILE_PIXELS, width)
    rows = min(height, ceil(TILE_PIXELS / columns))
    window = ((rows - 1) * sh + layer.kh) * ((columns - 1) * sw + layer.kw)
    return min(1.0, window / (rows * columns * layer.taps))


def im2col(layer: Layer, context: Context, efficiency: str) -> Option:
    """Unfold each image into a matrix in memory, then one library product per image and group (Jia et al. 2014, Caffe)."""
    pixels = layer.ho * layer.wo
    column = float(layer.groups * layer.ci * layer.taps * pixels * layer.element)
    unfold = unfolding(layer, context, column, layer.batch)
    gemm = replace(of_columns(layer, context, efficiency, pixels, layer.batch * layer.groups), single=1)
    # A 1 x 1 convolution is its own column matrix.
    pointwise = layer.taps == 1 and layer.sh == layer.sw == 1 and not context.stack.conv.unfold_pointwise
    order = (gemm, unfold) if layer.phase == "backward_data" else (unfold, gemm)
    return Option(algorithm="im2col", kernels=(gemm,) if pointwise else order, workspace=0 if pointwise else column)


def im2col_batch(layer: Layer, context: Context, efficiency: str) -> Option:
    """Unfold the whole batch, one product per group, and put the images of its result in order (MXNet, CNTK on a CPU)."""
    width = layer.ho * layer.wo * layer.batch
    column = float(layer.groups * layer.ci * layer.taps * width * layer.element)
    out, threaded = layer.output_bytes, context.stack.conv.unfold_threads == "all"
    gemm = of_columns(layer, context, efficiency, width, layer.groups)
    swap = stream("swap_axes", out, out, element=float(layer.element), threaded=threaded)
    unfold = unfolding(layer, context, column, 1)
    order = {"backward_data": (swap, gemm, unfold), "backward_filter": (swap, unfold, gemm)}.get(
        layer.phase, (unfold, gemm, swap)
    )
    return Option(algorithm="im2col_batch", kernels=order, workspace=column + out)


def of_columns(layer: Layer, context: Context, efficiency: str, width: int, repeat: int) -> Kernel:
    """The product with a column matrix of `width` pixels, `repeat` times: one group of an image, or of all of them."""
    rows, element = layer.ci * layer.taps, float(layer.element)
    m, n, k = {"backward_data": (rows, width, layer.co), "backward_filter": (layer.co, rows, width)}.get(
        layer.phase, (layer.co, width, rows)
    )
    return Kernel(
        name="gemm", efficiency=efficiency, menu=context.menu("gemm"), m=m, n=n, k=k, operand_a=element, operand_b=element,
        a_bytes=m * k * element, b_bytes=k * n * element, c_bytes=m * n * element, flop=2.0 * m * n * k, items=float(m * n),
        repeat=repeat,
    )  # fmt: skip


def unfolding(layer: Layer, context: Context, column: float, repeat: int) -> Kernel:
    """im2col or, for the data gradient, col2im, of `column` bytes at a time, `repeat` times."""
    rules = context.stack.conv
    image, element = layer.input_bytes / repeat, layer.element
    reads, writes = (column, image) if layer.phase == "backward_data" else (image, column)
    name = "col2im" if layer.phase == "backward_data" else "im2col"
    return stream(name, reads, writes, flop=rules.unfold_flop * column / element, element=element, repeat=repeat,
                  threaded=rules.unfold_threads == "all")  # fmt: skip


def direct(layer: Layer, context: Context, efficiency: str) -> Option:
    """A loop nest over blocked layouts: the product without unfolding, all images at once."""
    option = implicit_gemm(layer, context, efficiency)
    kernels = tuple([replace(kernel, name="direct") for kernel in option.kernels])
    return Option(algorithm="direct", kernels=kernels)


def depthwise(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """One input channel for each group: nothing to multiply as a matrix, so a thread sums the taps of its result."""
    if layer.groups == 1 or layer.ci != 1:
        return None
    a, b, c = layer.operands
    kernel = stream("depthwise", b, c, weights=a, flop=2.0 * layer.macs, element=layer.element, efficiency=efficiency)
    return Option(algorithm="depthwise", kernels=(kernel,))


def perfect(layer: Layer, context: Context, efficiency: str) -> Option:
    """A convolution without any loss: all multiply-accumulates at peak, every tensor moved once."""
    a, b, c = layer.operands
    kernel = stream("conv", b, c, weights=a, flop=2.0 * layer.macs, element=layer.element, efficiency=efficiency,
                    dense=True)  # fmt: skip
    return Option(algorithm="perfect", kernels=(kernel,))


def winograd(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """F(2x2, 3x3) in one fused kernel: 16 multiplications for 4 results instead of 36 (Lavin & Gray 2016, equation 8)."""
    return _fused_winograd(layer, context, efficiency, 2, "winograd")


def winograd_4x4(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """F(4x4, 3x3) in one fused kernel: 36 multiplications for 16 results instead of 144."""
    return _fused_winograd(layer, context, efficiency, 4, "winograd_4x4")


def _fused_winograd(layer: Layer, context: Context, efficiency: str, side: int, name: str) -> Option | None:
    """`side` x `side` results of one channel pair take (side + 2)^2 multiplications, summed over channels.

    In the filter gradient the sum runs over tiles: F(3x3, side x side), with the same number of multiplications.
    """
    if not _small_dense(layer):
        return None
    filtering = layer.phase == "backward_filter"
    inner, height, width = (layer.ci, layer.ho, layer.wo) if filtering else layer.target
    outer = layer.ci if layer.phase == "backward_data" else layer.co
    tiles = patched(layer.batch, ceil(height / side), ceil(width / side), context.stack.conv.winograd_patches)
    m, n, k = (outer, inner, tiles) if filtering else (outer, tiles, inner)
    points, repeat, element = (side + 2) ** 2, layer.groups, layer.element
    a, b, c = layer.operands
    filters = points / 9 * a  # transformed before the kernel runs; the filter gradient reads plain gradients instead
    kernel = Kernel(
        name=f"winograd_{side}x{side}", efficiency=efficiency, menu=context.menu(f"{name}_filter" if filtering else name),
        m=m, n=n, k=k, work=points, operand_a=float((side**2 if filtering else points) * element),
        operand_b=WINOGRAD_PATCH[side] * element, a_bytes=(a if filtering else filters) / repeat, b_bytes=b / repeat,
        c_bytes=c / repeat, flop=2.0 * points * m * n * k, items=float(m * n), repeat=repeat,
    )  # fmt: skip
    if filtering:
        return Option(algorithm=name, kernels=(kernel,))
    transform = stream("winograd_filter", a, filters, flop=4 * a, element=element)
    return Option(algorithm=name, kernels=(transform, kernel), workspace=filters)


def patched(batch: int, rows: int, columns: int, patches: Collection[tuple[int, int, int]]) -> int:
    """Tiles of a batch of images, padded to whole patches of (images, rows, columns): the best patch's.

    >>> patched(1, 4, 4, [(1, 4, 8)])
    32
    """
    padded = [ceil(batch / i) * ceil(rows / r) * ceil(columns / c) * i * r * c for i, r, c in patches]
    return min(padded, default=batch * rows * columns)


def winograd_nonfused(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """F(4x4, 3x3) as transforms through memory around 36 products: 36 multiplications for 16 results instead of 144."""
    return _nonfused_winograd(layer, context, efficiency, 3)


def winograd_nonfused_5x5(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """F(4x4, 5x5) in the same way: 64 multiplications for 16 results instead of 400."""
    return _nonfused_winograd(layer, context, efficiency, 5)


def _nonfused_winograd(layer: Layer, context: Context, efficiency: str, side: int) -> Option | None:
    if not _small_dense(layer, side):
        return None
    inner, height, width = (layer.ci, layer.ho, layer.wo) if layer.phase == "backward_filter" else layer.target
    outer = layer.ci if layer.phase == "backward_data" else layer.co
    tiles = layer.batch * ceil(height / 4) * ceil(width / 4)
    # In the filter gradient the sum runs over tiles, otherwise over channels.
    m, n, k = (outer, inner, tiles) if layer.phase == "backward_filter" else (outer, tiles, inner)
    return _transformed(layer, context, efficiency, "winograd_nonfused", (side + 3) ** 2, 1, m, n, k)


def fft_tiling(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """Tiles of 32 x 32 through the frequency domain: T (T/2 + 1) complex products (Mathieu et al. 2014; cuDNN 4 notes)."""
    return _fourier(layer, context, efficiency, 32, "fft_tiling")


def fft(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """The whole image through the frequency domain, padded to the next power of two (up to 256)."""
    size = max(layer.h, layer.w, layer.ho + layer.kh - 1, layer.wo + layer.kw - 1)
    padded = 1 << (size - 1).bit_length()
    return _fourier(layer, context, efficiency, max(8, padded), "fft") if padded <= 256 else None


def _fourier(layer: Layer, context: Context, efficiency: str, tile: int, name: str) -> Option | None:
    if layer.sh != 1 or layer.sw != 1 or not layer.dense or layer.taps == 1 or max(layer.kh, layer.kw) > tile // 2:
        return None
    inner, height, width = (layer.ci, layer.ho, layer.wo) if layer.phase == "backward_filter" else layer.target
    outer = layer.ci if layer.phase == "backward_data" else layer.co
    step_h, step_w = tile - layer.kh + 1, tile - layer.kw + 1
    tiles = layer.batch * ceil(height / step_h) * ceil(width / step_w)
    frequencies = tile * (tile // 2 + 1)
    m, n, k = (outer, inner, tiles) if layer.phase == "backward_filter" else (outer, tiles, inner)
    separate = name == "fft" and tile > FFT_IN_ONE_KERNEL
    return _transformed(layer, context, efficiency, name, frequencies, 4, m, n, k, separate)


def _transformed(
    layer: Layer, context: Context, efficiency: str, name: str, points: int, work: int, m: int, n: int, k: int,
    separate: bool = False,
) -> Option:  # fmt: skip
    """Transforms of A and B, `points` products of transformed values, the inverse transform of C.

    `work` is 1 for real and 4 for complex products; a complex value takes twice the bytes. Where rows and columns are
    `separate` kernels, the values pass through memory once more.
    """
    element = layer.element * (2 if work == 4 else 1)
    groups = layer.groups
    a, b, c = (float(points * size * element * groups) for size in (m * k, k * n, m * n))
    tensor_a, tensor_b, tensor_c = layer.operands
    gemm = Kernel(
        name=f"{name}_gemm", efficiency=efficiency, menu=context.menu("transformed"), m=m, n=n, k=k, count=points * groups,
        work=work, operand_a=element, operand_b=element, a_bytes=a, b_bytes=b, c_bytes=c,
        flop=2.0 * work * points * groups * m * n * k, items=float(m * n * points * groups),
    )  # fmt: skip
    between = 1.0 if separate else 0.0
    adds = 5.0  # a transform adds about five terms for each value it writes, or log2 of the tile; never the bottleneck
    kernels = (
        stream(f"{name}_filter", tensor_a + between * a, a + between * a, flop=adds * a / element, element=layer.element),
        stream(f"{name}_input", tensor_b + between * b, b + between * b, flop=adds * b / element, element=layer.element),
        gemm,
        stream(f"{name}_output", c + between * c, tensor_c + between * c, flop=adds * c / element, element=layer.element),
    )
    return Option(algorithm=name, kernels=kernels, workspace=a + b + c)


def _small_dense(layer: Layer, side: int = 3) -> bool:
    """Whether Winograd's kernels for `side` x `side` filters and stride 1 apply."""
    return layer.kh == layer.kw == side and layer.sh == layer.sw == 1 and layer.dense


AS_IT_LIES = ("plain_gemm",)  # algorithms that read and write the layout of the framework
ALGORITHMS: dict[str, Algorithm] = {
    "implicit_gemm": implicit_gemm,
    "plain_gemm": plain_gemm,
    "scatter_gemm": scatter_gemm,
    "im2col": im2col,
    "im2col_batch": im2col_batch,
    "direct": direct,
    "winograd": winograd,
    "winograd_4x4": winograd_4x4,
    "winograd_nonfused": winograd_nonfused,
    "winograd_nonfused_5x5": winograd_nonfused_5x5,
    "fft": fft,
    "fft_tiling": fft_tiling,
    "depthwise": depthwise,
    "perfect": perfect,
}


def conv2d(op: BoundOp, context: Context) -> Plan:
    """Every algorithm of the stack that can run this layer within the workspace limit; the bias as its own pass."""
    layer, rules = layer_of(op, context.element), context.stack.conv
    options = []
    for name, efficiency in context.algorithms(op.phase).items():
        if name not in ALGORITHMS:
            near = nearest(name, ALGORITHMS) or list(ALGORITHMS)
            problem = f"conv.algorithms.{op.phase}: no algorithm {name!r}; nearest: {', '.join(near)}"
            raise InputError(f"stack {context.stack.id}", problem)
        option = ALGORITHMS[name](layer, context, efficiency)
        if option is not None and (option.workspace <= rules.workspace_limit or name.startswith("im2col")):
            options.append(option)
    if not options:
        raise Unsupported(f"stack {context.stack.id} has no algorithm for {op.name} ({op.phase})")
    before, after = _layout_copies(layer, context), (*_bias(op, context), *_barrier(layer, context))
    options = [
        replace(option, kernels=(*(() if option.algorithm in AS_IT_LIES else before), *option.kernels, *after))
        for option in options
    ]
    return plan(op, context, *options)


def conv_transpose2d(op: BoundOp, context: Context) -> Plan:
    """The phase of a plain convolution that it is, with a pass for the bias of its own output."""
    made, after = conv2d(untransposed(op), context), _bias(op, context)
    return replace(made, options=tuple([replace(option, kernels=(*option.kernels, *after)) for option in made.options]))


def _layout_copies(layer: Layer, context: Context) -> tuple[Kernel, ...]:
    """Copies of the images between the layouts of framework and library; a 1 x 1 convolution is a plain product in both.

    Kernels for tensor cores read channels last and write what they are asked for, so there only what is read is copied; that
    of a filter gradient writes sums in fp32, which become halves afterwards.
    Where the library works on blocks of channels (`blocked`), every operand and the result of every convolution is copied.
    """
    rule = context.stack.conv.layout_copies
    plain = layer.taps == 1 and layer.sh == layer.sw == 1
    if rule == "none" or (rule == "tensor" and not context.tensor) or (rule == "all" and plain):
        return ()
    first, second, result = layer.operands
    gradient = layer.phase != "forward"
    filtering = layer.phase == "backward_filter"
    read = [first, second] if rule == "blocked" or filtering or (rule == "tensor" and gradient) else [second]
    written = [result] if rule == "blocked" or (rule == "all" and not filtering) or (rule == "tensor" and filtering) else []
    return tuple([stream("transpose", size, size, element=layer.element) for size in (*read, *written)])


def _barrier(layer: Layer, context: Context) -> tuple[Kernel, ...]:
    """An empty kernel that waits for the streams of all groups; the two gradients of a layer share one."""
    if not context.stack.conv.barrier or layer.phase == "backward_data":
        return ()
    return (stream("barrier", 0.0, 0.0, element=layer.element),)


def _bias(op: BoundOp, context: Context) -> tuple[Kernel, ...]:
    rule, out = context.stack.conv.bias, context.bytes(op.shape)
    threaded = context.stack.elementwise_threads == "all"
    repeat = 1 if rule == "separate" else op.shape[0]
    fill = rule == "prefilled" and op.phase == "forward"
    if rule == "fused" or not (getattr(op.kind, "bias", False) or fill):
        return ()
    if op.phase == "forward":
        return (stream("bias", out / repeat, out / repeat, flop=out / repeat / context.element, element=context.element,
                       threaded=threaded, repeat=repeat),)  # fmt: skip
    if op.phase == "backward_filter":
        return (stream("bias_gradient", out / repeat, 0, flop=out / repeat / context.element, element=context.element,
                       threaded=threaded, repeat=repeat),)  # fmt: skip
    return ()
