"""A stack: the facts about a framework and its library that decide which kernels run for an op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One kernel variant of a matrix library: the block of the result that a CTA computes, and what it occupies."""

    m: int
    n: int
    k: int  # depth of one step of the inner loop
    threads: int
    registers: int  # per thread
    shared: int  # B per CTA


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The variants that a library can choose from for one kind of product, and how far it splits the inner dimension."""

    tiles: tuple[Tile, ...]
    split_k: tuple[int, ...] = (1,)


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
    `workspace_limit` is a candidate. `tensor` is the same for tensor cores, empty where they take the same algorithms.
    `grouped` is how groups run: one after the other, or as one batched kernel. `layout_copies` says which convolutions
    are surrounded by copies into the library's layout. Unfolding takes `unfold_flop` operations of index arithmetic for
    each value; `unfold_pointwise` says whether 1 x 1 convolutions are unfolded too. `bias`: added in a pass of its own
    ("separate"), image by image ("per_image"), written before the product adds to it, as zeros where there is none
    ("prefilled"), or in the convolution itself ("fused").
    """

    algorithms: Mapping[str, Mapping[str, str]]
    tensor: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    workspace_limit: float = float("inf")
    grouped: str = "sequential"
    bias: str = "separate"
    layout_copies: str = "none"  # "none", "tensor" (those on tensor cores), "all"
    unfold_threads: str = "all"  # CPU: "all" or "one"
    unfold_flop: float = 0.0
    unfold_pointwise: bool = False
    images: str = "sequential"  # CPU: "parallel" where each thread unfolds and multiplies whole images


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A framework on a library. Names of constants (`...efficiency`, `host`) are keys of the calibration file."""

    id: str
    kind: str  # "gpu", "cpu" or "any"
    framework: str
    library: str
    conv: Conv
    menus: Mapping[str, Menu]
    passes: Mapping[str, Mapping[str, Passes]]  # op kind -> phase (forward, training, backward) -> passes
    efficiency: Mapping[str, str]  # kernel family (gemm, gemv, recurrent) -> name of its constant
    optimiser_passes: Mapping[str, Passes]
    host: str = ""  # constant: host time per op
    elementwise_threads: str = "all"  # CPU: "all" or "one"
    threaded_ops: tuple[str, ...] = ()  # CPU: ops that run on all threads where the others run on one
    in_place: tuple[str, ...] = ()  # CPU: ops whose result overwrites their input, so that no line is fetched to be written
    loops: Mapping[str, float] = field(default_factory=dict)  # CPU: clocks for each value of an op's scalar loop
    grain: float = 0.0  # CPU: rows and columns of a product for each thread, below which one thread does it all
    waiting: str = "spin"  # CPU: what threads without work do: "spin" or "sleep"
    default_threads: str = "cores"  # CPU: threads where nobody set them, one per core or per hardware thread
    multiply_adds: float = float("inf")  # CPU: per clock and core, the most that the binary's instructions can start
    recurrent: str = "fused"  # "fused": library sequence kernels; "steps": op by op
    recurrent_launches: int = 2  # per time step and layer
    linear_bias: str = "separate"  # "separate": a pass of its own; "fused": in the epilogue of the product
    half: str = "storage"  # fp16 without fast units: "storage": multiplied as fp32, "native": multiplied as fp16 all the same
    optimiser: str = "sgd_momentum"  # of the framework's published benchmark scripts
    variants: Mapping[str, str] = field(default_factory=dict)  # network -> the graph that this framework's script builds
    inputs: str = "device"  # where the timed run finds its input: "device" or "host" (copied over the link)
    reserved: float = 0.0  # B of device memory that context and framework take
    sources: tuple[str, ...] = ()
    digest: str = ""

    def usual_threads(self, cores: int, hardware: int) -> int:
        """Threads on a CPU of so many cores and hardware threads when nobody sets them."""
        return hardware if self.default_threads == "hardware" else cores
