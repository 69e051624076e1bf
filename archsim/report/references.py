"""Published measurements beside the predictions for their settings, as a table."""

from __future__ import annotations

from archsim.base.units import show
from archsim.estimation.references import Reference
from archsim.estimation.result import Estimate
from archsim.report.markup import TableCell, number, percent, table, words
from archsim.report.text import METRIC_NAMES, metric_unit


def references(estimate: Estimate) -> str:
    """One row per measurement, and what was otherwise in it than in the estimate."""
    head = ("metric", "measured", "predicted", "error", "stack", "clock", "source", "measured with")
    return table(head, [_row(estimate, reference) for reference in estimate.references])


def _row(e: Estimate, r: Reference) -> tuple[TableCell, ...]:
    unit = metric_unit(e, r.metric)
    return (
        words(METRIC_NAMES[r.metric]), number(r.measured, unit, 4), number(r.predicted, unit, 4),
        percent(r.error, "+.1f"), words(r.stack), words(show(r.clock_hz, "Hz"), style="num"), words(r.source),
        words("; ".join(r.conditions) or "what is asked here"),
    )  # fmt: skip
