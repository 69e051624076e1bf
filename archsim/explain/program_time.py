"""The time of a traced program: its accesses by the level that has their line go to the core of the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from archsim.base.errors import ArgumentError
from archsim.cache.access import CHUNK, Accesses, Index, Requests
from archsim.cache.kernel import READ, WRITE
from archsim.cycle.core.machine import core_machine
from archsim.cycle.core.misses import AccessCounts, MissWindow, ProgramTime, level_names, program_time
from archsim.device.device import Cpu
from archsim.device.spec import Spec


class ProgramClock:
    """Counts the instructions between the accesses of a trace, and hands their misses to the core in the order of the program.

    Raises ArgumentError for a GPU, Unsupported for a core without the keys of its pipeline.
    """

    def __init__(self, spec: Spec) -> None:
        if not isinstance(spec.device, Cpu):
            raise ArgumentError(f"hw {spec.identity.id}: --time is of a program on a CPU")
        self.clock = float(np.ravel(spec.device.usual_clock)[0])
        self.machine = core_machine(spec.device, self.clock)
        self.counts = AccessCounts(hits=[0] * len(level_names(self.machine)))
        self.window = MissWindow(self.machine)
        self._fetched, self._accesses, self._stores = 0, 0, 0
        self._of: tuple[Index, Index, Index] | None = None  # of the accesses that were handed on last

    def data(self, parts: Iterable[Accesses], fetches: bool) -> Iterator[Accesses]:
        """The accesses of a trace with its instructions, in pieces that a simulation takes at once.

        fetches: whether to hand instructions on, too, as those of core 1
        """
        for whole in parts:
            for begin in range(0, len(whole), CHUNK):
                part = whole.part(begin, begin + CHUNK)
                fetched = np.broadcast_to(np.asarray(part.core), len(part)) == 1
                stored = (np.broadcast_to(np.asarray(part.store), len(part)) == 1) & ~fetched
                size = np.broadcast_to(np.asarray(part.size), len(part))
                instruction = self._fetched + np.cumsum(fetched)
                access, store = self._accesses + np.cumsum(~fetched), self._stores + np.cumsum(stored)
                self._fetched, self._accesses, self._stores = int(instruction[-1]), int(access[-1]), int(store[-1])
                self.counts.loaded += int(size[~fetched & ~stored].sum())
                self.counts.stored += int(size[stored].sum())
                position = instruction if self._fetched else access
                if fetches:
                    self._of = position, store, stored.astype(np.int64)
                    yield part
                    continue
                kept = ~fetched
                self._of = position[kept], store[kept], stored[kept].astype(np.int64)
                yield Accesses(address=part.address[kept], size=size[kept], store=stored[kept].astype(np.int64))

    def take(self, steps: Sequence[Requests]) -> None:
        """The requests to each level that the accesses of the last piece caused."""
        assert self._of is not None
        position, store, stored = self._of
        level = levels_of(steps)
        of_data = np.asarray(steps[0].core) == 0
        missed = np.flatnonzero(of_data & (level > 0))
        self.counts.hits[0] += int(steps[0].count[of_data].sum()) - len(missed)
        for at, lines in enumerate(np.bincount(level[missed], minlength=len(self.counts.hits)).tolist()):
            self.counts.hits[at] += lines
        source = steps[0].source[missed]
        columns = (position[source], store[source], stored[source], level[missed], steps[0].line[missed])
        for row in zip(*(column.tolist() for column in columns), strict=True):
            self.window.miss(row[0], row[1], bool(row[2]), row[3], row[4])

    def time(self) -> ProgramTime:
        """The time of what was taken so far."""
        self.counts.instructions = self._fetched or self._accesses
        return program_time(self.machine, self.counts, self.window, self.clock, counted=self._fetched > 0)


def levels_of(steps: Sequence[Requests]) -> Index:
    """For each request to the first level, which level has its line: 0 for the first, the number of levels for memory.

    A request that misses asks the next level to read; what levels write back is nobody's to wait for.
    """
    level = np.zeros(len(steps[0]), dtype=np.int64)
    root = np.arange(len(steps[0]))
    wanted = (steps[0].kind == READ) | (steps[0].kind == WRITE)
    for depth, step in enumerate(steps[1:], start=1):
        asks = (step.kind == READ) & wanted[step.source]
        root = root[step.source]
        level[root[asks]] = depth
        wanted = asks
    return level
