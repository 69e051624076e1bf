"""A recorded profile beside the prediction, and the timeline of a run."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import zip_longest
from typing import Any

from archsim.base.units import show
from archsim.cost.bounds import bound_word
from archsim.estimation.power_curve import averaged
from archsim.estimation.result import Estimate
from archsim.render.blocks import (
    Axis,
    Block,
    Cell,
    Chart,
    Note,
    Piece,
    Series,
    Table,
    Verdict,
    columns,
    count,
    number,
    percent,
    stacked,
    words,
)
from archsim.render.text import csv_lines
from archsim.schedule.observer import Recording, TimelineSlice
from archsim.study.profile_gap import MeasuredKernel, PredictedKernel
from archsim.study.profiled import SCHEMA, ProfileComparison

FIRST = 6  # ops on the first screen, the longest ones
LONG_NAME = 48  # characters of a kernel's name
NOTHING_S = 1e-12  # less is rounding [s]
CAUSES = 2  # that the verdict names


def record(p: ProfileComparison) -> dict[str, Any]:
    """The comparison as plain values."""
    return {"schema": SCHEMA, **asdict(p)}


def csv(p: ProfileComparison) -> str:
    """One row for each op, for each name that was not matched, and for each cause of the gap."""
    rows: list[tuple[Any, ...]] = [
        ("op", op.name, op.kind, len(op.operators), op.measured_s, op.predicted_s, op.bound, op.flop, op.cause) for op in p.ops
    ]
    rows += [("not matched", one.name, one.why, one.count, one.time_s, None, None, None, one.cause) for one in p.not_matched]
    rows += [("gap", one.name, one.says, one.ops, one.time_s, None, None, None, one.name) for one in p.gap]
    return csv_lines([("what", "name", "kind", "count", "measured_s", "predicted_s", "bound", "flop", "cause"), *rows])


def sections(p: ProfileComparison) -> list[Block]:
    """The blocks of a comparison."""
    found: list[Block] = [verdict(p), *(Note(text=line, tone="warning") for line in p.warnings), gap_table(p), timelines(p),
                          ops_table(p), *missed(p)]  # fmt: skip
    if any(op.kernels for op in p.ops):
        found.append(kernels_table(p))
    return [*found, Note(text="\n".join(p.notes), tone="quiet", level=2)]


def verdict(p: ProfileComparison) -> Verdict:
    """Measured, predicted, and what the gap is mostly made of."""
    share = f"{100 * p.idle_s / p.measured_s:.0f} % of it nothing ran" if p.measured_s else ""
    waits = f"{100 * p.wait_s / p.predicted_s:.0f} % of it waiting for the host" if p.wait_s else ""
    lines = [(f"{show(p.measured_s, 's', 3)} measured", share, ""), (f"{show(p.predicted_s, 's', 3)} predicted", waits, "")]
    asked = [p.source, runs_words(p), f"{len(p.ops)} ops", p.precision, p.stack]
    return Verdict(title=f"{p.network} on {p.hardware_name}, measured and predicted", asked=asked, lines=lines,
                   sentences=[gap_words(p)])  # fmt: skip


def runs_words(p: ProfileComparison) -> str:
    """How many runs were recorded, and which is shown."""
    if len(p.run_s) == 1:
        return "one run"
    low, high = min(p.run_s), max(p.run_s)
    return f"{len(p.run_s)} runs of {show(low, 's', 3)} to {show(high, 's', 3)}, of which run {p.shown + 1}, the median"


def gap_words(p: ProfileComparison) -> str:
    """`The run takes 1.31 times as long as predicted, 2.1 ms more: host gaps 1.5 ms, ...`."""
    if not p.measured_s or not p.predicted_s:
        return "Nothing was measured." if not p.measured_s else "Nothing was predicted."
    gap = p.measured_s - p.predicted_s
    causes = ", ".join(f"{one.name} {_signed(one.time_s)}" for one in p.gap[:CAUSES])
    ratio = p.measured_s / p.predicted_s
    said = f"{ratio:.2f} times as long as predicted" if gap >= 0 else f"{1 / ratio:.2f} times as fast as predicted"
    return f"The run is {said}, {_signed(gap)}{f': {causes}' if causes else ''}."


def _signed(time_s: float) -> str:
    return "0 s" if abs(time_s) < NOTHING_S else f"{'+' if time_s > 0 else '-'}{show(abs(time_s), 's', 3)}"


def gap_table(p: ProfileComparison) -> Table:
    """The causes, which add up to the gap; bars of causes that made the run faster reach to the left."""
    ends = [0.0, *(one.time_s for one in p.gap)]
    low, span = min(ends), (max(ends) - min(ends)) or 1.0
    rows = []
    for one in p.gap:
        start, end = ((at - low) / span for at in sorted((0.0, one.time_s)))
        rows.append([words(one.name, tip=one.says), Cell(text=_signed(one.time_s), value=one.time_s),
                     percent(one.time_s / p.measured_s if p.measured_s else None, "+.0f"),
                     Cell(bar=[Piece(start=start, end=end, tone="1" if one.time_s > 0 else "0")])])  # fmt: skip
    return Table(title="What the gap is made of", rows=rows,
                 columns=columns("cause", "time", "of measured", "", numbers=(1, 2), bars=(3,)))  # fmt: skip


def timelines(p: ProfileComparison) -> Chart:
    """Measured above predicted, on one axis."""
    slices = [TimelineSlice(track=piece.track, name=piece.name, start_s=piece.start_s, end_s=piece.end_s,
                            words={"kind": piece.track}) for piece in (*p.measured_timeline, *p.predicted_timeline)]  # fmt: skip
    note = "Measured above predicted, on one axis. Drag over a part to enlarge it; a double click shows all of it again."
    return replace(timeline_chart(Recording(slices=slices), "Timelines"), notes=[note])


def ops_table(p: ProfileComparison) -> Table:
    """Ops with both times; bars reach to the prediction in the colour of what limits it, rings stand at the measurement."""
    most = max((max(op.measured_s, op.predicted_s) for op in p.ops), default=0.0) or 1.0
    rows = []
    for op in p.ops:
        at, ratio = op.measured_s / most, op.predicted_s / op.measured_s if op.measured_s and op.predicted_s else None
        ring = Piece(start=at, end=at, sign="o", tip=f"measured {show(op.measured_s, 's')}")
        rows.append([words(op.name), words(op.kind.replace("_", " ")), number(op.measured_s, "s"), number(op.predicted_s, "s"),
                     Cell(text="-" if ratio is None else f"{ratio:.2f}", value=ratio),
                     Cell(bar=[*stacked({op.bound: op.predicted_s}, most, "s").bar, ring], value=op.measured_s),
                     words(bound_word(op.bound), tone=op.bound), words(op.cause)])  # fmt: skip
    ranked = sorted(range(len(rows)), key=lambda i: -max(p.ops[i].measured_s, p.ops[i].predicted_s))
    heads = ("op", "kind", "measured", "predicted", "ratio", "", "limited by", "charged to")
    said = "Bars reach to the prediction, rings stand at the measurement; ratio: predicted / measured."
    return Table(title="Ops", rows=rows, notes=[said], first=ranked[:FIRST], long=len(rows) > FIRST,
                 columns=columns(*heads, numbers=(2, 3, 4), bars=(5,), spare=(1, 4, 6, 7)))  # fmt: skip


def kernels_table(p: ProfileComparison) -> Table:
    """The kernels of each op, measured beside predicted."""
    rows = [[words(op.name), *_kernel(one), *_kernel(other)]
            for op in p.ops for one, other in zip_longest(op.kernels, op.predicted_kernels)]  # fmt: skip
    return Table(title="Kernels", columns=columns("op", "kernel", "measured", "predicted kernel", "predicted", numbers=(2, 4)),
                 rows=rows, long=True, level=2)  # fmt: skip


def _kernel(one: MeasuredKernel | PredictedKernel | None) -> tuple[Cell, Cell]:
    if one is None:
        return words("-"), words("-")
    times = f" x {one.count}" if isinstance(one, MeasuredKernel) and one.count > 1 else ""
    return words(short_name(one.name) + times, tip=one.name), number(one.time_s, "s")


def short_name(name: str) -> str:
    """A kernel's name without its parameters, cut.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)")
    'at::native::vectorized_elementwise_kernel'
    """
    plain = name.removeprefix("void ")
    for mark in ("<", "("):
        plain = plain.partition(mark)[0] or plain
    return plain if len(plain) <= LONG_NAME else plain[: LONG_NAME - 1] + "…"


def missed(p: ProfileComparison) -> list[Block]:
    """Calls and kernels that no op of the network stands for: how many, and deeper which."""
    if not p.not_matched:
        return [Note(text="Every call and kernel belongs to an op of the network.", tone="quiet")]
    total = sum(one.time_s for one in p.not_matched)
    rows = [[words(short_name(one.name), tip=one.name), words(one.why), count(one.count, 9), number(one.time_s, "s"),
             words(one.cause)] for one in p.not_matched]  # fmt: skip
    some = f"{len(p.not_matched)} names belong to no op of the network, {show(total, 's', 3)} in all: --all"
    return [Note(text=some, tone="quiet", only="text"),
            Table(title="Not matched", rows=rows, long=True, level=2,
                  columns=columns("name", "why", "count", "measured", "charged to", numbers=(2, 3)))]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ timelines

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
