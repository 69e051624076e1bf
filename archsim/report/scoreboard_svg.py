"""Error against the time of one prediction as static SVG; equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from archsim.base.units import show
from archsim.report.lines_svg import QUIET, RULE, PlotScale, across_marks, svg, up_marks, words
from archsim.report.palette import SERIES
from archsim.report.study_figures import PlotAxis

WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 900, 84, 24, 24, 56, 430  # [px]
UNSTATED = 190  # least width of the strip of predictors whose time nobody states [px]
LETTER = 7.8  # width of a letter of a name [px]
APART = 17  # least distance of two names on top of each other [px]


class Place(NamedTuple):
    """A predictor: the time of a prediction [s] or None, the median error, and how many rows it answers."""

    name: str
    seconds: float | None
    error: float
    rows: int


def scoreboard_svg(places: Sequence[Place], names: Sequence[str] = ()) -> str:
    """One mark a predictor; those whose time is not stated stand in a strip of their own at the right.

    names: of all predictors of a page, in the order of their colours; those of `places` if not given
    """
    timed, untimed = [p for p in places if p.seconds], [p for p in places if not p.seconds]
    strip = max([UNSTATED, *(24 + LETTER * len(_label(p)) for p in untimed)]) if untimed else 0
    edge = WIDTH - RIGHT - strip
    colours = {name: SERIES[i % len(SERIES)] for i, name in enumerate(names or [p.name for p in places])}
    floor = HEIGHT - BOTTOM
    errors = [100 * p.error for p in places if p.error > 0] or [1.0]
    up = PlotScale([min(errors) / 1.5, max(errors) * 1.5], PlotAxis(title="", log=True), floor, TOP)
    times = [float(p.seconds or 0) for p in timed] or [1.0]
    across = PlotScale([min(times) / 4, max(times) * 20], PlotAxis(title="", log=True), LEFT, edge)
    parts = across_marks(across, TOP, floor, lambda mark: show(mark, "s", 3)) if timed else []
    parts += up_marks(up, LEFT, WIDTH - RIGHT, lambda mark: f"{mark:g} %")
    if untimed:
        parts.append(f'<line x1="{edge}" y1="{TOP}" x2="{edge}" y2="{floor}" stroke="{RULE}" stroke-width="3"/>')
        parts.append(words(edge + strip / 2, floor + 18, "time not stated", ink=QUIET, anchor="middle"))
    parts.append(words((LEFT + edge) / 2, HEIGHT - 12, "time of one prediction", anchor="middle", size=13))
    middle = (TOP + floor) / 2
    parts.append(f'<g transform="rotate(-90 16 {middle:.1f})">{words(16, middle, "median error", anchor="middle", size=13)}</g>')
    parts += _marks(timed, [across(float(p.seconds or 0)) for p in timed], up, colours)
    parts += _marks(untimed, [edge + 24.0] * len(untimed), up, colours)
    return svg(WIDTH, HEIGHT, "Median error against the time of one prediction", parts)


def _label(p: Place) -> str:
    return f"{p.name}, {100 * p.error:.1f} %"


def _marks(own: Sequence[Place], xs: Sequence[float], up: PlotScale, colours: Mapping[str, str]) -> list[str]:
    """Marks with their names at the right; names that would overprint move down."""
    parts: list[str] = []
    taken: list[tuple[float, float]] = []
    for p, x in sorted(zip(own, xs, strict=True), key=lambda pair: -pair[0].error):
        y = up(max(100 * p.error, 1e-3))
        line = y
        while any(abs(line - other) < APART and abs(x - at) < UNSTATED for at, other in taken):
            line += 1
        taken.append((x, line))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colours[p.name]}"/>')
        parts.append(words(x + 11, line + 4, _label(p), weight=600))
    return parts
