"""The first micro-operations of a simulated core: from rename over start and end to retirement, as text and as a picture."""

from __future__ import annotations

from typing import Any

from archsim.cycle.core import layout
from archsim.report import figures
from archsim.report.markup import label
from archsim.report.palette import SERIES
from archsim.simulate.core import SimulatedCore

ROWS, WIDTH = 24, 88  # micro-operations and clocks of the text
DRAWN = 160  # micro-operations of the picture
LEGEND = "D renamed, = waits, e executes, E done, - waits for those before it, R retired"
PARTS = ("waits for operands or a port", "executes", "waits for those before it")


def timeline_text(s: SimulatedCore) -> list[str]:
    """A line for each of the first micro-operations, a column for each clock, in the manner of llvm-mca."""
    if not s.result.trace:
        return []
    first = s.result.trace[0][2]
    lines = ["The first micro-operations", f"  {LEGEND}"]
    for one in s.result.trace[:ROWS]:
        _, iteration, renamed, _, _, _, _ = one
        if renamed - first >= WIDTH:
            break
        lines.append(f"{iteration:3d} {_name(s, one):<11.11s} {_port(s, one):<4.4s} {_drawn(one, first)}".rstrip())
    return lines


def _drawn(one: tuple[int, ...], first: int) -> str:
    """The clocks of a micro-operation from the first one on; what lies beyond the width is cut off."""
    _, _, renamed, started, ended, retired, port = one
    marks = "." * (renamed - first) + "D"
    if port >= 0:
        marks += "=" * max(0, started - renamed - 1)
        marks += "e" * max(0, ended - max(started, renamed + 1)) + "E"
    end = first + len(marks) - 1
    marks = marks + "-" * (retired - end - 1) + "R" if retired > end else marks[:-1] + "R"
    return marks if len(marks) <= WIDTH else marks[:WIDTH] + ">"


def _name(s: SimulatedCore, one: tuple[int, ...]) -> str:
    row = s.result.rows[one[0]]
    operation = s.loop.operations[row.operation]
    text = operation.text or operation.kind
    if operation.kind == "store":
        return "store data" if row.kind == layout.STORE else "store addr"
    return text if operation.memory is None or row.kind != layout.ARITHMETIC else f"{text} op"


def _port(s: SimulatedCore, one: tuple[int, ...]) -> str:
    return s.machine.ports[one[6]] if one[6] >= 0 else "-"


def timeline_figure(s: SimulatedCore) -> Any:
    """A row for each of the first micro-operations: three bars side by side, from rename to retirement."""
    import plotly.graph_objects as go

    seen = s.result.trace[:DRAWN]
    first = seen[0][2] if seen else 0
    rows = list(range(len(seen)))
    spans = [  # begin and end of each part
        [(one[2], one[3]) if one[6] >= 0 else (one[2], one[2]) for one in seen],
        [(one[3], one[4]) if one[6] >= 0 else (one[2], one[4]) for one in seen],
        [(one[4], one[5]) for one in seen],
    ]  # fmt: skip
    figure = go.Figure(layout={
        **figures.common(13 * max(12, len(seen)) + 120, 150, 20, 44, 50), "barmode": "overlay",
        "xaxis": {"title": {"text": "clock"}, "zeroline": False, "gridcolor": figures.RULE, "side": "top"},
        "yaxis": {"tickvals": rows, "ticktext": [f"{one[1]}: {label(_name(s, one))}" for one in seen], "autorange": "reversed",
                  "zeroline": False, "gridcolor": figures.RULE, "tickfont": {"size": 9}},
        "legend": {"orientation": "h", "y": -0.02, "yanchor": "top"}, "showlegend": True,
    })  # fmt: skip
    tips = [f"{label(_name(s, one))}, iteration {one[1]}, port {_port(s, one)}: renamed {one[2] - first}, "
            f"starts {one[3] - first}, ends {one[4] - first}, retires {one[5] - first}" for one in seen]  # fmt: skip
    for name, part, colour in zip(PARTS, spans, ("#d9d9d9", SERIES[0], "#bdbdbd"), strict=True):
        figure.add_trace(go.Bar(
            orientation="h", name=name, y=rows, base=[begin - first for begin, _ in part], hoverinfo="text", hovertext=tips,
            x=[max(0, end - begin) for begin, end in part], marker={"color": colour, "line": {"width": 0}},
        ))  # fmt: skip
    return figure
