"""Microbenchmarks that read an array once and compute on each value: bandwidth by operational intensity."""

from __future__ import annotations

from functools import lru_cache

from archsim.base.errors import Unsupported
from archsim.cycle.kernels import launch_clocks
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.program import FP32, Assembler, Program, Source
from archsim.device.device import Gpu
from archsim.evidence.case import AccessPattern

THREADS = 256  # of a CTA, of both benchmarks
ROWS, PAIR = 4000, 2  # gpu-roofline: elements of a thread, and how many a trip takes
GROUP, FUSED = 8, 4  # mixbench: elements of a thread in a group, and groups that a thread takes one after the other


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
    values = [a.register() for _ in range(PAIR)]
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
    a.end()
    return a.program(threads=THREADS, registers=32, shared=0.0, trips=ROWS // PAIR, streams=(Source(),))


def powers(device: Gpu, clock: float, p: AccessPattern) -> float:
    """mixbench, read-only [B/s]: of each element `its` times t = t * t + seed, then a sum of products."""
    if p.kernel != "fp32":
        raise Unsupported(f"kernel {p.kernel} of mixbench has no program: only pipes for fp32 are simulated")
    fused = 1 if p.words.get("fused") == "1" else FUSED
    ctas = round(p.size / (p.element * GROUP * fused * THREADS))
    machine = machine_of(device, clock)
    return p.size * clock / launch_clocks(device, machine, _powers(machine, int(p.words["its"]), p.element, fused), ctas)


@lru_cache(maxsize=1024)
def _powers(machine: Machine, its: int, element: int, fused: int) -> Program:
    a = Assembler(warp=machine.warp)
    place, seed, total = a.set_up(), a.register(), a.register()
    values = [a.register() for _ in range(GROUP)]
    top = a.here
    for value in values:
        a.load(value, place, element)
    for _ in range(its):
        for value in values:
            a.arithmetic("FFMA", value, (value, seed), pipe=FP32, reads=1.0 if machine.register_reuse else 2.0)
    for value in values:
        a.arithmetic("FFMA", total, (total, value), pipe=FP32)
    a.turn(place, top)
    a.end()
    return a.program(threads=THREADS, registers=32, shared=0.0, trips=fused, streams=(Source(),))

