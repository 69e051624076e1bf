"""What searches, sweeps and tunings have in common: fronts as charts, coloured by a knob, and rows that stand for many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from archsim.cost.bounds import bound_word
from archsim.cost.relief import FASTER
from archsim.render.blocks import Axis, Chart, Series

T = TypeVar("T")
MOST_COLOURS = 7  # that are told apart in one chart
ROOM, WIDE = 0.06, 8.0  # beside the data, as a share of their range; ratio of values above which an axis is logarithmic
FASTER_TEXT = f"{100 * (FASTER - 1):.0f} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """A point of a chart: what its colour stands for, what stands beside it, what is told on hover; hollow with a reservation."""

    x: float
    y: float
    group: str = ""
    label: str = ""
    tip: str = ""
    hollow: bool = False


def front_chart(
    title: str, x: Axis, y: Axis, front: Sequence[FrontPoint], others: Sequence[FrontPoint] = (),
    marked: Mapping[str, FrontPoint] | None = None, order: Sequence[str] = (), notes: Sequence[str] = (),
) -> Chart:  # fmt: skip
    """A Pareto front as a line with its points, before other points; `marked` ones on top, by name.

    order: of the groups, of which each has a colour
    """
    every = [*front, *others, *(marked or {}).values()]
    x, y = _fitted(x, [point.x for point in every]), _fitted(y, [point.y for point in every])
    groups = order or [""]
    line = sorted(front, key=lambda point: point.x)
    series = [Series(name="", x=[p.x for p in line], y=[p.y for p in line], tone="quiet", mark="")]
    for place, group in enumerate(groups):
        rest, own = ([p for p in points if p.group == group] for points in (others, front))
        series += [_marks(group or "other points", rest, str(place) if group else "quiet", 0.02),
                   _marks(group or "Pareto front", own, str(place), 0.12)]  # fmt: skip
    series += [_marks(name, [point], str(MOST_COLOURS - place), 0.2, name)
               for place, (name, point) in enumerate((marked or {}).items())]  # fmt: skip
    return Chart(title=title, x=x, y=y, series=series, notes=notes, height=420)


def _fitted(axis: Axis, values: Sequence[float]) -> Axis:
    """An axis from the least to the largest value, with a little room."""
    low, high = min(values), max(values)
    if low > 0 and high / low > WIDE:
        return replace(axis, log=True)
    room = ROOM * (high - low or abs(high) or 1.0)
    return replace(axis, log=False, ends=(max(low - room, min(low, 0.0)), high + room))


def _marks(name: str, points: Sequence[FrontPoint], tone: str, size: float, label: str = "") -> Series:
    return Series(name=name, x=[p.x for p in points], y=[p.y for p in points], tone=tone, joined=False,
                  sizes=[size] * len(points), hollow=[p.hollow for p in points], tips=[p.tip for p in points],
                  labels=[label or p.label for p in points])  # fmt: skip


def colours_of(
    rows: Sequence[Mapping[str, Any]], knobs: Sequence[str], shown: Callable[[str, Any], str]
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The groups in order, and that of each row: the value of the first knob that has few of them, else a range of values.

    shown: what a value of a knob is called, from (knob, value). Where nothing varies, there are no groups.
    """
    several = {knob: values for knob in knobs if len(values := sorted({row[knob] for row in rows})) > 1}
    if not several:
        return [], [""] * len(rows)
    knob = min(several, key=lambda name: len(several[name]) > MOST_COLOURS)
    values, size = several[knob], -(-len(several[knob]) // MOST_COLOURS)
    named: dict[Any, str] = {}
    for begin in range(0, len(values), size):
        own = values[begin : begin + size]
        ends = shown(knob, own[0]) if len(own) == 1 else f"{shown(knob, own[0])} to {shown(knob, own[-1])}"
        named |= dict.fromkeys(own, f"{knob} {ends}")
    return list(dict.fromkeys(named.values())), [named[row[knob]] for row in rows]


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
