"""Intervals: split-conformal quantiles of the errors on held-out rows, one pair for each class of predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archsim.calibration.constants import Spread
from archsim.cost.cost import Array
from archsim.evidence.case import Case

FEW_OPS = 2  # a row of so few ops is a layer or a kernel, not a network
LEAST = 0.05  # half of an interval is never narrower: repeats of one measurement differ by as much
FEWEST = 25  # rows that a class needs for quantiles of its own


def class_of(case: Case) -> str:
    """The class of a measured network row; kernels timed alone form their own, and so do powers and energies."""
    if case.anchor is not None or case.metric == "clock_hz":
        return f"{case.spec.kind} power limit"
    if case.metric in ("power_w", "energy_j"):
        return f"{case.spec.kind} power"
    if not case.dispatch or len(case.ops) <= FEW_OPS:
        return f"{case.spec.kind} kernel"
    return f"{case.spec.kind} {'training' if case.training else 'inference'}"


def log_errors(cases: Sequence[Case], predicted: Array) -> Array:
    """log(predicted / measured) as times, for power and energy as they are."""
    ratio = np.log(predicted / np.array([case.measured for case in cases]))
    return np.asarray(np.where([case.metric == "throughput_per_s" for case in cases], -ratio, ratio))


def spreads(cases: Sequence[Case], predicted: Array, level: float, fold: str) -> dict[str, Spread]:
    """The spread of each class from predictions of held-out rows on one device.

    Quantiles sit at ranks ceil((n + 1) (1 +- level) / 2), so that a new row of the class falls between them with at least
    the probability `level` (Vovk et al. 2005; Lei et al. 2018, section 2.2).
    """
    absolute = np.array([case.anchor is None and case.group is None and case.metric != "clock_hz" for case in cases])
    errors = log_errors(cases, predicted)
    names = np.array([class_of(case) for case in cases])
    found = {}
    for name in sorted(set(names[absolute])):
        own = errors[absolute & (names == name)]
        if own.size >= FEWEST:
            found[str(name)] = _spread(own, level, f"held-out {fold}, {own.size} rows")
    return found


def _spread(errors: Array, level: float, origin: str) -> Spread:
    ordered = np.sort(errors)  # the prediction itself always lies inside, also where a whole class is predicted too fast
    n = ordered.size
    rank = min(n - 1, int(np.ceil((n + 1) * (1 + level) / 2)) - 1)
    off = np.abs(np.expm1(errors))
    return Spread(
        rows=n, low=min(-LEAST, float(ordered[n - 1 - rank])), high=max(LEAST, float(ordered[rank])),
        median=float(np.median(off)), p90=float(np.percentile(off, 90)), origin=origin,
    )  # fmt: skip
