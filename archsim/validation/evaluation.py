"""A validation: measured values beside those that the model and its baselines predict, with scores by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from archsim.base.answer import Answer
from archsim.base.errors import ArchsimError
from archsim.calibration.constants import Calibration, spread_of_product
from archsim.calibration.wall import DESCRIBED, GENERIC, wall_constants
from archsim.cost.cost import Array
from archsim.estimation.fidelity import FITTED, find
from archsim.estimation.measured import differences, request_of, value_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, make_request
from archsim.evidence.case import Case, Skip
from archsim.evidence.columns import RATES, column, quantity
from archsim.evidence.misses import published_stack, reason_of
from archsim.evidence.pattern import ServingPattern
from archsim.generation.measured import POWER, RATE, TIME, served_spread
from archsim.validation.ablation import left_out
from archsim.validation.baseline import PLAIN, constants_of
from archsim.validation.interval import class_of, platform_of
from archsim.validation.predict import Group, evaluate, prepare, simulated_pattern
from archsim.validation.score import Order, Pairs, Score, device_order, errors, pairs_in_order, score

Conditions = tuple[str, ...]


def plain_values(cases: Sequence[Case], calibration: Calibration, fidelity: str) -> tuple[Array, list[Conditions]]:
    """For each case the plain prediction in the unit of its metric, and the conditions of the source that it lacks.

    NaN and no conditions for rows of single ops, of several devices, and where the words are not understood.
    """
    found, lacking = np.full(len(cases), np.nan), [Conditions()] * len(cases)
    for i, case in enumerate(cases):
        if case.work is None or case.group is not None or case.anchor is not None:
            continue
        try:
            request = plain_request(case, calibration, fidelity)
            found[i] = value_of(case, request, run(request))
            lacking[i] = differences(request_of(case, calibration, fidelity), request)
        except ArchsimError:
            continue
    return found, lacking


def plain_request(case: Case, calibration: Calibration, fidelity: str) -> Request:
    """What the row's own words ask. Raises ArchsimError for words that `archsim estimate` does not take."""
    cells = case.fields
    return make_request(
        cells["network"], cells["hardware"], batch=int(cells["batch"]), precision=cells["precision"], task=cells["task"],
        stack=cells["stack"], threads=case.threads, seq_len=int(cells["seq_len"]) if cells.get("seq_len") else None,
        calibration=calibration, fidelity=fidelity,
    )  # fmt: skip


Tell = Callable[[str], None]
Predictor = Callable[[Sequence[Case]], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSettings:
    """What a validation compares.

    without: parts of the model that are left out
    by: columns whose equal values make a group
    cells: whether each row is shown, not only groups
    held_out: predicts each case with constants that have not seen its `fold`; without it, `calibration` predicts all
    """

    calibration: Calibration
    fidelity: str = FITTED
    without: frozenset[str] = frozenset()
    baselines: tuple[str, ...] = ("roofline", "constants")
    by: tuple[str, ...] = ("source", "quantity")
    cells: bool = False
    held_out: Predictor | None = None
    fold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """The score of the rows that agree in the columns of `by`, and of each baseline on the same rows.

    order: of devices that ran the same network; stacks: pairs of stacks that ran the same on the same device
    """

    by: Mapping[str, str]
    score: Score
    order: Order | None
    stacks: Pairs | None
    baselines: Mapping[str, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation(Answer):
    """The whole comparison. Arrays run along `cases`; `low` and `high` are NaN where a case has no interval.

    reasons: why a prediction is far off, empty where it is not, or nobody knows
    conditions: what the words of each row leave out, for the baseline `plain`
    data: hash of the measurement files, where it is known
    """

    settings: ValidationSettings
    cases: tuple[Case, ...]
    skips: tuple[Skip, ...]
    predicted: Array
    error: Array
    low: Array
    high: Array
    baselines: Mapping[str, Array]
    groups: tuple[GroupScore, ...]
    overall: tuple[GroupScore, ...]
    reasons: tuple[str, ...] = ()
    conditions: tuple[Conditions, ...] = ()
    data: str = ""


def validate(
    cases: Sequence[Case], skips: Sequence[Skip], settings: ValidationSettings, tell: Tell = lambda text: None
) -> Validation:
    """Predict and score. A case whose prediction fails, or is no positive number, becomes a skip."""
    found = PredictedRows.of(cases, settings, tell)
    keep = np.isfinite(found.predicted) & (found.predicted > 0)
    failed = [
        Skip(
            line=case.line, file=case.file, fields=case.fields,
            reason=found.reasons.get(i, "the prediction is no positive number")
        )
        for i, case in enumerate(cases) if not keep[i]
    ]  # fmt: skip
    left = tuple(case for case, kept in zip(cases, keep, strict=True) if kept)
    predicted = found.predicted[keep]
    baselines = {name: values[keep] for name, values in found.baselines.items()}
    conditions: list[Conditions] = []
    if PLAIN in settings.baselines:
        tell("the words of each row")
        baselines[PLAIN], conditions = plain_values(left, settings.calibration, settings.fidelity)
    low, high = intervals(left, predicted, settings.calibration,
                          trusted=find(settings.fidelity).calibrated and not settings.without)  # fmt: skip
    measured, is_rate = measured_values(left)
    error = errors(measured, predicted, is_rate)
    off = {name: errors(measured, values, is_rate) for name, values in baselines.items()}
    groups, overall = (group_scores(left, by, error, off, predicted, low, high) for by in (settings.by, ("quantity",)))
    return Validation(
        settings=settings, cases=left, skips=(*skips, *failed), predicted=predicted, error=error, low=low, high=high,
        baselines=baselines, groups=groups, overall=overall,
        reasons=tuple(reason_of(case, float(miss)) for case, miss in zip(left, error, strict=True)), conditions=tuple(conditions),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRows:
    """Predictions of all cases in the units of their metrics, NaN where none was possible, and why not."""

    predicted: Array
    baselines: Mapping[str, Array]
    reasons: Mapping[int, str]

    @classmethod
    def of(cls, cases: Sequence[Case], settings: ValidationSettings, tell: Tell) -> PredictedRows:
        """Predict in parts, so that an error in one leaves the others predicted."""
        predicted, roofline = np.full(len(cases), np.nan), np.full(len(cases), np.nan)
        reasons: dict[int, str] = {}
        prepared: list[Group] = []
        waiting = _partitions(cases)
        full, (cases, calibration) = cases, left_out(cases, settings.calibration, settings.without)
        for i, case in enumerate(cases):
            if case.simulated:
                try:
                    predicted[i] = simulated_pattern(case, settings.fidelity)
                except ArchsimError as error:
                    reasons[i] = str(error).splitlines()[0]
        while waiting:
            part = waiting.pop()
            tell(f"{len(cases) - np.isnan(predicted).sum()} of {len(cases)} rows")
            rows = [cases[i] for i in part]
            try:
                groups = prepare(rows, settings.without)
                values = evaluate(groups, calibration, settings.fidelity, settings.without)
            except (ArchsimError, ValueError) as error:
                finer = _halves(part, cases)
                waiting += finer
                reasons |= {} if finer else dict.fromkeys(part, str(error).splitlines()[0])
                continue
            predicted[part] = values
            if "roofline" in settings.baselines:
                roofline[part] = _roofline(groups, settings.calibration)
            prepared += [replace(group, positions=np.array(part)[group.positions]) for group in groups]
        sound = sorted(int(i) for group in prepared for i in group.positions)
        if settings.held_out is not None:
            predicted[sound] = settings.held_out([full[i] for i in sound])
        baselines = {"roofline": roofline} if "roofline" in settings.baselines else {}
        if "constants" in settings.baselines and prepared:
            tell("fitting the baseline")
            baselines["constants"] = constants_of(full, prepared)
        return cls(predicted=predicted, baselines=baselines, reasons=reasons)


def _roofline(groups: Sequence[Group], calibration: Calibration) -> Array:
    """What the roofline predicts, NaN for rows without ops, to which it has no answer."""
    found = evaluate(groups, calibration, "roofline")
    for group in groups:
        if group.lowered is None:
            found[group.positions] = np.nan
    return found


def _partitions(cases: Sequence[Case]) -> list[list[int]]:
    """Cases that are predicted together; each run of an engine by itself, since many do not fit their devices."""
    found: dict[object, list[int]] = {}
    for i, case in enumerate(cases):
        if case.simulated:
            continue
        own = i if isinstance(case.pattern, ServingPattern) else None
        found.setdefault((case.spec.digest, case.stack.digest, case.precision, case.training, own), []).append(i)
    return list(found.values())


def _halves(part: list[int], cases: Sequence[Case]) -> list[list[int]]:
    """A part that failed, in two, cut where the label changes; nothing when it has one."""
    labels = sorted({cases[i].label for i in part})
    first = labels[: len(labels) // 2]
    return [[i for i in part if (cases[i].label in first) is inside] for inside in (True, False)] if first else []


def measured_values(cases: Sequence[Case]) -> tuple[Array, NDArray[np.bool_]]:
    """The measured value of each case, and whether it is a rate."""
    is_rate = np.array([case.metric in RATES for case in cases], dtype=bool)
    return np.array([case.measured for case in cases]), is_rate


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
            _, spread = served_spread(calibration, case.spec.kind, platform_of(case), of)
        elif case.anchor is None and case.metric != "clock_hz" and (quantity(case) == "time" or name in calibration.spreads):
            kind, _, what = name.partition(" ")
            _, spread = calibration.spread_of(kind, what, platform_of(case), trusted, without=case.source)
            if case.metric == "energy_j":
                what = class_of(replace(case, metric="latency_s")).partition(" ")[2]
                _, time = calibration.spread_of(kind, what, platform_of(case), trusted, without=case.source)
                spread = spread_of_product(time, spread)
        else:
            continue
        a, b = (spread.low, spread.high) if case.metric == "throughput_per_s" else (-spread.high, -spread.low)
        low[i], high[i] = predicted[i] * np.exp(a), predicted[i] * np.exp(b)
    return low, high


def group_scores(
    cases: Sequence[Case], by: Sequence[str], error: Array, off: Mapping[str, Array], predicted: Array, low: Array, high: Array
) -> tuple[GroupScore, ...]:
    """One score for each combination of values in the columns `by`, the largest group first."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for i, names in enumerate(zip(*(column(cases, name) for name in by), strict=True)):
        rows.setdefault(names, []).append(i)
    measured, _ = measured_values(cases)
    inside = (low <= measured) & (measured <= high)
    found = []
    for names, own in sorted(rows.items(), key=lambda item: (-len(item[1]), item[0])):
        known = [i for i in own if np.isfinite(low[i])]
        found.append(
            GroupScore(
                by=dict(zip(by, names, strict=True)),
                score=score(error[own], inside[known] if len(known) == len(own) else None),
                order=_order([cases[i] for i in own], predicted[own]),
                stacks=_stacks([cases[i] for i in own], predicted[own]),
                baselines={n: score(values[own]) for n, values in off.items() if np.isfinite(values[own]).all()},
            )
        )
    return tuple(found)


def _order(cases: Sequence[Case], predicted: Array) -> Order | None:
    """The order of devices inside each (network, task), by the time of one batch."""
    timed = [i for i, case in enumerate(cases) if quantity(case) == "time"]
    if not timed:
        return None
    own = [cases[i] for i in timed]
    seen, thought = _batch_times(own, predicted[timed])
    groups = [(case.label, case.task) for case in own]
    return device_order(groups, [_work(case) for case in own], [case.hardware for case in own], seen, thought)


def _stacks(cases: Sequence[Case], predicted: Array) -> Pairs | None:
    """The order of stacks with which one source ran the same network on the same device, by the time of one batch."""
    timed = [i for i, case in enumerate(cases) if quantity(case) == "time" and case.work is not None]
    if not timed:
        return None
    own = [cases[i] for i in timed]
    seen, thought = _batch_times(own, predicted[timed])
    return pairs_in_order([_cell(case) for case in own], [published_stack(case) for case in own], seen, thought)


def _cell(case: Case) -> tuple[object, ...]:
    """What two rows that differ in their stack have in common."""
    words = (case.fields.get(name, "") for name in ("task", "threads", "devices", "clock_mhz", "seq_len"))
    return (case.source, case.hardware, case.label, case.batch, case.precision, *words)


def _batch_times(cases: Sequence[Case], predicted: Array) -> tuple[Array, Array]:
    """The measured and the predicted time of one batch [s]."""
    rate = np.array([case.metric == "throughput_per_s" for case in cases])
    batch, measured = (np.array(values) for values in ([case.batch for case in cases], [case.measured for case in cases]))
    return np.where(rate, batch / measured, measured), np.where(rate, batch / predicted, predicted)


def _work(case: Case) -> tuple[object, ...]:
    """The work of a case; devices are put in order where it is equal."""
    ops = case.ops if len(case.ops) <= 2 else ()
    devices = 1 if case.group is None else case.group.devices
    return (case.batch, case.precision, devices, *(op.signature for op in ops))
