"""A stack: the facts about a framework and its library that decide which kernels run for an op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One kernel variant of a matrix library: the block of the result that a CTA computes, and what it occupies.

    The library takes it for results of at least `least_m` x `least_n`.
    """

    m: int
    n: int
    k: int  # depth of one step of the inner loop
    threads: int
    registers: int  # per thread
    shared: int  # B per CTA
    least_m: int = 1
    least_n: int = 1
    cluster: int = 1  # CTAs that load the longer side of their tiles together
    overlapped: bool = False  # a group of warps takes exponentials while another multiplies


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The variants that a library can choose from for one kind of product, and how far it splits the inner dimension.

    It splits into parts of at least `split_least_k`, and products that are wide in both directions into at most `split_wide`
    of them (0: any number). `architectures` are those for which it takes the place of the menu it is named after.
    """

    tiles: tuple[Tile, ...]
    split_k: tuple[int, ...] = (1,)
    split_least_k: int = 1
    split_wide: int = 0
    architectures: tuple[str, ...] = ()
    split_launches: int = 1  # kernels where it splits: 2 if a second one adds up the parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """How often a streaming op touches memory: `inputs` and `outputs` in units of its input and output size."""

    inputs: float
    outputs: float
    launches: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """How the stack convolves.

    `algorithms` maps a phase to {algorithm: name of its efficiency constant}; every algorithm whose workspace fits
    `workspace_limit` is a candidate. `tensor` is the same for tensor cores, empty where they take the same algorithms;
    `own` is the same for architectures that the library has kernels of their own for.
    `grouped` is how groups run: one after the other, or as one batched kernel. `layout_copies` says which convolutions
    are surrounded by copies into the library's layout. Unfolding takes `unfold_flop` operations of index arithmetic for
    each value; `unfold_pointwise` says whether 1 x 1 convolutions are unfolded too. `bias`: added in a pass of its own
    ("separate"), image by image ("per_image"), written before the product adds to it, as zeros where there is none
    ("prefilled"), or in the convolution itself ("fused"). `winograd_patches` are the blocks of (images, rows, columns) of
    2 x 2 results that a CTA of fused Winograd can take, none where any will do. `barrier`: an empty kernel ends each forward
    pass and each filter gradient. `index_launches` kernels store the indices of an implicit product before it runs.
    `filter_taps`: whether a filter gradient on tensor cores is one product for all taps ("together") or one for each ("apart").
    `byte_tensor`: whether convolutions of int8 run on tensor cores, filters and images put in order before, also where the
    products of the stack do not. `channel_step` [B]: a kernel for tensor cores walks the channels of one tap after the other,
    each in whole steps of so many; 0 where all are one row.
    """

    algorithms: Mapping[str, Mapping[str, str]]
    tensor: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    workspace_limit: float = float("inf")
    grouped: str = "sequential"
    bias: str = "separate"
    layout_copies: str = "none"  # "none", "tensor" (those on tensor cores), "all", "blocked"
    unfold_threads: str = "all"  # CPU: "all" or "one"
    unfold_flop: float = 0.0
    unfold_pointwise: bool = False
    winograd_patches: tuple[tuple[int, int, int], ...] = ()
    barrier: bool = False
    index_launches: int = 0
    filter_taps: str = "together"
    byte_tensor: bool = False
    channel_step: int = 0
    images: str = "sequential"  # CPU: "parallel" where each thread unfolds and multiplies whole images


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """How the stack attends: in one `fused` kernel, or by products and a softmax that keep the scores in memory.

    `stores` kernels put the new keys and values into a cache before a prompt attends, `stores_cached` before one query looks
    at the cached ones. Heads that share keys are rows of one product "always", or only over "cached" keys (`packed`), and
    if they are not more than `most_packed`.
    """

    fused: bool = False
    stores: int = 0
    stores_cached: int = 0
    packed: str = "always"
    most_packed: int = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A framework on a library. Names of constants (`...efficiency`, `host`) are keys of the calibration file."""

    id: str
    kind: str  # "gpu", "cpu" or "any"
    framework: str
    library: str
    conv: Conv
    attention: Attention = field(default_factory=Attention)
    menus: Mapping[str, Menu]
    passes: Mapping[str, Mapping[str, Passes]]  # op kind -> phase (forward, training, backward) -> passes
    efficiency: Mapping[str, str]  # kernel family (gemm, gemv, recurrent) -> name of its constant
    optimiser_passes: Mapping[str, Passes]
    host: str = ""  # constant: host time per call of the framework
    host_unit: str = "op"  # what a call of the framework is on a GPU: an "op", or each "kernel"
    host_calls: Mapping[str, float] = field(default_factory=dict)  # op kind -> its host time in units of a plain op's
    elementwise_threads: str = "all"  # CPU: "all" or "one"
    vector: int = 0  # B that a thread of a streaming kernel loads at once; 0: one value
    threaded_ops: tuple[str, ...] = ()  # CPU: ops that run on all threads where the others run on one
    loops: Mapping[str, float] = field(default_factory=dict)  # CPU: clocks for each value of an op's scalar loop
    vectorised: bool = False  # CPU: its loops over elements and windows use SIMD instructions
    packing: float = 1.0  # CPU: effort of copying an operand of a product into panels, relative to scalar code
    gather_clocks: float = 0.0  # CPU: to fetch each value of an operand of a product by its index
    grain: float = 0.0  # CPU: rows and columns of a product for each thread, below which one thread does it all
    waiting: str = "spin"  # CPU: what threads without work do: "spin" or "sleep"
    default_threads: str = "cores"  # CPU: threads where nobody set them, one per core or per hardware thread
    multiply_adds: float = float("inf")  # CPU: per clock and core, the most that the binary's instructions can start
    recurrent: str = "fused"  # "fused": library sequence kernels; "steps": op by op
    recurrent_launches: int = 2  # per time step and layer
    window_slots: float = 0.0  # issue slots for one value of a window (pooling, LRN): bounds, address, comparison
    linear_bias: str = "separate"  # "separate": a pass of its own; "fused": in the epilogue of the product
    without_tensor: tuple[str, ...] = ()  # formats that it multiplies outside tensor cores, whatever the chip has
    half: str = "storage"  # fp16 without fast units: "storage": multiplied as fp32, "native": multiplied as fp16 all the same
    optimiser: str = "sgd_momentum"  # of the framework's published benchmark scripts
    variants: Mapping[str, str] = field(default_factory=dict)  # network -> the graph that this framework's script builds
    inputs: str = "device"  # where the timed run finds its input: "device" or "host" (copied over the link)
    waits: bool = False  # whether the host waits for each op, as tools do that time layer by layer
    input_copies: int = 1  # copies of an input within host memory before it crosses the link
    stall: str = ""  # constant: host time for which the device waits, `stalls` times in an op of a kind and phase
    stalls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    reserved: float = 0.0  # B of device memory that context and framework take
    sources: tuple[str, ...] = ()
    digest: str = ""
    buffers: str = "shared"  # "own": a layer keeps its output and gradient; "shared": memory is used again after the last reader
    in_place: tuple[str, ...] = ("relu", "relu6")  # ops that overwrite their first input
    graphs: bool = False  # whether a run can be recorded once and replayed as a CUDA graph

    def usual_threads(self, cores: T, hardware: T) -> T:
        """Threads on a CPU of so many cores and hardware threads when nobody sets them."""
        return hardware if self.default_threads == "hardware" else cores
