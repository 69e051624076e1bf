"""Energy of each layer by component, a stacked bar a layer, and power over time, as static SVG: equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.cost.energy import COMPONENTS
from archsim.estimation.boundary import BESIDE
from archsim.estimation.power_curve import step_points
from archsim.estimation.result import Estimate
from archsim.report.layers import LayerRow
from archsim.report.lines_svg import INK, QUIET, PlotScale, across_marks, svg, up_marks, words
from archsim.report.markup import label
from archsim.report.palette import SERIES
from archsim.report.study_figures import PlotAxis

WIDTH, LEFT, RIGHT, ROW, TOP = 1120, 250, 200, 20, 10  # [px]
LONGEST = 34  # characters of a name
STANDING = "#a3adb8"  # colour of the component that is drawn whatever the chip does


def component_colour(name: str) -> str:
    """The colour of a component of the energy.

    >>> component_colour("base"), component_colour("leakage")
    ('#a3adb8', '#0072b2')
    """
    place = [*COMPONENTS, *BESIDE].index(name)
    return STANDING if place == 0 else SERIES[(place - 1) % len(SERIES)]


def components_svg(rows: Sequence[LayerRow], whole_j: float) -> str:
    """The bars of the `rows`, with the energy of each and its share of `whole_j` [J]; the longest bar fills the width."""
    most = max((sum(row.component_j.values()) for row in rows), default=0.0) or 1.0
    height = 2 * TOP + ROW * len(rows)
    scale = (WIDTH - LEFT - RIGHT) / most
    body = [part for place, row in enumerate(rows) for part in _bar(row, TOP + ROW * place, scale, whole_j)]
    return svg(WIDTH, height, "Energy by component and layer", body)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _bar(row: LayerRow, y: float, scale: float, whole_j: float) -> list[str]:
    x, parts = float(LEFT), [words(LEFT - 8, y + 14, _short(row.name), ink=INK, anchor="end")]
    for name, energy in row.component_j.items():
        width = energy * scale
        if width >= 0.05:
            tip = f"{label(row.name, 80)}: {name} {show(energy, 'J', 3)}"
            parts.append(f'<rect x="{x:.1f}" y="{y + 2:.1f}" width="{width:.1f}" height="{ROW - 5}" '
                         f'fill="{component_colour(name)}"><title>{tip}</title></rect>')  # fmt: skip
        x += width
    total = sum(row.component_j.values())
    parts.append(words(x + 8, y + 14, f"{show(total, 'J', 3)} · {100 * total / whole_j:.1f} %", ink=QUIET))
    return parts


HEIGHT, START, UPPER, AFTER, BELOW = 300, 90, 34, 24, 46  # of power over time [px]


def power_svg(e: Estimate) -> str:
    """The drawing of one estimate."""
    times, powers = step_points(e.power_over_time)
    across = PlotScale([0.0, times[-1] / 1.05], PlotAxis(title="time", unit="s", log=False), START, WIDTH - AFTER)
    highest, floor = max(e.power_limit_w, e.power_peak_w), HEIGHT - BELOW
    up = PlotScale([0.0, highest], PlotAxis(title="power", unit="W", log=False), floor, UPPER)
    body = across_marks(across, UPPER, floor, lambda value: show(value, "s") if value else "0")
    body += up_marks(up, START, WIDTH - AFTER, lambda value: show(value, "W") if value else "0")
    corners = " ".join(f"{across(time):.1f},{up(power):.1f}" for time, power in zip(times, powers, strict=True))
    body.append(f'<polyline points="{corners}" fill="none" stroke="{SERIES[0]}" stroke-width="1.4"/>')
    mean = e.power_w if e.wall is None else e.wall.device_w
    lines = ((mean, "mean", SERIES[1]), (e.power_limit_w, "limit", QUIET))
    for place, (level, name, colour) in enumerate(lines):
        body.append(f'<line x1="{START}" y1="{up(level):.1f}" x2="{WIDTH - AFTER}" y2="{up(level):.1f}" stroke="{colour}" '
                    f'stroke-width="1.4" stroke-dasharray="6 4"/>')  # fmt: skip
        x = START + 190 * place
        body.append(f'<line x1="{x}" y1="{UPPER - 18}" x2="{x + 22}" y2="{UPPER - 18}" stroke="{colour}" stroke-width="1.8" '
                    f'stroke-dasharray="6 4"/>')  # fmt: skip
        body.append(words(x + 28, UPPER - 14, f"{name} {show(level, 'W')}"))
    body.append(words((START + WIDTH - AFTER) / 2, HEIGHT - 8, "time", anchor="middle", size=13))
    return svg(WIDTH, HEIGHT, "Power over time", body)
