"""A served language model as a self-contained HTML page."""

from __future__ import annotations

from typing import Any

from archsim.base.units import show
from archsim.generation.estimate import GenerationEstimate
from archsim.report import figures
from archsim.report.frame import document
from archsim.report.llm import PARTS, figures_of, heading, measured_section
from archsim.report.markup import items, number, table, text, words

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")


def llm_page(found: GenerationEstimate) -> str:
    """The whole page."""
    title = heading(found)
    rows = [tuple(map(words, row)) for row in figures_of(found)]
    memory = [(words(part.replace("_", " ")), number(found.memory_bytes[part], "B", 3)) for part in (*PARTS, "total")]
    around = f"intervals of {100 * found.interval_level:.0f} %: {found.interval_basis}"
    notes = [around, *(f"{name}: {said}" for name, said in found.basis.items()), *found.assumptions, *found.warnings]
    sections = [
        f"<h1>{text(found.network)} on {text(found.hardware_name)}</h1>", f'<p class="asked">{text(title)}</p>',
        table(("what", "figure", ""), rows, style="pairs"), "<h2>Phases</h2>",
        '<p class="quiet">Time of each phase by what limits it.</p>', figures.embed(_phases(found), "phases"),
        "<h2>Memory of a device</h2>", table(("part", "size"), memory), measured_section(found),
        "<h2>What the numbers rest on</h2>",
        items(notes),
    ]  # fmt: skip
    if found.benchmark:
        sections.append(f"<p>The engine measures the same by</p><pre>{text(found.benchmark)}</pre>")
    return document(title, sections, figures.library())


def _phases(found: GenerationEstimate) -> Any:
    import plotly.graph_objects as go

    names = list(dict.fromkeys(name for phase in found.phases.values() for name in phase.breakdown_s))
    most = max(phase.time_s for phase in found.phases.values())
    figure = go.Figure(layout={
        **figures.common(220, 70, 20, 20, 50), "barmode": "stack",
        "xaxis": {**figures.axis_ticks(most, "s", 8), **figures.AXIS},
        "yaxis": {"fixedrange": True}, "showlegend": True,
    })  # fmt: skip
    for position, name in enumerate(names):
        values = [phase.breakdown_s.get(name, 0.0) for phase in found.phases.values()]
        figure.add_trace(go.Bar(
            name=name, orientation="h", y=list(found.phases), x=values, hoverinfo="text",
            hovertext=[f"{name}: {show(value, 's')}" for value in values],
            marker={"color": COLOURS[position % len(COLOURS)]},
        ))  # fmt: skip
    return figure
