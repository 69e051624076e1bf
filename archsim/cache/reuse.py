"""Bytes that a loop nest moves through caches, from the stack distances of its loops.

A reference comes back to a line in the next iteration of some loop around it. Between the two uses the nest touches what one
iteration of that loop touches: the stack distance (Mattson et al. 1970; for loop nests Wolf and Lam 1991, as layer conditions
Stengel et al. 2015). The use hits where the distance is less than the cache holds. So the bytes of each level follow from a few
footprints, whatever the size of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, log1p, prod

from archsim.cache.access import STORE, UPDATE, LoopNest, NestedLoop, Ref, footprint, grain_of, refs_of

PARTS = (1 / 6, 1 / 2, 5 / 6)  # of what runs beside the use of a line, where lines are written and read in other orders
ROUNDING = 1e-9  # of misses: less is what floats leave of none
POINTS = 16  # of a warm array, at which the chance to find it in the cache is computed


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheView:
    """One level of caches as a nest sees it. size, line, sector in bytes [B].

    sharers: cores or CTAs that share one instance
    hashed: lines fall into sets as if at random; otherwise a contiguous array fills all sets evenly
    allocate: stores take up lines; otherwise each goes to the level below (write through)
    fetch: a store that misses reads the line first
    warm: whether it holds what the op before has touched
    settled: whether results that stay in it are the business of the op after; otherwise all that is written counts
    """

    size: float
    ways: float
    line: int
    sector: int
    sharers: float = 1
    hashed: bool = False
    allocate: bool = True
    fetch: bool = True
    warm: bool = True
    settled: bool = True

    def hits(self, distance: float) -> float:
        """Probability that a use at this stack distance [lines] hits."""
        lines = self.size / self.line
        if self.hashed:
            return tail(round(distance, 3), max(1.0, lines / self.ways), int(self.ways))
        return min(1.0, max(0.0, self.ways * (1.0 - distance / lines) + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Bytes between a level and the one below it [B]."""

    read: float
    written: float

    @property
    def total(self) -> float:
        """Both directions [B]."""
        return self.read + self.written


@lru_cache(maxsize=1 << 14)
def tail(distance: float, sets: float, ways: int) -> float:
    """Probability that fewer than `ways` of `distance` lines fall into one of `sets` sets (Smith 1978).

    As `distance.hit_chance`, for one distance, which need not be whole.

    >>> round(tail(2.0, 2.0, 1), 6)
    0.25
    """
    if sets <= 1.0:
        return float(distance < ways)
    term = distance * log1p(-1.0 / sets)
    total = exp(term)
    for k in range(1, ways):
        left = distance - k + 1.0
        if left <= 0.0:
            return 1.0
        term += log(left) - log(k) - log(sets - 1.0)
        total += exp(term)
    return min(1.0, total)


def moved(nest: LoopNest, levels: Sequence[CacheView], workers: float, dealt: bool = False) -> tuple[Moved, ...]:
    """Bytes below each of some levels, from the first on [B].

    workers: cores, or CTAs that run at the same time, which share the iterations of the parallel loop: each takes a block of
        them, or, `dealt`, they take them in turn
    """
    parallel = nest.parallel
    team = max(1.0, min(workers, parallel.trips if parallel else 1.0))
    found: list[Moved] = []
    for level in levels:
        one = _NestAtLevel(nest=nest, level=level, team=team, dealt=dealt).bytes()
        if found:  # what a level does not ask for cannot miss below it
            one = Moved(read=min(one.read, found[-1].read), written=min(one.written, found[-1].written))
        found.append(one)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NestAtLevel:
    """A nest at one level."""

    nest: LoopNest
    level: CacheView
    team: float
    dealt: bool

    @property
    def sharers(self) -> float:
        return max(1.0, min(self.level.sharers, self.team))

    def bytes(self) -> Moved:
        """Bytes to and from the level below [B]."""
        misses = dict(self._body(self.nest.body, ()))
        read = written = 0.0
        paths = _paths(self.nest.body)
        first: set[str] = set()
        for i, (ref, path) in enumerate(paths):
            count = allocated = misses[i] * self._copies(ref)
            if ref.array not in first and self.level.warm:
                count -= min(count, self._all(ref, path, self.level.sector)) * self._found(ref.array)
                count = count if count > ROUNDING * allocated else 0.0
            first.add(ref.array)
            if ref.mode in (STORE, UPDATE):
                dropped = (count if self.level.settled else allocated) * self.level.sector
                written += dropped if self.level.allocate else self._stores(ref, path)
            if ref.mode != STORE or (self.level.fetch and self.level.allocate):
                read += count * self.level.sector
        return Moved(read=read, written=written)

    def _body(self, body: Sequence[NestedLoop | Ref], path: tuple[NestedLoop, ...], first: int = 0) -> list[tuple[int, float]]:
        """(number of the reference, misses [sectors]) of one execution of some nodes, one after the other."""
        parts: list[list[tuple[int, float]]] = []
        at = first
        for node in body:
            parts.append(self._node(node, path, at))
            at += len(refs_of([node]))
        if len(body) == 1:
            return parts[0]
        held = [self._lines([node], path, first) for node in body]
        for j in range(1, len(body)):
            for array in held[j]:
                i = next((i for i in range(j - 1, -1, -1) if array in held[i]), None)
                if i is None:
                    continue
                between, before, behind = _between(held, i, j, array)
                hits = [self.level.hits(between + x * before + y * behind) for x in PARTS for y in PARTS]
                share = min(1.0, held[i][array] / held[j][array]) * sum(hits) / len(hits)
                parts[j] = self._relieved(parts[j], array, share, held[j][array])
        return [pair for part in parts for pair in part]

    def _relieved(self, part: list[tuple[int, float]], array: str, share: float, lines: float) -> list[tuple[int, float]]:
        """The misses of a node whose first uses of an array hit with a probability, as a node before has used it."""
        refs = refs_of(self.nest.body)
        own = self.level.line / self.level.sector * lines / max(1.0, self._copies_of(array))
        return [(i, count - share * min(count, own) if refs[i].array == array else count) for i, count in part]

    def _node(self, node: NestedLoop | Ref, path: tuple[NestedLoop, ...], first: int) -> list[tuple[int, float]]:
        if isinstance(node, Ref):
            return [(first, self._units(node, (), self.level.sector))]
        inner = (*path, node)
        body = self._body(node.body, inner, first)
        trips = self._trips(node)
        if trips <= 1.0:
            return body
        lines = self._lines(node.body, inner, first)
        hits = self.level.hits(sum(lines.values()))
        found = []
        paths = dict(enumerate(_paths(self.nest.body)))
        for i, count in body:
            ref, loops = paths[i]
            below = loops[len(inner) :]
            one = self._units(ref, below, self.level.line)
            whole = self._units(ref, (node, *below), self.level.line)
            again = max(0.0, min(1.0, (trips * one - whole) / ((trips - 1.0) * one)))
            found.append((i, count * (1.0 + (trips - 1.0) * (1.0 - again * hits))))
        return found

    def _lines(self, body: Sequence[NestedLoop | Ref], path: tuple[NestedLoop, ...], first: int) -> dict[str, float]:
        """Lines of each array that one execution of some nodes touches, by all that share the cache."""
        found: dict[str, float] = {}
        for ref, loops in _paths(body):
            if ref.mode == STORE and not self.level.allocate:
                continue
            lines = self._units(ref, loops, self.level.line) * self._copies_in_cache(ref)
            found[ref.array] = max(found.get(ref.array, 0.0), lines)
        return found

    def _units(self, ref: Ref, loops: Sequence[NestedLoop], unit: int) -> float:
        """Distinct units that a reference touches in some loops of one worker."""
        spaced = self.team if self.dealt else 1.0
        around = tuple([(ref.stride(one.name) * (spaced if one.parallel else 1.0), self._trips(one)) for one in loops])
        return footprint(ref.run, around, unit, grain_of(ref, unit))

    def _all(self, ref: Ref, path: Sequence[NestedLoop], unit: int) -> float:
        """Distinct units that a reference touches in the whole nest, once for each instance of the cache."""
        around = tuple([(float(ref.stride(one.name)), float(one.trips)) for one in path])
        instances = self.team / self.sharers if self._alike(ref) else 1.0
        return footprint(ref.run, around, unit, grain_of(ref, unit)) * instances

    def _trips(self, loop: NestedLoop) -> float:
        return max(1.0, loop.trips / self.team) if loop.parallel else float(loop.trips)

    def _alike(self, ref: Ref) -> bool:
        """Whether all workers use the same part of an array."""
        parallel = self.nest.parallel
        return parallel is not None and ref.stride(parallel.name) == 0

    def _copies_in_cache(self, ref: Ref) -> float:
        """How many times what one worker touches is touched by all that share one instance."""
        parallel, sharers = self.nest.parallel, self.sharers
        if parallel is None or sharers == 1.0 or self._alike(ref):
            return 1.0
        if not self.dealt:
            return sharers
        path = next(path for other, path in _paths(self.nest.body) if other is ref)
        below, line = path[1:], self.level.line
        around = tuple([(float(ref.stride(one.name)), float(one.trips)) for one in below])
        apart = ref.stride(parallel.name) * self.team / sharers
        grain = grain_of(ref, line)
        one = footprint(ref.run, around, line, grain)
        return min(sharers, footprint(ref.run, (*around, (apart, sharers)), line, grain) / one)

    def _copies_of(self, array: str) -> float:
        return max(self._copies_in_cache(ref) for ref in refs_of(self.nest.body) if ref.array == array)

    def _copies(self, ref: Ref) -> float:
        """Misses of all workers over those of one: of those that share an instance, once for what they share."""
        return self._copies_in_cache(ref) * self.team / self.sharers

    def _stores(self, ref: Ref, path: Sequence[NestedLoop]) -> float:
        """Bytes of all stores of a reference, in whole sectors [B]."""
        times = prod((one.trips for one in path), start=1.0)
        return times * self.level.sector * footprint(ref.run, (), self.level.sector, grain_of(ref, self.level.sector))

    def _found(self, array: str) -> float:
        """Share of an array that ops before have left in the cache and that is still there when it is read.

        At the share x of the kernel, the lines used since are the rest of the array, all arrays touched after it, and x of what
        the kernel itself adds.
        """
        names = [name for name, _ in self.nest.warm]
        if array not in names:
            return 0.0
        instances = self.team / self.sharers
        sizes = {name: size / self.level.line / instances for name, size in self.nest.warm}
        after = sum(sizes[name] for name in names[names.index(array) :])
        new = 0.0
        seen: set[str] = set(names[names.index(array) :])
        for ref, path in _paths(self.nest.body):
            if ref.array not in seen and (ref.mode != STORE or self.level.allocate):
                seen.add(ref.array)
                new += self._all(ref, path, self.level.line) / (1.0 if self._alike(ref) else instances)
        return sum(self.level.hits(after + (i + 0.5) / POINTS * new) for i in range(POINTS)) / POINTS


def _between(held: Sequence[Mapping[str, float]], i: int, j: int, array: str) -> tuple[float, float, float]:
    """Lines between the uses of an array by nodes i and j: all of it with what lies between, and what runs beside either."""
    between, beside = max(held[i][array], held[j][array]), {i: 0.0, j: 0.0}
    for k in range(i, j + 1):
        others = sum(lines for name, lines in held[k].items() if name != array)
        if k in beside:
            beside[k] = others
        else:
            between += others
    return between, beside[i], beside[j]


def _paths(body: Sequence[NestedLoop | Ref], outer: tuple[NestedLoop, ...] = ()) -> list[tuple[Ref, tuple[NestedLoop, ...]]]:
    """Every reference with the loops around it, from the outermost on."""
    found: list[tuple[Ref, tuple[NestedLoop, ...]]] = []
    for node in body:
        found += [(node, outer)] if isinstance(node, Ref) else _paths(node.body, (*outer, node))
    return found
