"""A profile beside its prediction as text, JSON, CSV and a table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.base.units import show
from archsim.report.data import rows_as_csv
from archsim.report.markup import number, words
from archsim.report.markup import table as html_table
from archsim.report.text import clean, listed_ops, table
from archsim.study.profile_rows import MeasuredKernel, PredictedKernel, ProfiledOp
from archsim.study.profiled import SCHEMA, ProfileComparison

MOST_MISSED = 12  # names without a prediction that a terminal lists
LONG_NAME = 48  # characters of a kernel's name in a terminal
MOST_KERNELS = 3  # of an op, in a terminal


def profile_text(p: ProfileComparison, kernels: bool = False, all_layers: bool = False) -> str:
    """The run, op by op, what was not matched, and what the gap is made of."""
    parts = [heading(p), _layers(p, all_layers)]
    if kernels:
        parts.append(_kernels(p))
    parts += [_missed(p), _totals(p), gap_text(p), _notes(p)]
    return "\n\n".join(filter(None, parts))


def heading(p: ProfileComparison) -> str:
    """What was recorded, and what is compared with it."""
    return f"{clean(p.path)}: {p.source}, {runs_text(p)}\nbeside      {asked(p)}"


def asked(p: ProfileComparison) -> str:
    """The device and how the network runs on it."""
    return f"{clean(p.hardware_name)}: {len(p.ops)} ops, {p.precision}, stack {p.stack}"


def runs_text(p: ProfileComparison) -> str:
    """How many runs were recorded, and which is shown."""
    if len(p.run_s) == 1:
        return "one run"
    low, high = min(p.run_s), max(p.run_s)
    return f"{len(p.run_s)} runs of {show(low, 's', 3)} to {show(high, 's', 3)}; run {p.shown + 1}, of the median, is shown"


def _layers(p: ProfileComparison, all_layers: bool) -> str:
    shown, others = listed_ops(p.ops, all_layers, longer_s)
    rows = [(op.name, op.kind, op.cause, show(op.measured_s, "s", 3), show(op.predicted_s, "s", 3), ratio(op)) for op in shown]
    return table(("op", "kind", "charged to", "measured", "predicted", "ratio"), rows, left=3) + others


def longer_s(op: ProfiledOp) -> float:
    """The longer of both times of an op [s]."""
    return max(op.measured_s, op.predicted_s)


def ratio(op: ProfiledOp) -> str:
    """Predicted over measured; a dash where one of them is nothing."""
    return f"{op.predicted_s / op.measured_s:.2f}" if op.measured_s and op.predicted_s else "-"


def _kernels(p: ProfileComparison) -> str:
    rows = []
    for op in p.ops:
        pairs = max(len(op.kernels), len(op.predicted_kernels))
        for i in range(min(pairs, MOST_KERNELS)):
            rows.append((op.name if i == 0 else "", *_measured(op.kernels, i), *_predicted(op.predicted_kernels, i)))
        if pairs > MOST_KERNELS:
            rows.append(("", f"({pairs - MOST_KERNELS} more; --json has all)", "", "", ""))
    return table(("op", "kernel", "measured", "predicted kernel", "predicted"), rows, left=2) if rows else ""


def _measured(kernels: Sequence[MeasuredKernel], i: int) -> tuple[str, str]:
    if i >= len(kernels):
        return "-", "-"
    one = kernels[i]
    return short_name(one.name) + (f" x {one.count}" if one.count > 1 else ""), show(one.time_s, "s", 3)


def _predicted(kernels: Sequence[PredictedKernel], i: int) -> tuple[str, str]:
    return ("-", "-") if i >= len(kernels) else (short_name(kernels[i].name), show(kernels[i].time_s, "s", 3))


def short_name(name: str) -> str:
    """A kernel's name without its parameters, cut.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)")
    'at::native::vectorized_elementwise_kernel'
    """
    plain = clean(name).removeprefix("void ")
    for mark in ("<", "("):
        plain = plain.partition(mark)[0] or plain
    return plain if len(plain) <= LONG_NAME else plain[: LONG_NAME - 1] + "…"


def _missed(p: ProfileComparison) -> str:
    if not p.not_matched:
        return "not matched nothing: every call and kernel belongs to an op of the network"
    rows = [(short_name(one.name), one.why, str(one.count), show(one.time_s, "s", 3)) for one in p.not_matched[:MOST_MISSED]]
    total = sum(one.time_s for one in p.not_matched)
    more = f"\n({len(p.not_matched) - MOST_MISSED} more; --json lists all)" if len(p.not_matched) > MOST_MISSED else ""
    return f"Not matched with an op, {show(total, 's', 3)}:\n" + table(("name", "why", "count", "measured"), rows, left=2) + more


def _totals(p: ProfileComparison) -> str:
    return "\n".join([
        f"measured    {show(p.measured_s, 's', 4)}, of which nothing ran for {show(p.idle_s, 's', 3)} "
        f"({_share(p.idle_s, p.measured_s)})",
        f"predicted   {show(p.predicted_s, 's', 4)}, of which the device waits for the host for {show(p.wait_s, 's', 3)}",
        f"gap         {show(p.measured_s - p.predicted_s, 's', 3)} (predicted / measured = {p.predicted_s / p.measured_s:.2f})"
        if p.measured_s else "gap         nothing was measured",
    ])  # fmt: skip


def gap_text(p: ProfileComparison) -> str:
    """The causes, which add up to the gap."""
    rows = [(one.name, one.says, show(one.time_s, "s", 3), _share(one.time_s, p.measured_s)) for one in p.gap]
    rows.append(("sum", "measured - predicted", show(p.measured_s - p.predicted_s, "s", 3),
                 _share(p.measured_s - p.predicted_s, p.measured_s)))  # fmt: skip
    body = table(("cause", "", "time", "of measured"), rows, left=2)
    return f"What the gap is made of (above zero: measured takes longer):\n{body}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _notes(p: ProfileComparison) -> str:
    lines = [("note", line) for line in p.notes] + [("warning", line) for line in p.warnings]
    return "\n".join(f"{what:<11} {clean(line)}" for what, line in lines)


def profile_record(p: ProfileComparison) -> dict[str, Any]:
    """The comparison as plain values."""
    return {"schema": SCHEMA, **asdict(p)}


def profile_csv(p: ProfileComparison) -> str:
    """One row for each op, for each name that was not matched, and for each cause of the gap."""
    rows: list[tuple[Any, ...]] = [
        ("op", op.name, op.kind, len(op.operators), op.measured_s, op.predicted_s, op.bound, op.flop, op.cause) for op in p.ops
    ]
    rows += [("not matched", one.name, one.why, one.count, one.time_s, None, None, None, one.cause) for one in p.not_matched]
    rows += [("gap", one.name, one.says, one.ops, one.time_s, None, None, None, one.name) for one in p.gap]
    head = ("what", "name", "kind", "count", "measured_s", "predicted_s", "bound", "flop", "cause")
    return rows_as_csv(head, rows)


def profile_table(p: ProfileComparison) -> str:
    """The causes of the gap, for a notebook."""
    rows = [(words(one.name), number(one.time_s, "s", 3), words(one.says)) for one in p.gap]
    return html_table(("cause", "time", "what"), rows)
