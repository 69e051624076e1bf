"""A cache simulation as text, as JSON and as a page."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from archsim.base.units import show, show_capacity
from archsim.explain.caches import SCHEMA, CacheLevel, CacheReport
from archsim.report import figures
from archsim.report.data import records_csv
from archsim.report.figures import QUIET
from archsim.report.frame import document
from archsim.report.markup import TableCell, items, number, percent, text, words
from archsim.report.markup import table as html_table
from archsim.report.text import clean, table

BAR = 40  # characters of the longest bar of a curve in a terminal
SHOWN = 16  # capacities of a curve in a terminal
HEAD = ("level", "size", "ways", "requests", "hits", "misses", "rate", "cold", "capacity", "conflict", "read below", "written",
        "demand", "of")  # fmt: skip


def cache_record(answer: CacheReport) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": SCHEMA, **asdict(answer)}


def cache_csv(answer: CacheReport) -> str:
    """One row for each level."""
    every = {"source": answer.source, "hardware": answer.hardware, "hardware_name": answer.hardware_name}
    return records_csv([asdict(level) for level in answer.levels], every)


def cache_text(answer: CacheReport) -> str:
    """The whole answer."""
    parts = [_heading(answer), _timing(answer), table(HEAD, [_row(level) for level in answer.levels]), _curve(answer)]
    parts.append("\n".join(f"assumed  {clean(note)}" for note in answer.notes))
    return "\n\n".join(part for part in parts if part)


def _heading(a: CacheReport) -> str:
    cores = f" on {a.cores} cores" if a.cores > 1 else ""
    part = "" if a.simulated == 1.0 else f" ({100 * a.simulated:.2g} % of the kernel)"
    return (
        f"{clean(a.source)} on {clean(a.hardware_name)}: {a.accesses:,} accesses{cores}{part}, {show(a.dram_bytes, 'B')} "
        f"of memory traffic in {show(a.time_s, 's', 3)} ({a.timed_by})"
    )


def _timing(a: CacheReport) -> str:
    """The three times of a program, what it takes at least, and where its accesses hit."""
    t = a.timing
    if t is None:
        return ""
    clocks = t.time_s * t.clock_hz
    hits = ", ".join(f"{level} {count:,}" for level, count in t.hits.items() if count)
    least = ", ".join(f"{name} {show(seconds, 's', 3)}" for name, seconds in t.bounds_s.items())
    return "\n".join([
        f"time          {show(t.time_s, 's')} at {show(t.clock_hz, 'Hz', 3)} if accesses overlap within {t.window} instructions",
        f"at least      {show(t.lower_s, 's')} if all of them overlap: {least}",
        f"at most       {show(t.upper_s, 's')} if each waits for the one before",
        f"instructions  {t.instructions:,}, {t.instructions / clocks:.2f} per clock",
        f"accesses hit  {hits}",
    ])  # fmt: skip


def _row(level: CacheLevel) -> tuple[str, ...]:
    c = level.count
    times = f"{level.instances} x " if level.instances > 1 else ""
    classes = ("-" if value is None else f"{value:,}" for value in (level.cold, level.capacity, level.conflict))
    return (
        level.name, times + show_capacity(level.size), str(level.ways), f"{c.requests:,}", f"{c.hits:,}", f"{c.misses:,}",
        f"{100 * level.miss_rate:.2f} %", *classes, show(c.bytes_read, "B", 3), show(c.bytes_written, "B", 3),
        show(level.demand_Bps, "B/s", 3), show(level.bandwidth_Bps, "B/s", 3),
    )  # fmt: skip


def _curve(a: CacheReport) -> str:
    if not a.curve:
        return ""
    step = max(1, len(a.curve) // SHOWN)
    points = [*a.curve[::step], a.curve[-1]] if (len(a.curve) - 1) % step else list(a.curve[::step])
    ways = next(level.ways for level in a.levels if level.name == a.curve_of)
    rows = [(show_capacity(size, 3), *(f"{100 * value / max(a.uses, 1):.2f} %" for value in (misses, in_sets)),
             "#" * round(BAR * misses / max(a.uses, 1))) for size, misses, in_sets in points]  # fmt: skip
    lines = [f"{size:>10}  {rate:>9}  {other:>9}  {bar}".rstrip() for size, rate, other, bar in rows]
    title = f"Misses of the requests to {a.curve_of}, by capacity: fully associative LRU, and expected in sets of {ways}"
    return "\n".join([title, *lines])


def cache_page(a: CacheReport) -> str:
    """A self-contained page."""
    sections = [
        f"<h1>{text(a.source)} on {text(a.hardware_name)}</h1>", f'<p class="asked">{text(_heading(a))}</p>',
        *([f"<pre>{text(_timing(a))}</pre>"] if a.timing else []),
        html_table(HEAD, [_cells(level) for level in a.levels]),
        '<p class="quiet">Demand is the traffic with the level below over the time, beside the bandwidth of that level. '
        "Negative conflict misses: a fully associative cache of this size would miss more.</p>",
    ]  # fmt: skip
    if a.curve:
        sections += ["<h2>Misses by size</h2>", f'<p class="quiet">Requests to {text(a.curve_of)}: misses of a fully associative '
                     "LRU cache, and expected in sets of as many ways as it has (Smith 1978). Dashed: the levels.</p>",
                     figures.embed(curve_figure(a), "curve")]  # fmt: skip
    sections.append(f"<h2>Assumptions</h2>{items(a.notes)}")
    return document(f"{a.source} on {a.hardware_name}", sections, figures.library())


def _cells(level: CacheLevel) -> tuple[TableCell, ...]:
    c = level.count
    classes = [words("-", style="num") if value is None else number(value, "1", 12)
               for value in (level.cold, level.capacity, level.conflict)]  # fmt: skip
    times = f"{level.instances} x " if level.instances > 1 else ""
    return (
        words(level.name), words(times + show_capacity(level.size)), number(level.ways, "1"), number(c.requests, "1", 12),
        number(c.hits, "1", 12), number(c.misses, "1", 12), percent(level.miss_rate, ".2f"), *classes, number(c.bytes_read, "B"),
        number(c.bytes_written, "B"), number(level.demand_Bps, "B/s"), number(level.bandwidth_Bps, "B/s"),
    )  # fmt: skip


def curve_figure(a: CacheReport) -> Any:
    """The share of misses over capacity, with the sizes of the levels."""
    import plotly.graph_objects as go

    ends = [a.curve[0][0], max([a.curve[-1][0], *(level.size for level in a.levels)])]
    ticks = [2.0**e for e in range(int(math.log2(ends[0])), int(math.log2(ends[1])) + 2, 2)]
    axis = {**figures.AXIS, "tickfont": {"color": QUIET}}
    figure = go.Figure(layout={
        **figures.common(380, 70, 20, 60, 50), "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.08, "yanchor": "bottom"},
        "xaxis": {**axis, "type": "log", "range": [math.log10(ends[0]), math.log10(1.2 * ends[1])], "tickvals": ticks,
                  "ticktext": [show_capacity(tick) for tick in ticks], "title": {"text": "capacity"}},
        "yaxis": {**axis, "tickformat": ".0%", "rangemode": "tozero", "title": {"text": "misses"}},
    })  # fmt: skip
    x = [*(size for size, _, _ in a.curve), ends[1]]  # constant beyond the last point
    for column, name, colour in ((1, "fully associative", "#0072b2"), (2, "in sets", "#d55e00")):
        y = [point[column] / max(a.uses, 1) for point in (*a.curve, a.curve[-1])]
        figure.add_trace(go.Scatter(x=x, y=y, mode="lines", name=name, line={"color": colour, "width": 2, "shape": "hv"}))
    for level in a.levels:
        figure.add_vline(x=level.size, line={"color": QUIET, "width": 1, "dash": "dash"})
        figure.add_annotation(x=math.log10(level.size), y=1, yref="paper", yanchor="bottom", text=level.name, showarrow=False)
    return figure
