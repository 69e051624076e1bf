"""`Machine`: one SM of a device in numbers that the loop takes, and its share of what all SMs have together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from archsim.base.errors import Unsupported
from archsim.cycle import layout
from archsim.cycle.program import CONTROL, FP32, INT, MEMORY, PIPES, SPECIAL, TENSOR, Instruction
from archsim.device.device import Gpu
from archsim.device.part import Sm
from archsim.device.silicon import silicon
from archsim.device.variant import first_of

NEEDED = ("warp", "issue_width", "pairing", "int_lanes", "register_reads", "register_reuse", "memory_interval", "memory_lanes",
          "memory_queue", "return_bandwidth", "special_latency", "barrier_latency", "fetch_interval", "cta_start",
          "cta_interval", "shared_latency")  # fmt: skip
WORD = 4.0  # B of a register of a thread
PAGE = 2 * 1024**2  # B; what the CUDA driver gives large allocations, where the TLB of a device is not described further
ISSUERS = ("warp", "group", "thread")
COPIES = ("none", "async", "bulk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The largest instruction of the tensor cores: rows and columns of the result, bytes of k, and who issues it.

    issue: warp (operands in registers), group (four warps, operands in shared memory), thread (results in a memory of their own)
    """

    m: int
    n: int
    depth: float
    issue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One SM, in clocks and bytes. Times of memory are from the start of a load to the first use of its data.

    lanes: of each pipe of one scheduler; `pooled` where all schedulers share them; `together`: integers take the fp32 lanes
    access: of a warp to shared memory or the L1, at least: its threads over the lanes that are served in a clock
    fetch: between instructions of code that the SM has not run yet
    stored: what stores bring to the L2 [B/clk]; cta_interval: of this SM, if the CTAs of the device enter one SM after the other
    l2_rate, dram_rate: what the SM gets of the L2 and of memory if all SMs ask [B/clk]; turn: of memory, for each byte that is
    written beside one that is read [clk]
    tensor_rate: of the tensor cores of the SM in the precision of the kernel [FMA/clk]; mma: their instruction
    copies: to shared memory past the registers: none, async (by each thread), bulk (a copy engine that one thread starts)
    copy: what a bulk copy takes longer than a load
    """

    schedulers: int
    warp: int
    issue_width: float
    pairing: str
    register_reads: float
    register_reuse: float
    lanes: tuple[float, ...]
    pooled: bool
    together: bool
    alu: float
    special: float
    shared_bandwidth: float
    return_bandwidth: float
    shared: float
    memory_interval: float
    access: float
    memory_queue: int
    l1_bandwidth: float
    stored: float
    sector: float
    l1: float
    l2: float
    dram: float
    l2_rate: float
    dram_rate: float
    turn: float
    buffers: int
    line: float
    l2_line: float
    barrier: float
    fetch: float
    cta_start: float
    cta_interval: float
    warps: int
    ctas: int
    registers: float
    shared_memory: float
    warp_interval: float = 0.0
    shared_reserved: float = 0.0
    shared_unit: float = 1.0
    register_unit: float = 1.0
    tensor: float = 0.0
    tensor_rate: float = 0.0
    mma: Matrix | None = None
    copies: str = "none"
    copy: float = 0.0

    @property
    def width(self) -> int:
        """Instructions of one warp that a scheduler may issue at once."""
        return 1 if self.pairing == "none" else max(1, int(self.issue_width))

    def needed(self) -> Matrix:
        """The matrix instruction of the tensor cores; Unsupported for a device whose spec lacks it."""
        if self.mma is None:
            raise Unsupported("the cycle model needs sm.mma_m, sm.mma_n, sm.mma_depth and sm.mma_issue for products on tensor "
                              "cores; --set gives them")  # fmt: skip
        return self.mma


def machine_of(device: Gpu, clock: float, tensor_rate: float = 0.0, sharing: float | None = None, covered: float = 0.0,
               wandering: bool = False) -> Machine:  # fmt: skip
    """One SM of a GPU.

    clock: core clock [Hz]; memory does not follow it
    tensor_rate: multiply-accumulates per clock of the SM's tensor cores in this precision [FMA/clk]
    sharing: SMs that ask for memory at the same time; all, where it is not given
    covered: bytes of all that the kernel reads and writes [B]; wandering: at random, not in order

    Raises Unsupported for a device that lacks a key of its SM.
    """
    sm = device.sm
    lacking = [f"sm.{name}" for name in NEEDED if getattr(sm, name) is None]
    lacking += ["l1.miss_buffers"] if device.l1.miss_buffers is None else []
    if lacking:
        raise Unsupported(f"{device.identity.id}: the cycle model needs {', '.join(lacking)}, which neither its spec has nor "
                          f"hwspecs/architectures/{device.identity.architecture}.toml; --set gives them")  # fmt: skip
    l1, l2, schedulers, warp, fp32 = device.l1, device.l2, first_of(sm.schedulers), first_of(sm.warp), first_of(device.rate.fp32)
    others = max(1.0, first_of(sm.count) if sharing is None else sharing)
    page = translation(device, covered, others, wandering)
    pooled = sm.pairing == "any"
    copies, alone = memory_shares(device)
    dram = first_of(device.memory.bandwidth) / clock / others  # B/clk
    lanes = [warp] * len(PIPES)
    lanes[FP32] = fp32 if pooled else fp32 / schedulers
    lanes[INT] = first_of(sm.int_lanes) / schedulers or lanes[FP32]
    lanes[SPECIAL] = first_of(device.rate.special) / (1 if pooled else schedulers)
    lanes[TENSOR] = tensor_rate / schedulers
    return Machine(**{
        **_alike(sm), "lanes": tuple(lanes), "pooled": pooled, "together": first_of(sm.int_lanes) == 0.0,
        "fetch": first_of(sm.fetch_interval), "access": warp / first_of(sm.memory_lanes),
        "cta_interval": max(first_of(sm.cta_interval), others / first_of(device.launch.rate or sm.count)),
        "l1": first_of(l1.latency), "l1_bandwidth": first_of(l1.bandwidth), "sector": first_of(l1.sector),
        "stored": first_of(l1.write_bandwidth or l1.bandwidth), "line": first_of(l1.line),
        "buffers": int(first_of(l1.miss_buffers)), "l2": first_of(l2.latency) + farther(device, covered) + page,
        "l2_line": first_of(l2.line), "l2_rate": first_of(l2.bandwidth) * first_of(l2.achievable or 1.0) / others,
        "dram": first_of(device.memory.latency) * clock + page, "dram_rate": dram * alone,
        "turn": 2.0 * (1.0 / copies - 1.0 / alone) / dram, "tensor_rate": tensor_rate, "mma": _matrix(device),
    })  # fmt: skip


def _alike(sm: Sm) -> dict[str, Any]:
    """What the spec of an SM gives by the name that a machine has for it, or by that with `_latency` behind it."""
    kinds: dict[str, Callable[[Any], object]] = {"int": lambda value: int(first_of(value)), "float": first_of, "str": str}
    given = {one: getattr(sm, one.name, getattr(sm, f"{one.name}_latency", None)) for one in fields(Machine)}
    return {one.name: kinds[str(one.type)](value) for one, value in given.items() if value is not None}


def memory_shares(device: Gpu) -> tuple[float, float]:
    """What copies reach of the peak bandwidth of memory, and what reads alone or writes alone do, whose bus does not turn [1].

    alone = min(1, copies / (1 - turnaround)); so T = bytes / alone + 2 min(read, written) (1 / copies - 1 / alone) at the peak

    >>> from archsim.device.catalog import find
    >>> [round(900 * share) for share in memory_shares(find("tesla_v100_sxm2").device)]
    [807, 892]
    """
    family, copies = silicon().family(device.memory.type), first_of(device.memory.achievable)
    turnaround = 0.0 if family is None else silicon().turnaround.get(family.name, 0.0)
    return copies, min(1.0, copies / (1.0 - turnaround))


def farther(device: Gpu, covered: float) -> float:
    """What a hit in a split L2 takes longer when half of it does not hold all that is used again, but all of it does [clk].

    Each half keeps copies of what its own SMs ask for; what does not fit is in the other half.
    """
    size = first_of(device.l2.size)
    split = device.l2.far is not None and size / 2 < covered <= size
    return max(0.0, first_of(device.l2.far) - first_of(device.l2.latency)) if split else 0.0


def translation(device: Gpu, covered: float, sharing: float, wandering: bool = False) -> float:
    """What the translation of addresses adds to a load that misses the L1, on the average [clk].

    share of misses x their cost, over the levels of TLBs that do not reach `covered` bytes

    At random, a load finds its page with the probability reach / covered (Volta and GA10x: gpu-latency rises so beyond 32 MiB).
    In order, an SM meets a page once, and asks for 1/sharing of its lines.
    """
    total = 0.0
    for level in (device.l1, device.l2):
        if level.tlb_reach is None or level.tlb_miss is None or covered <= first_of(level.tlb_reach):
            continue
        page = first_of(PAGE if level.tlb_page is None else level.tlb_page)
        in_order = min(1.0, sharing * first_of(device.l1.line) / page)
        total += (1.0 - first_of(level.tlb_reach) / covered if wandering else in_order) * first_of(level.tlb_miss)
    return total


def _matrix(device: Gpu) -> Matrix | None:
    sm = device.sm
    if None in (sm.mma_m, sm.mma_n, sm.mma_depth) or sm.mma_issue is None:
        return None
    _known("sm.mma_issue", sm.mma_issue, ISSUERS)
    _known("sm.copies", sm.copies or "none", COPIES)
    return Matrix(m=int(first_of(sm.mma_m)), n=int(first_of(sm.mma_n)), depth=first_of(sm.mma_depth), issue=sm.mma_issue)


def _known(key: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise Unsupported(f"{key} is {word!r}; the cycle model knows {', '.join(words)}")


def ticks(clocks: float) -> int:
    """Clocks as whole ticks of the loop."""
    return round(clocks * layout.TICKS)


def assembled(machine: Machine, instructions: Sequence[Instruction]) -> list[int]:
    """The rows of a program as the loop reads them, on this machine."""
    rows: list[int] = []
    known: dict[tuple[float, ...], list[int]] = {}  # most instructions are like others, but for their registers
    paired = [machine.width > 1 and _pairs(machine.pairing, before, i) for before, i in pairwise(instructions)]
    for i, with_last, with_next in zip(instructions, [False, *paired], [*paired, True], strict=True):
        like = (i.kind, i.pipe, i.reads, i.clocks, i.port, i.size, i.stream, i.groups, i.target, i.channel, i.givers, i.dst >= 0)
        if like not in known:
            known[like] = _row(machine, i)
        row = known[like].copy()
        row[layout.DST] = i.dst
        row[layout.SRC1], row[layout.SRC2], row[layout.SRC3] = (*i.src, -1, -1, -1)[:3]
        row[layout.PAIR] = int(with_last)
        if with_next:
            row[layout.ALONE] = 0
        rows += row
    return rows


def _row(machine: Machine, i: Instruction) -> list[int]:
    """The row of an instruction but for its registers and for what stands beside it."""
    pooled = machine.pooled and i.pipe in (FP32, INT)
    hold = i.clocks or (1.0 if pooled else machine.warp / max(machine.lanes[i.pipe], 1e-9))
    banks = i.reads / machine.register_reads
    slot = max(1.0 / min(1.0, machine.issue_width), banks)
    by_size = i.size / (machine.stored if i.kind == layout.STORE else machine.l1_bandwidth)
    port = by_size if i.port < 0.0 else i.port
    if layout.SHARED <= i.kind <= layout.COPY and i.size:
        port = max(port, machine.access)
    if i.kind == layout.SHARED and i.dst >= 0:
        port = max(port, (i.size or WORD * machine.warp) / machine.return_bandwidth)
    latency = {FP32: machine.alu, INT: machine.alu, SPECIAL: machine.special}.get(i.pipe, 1.0)
    if i.pipe == TENSOR:
        latency = hold + machine.tensor
    row = [0] * layout.COLUMNS
    row[layout.KIND], row[layout.PIPE], row[layout.HOLD], row[layout.SLOT] = i.kind, i.pipe, ticks(hold), ticks(slot)
    row[layout.LATENCY], row[layout.PORT], row[layout.BANKS] = ticks(latency), ticks(port), ticks(banks)
    row[layout.BYTES], row[layout.STREAM] = round(i.size), i.stream
    counted = i.kind in (layout.AWAIT, layout.LOAD, layout.COPY)
    row[layout.ARG] = i.target if i.kind == layout.LOOP else i.groups if counted else -1 if i.pipe == TENSOR else 0
    if i.kind in (layout.GIVE, layout.TAKE):
        row[layout.ARG], row[layout.BYTES], row[layout.STREAM] = i.channel, i.groups, i.givers
    row[layout.LINES] = max(1, round(i.size) // round(machine.line))  # a miss buffer holds one
    row[layout.ALONE] = int(i.kind == layout.FIXED and not _together(machine, i.pipe))
    return row


def _pairs(pairing: str, before: Instruction, i: Instruction) -> bool:
    """Whether a scheduler may issue `i` with the instruction before it, of the same warp: any, or one of them to memory."""
    return i.kind != layout.EXIT and (pairing == "any" or (i.pipe in (MEMORY, CONTROL)) != (before.pipe in (MEMORY, CONTROL)))


def pools(machine: Machine) -> tuple[list[int], int]:
    """The pool of servers that each pipe takes on each scheduler, and how many servers there are in all.

    First a place in the row for each (pipe, scheduler); there stand the first server, how many, and when one is free.
    """
    places: list[int] = []
    kept: list[int] = []
    count = len(PIPES) * machine.schedulers
    servers = 0
    for pipe in range(len(PIPES)):
        together = _together(machine, pipe)
        for s in range(machine.schedulers):
            if pipe == INT and machine.together:
                places.append(places[FP32 * machine.schedulers + s])  # the same lanes
                continue
            if together and s > 0:
                places.append(places[-1])
                continue
            number = max(1, round(machine.lanes[pipe] / machine.warp)) if together and pipe != TENSOR else 1
            places.append(count + len(kept))
            kept += [servers, number, 0]
            servers += number
    return [*places, *kept], servers


def _together(machine: Machine, pipe: int) -> bool:
    """Whether all schedulers share a pipe."""
    if pipe == TENSOR:
        return machine.mma is not None and machine.mma.issue == "thread"
    return machine.pooled and pipe in (FP32, INT)


# --------------------------------------------------------------------------------------------------- what a cache keeps

STEEP = 0.25  # of the capacity, over which a set that grows loses all its hits: replacement is not quite by last use


def missing(size: float, capacity: float, whole: float | None = None, ways: float | None = None) -> float:
    """The share of accesses that a cache of this capacity misses [1]; it is a part of a `whole` one that keeps every line once.

    ways: its associativity, where it is known: some of its sets are full before others

    >>> missing(1e6, 2e6), missing(2.25e6, 2e6), missing(4e6, 2e6)
    (0.0, 0.5, 1.0)
    >>> [round(missing(1.5e6, 2e6, ways=ways), 2) for ways in (1, 4, 16)]
    [0.53, 0.35, 0.16]
    """
    early = 0.0 if ways is None else crowded(min(1.0, size / capacity) * ways, int(ways))
    return max(early, float(np.clip((size - capacity) / (STEEP * (whole or capacity)), 0.0, 1.0)))


def crowded(mean: float, ways: int) -> float:
    """The share of lines in sets that have more lines than ways, all of which miss when the lines are walked in order [1].

    P(X >= ways), X the lines of a set: Poisson, for addresses that a hash spreads over the sets; mean: lines of a set

    >>> [round(crowded(0.75 * ways, ways), 2) for ways in (1, 4, 16)]
    [0.53, 0.35, 0.16]
    """
    if mean <= 0.0:
        return 0.0
    lines = np.arange(ways)
    below = -mean + lines * np.log(mean) - np.cumsum(np.log(np.maximum(lines, 1)))
    return float(np.clip(1.0 - np.exp(below).sum(), 0.0, 1.0))
