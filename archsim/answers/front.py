"""What searches, sweeps and tunings have in common: fronts as charts, and rows that stand for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from archsim.cost.bounds import bound_word
from archsim.explain.summary import FASTER_TEXT
from archsim.render.blocks import Axis, Cell, Chart, Series, Table, columns

T = TypeVar("T")
Row = Sequence[Cell]
FIRST, LONG = 6, 20  # points of a front on the first screen; points above which a table scrolls
ROOM, WIDE = 0.06, 8.0  # beside the data, as a share of their range; ratio of values above which an axis is logarithmic


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """A point of a chart: what stands beside it, what is told on hover; hollow with a reservation."""

    x: float
    y: float
    label: str = ""
    tip: str = ""
    hollow: bool = False


def front_chart(
    title: str, x: Axis, y: Axis, front: Sequence[FrontPoint], others: Sequence[FrontPoint], marked: Mapping[str, FrontPoint],
    notes: Sequence[str] = (),
) -> Chart:  # fmt: skip
    """A Pareto front as a line with its points, before other points; `marked` ones on top, by name."""
    every = [*front, *others, *marked.values()]
    x, y = _fitted(x, [point.x for point in every]), _fitted(y, [point.y for point in every])
    line = sorted(front, key=lambda point: point.x)
    own = [replace(p, label="") if i and p.label == line[i - 1].label else p for i, p in enumerate(line)]  # said once
    series = [Series(name="", x=[p.x for p in line], y=[p.y for p in line], tone="quiet", mark=""),
              _marks("other points", others, "quiet", 0.02), _marks("Pareto front", own, "0", 0.12),
              *(_marks(name, [replace(point, label=name)], str(tone), 0.2)
                for tone, (name, point) in enumerate(marked.items(), 1))]  # fmt: skip
    return Chart(title=title, x=x, y=y, series=series, notes=notes, height=420)


def _fitted(axis: Axis, values: Sequence[float]) -> Axis:
    """An axis from the least to the largest value, with a little room."""
    low, high = min(values), max(values)
    if low > 0 and high / low > WIDE:
        return replace(axis, log=True)
    room = ROOM * (high - low or abs(high) or 1.0)
    return replace(axis, log=False, ends=(max(low - room, min(low, 0.0)), high + room))


def _marks(name: str, points: Sequence[FrontPoint], tone: str, size: float) -> Series:
    return Series(name=name, x=[p.x for p in points], y=[p.y for p in points], tone=tone, joined=False,
                  sizes=[size] * len(points), hollow=[p.hollow for p in points], tips=[p.tip for p in points],
                  labels=[p.label for p in points])  # fmt: skip


def points_table(
    title: str, heads: Sequence[str], listed: Sequence[Row], front: Sequence[Row], note: str, texts: int = 1
) -> Table:  # fmt: skip
    """Points that have a name, then the others of the front, of which a few stand on the first screen; the first columns are
    `texts`."""
    first = [*range(len(listed)), *thin(range(len(listed), len(listed) + len(front)), FIRST)]
    return Table(title=title, columns=columns(*heads, numbers=range(texts, len(heads))), rows=[*listed, *front], first=first,
                 long=len(listed) + len(front) > LONG, notes=[note])  # fmt: skip


def thin(rows: Sequence[T], most: int) -> Sequence[T]:
    """At most so many of the rows, evenly picked, both ends among them.

    >>> thin(range(9), 3)
    [0, 4, 8]
    """
    return rows if len(rows) <= most else [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


def saves(limits: Mapping[str, float]) -> str:
    """The resource that would save most."""
    name, share = next(iter(limits.items()), ("none", 0.0))
    return f"{bound_word(name)} ({FASTER_TEXT} faster would save {100 * share:.0f} %)"
