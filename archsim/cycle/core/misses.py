"""The time of a program from its instructions and the level at which each access hits: at least, at most, and between.

An address trace does not say which instruction waits for which. The bounds leave that open: everything overlaps, or each
access waits for the one before. Between them lies a core whose accesses do not wait for each other's data, but for what its
pipeline holds at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from archsim.cycle.core.machine import CoreMachine

STREAMS = 16  # that the prefetchers follow at once (Intel documents 16 forward ones for its L2)
UNLIMITED = 1 << 20


@dataclass(slots=True, kw_only=True)
class AccessCounts:
    """What a program did.

    instructions: of the program; hits: accesses by the level that has their line, the L1 first, memory last
    loaded, stored: bytes [B]; written: lines that go back to each level behind the L1
    """

    instructions: int = 0
    hits: list[int] = field(default_factory=list)
    loaded: int = 0
    stored: int = 0
    written: list[int] = field(default_factory=list)


def overlapped_bounds(machine: CoreMachine, counts: AccessCounts) -> dict[str, float]:
    """What a program takes at least, by what it uses [clk].

    instructions / rename;  bytes / bandwidth of the L1;  lines * line / bandwidth of each level;  lines * latency / buffers

    A line keeps a miss buffer of the L1 for the latency of the L2 at least, which is all where a prefetcher foresaw it; one from
    further a buffer of the L2 for the rest (Little 1961). Dirty lines go back. All of these go on at the same time.
    """
    far = counts.hits[1:]
    found = {
        "front end": counts.instructions / float(machine.pipeline.rename), "loads": counts.loaded / machine.read,
        "stores": counts.stored / machine.write, "L1 miss buffers": sum(far) * machine.near[0][1] / machine.buffers,
    }  # fmt: skip
    beyond = 0.0
    for at, (lines, (_, latency)) in enumerate(zip(far, machine.near, strict=False)):
        found |= crossing(machine, at, lines if at else sum(far), counts.written[at] if counts.written else 0)
        beyond += lines * (latency - machine.near[0][1])
    found["L2 miss buffers"] = beyond / machine.far_buffers
    return dict(sorted(((name, clocks) for name, clocks in found.items() if clocks > 0), key=lambda one: -one[1]))


def crossing(machine: CoreMachine, at: int, lines: float, written: float) -> dict[str, float]:
    """What the bus of a level behind the L1 takes, 0 for the L2, for lines that come and dirty ones that go back [clk].

    (lines + written) line / bandwidth        or, where those that go back have wires of their own, each by itself
    """
    name, (bandwidth, _), own = level_names(machine)[1 + at], machine.near[at], machine.back[at]
    together = {name: (lines + (0.0 if own else written)) * machine.line / bandwidth}
    return together | ({f"{name} victims": written * machine.line / own} if own else {})


def dependent_clocks(machine: CoreMachine, counts: AccessCounts) -> float:
    """What a program takes if each access waits for the one before, and no prefetcher helps [clk].

    instructions / rename + sum over accesses of max(latency of the level that hits, line / its bandwidth)
    """
    latencies = [machine.load, *(max(latency, machine.line / bandwidth) for bandwidth, latency in machine.near)]
    waiting = sum(count * latency for count, latency in zip(counts.hits, latencies, strict=False))
    return counts.instructions / float(machine.pipeline.rename) + waiting


def level_names(machine: CoreMachine) -> tuple[str, ...]:
    """L1, L2, a third level where there is one, and memory."""
    return ("L1", "L2", "memory") if len(machine.near) < 3 else ("L1", "L2", "L3", "memory")


class MissWindow:
    """The misses of a program on a core whose accesses do not depend on each other, in the order of the program.

    Instructions are renamed at the core's width, at most the reorder buffer's entries before the oldest one that has not retired;
    they retire in order. A load that misses retires as its line arrives, so that misses overlap within the window (Karkhanis and
    Smith 2004). A store retires before its line arrives, as long as the store queue has room. Each miss keeps a miss buffer of
    the L1 until its line is there, and takes the bus of its level, as lines do that go back for it. The next line of a stream was
    asked for as many lines ago as the prefetcher is ahead, in its page, and waited in a buffer of the L2 alone.
    """

    def __init__(self, machine: CoreMachine) -> None:
        pipeline = machine.pipeline
        self.machine, self.rename = machine, float(pipeline.rename)
        self.entries, self.queue = int(pipeline.window or UNLIMITED), int(pipeline.store_queue or UNLIMITED)
        self.renamed, self.at = 0.0, 0  # the clock at which rename has come to an instruction
        self.retired, self.committed = 0.0, 0.0
        self.waiting: deque[tuple[int, float]] = deque()  # (instruction, clock at which it retires) of loads in the window
        self.storing: deque[tuple[int, float]] = deque()  # (number of the store, clock at which its line is there)
        self.page = machine.page_lines
        self.buffers, self.far_buffers = [0.0] * machine.buffers, [0.0] * machine.far_buffers
        self.bus = [0.0] * len(machine.near)
        self.streams: dict[int, deque[float]] = {}  # the next line of each stream -> clocks at which the last ones were touched

    def miss(self, instruction: int, store: int, is_store: bool, level: int, line: int, written: Sequence[int] = ()) -> None:
        """A line that the L1 does not have.

        instruction, store: how many came before in the program; level: 1 for the L2, on to memory; line: its number
        written: lines that go back to each level behind the L1 because of it
        """
        begin = self._renamed(instruction, store)
        touched = self.retired if is_store else begin
        there = self._arrives(touched, self._asked(touched, level, line), level)
        for at, lines in enumerate(written):
            if lines and not self.machine.back[at]:
                self.bus[at] += lines * self.machine.line / self.machine.near[at][0]
        if is_store:
            self.committed = max(self.committed, there, self.retired)
            self.storing.append((store, self.committed))
        else:
            self.retired = max(self.retired, there)
            self.waiting.append((instruction, self.retired))

    def clocks(self, instructions: int) -> float:
        """The clock at which a program of some instructions is done."""
        return max(self.renamed + (instructions - self.at) / self.rename, self.retired, self.committed)

    def _renamed(self, instruction: int, store: int) -> float:
        """The clock at which an instruction is renamed: behind those before it, with room in the window and the store queue."""
        clock = self.renamed + (instruction - self.at) / self.rename
        while self.waiting and self.waiting[0][0] <= instruction - self.entries:
            clock = max(clock, self.waiting.popleft()[1])
        while self.storing and self.storing[0][0] <= store - self.queue:
            clock = max(clock, self.storing.popleft()[1])
        self.renamed, self.at = clock, instruction
        return clock

    def _asked(self, touched: float, level: int, line: int) -> float:
        """The clock at which a line is asked for that is touched at a clock: earlier, if a prefetcher follows its stream."""
        before = self.streams.pop(line, None)
        ahead = self.machine.ahead if level == 1 else max(self.machine.ahead, self.machine.far_ahead)
        clock = touched
        in_page = line % self.page
        if before is not None and min(ahead, in_page) > 0:
            clock = before[-min(ahead, in_page, len(before))]
        times = deque[float](maxlen=max(1, self.machine.ahead, self.machine.far_ahead)) if before is None else before
        times.append(touched)
        self.streams[line + 1] = times
        if len(self.streams) > STREAMS:
            del self.streams[next(iter(self.streams))]
        return clock

    def _arrives(self, touched: float, asked: float, level: int) -> float:
        """The clock at which a line is in the L1 that is touched at a clock, and was asked for then or before."""
        near = self.machine.near
        slot = min(range(len(self.buffers)), key=self.buffers.__getitem__)
        clock = asked if asked < touched else max(touched, self.buffers[slot])
        if level > 1:
            far = min(range(len(self.far_buffers)), key=self.far_buffers.__getitem__)
            clock = self._over_bus(level - 1, max(clock, self.far_buffers[far]), near[level - 1][1] - near[0][1])
            self.far_buffers[far] = clock
        self.buffers[slot] = self._over_bus(0, max(clock, self.buffers[slot]), near[0][1])
        return self.buffers[slot]

    def _over_bus(self, at: int, start: float, latency: float) -> float:
        """The clock at which a line has come from a level, over its bus."""
        self.bus[at] = max(start, self.bus[at]) + self.machine.line / self.machine.near[at][0]
        return max(start + latency, self.bus[at])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTime:
    """The time of a program on one core.

    instructions: counted, or one for each access where the trace has none (`counted` is false); clock_hz: of the core [Hz]
    lower_s: everything overlaps as far as bandwidths and buffers let it; upper_s: each access waits for the one before;
    time_s: accesses overlap within the reorder buffer [s]
    bounds_s: the lower bounds by name, the largest first [s]; hits: accesses by the level that has their line
    """

    instructions: int
    counted: bool
    clock_hz: float
    lower_s: float
    time_s: float
    upper_s: float
    bounds_s: Mapping[str, float]
    hits: Mapping[str, int]
    window: int


def program_time(machine: CoreMachine, counts: AccessCounts, window: MissWindow, clock: float, counted: bool) -> ProgramTime:
    """The three times of a program whose misses went through a window; clock of the core [Hz]."""
    found = overlapped_bounds(machine, counts)
    lower = max(found.values(), default=0.0)
    between = max(lower, window.clocks(counts.instructions))
    upper = max(between, dependent_clocks(machine, counts))
    return ProgramTime(
        instructions=counts.instructions, counted=counted, clock_hz=clock, lower_s=lower / clock, time_s=between / clock,
        upper_s=upper / clock, bounds_s={name: clocks / clock for name, clocks in found.items()}, window=window.entries,
        hits=dict(zip(level_names(machine), counts.hits, strict=False)),
    )  # fmt: skip
