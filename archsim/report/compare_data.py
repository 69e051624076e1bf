"""A comparison as plain values, for JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from archsim.report.data import record, rows_as_csv
from archsim.study.batches import BatchCurve
from archsim.study.comparison import Comparison, CurveComparison, Excluded
from archsim.study.contender import Contender, job_totals
from archsim.study.correlation import pair_correlation
from archsim.study.difference import differences
from archsim.study.ranking import Ranking
from archsim.study.stack_change import StackChange
from archsim.study.usage import Workload

CURVES_SCHEMA = "archsim-curves/1"
COLUMNS = (
    "hardware", "hardware_name", "stack", "clock_hz", "latency_s", "throughput_per_s", "power_w", "energy_j", "throughput_per_w",
    "memory_bytes", "fits", "batch", "price_usd", "throughput_per_usd", "network", "limited_by", "host_cpu",
    "memory_capacity_bytes", "max_batch", "price_usd_per_hour", "price_source", "cost_usd_per_hour", "cost_usd_per_million",
    "lifetime_years", "duty", "electricity_usd_per_kwh", "pue", "job_samples", "job_epochs", "job_time_s", "job_energy_j",
    "job_cost_usd", "cannot_run",
)  # fmt: skip


def comparison_record(comparisons: Sequence[Comparison], changes: Sequence[StackChange] = ()) -> list[dict[str, Any]]:
    """The estimates, each with its price, costs, place in every ranking, and the change from the first of several stacks to its
    own, null without; those that cannot run have `cannot_run` only.
    """
    known = {(change.network, change.after): asdict(change) for change in changes}
    return [row for c in comparisons for row in _rows(c, known)]


def _rows(c: Comparison, changes: Mapping[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    besides = besides_record(c.all)
    rows = [
        record(x.estimate) | own(x, c.workload) | {"ranking": _places(x, c.rankings), "besides_the_device": besides}
        | {"hardware_name": x.full_name, "stack_change": changes.get((x.estimate.network, x.estimate.stack))}
        for x in c.all
    ]  # fmt: skip
    return rows + [{"network": c.network} | excluded_record(one) for one in c.excluded]


def excluded_record(one: Excluded) -> dict[str, Any]:
    """A device that cannot run what is asked, with the reason."""
    return {"hardware": one.hardware, "stack": one.stack, "cannot_run": one.reason}


def besides_record(contenders: Sequence[Contender]) -> list[dict[str, Any]]:
    """What differs besides the device."""
    return [
        {"what": d.name, "values": {value: list(named) for value, named in d.values},
         "range": None if d.range is None else list(d.range)}
        for d in differences(contenders)
    ]  # fmt: skip


def own(c: Contender, work: Workload | None) -> dict[str, Any]:
    """The values that a comparison adds to an estimate, and those that copies change."""
    return {
        "latency_s": c.latency_s, "throughput_per_s": c.throughput_per_s, "energy_j": c.energy_j,
        "throughput_per_w": c.throughput_per_w, "price_usd": c.price_usd, "throughput_per_usd": c.throughput_per_usd,
        "copies": c.copies, "price": None if c.price is None else asdict(c.price),
        "cost": {"usd_per_hour": c.usd_per_hour, "usd_per_million": c.usd_per_million, "hour_by_part": _parts(c), **_use(c)},
        "job": None if work is None else {**asdict(work), **asdict(job_totals(c, work))},
    }  # fmt: skip


def _parts(c: Contender) -> dict[str, float] | None:
    return None if c.hourly_usd is None else dict(c.hourly_usd)


def _use(c: Contender) -> dict[str, Any]:
    """What the cost rests on: the use, and which values of it were assumed."""
    u = c.usage
    values: Mapping[str, tuple[Any, Any]] = {
        "lifetime_years": (u.years, u.lifetime_years), "duty": (u.share, u.duty), "pue": (u.overhead, u.pue),
    }  # fmt: skip
    return {
        "electricity_usd_per_kwh": u.electricity, **{name: used for name, (used, _) in values.items()},
        "assumed": [name for name, (_, given) in values.items() if given is None],
    }  # fmt: skip


def _places(c: Contender, rankings: Sequence[Ranking]) -> dict[str, Any]:
    places: dict[str, Any] = {}
    for r in rankings:
        i = next((i for i, other in enumerate(r.order) if other is c), None)
        places[r.criterion.name] = None if i is None else {
            "place": i + 1, "score": r.scores[i], "before_next": r.ahead[i] if i < len(r.ahead) else None,
            "best": r.best[i], "whole_order": r.whole, "correlation": r.correlation,
            "correlation_with_next": pair_correlation(c, r.order[i + 1], r.correlation) if i < len(r.ahead) else None,
        }  # fmt: skip
    return places


def curves_record(c: CurveComparison, work: Workload | None) -> dict[str, Any]:
    """One object: a curve for each device, the best at each batch, the crossings, and from which batch on each op gains."""
    first = [curve.points[0] for curve in c.curves]
    return {
        "schema": CURVES_SCHEMA,
        "network": c.network,
        "copies": first[0].copies,
        "curves": [_curve(curve, work) for curve in c.curves],
        "best": [_best(one, curve_batch) for one, curve_batch in zip(c.best, c.curves[0].batches, strict=True)],
        "crossings": [asdict(crossing) for crossing in c.crossings],
        "payoffs": [{"home": home, "guest": guest, "ops": [asdict(row) for row in rows]} for home, guest, rows in c.pays],
        "besides_the_device": besides_record(first),
        "cannot_run": [excluded_record(one) for one in c.excluded],
        "notes": list(c.notes),
    }


def _best(c: Comparison, batch: int) -> dict[str, Any]:
    return {"batch": batch} | {
        r.criterion.name: {"name": r.order[0].name, "score": r.scores[0], "probability": r.best[0]} if r.order else None
        for r in c.rankings
    }


def _curve(c: BatchCurve, work: Workload | None) -> dict[str, Any]:
    points = [
        {"batch": p.estimate.batch, **own(p, work), "latency_interval_s": list(p.estimate.latency_interval_s),
         "per_sample_s": time, "efficiency": share, "fits": p.fits, "memory_bytes": p.estimate.memory_bytes}
        for p, time, share in zip(c.points, c.per_sample_s, c.efficiency, strict=True)
    ]  # fmt: skip
    runs = [{"curvature": name, "from": low, "to": high} for name, low, high in c.runs]
    first = c.points[0]
    return {"hardware": first.estimate.hardware, "hardware_name": first.full_name, "name": c.name, "stack": first.estimate.stack,
            "max_batch": c.max_batch, "points": points, "curvature": runs}  # fmt: skip


def comparison_csv(contenders: Sequence[Contender], excluded: Sequence[tuple[str, Excluded]], work: Workload | None) -> str:
    """One row for each device and batch; those that cannot run, by network, have the reason in the last column."""
    rows = [[_cells(c, work).get(name) for name in COLUMNS] for c in contenders]
    for network, one in excluded:
        known = {"network": network, "hardware": one.hardware, "stack": one.stack, "cannot_run": one.reason}
        rows.append([known.get(name) for name in COLUMNS])
    return rows_as_csv(COLUMNS, rows)


def _cells(c: Contender, work: Workload | None) -> dict[str, Any]:
    e, price = c.estimate, c.price
    names = ("stack", "clock_hz", "power_w", "memory_bytes", "batch", "network", "host_cpu", "memory_capacity_bytes", "max_batch")
    cells: dict[str, Any] = {name: getattr(e, name) for name in names}
    cells |= {name: value for name, value in own(c, work).items() if name in COLUMNS}
    cells |= {name: value for name, value in _use(c).items() if name in COLUMNS}
    cells |= {
        "hardware": e.hardware, "hardware_name": c.full_name, "fits": c.fits, "limited_by": e.limited_by,
        "cost_usd_per_hour": c.usd_per_hour, "cost_usd_per_million": c.usd_per_million,
        "price_usd_per_hour": None if price is None else price.usd_per_h, "price_source": None if price is None else price.source,
    }  # fmt: skip
    if work is not None:
        totals = job_totals(c, work)
        cells |= {"job_samples": work.samples, "job_epochs": work.epochs, "job_time_s": totals.time_s,
                  "job_energy_j": totals.energy_j, "job_cost_usd": totals.cost_usd}  # fmt: skip
    return cells
