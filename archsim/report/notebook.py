"""Answers in a notebook: short tables with small pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.units import grouped, show, show_capacity
from archsim.estimation.result import Estimate
from archsim.report.lines_svg import FONT, QUIET, PlotScale, rule, words
from archsim.report.markup import text
from archsim.report.palette import SERIES, look, order
from archsim.report.study_figures import PlotAxis
from archsim.report.text import asked_words, limit_line, rate_unit, reference_words, time_line
from archsim.study.pareto import pareto_front

if TYPE_CHECKING:
    from archsim.study.comparison import Comparison, CurveComparison


def notebook_table(estimate: Estimate) -> str:
    """Totals, bounds, and published measurements."""
    lines = [*_totals(estimate), *_measured(estimate), *(("warning", line) for line in estimate.warnings)]
    drawn = {"time": f"<br>{stripe(estimate.breakdown_s)}"}
    rows = "".join(
        f'<tr><th style="text-align:left">{text(name)}</th>'
        f'<td style="text-align:left">{text(value)}{drawn.get(name, "")}</td></tr>\n'
        for name, value in lines
    )
    caption = f"<b>{text(estimate.network)} on {text(estimate.hardware_name)}</b><br>{text(', '.join(asked_words(estimate)))}"
    return f'<table>\n<caption style="text-align:left">{caption}</caption>\n<tbody>\n{rows}</tbody>\n</table>'


def _totals(e: Estimate) -> list[tuple[str, str]]:
    low, high = e.latency_interval_s
    level = f"{100 * e.interval_level:.0f} % interval {show(low, 's', 3)} to {show(high, 's', 3)}"
    return [
        ("latency", f"{show(e.latency_s, 's')} ({level})"),
        ("throughput", show(e.throughput_per_s, rate_unit(e))),
        ("power", show(e.power_w, "W", 3)),
        ("energy", f"{show(e.energy_j, 'J', 3)} per batch, {e.throughput_per_w:.3g} {rate_unit(e)}/W"),
        ("limited by", limit_line(e)),
        ("time", time_line(e)),
        ("memory", f"{show(e.memory_bytes, 'B', 3)} of {show_capacity(e.memory_capacity_bytes)}: "
                   f"{'fits' if e.fits else 'does not fit'}"),
    ]  # fmt: skip


def _measured(e: Estimate) -> list[tuple[str, str]]:
    return [("measured", reference_words(e, r)) for r in e.references]


def comparison_table(c: Comparison) -> str:
    """The devices in the order of the first ranking, then those that cannot hold or run the work."""
    rows = [
        (x.name, x.estimate.stack, show(x.latency_s, "s", 3), f"{grouped(x.throughput_per_s)} {rate_unit(x.estimate)}",
         show(x.estimate.power_w, "W", 3), show(x.energy_j, "J", 3), x.estimate.limited_by, "yes" if x.fits else "NO")
        for x in c.all
    ]  # fmt: skip
    rows += [(one.hardware, one.stack or "", f"cannot run: {one.reason}", "", "", "", "", "") for one in c.excluded]
    task, batches = c.all[0].estimate.task.replace("_", " "), dict.fromkeys(str(x.estimate.batch) for x in c.all)
    caption = f"<b>{text(c.network)}</b>: {text(task)}, batch {' or '.join(batches)}"
    head = ("device", "stack", "latency", "throughput", "power", "energy", "limited by", "fits")
    return _table(caption, head, rows, barred=2, values=[x.latency_s for x in c.all])


def curves_table(c: CurveComparison) -> str:
    """Time per sample of every device at every batch that fits it."""
    batches = sorted({batch for curve in c.curves for batch in curve.batches})
    rows = []
    for curve in c.curves:
        at = {point.estimate.batch: show(1.0 / point.throughput_per_s, "s", 3) for point in curve.points}
        rows.append((curve.name, *(at.get(batch, "-") for batch in batches)))
    return _table(f"<b>{text(c.network)}</b>: time per sample", ("device", *(f"batch {batch}" for batch in batches)), rows)




def _table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], barred: int = -1, values: Sequence[float] = ()
) -> str:
    """A table of texts; `caption` is markup. Column `barred` has bars as long as the `values` of the first rows."""
    most = max(values, default=0.0)

    def cell(row: int, column: int, said: str) -> str:
        drawn = bar(values[row], most) if column == barred and row < len(values) else ""
        return f'<td style="text-align:left">{drawn}{text(said)}</td>'

    heads = "".join(f'<th style="text-align:left">{text(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(cell(i, k, said) for k, said in enumerate(row)) + "</tr>\n" for i, row in enumerate(rows)
    )
    return (f'<table>\n<caption style="text-align:left">{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n'
            f"<tbody>\n{body}</tbody>\n</table>")  # fmt: skip


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
