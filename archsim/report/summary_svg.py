"""Errors of the groups of a validation as static SVG: median, ninth decile and a baseline; equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archsim.report.lines_svg import INK, QUIET, PlotScale, across_marks, svg, words
from archsim.report.palette import SERIES
from archsim.report.study_figures import PlotAxis

WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 1120, 250, 150, 24, 62, 34  # [px]
BASELINE = "roofline"


def summary_svg(groups: Mapping[str, Mapping[str, Any]]) -> str:
    """One line a group, from its median error to its ninth decile; a ring is the median error of the bare roofline."""
    rows = list(groups.items())
    height, floor = TOP + ROW * len(rows) + BOTTOM, TOP + ROW * len(rows)
    errors = [100 * value for _, own in rows for value in (own["median"], own["p90"], _roofline(own)) if value]
    across = PlotScale([min(errors) / 1.2, max(errors)], PlotAxis(title="", log=True), LEFT, WIDTH - RIGHT)
    body = [*across_marks(across, TOP - 8, floor, lambda mark: f"{mark:g} %"), *_key()]
    for place, (name, own) in enumerate(rows):
        y = TOP + ROW * place + ROW / 2
        median, decile, bare = (100 * (value or 0.0) for value in (own["median"], own["p90"], _roofline(own)))
        body.append(words(LEFT - 10, y + 4, name, anchor="end"))
        if median > 0:
            body.append(f'<line x1="{across(median):.1f}" y1="{y}" x2="{across(max(median, decile)):.1f}" y2="{y}" '
                        f'stroke="{SERIES[0]}" stroke-width="3"/>')  # fmt: skip
            body.append(f'<circle cx="{across(median):.1f}" cy="{y}" r="5" fill="{SERIES[0]}"/>')
        if bare > 0:
            body.append(f'<circle cx="{across(bare):.1f}" cy="{y}" r="4.5" fill="none" stroke="{SERIES[1]}" stroke-width="2"/>')
        body.append(words(WIDTH - RIGHT + 12, y + 4, f"{median:.1f} % of {own['n']:,} rows", ink=QUIET))
    return svg(WIDTH, height, "Error by class", body)


def summary_rows(groups: Mapping[str, Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """What is drawn: name, rows, median, ninth decile, median of the roofline."""
    return [(name, own["n"], own["median"], own["p90"], _roofline(own)) for name, own in groups.items()]


def _roofline(own: Mapping[str, Any]) -> float | None:
    found = own["baselines"].get(BASELINE)
    return None if found is None else float(found["median"])


def _key() -> list[str]:
    y = 20
    return [
        f'<circle cx="{LEFT}" cy="{y}" r="5" fill="{SERIES[0]}"/>', words(LEFT + 12, y + 4, "median error", ink=INK),
        f'<line x1="{LEFT + 120}" y1="{y}" x2="{LEFT + 146}" y2="{y}" stroke="{SERIES[0]}" stroke-width="3"/>',
        words(LEFT + 154, y + 4, "to where nine in ten rows are nearer"),
        f'<circle cx="{LEFT + 400}" cy="{y}" r="4.5" fill="none" stroke="{SERIES[1]}" stroke-width="2"/>',
        words(LEFT + 412, y + 4, "median error of the bare roofline"),
    ]  # fmt: skip
