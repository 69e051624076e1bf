"""A recording as a chart: one row for each track, one bar for each interval."""

from __future__ import annotations

from archsim.base.units import show
from archsim.render.blocks import Axis, Chart, Series
from archsim.schedule.observer import Recording, TimelineSlice

MOST = 4000  # bars; browsers become slow beyond


def timeline_chart(recording: Recording, title: str = "Timeline") -> Chart:
    """The outermost intervals of each track; of more than `MOST` the longest ones."""
    tracks = list(recording.tracks)
    longest = sorted(outer(recording), key=lambda piece: piece.start_s - piece.end_s)[:MOST]
    series = []
    for kind in sorted({kind_of(piece) for piece in longest}):
        mine = [piece for piece in longest if kind_of(piece) == kind]
        tips = [f"{piece.name}\n{show(piece.start_s, 's')} to {show(piece.end_s, 's')}, "
                f"{show(piece.end_s - piece.start_s, 's', 3)}" for piece in mine]  # fmt: skip
        series.append(Series(name=kind, x=[piece.start_s for piece in mine], ends=[piece.end_s for piece in mine], tips=tips,
                             y=[tracks.index(piece.track) for piece in mine]))  # fmt: skip
    end = max((piece.end_s for piece in longest), default=0.0) or 1.0
    note = "Simulated intervals by track; hover for names. --timeline writes the same with every kernel for ui.perfetto.dev."
    return Chart(title=title, series=series, zooms=True, notes=[note], height=34 * len(tracks),
                 x=Axis(title="time", unit="s", log=False, ends=(0.0, 1.01 * end)), y=Axis(title="", names=tracks))  # fmt: skip


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
