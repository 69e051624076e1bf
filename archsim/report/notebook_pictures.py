"""Small pictures for the tables of a notebook: inline HTML and SVG, without scripts and styles of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from archsim.base.units import show
from archsim.report.lines_svg import FONT, QUIET, PlotScale, rule, words
from archsim.report.markup import text
from archsim.report.palette import SERIES, look, order
from archsim.report.study_figures import PlotAxis
from archsim.study.pareto import pareto_front

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 560, 260, 70, 40, 12, 14  # of a scatter [px]
LONGEST = 90  # a bar [px]
STRIPE = 420  # the width of a stripe of shares [px]
LEAST = 0.004  # share that a stripe shows
MOST_POINTS = 400  # of a scatter, besides its front


def stripe(seconds: Mapping[str, float]) -> str:
    """Shares of a time by bound, as one bar in their colours."""
    whole = sum(seconds.values())
    parts = "".join(
        f'<span title="{text(name)} {100 * seconds[name] / whole:.1f} %" style="display:inline-block;height:10px;'
        f'width:{STRIPE * seconds[name] / whole:.1f}px;background:{look(name).colour}"></span>'
        for name in order(set(seconds)) if whole > 0 and seconds[name] > LEAST * whole
    )  # fmt: skip
    return f'<span style="display:inline-block;white-space:nowrap;font-size:0">{parts}</span>'


def bar(value: float, most: float) -> str:
    """A bar as long as a value, of which `most` is the longest."""
    width = LONGEST * value / most if most > 0 else 0.0
    return (f'<span style="display:inline-block;height:9px;width:{width:.1f}px;margin-right:6px;'
            f'background:{SERIES[0]}"></span>')  # fmt: skip


def scatter(across: Sequence[float], up: Sequence[float], x: PlotAxis, y: PlotAxis) -> str:
    """Points, thinned evenly where they are many, and their Pareto front: less of both is better."""
    floor = HEIGHT - BOTTOM
    to_x = PlotScale(across, x, LEFT, WIDTH - RIGHT)
    to_y = PlotScale(up, y, floor, TOP)
    parts: list[str] = []
    for mark in to_x.marks[:: max(1, len(to_x.marks) // 6)]:
        parts += [rule(to_x(mark), TOP, to_x(mark), floor),
                  words(to_x(mark), floor + 15, show(mark, x.unit, 3), ink=QUIET, size=11, anchor="middle")]  # fmt: skip
    for mark in to_y.marks[:: max(1, len(to_y.marks) // 6)]:
        parts += [rule(LEFT, to_y(mark), WIDTH - RIGHT, to_y(mark)),
                  words(LEFT - 6, to_y(mark) + 4, show(mark, y.unit, 3), ink=QUIET, size=11, anchor="end")]  # fmt: skip
    front = [int(i) for i in pareto_front(np.array([across, up]).T)]
    step = max(1, len(across) // MOST_POINTS)
    parts += [f'<circle cx="{to_x(across[i]):.1f}" cy="{to_y(up[i]):.1f}" r="3" fill="{SERIES[0]}" fill-opacity="0.45"/>'
              for i in range(0, len(across), step)]  # fmt: skip
    path = " ".join(f"{to_x(across[i]):.1f},{to_y(up[i]):.1f}" for i in front)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{SERIES[1]}" stroke-width="1.8"/>')
    parts += [f'<circle cx="{to_x(across[i]):.1f}" cy="{to_y(up[i]):.1f}" r="3.4" fill="{SERIES[1]}"/>' for i in front]
    parts.append(words((LEFT + WIDTH) / 2, HEIGHT - 6, f"{x.title}, against {y.title}", size=12, anchor="middle"))
    title = text(f"{x.title} against {y.title}")
    return (f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="{FONT}" role="img" '
            f'style="background:#ffffff"><title>{title}</title>{"".join(parts)}</svg>')  # fmt: skip
