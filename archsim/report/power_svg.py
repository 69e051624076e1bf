"""Power over time as static SVG: the curve, its mean, and the power limit; equal data give equal bytes."""

from __future__ import annotations

from archsim.base.units import show
from archsim.estimation.power_curve import step_points
from archsim.estimation.result import Estimate
from archsim.report.lines_svg import FONT, QUIET, PlotScale, rule, words
from archsim.report.palette import SERIES
from archsim.report.study_figures import PlotAxis

WIDTH, HEIGHT = 1120, 300
LEFT, TOP, RIGHT, BOTTOM = 90, 34, 24, 46  # [px]


def power_svg(e: Estimate) -> str:
    """The drawing of one estimate."""
    times, powers = step_points(e.power_over_time)
    across = PlotScale([0.0, times[-1] / 1.05], PlotAxis(title="time", unit="s", log=False), LEFT, WIDTH - RIGHT)
    highest, floor = max(e.power_limit_w, e.power_peak_w), HEIGHT - BOTTOM
    up = PlotScale([0.0, highest], PlotAxis(title="power", unit="W", log=False), floor, TOP)
    body = [part for value in across.marks for part in (
        rule(across(value), TOP, across(value), floor),
        words(across(value), floor + 18, show(value, "s") if value else "0", ink=QUIET, anchor="middle"))]  # fmt: skip
    body += [part for value in up.marks for part in (
        rule(LEFT, up(value), WIDTH - RIGHT, up(value)),
        words(LEFT - 8, up(value) + 4, show(value, "W") if value else "0", ink=QUIET, anchor="end"))]  # fmt: skip
    corners = " ".join(f"{across(time):.1f},{up(power):.1f}" for time, power in zip(times, powers, strict=True))
    body.append(f'<polyline points="{corners}" fill="none" stroke="{SERIES[0]}" stroke-width="1.4"/>')
    mean = e.power_w if e.wall is None else e.wall.device_w
    lines = ((mean, "mean", SERIES[1]), (e.power_limit_w, "limit", QUIET))
    for place, (level, name, colour) in enumerate(lines):
        body.append(f'<line x1="{LEFT}" y1="{up(level):.1f}" x2="{WIDTH - RIGHT}" y2="{up(level):.1f}" stroke="{colour}" '
                    f'stroke-width="1.4" stroke-dasharray="6 4"/>')  # fmt: skip
        x = LEFT + 190 * place
        body.append(f'<line x1="{x}" y1="{TOP - 18}" x2="{x + 22}" y2="{TOP - 18}" stroke="{colour}" stroke-width="1.8" '
                    f'stroke-dasharray="6 4"/>')  # fmt: skip
        body.append(words(x + 28, TOP - 14, f"{name} {show(level, 'W')}"))
    body.append(words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "time", anchor="middle", size=13))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="{FONT}" role="img">\n'
        "<title>Power over time</title>\n" + "\n".join(body) + "\n</svg>"
    )
