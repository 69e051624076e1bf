"""The parts of a device, and the one declaration of every key of its file: unit, meaning, range, use.

A part is a frozen dataclass; its field names are the keys of the spec file (`memory.bandwidth`), its values are in SI
base units (B, B/s, Hz, s, W) or counts per clock. A numeric field is a float, or an array of shape [D, 1] that holds
D variants of the device at once: everything computed from it then has devices along the axis before the last.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from archsim.base.units import COUNT, TEXT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Number = float | NDArray[np.float64]


SMALLEST, LARGEST = 1e-12, 1e18  # in any base unit; products and powers of values between them stay finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The declaration of a key of a file.

    unit: the base unit, "1" for a pure number, "text" for a word; doc: what the value stands for
    low, high, above, whole: the range; above says that the value must be more than `low`, not only equal
    informational: no model reads it, it is there to be shown
    inherited: a spec that inherits another one takes it from there. False: the value belongs to that very product (its
        clock under load, its price), so that a device that inherits states its own or has none
    """

    unit: str
    doc: str
    low: float = 0.0
    high: float = float("inf")
    above: bool = True
    whole: bool = False
    informational: bool = False
    inherited: bool = True

    def problem(self, value: float) -> str | None:
        """Why `value` [base unit] is outside the range of this key; None where it is inside.

        >>> Unit(unit="1", doc="share", high=1.0).problem(1.5)
        'must be at most 1'
        """
        if value > LARGEST or 0 < value < SMALLEST:
            return "is far beyond any device"
        if value < self.low or (self.above and value == self.low):
            return f"must be {'more than' if self.above else 'at least'} {self.low:g} {self.label}".rstrip()
        if value > self.high:
            return f"must be at most {self.high:g} {self.label}".rstrip()
        if self.whole and value != int(value):
            return "must be a whole number"
        return None

    @property
    def kind(self) -> str:
        """What a value looks like: a whole number, a number, a quantity in a unit, or text."""
        if self.unit != COUNT:
            return self.unit
        return "whole" if self.whole else "number"

    @property
    def range(self) -> str:
        """The range for people: `> 0`, `1 to 65536`, `> 0 to 1`; empty for text.

        >>> Unit(unit="1", doc="share", high=1.0).range, Unit(unit="1", doc="parts", low=1, above=False).range
        ('> 0 to 1', '>= 1')
        """
        if self.unit == TEXT:
            return ""
        low = f"> {self.low:g}" if self.above else f">= {self.low:g}"
        return low if self.high == float("inf") else f"{low} to {self.high:g}"

    @property
    def label(self) -> str:
        """The unit as people read it; empty for counts."""
        return "" if self.unit in (COUNT, TEXT) else self.unit


def spec(unit: str, doc: str, *, optional: bool = False, **limits: Any) -> Any:
    """Declare a dataclass field that is a key of a file: its unit, meaning, and the other words of `Unit`."""
    meaning = {"unit": Unit(unit=unit, doc=doc, **limits)}
    return field(default=None, metadata=meaning) if optional else field(metadata=meaning)


def whole(doc: str, **limits: Any) -> Any:
    """Declare a whole number of at least one."""
    return spec(COUNT, doc, whole=True, low=1, above=False, **limits)


def fraction(doc: str, **limits: Any) -> Any:
    """Declare a number in (0, 1]."""
    return spec(COUNT, doc, high=1.0, **limits)


@cache
def declared(part: type) -> dict[str, tuple[Unit, bool]]:
    """The keys of a part: name -> (declaration, whether every device of the kind has it).

    >>> declared(Launch)["latency"][0].unit, declared(Rate)["fp64"][1]
    ('s', False)
    """
    return {f.name: (f.metadata["unit"], f.default is MISSING) for f in fields(part) if "unit" in f.metadata}


# ---------------------------------------------------------------------------------------------- both kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Main memory of a device. A long stream gets bandwidth x achievable [B/s]."""

    type: str = spec(TEXT, "memory technology (GDDR5, HBM2, LPDDR4, DDR4, ...)")
    bandwidth: Number = spec("B/s", "peak bandwidth of all channels")
    achievable: Number = fraction("share of the peak bandwidth that a long stream reaches")
    latency: Number = spec("s", "load-to-use latency of a miss in every cache")
    capacity: Number = spec("B", "size of the memory")
    bus: Number | None = spec("bit", "bus width", optional=True, informational=True)
    data_rate: Number | None = spec("bit/s", "transfer rate of one pin", optional=True, informational=True)
    channels: Number | None = spec(COUNT, "channels over all sockets", optional=True, informational=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power limits of what `boundary` names: board, module or package."""

    tdp: Number = spec("W", "thermal design power or default power limit")
    idle: Number = spec("W", "power when nothing runs but clocks are up", low=0, above=False, inherited=False)
    boundary: str = spec(TEXT, "what the two powers cover: board, module or package", informational=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """Power modes of a module: the highest core clock in each."""

    maxn: Number | None = spec("Hz", "core clock in mode Max-N, without a power budget", optional=True, inherited=False)
    maxp: Number | None = spec("Hz", "core clock in mode Max-P, for performance within a budget", optional=True, inherited=False)
    maxq: Number | None = spec("Hz", "core clock in mode Max-Q, for efficiency", optional=True, inherited=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """The silicon."""

    node: Number = spec("m", "process node")
    area: Number | None = spec("mm2", "die area", optional=True, informational=True)
    transistors: Number | None = spec(COUNT, "transistors on the die", optional=True, informational=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """When and for how much it was sold."""

    price: Number | None = spec("USD", "price at launch", optional=True, informational=True, inherited=False)
    launch: str | None = spec(TEXT, "month of launch, YYYY-MM", optional=True, informational=True, inherited=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The connection between the memory of the host CPU and that of the device."""

    type: str = spec(TEXT, "PCIe generation and width, NVLink, ...", informational=True)
    bandwidth: Number = spec("B/s", "peak, one direction")
    achievable: Number = fraction("share of the peak that a pinned copy reaches")


# ---------------------------------------------------------------------------------------------- GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Sm:
    """The streaming multiprocessors (SM, SMX, SMM)."""

    count: Number = whole("streaming multiprocessors that are enabled")
    schedulers: Number = whole("warp schedulers per SM", informational=True)
    warps: Number = whole("resident warps per SM, at most")
    ctas: Number = whole("resident thread blocks (CTAs) per SM, at most")
    registers: Number = spec("B", "register file per SM")
    shared_memory: Number = spec("B", "shared memory per SM, largest configuration")
    shared_memory_cta: Number = spec("B", "shared memory that one CTA may take")
    shared_bandwidth: Number = spec("B/clk", "shared-memory bandwidth per SM", informational=True)
    shared_latency: Number | None = spec("clk", "shared-memory load latency", optional=True, informational=True)
    alu_latency: Number = spec("clk", "latency of a dependent fp32 operation", informational=True)
    issue_share: Number | None = fraction("share of the arithmetic lanes that schedulers and register banks feed", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Issue rates of one SM by pipe: multiply-adds (special functions: results) per clock; a pipe that it lacks is left out."""

    fp32: Number = spec("FMA/clk", "scalar single precision")
    fp64: Number | None = spec("FMA/clk", "scalar double precision", optional=True)
    fp16: Number | None = spec("FMA/clk", "half precision outside tensor cores (packed)", optional=True)
    int8: Number | None = spec("FMA/clk", "8-bit dot product (dp4a)", optional=True)
    tensor_fp16: Number | None = spec("FMA/clk", "tensor cores, fp16 (dense)", optional=True)
    tensor_bf16: Number | None = spec("FMA/clk", "tensor cores, bf16 (dense)", optional=True)
    tensor_tf32: Number | None = spec("FMA/clk", "tensor cores, tf32 (dense)", optional=True)
    tensor_fp8: Number | None = spec("FMA/clk", "tensor cores, fp8 (dense)", optional=True)
    tensor_int8: Number | None = spec("FMA/clk", "tensor cores, int8 (dense)", optional=True)
    special: Number = spec("OP/clk", "special functions (exp, rsqrt, ...)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuClock:
    """Core clocks. `sustained` is what an estimate assumes when no clock is named."""

    base: Number = spec("Hz", "guaranteed core clock", informational=True)
    boost: Number = spec("Hz", "rated boost clock (the highest clock where there is no boost)")
    sustained: Number = spec("Hz", "clock seen under sustained load; the default of an estimate", inherited=False)
    silicon: Number | None = spec("Hz", "highest clock of any card with this chip, where higher than the boost", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCache:
    """One cache level of a GPU; an L1 is per SM, the L2 is the chip's."""

    size: Number = spec("B", "capacity")
    line: Number = spec("B", "cache line")
    sector: Number = spec("B", "transfer granule inside a line")
    bandwidth: Number = spec("B/clk", "read bandwidth per core clock (L1: of one SM, L2: of the chip)")
    latency: Number = spec("clk", "load-to-use latency of a hit", informational=True)
    ways: Number | None = spec(COUNT, "associativity", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Starting a kernel: the gap that the device needs, and the CPU that dispatches."""

    latency: Number = spec("s", "gap between two dependent kernels of one stream")
    host_cpu: str = spec(TEXT, "the CPU (id of its spec) that dispatches kernels where no node names one")


# ---------------------------------------------------------------------------------------------- CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The cores of all sockets, and what one of them executes per clock."""

    count: Number = whole("physical cores over all sockets")
    threads: Number = whole("hardware threads over all sockets")
    sockets: Number = whole("sockets")
    simd: Number = spec("bit", "width of a SIMD register")
    fma_ports: Number = spec(COUNT, "SIMD fused multiply-adds started per clock (a multiply plus an add port count as one)")
    fma_latency: Number = spec("clk", "latency of a multiply-add (multiply plus add without FMA)")
    registers: Number = whole("SIMD registers the instruction set names", informational=True)
    miss_buffers: Number = whole("outstanding L1 misses per core (line fill buffers)")
    scalar_ipc: Number = spec(COUNT, "instructions per clock of branchy scalar code, Haswell being 1")
    link: Number | None = spec("B/s", "bandwidth between two sockets, one direction", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuClock:
    """Core clocks. `simd` and `simd512` hold where every core runs dense code of that width."""

    base: Number = spec("Hz", "rated base clock", informational=True)
    boost: Number = spec("Hz", "one active core")
    all_core: Number = spec("Hz", "all cores active, scalar code", informational=True)
    simd: Number = spec("Hz", "all cores active, dense 256-bit (AVX2; 128-bit where that is the widest) code")
    simd512: Number | None = spec("Hz", "all cores active, dense 512-bit code", optional=True)
    silicon: Number | None = spec("Hz", "highest clock of any chip with this core and process, where higher", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCache:
    """One cache level of a CPU; `size` is of one instance, which `shared_by` cores share."""

    size: Number = spec("B", "capacity of one instance")
    ways: Number = whole("associativity")
    line: Number = spec("B", "cache line")
    latency: Number = spec("clk", "load-to-use latency of a hit", informational=True)
    bandwidth: Number = spec("B/clk", "sustained read bandwidth of one core from this level")
    shared_by: Number = whole("cores that share one instance")
