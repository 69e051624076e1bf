"""Intervals: split-conformal quantiles of the errors on held-out rows, for each class of predictions; and those of rows.

Errors are larger for some questions than for others: where a roofline explains little of a time, for narrow operands, for small
batches, where no row is of the card or of its architecture. By how much is found for each group of classes by a regression of the
logs of the errors, and divided out of them before the quantiles (normalised nonconformity; Lei et al. 2018, section 5.2).

Rows to which nothing is fitted count as others do, as each was predicted without it. They alone tell how far predictions are off
where the model was made without rows: a row that is fitted was in view when mechanisms were chosen, whatever fold the constants
leave out, so that its own card is near to it. To a row that nothing is fitted to, its own source is not.

Errors of one source on one architecture are alike, so that many such rows are little more evidence than few: each weighs as one
over the square root of how many there are. A class with rows of few sources has the wider quantile of its own and of its group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from archsim.base.record import by_key
from archsim.calibration.constants import SERVED, Calibration, Spread, group_of, rests_on, spread_of_product
from archsim.calibration.nearness import FEATURES, LARGE, Evidence, Question
from archsim.calibration.wall import DESCRIBED, GENERIC, wall_constants
from archsim.cost.cost import Array
from archsim.estimation.hardware import platform_of
from archsim.evidence.case import RATES, Case, ClockPattern, ServingPattern, UnitPattern
from archsim.evidence.columns import quantity
from archsim.generation.measured import served_class
from archsim.validation.predict import predict

FEW_OPS = 2  # a row of so few ops is a layer or a kernel, not a network
LEAST = 0.05  # half of an interval is never narrower: repeats of one measurement differ by as much
FEWEST = 25  # rows that a class needs for quantiles of its own
SOURCES, OF_A_SOURCE = 3, 10  # sources that it needs, and rows that make one count


def class_of(case: Case) -> str:
    """The class of a measured row: networks, kernels timed alone, powers and energies of either, powers by what units do."""
    if case.system is not None:
        return f"wall, {'generic' if case.system[0].generic else 'described'} systems"
    if case.anchor is not None or case.metric == "clock_hz":
        return f"{case.spec.kind} power limit"
    if case.pattern is not None:
        names = {UnitPattern: "units", ClockPattern: "by clock", ServingPattern: served_class(quantity(case))}
        return f"{case.spec.kind} {names.get(type(case.pattern), quantity(case))}"
    if case.metric in ("power_w", "energy_j"):
        return f"{case.spec.kind} {'kernel power' if _alone(case) else 'power'}"
    return f"{case.spec.kind} {'kernel' if _alone(case) else 'training' if case.training else 'inference'}"


def _alone(case: Case) -> bool:
    return not case.timer.host or len(case.ops) <= FEW_OPS


def log_errors(cases: Sequence[Case], predicted: Array) -> Array:
    """log(predicted / measured) as times, for power and energy as they are."""
    ratio = np.log(predicted / np.array([case.measured for case in cases]))
    return np.asarray(np.where([case.metric in RATES for case in cases], -ratio, ratio))


def question_of(case: Case, predicted: float, floor_s: float) -> Question:
    """What a row asks; floor_s: what a roofline needs for it [s], NaN where it has none.

    A kernel that is timed alone has no batch, a power no roofline, and one by what units do no precision.
    """
    timed = quantity(case) == "time" and np.isfinite(floor_s)
    time_s = case.batch / predicted if case.metric in RATES else predicted
    question = Question(platform=platform_of(case.spec, case.stack_id), explained=floor_s / time_s if timed else 1.0)
    if isinstance(case.pattern, ServingPattern):
        return replace(question, precision=case.precision, batch=case.pattern.batch)
    return replace(question, precision=case.precision if case.ops else "fp32", batch=LARGE if _alone(case) else case.batch)


def with_intervals(calibration: Calibration, cases: Sequence[Case], predicted: Array, least_s: Array, fold: str) -> Calibration:
    """The calibration with the intervals of `intervals_of`; those of classes without rows stay as they are."""
    spreads, slopes, evidence = intervals_of(cases, predicted, least_s, calibration.level, fold)
    return replace(
        calibration, spreads={**calibration.spreads, **spreads}, slopes={**calibration.slopes, **slopes},
        evidence={**calibration.evidence, **evidence},
    )  # fmt: skip


def intervals_of(
    cases: Sequence[Case], predicted: Array, least_s: Array, level: float, fold: str
) -> tuple[dict[str, Spread], dict[str, dict[str, float]], dict[str, tuple[Evidence, ...]]]:  # fmt: skip
    """The spread of each class, how its errors grow by group and feature, and the rows behind it, from predictions of rows on one
    device that were held out by a `fold`.

    least_s: what a roofline needs for each [s], NaN where it has no answer; rows without a prediction do not count

    Quantiles of |log(predicted / measured)| / scale sit at rank ceil((n + 1) level), so that a new row falls inside with at least
    the probability `level` (Vovk et al. 2005; Lei et al. 2018, section 2.2; weights: Tibshirani et al. 2019).
    """
    absolute = [i for i, case in enumerate(cases) if predicted[i] > 0.0
                and (case.anchor, case.group, case.system) == (None, None, None) and case.metric != "clock_hz"]  # fmt: skip
    rows = [cases[i] for i in absolute]
    errors = np.abs(log_errors(rows, predicted[absolute]))
    names = np.array([class_of(case) for case in rows])
    groups = np.array([group_of(name) for name in names])
    evidence = evidence_of(rows, names.tolist())
    features = np.array([
        question_of(case, predicted[i], least_s[i]).features(
            [one for one in evidence.get(rests_on(name), ()) if case.fitted or one.source != case.source])
        for i, case, name in zip(absolute, rows, names.tolist(), strict=True)
    ])  # fmt: skip
    cells = [(name, case.source, case.spec.identity.kernels_of) for case, name in zip(rows, names.tolist(), strict=True)]
    counts = Counter(cells)
    weights = np.array([counts[cell] ** -0.5 for cell in cells])
    slopes, scale = {}, np.ones(len(rows))
    for group in sorted(set(groups.tolist())):
        own = groups == group
        found = slopes_of(errors[own], features[own], names[own], weights[own])
        scale[own] = np.exp(features[own] @ found)
        slopes[group] = {feature: round(float(slope), 4) for feature, slope in zip(FEATURES, found, strict=True) if slope > 0.0}
    spreads = {}
    for name in sorted(set(names.tolist())):
        own = names == name
        if own.sum() >= FEWEST:
            of_sources = Counter(case.source for case, inside in zip(rows, own, strict=True) if inside)
            few = sum(count >= OF_A_SOURCE for count in of_sources.values()) < SOURCES
            pools = [own, groups == group_of(name)] if few else [own]
            halves = [quantile(errors[pool] / scale[pool], weights[pool], level) for pool in pools]
            half, pool = max(halves), pools[int(np.argmax(halves))]
            half = max(LEAST, half)
            median, p90 = (quantile(errors[pool] / scale[pool], weights[pool], share) for share in (0.5, 0.9))
            others = f" and {pool.sum() - own.sum()} of others" if (pool != own).any() else ""
            spreads[name] = Spread(
                rows=int(own.sum()), low=-half, high=half, median=float(np.expm1(median)), p90=float(np.expm1(p90)),
                origin=f"held-out {fold}, {own.sum()} rows{others}",
            )  # fmt: skip
    return spreads, slopes, evidence


def slopes_of(errors: Array, features: Array, names: Array, weights: Array) -> Array:
    """How the log of an error grows with each feature, none less than 0, by weighted least squares, [F].

    log(max(|e|, LEAST / 2)) = level of the class + slopes . features

    errors: [R]; features: [R, F]; names: of the classes, [R]; weights: [R]
    """
    classes = (names[:, None] == np.unique(names)).astype(float)
    root, slopes = np.sqrt(weights), np.zeros(features.shape[1])
    told = np.flatnonzero(np.ptp(features, axis=0) > 0.0)
    while told.size:
        sides = np.hstack([features[:, told], classes]) * root[:, None]
        found = np.linalg.lstsq(sides, root * np.log(np.maximum(errors, LEAST / 2)), rcond=None)[0][: told.size]
        if (found >= 0.0).all():
            slopes[told] = found
            break
        told = told[found >= 0.0]
    return slopes


def quantile(values: Array, weights: Array, level: float) -> float:
    """The least of the values that holds the share `level` of the weight of all and of one row more.

    >>> quantile(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), 0.8)
    4.0
    """
    order = np.argsort(values)
    held = np.cumsum(weights[order])
    at = int(np.searchsorted(held, level * (held[-1] + weights.mean()) - 1e-12))
    return float(values[order][min(at, values.size - 1)])


def evidence_of(rows: Sequence[Case], names: Sequence[str]) -> dict[str, tuple[Evidence, ...]]:
    """How many rows of each class, cell and source there are to which constants may be fitted."""
    counts = Counter((name, platform_of(case.spec, case.stack_id), case.source)
                     for case, name in zip(rows, names, strict=True) if case.fitted and SERVED not in name)  # fmt: skip
    order = sorted(counts, key=lambda cell: (cell[0], cell[1].device, cell[1].stack, cell[2]))
    found = by_key((cell[0], Evidence(platform=cell[1], source=cell[2], rows=counts[cell])) for cell in order)
    return {name: tuple(each) for name, each in found.items()}


def intervals(
    cases: Sequence[Case], predicted: Array, least_s: Array, calibration: Calibration, trusted: bool = True
) -> tuple[Array, Array]:
    """Where measured values are expected: lower and upper ends in the units of the metrics, shape [cases] each.

    time, power, energy: [P exp(-high), P exp(-low)];  rate: [P exp(low), P exp(high)]

    P: predicted values; low, high: quantiles of log(predicted / measured) of times, or of powers, of the case's class; of an
    energy those of both, as an estimate states them
    least_s: what a roofline needs for each [s], NaN where it has no answer
    `trusted`: whether the calibration's own errors hold for these predictions; otherwise the class is an extrapolated one.
    Rows of a case's own source are no evidence for it. NaN for ratios to another run, for clocks, and for classes without
    quantiles.
    """
    low, high = np.full(len(cases), np.nan), np.full(len(cases), np.nan)
    for i, case in enumerate(cases):
        name, floor_s = class_of(case), least_s[i] if trusted else 0.0
        if case.simulated or case.anchor is not None or case.metric == "clock_hz":
            continue
        if case.system is not None:
            spread = wall_constants().spreads[GENERIC if case.system[0].generic else DESCRIBED]
        elif quantity(case) == "time" or name in calibration.spreads:
            spread = _spread(case, predicted[i], floor_s, calibration, trusted)
            if case.metric == "energy_j":
                timed = replace(case, metric="latency_s")
                time_s = predict([timed], calibration)[0]
                spread = spread_of_product(_spread(timed, time_s, floor_s, calibration, trusted), spread)
        else:
            continue
        a, b = (spread.low, spread.high) if case.metric in RATES else (-spread.high, -spread.low)
        low[i], high[i] = predicted[i] * np.exp(a), predicted[i] * np.exp(b)
    return low, high


def _spread(case: Case, predicted: float, floor_s: float, calibration: Calibration, trusted: bool) -> Spread:
    kind, what = class_of(case).split(" ", 1)
    return calibration.spread_of(kind, what, question_of(case, predicted, floor_s), trusted, without=case.source)[1]
