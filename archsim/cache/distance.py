"""Stack distances: how many other lines were used since a line was used last, and the hits of every capacity that follow.

A fully associative LRU cache of C lines hits exactly the uses of distance less than C (Mattson et al. 1970), so that one pass
gives the hits of all sizes. The distance is counted by a Fenwick tree over the order of last uses, O(log n) each (Bennett and
Kruskal 1975).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.cache import follow
from archsim.cache.compile import available, functions_of

Index = NDArray[np.int64]
Array = NDArray[np.float64]
MOST_LINES = 1 << 23  # distinct lines that are followed: 512 MiB of lines of 64 B, in about 200 MB
FIRST_ROOM = 1 << 16


class Distances:
    """Counts stack distances of lines as they are used. `fast` as in `Simulation`."""

    def __init__(self, fast: bool | None = None) -> None:
        self.fast = available() if fast is None else fast
        functions = functions_of(follow, self.fast)
        self._follow, self._remember = functions["follow"], functions["remember"]
        self.cold, self.lines = 0, 0
        self._again = np.zeros(0, dtype=np.int64)  # [distance]: uses
        self._now = 0
        self._settle(np.zeros(0, dtype=np.int64), FIRST_ROOM)

    def feed(self, line: Index, count: Index | None = None) -> Index:
        """The distance of each use in order, -1 for the first use of a line; `count` says how often each is repeated.

        Raises ValueError for more distinct lines than can be followed.
        """
        if self._now + len(line) + 1 >= len(self._tree):
            self._settle(self._order(), len(line))
        out = self._given(np.zeros(len(line), dtype=np.int64))
        self._follow(len(line), self._given(line), self._keys, self._times, self._tree, self._now, self.lines, out)
        distance = np.asarray(out, dtype=np.int64)
        self._now += len(line)
        first = distance < 0
        self.cold += int(first.sum())
        self.lines = self.cold
        found = np.bincount(distance[~first])
        longest = max(len(found), len(self._again), 1)
        self._again = np.pad(self._again, (0, longest - len(self._again))) + np.pad(found, (0, longest - len(found)))
        if count is not None:
            self._again[0] += int((count - 1).sum())
        return distance

    def _order(self) -> Index:
        """The lines in order of their last use."""
        keys, times = np.asarray(self._keys, dtype=np.int64), np.asarray(self._times, dtype=np.int64)
        used = np.flatnonzero(keys >= 0)
        ordered: Index = keys[used][np.argsort(times[used])]
        return ordered

    def _settle(self, order: Index, coming: int) -> None:
        """Number the uses anew from one on, and make room for as many lines again."""
        if len(order) > MOST_LINES:
            raise ValueError(f"more than {MOST_LINES} distinct lines: too many for stack distances")
        room = 1 << int(2 * (len(order) + coming + FIRST_ROOM)).bit_length()
        keys, times = np.full(room, -1, dtype=np.int64), np.zeros(room, dtype=np.int64)  # at most half full until the next call
        tree = np.zeros(room, dtype=np.int64)
        position = np.arange(1, room)
        tree[1:] = np.clip(len(order) - (position - (position & -position)), 0, position & -position)
        self._keys, self._times, self._tree = (self._given(column) for column in (keys, times, tree))
        self._now = len(order)
        self._remember(len(order), self._given(order), self._keys, self._times)

    def _given(self, column: Index) -> Any:
        return column if self.fast else column.tolist()

    @property
    def curve(self) -> MissCurve:
        """What has been counted so far."""
        return MissCurve(again=self._again.copy(), cold=self.cold)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissCurve:
    """Uses by stack distance: `again[d]` at distance d, and `cold` first uses."""

    again: Index = field(repr=False)
    cold: int

    @property
    def uses(self) -> int:
        """All of them."""
        return int(self.again.sum()) + self.cold

    def misses(self, lines: int) -> int:
        """Misses of a fully associative LRU cache of so many lines."""
        return self.cold + int(self.again[lines:].sum())

    def misses_in_sets(self, sets: float, ways: int) -> float:
        """Expected misses of `sets` sets of `ways` ways, if lines fall into sets at random (Smith 1978; Hill and Smith 1989).

        A use of distance d hits if fewer than `ways` of the d other lines share its set: the lower tail of a binomial
        distribution with chance 1 / sets. A curve over capacity may take `sets`, at least 1, between whole numbers.
        """
        distance = np.flatnonzero(self.again)
        return self.cold + float(np.sum(self.again[distance] * (1.0 - hit_chance(distance, sets, ways))))

    def points(self, count: int = 64) -> list[tuple[int, int]]:
        """(lines, misses) at ever larger capacities, up to where only cold misses are left."""
        largest = max(1, len(self.again))
        sizes = np.unique(np.geomspace(1, largest, count).round().astype(int))
        beyond = np.concatenate([np.cumsum(self.again[::-1])[::-1], [0]])
        return [(int(size), self.cold + int(beyond[min(size, len(self.again))])) for size in sizes]


def hit_chance(distance: Index, sets: float, ways: int) -> Array:
    """The chance that fewer than `ways` of `distance` lines fall into one of `sets` sets, [len(distance)].

    >>> hit_chance(np.array([0, 1, 2]), 2, 1).tolist()
    [1.0, 0.5, 0.25]
    """
    d = distance.astype(float)
    if sets == 1:
        return np.asarray(d < ways, dtype=float)
    log_term = d * np.log1p(-1.0 / sets)  # of no line in the set
    total = np.exp(log_term)
    with np.errstate(divide="ignore"):
        for k in range(1, ways):
            log_term = log_term + np.log(np.maximum(d - k + 1, 0.0)) - np.log(k) - np.log(sets - 1.0)
            total += np.exp(log_term)
    return np.asarray(np.minimum(total, 1.0))
