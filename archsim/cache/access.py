"""Accesses as columns, and the line requests of a cache; loop nests around runs of bytes, as addresses and as footprints.

One description serves two questions. `addresses` gives the accesses in program order, for an exact simulation. `footprint` counts
the distinct lines that some of the loops touch, from which `archsim.cache.reuse` has the stack distances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
COLLAPSE_BELOW = 0.9  # equal neighbours are merged where at most this share of the requests remains; else it costs more time
CHUNK = 1 << 15  # accesses processed at once: columns of this length stay in the L2 of the computer that simulates


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """Memory accesses in program order, as columns.

    address: first byte, [N]
    size: bytes [B], a number or [N]
    store: 1 for a store, 0 for a load, a number or [N]
    core: index of the core, a number or [N]
    """

    address: Index
    size: Index | int = 8
    store: Index | int = 0
    core: Index | int = 0

    def __len__(self) -> int:
        return len(self.address)

    def part(self, begin: int, end: int) -> Accesses:
        """Accesses `begin` to `end`."""
        size, store, core = (column if isinstance(column, int) else column[begin:end]
                             for column in (self.size, self.store, self.core))  # fmt: skip
        return Accesses(address=self.address[begin:end], size=size, store=store, core=core)


Stream = Iterable[Accesses]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests for lines, as columns [M].

    line: line number; mask: its requested sectors as bits; kind: as in `kernel`; count: consecutive repetitions; core: index of
    the core; source: position of the access or request that caused it
    """

    line: Index
    mask: Index
    kind: Index
    count: Index
    core: Index
    source: Index

    def __len__(self) -> int:
        return len(self.line)


def chunks(stream: Stream, most: int = CHUNK) -> Iterator[Accesses]:
    """The stream in pieces of at most `most` accesses."""
    for accesses in stream:
        for begin in range(0, len(accesses), most):
            yield accesses if len(accesses) <= most else accesses.part(begin, begin + most)


def requests(accesses: Accesses, line: int, sector: int) -> Requests:
    """The line requests of some accesses, in order.

    line, sector: their sizes [B], powers of two

    An access that straddles lines makes one request for each. Consecutive requests for the same sectors of the same line, of one
    kind and core, become one with a count. Raises ValueError for a size below 1 B.

    Two words of one line, then 8 B that straddle two lines:

    >>> found = requests(Accesses(address=np.array([0, 8, 60])), line=64, sector=64)
    >>> found.line.tolist(), found.count.tolist()
    ([0, 1], [3, 1])
    """
    begin, size, store, core = accesses.address, accesses.size, accesses.store, accesses.core
    if np.min(size, initial=1) < 1:
        raise ValueError("an access of less than one byte")
    shift = line.bit_length() - 1
    number, source = _line(begin, shift), _counted(len(begin))
    if not _aligned(begin, size, line):
        last = _line(begin + (size - 1), shift)
        if (number != last).any():
            times = last - number + 1
            first, source = number, np.repeat(source, times)
            number = first[source] + np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
    mask: Index | int = 1
    if sector < line:
        mask = _sectors(begin[source], size if isinstance(size, int) else size[source], number, line, sector)
    kind = store if isinstance(store, int) else store[source] if len(source) > len(store) else store
    core = core if isinstance(core, int) else core[source] if len(source) > len(core) else core
    return _collapsed(number, mask, kind, core, source)


def _aligned(begin: Index, size: Index | int, line: int) -> bool:
    """Whether every access lies on a multiple of its size, a power of two, so that none straddles lines."""
    return isinstance(size, int) and size <= line and size & (size - 1) == 0 and not np.bitwise_or.reduce(begin) & (size - 1)


def _line(address: Index, shift: int) -> Index:
    """The line number of an address, which is unsigned 64 bits."""
    return (address.view(np.uint64) >> np.uint64(shift)).view(np.int64)


def _sectors(begin: Index, size: Index | int, number: Index, line: int, sector: int) -> Index:
    """The sectors of line `number` that bytes `begin` to `begin + size` touch, as bits."""
    start = number * line
    low = np.maximum(begin - start, 0) // sector
    high = np.minimum(begin + size - 1 - start, line - 1) // sector
    return np.asarray((np.int64(2) << high) - (np.int64(1) << low))


def _collapsed(line: Index, mask: Index | int, kind: Index | int, core: Index | int, source: Index) -> Requests:
    """Requests with equal neighbours merged into one with a count, where that shortens the columns enough."""
    new = line[1:] != line[:-1]
    count: Index | int = 1
    if np.count_nonzero(new) < COLLAPSE_BELOW * len(new):
        for column in (mask, kind, core):
            if not isinstance(column, int):
                new |= column[1:] != column[:-1]
        starts = np.concatenate([[0], np.flatnonzero(new) + 1])
        count = np.diff(starts, append=len(line))
        line, source = line[starts], source[starts]
        mask, kind, core = (column if isinstance(column, int) else column[starts] for column in (mask, kind, core))
    mask, kind, count, core = (_column(column, len(line)) for column in (mask, kind, count, core))
    return Requests(line=line, mask=mask, kind=kind, count=count, core=core, source=source)


def _column(value: Index | int, length: int) -> Index:
    """A column as it is, or one number as a column."""
    if not isinstance(value, int):
        return value
    return _constant(value)[:length] if length <= CHUNK else np.full(length, value)


def _counted(length: int) -> Index:
    """0, 1, 2, ..."""
    return _positions()[:length] if length <= CHUNK else np.arange(length)


@lru_cache(maxsize=1)
def _positions() -> Index:
    return np.arange(CHUNK)


@lru_cache(maxsize=64)
def _constant(value: int) -> Index:
    """A column of one number, shared by many chunks; nobody writes to it.

    It is not marked read-only: numba would compile every function again for each mix of read-only and writable columns.
    """
    return np.full(CHUNK, value)


# ----------------------------------------------------------------------------------------------------------- loop nests

REGION = 1 << 40  # B between arrays, which are smaller
OFFSET = 4096 + 256  # B by which each array begins later than the one before in its region, as allocations do
PATTERN = 1 << 15  # accesses whose addresses are computed at once
LOAD, STORE, UPDATE = "load", "store", "update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A run of bytes of an array that each iteration of the loops around it loads, stores, or loads and stores (`update`).

    address of its first byte = base of the array + begin + sum of stride x index over the loops
    run: bytes [B]; strides: (loop, stride [B]), 0 for loops that are not named
    """

    array: str
    run: int
    strides: tuple[tuple[str, int], ...] = ()
    begin: int = 0
    mode: str = LOAD

    def stride(self, loop: str) -> int:
        """How far the run moves in one iteration of a loop [B]."""
        return next((stride for name, stride in self.strides if name == loop), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedLoop:
    """`trips` iterations of a body, whose nodes run one after the other. `parallel`: cores or CTAs share the iterations."""

    name: str
    trips: int
    body: tuple[NestedLoop | Ref, ...]
    parallel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """A kernel. `warm` are the arrays that ops before have touched with their sizes [B], the last one last.

    At most the outermost loop is parallel.
    """

    body: tuple[NestedLoop | Ref, ...]
    warm: tuple[tuple[str, float], ...] = ()

    @property
    def parallel(self) -> NestedLoop | None:
        """The loop whose iterations are shared."""
        return next((node for node in self.body if isinstance(node, NestedLoop) and node.parallel), None)

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of all arrays, sorted."""
        return tuple(sorted({ref.array for ref in refs_of(self.body)} | {name for name, _ in self.warm}))


def loop(name: str, trips: int, *body: NestedLoop | Ref) -> NestedLoop:
    """A loop that each core or CTA runs as a whole."""
    return NestedLoop(name=name, trips=trips, body=body)


def dealt(name: str, trips: int, *body: NestedLoop | Ref) -> LoopNest:
    """A kernel that is one loop, whose iterations cores or CTAs share."""
    return LoopNest(body=(NestedLoop(name=name, trips=trips, body=body, parallel=True),))


def refs_of(body: Sequence[NestedLoop | Ref]) -> list[Ref]:
    """All references of some nodes, in program order."""
    return [ref for node in body for ref in ([node] if isinstance(node, Ref) else refs_of(node.body))]


def runs_of(body: Sequence[NestedLoop | Ref]) -> int:
    """How many runs some nodes access [1]: a load and a store for each update."""
    return sum((1 + (node.mode == UPDATE)) if isinstance(node, Ref) else node.trips * runs_of(node.body) for node in body)


@lru_cache(maxsize=1 << 16)
def footprint(run: int, loops: tuple[tuple[float, float], ...], unit: int, grain: int) -> float:
    """Distinct units (lines, sectors) that a run touches in some loops around it.

    run: bytes [B]; loops: (stride [B], iterations) of each; unit: [B]; grain: alignment of its addresses [B], at most `unit`

    Loops are taken by their strides, from the smallest on. One whose stride is no longer than what the loops before cover extends
    that range, as taps and rows of windows do; another one repeats it. A range of e bytes at any multiple of g bytes touches
    (e - g) / unit + 1 units on average.

    >>> footprint(16, ((16.0, 8.0),), unit=64, grain=64)  # 128 B in a row
    2.0
    >>> footprint(64, ((256.0, 3.0), (512.0, 4.0)), unit=64, grain=64)  # windows of 3 rows at every second row: 9 rows
    9.0
    """
    pieces: list[list[float]] = [[1.0, float(run)]]
    for stride, trips in sorted(loops):
        if stride <= 0 or trips <= 1:
            continue
        pitch, count = pieces[-1]
        if stride <= pitch * count:
            pieces[-1][1] = count + (trips - 1.0) * stride / pitch
        else:
            pieces.append([stride, trips])
    extent = pieces[0][1]
    units = float(ceil(extent / unit)) if grain >= unit else max(1.0, (extent - grain) / unit + 1.0)
    for pitch, count in pieces[1:]:
        units += (count - 1.0) * min(units, pitch / unit)
    return units


def grain_of(ref: Ref, unit: int) -> int:
    """The alignment of the addresses of a reference [B], at most `unit`."""
    return gcd(unit, ref.begin, *[stride for _, stride in ref.strides])


def addresses(nest: LoopNest, cores: int = 1) -> Iterator[Accesses]:
    """The accesses of a nest in program order; the iterations of a parallel loop are dealt to `cores` in turn.

    >>> copy = NestedLoop(name="i", trips=2, body=(Ref(array="b", run=8, strides=(("i", 8),)), Ref(array="c", run=8, mode=STORE)))
    >>> [part.store.tolist() for part in addresses(LoopNest(body=(copy,)))]
    [[0, 1, 0, 1]]
    """
    names = {name: i for i, name in enumerate(nest.arrays)}
    refs = refs_of(nest.body)
    base = np.array([names[ref.array] * (REGION + OFFSET) + ref.begin for ref in refs], dtype=np.int64)
    position = 0
    for node in nest.body:
        own = refs[position : position + len(refs_of([node]))]
        for i, part in _accesses(node, position, own, base):
            yield part if i is None or cores == 1 else Accesses(
                address=part.address, size=part.size, store=part.store, core=i % cores)  # fmt: skip
        position += len(own)


def _accesses(node: NestedLoop | Ref, first: int, refs: list[Ref], base: Index) -> Iterator[tuple[int | None, Accesses]]:
    """The accesses of a node whose references are `refs`, of which the first has this number; with its parallel iteration."""
    if isinstance(node, Ref) or (runs_of([node]) <= PATTERN and not node.parallel):
        number, offset, size, store = _pattern(node, first)
        yield None, Accesses(address=base[number] + offset, size=size, store=store)
        return
    step = np.zeros(len(base), dtype=np.int64)
    step[first : first + len(refs)] = [ref.stride(node.name) for ref in refs]
    inner = [(child, len(refs_of([child]))) for child in node.body]
    for i in range(node.trips):
        at, begin = first, base + i * step
        for child, count in inner:
            for within, part in _accesses(child, at, refs[at - first : at - first + count], begin):
                yield (i if node.parallel else within), part
            at += count


@lru_cache(maxsize=256)
def _pattern(node: NestedLoop | Ref, first: int) -> tuple[Index, Index, Index, Index]:
    """The accesses of a short node: number of the reference, offset [B], size [B], whether it stores."""
    if isinstance(node, Ref):
        kinds = {LOAD: [0], STORE: [1], UPDATE: [0, 1]}[node.mode]
        count = len(kinds)
        return np.full(count, first), np.zeros(count, dtype=np.int64), np.full(count, node.run), np.array(kinds)
    parts = []
    at = first
    for child in node.body:
        parts.append(_pattern(child, at))
        at += len(refs_of([child]))
    number, offset, size, store = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    strides = np.array([ref.stride(node.name) for ref in refs_of([node])], dtype=np.int64)
    moved = offset[None, :] + np.arange(node.trips)[:, None] * strides[number - first]
    return np.tile(number, node.trips), moved.ravel(), np.tile(size, node.trips), np.tile(store, node.trips)
