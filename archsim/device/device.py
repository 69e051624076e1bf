"""A device: its parts in SI base units, and what follows from them. Peaks are derived, never stored."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_type_hints

from archsim.base.errors import Unsupported
from archsim.base.units import COUNT, TEXT
from archsim.device.cpu_core import FORMS, Core, CpuClock, CpuL1, CpuL2, CpuLower, Dot, DotShape, TileUnit, dot_shape
from archsim.device.part import (
    Chip,
    CooledPower,
    GpuClock,
    GpuL1,
    GpuL2,
    Launch,
    Link,
    Market,
    Memory,
    Mode,
    Rate,
    Sm,
    fraction,
    spec,
)
from archsim.device.pipeline import CorePipeline, Cracked, Hold, Latency, Port
from archsim.device.tpu import (
    Accumulators,
    CellRate,
    SystolicArray,
    TpuChip,
    TpuClock,
    TpuLaunch,
    TpuMemory,
    TpuPower,
    UnifiedBuffer,
    VectorUnit,
    WeightFifo,
)

if TYPE_CHECKING:
    from archsim.device.part import Number

PRECISION_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}

PRECISION_ALIASES = {
    "fp64": ("double", "float64", "f64"), "fp32": ("single", "float", "float32", "f32"), "tf32": ("tensorfloat32",),
    "fp16": ("half", "float16", "f16"), "bf16": ("bfloat16", "brain float"), "fp8": ("float8", "e4m3"), "int8": ("i8", "8 bit"),
}  # fmt: skip

WIDENED = "widened"  # of a CPU: operands of 16 bit that are multiplied as fp32

PIPES = {  # precision -> rates of the units that multiply such operands; `half` asks for arithmetic of that width
    "fp64": ("fp64",),
    "fp32": ("tensor_fp32", "fp32"),
    "tf32": ("tensor_tf32",),
    "fp16": ("tensor_fp16", "fp16", "fp32"),
    "half": ("tensor_fp16", "fp16"),
    "bf16": ("tensor_bf16", "fp32"),
    "fp8": ("tensor_fp8",),
    "int8": ("tensor_int8", "int8"),
}


def part(*, cache_only: tuple[str, ...], **default: Any) -> Any:
    """Declare a part of a device of which only simulated caches read some keys, unlike in another part of the same class."""
    return field(metadata={"cache_only": cache_only}, **default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The words of a spec file before its tables."""

    id: str = spec(TEXT, "as the file is called: lower case, digits, _", inherited=False)
    name: str = spec(TEXT, "the full name", inherited=False)
    vendor: str = spec(TEXT, "maker")
    architecture: str = spec(TEXT, "the kind of core or SM; stacks and constants may be told apart by it")
    year: int = spec(COUNT, "year of launch", whole=True, low=1990, high=2100, above=False, inherited=False)
    default_stack: str = spec(TEXT, "the software of an estimate that names none: a file of traces/stacks")
    aliases: tuple[str, ...] = ()
    faster: str = ""  # the spec (id) of a CPU's faster cores, where it has two kinds; all else is then of the slower
    like: str = ""  # a known architecture, for one that is not: libraries are taken to have its kernels
    origin: str = ""  # the shipped device (id) that a user's file inherits, of whose SM the cycle model has told the start

    @property
    def kernels_of(self) -> str:
        """The architecture whose kernels libraries run on the device."""
        return self.like or self.architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A graphics processor: `sm.count` streaming multiprocessors (SMs), each with an L1, over one L2 and one memory."""

    kind: ClassVar[str] = "gpu"
    identity: Identity
    sm: Sm
    rate: Rate
    clock: GpuClock
    l1: GpuL1
    l2: GpuL2
    memory: Memory
    launch: Launch
    power: GpuPower
    chip: Chip
    link: Link | None = None
    mode: Mode | None = None
    market: Market | None = None

    @property
    def default_clock(self) -> Number:
        """Core clock under sustained load in single precision [Hz]."""
        return self.clock.sustained

    @property
    def usual_clock(self) -> Number:
        """Core clock of an estimate that names none [Hz]; a power limit may lower it for single kernels."""
        return self.clock.sustained

    @property
    def memory_clock(self) -> float | None:
        """The usual memory clock as drivers show it: half the data rate of a pin [Hz]; None where that is not known.

        So NVML and nvidia-smi count GDDR5, GDDR5X, GDDR6, GDDR6X, GDDR7 and HBM; LPDDR has such a clock.

        >>> from archsim.device.catalog import find
        >>> find("titan_xp").device.memory_clock / 1e6
        5700.0
        """
        rate = self.memory.data_rate
        return None if rate is None else 0.5 * (rate if isinstance(rate, float | int) else float(rate.flat[0]))

    def pipe(self, precision: str) -> Number:
        """Fused multiply-adds per clock and SM with which operands of `precision` are multiplied [FMA/clk].

        The rate of the matrix unit where there is one, which is what libraries use; else the largest of the rates in PIPES.
        Apple's matrix instruction runs on the fp32 lanes and fills no more than four fifths of them. fp16 and bf16 without a
        unit of their own are widened and run on the fp32 pipe. `half` is fp16 arithmetic, however slow. Raises Unsupported
        where no unit takes them.

        >>> from archsim.device.catalog import find
        >>> v100, pascal = find("tesla_v100_sxm2").device, find("gtx_1080").device
        >>> v100.pipe("fp16"), v100.pipe("fp32"), pascal.pipe("fp16")
        (512.0, 64.0, 128.0)
        """
        if precision not in PIPES:
            raise Unsupported(f"precision {precision!r} is not one of {', '.join(PRECISION_BYTES)}")
        candidates = [getattr(self.rate, name) for name in PIPES[precision]]
        if self.has_tensor(precision) or (precision == "half" and candidates[0] is not None):
            candidates = candidates[:1]
        return _fastest([rate for rate in candidates if rate is not None], self.identity.id, precision)

    def has_tensor(self, precision: str) -> bool:
        """Whether operands of `precision` are multiplied by tensor cores."""
        return getattr(self.rate, f"tensor_{precision}", None) is not None

    def peak_flops(self, precision: str, clock: Number | None = None) -> Number:
        """Peak arithmetic of the chip [FLOP/s]: 2 x sm.count x pipe(precision) x clock.

        clock: core clock [Hz], float or [D, 1]; the rated boost clock where none is given

        >>> from archsim.device.catalog import find
        >>> find("gtx_1080").device.peak_flops("fp32", 1.733e9) / 1e12  # 2 x 20 SMs x 128 FMA/clk x 1.733 GHz
        8.87296
        """
        return 2.0 * self.sm.count * self.pipe(precision) * (self.clock.boost if clock is None else clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPower(CooledPower):
    """Power limits of a GPU, and the line of its voltages where they were read or fitted."""

    voltage_slope: Number | None = spec(COUNT, "relative fall of voltage over that of the clock", low=0.1, high=3, optional=True)
    voltage_floor: Number | None = fraction("least core voltage over that at the highest clock", low=0.2, optional=True, sense=0)
    operation: Number | None = spec(COUNT, "energy of an operation beside others of the node", low=0.1, high=10, optional=True)
    design: Number | None = spec(COUNT, "energy of all that an SM switches, with its clocks, beside others of the node",
                                 low=0.1, high=10, optional=True)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuPower(CooledPower):
    """Power limits of a CPU; `idle` is that of all its packages with every core asleep."""

    boundary: str = spec(TEXT, "what the two powers cover: board, module or package; memory modules stand outside a package")
    operation: Number | None = spec(COUNT, "energy of a core's clocks and operations beside desktop and server cores of the node",
                                    low=0.01, high=10, optional=True)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """The processors of one computer: `core.count` cores, private and shared caches, one memory for each socket."""

    kind: ClassVar[str] = "cpu"
    identity: Identity
    core: Core
    clock: CpuClock
    l1: CpuL1 = part(cache_only=("shared_by",))
    l2: CpuL2 = part(cache_only=("line",))
    l3: CpuLower | None = part(cache_only=("line",), default=None)
    memory: Memory
    power: CpuPower
    chip: Chip
    market: Market | None = None
    pipeline: CorePipeline | None = None
    port: Port | None = None
    port512: Port | None = None
    dot: Dot | None = None
    tile: TileUnit | None = None
    latency: Latency | None = None
    hold: Hold | None = None
    cracked: Cracked | None = None

    @property
    def default_clock(self) -> Number:
        """Core clock of dense SIMD code on all cores, of the widest registers that the spec gives a clock for [Hz]."""
        wide = self.clock.simd512
        return self.clock.simd if wide is None else wide

    @property
    def usual_clock(self) -> Number:
        """Core clock of an estimate that names none [Hz]."""
        return self.default_clock

    def pipe(self, precision: str) -> Number:
        """Multiply-adds per clock and core [FMA/clk]: core.simd / lane width x core.fma_ports.

        A lane has 64 bit for fp64 and 32 bit otherwise. int8, bf16 and fp16 have the rate of the fastest form that the core has;
        `widened` is fp16 or bf16 that is multiplied as fp32, which both are without a form of their own. A form (`int8_dot`) has
        its own rate. Raises Unsupported for what the core has no instructions for.

        >>> from archsim.device.catalog import find
        >>> skylake, sapphire_rapids = find("i7_6700k").device, find("xeon_platinum_8480").device
        >>> skylake.pipe("fp32")  # 256 bit / 32 bit x 2 ports
        16.0
        >>> [sapphire_rapids.pipe(name) for name in ("int8_dot", "int8", "bf16")]  # 2 x 64; tiles of 16 x 16 x 64 in 16 clocks
        [128.0, 1024.0, 512.0]
        """
        if precision in FORMS:
            return self._shape(precision).rate
        if precision in ("int8", "fp16", "bf16"):
            return self._narrow(precision)
        if precision not in ("fp64", "fp32", WIDENED):
            raise Unsupported(f"{self.identity.id} has no modelled unit for {precision}")
        lane_bits = 64 if precision == "fp64" else 32
        return self.core.simd / lane_bits * self.core.fma_ports

    def forms(self, precision: str) -> tuple[str, ...]:
        """The forms of instructions that multiply operands of a precision here, of FORMS."""
        return tuple(form for form, of in FORMS.items() if of.precision == precision and self.dot_shape(form) is not None)

    def dot_shape(self, form: str) -> DotShape | None:
        """What an instruction of a form takes on a core; None for a core without it."""
        return dot_shape(form, self.core.simd, self.core.registers, self.dot, self.tile)

    def _narrow(self, precision: str) -> Number:
        """The rate of the fastest form for operands of a precision; those of 16 bit may be widened [FMA/clk]."""
        rates = [self._shape(form).rate for form in self.forms(precision)]
        if precision == "int8" and not rates:
            raise Unsupported(f"{self.identity.id} has no modelled unit for int8: no key of [dot] or [tile] in its spec has one")
        return _fastest(rates if precision == "int8" else [self.pipe(WIDENED), *rates], self.identity.id, precision)

    def _shape(self, form: str) -> DotShape:
        shape = self.dot_shape(form)
        if shape is None:
            raise Unsupported(f"{self.identity.id} has no instructions for {form}")
        return shape

    def peak_flops(self, precision: str, clock: Number | None = None) -> Number:
        """Peak arithmetic of all cores [FLOP/s]: 2 x core.count x pipe(precision) x clock.

        clock: core clock [Hz], float or [D, 1]; that of dense SIMD code on all cores where none is given

        >>> from archsim.device.catalog import find
        >>> find("i7_6700k").device.peak_flops("fp32", 4e9) / 1e9  # 2 x 4 cores x 16 FMA/clk x 4 GHz
        512.0
        """
        return 2.0 * self.core.count * self.pipe(precision) * (self.default_clock if clock is None else clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tpu:
    """A tensor processing unit: `array.count` systolic arrays, their accumulators, one buffer, a vector unit and one memory."""

    kind: ClassVar[str] = "tpu"
    identity: Identity
    array: SystolicArray
    rate: CellRate
    clock: TpuClock
    buffer: UnifiedBuffer
    vector: VectorUnit
    memory: TpuMemory
    launch: TpuLaunch
    power: TpuPower
    chip: TpuChip
    accumulator: Accumulators | None = None
    fifo: WeightFifo | None = None
    market: Market | None = None

    @property
    def default_clock(self) -> Number:
        """The clock [Hz]."""
        return self.clock.boost

    @property
    def usual_clock(self) -> Number:
        """Clock of an estimate that names none [Hz]."""
        return self.clock.boost

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions that the cells multiply."""
        return tuple([f.name for f in fields(self.rate) if getattr(self.rate, f.name) is not None])

    def pipe(self, precision: str) -> Number:
        """Multiply-adds per clock and cell for operands of `precision` [FMA/clk]. Raises Unsupported where cells take none.

        >>> from archsim.device.catalog import find
        >>> find("tpu_v1").device.pipe("int8")
        1.0
        """
        found: Number | None = getattr(self.rate, precision, None)
        if found is None:
            able = ", ".join(self.precisions)
            raise Unsupported(f"precision {precision}: the cells of {self.identity.id} multiply {able}; name one by --precision")
        return found

    def peak_flops(self, precision: str, clock: Number | None = None) -> Number:
        """Peak arithmetic of the arrays [FLOP/s]: 2 x array.count x array.rows x array.columns x pipe(precision) x clock.

        >>> from archsim.device.catalog import find
        >>> round(find("tpu_v1").device.peak_flops("int8") / 1e12, 2)  # 2 x 65536 cells x 700 MHz
        91.75
        """
        cells = self.array.count * self.array.rows * self.array.columns
        return 2.0 * cells * self.pipe(precision) * (self.clock.boost if clock is None else clock)


Device = Gpu | Cpu | Tpu


def with_caches(device: Device, what: str) -> Gpu | Cpu:
    """The device where it is a GPU or a CPU; Unsupported for a TPU, of which `what` is not modelled.

    >>> from archsim.device.catalog import find
    >>> with_caches(find("tpu_v1").device, "voltage")
    Traceback (most recent call last):
    archsim.base.errors.Unsupported: voltage: not modelled of a TPU such as tpu_v1
    """
    if isinstance(device, Tpu):
        raise Unsupported(f"{what}: not modelled of a TPU such as {device.identity.id}")
    return device


def _fastest(rates: list[Number], device: str, precision: str) -> Number:
    if not rates:
        raise Unsupported(f"{device} has no unit for {precision}; it takes fp32 and what `archsim show hw` lists")
    best = rates[0]
    for rate in rates[1:]:
        if isinstance(best, float | int) and isinstance(rate, float | int):
            best = max(best, rate)
        else:
            import numpy as np

            best = np.maximum(best, rate)
    return best


CLASSES: dict[str, type[Gpu] | type[Cpu] | type[Tpu]] = {"gpu": Gpu, "cpu": Cpu, "tpu": Tpu}


def _parts(device: type) -> dict[str, type]:
    """The class of each part, by the name of its table; a part that may be left out is declared `X | None = None`."""
    hints = get_type_hints(device)
    return {f.name: (get_args(hints[f.name]) or (hints[f.name],))[0] for f in fields(device) if f.name != "identity"}


PARTS = {kind: _parts(device) for kind, device in CLASSES.items()}
OPTIONAL_PARTS = {f.name for device in CLASSES.values() for f in fields(device) if f.default is not MISSING}
CACHE_ONLY = {
    kind: {f"{f.name}.{key}" for f in fields(device) for key in f.metadata.get("cache_only", ())}
    for kind, device in CLASSES.items()
}
