"""Costs of a comparison as text: an hour of work by part, and work of a given size."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.report.compare_notes import usage_notes
from archsim.report.text import rate_unit, table
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender, job_totals
from archsim.study.usage import Workload

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


def costs(c: Comparison) -> list[tuple[Contender, list[float | None]]]:
    """The amounts of each device below the head, in the order of the cost; none if nothing was said of the use."""
    ranked = next((r.order for r in c.rankings if r.criterion.usage), ())
    parts = cost_parts(c)
    return [(x, [*map((x.hourly_usd or {}).get, parts), x.usd_per_hour, x.usd_per_million]) for x in ranked]


def cost_text(c: Comparison) -> str:
    """What an hour of work costs by part, and a million samples; empty if nothing was said of the use."""
    found = costs(c)
    rows = [(x.name, *map(_amount, amounts)) for x, amounts in found]
    return "\n".join(["Cost of work:", table(cost_head(c), rows), *usage_notes([x for x, _ in found])]) if found else ""


def _amount(usd: float | None) -> str:
    return "-" if usd is None else f"{usd:.3g}"


def workload_title(work: Workload, contenders: Sequence[Contender]) -> str:
    """The size of the work, in words; with the batch, if all have the same."""
    e, sample = contenders[0].estimate, rate_unit(contenders[0].estimate).removesuffix("/s")
    times = "" if work.epochs == 1 else f"{work.epochs} epochs of "
    batches = {c.estimate.batch for c in contenders}
    how = f"batch {e.batch}" if len(batches) == 1 else "each device at its quickest batch"
    return f"{times}{work.samples} {sample}, {e.task}, {how}"


WORKLOAD_HEAD = ("device", "batch", "batches", "time", "interval", "energy", "cost")


def workload_rows(work: Workload, contenders: Sequence[Contender]) -> list[tuple[str, ...]]:
    """Batch, batches, time, its interval, energy and cost of each device, quickest first."""
    totals = sorted(((c, job_totals(c, work)) for c in contenders), key=lambda pair: pair[1].time_s)
    return [
        (c.name, str(c.estimate.batch), str(t.batches), duration(t.time_s), " to ".join(map(duration, t.interval_s)),
         f"{t.energy_j / KWH:.3g} kWh", money_text(t.cost_usd))
        for c, t in totals
    ]  # fmt: skip


def quickest(work: Workload, points: Sequence[Contender]) -> Contender | None:
    """The batch at which a device does the work in the least time, of those that fit; None if none does."""
    return min((p for p in points if p.fits), key=lambda p: job_totals(p, work).time_s, default=None)


def workload_text(work: Workload | None, contenders: Sequence[Contender]) -> str:
    """Time, energy and cost of work of the size that was asked; empty without."""
    if work is None or not contenders:
        return ""
    shown = table(WORKLOAD_HEAD, workload_rows(work, contenders))
    return "\n".join([f"{workload_title(work, contenders)}:", shown, *workload_notes(contenders)])


def workload_notes(contenders: Sequence[Contender]) -> list[str]:
    """What these totals leave out."""
    task = contenders[0].estimate.task
    without = ["loading of data"] + ([] if task == "inference" else ["tests in between"])
    if task == "forward_backward":
        without.append("updates (--task training_step has them)")
    return [f"not counted: {', '.join(without)}; energy is that of the device, without PUE"]
