"""Convolutions as one product C[m, n] = A[m, k] B[k, n], or as one for each image: the algorithms without transforms.

`Layer.product` has m, n and k of each phase, `Layer.operands` the tensors that are A, B and C.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from archsim.lower.columns import GpuColumns, Role
from archsim.lower.context import HALF, Context, element_wise
from archsim.lower.gemm import VECTOR, product
from archsim.lower.kernel import Kernel, Option
from archsim.lower.layer import Layer

ATOMIC = 64  # B of L2 traffic for one addition to a value in memory: its sector of 32 B is read and written
WORD = 4  # B of the narrowest load of a lane
INDEX = 4  # B of one stored index


def implicit_gemm(layer: Layer, context: Context, efficiency: str) -> Option:
    """The product whose B is gathered from the images while tiles load it: no workspace (Chetlur et al. 2014, cuDNN, section 3).

    Kernels for tensor cores pad channels to whole loads and skip the zeros of a strided data gradient. Groups are launches of
    their own, or products of one launch.
    """
    rules = context.stack.conv
    whole = padded(layer) if context.tensor else layer
    m, n, k = whole.product
    if context.tensor and layer.phase == "backward_data":
        k = ceil(k / (layer.sh * layer.sw))
    a, b, c = layer.operands
    batched = rules.grouped == "batched"
    at_once, repeat = (layer.groups, 1) if batched else (1, layer.groups)
    kernel = Kernel(
        name="implicit_gemm", role=Role.CONVOLUTION, efficiency=efficiency, menu=context.menu(f"conv_{layer.phase}"),
        m=m, n=n, k=k, count=at_once, operand_a=layer.element, operand_b=layer.element * gathered(layer, rules.tile_pixels),
        a_bytes=a / repeat, b_bytes=b / repeat, c_bytes=c / repeat, flop=2.0 * layer.macs / repeat, items=float(m * n * at_once),
        repeat=repeat,
    )  # fmt: skip
    indices = element_wise("indices", Role.FILL, 0.0, float(layer.taps * layer.ci * INDEX), element=INDEX)
    before = [indices] * rules.index_launches
    return Option(algorithm="implicit_gemm", kernels=(*before, kernel))


def plain_gemm(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """An implicit product that leaves the tensor cores idle: halves in the framework's layout, multiplied in fp32, not padded."""
    if layer.element < HALF:
        return None
    option = implicit_gemm(layer, replace(context, tensor=False), efficiency)
    kernels = [replace(k, name="plain_gemm", gpu=GpuColumns(plain=1)) if k.menu else k for k in option.kernels]
    return Option(algorithm="plain_gemm", kernels=tuple(kernels))


def pixel_gemm(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """A convolution with 1 x 1 filters at stride 1 as products of the BLAS, in the framework's layout: no copies.

        channels last     one product        m = co       n = batch h w    k = ci
        channels first    one for an image   m = h w      n = co           k = ci        count = batch

    None where the rows of an operand begin at no multiple of 16 B, which such kernels need.
    """
    if layer.phase != "forward" or layer.groups > 1 or layer.taps > 1 or layer.sh * layer.sw > 1:
        return None
    if (layer.h, layer.w) != (layer.ho, layer.wo) or not context.tensor or layer.element < HALF:
        return None
    first = context.stack.conv.layout_copies != "none"
    pixels = layer.h * layer.w
    m, n, count = (pixels, layer.co, layer.batch) if first else (layer.co, layer.batch * pixels, 1)
    if any(size * layer.element % VECTOR for size in ((pixels, layer.ci) if first else (layer.ci, layer.co))):
        return None
    kernel = product(context, m, n, layer.ci, count=count, menu="gemm_batched" if first else "gemm")
    if first:  # the filters are B, read for every image, and the images A, which the op before has just written
        kernel = replace(kernel, a_bytes=layer.filter_bytes, b_bytes=layer.input_bytes)
    return Option(algorithm="pixel_gemm", kernels=(replace(kernel, name="pixel_gemm", efficiency=efficiency),))


def padded(layer: Layer) -> Layer:
    """The layer with its channels rounded up to whole loads of `VECTOR` bytes; input channels that fit a word, to that.

    NVIDIA cuDNN 7 developer guide (2017), tensor core operations; TensorRT 8 developer guide (2021), I/O formats CHW4 of int8.

    >>> layer = Layer(phase="forward", batch=1, groups=1, ci=3, co=64, h=8, w=8, ho=8, wo=8, kh=3, kw=3, sh=1, sw=1, dense=True,
    ...               element=2)
    >>> padded(layer).ci, padded(replace(layer, element=1)).ci
    (8, 4)
    """
    whole, few = max(1, VECTOR // layer.element), WORD // layer.element
    return replace(layer, ci=few if layer.ci <= few else ceil(layer.ci / whole) * whole, co=ceil(layer.co / whole) * whole)


def scatter_gemm(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """The data gradient as the transpose of the forward gather: each tap's product is added to its pixel (BWD_DATA_ALGO_0).

    m = ci kh kw    n = batch ho wo    k = co    L2 traffic = ATOMIC m n

    No zeros are multiplied whatever the stride, and few input channels still fill a tile. But every result is an atomic addition
    in the L2 to a tensor of zeros, which is written before and read again. GPUs of its time have no atomic addition of halves
    (CUDA C programming guide, atomicAdd), so that a library with another kernel takes that one.
    """
    if layer.phase != "backward_data" or (layer.element == HALF and "implicit_gemm" in context.algorithms(layer.phase)):
        return None
    m, n, k = layer.ci * layer.taps, layer.batch * layer.ho * layer.wo, layer.co
    a, b, c = (size / layer.groups for size in layer.operands)
    kernel = Kernel(
        name="scatter_gemm", role=Role.SCATTER, efficiency=efficiency, menu=context.menu("conv_backward_data"), m=m, n=n, k=k,
        operand_a=layer.element, operand_b=layer.element, a_bytes=a, b_bytes=b, c_bytes=2 * c,
        flop=2.0 * layer.macs / layer.groups, items=float(m * n), repeat=layer.groups,
        gpu=GpuColumns(cache_bytes=float(m * n * ATOMIC)),
    )  # fmt: skip
    zeros = element_wise("zeros", Role.FILL, 0.0, layer.input_bytes, element=layer.element)
    return Option(algorithm="scatter_gemm", kernels=(zeros, kernel))


def gathered(layer: Layer, pixels: int) -> float:
    """Share of the gathered matrix B that an SM fetches: where the taps of neighbours overlap, they hit its own cache.

    share = ((rows - 1) sh + kh) ((columns - 1) sw + kw) / (rows columns kh kw), at most 1    (Lym et al. 2019, section 4.1)

    rows, columns: the part of the image that a tile of `pixels` results covers; sh, sw: stride, 1 in a data gradient; kh, kw:
    sides of the filter. The tile reads this part with its halo once for all taps, instead of once for each. The filter
    gradient gathers along the other dimension and reads each row once, so the same holds. Without `pixels` nothing is shared.

    >>> layer = Layer(phase="forward", batch=1, groups=1, ci=64, co=64, h=32, w=32, ho=32, wo=32, kh=3, kw=3, sh=1, sw=1,
    ...               dense=True, element=4)
    >>> gathered(layer, 128) == 6 * 34 / (4 * 32 * 9)
    True
    """
    if not pixels:
        return 1.0
    height, width = (layer.h, layer.w) if layer.phase == "backward_data" else (layer.ho, layer.wo)
    sh, sw = (1, 1) if layer.phase == "backward_data" else (layer.sh, layer.sw)
    columns = min(pixels, width)
    rows = min(height, ceil(pixels / columns))
    window = ((rows - 1) * sh + layer.kh) * ((columns - 1) * sw + layer.kw)
    return min(1.0, window / (rows * columns * layer.taps))


def im2col(layer: Layer, context: Context, efficiency: str) -> Option:
    """Each image unfolded into a matrix in memory, then a product of the BLAS for each image and group (Jia et al. 2014, Caffe).

    Workspace: the matrix of one image, groups ci kh kw ho wo values. A 1 x 1 convolution with stride 1 is its own matrix.
    """
    pixels = layer.ho * layer.wo
    column = float(layer.groups * layer.ci * layer.taps * pixels * layer.element)
    unfold = unfolding(layer, context, column, layer.batch)
    gemm = of_columns(layer, context, efficiency, pixels, layer.batch * layer.groups)
    pointwise = layer.taps == 1 and layer.sh == layer.sw == 1 and not context.stack.conv.unfold_pointwise
    order = (gemm, unfold) if layer.phase == "backward_data" else (unfold, gemm)
    return Option(algorithm="im2col", kernels=(gemm,) if pointwise else order, workspace=0 if pointwise else column)


def im2col_batch(layer: Layer, context: Context, efficiency: str) -> Option:
    """The whole batch unfolded, a product for each group, and its result put into the order of images (MXNet, CNTK on a CPU).

    Workspace: the matrix of the batch, groups ci kh kw batch ho wo values, and the result before it is reordered.
    """
    width = layer.ho * layer.wo * layer.batch
    column = float(layer.groups * layer.ci * layer.taps * width * layer.element)
    out = layer.output_bytes
    gemm = of_columns(layer, context, efficiency, width, layer.groups)
    swap = element_wise("swap_axes", Role.LAYOUT, out, out, element=float(layer.element))
    unfold = unfolding(layer, context, column, 1)
    order = {"backward_data": (swap, gemm, unfold), "backward_filter": (swap, unfold, gemm)}.get(
        layer.phase, (unfold, gemm, swap)
    )
    return Option(algorithm="im2col_batch", kernels=order, workspace=column + out)


def of_columns(layer: Layer, context: Context, efficiency: str, width: int, repeat: int) -> Kernel:
    """The product with a matrix of unfolded images, ci kh kw rows by `width` pixels, launched `repeat` times."""
    rows, element = layer.ci * layer.taps, float(layer.element)
    m, n, k = {"backward_data": (rows, width, layer.co), "backward_filter": (layer.co, rows, width)}.get(
        layer.phase, (layer.co, width, rows)
    )
    return Kernel(
        name="gemm", role=Role.PRODUCT, efficiency=efficiency, menu=context.menu("gemm"), m=m, n=n, k=k, operand_a=element,
        operand_b=element, a_bytes=m * k * element, b_bytes=k * n * element, c_bytes=m * n * element, flop=2.0 * m * n * k,
        items=float(m * n), repeat=repeat,
    )  # fmt: skip


def unfolding(layer: Layer, context: Context, column: float, repeat: int) -> Kernel:
    """im2col, or col2im for a data gradient: a matrix of `column` bytes at a time, `repeat` times."""
    image, element = layer.input_bytes / repeat, layer.element
    reads, writes = (column, image) if layer.phase == "backward_data" else (image, column)
    role = Role.COL2IM if layer.phase == "backward_data" else Role.IM2COL
    return element_wise(role.value, role, reads, writes, element=element, repeat=repeat)


def direct(layer: Layer, context: Context, efficiency: str) -> Option:
    """A loop nest over images and blocks of channels: the product of `implicit_gemm` by a kernel of another kind."""
    option = implicit_gemm(layer, context, efficiency)
    kernels = [replace(kernel, name="direct") if kernel.menu else kernel for kernel in option.kernels]
    return Option(algorithm="direct", kernels=tuple(kernels))


def direct_depthwise(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """The loop nest where each channel has filters of its own; other layers are products."""
    return direct(layer, context, efficiency) if layer.groups > 1 and layer.ci == 1 else None


def depthwise(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """One input channel for each group: there is no matrix to multiply, and each thread sums the taps of its result."""
    if layer.groups == 1 or layer.ci != 1:
        return None
    a, b, c = layer.operands
    kernel = element_wise("depthwise", Role.DEPTHWISE, b, c, weights=a, flop=2.0 * layer.macs, element=layer.element,
                          efficiency=efficiency)  # fmt: skip
    return Option(algorithm="depthwise", kernels=(kernel,))


def perfect(layer: Layer, context: Context, efficiency: str) -> Option:
    """A convolution without losses: all multiply-accumulates at the peak rate, every tensor moved once."""
    a, b, c = layer.operands
    kernel = element_wise("conv", Role.CONVOLUTION, b, c, weights=a, flop=2.0 * layer.macs, element=context.vector,
                          efficiency=efficiency, dense=True)  # fmt: skip
    return Option(algorithm="perfect", kernels=(kernel,))
