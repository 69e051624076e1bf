"""Error against time of each fidelity as static SVG; equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archsim.base.units import show
from archsim.report.lines_svg import BOTTOM, FONT, HEIGHT, INK, LEFT, QUIET, RIGHT, WIDTH, PlotScale, rule, words
from archsim.report.markup import label
from archsim.report.palette import SERIES
from archsim.report.study_figures import PlotAxis

TOP = 66
CHARACTER = 7.4  # width of a character of a name [px]
LINE = 16  # height of a line of a name [px]
RADIUS = 6
PLOT = (LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)
Box = tuple[float, float, float, float]  # left, top, right, bottom [px]


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStep:
    """A fidelity: errors over the rows of a corpus, as shares, and the CPU time of an estimate [s]."""

    name: str
    median: float
    p90: float
    seconds: float


def ladder_svg(steps: Sequence[LadderStep], corpus: str) -> str:
    """The picture: a mark at the median error of each fidelity, and a line up to the error below which 90 % are."""
    floor = HEIGHT - BOTTOM
    reach = [bound for s in steps for bound in (s.seconds / 3, s.seconds * 3)]  # a name stands beside its mark
    across = PlotScale(reach, PlotAxis(title="", unit="s", log=True), LEFT, WIDTH - RIGHT)
    up = PlotScale([v for s in steps for v in (100 * s.median / 1.5, 100 * s.p90)], PlotAxis(title="", log=True), floor, TOP)
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             words(LEFT, 24, "Error against time of an estimate, by fidelity", size=16, weight=600),
             words(LEFT, 44, f"{corpus}; disc: median error, line: up to where 90 % of the errors are", ink=QUIET)]  # fmt: skip
    for value in across.marks:
        parts += [rule(across(value), TOP, across(value), floor),
                  words(across(value), floor + 18, show(value, "s"), ink=QUIET, anchor="middle")]  # fmt: skip
    for value in up.marks:
        parts += [rule(LEFT, up(value), WIDTH - RIGHT, up(value)),
                  words(LEFT - 8, up(value) + 4, f"{value:g} %", ink=QUIET, anchor="end")]  # fmt: skip
    parts.append(words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "CPU time of one estimate", anchor="middle", size=13))
    middle = (TOP + floor) / 2
    parts.append(f'<g transform="rotate(-90 16 {middle:.1f})">{words(16, middle, "error", anchor="middle", size=13)}</g>')
    marks = [(across(s.seconds), up(100 * s.median), up(100 * s.p90)) for s in steps]
    for (x, y, top), colour in zip(marks, SERIES, strict=False):
        parts += [f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{top:.1f}" stroke="{colour}" stroke-width="2.4"/>',
                  f'<line x1="{x - 5:.1f}" y1="{top:.1f}" x2="{x + 5:.1f}" y2="{top:.1f}" stroke="{colour}" stroke-width="2.4"/>',
                  f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{colour}" stroke="#ffffff"/>']  # fmt: skip
    taken = [(x - RADIUS, min(y, top) - RADIUS, x + RADIUS, max(y, top) + RADIUS) for x, y, top in marks]
    names = [line for s, (x, y, _) in zip(steps, marks, strict=True) for line in _named(s, x, y, taken)]
    parts += ['<g paint-order="stroke" stroke="#ffffff" stroke-width="3">', *names, "</g>"]  # readable above the grid
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="{FONT}" role="img">\n<title>{label("Error against time by fidelity", 80)}</title>\n'
        + "\n".join(parts) + "\n</svg>\n"
    )  # fmt: skip


def _named(s: LadderStep, x: float, y: float, taken: list[Box]) -> list[str]:
    """The name and figures of a fidelity where they cover nothing: beside or below the mark, as near as they can be."""
    lines = (s.name, f"{100 * s.median:.0f} %, {show(s.seconds, 's', 3)}")
    width, height = CHARACTER * max(map(len, lines)), 2 * LINE
    sides = [(left, y - height / 2 + down) for down in range(0, 120, 4) for left in (x + 12, x - 12 - width, x - width / 2)]
    boxes = [(left, top, left + width, top + height) for left, top in sides]
    free = (box for box in boxes if _inside(box, PLOT) and not any(_cover(box, other) for other in taken))
    box = next(free, boxes[0])
    taken.append(box)
    return [words(box[0], box[1] + 12, lines[0], size=13, weight=600), words(box[0], box[1] + 12 + LINE, lines[1], ink=INK)]


def _inside(a: Box, b: Box) -> bool:
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


def _cover(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
