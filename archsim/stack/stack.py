"""The record of a stack: the facts about a framework and its libraries that decide which kernels run for an op.

Each field declared with `key` is a key of the files in `traces/stacks`, under the same name; nothing else lists the keys.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Self, TypeVar

from archsim.base.record import Identified
from archsim.stack.key import defaulted, key, optional
from archsim.stack.loop import UNKNOWN, ScalarLoop, loops_of
from archsim.stack.menu import Menu, filled
from archsim.stack.parts import AttentionChoice, FusionRule, Passes, SampleReader, ServingEngine, UpdatePasses

T = TypeVar("T")

ISAS = {"widest": inf, "sse": 128.0, "avx": 256.0, "avx2": 256.0, "avx512": 512.0, "neon": 128.0}  # bit of a register
APART = ("sse", "avx")  # without fused multiply-adds
# Forms of instructions that multiply narrow operands: those of `archsim.device.cpu_core`.
NARROW = ("int8_words", "int8_pairs", "int8_mlal", "int8_dot", "int8_sdot", "int8_matrix", "int8_tile", "bf16_dot", "bf16_matrix",
          "bf16_tile", "fp16_lanes")  # fmt: skip
PHASES = ("forward", "training", "backward")  # training: the forward pass of a training step
CONV_PHASES = ("forward", "backward_data", "backward_filter")
ABSENT = "none"  # in place of the constant of an algorithm that has no kernel


NEVER_AGAIN = 1 << 20  # sets of operands of a loop that finds none of them in a cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """How the stack convolves. `candidates` are the algorithms to choose from; the fastest whose workspace fits runs."""

    algorithms: Mapping[str, Mapping[str, str]] = key(
        "algorithm = its efficiency constant, for each pass", names=(CONV_PHASES,), whole=True
    )
    tensor: Mapping[str, Mapping[str, str]] = key(
        "the same on tensor cores; none: as `algorithms`", names=(CONV_PHASES,), whole=True, default={}
    )
    architectures: Mapping[str, Mapping[str, Mapping[str, str]]] = key(
        "what differs on one architecture: algorithm = its constant there, or `none` where the library has no kernel for it, for "
        "each pass", names=((), CONV_PHASES), default={},
    )  # fmt: skip
    workspace_limit: float = key("most workspace of a layer", unit="B", default=inf)
    grouped: str = key(
        "groups run one after the other, or batched in one kernel; CPU: in one parallel loop",
        choices=("sequential", "batched"), default="sequential",
    )
    bias: str = key(
        "bias: a pass of its own; image by image; written before the product adds to it (zeros where there is none); a product "
        "of the BLAS for each image; in the convolution's own kernel",
        choices=("separate", "per_image", "prefilled", "product", "fused"), default="separate",
    )  # fmt: skip
    layout_copies: str = key(
        "copies between the framework's and the library's layout: none; of images before tensor cores; of images, filters and "
        "results around tensor cores; of all images; of all operands into blocks of channels",
        choices=("none", "tensor", "around", "all", "blocked"), default="none",
    )  # fmt: skip
    unfold_pointwise: bool = key("im2col: whether the images of 1 x 1 filters are unfolded too", default=False)
    product_registers: int = key(
        "CPU: output channels lie in the lanes, and threads take them in blocks of so many SIMD registers, each of which goes "
        "through all of an unfolded image; its tiles, as large as a second cache level, are copied by one thread each; 0: "
        "register blocks of channels and pixels, cut for the caches", low=0, default=0,
    )  # fmt: skip
    winograd_words: bool = key("CPU: Winograd's transforms of images and filters of int8 are of 16 bit", default=False)
    searched: bool = key("whether the library times its kernels for each layer, as `--search` asks", default=False)
    uncopied: tuple[str, ...] = key(
        "architectures on which it has kernels for tensor cores that need no copies, where it times them", default=()
    )
    border: str = key("CPU: whether an image is copied with its border before a convolution that has one",
                      choices=("none", "copied"), default="none")  # fmt: skip
    winograd_patches: tuple[tuple[int, int, int], ...] = key(
        "blocks of [images, rows, columns] of 2 x 2 results that a CTA of fused Winograd takes; none: any", low=1, default=()
    )
    index_launches: int = key("kernels that store the indices of an implicit product before it runs", low=0, default=0)
    tile_pixels: int = key(
        "pixels of the tile of an implicit product, which loads what its taps share once; 0: for each tap", low=0, default=0
    )
    fft_fused_side: float = key(
        "largest padded image whose rows and columns are transformed in one kernel; larger ones pass through memory between",
        low=1, default=inf,
    )  # fmt: skip
    stage_channels: Mapping[str, int] = key(
        "inference in int8 on tensor cores: architecture = channels of the middle convolutions of residual blocks that are one "
        "kernel where they stand in a row", low=1, default={},
    )  # fmt: skip

    def candidates(self, architecture: str, tensor: bool) -> Mapping[str, Mapping[str, str]]:
        """The algorithms to choose from on an architecture, with or without tensor cores: pass -> {algorithm: its constant}."""
        chosen = self.tensor if tensor and self.tensor else self.algorithms
        found: dict[str, dict[str, str]] = {}
        for phase, rows in chosen.items():
            own = self.architectures.get(architecture, {}).get(phase, {})
            here = {name: own.get(name, constant) for name, constant in rows.items()}
            plain = chosen is self.algorithms  # constants of one architecture are those of kernels without tensor cores
            found[phase] = {name: here[name] if plain else rows[name] for name in rows if here[name] != ABSENT}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Identified):
    """A framework on its libraries. Words called constants are keys of the calibration file.

    The last fields belong to a measurement. `waits`: whether the host waited for each op, as tools do that time layer by layer.
    `operand_sets`: through how many sets of operands the loop of a kernel that is timed alone goes before the first comes again,
    0 for ops that follow each other.
    """

    id: str
    libraries: str = ""  # what its kernels come from, with versions: `cudnn 5.1 + cublas 8`
    kind: str = key("the devices it runs on", choices=("gpu", "cpu", "tpu", "any"))
    architectures: tuple[str, ...] = key("the only architectures that its kernels run on; none: all of its kind", default=())
    vendor: str = key("GPU: the maker whose cards its libraries have kernels for, where other makers' cards have stacks of their "
                      "own; none: any", default="")  # fmt: skip
    framework: str = key("the framework, as measurements and `sources.toml` call it")
    reserved: float = key("device memory that context and framework take", unit="B", default=0.0)
    activations: str = key(
        "a layer keeps its output and gradient, or memory is used again after the last reader",
        choices=("kept", "reused"), default="reused",
    )  # fmt: skip
    in_place: tuple[str, ...] = key("ops that overwrite their first input", default=("relu", "relu6"))
    variants: Mapping[str, str] = key("network = the graph that this framework's script builds under its name", default={})
    optimiser: str = key(
        "of the framework's published benchmark scripts", choices=("sgd", "sgd_momentum", "adam"), default="sgd_momentum"
    )
    tf32: tuple[str, ...] = key("op kinds whose fp32 products run in tf32 on chips that can, unless fp32 is asked", default=())
    fp16_arithmetic: str = key(
        "arithmetic of fp16 products on chips without fast units for it", choices=("fp32", "fp16"), default="fp32"
    )
    graphs: str = key(
        "whether a run is replayed as a CUDA graph: not at all, where `--graph` asks for it, or without being asked",
        choices=("never", "asked", "always"), default="never",
    )  # fmt: skip
    host: str = key("constant: the host's time for one call of the framework; none: no time", default="")
    host_calls: Mapping[str, int] = key("op kind = calls of the framework that it is made of; others 1", low=1, default={})
    nested_calls: Mapping[str, int] = key(
        "op kind = calls that the framework's call dispatches in its turn; others none", low=0, default={}
    )
    synchronous: tuple[str, ...] = key("op kinds for which the device waits while the host makes their calls", default=())
    inputs: str = key(
        "where a batch comes from: device memory, an array of the host over the link, or stored samples that the host decodes, "
        "as `reader` says", choices=("device", "host", "decoded"), default="device",
    )  # fmt: skip
    reader: SampleReader = key("how samples are decoded", default=SampleReader())
    input_copies: int = key("copies of a batch within host memory before it crosses the link", low=0, default=1)
    parameter_store: str = key(
        "where a parameter store keeps the weights: nowhere, or in the host's memory, to which each array goes after its update "
        "and from which it comes back", choices=("none", "host"), default="none",
    )  # fmt: skip
    efficiency: Mapping[str, str] = key(
        "kernel family (gemm, gemv, recurrent, attention, an op kind in training; gemm_tensor on tensor cores; gemm.transposed: "
        "both operands have k contiguous; few_channels and few_channels.byte: convolutions on a CPU of fewer channels than a "
        "register has fp32 values; FAMILY.ARCHITECTURE: on one architecture) = its constant"
    )
    menus: Mapping[str, Menu] = key(
        "what a library chooses from for a kind of product; NAME_tensor on tensor cores, NAME_tensor_byte there for operands of "
        "one byte, NAME_half for halves elsewhere", default={},
    )  # fmt: skip
    linear_bias: str = key(
        "bias of fully connected layers: a pass of its own, a product of the BLAS, in the product's kernel but for a gradient of "
        "its own, or in the product's kernel",
        choices=("separate", "product", "epilogue", "fused"),
        default="separate",
    )  # fmt: skip
    recurrent: str = key(
        "recurrent layers: the library's kernels for a whole sequence, or op by op at each step", choices=("fused", "steps"),
        default="fused",
    )  # fmt: skip
    recurrent_launches: int = key("kernels for each step and layer where they run op by op", low=1, default=2)
    attention: AttentionChoice = key("how attention runs", default=AttentionChoice())
    serving: ServingEngine = key("how it serves language models", default=ServingEngine())
    conv: Conv = key("how convolutions run")
    passes: Mapping[str, Mapping[str, Passes]] = key(
        "op kind = its traffic in each phase; default for all others; accumulate: the sum of gradients that meet, if not add",
        names=((), PHASES),
    )
    fused: Mapping[str, tuple[str, ...]] = key(
        "inference: op kind = kinds of op whose kernel computes it too, where nothing else reads their result; for add also "
        "those that read the sum. Elsewhere its `passes` count", default={},
    )  # fmt: skip
    horizontal_fusion: tuple[str, ...] = key(
        "inference: op kinds whose products of one input are multiplied as one where the same follows them: linear, conv2d",
        default=(),
    )  # fmt: skip
    fusion: FusionRule = key("which chains of ops are one kernel", default=FusionRule())
    optimiser_passes: Mapping[str, UpdatePasses] = key("optimiser = the traffic of an update, in units of the parameters")
    vector_bytes: int = key("bytes that a thread of an element-wise kernel loads at once; 0: one value", low=0, default=0)
    window_loop: str = key(
        "GPU: how a kernel goes through a window, of pixels (pooling) or channels (LRN): at the rate of memory, checking the "
        "bounds of every value, or by an unrolled loop", choices=("streaming", "checked", "unrolled"), default="streaming",
    )  # fmt: skip
    linear_rows: int = key("rows of a full connection for each pass over its weights; 0: as a product", low=0, default=0)
    default_threads: str = key(
        "CPU: threads where nobody sets them, one per core, one per hardware thread, or as many as there are cores of the rarer "
        "of two kinds", choices=("cores", "hardware", "rarer"), default="cores",
    )  # fmt: skip
    idle_threads: str = key("CPU: threads without work busy-wait (spin) or sleep", choices=("spin", "sleep"), default="spin")
    serial_ops: tuple[str, ...] = key(
        "CPU: what runs on one core: op kinds, `elementwise` for all of them, `unfold` for loops around convolutions; where "
        "element-wise ops are, pages lie in one socket's memory", default=(),
    )  # fmt: skip
    loops: tuple[str, ...] = key(
        "CPU: files of traces/kernels/loops, or paths, with what scalar loops of ops do for each value; the first that has a row "
        "for an op serves it", default=(),
    )  # fmt: skip
    vectorised: bool = key("CPU: loops over elements and windows use SIMD instructions, unless `loops` names them", default=False)
    instructions: str = key(
        "CPU: the widest instructions of the library's binary, where they are not all that the core has", default="widest",
        choices=tuple(ISAS),
    )  # fmt: skip
    narrow_kernels: tuple[str, ...] = key(
        "CPU: forms of instructions for which the library has kernels of narrow operands; int8 without one is refused, "
        "operands of 16 bit without one are widened to fp32", choices=NARROW, default=(),
    )  # fmt: skip
    packing: str = key(
        "CPU: operands of products are copied into panels value by value, by SIMD instructions, or ahead of the run; weights: "
        "those ahead, unfolded images by SIMD instructions", choices=("scalar", "simd", "ahead", "weights"), default="scalar",
    )  # fmt: skip
    wide_values: int = key(
        "CPU: bytes of a value between convolutions of int8, each of which rounds its images before and widens its result after, "
        "half of them on cores with arithmetic of fp16 that the library has kernels for; 0: values stay in one byte", low=0,
        default=0,
    )  # fmt: skip
    vector_products: str = key(
        "CPU, TPU: what computes a product of one row or column: a matrix-vector product, or what computes all others",
        choices=("gemv", "gemm"), default="gemv",
    )  # fmt: skip
    gathers: bool = key("CPU: operands of products are fetched value by value, by their index", default=False)
    min_rows_per_thread: float = key(
        "CPU: rows and columns of a product that each thread must get; with fewer, one thread computes all", low=0, default=0.0
    )
    max_serial_product: float = key(
        "CPU: largest product, in multiply-adds, that the library computes on one thread whatever their number", low=0,
        default=0.0,
    )  # fmt: skip
    fork_lines: int = key(
        "CPU: cache lines of each other thread that the first one writes when it forks a parallel loop", low=0, default=0
    )
    loop_rows: Mapping[str, ScalarLoop] = field(default_factory=dict)  # of the files in `loops`, once `filled` has read them
    waits: bool = False
    operand_sets: int = 0

    @property
    def replays(self) -> bool:
        """Whether a run is replayed as a CUDA graph without being asked for."""
        return self.graphs == "always"

    @property
    def records(self) -> bool:
        """Whether a run can be recorded as a CUDA graph."""
        return self.graphs != "never"

    def without(self, keys: Collection[str]) -> Self:
        """The stack with the defaults of some of `STACK_KEYS`."""
        found = self
        for path in keys:
            found = defaulted(found, path)
        return found.filled() if found is not self else self

    @property
    def lossless(self) -> bool:
        """Whether it has convolutions without losses, and with them all else: no software is faster."""
        return any("perfect" in rows for rows in self.conv.algorithms.values())

    def filled(self) -> Self:
        """The stack with the rows of the files that its menus and `loops` name; InputError, or MissingFile."""
        return replace(self, menus=filled(self.menus), loop_rows=loops_of(self.loops))

    def loop_of(self, op: str, phase: str) -> ScalarLoop:
        """What the scalar loop of an op does for each value in a phase (empty: forward); `UNKNOWN` without a row."""
        rows = self.loop_rows if self.loops else {}
        return rows.get(f"{op}.{phase}") or rows.get(op) or UNKNOWN

    def usual_threads(self, cores: T, hardware: T) -> T:
        """Threads on a CPU of so many cores and hardware threads when nobody sets them."""
        return hardware if self.default_threads == "hardware" else cores

    def threads_of_kinds(self, cores: int, faster: int) -> int:
        """Threads on a CPU of two kinds of core, when nobody sets them."""
        return min(faster, cores - faster) if self.default_threads == "rarer" else cores


STACK_KEYS = tuple(optional(Stack))  # keys with a default, which may be left out
