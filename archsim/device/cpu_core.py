"""The cores of a CPU, their caches, and what they sustain: clocks, by the width of code and by cores awake; instructions of
products of narrow operands.

A form multiplies values of 8 or 16 bit and adds several products to each lane of its result; what a form computes is fixed by the
instruction set, how many start per clock is a value of the spec.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.base.units import COUNT, TEXT, parse
from archsim.device.part import cycles, hertz, spec, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from archsim.device.part import Number


# ----------------------------------------------------------------------------------------------------- cores and caches


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The cores of all sockets, and what one of them executes per clock."""

    count: Number = whole("physical cores over all sockets", high=1e6, sense=0)
    threads: Number = whole("hardware threads over all sockets", high=1e7, sense=0)
    sockets: Number = whole("sockets", high=1024, sense=0)
    simd: Number = spec("bit", "width of a SIMD register", low=8, high=1e6)
    fma_ports: Number = spec(COUNT, "SIMD fused multiply-adds started per clock (a multiply plus an add port count as one)",
                             low=0.01, high=1024, sense=1)  # fmt: skip
    fma_latency: Number = cycles("latency of a multiply-add (multiply plus add without FMA)")
    registers: Number = whole("SIMD registers the instruction set names", high=65536)
    miss_buffers: Number = whole("outstanding L1 misses per core (line fill buffers)", high=65536)
    scalar_ipc: Number = spec(COUNT, "instructions per clock of branchy scalar code, Haswell being 1", low=1e-3, high=1e3,
                              sense=1)  # fmt: skip
    link: Number | None = spec("B/s", "bandwidth between two sockets, one direction", low=1e6, high=1e16, optional=True)
    assist: Number | None = cycles("microcode for a multiplication with a subnormal operand; none: not known", optional=True)


INCLUSIONS = {"inclusive": "inclusive", "victim": "exclusive", "neither": "any"}  # as simulated caches call them


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCache:
    """One cache level of a CPU; `size` is of one instance, which `shared_by` cores share."""

    size: Number = spec("B", "capacity of one instance", low=1e3, high=1e12)
    ways: Number = whole("associativity", high=1e6)
    line: Number = spec("B", "cache line", low=4, high=65536, sense=0)
    latency: Number = cycles("load-to-use latency of a hit")
    bandwidth: Number = spec("B/clk", "sustained read bandwidth of one core from this level", low=1, high=1e6)
    shared_by: Number = whole("cores that share one instance", high=1e6, sense=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuL1(CpuCache):
    """The first level, which loads and stores of a core go to."""

    latency: Number = cycles("load-to-use latency of a hit", cycle=True)
    bandwidth: Number = spec("B/clk", "sustained read bandwidth of one core from this level", low=1, high=1e6, cycle=True)
    write_bandwidth: Number | None = spec("B/clk", "what stores of one core write into this level", low=0.1, high=1e6,
                                          optional=True, cycle=True)  # fmt: skip
    prefetched: Number | None = whole("lines ahead of a stream that the prefetcher of this level asks for", high=65536,
                                      optional=True, cycle=True)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuLower(CpuCache):
    """A level behind the first one."""

    write_bandwidth: Number | None = spec("B/clk", "what lines that one core has written come back into this level with, "
                                          "beside its reads; without it both share `bandwidth`", low=0.1, high=1e6, optional=True,
                                          cycle=True)  # fmt: skip
    inclusion: str | None = spec(
        TEXT, "lines that it keeps: inclusive (all of the levels before), victim (what they drop), neither", optional=True,
        cache=True, wrong=lambda word: None if word in INCLUSIONS else f"is none of {', '.join(INCLUSIONS)}")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuL2(CpuLower):
    """The second level of each core, with the TLB behind the first one."""

    miss_buffers: Number | None = whole("lines on their way to one core from the next level", high=65536, optional=True)
    prefetched: Number | None = whole("lines ahead of a stream that the prefetcher of this level asks for", high=65536,
                                      optional=True, cycle=True)  # fmt: skip
    prefetch_page: Number | None = spec("B", "memory that a prefetcher does not leave; without it 4 KiB, or a larger page of the "
                                        "TLB", low=256, high=1e12, optional=True, cycle=True, sense=0)  # fmt: skip
    tlb_entries: Number | None = whole("pages whose addresses the TLB of this level translates", high=1e9, optional=True,
                                       cycle=True)  # fmt: skip
    tlb_miss: Number | None = cycles(
        "what a miss of the TLB of this level adds to a load; without it, the latency of the cache that holds the page tables",
        optional=True, cycle=True,
    )  # fmt: skip
    tlb_page: Number | None = spec("B", "page of an entry of the TLB", low=256, high=1e12, optional=True, cycle=True)


# --------------------------------------------------------------------------------------------------------------- clocks

LIKE = "3: 3.6 GHz, 8: 3.2 GHz"  # up to three cores awake, four to eight


def turbo_table(written: str) -> tuple[tuple[int, float], ...]:
    """A turbo table as a spec states it: up to how many cores of a socket awake -> clock [Hz].

    Raises ValueError where it is none: core counts rise, clocks fall.

    >>> turbo_table("3: 3.6 GHz, 8: 3.2 GHz")
    ((3, 3600000000.0), (8, 3200000000.0))
    """
    rows: list[tuple[int, float]] = []
    for part in written.split(","):
        count, colon, clock = (text.strip() for text in part.partition(":"))
        if not colon or not count.isdecimal() or len(count) > 6 or int(count) < 1:
            raise ValueError(f'{part.strip()[:40]!r} is not "CORES: CLOCK", as in "{LIKE}"')
        row = int(count), parse(clock, "Hz")
        if rows and (row[0] <= rows[-1][0] or row[1] >= rows[-1][1]):
            raise ValueError(f"{part.strip()[:40]!r}: more cores must come with a lower clock, as in \"{LIKE}\"")
        rows.append(row)
    if len(rows) == 1:
        raise ValueError(f'a table of one clock says nothing of fewer cores; write it like "{LIKE}"')
    if not all(1e6 <= clock <= 1e11 for _, clock in rows):
        raise ValueError("a clock is outside the range 1 MHz to 100 GHz")
    return tuple(rows)


def _wrong(written: str) -> str | None:
    try:
        turbo_table(written)
    except ValueError as error:
        return str(error)
    return None


@lru_cache(maxsize=256)
def turbo_knots(written: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cores awake and their clocks [Hz], in rising numbers of cores, between which a mean of cores lies on a straight line.

    >>> [knots.tolist() for knots in turbo_knots("3: 3.6 GHz, 8: 3.2 GHz")]
    [[1.0, 3.0, 4.0, 8.0], [3600000000.0, 3600000000.0, 3200000000.0, 3200000000.0]]
    """
    cores: list[int] = []
    clocks: list[float] = []
    first = 1
    for last, clock in turbo_table(written):
        for count in sorted({first, last}):
            cores.append(count)
            clocks.append(clock)
        first = last + 1
    return np.array(cores, dtype=float), np.array(clocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuClock:
    """Core clocks. `simd` and `simd512` hold where every core runs dense code of that width."""

    base: Number = hertz("rated base clock", informational=True)
    boost: Number = hertz("one active core")
    all_core: Number = hertz("all cores active, scalar code; the uncore is taken to run no faster")
    simd: Number = hertz("all cores active, dense 256-bit (AVX2; 128-bit where that is the widest) code")
    simd512: Number | None = hertz("all cores active, dense 512-bit code", optional=True)
    turbo: str | None = spec(TEXT, f"clocks by cores of a socket awake, up to each number, such as {LIKE}", optional=True,
                             product=False, wrong=_wrong)  # fmt: skip
    uncore: Number | None = hertz("uncore, where it does not follow the cores: bandwidth of the last cache, and its latency "
                                  "beyond the one before, count in it", optional=True, cycle=True)  # fmt: skip
    silicon: Number | None = hertz("highest clock of any chip with this core and process, where higher", optional=True)


# ------------------------------------------------------------------------------------------ products of narrow operands

LANE_BITS = 32  # bit of a lane of the result
ELEMENT_BYTES = {"int8": 1, "bf16": 2, "fp16": 2}
TILE_FORM = "tile"  # the end of the name of a form on tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class DotForm:
    """A form of instructions that multiply narrow operands.

    precision: of the operands; depth: steps of k that one instruction takes (0: as many as a row of a tile holds)
    rows: of the result in one register (0: those of a tile)
    per_lane: products that one instruction adds to 32 bit of its result [1]
    """

    precision: str
    depth: int
    rows: int
    per_lane: int
    doc: str


FORMS = {
    "int8_words": DotForm(precision="int8", depth=2, rows=1, per_lane=2,
                          doc="int8 widened to 16 bit, by two instructions: one that multiplies and adds neighbours, and an "
                              "addition (vpmaddwd, vpaddd)"),
    "int8_pairs": DotForm(precision="int8", depth=4, rows=1, per_lane=4,
                          doc="int8 by three instructions: two that multiply and add neighbours, and an addition (vpmaddubsw, "
                              "vpmaddwd, vpaddd)"),
    "int8_mlal": DotForm(precision="int8", depth=4, rows=1, per_lane=4,
                         doc="int8 by three instructions: two that multiply, and an addition of neighbours (smull, smlal2, "
                             "sadalp)"),
    "int8_dot": DotForm(precision="int8", depth=4, rows=1, per_lane=4,
                        doc="four products of int8 for each lane (vpdpbusd of AVX512_VNNI and AVX-VNNI)"),
    "int8_sdot": DotForm(precision="int8", depth=4, rows=1, per_lane=4,
                         doc="four products of int8 for each lane (sdot of FEAT_DotProd)"),
    "int8_matrix": DotForm(precision="int8", depth=8, rows=2, per_lane=8,
                           doc="2 x 8 by 8 x 2 values of int8 in each 128 bit (smmla of FEAT_I8MM)"),
    "int8_tile": DotForm(precision="int8", depth=0, rows=0, per_lane=0, doc="tiles of int8 (AMX-INT8)"),
    "bf16_dot": DotForm(precision="bf16", depth=2, rows=1, per_lane=2,
                        doc="two products of bf16 for each lane (vdpbf16ps of AVX512_BF16; bfdot of FEAT_BF16)"),
    "bf16_matrix": DotForm(precision="bf16", depth=4, rows=2, per_lane=4,
                           doc="2 x 4 by 4 x 2 values of bf16 in each 128 bit (bfmmla of FEAT_BF16)"),
    "bf16_tile": DotForm(precision="bf16", depth=0, rows=0, per_lane=0, doc="tiles of bf16 (AMX-BF16)"),
    "fp16_lanes": DotForm(precision="fp16", depth=1, rows=1, per_lane=2,
                          doc="multiply-adds of fp16 in lanes of 16 bit (fmla of FEAT_FP16; AVX512_FP16)"),
}  # fmt: skip


def _started(form: str) -> Any:
    return spec(COUNT, f"{FORMS[form].doc}: started per clock, of the width of a SIMD register", low=0.01, high=1024,
                optional=True)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """Products of narrow operands in SIMD registers: instructions of `core.simd` bit per clock; what a core lacks is left out."""

    int8_words: Number | None = _started("int8_words")
    int8_pairs: Number | None = _started("int8_pairs")
    int8_mlal: Number | None = _started("int8_mlal")
    int8_dot: Number | None = _started("int8_dot")
    int8_sdot: Number | None = _started("int8_sdot")
    int8_matrix: Number | None = _started("int8_matrix")
    bf16_dot: Number | None = _started("bf16_dot")
    bf16_matrix: Number | None = _started("bf16_matrix")
    fp16_lanes: Number | None = _started("fp16_lanes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TileUnit:
    """A unit that multiplies tiles: registers of `rows` rows of `row` bytes."""

    rows: Number = whole("rows of a tile", high=4096)
    row: Number = spec("B", "bytes of a row of a tile", low=4, high=65536)
    registers: Number = whole("tiles that the instruction set names", high=1024)
    latency: Number = cycles("product of two tiles that is added to a third")
    int8: Number | None = cycles("between two products of tiles of int8", optional=True)
    bf16: Number | None = cycles("between two products of tiles of bf16", optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DotShape:
    """What one instruction of a form takes on a core, each a number or [D, 1].

    rate: multiply-adds per clock [FMA/clk]; depth: steps of k; rows, columns: of the result in one register
    registers: that hold operands and results; latency: from a sum to the sum behind it [clk], None for that of a multiply-add
    """

    rate: Number
    depth: Number
    rows: Number
    columns: Number
    registers: Number
    latency: Number | None = None


def dot_shape(form: str, simd: Number, registers: Number, dot: Dot | None, tile: TileUnit | None) -> DotShape | None:
    """The shape of a form on a core; None for a core without it.

    rate = simd / 32 products started        (per lane `products`, `started` per clock)
    rate = rows (row / 4) (row / element) / interval        for tiles, whose results have 4 bytes

    simd: width of a SIMD register [bit]; registers: SIMD registers that the instruction set names

    >>> dot_shape("int8_dot", 512.0, 32.0, Dot(int8_dot=2.0), None).rate  # two vpdpbusd of 16 lanes
    128.0
    >>> amx = TileUnit(rows=16.0, row=64.0, registers=8.0, latency=52.0, int8=16.0, bf16=16.0)
    >>> dot_shape("int8_tile", 512.0, 32.0, None, amx).rate  # 16 x 16 x 64 values in 16 clocks
    1024.0
    """
    of = FORMS[form]
    if form.endswith(TILE_FORM):
        interval = None if tile is None else getattr(tile, of.precision)
        if tile is None or interval is None:
            return None
        depth, columns = tile.row / ELEMENT_BYTES[of.precision], tile.row * 8.0 / LANE_BITS
        return DotShape(rate=tile.rows * columns * depth / interval, depth=depth, rows=tile.rows, columns=columns,
                        registers=tile.registers, latency=tile.latency)  # fmt: skip
    started = None if dot is None else getattr(dot, form)
    if started is None:
        return None
    lanes = simd / LANE_BITS
    return DotShape(rate=lanes * of.per_lane * started, depth=of.depth, rows=of.rows, registers=registers,
                    columns=lanes * of.per_lane / (of.depth * of.rows))  # fmt: skip
