"""NestedLoop nests: the loops of a kernel around the runs of bytes that it loads and stores, as addresses and as footprints.

One description serves two questions. `addresses` gives the accesses in program order, for an exact simulation. `footprint` counts
the distinct lines that some of the loops touch, from which `archsim.cache.reuse` has the stack distances.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

from archsim.cache.access import Accesses

Index = NDArray[np.int64]
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


def warm_up(nest: LoopNest, most: int, line: int) -> Iterator[Accesses]:
    """What ops before have left: stores of the end of each warm array, of `most` bytes at most, the last one last."""
    names = {name: i for i, name in enumerate(nest.arrays)}
    for array, size in nest.warm:
        begin = max(0, int(size) - most) // line * line
        address = names[array] * (REGION + OFFSET) + np.arange(begin, int(size), line, dtype=np.int64)
        yield Accesses(address=address, size=line, store=1)
