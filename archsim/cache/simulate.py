"""Running accesses through a hierarchy, chunk by chunk in bounded memory, and the counts that result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.base.machine_code import available
from archsim.cache import inclusion, kernel
from archsim.cache.access import CHUNK, Accesses, Index, Requests, Stream, chunks, requests
from archsim.cache.compile import functions_of
from archsim.cache.hierarchy import MOST_SECTORS, POLICIES, Hierarchy, Level
from archsim.cache.kernel import MOST_PER_REQUEST

FIRST_SEED = 1
# The cells of a level of more than SMALL_LEVEL lines do not stay in the L1 of the computer that simulates, so a set is prefetched
# PREFETCH_DISTANCE requests ahead. Both were chosen by tests/bench/cache.py; results do not depend on them.
SMALL_LEVEL, PREFETCH_DISTANCE = 4096, 16
COUNTED = ("read_hits", "read_misses", "write_hits", "write_misses", "evictions", "dirty_evictions", "invalidations")
COLUMNS = ("source", "line", "mask", "kind", "count")  # of the requests of a level to the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelCount:
    """The counts of one level over all its instances. Traffic is with the level below, or with memory [B]."""

    name: str
    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    evictions: int
    dirty_evictions: int
    invalidations: int
    bytes_read: int
    bytes_written: int

    @property
    def requests(self) -> int:
        """All requests: hits + misses."""
        return self.hits + self.misses

    @property
    def hits(self) -> int:
        """Reads and writes that found their sectors."""
        return self.read_hits + self.write_hits

    @property
    def misses(self) -> int:
        """Reads and writes that did not find them."""
        return self.read_misses + self.write_misses


class Simulation:
    """The state of a hierarchy while accesses run through it.

    fast: compiled (True), plain Python (False), or compiled if numba is installed (None); all give equal counts
    watched: whether to keep the requests to memory, too

    Raises MissingExtra for `fast=True` without numba.

    Two lines in a cache of one line evict each other:

    >>> from archsim.cache.hierarchy import Level
    >>> state = Simulation(Hierarchy(levels=(Level(name="L1", size=64, ways=1),)), fast=False)
    >>> _ = state.feed(Accesses(address=np.array([0, 64, 0])))
    >>> state.counts[0].misses, state.counts[0].bytes_read
    (3, 192)
    """

    def __init__(self, hierarchy: Hierarchy, fast: bool | None = None, watched: bool = False) -> None:
        self.hierarchy, self.accesses = hierarchy, 0
        self.fast = available() if fast is None else fast
        functions = functions_of(kernel, self.fast)
        self._serve, self._set_slots = functions["serve"], functions["set_slots"]
        self._serve_stepwise = functions_of(inclusion, self.fast)["serve_stepwise"]
        self._places = _places(hierarchy)
        last = len(hierarchy.levels) - 1
        steps = [int(watched or i < last or not hierarchy.one_way) for i in range(last + 1)]
        self._shapes = tuple([_shape(hierarchy, i, step) for i, step in enumerate(steps)])
        self._cells = self._as_columns(_empty(hierarchy))
        self._tallies = tuple([self._numbers(kernel.COUNTERS) for _ in hierarchy.levels])
        for tally in self._tallies:
            tally[kernel.SEED] = FIRST_SEED
        self._out: list[list[Any]] = [[] for _ in hierarchy.levels]
        self._tables: dict[str, list[Any]] = {}  # of requests one by one, reused for each piece

    def _numbers(self, count: int) -> Any:
        """Zeros, as a list or an array."""
        return self._as_columns(np.zeros(count, dtype=np.int64))

    def _as_columns(self, column: Any) -> Any:
        return column if self.fast else column.tolist()

    def feed(self, accesses: Accesses) -> list[Requests]:
        """Run more accesses (at most `CHUNK`, for speed); returns the requests to each level, those to memory last.

        The next call overwrites what is returned. Raises ValueError for a core that the hierarchy does not have.
        """
        self.accesses += len(accesses)
        asked = requests(accesses, self.hierarchy.line, self.hierarchy.sector)
        if np.max(accesses.core, initial=0) >= self.hierarchy.cores or np.min(accesses.core, initial=0) < 0:
            raise ValueError(f"an access of core {np.max(accesses.core)}, of {self.hierarchy.cores} from 0 on")
        return self._level_by_level(asked) if self.hierarchy.one_way else self._request_by_request(asked)

    def _level_by_level(self, asked: Requests) -> list[Requests]:
        """Every level processes all requests before the next one does."""
        steps = [asked]
        for i, (place, shape, tally) in enumerate(zip(self._places[:-1], self._shapes, self._tallies, strict=True)):
            core, *columns = [self._as_columns(getattr(asked, name)) for name in ("core", *COLUMNS[1:])]
            columns.insert(0, self._numbers(len(asked)))
            self._set_slots(len(asked), columns[1], core, place, columns[0])
            out = self._room(i, MOST_PER_REQUEST * len(asked) + 1)
            made = self._serve(0, len(asked), *columns, self._cells, shape, *out, 0, tally, len(out[0]))
            named = {name: np.asarray(column[:made], dtype=np.int64) for name, column in zip(COLUMNS, out, strict=True)}
            core = asked.core[:made] if self.hierarchy.cores == 1 and made <= len(asked) else asked.core[named["source"]]
            asked = Requests(core=core, **named)
            steps.append(asked)
        return steps

    def _room(self, level: int, count: int) -> list[Any]:
        """Columns for the requests of a level to the next, reused for each chunk."""
        if not self._out[level] or len(self._out[level][0]) < count:
            self._out[level] = [self._numbers(count) for _ in COLUMNS]
        return self._out[level]

    def _request_by_request(self, asked: Requests) -> list[Requests]:
        """Every request goes through all levels before the next one does."""
        parts = [self._stepwise(asked, begin) for begin in range(0, len(asked), CHUNK)]
        if len(parts) < 2:
            return parts[0] if parts else [asked]
        return [_joined([part[k] for part in parts], [part[k - 1] for part in parts] if k else [])
                for k in range(len(self.hierarchy.levels) + 1)]  # fmt: skip

    def _stepwise(self, asked: Requests, begin: int) -> list[Requests]:
        levels, names = len(self.hierarchy.levels), ("slot", "line", "mask", "kind", "count", "core", "source")
        total, tables = min(CHUNK, len(asked) - begin), self._tables
        if not tables or len(tables["slot"][0]) < total:
            tables |= {name: [self._numbers(total * MOST_PER_REQUEST**k) for k in range(levels + 1)] for name in names}
        for name in names[1:]:
            tables[name][0] = self._as_columns(getattr(asked, name)[begin : begin + total])
        made = self._numbers(levels + 1)
        made[0] = total
        inclusive = tuple([int(level.holds == "inclusive") for level in self.hierarchy.levels])
        self._serve_stepwise(total, *(tuple(tables[name]) for name in names), self._cells, self._shapes, self._places, inclusive,
                   self._tallies, made)  # fmt: skip
        copy = np.array if len(asked) > CHUNK else np.asarray
        return [
            Requests(**{name: copy(tables[name][k][: made[k]], dtype=np.int64) for name in names[1:]})
            for k in range(levels + 1)
        ]

    @property
    def counts(self) -> tuple[LevelCount, ...]:
        """The counts of every level so far."""
        return tuple([
            _count(level, tally, self.hierarchy.sector) for level, tally in zip(self.hierarchy.levels, self._tallies, strict=True)
        ])  # fmt: skip

    def cells(self, level: int) -> Index:
        """The state of a level, [sets of all instances, rows, ways]; the rows are tags, sectors and, for some policies, ages."""
        begin, sets, width, *_ = self._places[level]
        end = begin + width * sets * self.hierarchy.instances(level)
        whole = np.asarray(self._cells[begin:end], dtype=np.int64)
        return whole.reshape(-1, *_set_shape(self.hierarchy.levels[level]))[:, :, :-1]

    @property
    def dirty_bytes(self) -> tuple[int, ...]:
        """Dirty data of each level that is not yet written below [B]."""
        found = []
        for i in range(len(self.hierarchy.levels)):
            dirty = self.cells(i)[:, 1] >> kernel.DIRTY
            found.append(sum(int(np.count_nonzero(dirty & (1 << bit))) for bit in range(MOST_SECTORS)))
        return tuple([count * self.hierarchy.sector for count in found])


def _places(hierarchy: Hierarchy) -> tuple[tuple[int, int, int, int, int], ...]:
    """For each level (first slot, sets, cells of a set, hashed, cores that share), then a row with the number of cores."""
    places, begin = [], 0
    for i, level in enumerate(hierarchy.levels):
        width = math.prod(_set_shape(level))
        places.append((begin, level.sets, width, int(level.hashed), level.cores))
        begin += width * level.sets * hierarchy.instances(i)
    return (*places, (hierarchy.cores, 1, 1, 0, 1))


def _set_shape(level: Level) -> tuple[int, int]:
    """Rows and columns of the cells of one set, in the layout of `kernel`."""
    return (2 if POLICIES[level.policy] in (kernel.LRU, kernel.FIFO, kernel.RANDOM) else 3, level.ways + 1)


def _empty(hierarchy: Hierarchy) -> Any:
    """The cells of empty caches."""
    parts = []
    for i, level in enumerate(hierarchy.levels):
        cells = np.zeros((level.sets * hierarchy.instances(i), *_set_shape(level)), dtype=np.int64)
        cells[:, 0] = -1
        parts.append(cells.ravel())
    return np.concatenate(parts)


def _shape(hierarchy: Hierarchy, i: int, step: int) -> tuple[int, ...]:
    """The tuple `shape` of `kernel.serve` for one level."""
    level = hierarchy.levels[i]
    below = hierarchy.levels[i + 1].holds if i + 1 < len(hierarchy.levels) else "any"
    clean = level.holds == "inclusive" or below == "exclusive"
    flags = (level.write == "back", level.allocate, level.fetch, level.writes_touch, level.holds == "exclusive", clean)
    grain, ahead = (level.sector or level.line) // hierarchy.sector, PREFETCH_DISTANCE if level.lines > SMALL_LEVEL else 0
    return (level.ways, POLICIES[level.policy], *map(int, flags), grain, step, ahead)


def _count(level: Level, tally: Any, sector: int) -> LevelCount:
    counted = {name: int(tally[getattr(kernel, name.upper())]) for name in COUNTED}
    return LevelCount(
        name=level.name, **counted, bytes_read=int(tally[kernel.SECTORS_READ]) * sector,
        bytes_written=int(tally[kernel.SECTORS_WRITTEN]) * sector,
    )  # fmt: skip


def _joined(rows: list[Requests], above: list[Requests]) -> Requests:
    """Pieces of requests as one; the source of each is its place among those to the level above."""
    found = {name: np.concatenate([getattr(row, name) for row in rows]) for name in (*COLUMNS, "core")}
    if above:
        found["source"] += np.repeat(np.cumsum([0, *map(len, above[:-1])]), [len(row) for row in rows])
    return Requests(**found)


def simulate(hierarchy: Hierarchy, stream: Stream, fast: bool | None = None) -> Simulation:
    """Run a whole stream from cold caches.

    >>> import numpy as np
    >>> from archsim.cache.hierarchy import Level
    >>> one = Hierarchy(levels=(Level(name="L1", size=1024, ways=2),))
    >>> simulate(one, [Accesses(address=np.arange(0, 512, 8))], fast=False).counts[0].misses
    8
    """
    state = Simulation(hierarchy, fast)
    for accesses in chunks(stream):
        state.feed(accesses)
    return state
