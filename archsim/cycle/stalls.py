"""Why a kernel takes its time: the instructions that warps wait at, the use of each pipe, and what would relieve it.

The kernel keeps its tile. Latencies are halved, rates and numbers of places doubled, and all else stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from archsim.cost.gpu import GpuTerms
from archsim.cycle import layout
from archsim.cycle.kernels import Known, SimulatedLaunch, launch_of
from archsim.cycle.program import FP32, INT, PIPES, SPECIAL, TENSOR, Instruction, Program
from archsim.cycle.run import REASON_NAMES, Prepared, SmRun
from archsim.device.device import Gpu
from archsim.device.spec import unit_of

FULL = 0.75  # of the clocks: what is taken as long limits an SM
AT_WORK = ("selected", "not selected")  # the reasons of a warp that could issue, or did
MEANINGS = {
    "selected": "issued", "not selected": "another warp issued", "long scoreboard": "waits for data of L1, L2 or memory",
    "short scoreboard": "waits for shared memory, or for tensor cores", "wait": "waits for a result of fixed latency",
    "barrier": "waits for the other warps of its CTA", "math pipe throttle": "the pipe was taken",
    "MIO throttle": "the queue to shared memory was full", "LG throttle": "the queue to the L1 was full",
    "no instruction": "its code was not there yet",
}  # fmt: skip
SENTENCES = {  # the same, as a clause of its own
    name: f"a warp {meaning}" if meaning.startswith("waits") else meaning for name, meaning in MEANINGS.items()
}  # fmt: skip
# The kinds of instructions whose results a warp waits for, by reason.
MAKERS = {"long scoreboard": (layout.LOAD,), "short scoreboard": (layout.SHARED, layout.FIXED), "wait": (layout.FIXED,)}
BEFORE = {"barrier": layout.BARRIER}  # reasons of the instruction that stands before


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledInstruction:
    """An instruction at which warps wait, for one reason.

    number: in the program, from 1; place: in its loop
    after: the instruction whose result it waits for, or the barrier before it; empty where there is none
    share: of the clocks in which warps wait, all reasons and instructions together [1]
    """

    name: str
    number: int
    place: str
    reason: str
    after: str
    share: float

    @property
    def words(self) -> str:
        """In words: `FFMA after LDS.128, instruction 37 of 90 of the loop`."""
        return f"{self.name}{f' after {self.after}' if self.after else ''}, {self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmUse:
    """What one SM does with a kernel.

    resident: CTAs at once; instructions: of warps
    occupancy: warps at once, if all places of its CTAs are taken, over those that the SM can hold
    achieved_occupancy: those on average, which are fewer where CTAs start slowly or end together
    issue_use: issue slots that issued; pipe_use: of each pipe, the share of its clocks that were taken, at most 1
    bandwidth_bps: bytes per second of one SM by level [B/s]
    stalls: shares of the clocks of all warps by reason; stalled: the instructions at which warps wait most
    """

    resident: int
    clocks: float
    instructions: int
    instructions_per_clock: float
    occupancy: float
    achieved_occupancy: float
    issue_use: float
    pipe_use: Mapping[str, float]
    bandwidth_bps: Mapping[str, float]
    stalls: Mapping[str, float]
    stalled: tuple[StalledInstruction, ...]


def use_of(on: Prepared, r: SmRun, seconds: float, named: int) -> dict[str, Any]:
    """The fields of an `SmUse`, of a run that takes so many seconds; named: instructions at which warps wait."""
    levels, m = {"shared memory": r.shared, "L1": r.l1, "L2": r.l2, "memory": r.dram}, on.machine
    most = min(r.resident, on.held) * -(-on.program.threads // m.warp) / m.warps
    return {
        "resident": r.resident, "clocks": r.clocks, "instructions": r.issued, "instructions_per_clock": r.ipc,
        "occupancy": most, "achieved_occupancy": min(most, sum(r.stalls.values()) / (r.clocks * m.warps)),
        "issue_use": r.issued / (r.clocks * m.schedulers * max(1.0, m.issue_width)), "pipe_use": pipe_use(on, r),
        "bandwidth_bps": {level: size / seconds for level, size in levels.items() if size}, "stalls": shares(r),
        "stalled": stalled(on.program, r, named),
    }  # fmt: skip


def shares(result: SmRun) -> dict[str, float]:
    """The share of the clocks of all warps that each reason has, the largest first [1]."""
    whole = sum(result.stalls.values()) or 1.0
    return {name: clocks / whole for name, clocks in sorted(result.stalls.items(), key=lambda one: -one[1]) if clocks > 0}


def limit(pipes: Mapping[str, float], issue: float, stalls: Mapping[str, float]) -> str:
    """What limits an SM, in a sentence: a pipe or the issue slots that are taken most of the time, else what warps wait for.

    pipes, issue: shares of the clocks and of the issue slots [1]; stalls: shares of the warps' clocks by reason [1]

    >>> limit({"fp32": 0.86, "memory": 0.06}, 0.47, {"selected": 0.3})
    'The fp32 pipe limits it: it is taken in 86 % of the clocks.'
    """
    pipe = max(pipes, key=lambda name: pipes[name], default="")
    if pipe and pipes[pipe] >= FULL:
        return f"The {pipe} pipe limits it: it is taken in {100 * pipes[pipe]:.0f} % of the clocks."
    if issue >= FULL:
        return f"The issue slots limit it: {100 * issue:.0f} % of them issue."
    waits = {name: share for name, share in stalls.items() if name not in AT_WORK}
    if not waits:
        return "Nothing makes its warps wait."
    reason = max(waits, key=lambda name: waits[name])
    return f"Waiting limits it: in {100 * waits[reason]:.0f} % of the warps' clocks, {SENTENCES[reason]} ({reason})."


def stalled(program: Program, result: SmRun, count: int = 3) -> tuple[StalledInstruction, ...]:
    """The instructions at which the warps of a run wait most, the longest first."""
    waits = [(clocks, at, reason) for at, row in enumerate(result.waiting)
             for reason, clocks in zip(REASON_NAMES, row, strict=True) if reason not in AT_WORK and clocks > 0]  # fmt: skip
    whole = sum(clocks for clocks, _, _ in waits)
    longest = sorted(waits, key=lambda one: (-one[0], one[1]))[:count]
    return tuple([
        StalledInstruction(name=program.instructions[at].name, number=at + 1, place=place(program, at), reason=reason,
                           after=awaited(program, at, reason), share=clocks / whole)
        for clocks, at, reason in longest
    ])  # fmt: skip


def place(program: Program, at: int) -> str:
    """Where in a program an instruction stands, in words."""
    begin, end = next(part for part in program.parts if part[0] <= at < part[1])
    mine = [(first, last) for first, last in program.loops if begin <= first < end]
    role = f" of {_warps(program, begin)}" if len(program.parts) > 1 else ""
    for number, (first, last) in enumerate(mine, start=1):
        if first <= at <= last:
            which = f"loop {number}" if len(mine) > 1 else "the loop"
            return f"instruction {at - first + 1} of {last - first + 1} of {which}{role}"
    if not mine:
        return f"instruction {at - begin + 1} of {end - begin}{role}"
    if at < mine[0][0]:
        return f"instruction {at - begin + 1}, before the loop{role}"
    before = sum(last < at for _, last in mine)
    which = f"loop {before}" if len(mine) > 1 else "the loop"
    return f"instruction {at - mine[before - 1][1]}, after {which}{role}"


def _warps(program: Program, begin: int) -> str:
    """The warps of a CTA that begin at an instruction, in words."""
    first = min(warp for warp, at in program.roles if at == begin)
    beyond = min((warp for warp, _ in program.roles if warp > first), default=None)
    if beyond is None:
        return f"the warps from {first} on"
    return f"warp {first}" if beyond == first + 1 else f"warps {first} to {beyond - 1}"


def awaited(program: Program, at: int, reason: str) -> str:
    """The name of the instruction whose result instruction `at` waits for; empty where it waits for none."""
    code = program.instructions
    if reason in BEFORE:
        return code[at - 1].name if at and code[at - 1].kind == BEFORE[reason] else ""
    if code[at].kind == layout.TAKE:
        return next((_given(program, give) for give, i in enumerate(code)
                     if i.kind == layout.GIVE and i.channel == code[at].channel), "")  # fmt: skip
    if code[at].kind == layout.AWAIT and reason == "long scoreboard":
        return next((code[before].name for before in _backwards(program, at) if code[before].kind == layout.COPY), "")
    wanted = {register for register in (*code[at].src, code[at].dst) if register >= 0}
    for before in _backwards(program, at):
        if code[before].dst in wanted and code[before].kind in MAKERS.get(reason, ()):
            if reason == "short scoreboard" and code[before].kind == layout.FIXED and code[before].pipe != TENSOR:
                continue
            return code[before].name
    return ""


def _given(program: Program, at: int) -> str:
    """The copy or product for which the token of a GIVE stands; its own name where there is none."""
    code = program.instructions
    started = (layout.COPY, layout.BULK, layout.DEFERRED)
    return next((code[before].name for before in range(at, -1, -1) if code[before].kind in started), code[at].name)


def _backwards(program: Program, at: int) -> list[int]:
    """The instructions that may have run before one, the last first: its loop is gone round once."""
    around = next(((first, last) for first, last in program.loops if first <= at <= last), None)
    if around is None:
        return list(range(at - 1, -1, -1))
    first, last = around
    return [*range(at - 1, first - 1, -1), *range(last, at - 1, -1), *range(first - 1, -1, -1)]


def executed(on: Prepared, result: SmRun) -> list[tuple[float, Instruction]]:
    """How often each instruction ran, over all warps: the time in which it was issued, over that of one."""
    slots = on.rows[layout.SLOT :: layout.COLUMNS]
    return [(row[layout.SELECTED] * layout.TICKS / slot, i)
            for row, slot, i in zip(result.waiting, slots, on.program.instructions, strict=True)]  # fmt: skip


def pipe_use(on: Prepared, result: SmRun) -> dict[str, float]:
    """The share of the clocks of each pipe that instructions take, at most 1; pipes that the SM lacks are left out."""
    machine, counts = on.machine, executed(on, result)
    used: dict[str, float] = {}
    for pipe, name in enumerate(PIPES):
        if machine.lanes[pipe]:
            clocks = sum(count * (i.clocks or machine.warp / machine.lanes[pipe]) for count, i in counts if i.pipe == pipe)
            schedulers = 1 if machine.pooled and pipe == FP32 else machine.schedulers
            used[name] = min(1.0, clocks / (result.clocks * schedulers))
    return used


# --------------------------------------------------------------------------------------------------------------- improvements

BETTER = 2.0  # how much better. A choice: an SM holds whole CTAs, and 20 % more room has often none more


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """What a better device would save of a kernel.

    what: in words; keys: of the spec that are twice as good; time_s: of one launch then [s]
    saved: the share of the time that this saves; negative where the kernel takes longer
    """

    what: str
    keys: tuple[str, ...]
    time_s: float
    saved: float


Launched = Callable[[SimulatedLaunch], bool]


def _has(*kinds: int) -> Launched:
    return lambda launch: any(i.kind in kinds for i in launch.on.program.instructions)


def _on(*pipes: int) -> Launched:
    return lambda launch: any(i.pipe in pipes for i in launch.on.program.instructions)


def _always(launch: SimulatedLaunch) -> bool:
    return True


def _from_l1(launch: SimulatedLaunch) -> bool:
    return _loads(launch) and any(source.past_l1 < 1.0 for source in launch.on.program.streams)


def _from_memory(launch: SimulatedLaunch) -> bool:
    streams = launch.on.program.streams
    return launch.memory_s > 0.0 or (_global(launch) and any(source.past_l1 * source.past_l2 > 0.0 for source in streams))


def _beyond_one_wave(launch: SimulatedLaunch) -> bool:
    return launch.grid.busiest > launch.on.held


_loads, _shared = _has(layout.LOAD, layout.COPY, layout.BULK), _has(layout.SHARED)
_global = _has(layout.LOAD, layout.COPY, layout.BULK, layout.STORE)
_queued = _has(layout.LOAD, layout.COPY, layout.STORE, layout.SHARED)
_tensor = _on(TENSOR)
TENSOR_RATES = tuple([f"rate.tensor_{precision}" for precision in ("fp16", "bf16", "tf32", "fp8", "int8")])

# In words, the keys of the spec, and which programs they may matter to.
EASINGS: tuple[tuple[str, tuple[str, ...], Launched], ...] = (
    ("memory bandwidth", ("memory.bandwidth",), _from_memory),
    ("memory latency", ("memory.latency",), _from_memory),
    ("L2 bandwidth", ("l2.bandwidth",), _global),
    ("L2 latency", ("l2.latency",), _loads),
    ("L1 bandwidth", ("l1.bandwidth",), _global),
    ("L1 latency", ("l1.latency",), _from_l1),
    ("bandwidth of stores", ("l1.write_bandwidth",), _has(layout.STORE)),
    ("misses of the TLBs", ("l1.tlb_miss", "l2.tlb_miss"), _global),
    ("miss buffers of the L1", ("l1.miss_buffers",), _loads),
    ("memory instructions in flight", ("sm.memory_interval", "sm.memory_queue"), _queued),
    ("lanes of shared memory and L1", ("sm.memory_lanes",), _queued),
    ("width of loads into registers", ("sm.return_bandwidth",), _shared),
    ("shared-memory bandwidth", ("sm.shared_bandwidth",), _shared),
    ("shared-memory latency", ("sm.shared_latency",), _shared),
    ("schedulers", ("sm.schedulers",), _always),
    ("issue width", ("sm.issue_width",), _always),
    ("register banks", ("sm.register_reads",), _always),
    ("fp32 lanes", ("rate.fp32",), _on(FP32, INT)),
    ("integer lanes", ("sm.int_lanes",), _on(INT)),
    ("special functions", ("rate.special", "sm.special_latency"), _on(SPECIAL)),
    ("tensor cores", TENSOR_RATES, _tensor),
    ("latency of tensor cores", ("sm.tensor_latency",), _tensor),
    ("ALU latency", ("sm.alu_latency",), _on(FP32, INT)),
    ("barrier latency", ("sm.barrier_latency",), _has(layout.BARRIER)),
    ("latency of bulk copies", ("sm.copy_latency",), _has(layout.BULK)),
    ("code fetch", ("sm.fetch_interval",), _always),
    ("start of CTAs", ("sm.cta_start", "sm.cta_interval", "sm.warp_interval", "launch.rate"), _always),
    ("room for CTAs", ("sm.registers", "sm.shared_memory", "sm.warps", "sm.ctas"), _beyond_one_wave),
)  # fmt: skip


def improvements(terms: GpuTerms, column: int, known: Known) -> tuple[Improvement, ...]:
    """What each respect that a kernel depends on is worth to it, the largest saving first.

    known: clocks of what was simulated before, to which new ones are added
    column: of the V variants, on the first device; one that has a program
    """
    now = launch_of(terms, column)
    assert now is not None
    before, found = now.busy_s(known), []
    for what, keys, matters in EASINGS:
        there = tuple([key for key in keys if _value(terms.device, key)])
        if there and matters(now):
            then = launch_of(replace(terms, device=better(terms.device, there)), column)
            assert then is not None
            time = then.busy_s(known)
            found.append(Improvement(what=what, keys=there, time_s=time, saved=1.0 - time / before))
    return tuple(sorted(found, key=lambda one: -one.saved))


def better(device: Gpu, keys: tuple[str, ...]) -> Gpu:
    """The device with some keys of its spec twice as good."""
    for key in keys:
        part, _, name = key.partition(".")
        factor = 1.0 / BETTER if unit_of("gpu", key).better < 0 else BETTER
        values = {name: getattr(getattr(device, part), name) * factor}
        if key == "sm.issue_width" and device.sm.pairing == "none":  # what is issued beside an instruction is a word
            values["pairing"] = "memory"
        device = replace(device, **{part: replace(getattr(device, part), **values)})
    return device


def _value(device: Gpu, key: str) -> object:
    """The value of a key; None where the spec has none, 0 where there is nothing to double."""
    part, _, name = key.partition(".")
    return getattr(getattr(device, part), name)
