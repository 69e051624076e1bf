"""A recording as a Gantt chart: one row for each track, one bar for each interval."""

from __future__ import annotations

from typing import Any

from archsim.base.units import show
from archsim.report.figures import LINE, QUIET, axis_ticks, common
from archsim.report.markup import label
from archsim.schedule.observer import Recording, TimelineSlice

ROW = 34  # height of a track [px]
MOST = 4000  # bars; browsers become slow beyond
COLOURS = ("#3b6ea5", "#c8792b", "#4d8a57", "#8c5a8e", "#a3423f", "#5f7f8f", "#b79c2e", "#6c5fb0",
           "#2f9c95", "#b5597a", "#7a6248", "#8aa34d")  # neighbours of one track take turns


def gantt(recording: Recording) -> Any:
    """The chart of the outermost intervals of each track; of more than `MOST` the longest ones."""
    import plotly.graph_objects as go

    tracks = list(recording.tracks)
    pieces = outer(recording)
    longest = sorted(pieces, key=lambda piece: piece.start_s - piece.end_s)[:MOST]
    end = max((piece.end_s for piece in pieces), default=0.0) or 1.0
    kinds = {name: i for i, name in enumerate(sorted({kind_of(piece) for piece in longest}))}
    left = max(80.0, 7.0 * max(map(len, tracks), default=0) + 20)
    figure = go.Figure(layout={
        **common(ROW * len(tracks) + 100, left, 20, 46, 40), "barmode": "overlay",
        "showlegend": len(kinds) > 1, "legend": {"orientation": "h", "x": 0, "y": 0, "yanchor": "top"},
        "xaxis": {"side": "top", "showgrid": False, "zerolinecolor": LINE, "tickfont": {"color": QUIET},
                  **axis_ticks(end, "s", 8), "range": [0, 1.01 * end]},
        "yaxis": {"range": [len(tracks) - 0.5, -0.5], "tickvals": list(range(len(tracks))),
                  "ticktext": [label(track) for track in tracks], "showgrid": False, "zeroline": False, "ticks": "",
                  "ticklabelstandoff": 5},
    })  # fmt: skip
    for name, number in kinds.items():
        mine = [piece for piece in longest if kind_of(piece) == name]
        figure.add_trace(go.Bar(
            orientation="h", base=[piece.start_s for piece in mine], x=[piece.end_s - piece.start_s for piece in mine],
            y=[tracks.index(piece.track) for piece in mine], name=label(name), hoverinfo="text",
            hovertext=[f"{label(piece.name, 80)}<br>{show(piece.start_s, 's')} to {show(piece.end_s, 's')}, "
                       f"{show(piece.end_s - piece.start_s, 's', 3)}" for piece in mine],
            width=0.75, marker={"color": COLOURS[number % len(COLOURS)], "line": {"width": 0}},
        ))  # fmt: skip
    return figure


def kind_of(piece: TimelineSlice) -> str:
    """The kind of an interval, which decides its colour."""
    return str(piece.words.get("kind", piece.track))


def outer(recording: Recording) -> list[TimelineSlice]:
    """The intervals that lie inside no other of their track, in order of time."""
    reach: dict[str, float] = {}
    found = []
    for piece in sorted(recording.slices, key=lambda piece: (piece.start_s, -piece.end_s)):
        if piece.end_s > reach.get(piece.track, -1.0):
            found.append(piece)
            reach[piece.track] = piece.end_s
    return found
