"""An estimate in a notebook: a short table without charts."""

from __future__ import annotations

from archsim.base.units import show, show_capacity
from archsim.estimation.result import Estimate
from archsim.report.markup import text
from archsim.report.text import METRIC_NAMES, METRIC_UNITS, limit_line, rate_unit, time_line


def notebook_table(estimate: Estimate) -> str:
    """Totals, bounds, and published measurements."""
    threads = f", {estimate.threads} threads" if estimate.threads else ""
    tokens = f", {estimate.seq_len} tokens" if estimate.seq_len else ""
    asked = (
        f"{estimate.task.replace('_', ' ')}, batch {estimate.batch}{tokens}, {estimate.precision}, stack {estimate.stack}, "
        f"{show(estimate.clock_hz, 'Hz')}{threads}, {estimate.fidelity} model"
    )
    lines = [*_totals(estimate), *_measured(estimate), *(("warning", line) for line in estimate.warnings)]
    rows = "".join(
        f'<tr><th style="text-align:left">{text(name)}</th><td style="text-align:left">{text(value)}</td></tr>\n'
        for name, value in lines
    )
    caption = f"<b>{text(estimate.network)} on {text(estimate.hardware_name)}</b><br>{text(asked)}"
    return f'<table>\n<caption style="text-align:left">{caption}</caption>\n<tbody>\n{rows}</tbody>\n</table>'


def _totals(e: Estimate) -> list[tuple[str, str]]:
    low, high = e.latency_interval_s
    level = f"{100 * e.interval_level:.0f} % interval {show(low, 's', 3)} to {show(high, 's', 3)}"
    return [
        ("latency", f"{show(e.latency_s, 's')} ({level})"),
        ("throughput", show(e.throughput_per_s, rate_unit(e))),
        ("power", show(e.power_w, "W", 3)),
        ("energy", f"{show(e.energy_j, 'J', 3)} per batch, {e.throughput_per_w:.3g} {rate_unit(e)}/W"),
        ("limited by", limit_line(e)),
        ("time", time_line(e)),
        ("memory", f"{show(e.memory_bytes, 'B', 3)} of {show_capacity(e.memory_capacity_bytes)}: "
                   f"{'fits' if e.fits else 'does not fit'}"),
    ]  # fmt: skip


def _measured(e: Estimate) -> list[tuple[str, str]]:
    return [
        ("measured", f"{METRIC_NAMES[r.metric]} {show(r.measured, METRIC_UNITS[r.metric])}, predicted "
                     f"{show(r.predicted, METRIC_UNITS[r.metric])} ({100 * r.error:+.1f} %; {r.source}; {r.stack}, "
                     f"{show(r.clock_hz, 'Hz')})" + (f"; measured with {'; '.join(r.conditions)}" if r.conditions else ""))
        for r in e.references
    ]  # fmt: skip
