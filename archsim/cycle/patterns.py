"""Patterns of microbenchmarks as programs, of access and of arithmetic: what the machine gives is compared with what was printed.

Where the data of a pattern are follows from its working set: a set that is walked in order again and again stays in a cache that
holds all of it, and with replacement of the line used least recently leaves nothing in a smaller one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil

from archsim.base.errors import Unsupported
from archsim.cycle.kernels import Grid, kernel_clocks, launch_clocks
from archsim.cycle.machine import Machine, farther, machine_of, missing
from archsim.cycle.passes import element_wise
from archsim.cycle.product import TiledProduct
from archsim.cycle.program import FP32, Assembler, Program, Source
from archsim.cycle.run import prepared, run
from archsim.cycle.tensor import on_tensor_cores
from archsim.device.device import Gpu
from archsim.evidence.case import AccessPattern, ProductPattern

# ------------------------------------------------------------------------------------------------ operational intensity

THREADS = 256  # of a CTA, of both benchmarks
ROWS, PAIR = 4000, 2  # gpu-roofline: elements of a thread, and how many a trip takes
IN_GROUP, FUSED = 8, 4  # mixbench: elements of a thread in a group, and groups that a thread takes one after the other


def chains(device: Gpu, clock: float, p: AccessPattern) -> float:
    """gpu-roofline [B/s]: two loads for each element, then a chain of `its` multiply-adds for each of two elements."""
    if p.kernel != "fma_fp32":
        raise Unsupported(f"kernel {p.kernel} of gpu-roofline has no program: pipes for fp64 are not simulated")
    machine = machine_of(device, clock)
    ctas = p.blocks * int(float(device.sm.count))
    clocks = launch_clocks(device, machine, _chains(machine, int(p.words["its"]), p.element), ctas)
    return 2 * p.element * THREADS * ROWS * ctas * clock / clocks


@lru_cache(maxsize=1024)
def _chains(machine: Machine, its: int, element: int) -> Program:
    a = Assembler(warp=machine.warp)
    place, total = a.set_up(), a.register()
    loaded = [(a.register(), a.register()) for _ in range(PAIR)]
    values = a.registers(PAIR)
    top = a.here
    for pair in loaded:
        for register in pair:
            a.load(register, place, element)
    for value, (first, second) in zip(values, loaded, strict=True):
        a.arithmetic("FADD", value, (first, second), pipe=FP32)
    for _ in range(its):
        for value, (first, second) in zip(values, loaded, strict=True):
            a.arithmetic("FFMA", value, (value, first, second), pipe=FP32)  # the other chain comes between: nothing is kept
    for value in values:
        a.arithmetic("FADD", total, (total, value), pipe=FP32)
    a.turn(place, top)
    a.store((total, place), element)
    return a.program(threads=THREADS, registers=32, trips=ROWS // PAIR)


def powers(device: Gpu, clock: float, p: AccessPattern) -> float:
    """mixbench, read-only [B/s]: of each element `its` times t = t * t + seed, then a sum of products."""
    if p.kernel != "fp32":
        raise Unsupported(f"kernel {p.kernel} of mixbench has no program: only pipes for fp32 are simulated")
    fused = 1 if p.words.get("fused") == "1" else FUSED
    ctas = round(p.size / (p.element * IN_GROUP * fused * THREADS))
    machine = machine_of(device, clock)
    return p.size * clock / launch_clocks(device, machine, _powers(machine, int(p.words["its"]), p.element, fused), ctas)


@lru_cache(maxsize=1024)
def _powers(machine: Machine, its: int, element: int, fused: int) -> Program:
    a = Assembler(warp=machine.warp)
    place, seed, total = a.set_up(), a.register(), a.register()
    values = a.registers(IN_GROUP)
    top = a.here
    for value in values:
        a.load(value, place, element)
    for _ in range(its):
        for value in values:
            a.arithmetic("FFMA", value, (value, seed), pipe=FP32, reads=1.0 if machine.register_reuse else 2.0)
    for value in values:
        a.arithmetic("FFMA", total, (total, value), pipe=FP32)
    a.turn(place, top)
    return a.program(threads=THREADS, registers=32, trips=fused)


# ------------------------------------------------------------------------------------------------------ access patterns

BANKS, WORD = 32, 4  # of the L1: banks of data, and the bytes of each
LINE = 128  # B of a tag of the L1
TAG_BANKS = 4  # of the tags: each looks up one line a clock (NVIDIA developer forum, Pascal L1 cache: 4 tags a clock)
GROUP = (0, 4, 8, 12, 20, 16, 24, 28)  # gpu-strides: elements between the loads that a thread has under way
LANES = 32  # for which gpu-strides counts clocks, on AMD too


def strides(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Clocks of one load of a warp, all in the L1 [clk]: the longest of its turns, over the loads of a group and two warps."""
    machine = machine_of(device, clock)
    narrow = 0.5 * machine.warp / float(device.rate.fp64 or 1.0) if p.element == 8 else 0.0
    least = max(machine.access, narrow, machine.warp * p.element / machine.l1_bandwidth)
    loads = [addresses(p, warp, offset) for warp in (0, 1) for offset in GROUP]
    return sum(max(least, bank_turns(load, p.element), tag_turns(load)) for load in loads) / len(loads)


def addresses(p: AccessPattern, warp: int = 0, offset: int = 0) -> list[int]:
    """Addresses of a warp [B], `offset` elements from the start."""
    threads = range(LANES * warp, LANES * (warp + 1))
    if p.kernel == "stride":
        return [(int(t % 64 * p.stride) + offset) * p.element for t in threads]
    width, pitch = int(p.words.get("width", "1")), int(p.words.get("pitch", "1"))
    return [(t % width + (t // width % 32 + 1) * pitch + offset) * p.element for t in threads]


def bank_turns(places: Sequence[int], element: int) -> int:
    """Turns of the data banks for the loads of a warp.

    Wider elements go in parts of 128 B; in each part every bank gives one word a turn, to all threads that ask for that word.

    >>> bank_turns([4 * t for t in range(32)], 4), bank_turns([128 * t for t in range(32)], 4)
    (1, 32)
    """
    parts = max(1, element // WORD)
    each = len(places) // parts
    turns = 0
    for part in range(parts):
        own = places[part * each : (part + 1) * each]
        words = {word for place in own for word in range(place // WORD, (place + element) // WORD)}
        turns += _most(word % BANKS for word in words)
    return turns


def tag_turns(places: Sequence[int]) -> int:
    """Turns of the tags for the lines that a warp touches: as many as the fullest of their banks has lines.

    The counters of gpu-strides (A40, A100) show which bank a line has: the exclusive or of all pairs of bits of its number.

    >>> tag_turns([4 * t for t in range(32)]), tag_turns([128 * t for t in range(32)]), tag_turns([132 * t for t in range(32)])
    (1, 8, 8)
    """
    return _most(map(tag_bank, {place // LINE for place in places}))


def tag_bank(line: int) -> int:
    """The bank of a line: the exclusive or of the pairs of bits of its number.

    >>> [tag_bank(line) for line in (0, 1, 4, 5, 27)]
    [0, 1, 1, 0, 0]
    """
    bank = 0
    while line:
        bank ^= line % TAG_BANKS
        line //= TAG_BANKS
    return bank


def _most(banks: Iterable[int]) -> int:
    return max(Counter(banks).values())


def warp_access(warp: int, stride: int, element: int, sector: float) -> dict[str, int]:
    """What an access of a warp touches whose threads are `stride` elements apart: sectors, lines, and turns of the L1.

    >>> warp_access(32, 1, 4, 32)
    {'sectors': 4, 'lines': 1, 'bank turns': 1, 'tag turns': 1}
    >>> warp_access(32, 2, 4, 32)["sectors"], warp_access(32, 32, 4, 32)["bank turns"], warp_access(32, 33, 4, 32)["bank turns"]
    (8, 32, 1)
    """
    places = [thread * stride * element for thread in range(warp)]
    sectors = {place // sector for first in places for place in (first, first + element - 1)}
    return {"sectors": len(sectors), "lines": len({place // LINE for place in places}),
            "bank turns": bank_turns(places, element), "tag turns": tag_turns(places)}  # fmt: skip


BARRIERS = 16  # B of a stage besides its data: one barrier for full and one for empty (CUTLASS, StageCountAuto)
REGISTERS = 128  # of a thread; a single CTA has room


def mainloop(device: Gpu, clock: float, p: ProductPattern, precision: str) -> float:
    """Time of a launch [s] that is repeated at once, so that its operands are where they were left: in the L2, if they fit.

    Raises Unsupported for a device without tensor cores in this precision.
    """
    if not device.has_tensor(precision):
        raise Unsupported(f"{device.identity.id} has no tensor cores for {precision}")
    machine = machine_of(device, clock, tensor_rate=float(device.pipe(precision)), sharing=1)
    machine, source = placed(device, machine, (p.m + p.n) * p.k * p.operand)
    stage = (p.m + p.n) * p.tile_k * p.operand
    stages = p.stages or max(2, int(float(device.sm.shared_memory_cta) // (stage + BARRIERS)))
    tile = TiledProduct(m=p.m, n=p.n, k=p.tile_k, threads=256, registers=REGISTERS, shared=stage * stages, depth=p.k,
                        operand=p.operand, a=source, b=source, stages=stages)  # fmt: skip
    clocks = kernel_clocks(prepared(machine, on_tensor_cores(machine, tile)), Grid(ctas=1, sms=1), {})
    return clocks / clock + float(device.launch.latency)


def placed(device: Gpu, machine: Machine, size: float) -> tuple[Machine, Source]:
    """Where a set of `size` bytes is that is read again and again: each half of a split L2 keeps its own copies."""
    beyond = 0.0 if size <= float(device.l2.size) else 1.0
    return replace(machine, l2=machine.l2 + farther(device, size)), Source(past_l2=beyond)


def repeated(device: Gpu, clock: float, p: AccessPattern) -> float:
    """gpu-small-kernels [B/s]: kernels that scale an array into another one and back, each after the gap of the device.

    Raises Unsupported for graphs and kernels that wait on each other by themselves: no key says what their gap is.
    """
    if p.variant != "plain" or "n" not in p.words:
        raise Unsupported(f"{p.kernel} by {p.variant}: only plain launches of arrays of one dimension have a gap and a program")
    ctas, sms = int(p.words["n"]) // p.threads + 1, int(float(device.sm.count))
    machine = machine_of(device, clock, sharing=ctas / ceil(ctas / sms))
    source = Source(past_l2=missing(p.size, float(device.l2.size)))
    program = element_wise(machine, lane_bytes=p.element, threads=p.threads, registers=16, sources=(source,))
    return p.size / (launch_clocks(device, machine, program, ctas) / clock + float(device.launch.latency))


STREAM_THREADS = 1024  # of a CTA of BabelStream
WAVES = 6, 12  # of CTAs: what the later ones take is the steady state
STEPS = 16  # to which shares of misses are rounded, so that sets that hardly differ are simulated once
# arrays read, of which fresh; arrays written; arrays that the benchmark counts
STREAMS = {"init": (0, 0, 1, 1), "read": (1, 1, 0, 1), "scale": (1, 1, 1, 2), "triad4": (3, 3, 1, 4), "triad3": (2, 2, 1, 3),
           "write": (0, 0, 1, 1), "copy": (1, 1, 1, 2), "mul": (1, 1, 1, 2), "add": (2, 2, 1, 3), "triad": (2, 2, 1, 3),
           "3pt": (3, 1, 1, 2), "5pt": (5, 1, 1, 2)}  # fmt: skip


_streams = lru_cache(maxsize=1024)(element_wise)


def pattern_value(device: Gpu, clock: float, pattern: AccessPattern | ProductPattern, precision: str) -> float:
    """What a benchmark would print [B/s, clk, s]. Raises Unsupported for a pattern that has no program."""
    if isinstance(pattern, ProductPattern):
        return mainloop(device, clock, pattern, precision)
    if pattern.benchmark not in PATTERNS:
        raise Unsupported(f"benchmark {pattern.benchmark} has no program")
    return PATTERNS[pattern.benchmark](device, clock, pattern)


def stream(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Bandwidth of arrays that are walked once [B/s]: one element a thread, as many CTAs at once as the benchmark allows."""
    return _streamed(device, clock, p, past_l2=1.0)


def stream_again(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Bandwidth of arrays that are walked in order again and again [B/s]: from the L2, as far as it keeps them."""
    return _streamed(device, clock, p, past_l2=kept_twice(device, p.size))


def stream_of_blocks(device: Gpu, clock: float, p: AccessPattern) -> float:
    """BabelStream [B/s]: one element a thread, 1024 of them a CTA, as many CTAs as fit; timed around each launch."""
    machine, values = machine_of(device, clock), float(p.words["n"])
    clocks = launch_clocks(device, machine, array_kernel(machine, p, STREAM_THREADS, 1.0), ceil(values / STREAM_THREADS))
    return STREAMS[p.kernel][-1] * values * p.element / (clocks / clock + float(device.launch.latency))


def kept_twice(device: Gpu, size: float) -> float:
    """The share of accesses to a set that miss the L2; each half of a split one keeps its own copies [1]."""
    whole = float(device.l2.size)
    split = device.l2.far is not None
    return round(STEPS * missing(size, whole / 2 if split else whole, whole)) / STEPS


def _streamed(device: Gpu, clock: float, p: AccessPattern, past_l2: float) -> float:
    machine = machine_of(device, clock, covered=p.size)
    program = array_kernel(machine, p, p.threads, past_l2)
    sm_bytes = STREAMS[p.kernel][-1] * p.element * p.threads / _cta_clocks(machine, program, p.blocks)
    return sm_bytes * clock * float(device.sm.count)


def array_kernel(machine: Machine, p: AccessPattern, threads: int, past_l2: float) -> Program:
    """A kernel of `STREAMS`: one element a thread. Raises Unsupported for another one."""
    if p.kernel not in STREAMS:
        raise Unsupported(f"kernel {p.kernel} of {p.benchmark} has no program")
    reads, fresh, writes, _ = STREAMS[p.kernel]
    return _streams(machine, reads=reads, writes=writes, lane_bytes=p.element, threads=threads, registers=16, fresh=fresh,
                    sources=(Source(past_l2=past_l2),))  # fmt: skip


@lru_cache(maxsize=4096)
def _cta_clocks(machine: Machine, program: Program, slots: int) -> float:
    """Clocks of an SM for each CTA, `slots` of them at once, in the steady state."""
    on = prepared(machine, program)
    few, more = (run(on, waves * slots, slots=slots).clocks for waves in WAVES)
    return (more - few) / ((WAVES[1] - WAVES[0]) * slots)


def first_level(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Bandwidth of all SMs that read the same buffer again and again [B/s]: loads and multiply-adds, 32 groups of them a trip."""
    inside = p.size <= float(device.l1.size)
    source = Source(past_l1=0.0 if inside else 1.0, past_l2=0.0)
    return _looped(device, clock, p, machine_of(device, clock), source)


def second_level(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Bandwidth of CTAs that read chunks of a band in turn [B/s]: past the L1, and past an L2 that does not hold the band."""
    machine = machine_of(device, clock)
    ways = None if device.l2.ways is None else float(device.l2.ways)
    source = Source(past_l1=1.0, past_l2=missing(p.size, float(device.l2.size), ways=ways))
    return _looped(device, clock, p, machine, source, max(1, int(float(device.sm.warps) * machine.warp // p.threads)))


def _looped(device: Gpu, clock: float, p: AccessPattern, machine: Machine, source: Source, slots: int = 1) -> float:
    """Bandwidth of all SMs, each of which runs `slots` CTAs at once [B/s]."""
    loads = 2 if p.kernel == "sum2" else 1
    per_trip = _loop_clocks(machine, loads, p.element, p.threads, source, slots)
    return slots * loads * 32 * p.element * p.threads / per_trip * clock * float(device.sm.count)


@lru_cache(maxsize=4096)
def _loop_clocks(machine: Machine, loads: int, element: int, threads: int, source: Source, slots: int) -> float:
    """Clocks of one trip of 32 groups of loads, of all CTAs at once."""
    a = Assembler(warp=machine.warp)
    place, total = a.set_up(), a.register()
    values = a.registers(loads * 32)
    top = a.here
    for value in values:
        a.load(value, place, element)
    for i in range(32):
        a.arithmetic("FFMA", total, (total, values[loads * i], values[loads * i + loads - 1]), pipe=FP32)
    a.turn(place, top)
    on = prepared(machine, a.program(threads=threads, registers=96, streams=(source,)))
    few, more = (run(on, slots, trips=trips, slots=slots).clocks for trips in (8, 24))
    return (more - few) / 16


def chain(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Latency of a chain of loads that visits a set of cells again and again [clk]: that of the level which holds the set."""
    machine = machine_of(device, clock, sharing=1, covered=p.size, wandering=True)
    l1, l2 = float(device.l1.size), float(device.l2.size)
    if p.size <= l1:
        return _chain_clocks(machine, Source(past_l1=0.0))
    return _chain_clocks(machine, Source(past_l2=0.0 if p.size <= l2 else 1.0))


@lru_cache(maxsize=1024)
def _chain_clocks(machine: Machine, source: Source) -> float:
    a = Assembler(warp=machine.warp)
    pointer = a.register()
    top = a.here
    for _ in range(32):
        a.load(pointer, pointer, 8, size=machine.sector)
    a.back(top)
    on = prepared(machine, a.program(threads=1, registers=16, streams=(source,)))
    few, more = (run(on, 1, trips=trips).clocks for trips in (2, 10))
    return (more - few) / (8 * 32)


PATTERNS: Mapping[str, Callable[[Gpu, float, AccessPattern], float]] = {
    "gpu-stream": stream, "gpu-cache": first_level, "gpu-l2-cache": second_level, "gpu-latency": chain, "gpu-strides": strides,
    "gpu-l2-stream": stream_again, "gpu-roofline": chains, "mixbench_ro": powers, "gpu-small-kernels": repeated,
    "babelstream": stream_of_blocks,
}  # fmt: skip
