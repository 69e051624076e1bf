"""What a reader of a sweep wants of its points: the best ones, the front of time and energy, what is impossible, and some of all.

Points are taken in one pass and in bounded memory, so that a sweep may have millions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from archsim.base.record import Answer
from archsim.cost.cost import Array
from archsim.estimation.die import die_columns
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request
from archsim.lower.kernel import Index
from archsim.study.axis import base_value
from archsim.study.knob import WORDS
from archsim.study.objective import pareto_front
from archsim.study.space import Space
from archsim.study.sweep import names

BLOCK = 1 << 14  # points that are looked at together
KEPT = 5_000  # points that are kept beside the best ones and the fronts, evenly picked
ORDERS = {"fastest": ("latency_s", 1.0), "most per second": ("throughput_per_s", -1.0), "least energy": ("energy_j", 1.0),
          "most per watt": ("throughput_per_w", -1.0)}  # fmt: skip
RANKED = tuple(output for output, _ in ORDERS.values())
OUTPUTS = ("latency_s", "throughput_per_s", "power_w", "energy_j", "throughput_per_w", "memory_bytes", "clock_hz")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptPoints(Answer):
    """The points of a sweep as a reader wants them; rows are {column: value}.

    units: of every column; count: of points, of which `impossible` have no outputs, for the `problems` (why, how many), most
        frequent first, and `beyond` need more memory than there is
    best, fronts: by network, of points that fit; `best` by what they are best in
    some: points evenly picked; all of them where these are few
    bases: by (network, device) the same columns where nothing is varied
    """

    space: Space
    requests: tuple[Request, ...]
    units: Mapping[str, str]
    count: int
    impossible: int
    beyond: int
    problems: tuple[tuple[str, int], ...]
    best: Mapping[str, Mapping[str, Row]]
    fronts: Mapping[str, tuple[Row, ...]]
    some: tuple[Row, ...]
    bases: Mapping[tuple[str, str], Row]

    @property
    def per_sample(self) -> bool:
        """Whether times and energies are compared by sample, because batches or tasks differ."""
        return "batch" in self.space.knobs or "task" in self.space.knobs


@dataclass(slots=True)
class SweepCollector:
    """Receives the points of a sweep in their order."""

    space: Space
    requests: Sequence[Request]
    count: int = 0
    beyond: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    best: dict[str, dict[str, Row]] = field(default_factory=dict)
    fronts: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    some: list[Row] = field(default_factory=list)

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take points that follow those before."""
        names = list(self._units)
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        step = -(-self.space.count // KEPT)
        self.some += [dict(zip(names, row, strict=True)) for row in rows if row[0] % step == 0]
        self.count += len(rows)
        self.problems.update(text for text in columns["problem"] if text is not None)
        fits, networks = np.array(columns["fits"], float), np.array(columns["network"])
        self.beyond += int((fits == 0).sum())
        for network in dict.fromkeys(columns["network"]):
            places = np.flatnonzero((fits == 1) & (networks == network))
            if places.size:
                self._rank(str(network), rows, places, {name: np.array(columns[name], float)[places] for name in RANKED})

    def _rank(self, network: str, rows: Sequence[Sequence[Any]], places: Index, outputs: Mapping[str, Array]) -> None:
        """The best points and the front of a network, with those that are new at these places."""
        def row(i: int) -> Row:
            return dict(zip(self._units, rows[int(places[i])], strict=True))

        best = self.best.setdefault(network, {})
        for title, (output, sign) in ORDERS.items():
            found = row(int(np.argmin(sign * outputs[output])))
            if title not in best or sign * found[output] < sign * best[title][output]:
                best[title] = found
        costs = np.stack(costs_of(outputs, self._per_sample), axis=1)
        both = [*self.fronts.get(network, ()), *(row(i) for i in pareto_front(costs))]
        kept = pareto_front(np.array([costs_of(one, self._per_sample) for one in both]))
        self.fronts[network] = tuple(both[i] for i in kept)

    @property
    def _units(self) -> dict[str, str]:
        return names(self.space, self.requests[0].spec.kind)

    @property
    def _per_sample(self) -> bool:
        return "batch" in self.space.knobs or "task" in self.space.knobs

    def done(self) -> SweptPoints:
        """All that was received."""
        return SweptPoints(
            space=self.space, requests=tuple(self.requests), units=self._units, count=self.count, beyond=self.beyond,
            impossible=self.problems.total(), problems=tuple(self.problems.most_common()), best=self.best,
            fronts=self.fronts, some=tuple(self.some),
            bases={(r.network, r.spec.identity.id): base_row(r, self.space.knobs) for r in self.requests},
        )  # fmt: skip


def costs_of(row: Mapping[str, Any], per_sample: bool) -> tuple[Any, Any]:
    """Time and energy of a point or of columns of points [s, J], of a sample where these are compared."""
    if per_sample:
        return 1.0 / row["throughput_per_s"], 1.0 / row["throughput_per_w"]
    return row["latency_s"], row["energy_j"]


def collected(space: Space, requests: Sequence[Request], rows: Iterable[Sequence[Any]]) -> SweptPoints:
    """All points of a sweep, whose rows have the columns of `sweep.names`."""
    found, rest = SweepCollector(space=space, requests=requests), iter(rows)
    while block := list(islice(rest, BLOCK)):
        found.add(block)
    return found.done()


def base_row(request: Request, knobs: Sequence[str]) -> Row:
    """The columns of a sweep for a device as it is."""
    e = estimate_of(request, references=False)
    die = {name: float(column[0]) for name, column in die_columns(request.spec, {}, 1).items() if name == "area_mm2"}
    return {"point": -1, "network": request.network, "hardware": request.spec.identity.id, "hardware_name": e.hardware_name,
            **{knob: knob_at_base(request, knob) for knob in knobs}, **{name: getattr(e, name) for name in OUTPUTS}, **die,
            "fits": int(e.fits), "problem": None}  # fmt: skip


def knob_at_base(request: Request, knob: str) -> Any:
    """The value of a knob that a request has."""
    if knob in WORDS:
        return {"precision": request.precision, "stack": request.stack.id, "task": request.task}.get(knob, "")
    return base_value(request, knob)


def grid_of(rows: Sequence[Row], across: str, up: str, per_sample: bool) -> tuple[list[float], list[float], Array, Array]:
    """Values of two knobs, and times and energies [up, across] of the points that fit the memory; NaN where none has.

    >>> point = {"latency_s": 1.0, "energy_j": 2.0, "fits": 1}
    >>> grid_of([{"a": 1, "b": 5, **point}, {"a": 2, "b": 5, **point}], "a", "b", False)[2].tolist()
    [[1.0, 1.0]]
    """
    x, y = (sorted({row[knob] for row in rows}) for knob in (across, up))
    times, energies = np.full((len(y), len(x)), math.nan), np.full((len(y), len(x)), math.nan)
    for row in rows:
        if row["fits"]:
            at = y.index(row[up]), x.index(row[across])
            times[at], energies[at] = costs_of(row, per_sample)
    return x, y, times, energies
