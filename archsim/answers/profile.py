"""What a profile beside its prediction says: how far apart they are, of what the gap is made, op by op and kernel by kernel."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any

from archsim.answers import tagged
from archsim.answers.timeline import timeline_chart
from archsim.base.units import show
from archsim.cost.bounds import bound_word
from archsim.render.blocks import Block, Cell, Chart, Note, Piece, Table, Verdict, columns, count, number, percent, stacked, words
from archsim.render.text import csv_lines
from archsim.schedule.observer import Recording, TimelineSlice
from archsim.study.profile_gap import MeasuredKernel, PredictedKernel
from archsim.study.profiled import SCHEMA, ProfileComparison

FIRST = 6  # ops on the first screen, the longest ones
LONG_NAME = 48  # characters of a kernel's name
NOTHING_S = 1e-12  # less is rounding [s]
CAUSES = 2  # that the verdict names


record = tagged(SCHEMA)


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
