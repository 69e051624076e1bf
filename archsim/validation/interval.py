"""Intervals: split-conformal quantiles of the errors on held-out rows, for each class of predictions; and those of rows.

Errors of one source are alike, so that a large source is little more evidence than a small one: rows weigh as one over the
square root of how many their source has. A class of times with rows of few sources takes those of its kind of device, a class of
powers the wider of its own and of all powers of its kind. Where the
nearest rows that a prediction could learn from are of other cards, or of other architectures, errors are larger: by how much is
found once, for networks of all classes, and divided out of the errors before the quantiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from archsim.base.record import by_key
from archsim.calibration.constants import NETWORKS, Calibration, Spread, spread_of_product
from archsim.calibration.nearness import ARCHITECTURE, CARD, ELSEWHERE, Evidence, step_of
from archsim.calibration.wall import DESCRIBED, GENERIC, wall_constants
from archsim.cost.cost import Array
from archsim.estimation.hardware import platform_of
from archsim.evidence.case import Case, ClockPattern, ServingPattern, UnitPattern
from archsim.evidence.columns import quantity
from archsim.generation.measured import POWER, RATE, TIME, served_spread

FEW_OPS = 2  # a row of so few ops is a layer or a kernel, not a network
LEAST = 0.05  # half of an interval is never narrower: repeats of one measurement differ by as much
FEWEST = 25  # rows that a class needs for quantiles of its own
POWERS, RELATIVE = ("power", "units"), "by clock"  # how the names of classes of powers end, and of powers beside another
SOURCES, OF_A_SOURCE = 3, 10  # sources that it needs, and rows that make one count


def class_of(case: Case) -> str:
    """The class of a measured row: networks, kernels timed alone, powers and energies of either, powers by what units do."""
    if case.system is not None:
        return f"wall, {'generic' if case.system[0].generic else 'described'} systems"
    if case.anchor is not None or case.metric == "clock_hz":
        return f"{case.spec.kind} power limit"
    if case.pattern is not None:
        by_clock = "by clock" if isinstance(case.pattern, ClockPattern) else quantity(case)
        return f"{case.spec.kind} {'units' if isinstance(case.pattern, UnitPattern) else by_clock}"
    alone = not case.timer.host or len(case.ops) <= FEW_OPS
    if case.metric in ("power_w", "energy_j"):
        return f"{case.spec.kind} {'kernel power' if alone else 'power'}"
    return f"{case.spec.kind} {'kernel' if alone else 'training' if case.training else 'inference'}"


def log_errors(cases: Sequence[Case], predicted: Array) -> Array:
    """log(predicted / measured) as times, for power and energy as they are."""
    ratio = np.log(predicted / np.array([case.measured for case in cases]))
    return np.asarray(np.where([case.metric == "throughput_per_s" for case in cases], -ratio, ratio))


def intervals_of(
    cases: Sequence[Case], predicted: Array, level: float, fold: str, key: Callable[[Case], str]
) -> tuple[dict[str, Spread], tuple[float, ...], dict[str, tuple[Evidence, ...]]]:
    """The spread of each class, how much wider it is by nearness, and the rows behind it, from predictions of held-out rows on
    one device; `key` is the value of the `fold` by which a row was held out.

    Quantiles of |log(predicted / measured)| over the widening of each row sit at rank ceil((n + 1) level), so that a new row
    falls inside with at least the probability `level` (Vovk et al. 2005; Lei et al. 2018, section 2.2; weights: Tibshirani et al.
    2019).
    """
    absolute = [i for i, case in enumerate(cases)
                if (case.anchor, case.group, case.system) == (None, None, None) and case.metric != "clock_hz"]  # fmt: skip
    rows, errors = [cases[i] for i in absolute], log_errors(cases, predicted)[absolute]
    names = np.array([class_of(case) for case in rows])
    steps, counts = held_out_steps(rows, names.tolist(), key), Counter(case.source for case in rows)
    weights = np.array([counts[case.source] ** -0.5 for case in rows])
    networks = np.array([name.endswith(NETWORKS) for name in names], dtype=bool)
    wider = widening(np.abs(errors[networks]), weights[networks], steps[networks], level)
    scale = np.where(networks, np.array(wider)[steps], 1.0)
    spreads = {}
    for name in sorted(set(names.tolist())):
        own = names == name
        if own.sum() >= FEWEST:
            pools = _pools(rows, names, name)
            halves = [quantile(np.abs(errors[pool]) / scale[pool], weights[pool], level) for pool in pools]
            half, pool = max(LEAST, *halves), pools[int(np.argmax(halves))]
            off = np.abs(np.expm1(errors[own]))
            others = f" and {pool.sum() - own.sum()} of others" if (pool != own).any() else ""
            spreads[name] = Spread(
                rows=int(own.sum()), low=-half, high=half, median=float(np.median(off)), p90=float(np.percentile(off, 90)),
                origin=f"held-out {fold}, {own.sum()} rows{others}",
            )  # fmt: skip
    return spreads, wider, evidence_of(rows, names.tolist())


def quantile(values: Array, weights: Array, level: float) -> float:
    """The least of the values that holds the share `level` of the weight of all and of one row more.

    >>> quantile(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), 0.8)
    4.0
    """
    order = np.argsort(values)
    held = np.cumsum(weights[order])
    at = int(np.searchsorted(held, level * (held[-1] + weights.mean()) - 1e-12))
    return float(values[order][min(at, values.size - 1)])


def widening(errors: Array, weights: Array, steps: Array, level: float) -> tuple[float, ...]:
    """How much wider the errors are at each step of nearness than at the nearest, never less than at the step before."""
    at = {step: steps == step for step in (CARD, ARCHITECTURE, ELSEWHERE)}
    found = {step: quantile(errors[own], weights[own], level) for step, own in at.items() if own.sum() >= FEWEST}
    factors = [1.0]
    for step in (ARCHITECTURE, ELSEWHERE):
        known = CARD in found and step in found
        factors.append(max(factors[-1], found[step] / found[CARD] if known else 1.0))
    return tuple(factors)


def held_out_steps(rows: Sequence[Case], names: Sequence[str], key: Callable[[Case], str]) -> Array:
    """How near the rows of each class are that a row's prediction could learn from: those of another value of the fold."""
    cells = [(name, platform_of(case.spec, case.stack_id), key(case)) for case, name in zip(rows, names, strict=True)]
    known = {(name, platform, held): step_of([Evidence(platform=at, source="", rows=1)
                                              for other, at, own in set(cells) if other == name and own != held], platform)
             for name, platform, held in set(cells)}  # fmt: skip
    return np.array([known[cell] for cell in cells], dtype=np.intp)


def evidence_of(rows: Sequence[Case], names: Sequence[str]) -> dict[str, tuple[Evidence, ...]]:
    """How many rows of each class, cell and source there are."""
    counts = Counter((name, platform_of(case.spec, case.stack_id), case.source) for case, name in zip(rows, names, strict=True))
    order = sorted(counts, key=lambda cell: (cell[0], cell[1].device, cell[1].stack, cell[2]))
    found = by_key((cell[0], Evidence(platform=cell[1], source=cell[2], rows=counts[cell])) for cell in order)
    return {name: tuple(each) for name, each in found.items()}


def _pools(rows: Sequence[Case], names: Array, name: str) -> list[Array]:
    """The sets of rows whose errors stand for a class, the widest of which counts: its own, if they are of several sources.

    Otherwise the times of its kind of device, or its own and all powers of its kind: rows of few sources may agree by chance,
    and may be worse for a reason, as kernels that are shorter than what a meter averages over. Powers beside a measured one at
    another clock are like no others.
    """
    own = np.asarray(names == name)
    counts = Counter(case.source for case, inside in zip(rows, own, strict=True) if inside)
    if sum(count >= OF_A_SOURCE for count in counts.values()) >= SOURCES or name.endswith(RELATIVE):
        return [own]
    kind, is_power = name.split()[0], name.endswith(POWERS)
    alike = np.array([each.startswith(f"{kind} ") and each.endswith(POWERS) == is_power and not each.endswith(RELATIVE)
                      for each in names], dtype=bool)  # fmt: skip
    return [own, alike] if is_power else [alike]


def intervals(cases: Sequence[Case], predicted: Array, calibration: Calibration, trusted: bool = True) -> tuple[Array, Array]:
    """Where measured values are expected: lower and upper ends in the units of the metrics, shape [cases] each.

    time, power, energy: [P exp(-high), P exp(-low)];  rate: [P exp(low), P exp(high)]

    P: predicted values; low, high: quantiles of log(predicted / measured) of times, or of powers, of the case's class; of an
    energy those of both, as an estimate states them
    `trusted`: whether the calibration's own errors hold for these predictions; otherwise the class is an extrapolated one.
    Rows of a case's own source are no evidence for it. A served language model has the intervals that `archsim llm` states.
    NaN for ratios to another run, for clocks, and for classes without quantiles.
    """
    low, high = np.full(len(cases), np.nan), np.full(len(cases), np.nan)
    for i, case in enumerate(cases):
        if case.simulated:
            continue
        name = class_of(case)
        if case.system is not None:
            spread = wall_constants().spreads[GENERIC if case.system[0].generic else DESCRIBED]
        elif isinstance(case.pattern, ServingPattern):
            of = {"power": POWER, "energy": POWER, "tokens": RATE}.get(quantity(case), TIME)
            _, spread = served_spread(calibration, case.spec.kind, platform_of(case.spec, case.stack_id), of)
        elif case.anchor is None and case.metric != "clock_hz" and (quantity(case) == "time" or name in calibration.spreads):
            kind, _, what = name.partition(" ")
            _, spread = calibration.spread_of(kind, what, platform_of(case.spec, case.stack_id), trusted, without=case.source)
            if case.metric == "energy_j":
                what = class_of(replace(case, metric="latency_s")).partition(" ")[2]
                _, time = calibration.spread_of(kind, what, platform_of(case.spec, case.stack_id), trusted, without=case.source)
                spread = spread_of_product(time, spread)
        else:
            continue
        a, b = (spread.low, spread.high) if case.metric == "throughput_per_s" else (-spread.high, -spread.low)
        low[i], high[i] = predicted[i] * np.exp(a), predicted[i] * np.exp(b)
    return low, high
