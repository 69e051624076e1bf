"""A comparison as plain values, for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.report.data import record
from archsim.study.batches import BatchCurve
from archsim.study.crossover import Crossing, Payoff
from archsim.study.ranking import Contender, Ranking

CURVES_SCHEMA = "archsim-curves/1"


def comparison_record(contenders: Sequence[Contender], rankings: Sequence[Ranking]) -> list[dict[str, Any]]:
    """The estimates, each with its price and its place in every ranking."""
    return [record(c.estimate) | _own(c) | {"ranking": _places(c, rankings)} for c in contenders]


def _own(c: Contender) -> dict[str, Any]:
    """The values that a comparison adds to an estimate, and those that copies change."""
    return {
        "latency_s": c.latency_s, "throughput_per_s": c.throughput_per_s, "energy_j": c.energy_j,
        "throughput_per_w": c.throughput_per_w, "price_usd": c.price_usd, "throughput_per_usd": c.throughput_per_usd,
        "copies": c.copies,
    }  # fmt: skip


def _places(c: Contender, rankings: Sequence[Ranking]) -> dict[str, Any]:
    places: dict[str, Any] = {}
    for r in rankings:
        i = next((i for i, other in enumerate(r.order) if other is c), None)
        places[r.criterion.name] = None if i is None else {
            "place": i + 1, "score": r.scores[i], "before_next": r.ahead[i] if i < len(r.ahead) else None,
            "best": r.best[i], "whole_order": r.whole, "correlation": r.correlation,
            "whole_order_shared": r.shared,
        }  # fmt: skip
    return places


def curves_record(
    curves: Sequence[BatchCurve], found: Sequence[Crossing], pays: Sequence[tuple[str, str, Sequence[Payoff]]]
) -> dict[str, Any]:
    """One object: a curve for each device, the crossings, and from which batch on each op gains."""
    return {
        "schema": CURVES_SCHEMA,
        "network": curves[0].points[0].estimate.network,
        "copies": curves[0].points[0].copies,
        "curves": [_curve(c) for c in curves],
        "crossings": [asdict(c) for c in found],
        "payoffs": [{"home": home, "guest": guest, "ops": [asdict(row) for row in rows]} for home, guest, rows in pays],
    }


def _curve(c: BatchCurve) -> dict[str, Any]:
    points = [
        {"batch": p.estimate.batch, **_own(p), "latency_interval_s": list(p.estimate.latency_interval_s),
         "per_sample_s": time, "efficiency": share, "fits": p.estimate.fits}
        for p, time, share in zip(c.points, c.per_sample_s, c.efficiency, strict=True)
    ]  # fmt: skip
    runs = [{"curvature": name, "from": low, "to": high} for name, low, high in c.runs]
    stack = c.points[0].estimate.stack
    return {"hardware": c.name, "stack": stack, "max_batch": c.max_batch, "points": points, "curvature": runs}
