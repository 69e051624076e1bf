"""Costs of a comparison as text: an hour of work by part, and work of a given size."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.report.compare_notes import usage_notes
from archsim.report.text import rate_unit, table
from archsim.study.comparison import Comparison
from archsim.study.contender import job_totals
from archsim.study.usage import JobTotals

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0  # s
KWH = 3.6e6  # J
PARTS = ("purchase", "electricity", "idle electricity", "rent")


def duration(seconds: float) -> str:
    """A time in the unit in which people wait for it.

    >>> duration(200000), duration(5000), duration(90), duration(0.02)
    ('2.31 days', '1.39 h', '1.5 min', '20 ms')
    """
    for size, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.0f} {name}" if seconds >= 1000 * size else f"{seconds / size:.3g} {name}"
    return show(seconds, "s", 3)


def money_text(usd: float | None, digits: int = 3) -> str:
    """An amount of dollars."""
    if usd is None:
        return "-"
    return f"{usd:,.0f} USD" if usd >= 1000 else f"{usd:.{digits}g} USD"


def cost_head(c: Comparison) -> tuple[str, ...]:
    """The columns of the table of costs: the parts that any device has."""
    sample = rate_unit(c.contenders[0].estimate).removesuffix("/s")
    return ("device", *(f"{part} USD/h" for part in cost_parts(c)), "USD/h", f"USD/M {sample}")


def cost_parts(c: Comparison) -> list[str]:
    """The parts of the costs that any device has."""
    return [part for part in PARTS if any((x.hourly_usd or {}).get(part) for x in c.contenders)]


def cost_text(c: Comparison) -> str:
    """What an hour of work costs by part, and a million samples; empty if nothing was said of the use."""
    ranking = next((r for r in c.rankings if r.criterion.usage), None)
    if ranking is None or not ranking.order:
        return ""
    rows = [
        (x.name, *(_amount((x.hourly_usd or {}).get(part)) for part in cost_parts(c)), _amount(x.usd_per_hour),
         _amount(x.usd_per_million))
        for x in ranking.order
    ]  # fmt: skip
    return "\n".join(["Cost of work:", table(cost_head(c), rows), *usage_notes(ranking.order)])


def _amount(usd: float | None) -> str:
    return "-" if usd is None else f"{usd:.3g}"


def workload_title(c: Comparison) -> str:
    """The size of the work, in words."""
    assert c.workload is not None
    e, sample = c.contenders[0].estimate, rate_unit(c.contenders[0].estimate).removesuffix("/s")
    times = "" if c.workload.epochs == 1 else f"{c.workload.epochs} epochs of "
    return f"{times}{c.workload.samples} {sample}, {e.task}, batch {e.batch}"


WORKLOAD_HEAD = ("device", "batches", "time", "interval", "energy", "cost")


def workload_rows(c: Comparison) -> list[tuple[str, JobTotals]]:
    """The totals of each device, quickest first."""
    assert c.workload is not None
    return [(x.name, job_totals(x, c.workload)) for x in sorted(c.contenders, key=lambda x: x.latency_s)]


def workload_cells(t: JobTotals) -> Sequence[str]:
    """Batches, time, its interval, energy and cost."""
    low, high = t.interval_s
    return (str(t.batches), duration(t.time_s), f"{duration(low)} to {duration(high)}", f"{t.energy_j / KWH:.3g} kWh",
            money_text(t.cost_usd))  # fmt: skip


def workload_text(c: Comparison) -> str:
    """Time, energy and cost of work of the size that was asked; empty without."""
    if c.workload is None:
        return ""
    rows = [(name, *workload_cells(t)) for name, t in workload_rows(c)]
    return "\n".join([f"{workload_title(c)}:", table(WORKLOAD_HEAD, rows), *workload_notes(c)])


def workload_notes(c: Comparison) -> list[str]:
    """What these totals leave out."""
    without = ["loading of data", "tests in between"] if c.contenders[0].estimate.task != "inference" else ["loading of data"]
    if c.contenders[0].estimate.task == "forward_backward":
        without.append("updates (--task training_step has them)")
    return [f"not counted: {', '.join(without)}; energy is that of the device, without PUE"]
