"""What one SM or one core does against what is varied, as microbenchmarks draw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archsim.base.units import show_capacity
from archsim.cycle.core.loops import chase
from archsim.cycle.kernels import trip_clocks
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.patterns import warp_access
from archsim.cycle.program import FP32, Assembler, Program
from archsim.cycle.run import prepared, room
from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.simulate.core import core_of, simulate_core
from archsim.simulate.sm import KernelInWords, parsed, sm_of

SCHEMA = "archsim-curve/1"
LAW = "Little's law"  # the line that it gives
PARALLEL = (1, 2, 4)  # independent instructions, or loads, of a thread
UNROLLED = 64  # multiply-adds of a trip, beside which its branch hardly counts
STRIDES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 24, 31, 32, 33)
CHAINS = (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48)
OF_CTA = (64, 128, 256, 512, 1024)  # threads
NAMED = 255  # registers that an instruction can name
ENOUGH = 0.99  # of the most that a line reaches


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCurve:
    """What the simulated machine does against what is varied.

    x, y: title and unit of what is varied and of what comes of it; at: values of x [N]
    lines: y by name [N], None where a line has no such point; that of `LAW` is an equation
    limits: the key of the spec that limits each point [N], by line, where points are numbers of CTAs
    said: what follows from it
    """

    hardware: str
    curve: str
    clock_hz: float
    x: tuple[str, str]
    y: tuple[str, str]
    at: Sequence[float]
    lines: Mapping[str, Sequence[float | None]]
    limits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    said: Sequence[str] = ()


def sm_curve(spec: Spec, curve: str, clock: float | None = None, memory_clock: float | None = None) -> SimulatedCurve:
    """One of `OF_SM` in words, like `warps` or `occupancy threads=256`; clocks are the usual ones if not given [Hz].

    Raises ArgumentError for words that make none, Unsupported for a device without the keys of its SM.
    """
    device, clock = sm_of(spec, memory_clock), clock or float(spec.device.usual_clock)
    asked = parsed(curve, table={name: words for name, (_, words) in OF_SM.items()}, hint="like 'warps' or 'strides bytes=8'")
    found = OF_SM[asked.name][0](device, machine_of(device, clock), asked, clock)
    return SimulatedCurve(hardware=spec.identity.id, curve=curve, clock_hz=clock, **found)


def warps(device: Gpu, machine: Machine, k: KernelInWords, clock: float) -> dict[str, Any]:
    """Multiply-adds against warps, some of them independent in each thread (Volkov 2010, Better performance at lower occupancy).

    warps that it takes = latency x multiply-adds of a clock / (32 x independent ones)     (Little's law)
    """
    at, rate = range(machine.schedulers, machine.warps + 1, machine.schedulers), float(device.rate.fp32)
    lines = {f"ILP {each}": [UNROLLED * machine.warp * count / _clocks(machine, fused(machine, each, count)) for count in at]
             for each in PARALLEL}  # fmt: skip
    said = []
    for (name, line), each in zip(lines.items(), PARALLEL, strict=True):
        first = next(count for count, value in zip(at, line, strict=True) if value >= ENOUGH * max(line))
        need = machine.alu * rate / machine.warp / each
        said.append(f"{name}: {max(line):.0f} FMA/clk with {first} warps; Little's law: {machine.alu:g} clk x {rate:g} FMA/clk / "
                    f"({machine.warp} x {each}) = {need:.3g}.")  # fmt: skip
    return {"x": ("resident warps", ""), "y": ("FMA/clk", ""), "at": at, "lines": lines, "said": said}


def fused(machine: Machine, parallel: int, count: int) -> Program:
    """Multiply-adds of `count` warps, in so many independent chains of each thread."""
    a = Assembler(warp=machine.warp)
    other, values = a.register(), a.registers(parallel)
    for i in range(UNROLLED):
        value = values[i % parallel]
        a.arithmetic("FFMA", value, (value, other), pipe=FP32, reads=1.0 if machine.register_reuse else 2.0)
    return _looped(a, machine, count)


def in_flight(device: Gpu, machine: Machine, k: KernelInWords, clock: float) -> dict[str, Any]:
    """Bandwidth of a copy on all SMs against the bytes that each has asked for, by more warps or by more loads of a thread.

    bandwidth = 2 min(bytes in flight / latency, half of the achievable)     (Little's law; a copy reads and writes)
    """
    load, sms = machine.warp * k.words["bytes"], float(device.sm.count)
    steps = [1, *(part * 2**i for i in range(1, 12) for part in (1, 1.5))]
    at = [step * load for step in steps if step <= machine.warps * PARALLEL[-1]]

    def rate(size: float, each: int) -> float | None:
        count = size / load / each
        if count % 1 or not 1 <= count <= machine.warps:
            return None
        return 2 * size * sms * clock / _clocks(machine, copied(machine, k.whole("bytes"), each, int(count)))

    lines = {f"{each} load{'s' * (each > 1)} a thread": [rate(size, each) for size in at] for each in PARALLEL}
    lines[LAW] = [min(2 * size / machine.dram, machine.dram_rate) * sms * clock for size in at]
    need = machine.dram * machine.dram_rate / 2
    said = [f"Little's law: {machine.dram:.0f} clk x {machine.dram_rate / 2:.3g} B/clk that an SM reads = "
            f"{show_capacity(need, 3)} in flight."]  # fmt: skip
    return {"x": ("bytes in flight on an SM", "KiB"), "y": ("read and written", "B/s"), "at": at, "lines": lines, "said": said}


def copied(machine: Machine, size: int, parallel: int, count: int) -> Program:
    """Warps that load, so many values of `size` bytes a thread at once, and store them."""
    a = Assembler(warp=machine.warp)
    place, values = a.register(), a.registers(parallel)
    for value in values:
        a.load(value, place, size)
    for value in values:
        a.store((value, place), size)
    return _looped(a, machine, count)


def _looped(a: Assembler, machine: Machine, count: int) -> Program:
    """What has been written as a loop of one CTA of `count` warps."""
    a.back(0)
    return a.program(threads=machine.warp * count, registers=16)


def _clocks(machine: Machine, program: Program) -> float:
    return trip_clocks(prepared(machine, program), 1, {})


def occupancy(device: Gpu, machine: Machine, k: KernelInWords, clock: float) -> dict[str, Any]:
    """CTAs that an SM holds by the registers of a thread, and what limits them: those of several sizes, or those of so many
    `threads` with several amounts of shared memory.
    """
    cases = {f"{size} threads": (size, k.words["shared"]) for size in OF_CTA}
    if k.words["threads"]:
        most = float(device.sm.shared_memory_cta or device.sm.shared_memory)
        cases = {show_capacity(size, 3): (k.whole("threads"), size) for size in (0.0, *(most / 2**i for i in range(5, -1, -1)))}
    at = [min(registers, NAMED) for registers in range(16, NAMED + 8, 8)]
    rooms = {name: [room(machine, Program(instructions=(), threads=threads, registers=each, shared=shared, trips=1))
                    for each in at] for name, (threads, shared) in cases.items()}  # fmt: skip
    return {"x": ("registers of a thread", ""), "y": ("CTAs", ""), "at": at, "said": [f"An SM holds {machine.warps} warps."],
            "lines": {name: [float(min(one.values())) for one in found] for name, found in rooms.items()},
            "limits": {name: [min(one, key=lambda key: one[key]) for one in found] for name, found in rooms.items()}}  # fmt: skip


def strides(device: Gpu, machine: Machine, k: KernelInWords, clock: float) -> dict[str, Any]:
    """What an access of a warp touches, whose neighbouring threads are so many elements apart."""
    found = [warp_access(machine.warp, stride, k.whole("bytes"), machine.sector) for stride in STRIDES]
    said = [f"Its {machine.warp * k.words['bytes']:g} B fill {machine.warp * k.words['bytes'] / machine.sector:g} sectors."]
    return {"x": ("elements from thread to thread", ""), "y": ("of a warp's access", ""), "at": STRIDES, "said": said,
            "lines": {name: [float(one[name]) for one in found] for name in found[0]}}  # fmt: skip


OF_SM: dict[str, tuple[Callable[[Gpu, Machine, KernelInWords, float], dict[str, Any]], dict[str, float]]] = {
    "warps": (warps, {}), "bytes-in-flight": (in_flight, {"bytes": 4}), "occupancy": (occupancy, {"threads": 0, "shared": 0}),
    "strides": (strides, {"bytes": 4}),
}  # fmt: skip


def core_curve(spec: Spec, curve: str, clock: float | None = None) -> SimulatedCurve:
    """Loads of a clock against independent chains of pointers, `chains level=4`: the misses that a core has under way at once.

    loads of a clock = min(chains, miss buffers of the L1) / latency     (Little's law)
    """
    asked = parsed(curve, table={"chains": {"level": 4}}, hint="like 'chains level=3'")
    level, buffers = asked.whole("level"), float(core_of(spec).core.miss_buffers)
    clock = clock or float(spec.device.usual_clock)
    clocks = [simulate_core(spec, chase(level, loads=1, chains=count), clock=clock).result.cycles for count in CHAINS]
    law = [(count if level == 1 else min(count, buffers)) / clocks[0] for count in CHAINS]
    of = f", of {buffers:g} miss buffers of the L1" if level > 1 else ""
    measured = [count / each for count, each in zip(CHAINS, clocks, strict=True)]
    return SimulatedCurve(
        hardware=spec.identity.id, curve=curve, clock_hz=clock, x=("independent chains", ""), y=("loads/clk", ""), at=CHAINS,
        lines={"simulated": measured, LAW: law},
        said=[f"One load takes {clocks[0]:.0f} clocks; at most {max(measured) * clocks[0]:.3g} are under way at once{of}."],
    )  # fmt: skip
