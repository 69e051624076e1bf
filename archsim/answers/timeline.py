"""What happens over time, as charts: a recording with a row for each track and a bar for each interval; and the power."""

from __future__ import annotations

from archsim.base.units import show
from archsim.estimation.power_curve import averaged
from archsim.estimation.result import Estimate
from archsim.render.blocks import Axis, Chart, Series
from archsim.schedule.observer import Recording, TimelineSlice

MOST = 4000  # bars; browsers become slow beyond
MOST_STEPS = 160  # of the drawn power


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


def power_chart(e: Estimate) -> Chart:
    """Power between the starts and ends of kernels."""
    shown = averaged(e.power_over_time, MOST_STEPS)
    mean, boundary = (e.power_w, e.power_boundary) if e.wall is None else (e.wall.device_w, e.wall.device_boundary)
    curve = Series(name="power", x=shown.time_s, y=[*shown.power_w, shown.power_w[-1]], mark="", tone="0", stepped=True)
    guides = [("y", mean, f"mean {show(mean, 'W', 3)}"), ("y", e.power_limit_w, f"limit {show(e.power_limit_w, 'W', 3)}")]
    note = ("A kernel draws its mean power, a device that waits its idle power at its clock. "
            f"Boundary: {boundary}.")  # fmt: skip
    if shown is not e.power_over_time:
        note += f" Drawn are means over {show(shown.time_s[1], 's', 3)}."
    return Chart(title="Power over time", series=[curve], guides=guides, notes=[note], height=240, level=1,  # type: ignore[arg-type]
                 x=Axis(title="time", unit="s", log=False, ends=(0.0, max(shown.time_s[-1], 1e-12))),
                 y=Axis(title="power", unit="W", log=False, ends=(0.0, 1.08 * max(e.power_limit_w, e.power_peak_w))))  # fmt: skip
