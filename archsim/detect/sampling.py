"""Times of short loops on a computer that has other work too, and the stretch of memory that they visit.

Another program, an interrupt or a neighbour can only make a loop slower, so that the best of many short samples is the loop's
own time. Processor time leaves out the moments in which another program had the core. Clocks of a loop are its time beside that
of a chain of operations whose clocks are known: a sample counts where the chain is as fast after the loop as before it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archsim.detect.loops import LINE_B, Loop

SAMPLE_S = 0.5e-3  # long beside the 1 us that a call from Python takes, short beside the time slice of a core
SAMPLES, TOGETHER, TRIES = 20, 8, 80  # of one thread, of several, and how often either is tried
FEWEST = 4  # samples without which there is no value
SECOND = 0.1  # part of the samples that are left out as too good, because the chain beside them was disturbed
STEADY = 0.015  # by which the chain may differ before and after a sample
SHARED_S = 16e-3  # a sample of several threads: long beside the start of a thread
OVERLAP = 1.2  # wall time of a sample of several threads beside their processor time, at most

Timer = Callable[[], int]


class Disturbed(Exception):
    """Other work took the cores, or changed their clock, in so many samples that there is no value."""


class Finding(NamedTuple):
    """A figure that was measured, in the unit that its method of `benchmarks.Bench` states.

    spread: by which share the lower quartile of its samples is worse; note: how it was measured
    """

    value: float
    spread: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The best of several samples, and by which share the lower quartile is worse."""

    best: float
    spread: float

    def finding(self, note: str = "") -> Finding:
        """The best one, as a figure."""
        return Finding(self.best, self.spread, note)


def settled(values: Iterable[float], apart: float, part: float = 0.0) -> Samples:
    """The value below which a part of the samples lies, if as many again lie close to it.

    part: 0 is the least value, where errors have one sign; above 0 where the clock beside a sample has an error too
    apart: by which share the value a quarter further on may be worse
    Raises Disturbed for fewer than four values and for values that lie further apart.

    >>> settled([4.2, 4.0, 4.1, 9.0], 0.1)
    Samples(best=4.0, spread=0.025)
    """
    known = sorted(values)
    if len(known) < FEWEST:
        raise Disturbed(f"other work changed the clock in all but {len(known)} of {TRIES} samples")
    best, next_one = known[int(len(known) * part)], known[int(len(known) * (part + 0.25))]
    if best <= 0 or next_one / best - 1 > apart:
        raise Disturbed(f"samples disagree: {best:.4g}, and a quarter of them further on {next_one:.4g}")
    return Samples(best=best, spread=round(next_one / best - 1, 4))


class Ruler:
    """A chain of known clocks, by which others are timed.

    timer: nanoseconds of processor time of this thread
    """

    def __init__(self, chain: Loop, timer: Timer = time.thread_time_ns) -> None:
        self._chain, self._timer = chain, timer
        self._call_ns = min(self.took(lambda: chain.run(1)) for _ in range(50))
        self._turns = self.turns(chain.run, 16, SAMPLE_S / 2)

    def took(self, work: Callable[[], object]) -> int:
        """Time of a call [ns]."""
        begin = self._timer()
        work()
        return max(self._timer() - begin, 1)

    def turns(self, run: Callable[[int], object], first: int, seconds: float = SAMPLE_S) -> int:
        """How many turns of a loop take so long."""
        count = first
        while (spent := self.took(functools.partial(run, count))) < 0.1e9 * seconds and count < 1 << 40:
            count *= 4
        return max(1, int(count * seconds * 1e9 / spent))

    def clock_Hz(self) -> float:
        """The clock by one run of the chain [Hz]."""
        spent = self.took(lambda: self._chain.run(self._turns)) - self._call_ns
        return 1e9 * self._turns * self._chain.per_turn / max(spent, 1)

    def warm(self) -> None:
        """Run the chain until a core that rested has its clock."""
        end = time.monotonic() + 0.15
        while time.monotonic() < end:
            self.clock_Hz()

    def clocks(
        self, work: Callable[[], object], count: float, apart: float = 0.05, samples: int = SAMPLES,
        prepare: Callable[[], object] = lambda: None,
    ) -> Samples:  # fmt: skip
        """Clocks of each of the `count` operations of a call [clk]; `prepare` runs before each call. Raises Disturbed."""
        found: list[float] = []
        before = self.clock_Hz()
        for _ in range(TRIES):
            prepare()
            spent = max(self.took(work) - self._call_ns, 1)
            after = self.clock_Hz()
            if abs(after / before - 1) <= STEADY:
                found.append(1e-9 * spent * max(before, after) / count)
            before = after
            if len(found) == samples:
                break
        return settled(found, apart, SECOND)

    def seconds(self, work: Callable[[], object], count: float, apart: float = 0.15, samples: int = SAMPLES) -> Samples:
        """Time of each of the `count` operations of a call [s]; raises Disturbed."""
        return settled([1e-9 * max(self.took(work) - self._call_ns, 1) / count for _ in range(samples)], apart)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thread's part of a sample: processor time [s], and wall time from beginning to end [s]."""

    spent: float
    begin: float
    end: float


def together(work: Sequence[Callable[[], object]], cpus: Sequence[int]) -> list[Turn]:
    """Run each piece of work in a thread of its own, all at once, each on its processor where there is one for all."""
    gate, turns = threading.Barrier(len(work)), [Turn(spent=0.0, begin=0.0, end=0.0)] * len(work)
    pinned = len(work) > 1 and len(cpus) >= len(work) and hasattr(os, "sched_setaffinity")

    def run(place: int) -> None:
        if pinned:
            with contextlib.suppress(OSError):  # the processor was taken away meanwhile
                os.sched_setaffinity(0, {cpus[place]})
        gate.wait()
        begin, processor = time.perf_counter(), time.thread_time()
        work[place]()
        turns[place] = Turn(spent=time.thread_time() - processor, begin=begin, end=time.perf_counter())

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return turns


def overlap(turns: Sequence[Turn]) -> bool:
    """Whether the threads ran at the same time, each on a core that it had for itself."""
    wall = max(turn.end for turn in turns) - min(turn.begin for turn in turns)
    return wall <= OVERLAP * max(turn.spent for turn in turns) + 1e-4


def best_rate(
    work: Sequence[Callable[[], object]], done: float, cpus: Sequence[int] = (), alone: bool = True,
    run: Callable[[Sequence[Callable[[], object]], Sequence[int]], list[Turn]] = together,
) -> Samples:  # fmt: skip
    """The highest rate of all threads together [1/s]: what they did over the processor time of the slowest.

    work: of each thread, which does `done` in all
    alone: only samples count in which the threads ran side by side, as they must where they share what they use; a core's own
        units run as fast while another core has other work, which keeps that core as busy, so that each thread has its best time
    Raises Disturbed where too few samples count.
    """
    kept: list[list[float]] = []
    for _ in range(TRIES):
        turns = run(work, cpus)
        if len(work) == 1 or not alone or overlap(turns):
            kept.append([turn.spent for turn in turns])
        if len(kept) == TOGETHER:
            break
    if len(kept) < FEWEST:
        raise Disturbed(f"other work had a core in all but {len(kept)} of {TRIES} samples of {len(work)} threads")
    columns = [[max(times) for times in kept]] if alone else list(zip(*kept, strict=True))
    slowest = max((settled(column, 0.15) for column in columns), key=lambda found: found.best)
    return Samples(best=done / slowest.best, spread=slowest.spread)


# -------------------------------------------------------------------------------------------------- a stretch of memory

HUGE_B, PAGE_B = 1 << 21, 4096
SLICE_B = 1 << 26  # read in a few milliseconds: less than a core is left alone for beside other work


class Stretch:
    """A stretch of memory, on large pages where they are wanted and the kernel gives them, and chains of addresses through it."""

    def __init__(self, size_B: int, large: bool = True) -> None:
        self.size_B = size_B // HUGE_B * HUGE_B or HUGE_B
        private = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
        room = mmap.mmap(-1, self.size_B + HUGE_B, flags=private)
        advice = getattr(mmap, "MADV_HUGEPAGE" if large else "MADV_NOHUGEPAGE", None)
        if advice is not None:
            with contextlib.suppress(OSError):  # a kernel without large pages
                room.madvise(advice)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(room))
        self.address = -(-begin // HUGE_B) * HUGE_B
        first = (self.address - begin) // 8
        self.words = np.frombuffer(room, np.uint64)[first : first + self.size_B // 8]
        self.chained_B = 0
        self.slice_B = self.size_B // max(1, self.size_B // SLICE_B)
        self._slices = itertools.cycle(range(0, self.size_B // self.slice_B * self.slice_B, self.slice_B))

    def chain(self, size_B: int) -> Any:
        """Every line of the first `size_B` gets the address of another one, all in one cycle: the addresses in its order [N]."""
        lines = max(2, min(size_B, self.size_B) // LINE_B)
        self.chained_B = lines * LINE_B
        return self._linked(np.random.default_rng(0).permutation(lines))

    def pages_chain(self, pages: int) -> Any:
        """The same through one line of each of so many small pages."""
        random, lines = np.random.default_rng(0), PAGE_B // LINE_B
        self.chained_B = pages * PAGE_B
        return self._linked(random.permutation(pages) * lines + random.integers(lines, size=pages))

    def _linked(self, order: Any) -> Any:
        addresses = (self.address + order * LINE_B).astype(np.uint64)
        self.words[order * (LINE_B // 8)] = np.roll(addresses, -1)
        return addresses

    def next_slice(self) -> int:
        """The address of the next slice; all others are visited before it comes again."""
        return self.address + next(self._slices)

    @property
    def pages(self) -> str:
        """What the pages are."""
        try:
            told = Path("/proc/self/smaps_rollup").read_text()
            large = next(int(line.split()[1]) for line in told.splitlines() if line.startswith("AnonHugePages")) * 1024
        except (OSError, StopIteration, ValueError):
            large = 0
        return "large pages" if large >= self.chained_B // 2 else "small pages, page walks included"


class Lines:
    """The lines of a chain in its order, each given out once until all were."""

    def __init__(self, addresses: Any) -> None:
        self._addresses, self._next = addresses, 0

    def take(self, chains: int, turns: int) -> Any:
        """The first addresses of chains that do not overlap in so many turns."""
        begin, self._next = self._next, self._next + chains * turns
        return self._addresses[(begin + np.arange(chains) * turns) % len(self._addresses)]


def size_text(size_B: int) -> str:
    """A size for people.

    >>> size_text(225280), size_text(4 << 20)
    ('220 KiB', '4 MiB')
    """
    return f"{size_B / 2**20:.4g} MiB" if size_B >= 1 << 20 else f"{size_B / 1024:.4g} KiB"
