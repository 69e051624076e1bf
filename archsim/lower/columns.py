"""The numbers that describe a kernel, each declared once, with its default, its unit and what it means; and the role of a kernel.

`T` is a float in the description of one kernel, and an array [V] in that of the variants of many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import inf
from typing import Any, Generic, TypeVar


class Role(StrEnum):
    """What a kernel does in its op: the only thing by which code tells kernels apart. Their names are for people.

    The value of a role is the `op` of such a loop in `traces/kernels/loops`; that of a `PASS` is its op kind.
    """

    PRODUCT = "product"  # of two matrices in memory, by a BLAS
    MATRIX_VECTOR = "matrix_vector"  # a product of so few rows or columns that each value of the matrix is used once or twice
    CONVOLUTION = "convolution"  # a product whose operand is gathered from images as it is loaded
    SCATTER = "scatter"  # a product whose results are added to images in the L2
    WINOGRAD = "winograd"  # the products of Winograd's algorithm, with its transforms in the same kernel
    DEPTHWISE = "depthwise"  # sums of taps, one channel each
    ATTENTION = "attention"  # two products around a softmax
    SOFTMAX = "softmax"  # the exponentials between two products, where they are a loop of their own
    GATES = "gates"  # the element-wise part of a step of a recurrent layer
    TRANSFORM = "transform"  # to or from the domain in which an algorithm multiplies
    IM2COL = "im2col"  # images unfolded into a matrix
    COL2IM = "col2im"  # the sum of a matrix back into images
    LAYOUT = "layout"  # a copy from one layout of a tensor to another
    FILL = "fill"  # zeros or indices, for which nothing is read
    BIAS = "bias"
    BIAS_GRADIENT = "bias_gradient"
    QUANTISE = "quantise"  # values rounded to a narrower format, and the search for their scale
    STORE = "store"  # keys and values put into a cache
    GATHER = "gather"  # rows looked up in a table, or their gradients added to it
    UPDATE = "update"  # the optimiser's passes over the parameters
    PASS = "pass"  # over the tensors of an op as `[passes]` of the stack counts them: activations, pooling, normalisation, copies


# -------------------------------------------------------------------------------------------------------------- columns

T = TypeVar("T")
KEY = "column"  # of a field's metadata


@dataclass(frozen=True, slots=True)
class KernelColumn:
    """The unit and the meaning of a number that describes a kernel."""

    unit: str
    meaning: str


def column(default: float, unit: str, meaning: str) -> Any:
    """A field of a record that is a column of the cost layer."""
    return field(default=default, metadata={KEY: KernelColumn(unit, meaning)})


def columns_of(record: type[Any]) -> Mapping[str, KernelColumn]:
    """The columns of a record in the order of its fields: name -> unit and meaning.

    >>> columns_of(Columns)["a_bytes"].unit
    'B'
    """
    return {each.name: each.metadata[KEY] for each in fields(record) if KEY in each.metadata}


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns(Generic[T]):
    """What a kernel computes and moves in one launch, on whatever device.

    A matrix kernel computes `count` products C[m, n] = A[m, k] B[k, n] with `work` multiply-accumulates for each (m, n, k). An
    element-wise kernel reads a and b, writes c and does `flop` arithmetic in `items` independent threads. B is what the op before
    may have left in cache; an unfolded convolution input is smaller than its matrix.
    """

    m: T = column(1, "1", "rows of the result of a product")
    n: T = column(1, "1", "columns of the result of a product")
    k: T = column(1, "1", "terms that are summed for each value of the result")
    count: T = column(1, "1", "products of one launch")
    work: T = column(1, "1", "multiply-accumulates for each (m, n, k)")
    exps: T = column(0, "1", "exponentials for each (m, k): a softmax between two products")
    operand_a: T = column(4, "B", "what a tile loads for one element of A, or the size of a value of an element-wise kernel")
    operand_b: T = column(4, "B", "what a tile loads for one element of B, or a thread of an element-wise kernel at once")
    a_bytes: T = column(0, "B", "size of A, or of the parameters that an element-wise kernel reads; counted once")
    b_bytes: T = column(0, "B", "size of B, or of the activations that an element-wise kernel reads; counted once")
    c_bytes: T = column(0, "B", "size of the result; counted once")
    flop: T = column(0, "FLOP", "arithmetic, two for each multiply-accumulate")
    items: T = column(1, "1", "results that can be computed independently, a thread each")
    repeat: T = column(1, "1", "launches, one after the other")
    dense: T = column(0, "1", "1 for an element-wise kernel whose arithmetic runs at the rate of a product")


@dataclass(frozen=True, kw_only=True, eq=False)
class GpuColumns(Generic[T]):
    """What matters on a GPU only."""

    longest: T = column(1, "1", "what the CTA computes that a mask leaves most, over the mean of all")
    row_bytes: T = column(0, "B", "length of a row of an operand where both are stored row by row along k; 0: they are not")
    row_step: T = column(0, "B", "the same where steps are short, so that each comes back to all rows; 0: they are deep")
    cache_bytes: T = column(0, "B", "L2 traffic beyond the tensors: results added up there, windows that overlap")
    checked: T = column(0, "1", "values of windows whose bounds are checked for every value")
    unrolled: T = column(0, "1", "values of windows that an unrolled loop goes through")
    slots: T = column(0, "1", "issue slots of a lane that an element-wise kernel takes for all its values and rows")
    lane_slots: T = column(0, "1", "issue slots of a lane for its part of a row, which its warp takes one after the other")
    load: T = column(16, "B", "what a lane loads of an operand at once; less where rows begin at no multiple of 16 B")
    row: T = column(0, "1", "values whose sum a CTA needs before it writes them, of a channel or a row; 0: it needs none")
    row_count: T = column(0, "1", "rows of one launch of which CTAs need such a sum")
    row_piece: T = column(0, "1", "values of a row that lie side by side")
    row_reads: T = column(0, "1", "how often a kernel reads a row of its input")
    row_in_flight: T = column(0, "B", "of a row, for each thread of a CTA that reads it again; 0: that is from memory")
    updates: T = column(0, "1", "atomic updates of one address, which the L2 does one after the other")
    plain: T = column(0, "1", "1 for a product that leaves the tensor cores idle and multiplies narrow operands in fp32")


@dataclass(frozen=True, kw_only=True, eq=False)
class TileColumns(Generic[T]):
    """The variant of a library's GPU kernel: the tile of the result that a CTA computes, and what it occupies."""

    tile_m: T = column(1, "1", "rows of the result that a CTA computes")
    tile_n: T = column(1, "1", "columns of the result that a CTA computes")
    tile_k: T = column(1, "1", "depth of one step of its inner loop")
    split: T = column(1, "1", "parts into which k is cut, each a CTA's")
    threads: T = column(256, "1", "threads of a CTA")
    registers: T = column(32, "1", "registers of a thread")
    shared: T = column(0, "B", "shared memory of a CTA")
    cluster: T = column(1, "1", "CTAs that load the longer side of their tiles together")
    score_slots: T = column(4, "1", "issue slots of a lane for each score of a softmax between two products")
    warp_mma: T = column(0, "1", "1 where warps multiply one by one on tensor cores that have instructions for groups of warps")
    overlapped: T = column(0, "1", "1 where a group of warps takes exponentials while another multiplies")
    persistent: T = column(0, "1", "1 where a CTA goes on with the next tile, whose loads are under way when it ends one")
    chain: T = column(1, "1", "kernels, one after the other: 2 where a second one adds up the parts of a split")


@dataclass(frozen=True, kw_only=True, eq=False)
class CpuColumns(Generic[T]):
    """What matters on a CPU only: how the framework and its library run the kernel."""

    threaded: T = column(1, "1", "0 where the framework or its library runs it on one thread")
    values: T = column(0, "1", "values that its scalar loop goes through, or operands that are fetched one by one")
    rewritten: T = column(0, "FLOP", "arithmetic of a second loop over rows of the result that were just written")
    packed: T = column(0, "1", "1 where the library multiplies from panels, 0 where it multiplies operands where they lie")
    copied: T = column(0, "1", "values that it copies into panels before it multiplies")
    tiled: T = column(0, "B", "unfolded images, which threads copy in tiles as large as a second cache level; 0: freely divided")
    channels: T = column(0, "1", "channels of the result of each part, cut into blocks of whole registers; 0: they are not")
    min_rows_per_thread: T = column(0, "1", "rows and columns of a product that each thread must get, or one thread does it all")
    both_activations: T = column(0, "1", "1 where both operands of a product are results of ops, 0 where A is parameters")
    subnormal: T = column(0, "1", "share of the values of an operand of a product that are subnormal numbers")
    depthwise: T = column(0, "1", "1 where each channel has filters of its own: no sum over channels, and no dot product")


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuRuntime:
    """How a framework and its libraries run on a CPU, the same for all kernels of a stack.

    local: 1 where threads of every socket touched the tensors first, 0 where one thread did [1]
    spin: 1 where threads without work spin, 0 where they sleep [1]
    fork_cache_lines: of each other thread, which the first one writes when it forks a loop [1]
    vectorised: 1 where loops of which nothing is known use SIMD instructions [1]
    simd: registers that the libraries' instructions name at most [bit]
    fused: 0 where they multiply and add apart [1]
    scalar_copies: 1 where panels are copied value by value, 0 where by SIMD instructions [1]
    block_registers: SIMD registers of a block of channels that threads take whole; 0: they take all channels [1]
    """

    local: float = 1.0
    spin: float = 1.0
    fork_cache_lines: float = 0.0
    vectorised: float = 0.0
    simd: float = inf
    fused: float = 1.0
    scalar_copies: float = 0.0
    block_registers: float = 0.0
