"""The roofline as static SVG, for documents without JavaScript."""

from __future__ import annotations

import math

from archsim.base.units import show
from archsim.device.spec import Spec
from archsim.estimation.result import Estimate
from archsim.report.lines_svg import INK, QUIET, RULE, words
from archsim.report.lines_svg import svg as drawn
from archsim.report.markup import label
from archsim.report.palette import look, order
from archsim.report.placement import Label, PlotFrame, decades, diameter, labels, memory_line, peak_labels, peak_line
from archsim.report.roofline import RooflineChart, RooflinePoint, roof
from archsim.report.text import asked_words

WIDTH, HEIGHT = 900, 500
NARROW = 540  # of one of two pictures side by side
LEFT, TOP, RIGHT, BOTTOM = 104, 76, 24, 54
FAINT = "#a3adb8"


def svg(estimate: Estimate, spec: Spec) -> str:
    """The picture as a file: ops as discs with areas proportional to their time, under the ceilings of the device."""
    title = f"{estimate.network} on {estimate.hardware_name if estimate.changes else spec.identity.name}"
    head = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        words(LEFT, 24, title, size=17, weight=600), words(LEFT, 43, ", ".join(asked_words(estimate)), ink=QUIET),
    ]  # fmt: skip
    parts = [*head, *_parts(roof(estimate, spec))]
    return drawn(WIDTH, HEIGHT, f"Roofline of {label(title, 120)}", parts, ' xmlns="http://www.w3.org/2000/svg"') + "\n"


def inline(shown: RooflineChart, title: str, width: int = WIDTH) -> str:
    """The picture inside a page, which has its own heading and ground."""
    up = 48  # the lines that only a file has [px]
    return drawn(width, HEIGHT - up, f"Roofline of {label(title, 120)}", _parts(shown, width), top=up)


def _parts(shown: RooflineChart, width: int = WIDTH) -> list[str]:
    frame = PlotFrame(width=width - LEFT - RIGHT, height=HEIGHT - TOP - BOTTOM, x=shown.x, y=shown.y)
    return [
        _legend(shown), f'<g transform="translate({LEFT} {TOP})">', *_grid(shown, frame), *_ceilings(shown, frame),
        *_discs(shown, frame), *_peak_names(shown, frame), *map(_placed, labels(shown, frame)), "</g>",
    ]  # fmt: skip


def _placed(name: Label) -> str:
    turned = f' transform="rotate({name.angle:.2f} {name.x:.1f} {name.y:.1f})"' if name.angle else ""
    return (
        f'<text x="{name.x:.1f}" y="{name.y:.1f}" dy="4" font-size="12" fill="{INK}" text-anchor="middle"{turned}>'
        f"{label(name.name, 60)}</text>"
    )


def _legend(shown: RooflineChart) -> str:
    parts, x = [], float(LEFT)
    for bound in order({point.bound for point in shown.points}):
        parts.append(f'<circle cx="{x + 5:.1f}" cy="60" r="5" fill="{look(bound).colour}"/>{words(x + 15, 64, bound)}')
        x += 34 + 7 * len(bound)
    return "".join(parts)


def _grid(shown: RooflineChart, frame: PlotFrame) -> list[str]:
    parts = []
    for value in decades(*shown.x):
        x, _ = frame.place(value, shown.y[0])
        parts.append(_line(x, 0, x, frame.height, RULE))
        parts.append(words(x, frame.height + 18, show(value, "1"), ink=QUIET, anchor="middle"))
    for value in decades(*shown.y):
        _, y = frame.place(shown.x[0], value)
        parts.append(_line(0, y, frame.width, y, RULE))
        parts.append(words(-8, y + 4, show(value, "FLOP/s"), ink=QUIET, anchor="end"))
    about = "arithmetic intensity [FLOP per byte of memory traffic]"
    return [*parts, words(frame.width / 2, frame.height + 40, about, anchor="middle", size=13)]


def _ceilings(shown: RooflineChart, frame: PlotFrame) -> list[str]:
    parts = []
    for bandwidth, dash in ((shown.bandwidth, ""), (shown.reachable, "2 3")):
        (x0, y0), (x1, y1) = (frame.place(*end) for end in memory_line(shown, bandwidth))
        parts.append(_line(x0, y0, x1, y1, INK, dash))
    for ceiling in shown.ceilings:
        (x0, y0), (x1, y1) = (frame.place(*end) for end in peak_line(shown, ceiling.rate))
        parts.append(_line(x0, y0, x1, y1, INK if ceiling.chosen else FAINT))
    return parts


def _peak_names(shown: RooflineChart, frame: PlotFrame) -> list[str]:
    """With a white rim, which keeps them readable where a disc lies below."""
    placed = {ceiling.name: (right, y) for ceiling, right, y in peak_labels(shown, frame)}
    names = []
    for ceiling in shown.ceilings:
        x, y = placed[ceiling.name]
        names.append(words(x, y - 5, ceiling.name, ink=INK if ceiling.chosen else QUIET, anchor="end"))
    return ['<g paint-order="stroke" stroke="#ffffff" stroke-width="3">', *names, "</g>"]


def _line(x0: float, y0: float, x1: float, y1: float, ink: str, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    width = 1 if ink == RULE else 1.4
    ends = f'x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"'
    return f'<line {ends} stroke="{ink}" stroke-width="{width}"{dashes}/>'


def _discs(shown: RooflineChart, frame: PlotFrame) -> list[str]:
    """The largest first, so that it covers no smaller one."""
    longest = shown.points[0].time_s if shown.points else math.inf
    return [_disc(point, frame, diameter(point, longest) / 2) for point in shown.points]


def _disc(point: RooflinePoint, frame: PlotFrame, radius: float) -> str:
    x, y = frame.place(point.intensity, point.rate)
    note = f"{label(point.name, 80)}: {show(point.time_s, 's', 3)}, {100 * point.share:.1f} % of the time"
    look_of = f'fill="{look(point.bound).colour}" fill-opacity="0.8" stroke="#ffffff"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look_of}><title>{note}</title></circle>'
