"""The record of a stack: the facts about a framework and its libraries that decide which kernels run for an op.

Each field declared with `key` is a key of the files in `traces/stacks`, under the same name; nothing else lists the keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from archsim.base.identity import Identified
from archsim.stack.fusing import AttentionChoice, FusionRule
from archsim.stack.key import key
from archsim.stack.menu import Menu
from archsim.stack.passes import Passes
from archsim.stack.reader import SampleReader
from archsim.stack.serving import ServingEngine

T = TypeVar("T")

# What the scalar loop of a CPU does.
LOOP = ("elements", "operations", "steps", "tests", "branches", "adds", "divisions", "exps", "pows", "gathers", "transitions",
        "vectors")  # fmt: skip
ISAS = {"widest": inf, "sse": 128.0, "avx": 256.0, "avx2": 256.0, "avx512": 512.0, "neon": 128.0}  # bit of a register
APART = ("sse", "avx")  # without fused multiply-adds
# Forms of instructions that multiply narrow operands: those of `archsim.device.dot`.
NARROW = ("int8_words", "int8_pairs", "int8_mlal", "int8_dot", "int8_sdot", "int8_matrix", "int8_tile", "bf16_dot", "bf16_matrix",
          "bf16_tile", "fp16_lanes")  # fmt: skip
CPU_LOOPS = ("element_wise", "product")  # kinds of parallel loops
PHASES = ("forward", "training", "backward")  # training: the forward pass of a training step
CONV_PHASES = ("forward", "backward_data", "backward_filter")


NEVER_AGAIN = 1 << 20  # sets of operands of a loop that finds none of them in a cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchitectureKernels:
    """What differs on one architecture that the library has other convolution kernels for."""

    algorithms: Mapping[str, Mapping[str, str]] = key(
        "algorithm = the constant of its kernels on this architecture", names=(CONV_PHASES,), default={}
    )
    without: tuple[str, ...] = key("algorithms that have no kernel for this architecture", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """How the stack convolves. `candidates` are the algorithms to choose from; the fastest whose workspace fits runs."""

    algorithms: Mapping[str, Mapping[str, str]] = key(
        "algorithm = its efficiency constant, for each pass", names=(CONV_PHASES,), whole=True
    )
    tensor: Mapping[str, Mapping[str, str]] = key(
        "the same on tensor cores; none: as `algorithms`", names=(CONV_PHASES,), whole=True, default={}
    )
    architectures: Mapping[str, ArchitectureKernels] = key("what differs on one architecture", default={})
    without: tuple[str, ...] = key("algorithms of the library that the framework never asks for", default=())
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
    block_registers: int = key(
        "CPU: threads of a direct convolution take the channels of a row of an image in blocks of so many SIMD registers; 0: it "
        "divides freely", low=0, default=0,
    )  # fmt: skip
    block_pixels: int = key(
        "CPU: pixels of one row that a direct convolution takes at once, for each sixteen registers of the instruction set; the "
        "rest of a row in blocks of three, two and one, pixels at its edges one by one; 0: as many as the registers hold, over "
        "all rows", low=0, default=0,
    )  # fmt: skip
    step_channels: int = key(
        "CPU: input channels that its 1 x 1 filters sum up before they add to memory; larger filters take those of one register",
        low=1, default=128,
    )  # fmt: skip
    unfold_threads: str = key("CPU: the cores that run im2col", choices=("one", "all"), default="all")
    depthwise_slots: float = key(
        "GPU: issue slots of a lane for each multiply-accumulate of a depthwise convolution in fp32, as of a framework's own "
        "kernel that works out its indices; 0: those of its arithmetic", low=0, default=0.0,
    )  # fmt: skip
    depthwise_operands: float = key(
        "CPU: values of filter and image that a loop over a depthwise convolution loads from the first level for each "
        "multiply-add; 0: so few that its arithmetic hides them", low=0, default=0.0,
    )  # fmt: skip
    depthwise_sums: float = key(
        "CPU: sums of 4 B that it loads and stores for each; 0: they stay in registers", low=0, default=0.0
    )
    depthwise_held: int = key(
        "CPU: taps up to which such a loop over values of one byte holds filter and sums in registers", low=0, default=0
    )
    few_channels: str = key(
        "CPU: efficiency constant where the input has fewer channels than a register of four values of fp32, as an image has; "
        "none: as others", default="",
    )  # fmt: skip
    few_channels_byte: str = key("CPU: the same for values of one byte; none: as `few_channels`", default="")
    unfold_pointwise: bool = key("im2col: whether the images of 1 x 1 filters are unfolded too", default=False)
    product_registers: int = key(
        "CPU: output channels lie in the lanes, and threads take them in blocks of so many SIMD registers, each of which goes "
        "through all of an unfolded image; its tiles, as large as a second cache level, are copied by one thread each; 0: "
        "register blocks of channels and pixels, cut for the caches", low=0, default=0,
    )  # fmt: skip
    winograd_words: bool = key("CPU: Winograd's transforms of images and filters of int8 are of 16 bit", default=False)
    border: str = key("CPU: whether an image is copied with its border before a convolution that has one",
                      choices=("none", "copied"), default="none")  # fmt: skip
    winograd_patches: tuple[tuple[int, int, int], ...] = key(
        "blocks of [images, rows, columns] of 2 x 2 results that a CTA of fused Winograd takes; none: any", low=1, default=()
    )
    barrier: bool = key("an empty kernel ends the groups of each forward pass and of each filter gradient", default=False)
    index_launches: int = key("kernels that store the indices of an implicit product before it runs", low=0, default=0)
    tile_pixels: int = key(
        "pixels of the tile of an implicit product, which loads what its taps share once; 0: for each tap", low=0, default=0
    )
    fft_max_side: float = key("largest image, padded to a power of two, that is transformed as a whole", low=1, default=inf)
    fft_fused_side: float = key(
        "largest padded image whose rows and columns are transformed in one kernel; larger ones pass through memory between",
        low=1, default=inf,
    )  # fmt: skip
    filter_taps: str = key(
        "filter gradients on tensor cores: one product for all taps of the filter, or one for each",
        choices=("together", "apart"), default="together",
    )  # fmt: skip
    int8_tensor_cores: bool = key(
        "convolutions of int8 called alone run on tensor cores, filters and images reordered before, also where products do not",
        default=False,
    )
    channel_load_bytes: int = key(
        "kernels for tensor cores: channels are padded to whole loads of so many bytes, Winograd needs them whole; 0: no padding",
        low=0, default=0,
    )  # fmt: skip
    channel_load_few: int = key("input channels that fit one load of so many bytes are padded to that; 0: none", low=0, default=0)
    few_gathered: bool = key(
        "tensor cores: input channels that fill no load of 16 B are not padded; each value is loaded by itself", default=False
    )  # fmt: skip
    stem: tuple[int, ...] = key(
        "filters, side and stride of the first layers of halves on tensor cores for which the library has a kernel, whose images "
        "are padded to four channels; none: no such kernel", default=(),
    )  # fmt: skip
    pad_slots: float = key("issue slots of a lane for each value that is copied into such padded channels", low=0, default=0.0)
    channel_step_bytes: int = key(
        "implicit products on tensor cores take the taps of a filter one after the other, the channels of each in whole steps of "
        "so many bytes; 0: taps and channels are one inner dimension", low=0, default=0,
    )  # fmt: skip
    stage_channels: int = key(
        "inference in int8 on tensor cores: residual blocks in a row whose middle convolutions have so many channels are one "
        "kernel; 0: none", low=0, default=0,
    )  # fmt: skip
    stage_architectures: tuple[str, ...] = key("architectures that have the kernel of `stage_channels`", default=())
    images: str = key(
        "CPU: images of a batch are unfolded and multiplied one after the other, or each by one thread",
        choices=("sequential", "parallel"), default="sequential",
    )  # fmt: skip

    def candidates(self, architecture: str, tensor: bool) -> Mapping[str, Mapping[str, str]]:
        """The algorithms to choose from on an architecture, with or without tensor cores: pass -> {algorithm: its constant}."""
        chosen = self.tensor if tensor and self.tensor else self.algorithms
        refused, other = {*self.without}, ArchitectureKernels()
        if architecture in self.architectures:
            own = self.architectures[architecture]
            refused |= {*own.without}
            other = own if chosen is self.algorithms else other
        return {
            phase: {name: other.algorithms.get(phase, {}).get(name, c) for name, c in rows.items() if name not in refused}
            for phase, rows in chosen.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Identified):
    """A framework on its libraries. Words called constants are keys of the calibration file.

    `waits` and `operand_sets` belong to a measurement: whether the host waited for each op, as tools do that time layer by
    layer; and through how many sets of operands the loop of a kernel that is timed alone goes before the first comes
    again, 0 for ops that follow each other.
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
    without_tensor_cores: tuple[str, ...] = key("precisions whose products do not run on tensor cores", default=())
    tf32: tuple[str, ...] = key("op kinds whose fp32 products run in tf32 on chips that can, unless fp32 is asked", default=())
    fp16_arithmetic: str = key(
        "arithmetic of fp16 products on chips without fast units for it", choices=("fp32", "fp16"), default="fp32"
    )
    fp32_passes: int = key("TPU: 1 where factors of fp32 are rounded to bf16 and multiplied once; 0: as such", low=0, default=0)
    graphs: bool = key("whether a run can be recorded and replayed as a CUDA graph (`--graph`)", default=False)
    replays: bool = key("whether a run is replayed as a CUDA graph without `--graph`", default=False)
    host: str = key("constant: the host's time for one call of the framework; none: no time", default="")
    host_unit: str = key("GPU: what `host` is spent on, each op or each kernel", choices=("op", "kernel"), default="op")
    host_calls: Mapping[str, int] = key("op kind = calls of the framework that it is made of; others 1", low=1, default={})
    nested_calls: Mapping[str, int] = key(
        "op kind = calls that the framework's call dispatches in its turn; others none", low=0, default={}
    )
    library_calls: Mapping[str, int] = key("op kind = calls of a library that chooses a kernel; others none", low=0, default={})
    stall: str = key("constant: host time for which the device waits", default="")
    stalls: Mapping[str, Mapping[str, float]] = key(
        "op kind = how many times the device waits in each phase", low=0, above=True, default={}
    )
    inputs: str = key(
        "where a batch comes from: device memory, an array of the host over the link, or stored samples that the host decodes, "
        "as `reader` says", choices=("device", "host", "decoded"), default="device",
    )  # fmt: skip
    reader: SampleReader = key("how samples are decoded", default=SampleReader())
    input_copies: int = key("copies of a batch within host memory before it crosses the link", low=0, default=1)
    input_value_bytes: int = key(
        "bytes of a value in the host's arrays; where they are not those that cross, one thread converts them before they are "
        "copied", low=1, default=4,
    )  # fmt: skip
    input_crossing_bytes: int = key("bytes of a value of a batch that crosses the link", low=1, default=4)
    labels: str = key(
        "what a batch brings of its labels: an index for each sample, or a value for each class", choices=("indices", "dense"),
        default="indices",
    )  # fmt: skip
    parameter_store: str = key(
        "where a parameter store keeps the weights: nowhere, or in the host's memory, to which each array goes after its update "
        "and from which it comes back", choices=("none", "host"), default="none",
    )  # fmt: skip
    efficiency: Mapping[str, str] = key(
        "kernel family (gemm, gemv, recurrent, attention, an op kind in training; gemm_tensor on tensor cores; gemm.transposed: "
        "both operands have k contiguous; FAMILY.ARCHITECTURE: on one architecture) = its constant"
    )
    menus: Mapping[str, Menu] = key(
        "tiles for a kind of product; NAME_tensor on tensor cores, NAME_tensor_byte there for operands of one byte, NAME_half "
        "for halves elsewhere", default={},
    )  # fmt: skip
    pads_products: bool = key("tensor cores: operands whose rows begin at no multiple of 16 B are padded", default=False)
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
    recurrent_calls: int = key("calls of the framework for each step and layer there; 0: one for each kernel", low=0, default=0)
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
    side_by_side: tuple[str, ...] = key(
        "inference: op kinds whose products of one input are multiplied as one where the same follows them: linear, conv2d",
        default=(),
    )  # fmt: skip
    fusion: FusionRule = key("which chains of ops are one kernel", default=FusionRule())
    second_pass: tuple[str, ...] = key(
        "CPU: fused op kinds that the kernel computes in a second loop, over rows that it has just written", default=()
    )
    as_products: tuple[str, ...] = key(
        "CPU: op kinds of `passes` whose arithmetic is the library's kernel of a convolution", default=()
    )
    optimiser_passes: Mapping[str, Passes] = key("optimiser = the traffic of an update, in units of the parameters")
    weight_slots: float = key(
        "GPU: issue slots of a lane for each weight of fewer bytes than are multiplied, which its kernel widens", low=0, default=0
    )
    short_row: int = key("values of the last dimension up to which the row short_OP of `passes` holds; 0: none", low=0, default=0)
    long_row: int = key("values of the last dimension above which the row long_OP of `passes` holds; 0: none", low=0, default=0)
    vector_bytes: int = key("bytes that a thread of an element-wise kernel loads at once; 0: one value", low=0, default=0)
    window_loop: str = key(
        "GPU: how a kernel goes through a window, of pixels (pooling) or channels (LRN): at the rate of memory, checking the "
        "bounds of every value, or by an unrolled loop", choices=("streaming", "checked", "unrolled"), default="streaming",
    )  # fmt: skip
    serial_rows: tuple[str, ...] = key(
        "GPU: op kinds whose kernel gives each row along the last axis to one thread, where others share it", default=()
    )
    linear_rows: int = key("rows of a full connection for each pass over its weights; 0: as a product", low=0, default=0)
    default_threads: str = key(
        "CPU: threads where nobody sets them, one per core, one per hardware thread, or as many as there are cores of the rarer "
        "of two kinds", choices=("cores", "hardware", "rarer"), default="cores",
    )  # fmt: skip
    idle_threads: str = key("CPU: threads without work busy-wait (spin) or sleep", choices=("spin", "sleep"), default="spin")
    elementwise_threads: str = key(
        "CPU: the cores that run element-wise ops; where one fills the tensors, their pages lie in one socket's memory",
        choices=("one", "all"), default="all",
    )  # fmt: skip
    threaded_ops: tuple[str, ...] = key("CPU: ops that run on all cores where the other element-wise ops run on one", default=())
    wake_fanout: int = key(
        "CPU: sleeping threads that each thread wakes in a pool of more than eight; 0: the first one wakes all", low=0, default=0
    )
    serial_ops: tuple[str, ...] = key("CPU: ops that run on one core where the other element-wise ops run on all", default=())
    loops: Mapping[str, Mapping[str, float]] = key(
        "CPU: op, op.training or op.backward = what its scalar loop does for each value (for each element of a window), "
        "counted in the source: elements that are loaded, changed and stored, further operations of them, tests of the "
        "bounds of a value that is copied, branches on data, adds of a window, exps and pows of the C library; or inferred "
        "from times: steps of a load, an operation and a store, divisions, gathers of a value by index or stride, "
        "transitions between AVX and SSE code; vectors: SIMD instructions for each register of values",
        names=((), LOOP), low=0, above=True, default={},
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
        "CPU: what computes a product of one row or column: a matrix-vector product, or what computes all others",
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
    values_per_thread: int = key(
        "CPU: values of an element-wise loop that each thread must get; a loop with fewer values has fewer threads", low=0,
        default=0,
    )  # fmt: skip
    multiply_adds_per_thread: int = key("CPU: the same, multiply-adds of a product", low=0, default=0)
    cost_per_thread: int = key(
        "CPU: the same, the cost of any loop by Eigen's estimate, of which one takes about a clock", low=0, default=0
    )
    chunks_per_thread: Mapping[str, int] = key(
        "CPU: kind of loop = chunks for each thread that a queue deals out (dynamic schedule); of others each thread has one run "
        "of pieces (static)", names=(CPU_LOOPS,), low=1, default={},
    )  # fmt: skip
    concurrent_ops: bool = key(
        "CPU: ops that do not wait for each other, as the two gradients of a layer, run at the same time, each on a thread of "
        "its own where one op has one thread", default=False,
    )  # fmt: skip
    thread_barrier: str = key(
        "CPU: threads wait for each other by counting themselves on one line, or in a tree", choices=("counter", "tree"),
        default="counter",
    )  # fmt: skip
    fork_lines: int = key(
        "CPU: cache lines of each other thread that the first one writes when it forks a parallel loop", low=0, default=0
    )
    waits: bool = False
    operand_sets: int = 0
    @property
    def lossless(self) -> bool:
        """Whether it has convolutions without losses, and with them all else: no software is faster."""
        return any("perfect" in rows for rows in self.conv.algorithms.values())

    def usual_threads(self, cores: T, hardware: T) -> T:
        """Threads on a CPU of so many cores and hardware threads when nobody sets them."""
        return hardware if self.default_threads == "hardware" else cores

    def threads_of_kinds(self, cores: int, faster: int) -> int:
        """Threads on a CPU of two kinds of core, when nobody sets them."""
        return min(faster, cores - faster) if self.default_threads == "rarer" else cores
