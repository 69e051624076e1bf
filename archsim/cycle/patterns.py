"""Access patterns of microbenchmarks as programs: what the machine gives is compared with what was printed.

Where the data of a pattern are follows from its working set: a set that is walked in order again and again stays in a cache that
holds all of it, and with replacement of the line used least recently leaves nothing in a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import ceil

from archsim.base.errors import Unsupported
from archsim.cycle.element_wise import element_wise
from archsim.cycle.intensity import chains, powers
from archsim.cycle.kernels import Grid, kernel_clocks
from archsim.cycle.launches import repeated
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.mainloop import mainloop
from archsim.cycle.program import FP32, INT, Assembler, Program, Source
from archsim.cycle.reuse import missing
from archsim.cycle.run import prepared, run
from archsim.cycle.strides import strides
from archsim.device.device import Gpu
from archsim.evidence.pattern import AccessPattern, Pattern, ProductPattern

STREAM_THREADS = 1024  # of a CTA of BabelStream
WAVES = 6, 12  # of CTAs: what the later ones take is the steady state
STEPS = 16  # to which shares of misses are rounded, so that sets that hardly differ are simulated once
# arrays read, of which fresh; arrays written; arrays that the benchmark counts
STREAMS = {"init": (0, 0, 1, 1), "read": (1, 1, 0, 1), "scale": (1, 1, 1, 2), "triad4": (3, 3, 1, 4), "triad3": (2, 2, 1, 3),
           "write": (0, 0, 1, 1), "copy": (1, 1, 1, 2), "mul": (1, 1, 1, 2), "add": (2, 2, 1, 3), "triad": (2, 2, 1, 3),
           "3pt": (3, 1, 1, 2), "5pt": (5, 1, 1, 2)}  # fmt: skip


def pattern_value(device: Gpu, clock: float, pattern: Pattern, precision: str) -> float:
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
    if p.kernel not in STREAMS:
        raise Unsupported(f"kernel {p.kernel} of {p.benchmark} has no program")
    machine = machine_of(device, clock)
    program = array_kernel(machine, p.kernel, p.element, STREAM_THREADS, 1.0)
    ctas = ceil(float(p.words["n"]) / STREAM_THREADS)
    clocks = kernel_clocks(prepared(machine, program), Grid(ctas=ctas, sms=int(float(device.sm.count))), {})
    return STREAMS[p.kernel][-1] * float(p.words["n"]) * p.element / (clocks / clock + float(device.launch.latency))


def kept_twice(device: Gpu, size: float) -> float:
    """The share of accesses to a set that miss the L2; each half of a split one keeps its own copies [1]."""
    whole = float(device.l2.size)
    split = device.l2.far is not None
    return round(STEPS * missing(size, whole / 2 if split else whole, whole)) / STEPS


def _streamed(device: Gpu, clock: float, p: AccessPattern, past_l2: float) -> float:
    if p.kernel not in STREAMS:
        raise Unsupported(f"kernel {p.kernel} of {p.benchmark} has no program")
    machine = machine_of(device, clock, covered=p.size)
    program = array_kernel(machine, p.kernel, p.element, p.threads, past_l2)
    sm_bytes = STREAMS[p.kernel][-1] * p.element * p.threads / _cta_clocks(machine, program, p.blocks)
    return sm_bytes * clock * float(device.sm.count)


@lru_cache(maxsize=1024)
def array_kernel(machine: Machine, kernel: str, element: int, threads: int, past_l2: float) -> Program:
    """A kernel of `STREAMS`: one element a thread."""
    reads, fresh, writes, _ = STREAMS[kernel]
    return element_wise(machine, reads=reads, writes=writes, lane_bytes=element, threads=threads, registers=16, fresh=fresh,
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
    machine = machine_of(device, clock)
    loads = 2 if p.kernel == "sum2" else 1
    per_trip = _loop_clocks(machine, loads, p.element, p.threads, source)
    return loads * 32 * p.element * p.threads / per_trip * clock * float(device.sm.count)


def second_level(device: Gpu, clock: float, p: AccessPattern) -> float:
    """Bandwidth of CTAs that read chunks of a band in turn [B/s]: past the L1, and past an L2 that does not hold the band."""
    machine = machine_of(device, clock)
    ways = None if device.l2.ways is None else float(device.l2.ways)
    source = Source(past_l1=1.0, past_l2=missing(p.size, float(device.l2.size), ways=ways))
    loads = 2 if p.kernel == "sum2" else 1
    slots = max(1, int(float(device.sm.warps) * machine.warp // p.threads))
    per_trip = _loop_clocks(machine, loads, p.element, p.threads, source, slots)
    return slots * loads * 32 * p.element * p.threads / per_trip * clock * float(device.sm.count)


@lru_cache(maxsize=4096)
def _loop_clocks(machine: Machine, loads: int, element: int, threads: int, source: Source, slots: int = 1) -> float:
    """Clocks of one trip of 32 groups of loads, of all CTAs at once."""
    a = Assembler(warp=machine.warp)
    place, total = a.register(), a.register()
    values = [a.register() for _ in range(loads * 32)]
    a.arithmetic("IMAD", place, (place,), pipe=INT)
    top = a.here
    for value in values:
        a.load(value, place, element)
    for i in range(32):
        a.arithmetic("FFMA", total, (total, values[loads * i], values[loads * i + loads - 1]), pipe=FP32)
    a.arithmetic("IADD3", place, (place,), pipe=INT)
    a.back(top)
    a.end()
    program = a.program(threads=threads, registers=96, shared=0.0, trips=1, streams=(source,))
    on = prepared(machine, program)
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
    a.end()
    on = prepared(machine, a.program(threads=1, registers=16, shared=0.0, trips=1, streams=(source,)))
    few, more = (run(on, 1, trips=trips).clocks for trips in (2, 10))
    return (more - few) / (8 * 32)


PATTERNS: Mapping[str, Callable[[Gpu, float, AccessPattern], float]] = {
    "gpu-stream": stream, "gpu-cache": first_level, "gpu-l2-cache": second_level, "gpu-latency": chain, "gpu-strides": strides,
    "gpu-l2-stream": stream_again, "gpu-roofline": chains, "mixbench_ro": powers, "gpu-small-kernels": repeated,
    "babelstream": stream_of_blocks,
}  # fmt: skip
