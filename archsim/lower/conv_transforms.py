"""Convolutions with fewer multiplications: Winograd's algorithms, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Collection
from math import ceil

from archsim.lower.columns import Role
from archsim.lower.context import Context, element_wise
from archsim.lower.conv_products import padded
from archsim.lower.kernel import Kernel, Option
from archsim.lower.layer import Layer

PATCH = 4, 8  # tiles of results, along rows and columns, of which a CTA of a fused Winograd kernel loads the patch with its halo
# Operations for each value of F(r x r, 3 x 3) that a transform writes (Lavin & Gray 2016), others as r = 4. A choice, not a fit.
TRANSFORM_FLOP = {2: 2.0, 4: 5.0, 6: 8.0}
WORDS = 4  # most results along a side of a Winograd tile whose transforms have whole coefficients
TILED = 32  # side of the tiles of cuDNN's FFT_TILING
SMALLEST = 8  # side of the smallest transform of a whole image. A choice.


def multiplications(results: int, filters: int) -> int:
    """Multiplications of F(r x r, s x s), for one channel pair and one tile of r x r results of an s x s filter.

    (r + s - 1)^2        (Winograd 1980; Lavin & Gray 2016, equation 8), of the r^2 s^2 of a direct convolution

    r: `results`, s: `filters`; stride 1, no dilation. The filter gradient F(s x s, r x r) takes as many.

    >>> multiplications(2, 3), multiplications(4, 3), multiplications(4, 5)
    (16, 36, 64)
    """
    return (results + filters - 1) ** 2


def patch_values(results: int) -> float:
    """Values that a fused kernel for 3 x 3 filters loads for one tile of r x r results, `results` = r.

    (4 r + 2) (8 r + 2) / 32

    The tiles of a patch of 4 x 8 share what they overlap in, and the patch has a halo of one value on each side.

    >>> patch_values(2)
    5.625
    """
    rows, columns = PATCH
    return (rows * results + 2) * (columns * results + 2) / (rows * columns)


def frequencies(tile: int) -> int:
    """Complex products that one channel pair takes for a tile of t x t real values in the frequency domain, `tile` = t.

    t (t / 2 + 1)        since the transform of real values is symmetric (Mathieu et al. 2014)

    >>> frequencies(32)
    544
    """
    return tile * (tile // 2 + 1)


def winograd(layer: Layer, context: Context, efficiency: str, side: int = 2, name: str = "winograd") -> Option | None:
    """F(r x r, 3 x 3) in one kernel, transforms included, r = `side`: 16 multiplications for 4 results instead of 36, or 36 for
    16 instead of 144. A product of outer channels by tiles, summed over inner channels, for each of its points.

    m = outer channels    n = tiles    k = inner channels    work = (r + 2)^2

    In the filter gradient, F(3 x 3, r x r), the sum runs over tiles instead: n = inner channels, k = tiles. Filters are
    transformed before, by a kernel of their own; the gradients that a filter gradient reads are transformed as they are loaded.
    """
    if not _small_dense(layer):
        return None
    filtering = layer.phase == "backward_filter"
    m, n, k = _at_a_point(layer, side, side, context.stack.conv.winograd_patches)
    points, repeat, element = multiplications(side, 3), layer.groups, layer.element
    a, b, c = layer.operands
    filters = points / 9 * a
    kernel = Kernel(
        name=f"winograd_{side}x{side}", role=Role.WINOGRAD, efficiency=efficiency,
        menu=context.menu(f"{name}_filter" if filtering else name), m=m, n=n, k=k, work=points,
        operand_a=float((side**2 if filtering else points) * element),
        operand_b=patch_values(side) * element, a_bytes=(a if filtering else filters) / repeat, b_bytes=b / repeat,
        c_bytes=c / repeat, flop=2.0 * points * m * n * k, items=float(m * n), repeat=repeat,
    )  # fmt: skip
    if filtering:
        return Option(algorithm=name, kernels=(kernel,))
    transform = element_wise("winograd_filter", Role.TRANSFORM, a, filters, flop=4 * a, element=element)
    return Option(algorithm=name, kernels=(transform, kernel), workspace=filters)


def patched(batch: int, rows: int, columns: int, patches: Collection[tuple[int, int, int]]) -> int:
    """Tiles of `batch` images of `rows` x `columns` tiles, padded to whole patches of (images, rows, columns).

    ceil(batch / i) ceil(rows / r) ceil(columns / c) i r c, of the patch (i, r, c) for which it is least; unpadded without patches

    >>> patched(1, 4, 4, [(1, 4, 8)])
    32
    """
    padded = [ceil(batch / i) * ceil(rows / r) * ceil(columns / c) * i * r * c for i, r, c in patches]
    return min(padded, default=batch * rows * columns)


def _at_a_point(
    layer: Layer, down: int, across: int, patches: Collection[tuple[int, int, int]] = ()
) -> tuple[int, int, int]:
    """(m, n, k) of the product at one point of transformed tiles, each of which gives `down` x `across` results.

    In the filter gradient the sum runs over tiles, otherwise over channels.
    """
    filtering = layer.phase == "backward_filter"
    inner, height, width = (layer.ci, layer.ho, layer.wo) if filtering else layer.target
    outer = layer.ci if layer.phase == "backward_data" else layer.co
    tiles = patched(layer.batch, ceil(height / down), ceil(width / across), patches)
    return (outer, inner, tiles) if filtering else (outer, tiles, inner)


def winograd_nonfused(layer: Layer, context: Context, efficiency: str, side: int = 3, results: int = 4) -> Option | None:
    """F(r x r, s x s) with transforms through memory around (r + s - 1)^2 products, r = `results`, s = `side`.

    Multiplications for r^2 results, instead of r^2 s^2: 36 of F(4, 3), 16 of F(2, 3), 64 of F(6, 3) and of F(4, 5).

    A CPU's transforms need more digits than bytes have: those of F(2, 3) grow values to 4 times, of F(4, 3) to 100 times their
    range, which 16 bit hold (`conv.winograd_words`); those of F(6, 3) have fractions.
    """
    words = context.device_kind == "cpu" and layer.element == 1
    if words and (results > WORDS or not context.stack.conv.winograd_words):
        return None
    if not _small_dense(layer, side) or (context.tensor and padded(layer) != layer):
        return None
    sizes = _at_a_point(layer, results, results)
    return _transformed(layer, context, efficiency, "winograd_nonfused", multiplications(results, side), 1, sizes,
                        results=results, words=words)  # fmt: skip


def fft_tiling(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """Tiles of 32 x 32 through the frequency domain (Mathieu et al. 2014)."""
    return _fourier(layer, context, efficiency, TILED, "fft_tiling")


def fft(layer: Layer, context: Context, efficiency: str) -> Option | None:
    """The whole image through the frequency domain, padded to the next power of two (Mathieu et al. 2014)."""
    size = max(layer.h, layer.w, layer.ho + layer.kh - 1, layer.wo + layer.kw - 1)
    padded = max(SMALLEST, 1 << (size - 1).bit_length())
    return _fourier(layer, context, efficiency, padded, "fft")


def _fourier(layer: Layer, context: Context, efficiency: str, tile: int, name: str) -> Option | None:
    """Tiles of t x t values, t = `tile`, each of which gives (t - kh + 1) (t - kw + 1) results; stride 1 and no dilation."""
    if layer.sh != 1 or layer.sw != 1 or not layer.dense or layer.taps == 1 or max(layer.kh, layer.kw) > tile // 2:
        return None
    sizes = _at_a_point(layer, tile - layer.kh + 1, tile - layer.kw + 1)
    separate = name == "fft" and tile > context.stack.conv.fft_fused_side
    return _transformed(layer, context, efficiency, name, frequencies(tile), 4, sizes, separate)


def _transformed(
    layer: Layer, context: Context, efficiency: str, name: str, points: int, work: int,
    sizes: tuple[int, int, int], separate: bool = False, results: int = 4, words: bool = False,
) -> Option:  # fmt: skip
    """Transforms of A and B, `points` products of transformed values, the inverse transform of C: all through memory.

    `work` is 1 for real products and 4 for complex ones, whose values take twice the bytes. `separate`: rows and columns are
    transformed by one kernel each, and the values pass through memory once more between them. `words`: transformed values of two
    bytes, whose products have four. Workspace: A, B and C transformed.
    """
    element = layer.element * (2 if work == 4 or words else 1)
    groups, (m, n, k) = layer.groups, sizes
    a, b, c = (float(points * size * element * groups) for size in (m * k, k * n, m * n * (2 if words else 1)))
    tensor_a, tensor_b, tensor_c = layer.operands
    gemm = Kernel(
        name=f"{name}_gemm", role=Role.PRODUCT, efficiency=efficiency, menu=context.menu("transformed"), m=m, n=n, k=k,
        count=points * groups, work=work, operand_a=element, operand_b=element, a_bytes=a, b_bytes=b, c_bytes=c,
        flop=2.0 * work * points * groups * m * n * k, items=float(m * n * points * groups),
    )  # fmt: skip
    between = 1.0 if separate else 0.0
    ahead = context.stack.packing in ("ahead", "weights") and layer.phase == "forward" and not context.training

    def transform(part: str, reads: float, writes: float, size: float) -> Kernel:
        return element_wise(f"{name}_{part}", Role.TRANSFORM, reads, writes, flop=TRANSFORM_FLOP[results] * size / element,
                            element=element if words else layer.element)  # fmt: skip

    kernels = (
        *(() if ahead else (transform("filter", tensor_a + between * a, a + between * a, a),)),
        transform("input", tensor_b + between * b, b + between * b, b),
        gemm,
        transform("output", c + between * c, tensor_c + between * c, c),
    )
    return Option(algorithm=name, kernels=kernels, workspace=a + b + c)


def _small_dense(layer: Layer, side: int = 3) -> bool:
    """Whether the filters are `side` x `side`, with stride 1 and without dilation, as Winograd's algorithms need."""
    return layer.kh == layer.kw == side and layer.sh == layer.sw == 1 and layer.dense
