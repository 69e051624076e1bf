"""Convolutions with fewer multiplications: Winograd's algorithms, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Collection
from math import ceil

from archsim.lower.context import Context, element_wise
from archsim.lower.conv_products import whole_loads
from archsim.lower.kernel import Kernel, Option
from archsim.lower.layer import Layer
from archsim.lower.role import Role

# Values that a fused Winograd kernel reads for one tile of results: 4 x 8 tiles share a patch with its halo.
WINOGRAD_PATCH = {2: 10 * 18 / 32, 4: 18 * 34 / 32}


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
        name=f"winograd_{side}x{side}", role=Role.WINOGRAD, efficiency=efficiency,
        menu=context.menu(f"{name}_filter" if filtering else name), m=m, n=n, k=k, work=points,
        operand_a=float((side**2 if filtering else points) * element),
        operand_b=WINOGRAD_PATCH[side] * element, a_bytes=(a if filtering else filters) / repeat, b_bytes=b / repeat,
        c_bytes=c / repeat, flop=2.0 * points * m * n * k, items=float(m * n), repeat=repeat,
    )  # fmt: skip
    if filtering:
        return Option(algorithm=name, kernels=(kernel,))
    transform = element_wise("winograd_filter", Role.TRANSFORM, a, filters, flop=4 * a, element=element)
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
    if not _small_dense(layer, side) or (context.tensor and not whole_loads(layer, context.stack.conv.channel_load_bytes)):
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
    """The whole image through the frequency domain, padded to the next power of two."""
    size = max(layer.h, layer.w, layer.ho + layer.kh - 1, layer.wo + layer.kw - 1)
    padded = 1 << (size - 1).bit_length()
    return _fourier(layer, context, efficiency, max(8, padded), "fft") if padded <= context.stack.conv.fft_max_side else None


def _fourier(layer: Layer, context: Context, efficiency: str, tile: int, name: str) -> Option | None:
    if layer.sh != 1 or layer.sw != 1 or not layer.dense or layer.taps == 1 or max(layer.kh, layer.kw) > tile // 2:
        return None
    inner, height, width = (layer.ci, layer.ho, layer.wo) if layer.phase == "backward_filter" else layer.target
    outer = layer.ci if layer.phase == "backward_data" else layer.co
    step_h, step_w = tile - layer.kh + 1, tile - layer.kw + 1
    tiles = layer.batch * ceil(height / step_h) * ceil(width / step_w)
    frequencies = tile * (tile // 2 + 1)
    m, n, k = (outer, inner, tiles) if layer.phase == "backward_filter" else (outer, tiles, inner)
    separate = name == "fft" and tile > context.stack.conv.fft_fused_side
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
        name=f"{name}_gemm", role=Role.PRODUCT, efficiency=efficiency, menu=context.menu("transformed"), m=m, n=n, k=k,
        count=points * groups, work=work, operand_a=element, operand_b=element, a_bytes=a, b_bytes=b, c_bytes=c,
        flop=2.0 * work * points * groups * m * n * k, items=float(m * n * points * groups),
    )  # fmt: skip
    between = 1.0 if separate else 0.0
    adds = 5.0  # a transform adds about five terms for each value it writes, or log2 of the tile; never the bottleneck

    def transform(part: str, reads: float, writes: float, values: float) -> Kernel:
        return element_wise(f"{name}_{part}", Role.TRANSFORM, reads, writes, flop=adds * values / element, element=layer.element)

    kernels = (
        transform("filter", tensor_a + between * a, a + between * a, a),
        transform("input", tensor_b + between * b, b + between * b, b),
        gemm,
        transform("output", c + between * c, tensor_c + between * c, c),
    )
    return Option(algorithm=name, kernels=kernels, workspace=a + b + c)


def _small_dense(layer: Layer, side: int = 3) -> bool:
    """Whether Winograd's kernels for `side` x `side` filters and stride 1 apply."""
    return layer.kh == layer.kw == side and layer.sh == layer.sw == 1 and layer.dense
