"""Stack distances, and the misses of every capacity that follow from them.

The stack distance of a use is the number of other lines used since the line's last use. A fully associative LRU cache of C lines
hits exactly the uses of distance less than C (Mattson et al. 1970), so one pass gives the misses of all capacities. A Fenwick
tree over the times of last uses counts each distance in O(log n) (Bennett and Kruskal 1975).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.machine_code import available
from archsim.cache import distance_kernel
from archsim.cache.compile import functions_of

Index = NDArray[np.int64]
Array = NDArray[np.float64]
MOST_LINES = 1 << 23  # distinct lines at most: 512 MiB of lines of 64 B, in about 200 MB of memory
FIRST_ROOM = 1 << 16


class StackDistances:
    """Counts stack distances of line uses. `fast` as in `Simulation`.

    >>> distances = StackDistances(fast=False)
    >>> distances.feed(np.array([7, 8, 7, 7])).tolist()  # -1: the first use of a line
    [-1, -1, 1, 0]
    >>> distances.curve.misses(lines=1)
    3
    """

    def __init__(self, fast: bool | None = None) -> None:
        self.fast = available() if fast is None else fast
        functions = functions_of(distance_kernel, self.fast)
        self._stack_distances, self._insert_all = functions["stack_distances"], functions["insert_all"]
        self.cold, self.lines = 0, 0
        self._reuses = np.zeros(0, dtype=np.int64)  # [distance]: uses
        self._now = 0
        self._renumber(np.zeros(0, dtype=np.int64), FIRST_ROOM)

    def feed(self, line: Index, count: Index | None = None) -> Index:
        """The distance of each use in order, -1 for the first use of a line, [N]; `count` is how often each use is repeated, [N].

        Raises ValueError for more than `MOST_LINES` distinct lines.
        """
        if self._now + len(line) + 1 >= len(self._tree):
            self._renumber(self._order(), len(line))
        out = self._as_columns(np.zeros(len(line), dtype=np.int64))
        self._stack_distances(len(line), self._as_columns(line), self._keys, self._times, self._tree, self._now, self.lines, out)
        distance = np.asarray(out, dtype=np.int64)
        self._now += len(line)
        first = distance < 0
        self.cold += int(first.sum())
        self.lines = self.cold
        found = np.bincount(distance[~first])
        longest = max(len(found), len(self._reuses), 1)
        self._reuses = np.pad(self._reuses, (0, longest - len(self._reuses))) + np.pad(found, (0, longest - len(found)))
        if count is not None:
            self._reuses[0] += int((count - 1).sum())
        return distance

    def _order(self) -> Index:
        """The lines in order of last use."""
        keys, times = np.asarray(self._keys, dtype=np.int64), np.asarray(self._times, dtype=np.int64)
        used = np.flatnonzero(keys >= 0)
        ordered: Index = keys[used][np.argsort(times[used])]
        return ordered

    def _renumber(self, order: Index, coming: int) -> None:
        """Renumber the last uses from 1 on, and make room for `coming` more."""
        if len(order) > MOST_LINES:
            raise ValueError(f"more than {MOST_LINES} distinct lines: too many for stack distances")
        room = 1 << int(2 * (len(order) + coming + FIRST_ROOM)).bit_length()
        keys, times = np.full(room, -1, dtype=np.int64), np.zeros(room, dtype=np.int64)  # the table is at most half full
        tree = np.zeros(room, dtype=np.int64)
        position = np.arange(1, room)
        tree[1:] = np.clip(len(order) - (position - (position & -position)), 0, position & -position)
        self._keys, self._times, self._tree = (self._as_columns(column) for column in (keys, times, tree))
        self._now = len(order)
        self._insert_all(len(order), self._as_columns(order), self._keys, self._times)

    def _as_columns(self, column: Index) -> Any:
        return column if self.fast else column.tolist()

    @property
    def curve(self) -> MissCurve:
        """The misses counted so far, by capacity."""
        return MissCurve(reuses=self._reuses.copy(), cold=self.cold)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissCurve:
    """Uses by stack distance: `reuses[d]` at distance d, [D], and `cold` first uses."""

    reuses: Index = field(repr=False)
    cold: int

    @property
    def uses(self) -> int:
        """All uses."""
        return int(self.reuses.sum()) + self.cold

    def misses(self, lines: int) -> int:
        """Misses of a fully associative LRU cache of `lines` lines."""
        return self.cold + int(self.reuses[lines:].sum())

    def misses_in_sets(self, sets: float, ways: int) -> float:
        """Expected misses of a cache of `sets` sets of `ways` ways, if lines fall into sets at random (Smith 1978; Hill and
        Smith 1989).

        A use of distance d hits if fewer than `ways` of the d other lines are in its set: the lower tail of a binomial
        distribution with probability 1 / sets. `sets` need not be whole, so that a curve over capacity can be drawn.
        """
        distance = np.flatnonzero(self.reuses)
        return self.cold + float(np.sum(self.reuses[distance] * (1.0 - hit_chance(distance, sets, ways))))

    def points(self, count: int = 64) -> list[tuple[int, int]]:
        """(lines, misses) at increasing capacities, up to the one at which only cold misses remain."""
        largest = max(1, len(self.reuses))
        sizes = np.unique(np.geomspace(1, largest, count).round().astype(int))
        beyond = np.concatenate([np.cumsum(self.reuses[::-1])[::-1], [0]])
        return [(int(size), self.cold + int(beyond[min(size, len(self.reuses))])) for size in sizes]


def hit_chance(distance: Index, sets: float, ways: int) -> Array:
    """Probability that fewer than `ways` of `distance` lines fall into one of `sets` sets, [len(distance)].

    P = sum over k < ways of C(d, k) p^k (1 - p)^(d - k), p = 1 / sets      (Smith 1978)

    distance: stack distances d [lines]; sets, ways: of the cache; holds for lines that fall into sets independently

    >>> hit_chance(np.array([0, 1, 2]), 2, 1).tolist()
    [1.0, 0.5, 0.25]
    """
    d = distance.astype(float)
    if sets == 1:
        return np.asarray(d < ways, dtype=float)
    log_term = d * np.log1p(-1.0 / sets)  # k = 0: no other line in the set
    total = np.exp(log_term)
    with np.errstate(divide="ignore"):
        for k in range(1, ways):
            log_term = log_term + np.log(np.maximum(d - k + 1, 0.0)) - np.log(k) - np.log(sets - 1.0)
            total += np.exp(log_term)
    return np.asarray(np.minimum(total, 1.0))
