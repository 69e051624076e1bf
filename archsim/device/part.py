"""The parts of a device, and the one declaration of every key of its file: unit, meaning, range, use.

A part is a frozen dataclass; its field names are the keys of the spec file (`memory.bandwidth`), its values are in SI
base units (B, B/s, Hz, s, W) or counts per clock. A numeric field is a float, or an array of shape [D, 1] that holds
D variants of the device at once: everything computed from it then has devices along the axis before the last.

The range of a key ends some orders of magnitude beyond the devices that have been built, so that a what-if may be bold.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from archsim.base.units import COUNT, TEXT, show

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Number = float | NDArray[np.float64]

TIMES, MORE = ("s", "clk"), ("B/s", "bit/s", "B/clk", "FMA/clk", "OP/clk", "Hz", "B", "bit")  # less and more of which is better
SMALLEST, LARGEST = 1e-12, 1e18  # in any base unit; products and powers of values between them stay finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The declaration of a key of a file.

    unit: the base unit, "1" for a pure number, "text" for a word; doc: what the value stands for
    low, high, above, whole: the range [base unit]; above says that the value must be more than `low`, not only equal
    informational: no model reads it, it is there to be shown
    cycle: of the fidelities only the cycle model reads it; cache: no fidelity but `cycle` reads it, and `archsim cache` does
    closed: the cycle model does not read it, as it simulates what the key says
    product: another value makes another product, whose price nobody knows; False where it says how a product behaves or is used
    inherited: a spec that inherits another one takes it from there. False: the value belongs to that very product (its
        clock under load, its price), so that a device that inherits states its own or has none
    wrong: what is the matter with a text that is more than a word, None where nothing is
    sense: 1 where more of it is never slower, -1 where it is never faster, 0 where it may be either or no matter of time; None:
        as its unit says, more of rates, clocks, sizes and whole numbers being better, and less of times (`better`)
    """

    unit: str
    doc: str
    low: float = 0.0
    high: float = float("inf")
    above: bool = True
    whole: bool = False
    informational: bool = False
    product: bool = True
    cycle: bool = False
    closed: bool = False
    cache: bool = False
    inherited: bool = True
    wrong: Callable[[str], str | None] | None = None
    sense: int | None = None

    @property
    def better(self) -> int:
        """1 where more is never slower, -1 where less is, 0 where nothing can be said.

        >>> Unit(unit="clk", doc="latency").better, Unit(unit="B/s", doc="bandwidth").better, Unit(unit="W", doc="power").better
        (-1, 1, 0)
        """
        if self.sense is not None or self.informational or self.unit == TEXT:
            return self.sense or 0
        return -1 if self.unit in TIMES else 1 if self.unit in MORE or self.whole or self.high == 1.0 else 0

    def problem(self, value: float) -> str | None:
        """Why `value` [base unit] is outside the range of this key; None where it is inside.

        >>> Unit(unit="1", doc="share", high=1.0).problem(1.5)
        'is outside the range > 0 to 1'
        """
        if not math.isfinite(value):
            return "is not a finite number"
        below = value < self.low or (self.above and value == self.low) or 0 < value < SMALLEST
        if below or value > min(self.high, LARGEST):
            return f"is outside the range {self.range}"
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
        """The range for people: `> 0 to 1`, `1 ns to 100 us`; empty for text.

        >>> Unit(unit="1", doc="share", high=1.0).range, Unit(unit="s", doc="latency", low=1e-9, high=1e-4, above=False).range
        ('> 0 to 1', '1 ns to 100 us')
        """
        if self.unit == TEXT:
            return ""
        return f"{'> ' if self.above else ''}{self._shown(self.low)} to {self._shown(min(self.high, LARGEST))}"

    def _shown(self, end: float) -> str:
        plain = self.unit == COUNT or end == 0
        return f"{end:.7g}" if plain else show(end, self.unit, digits=6)


def spec(unit: str, doc: str, *, optional: bool = False, **limits: Any) -> Any:
    """Declare a dataclass field that is a key of a file: its unit, meaning, and the other words of `Unit`.

    A `low` other than 0 is itself within the range.
    """
    limits.setdefault("above", not limits.get("low"))
    meaning = {"unit": Unit(unit=unit, doc=doc, **limits)}
    return field(default=None, metadata=meaning) if optional else field(metadata=meaning)


def whole(doc: str, **limits: Any) -> Any:
    """Declare a whole number of at least one."""
    return spec(COUNT, doc, whole=True, low=1, **limits)


def fraction(doc: str, **limits: Any) -> Any:
    """Declare a number in (0, 1]."""
    return spec(COUNT, doc, high=1.0, **limits)


def hertz(doc: str, **limits: Any) -> Any:
    """Declare a core clock."""
    return spec("Hz", doc, low=1e6, high=1e11, product=False, **limits)


def cycles(doc: str, **limits: Any) -> Any:
    """Declare a latency in clocks."""
    return spec("clk", doc, low=0.1, high=1e5, **limits)


def rate(doc: str, unit: str = "FMA/clk", **limits: Any) -> Any:
    """Declare operations per clock of one SM."""
    return spec(unit, doc, low=0.01, high=1e7, **limits)


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
    """Main memory of a device. A long stream gets bandwidth x achievable [B/s], `clock_share` is of a run, no key of a file."""

    type: str = spec(TEXT, "memory technology (GDDR5, HBM2, LPDDR4, DDR4, ...)")
    bandwidth: Number = spec("B/s", "peak bandwidth of all channels", low=1e6, high=1e16)
    achievable: Number = fraction("share of the peak bandwidth that a long stream reaches", product=False)
    latency: Number = spec("s", "load-to-use latency of a miss in every cache", low=1e-9, high=1e-4, product=False)
    capacity: Number = spec("B", "size of the memory", low=1e6, high=1e15)
    bus: Number | None = spec("bit", "bus width, which moves the bandwidth", low=1, high=1e6, optional=True)
    data_rate: Number | None = spec("bit/s", "rate of one pin, which moves the bandwidth", low=1e6, high=1e13, optional=True)
    channels: Number | None = spec(COUNT, "channels over all sockets", low=1, high=1e4, optional=True, informational=True)
    clock_share: Number = 1.0  # memory clock over the usual one [1]; `bandwidth` is that at this clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power limits of what `boundary` names: board, module or package."""

    tdp: Number = spec("W", "thermal design power or default power limit", low=0.01, high=1e5, product=False)
    idle: Number = spec("W", "power when nothing runs: a GPU's with clocks up, a CPU's with all cores asleep", low=0, high=1e5,
                        above=False, inherited=False, product=False)  # fmt: skip
    boundary: str = spec(TEXT, "what the two powers cover: board, module or package", informational=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CooledPower(Power):
    """Power limits of a chip; its temperature moves its leakage, its cooler the clock (all three keys together)."""

    temperature: Number | None = spec(COUNT, "of the chip, in degrees Celsius", low=-50, high=130, optional=True)
    throttle: Number | None = spec(COUNT, "of a chip that lowers its clock, in degrees Celsius", low=20, high=150, optional=True)
    air: Number | None = spec(COUNT, "of the air before the cooler, in degrees Celsius", low=-50, high=100, optional=True)
    thermal_resistance: Number | None = spec(COUNT, "from chip to air, kelvin for each watt", low=1e-3, high=1e3, optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """Power modes of a module: the highest core clock in each."""

    maxn: Number | None = hertz("core clock in mode Max-N, without a power budget", optional=True, inherited=False)
    maxp: Number | None = hertz("core clock in mode Max-P, for performance within a budget", optional=True, inherited=False)
    maxq: Number | None = hertz("core clock in mode Max-Q, for efficiency", optional=True, inherited=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """The silicon."""

    node: Number = spec("m", "process node", low=1e-10, high=1e-5)
    area: Number | None = spec("mm2", "die area", low=0.1, high=1e5, optional=True, informational=True)
    transistors: Number | None = spec(COUNT, "transistors on the die", low=1e3, high=1e15, optional=True, informational=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """When and for how much it was sold."""

    price: Number | None = spec("USD", "price at launch", low=0.01, high=1e8, optional=True, informational=True, inherited=False)
    launch: str | None = spec(TEXT, "month of launch, YYYY-MM", optional=True, informational=True, inherited=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The connection between the memory of the host CPU and that of the device."""

    type: str = spec(TEXT, "PCIe generation and width, NVLink, ...", informational=True)
    bandwidth: Number = spec("B/s", "peak, one direction", low=1e6, high=1e16, product=False)
    achievable: Number = fraction("share of the peak that a pinned copy reaches", product=False)


# ---------------------------------------------------------------------------------------------- GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Sm:
    """The streaming multiprocessors (SM, SMX, SMM)."""

    count: Number = whole("streaming multiprocessors that are enabled", high=1e6)
    schedulers: Number = whole("warp schedulers per SM", high=64, sense=0)
    warps: Number = whole("resident warps per SM, at most", high=4096)
    ctas: Number = whole("resident thread blocks (CTAs) per SM, at most", high=4096)
    registers: Number = spec("B", "register file per SM", low=1e3, high=1e9)
    thread_registers: Number | None = whole("registers that a thread can name, 255 if not given", high=4096, optional=True)
    shared_memory: Number = spec("B", "shared memory per SM, largest configuration", low=1e3, high=1e9)
    shared_memory_cta: Number = spec("B", "shared memory that one CTA may take", low=1e3, high=1e9)
    shared_reserved: Number | None = spec("B", "shared memory that the driver takes of a CTA", low=1, high=1e6, optional=True,
                                          sense=-1)  # fmt: skip
    shared_unit: Number | None = spec("B", "what shared memory is given out in", low=1, high=1e6, optional=True, sense=-1)
    register_unit: Number | None = whole("what the registers of a thread are rounded up to", high=256, optional=True, sense=-1)
    shared_bandwidth: Number = spec("B/clk", "shared-memory bandwidth per SM", low=1, high=1e6, cycle=True)
    shared_latency: Number | None = cycles("shared-memory load latency", optional=True, cycle=True)
    alu_latency: Number = cycles("latency of a dependent fp32 operation", cycle=True)
    issue_share: Number | None = fraction("share of lanes that schedulers and register banks feed", optional=True, product=False,
                                          closed=True)  # fmt: skip
    warp: Number | None = whole("threads that issue together: 32, or a wavefront of 64", high=1024, optional=True, sense=0)
    issue_width: Number | None = spec(COUNT, "instructions of one warp that a scheduler issues per clock, at most", low=0.1,
                                      high=16, optional=True, sense=1)  # fmt: skip
    pairing: str | None = spec(TEXT, "what a scheduler issues beside an instruction of the same warp: none, memory, any",
                               optional=True)  # fmt: skip
    int_lanes: Number | None = spec(COUNT, "integer lanes of an SM beside those of fp32; 0: the same lanes", low=0, high=1e4,
                                    above=False, optional=True, cycle=True)  # fmt: skip
    register_reads: Number | None = spec(COUNT, "operands of a warp that the register banks of a scheduler deliver per clock",
                                         low=0.1, high=64, optional=True, cycle=True, sense=1)  # fmt: skip
    register_reuse: Number | None = spec(COUNT, "1 where a scheduler keeps operands from one instruction to the next", low=0,
                                         high=1, above=False, optional=True, cycle=True, sense=1)  # fmt: skip
    memory_interval: Number | None = cycles("clocks between two memory instructions of one scheduler", optional=True, cycle=True)
    memory_lanes: Number | None = whole("lanes that shared memory and L1 feed per clock", high=1e4, optional=True, cycle=True)
    memory_queue: Number | None = whole("memory instructions that wait in a scheduler", high=1024, optional=True, cycle=True,
                                      sense=0)  # fmt: skip
    return_bandwidth: Number | None = spec("B/clk", "what loads write into the registers of an SM per clock", low=1, high=1e6,
                                           optional=True, cycle=True)  # fmt: skip
    special_latency: Number | None = cycles("latency of a special function", optional=True, cycle=True)
    tensor_latency: Number | None = cycles("latency of a product on tensor cores, beyond the clocks that it takes their pipe",
                                           optional=True, cycle=True)  # fmt: skip
    mma_m: Number | None = whole("rows of the largest matrix instruction", high=4096, optional=True, cycle=True, sense=0)
    mma_n: Number | None = whole("columns of the largest matrix instruction", high=4096, optional=True, cycle=True, sense=0)
    mma_depth: Number | None = spec("B", "depth of a matrix instruction: bytes of a row of its first operand", low=1, high=4096,
                                    optional=True, cycle=True, sense=0)  # fmt: skip
    mma_issue: str | None = spec(TEXT, "who issues matrix instructions: warp, group (of four), thread", optional=True, cycle=True)
    copies: str | None = spec(TEXT, "copies to shared memory past the registers: none, async, bulk", optional=True, cycle=True)
    copy_latency: Number | None = cycles("what a bulk copy takes longer than a load", optional=True, cycle=True)
    fetch_interval: Number | None = cycles("between instructions of new code, from the L2", optional=True, cycle=True)
    barrier_latency: Number | None = cycles("from the last arrival at a barrier to what follows", optional=True, cycle=True)
    cta_start: Number | None = cycles("from a free slot to the first instruction of the next CTA", optional=True, cycle=True)
    cta_interval: Number | None = cycles("between two CTAs that enter an SM", optional=True, cycle=True)
    warp_interval: Number | None = cycles("between two warps of a CTA that enters an SM", optional=True, cycle=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Issue rates of one SM by pipe: multiply-adds (special functions: results) per clock; a pipe that it lacks is left out."""

    fp32: Number = rate("scalar single precision")
    fp64: Number | None = rate("scalar double precision", optional=True)
    fp16: Number | None = rate("half precision outside tensor cores (packed)", optional=True)
    int8: Number | None = rate("8-bit dot product (dp4a)", optional=True)
    tensor_fp32: Number | None = rate("matrix cores, fp32 (dense)", optional=True)
    tensor_fp16: Number | None = rate("tensor cores, fp16 (dense)", optional=True)
    tensor_bf16: Number | None = rate("tensor cores, bf16 (dense)", optional=True)
    tensor_tf32: Number | None = rate("tensor cores, tf32 (dense)", optional=True)
    tensor_fp8: Number | None = rate("tensor cores, fp8 (dense)", optional=True)
    tensor_int8: Number | None = rate("tensor cores, int8 (dense)", optional=True)
    special: Number = rate("special functions (exp, rsqrt, ...)", unit="OP/clk")
    warp_mma: Number | None = fraction("share of tensor cores' rate that mma of single warps reach", optional=True, product=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuClock:
    """Core clocks. `sustained` is what an estimate assumes when no clock is named."""

    base: Number = hertz("guaranteed core clock", informational=True)
    boost: Number = hertz("rated boost clock (the highest clock where there is no boost)")
    sustained: Number = hertz("clock seen under sustained load; the default of an estimate", inherited=False)
    silicon: Number | None = hertz("highest clock of any card with this chip, where not the boost", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCache:
    """What both cache levels of a GPU have."""

    size: Number = spec("B", "capacity", low=1e3, high=1e12)
    line: Number = spec("B", "cache line", low=4, high=65536, sense=0)
    sector: Number = spec("B", "transfer granule inside a line", low=1, high=65536, cache=True, sense=0)
    bandwidth: Number = spec("B/clk", "read bandwidth per core clock", low=1, high=1e7)
    latency: Number = cycles("load-to-use latency of a hit", cycle=True)
    ways: Number | None = spec(COUNT, "associativity", low=1, high=1e6, optional=True, cache=True)
    tlb_reach: Number | None = spec("B", "memory that the TLB of this level maps", low=1e3, high=1e15, optional=True, cycle=True)
    tlb_page: Number | None = spec("B", "page of an entry of the TLB", low=1e3, high=1e12, optional=True, cycle=True, sense=0)
    tlb_miss: Number | None = cycles("what a miss of the TLB of this level adds to a load", optional=True, cycle=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuL1(GpuCache):
    """The L1 of one SM."""

    size: Number = spec("B", "capacity", low=1e3, high=1e12, cycle=True, cache=True)
    line: Number = spec("B", "cache line", low=4, high=65536, sense=0, cycle=True, cache=True)
    bandwidth: Number = spec("B/clk", "read bandwidth of one SM per core clock", low=1, high=1e7, cycle=True)
    miss_buffers: Number | None = whole("lines that may be on their way at once", high=1e6, optional=True, cycle=True)
    write_bandwidth: Number | None = spec("B/clk", "stores of an SM per core clock", low=0.1, high=1e7, optional=True, cycle=True)
    tlb_busy: Number | None = cycles("how long a miss keeps its TLB from others; none: no time is seen", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuL2(GpuCache):
    """The L2 of the chip."""

    line: Number = spec("B", "cache line", low=4, high=65536, sense=0, cycle=True, cache=True)
    ways: Number | None = spec(COUNT, "associativity", low=1, high=1e6, optional=True, cycle=True, cache=True)
    bandwidth: Number = spec("B/clk", "read bandwidth of the chip per core clock", low=1, high=1e7)
    partitions: Number | None = whole("parts that each keep a copy of what the SMs beside them read", high=64, optional=True,
                                      sense=0)  # fmt: skip
    achievable: Number | None = fraction("share of the bandwidth that loads reach", optional=True, cycle=True)
    far: Number | None = cycles("latency of a hit in the other half of a split cache", optional=True, cycle=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Starting a kernel: the gap that the device needs, and the CPU that dispatches."""

    latency: Number = spec("s", "gap between two dependent kernels of one stream", low=1e-9, high=0.01, product=False)
    rate: Number | None = spec(COUNT, "CTAs that the device starts per core clock, on all SMs together", low=1e-4, high=1e4,
                               optional=True, cycle=True, product=False, sense=1)  # fmt: skip
    host_cpu: str = spec(TEXT, "the CPU (id of its spec) that dispatches kernels where no node names one", product=False)
