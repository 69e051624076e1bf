"""A validation: which measured values it takes, what the model and its baselines predict for them, and scores by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from archsim.base.errors import ArchsimError, UnknownName, one_of
from archsim.base.files import is_path
from archsim.base.record import Answer, by_key
from archsim.calibration.constants import Calibration, default
from archsim.cost.cost import Array
from archsim.detect.catalog import find as find_device
from archsim.device.catalog import spec_beside
from archsim.estimation.fidelity import FITTED, find
from archsim.estimation.measured import PARTS
from archsim.evidence.case import TEST, WATCHED, Case, Skip, error_of
from archsim.evidence.columns import DERIVED, OWN, column, quantity
from archsim.evidence.sources import reason_of
from archsim.stack.catalog import canonical as exact_stack
from archsim.stack.stack import STACK_KEYS
from archsim.trace.file import canonical as exact_network
from archsim.validation.baseline import BASELINES, PLAIN, Conditions, batch_times, constants_of, plain_values, roofline
from archsim.validation.interval import intervals
from archsim.validation.predict import Group, evaluate, floors, prepare, simulated_pattern, together
from archsim.validation.score import Order, Score, device_order, score

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSettings:
    """What a validation compares.

    without: parts of the model that are left out
    by: columns whose equal values make a group
    cells: whether each row is shown, not only groups
    """

    calibration: Calibration
    fidelity: str = FITTED
    without: frozenset[str] = frozenset()
    baselines: tuple[str, ...] = ("roofline", "constants")
    by: tuple[str, ...] = ("source", "quantity")
    cells: bool = False


CELL = "cell"  # among columns to group by: each row is shown, too
USUAL = ("source", "quantity")
# filter -> column of cases, columns of skipped rows of which the first that is filled counts, what errors call it
PLACES = {
    "hw": ("hardware", ("hardware",), "device"), "net": ("label", ("network", "op"), "network"),
    "stack": ("stack", ("stack",), "stack"), "source": ("source", ("source", "source_id"), "source"),
    "split": ("split", ("split",), "split"), "metric": ("metric", ("metric",), "metric"),
}  # fmt: skip


def device_files(devices: Sequence[str], measurements: Sequence[str]) -> dict[str, str]:
    """Device files by the ids that rows name: those that lie beside measurement files, then those among `devices`."""
    near = [path if "/" in path else f"./{path}" for path in map(spec_beside, measurements) if Path(path).is_file()]
    return {find_device(path).identity.id: path for path in (*near, *filter(is_path, devices))}


def selected_rows(
    cases: list[Case], skips: list[Skip], *, disturbed: bool = False, **values_of: Sequence[str]
) -> tuple[list[Case], list[Skip]]:
    """The cases and skips that have one of the values that are wanted for each of `PLACES`, any where none is given.

    disturbed: whether measurements count that other work disturbed

    Raises UnknownName for a value that no row has.
    """
    for option, (of_case, of_skip, word) in PLACES.items():
        wanted = [_exact(option, value) for value in values_of.get(option, ())]
        if not wanted:
            continue
        values = column(cases, of_case)
        left_out = [next(filter(None, map(skip.fields.get, of_skip)), "") for skip in skips]
        for name in wanted:
            if name not in values and name not in left_out:
                raise UnknownName(word, name, sorted({*values, *left_out} - {""}), hint="no measured row has it")
        cases = [case for case, value in zip(cases, values, strict=True) if value in wanted]
        skips = [skip for skip, value in zip(skips, left_out, strict=True) if value in ("", *wanted)]
    left = [Skip(line=case.line, reason=f"other work took the cores in {case.disturbed}; --disturbed scores it all the same",
                 file=case.file, fields=case.fields) for case in cases if case.disturbed and not disturbed]  # fmt: skip
    return [case for case in cases if disturbed or not case.disturbed], [*skips, *left]


def settings_of(
    cases: Sequence[Case], *, by: Sequence[str] = USUAL, fidelity: str = FITTED,
    baseline: Sequence[str] = ("roofline", "constants"), without: Sequence[str] = (), calibration: Calibration | None = None,
) -> ValidationSettings:  # fmt: skip
    """What a validation of these cases compares. Raises UnknownName for a column, fidelity, baseline or part that is none."""
    known = dict.fromkeys([*OWN, *DERIVED, *(name for case in cases for name in case.fields), CELL])
    return ValidationSettings(
        calibration=calibration or default(),
        fidelity=find(fidelity).name,
        without=frozenset(known_words("part", without, (*PARTS, *POWER_PARTS, *STACK_KEYS))),
        baselines=tuple(known_words("baseline", [name for name in baseline if name != "none"], BASELINES)),
        by=tuple(known_words("column", [name for name in by if name != CELL] or (USUAL if CELL in by else ["quantity"]), known)),
        cells=CELL in by,
    )


def known_words(what: str, given: Sequence[str], known: Sequence[str] | Mapping[str, object]) -> Sequence[str]:
    """The given words, all of which are known; UnknownName otherwise."""
    return [one_of(what, name, known) for name in given]


def _exact(option: str, value: str) -> str:
    """What a device, a network, a stack or a split is called here; what is none, like an op of kernel rows, stays as it is."""
    if option == "hw":
        return find_device(value).identity.id
    if (option, value) == ("split", TEST):
        return WATCHED
    try:
        return {"net": exact_network, "stack": exact_stack}.get(option, str)(value)
    except UnknownName:
        return value


# ------------------------------------------------------------------------------------------------------------- validation


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """The score of the rows that agree in the columns of `by`, and of each baseline on the same rows.

    rows: their positions
    order: of devices that ran the same network
    """

    by: Mapping[str, str]
    rows: tuple[int, ...]
    score: Score
    order: Order | None
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
    predicted, least_s, baselines, failed = predictions(cases, settings, tell)
    keep = np.isfinite(predicted) & (predicted > 0)
    left = [
        Skip(line=case.line, file=case.file, fields=case.fields, reason=failed.get(i, "the prediction is no positive number"))
        for i, case in enumerate(cases) if not keep[i]
    ]  # fmt: skip
    cases = tuple(case for case, kept in zip(cases, keep, strict=True) if kept)
    predicted, baselines = predicted[keep], {name: values[keep] for name, values in baselines.items()}
    conditions: list[Conditions] = []
    if PLAIN in settings.baselines:
        tell("the words of each row")
        baselines[PLAIN], conditions = plain_values(cases, settings.calibration, settings.fidelity)
    low, high = intervals(cases, predicted, least_s[keep], settings.calibration,
                          trusted=find(settings.fidelity).calibrated and not settings.without)  # fmt: skip
    error = errors(cases, predicted)
    groups, overall = (group_scores(cases, {name: column(cases, name) for name in by}, predicted, low, high, baselines)
                       for by in (settings.by, ("quantity",)))  # fmt: skip
    return Validation(
        settings=settings, cases=cases, skips=(*skips, *left), predicted=predicted, error=error, low=low, high=high,
        baselines=baselines, groups=groups, overall=overall, conditions=tuple(conditions),
        reasons=tuple(reason_of(case, float(miss)) for case, miss in zip(cases, error, strict=True)),
    )  # fmt: skip


def errors(cases: Sequence[Case], predicted: Array) -> Array:
    """predicted / measured - 1 of each case; of a rate, that of the time that it stands for."""
    with np.errstate(divide="ignore"):
        return np.array([error_of(case.metric, case.measured, value) for case, value in zip(cases, predicted, strict=True)])


# ----------------------------------------------------------------------------------------------------------- predictions


def predictions(
    cases: Sequence[Case], settings: ValidationSettings, tell: Tell = lambda text: None
) -> tuple[Array, Array, dict[str, Array], dict[int, str]]:
    """Predictions of all cases in the units of their metrics, what a roofline needs for each [s], predictions of the baselines,
    and why some have none, which are NaN.

    Cases are predicted in parts, so that an error in one leaves the others predicted.
    """
    predicted, baselines, failed = np.full(len(cases), np.nan), dict[str, Array](), dict[int, str]()
    least_s = predicted.copy()
    if "roofline" in settings.baselines:
        baselines["roofline"] = predicted.copy()
    prepared: list[Group] = []
    waiting = [part for part in together(cases) if not cases[part[0]].simulated]
    full, (cases, calibration) = cases, left_out(cases, settings.calibration, settings.without)
    for i, case in enumerate(cases):
        if case.simulated:
            try:
                predicted[i] = simulated_pattern(case, settings.fidelity)
            except ArchsimError as error:
                failed[i] = str(error).splitlines()[0]
    while waiting:
        part = waiting.pop()
        tell(f"{len(cases) - np.isnan(predicted).sum()} of {len(cases)} rows")
        try:
            groups = prepare([cases[i] for i in part], settings.without)
            values = evaluate(groups, calibration, settings.fidelity, settings.without)
        except (ArchsimError, ValueError) as error:
            finer = _halves(part, cases)
            waiting += finer
            failed |= {} if finer else dict.fromkeys(part, str(error).splitlines()[0])
            continue
        predicted[part], least_s[part] = values, floors(groups)
        if "roofline" in baselines:
            baselines["roofline"][part] = roofline(groups, settings.calibration)
        prepared += [replace(group, positions=np.array(part)[group.positions]) for group in groups]
    if "constants" in settings.baselines and prepared:
        tell("fitting the baseline")
        baselines["constants"] = constants_of(full, prepared)
    return predicted, least_s, baselines, failed


def _halves(part: list[int], cases: Sequence[Case]) -> list[list[int]]:
    """A part that failed, in two, cut where the label changes; nothing when it has one."""
    labels = sorted({cases[i].label for i in part})
    first = labels[: len(labels) // 2]
    return [[i for i in part if (cases[i].label in first) is inside] for inside in (True, False)] if first else []


# --------------------------------------------------------------------------------------------------- parts left out

VOLTAGE = ("power.voltage_slope", "power.voltage_floor")  # of an architecture
LEFT_OUT: Mapping[str, Mapping[str, float]] = {  # part of the power -> what constants whose names begin so are then
    "voltage": {"energy.voltage_floor": 1.0, "energy.core_voltage_floor": 1.0},
    "leakage": {"energy.idle_leakage": 0.0},
    "idle_clock": {"energy.idle_clock": 0.0},
    "memory_clock": {"energy.idle_memory": 0.0},
    "awake": {"energy.clock": 0.0, "energy.core_clock": 0.0},
    "fp32_energy": {"energy.lane": 0.0}, "int_energy": {"energy.int": 0.0}, "fp64_energy": {"energy.double": 0.0},
    "special_energy": {"energy.special": 0.0}, "tensor_energy": {"energy.tensor": 0.0}, "shared_energy": {"energy.shared": 0.0},
    "l2_energy": {"energy.cache": 0.0}, "dram_energy": {"energy.byte.": 0.0},
}  # fmt: skip
POWER_PARTS = tuple(LEFT_OUT)


def left_out(cases: Sequence[Case], calibration: Calibration, without: frozenset[str]) -> tuple[list[Case], Calibration]:
    """The cases and the constants by which these parts of the power, and these keys of stacks, are not modelled.

    A key of a stack: every stack has its default. voltage: the same at every clock; leakage, idle_clock: they stand, whatever
    clock and voltage; memory_clock: what stands does not follow it; the energies of units are none, neither is that of the
    clocks of units at work (awake)
    """
    found: dict[str, float] = {}
    for part in without & LEFT_OUT.keys():
        for begins, value in LEFT_OUT[part].items():
            found |= dict.fromkeys((name for name in calibration.constants if name.startswith(begins)), value)
    flat = [_flat(case) for case in cases] if "voltage" in without else list(cases)
    if keys := without.intersection(STACK_KEYS):
        own = {case.stack.digest: case.stack for case in flat}
        stacks = {digest: stack.without(keys) for digest, stack in own.items()}
        flat = [case if (other := stacks[case.stack.digest]) == case.stack else replace(case, stack=other) for case in flat]
    return flat, calibration.with_values(found) if found else calibration


def _flat(case: Case) -> Case:
    """The case on a device of whose voltage nothing is known."""
    entries = {key: entry for key, entry in case.spec.entries.items() if key not in VOLTAGE}
    return case if len(entries) == len(case.spec.entries) else replace(case, spec=replace(case.spec, entries=entries))


# ---------------------------------------------------------------------------------------------------------------- scores


def group_scores(
    cases: Sequence[Case], by: Mapping[str, Sequence[str]], predicted: Array, low: Array, high: Array,
    baselines: Mapping[str, Array], only: Iterable[int] | None = None,
) -> tuple[GroupScore, ...]:  # fmt: skip
    """One score for each combination of values in the columns `by`, the largest group first; `only`: of these rows.

    A group has a coverage where all its rows have an interval, and the score of a baseline that predicts all of them.
    """
    rows = by_key((tuple([values[i] for values in by.values()]), i) for i in (range(len(cases)) if only is None else only))
    error, off = errors(cases, predicted), {name: errors(cases, values) for name, values in baselines.items()}
    measured = np.array([case.measured for case in cases])
    inside = (low <= measured) & (measured <= high)
    found = []
    for names, at in sorted(rows.items(), key=lambda item: (-len(item[1]), item[0])):
        found.append(GroupScore(
            by=dict(zip(by, names, strict=True)), rows=tuple(at), order=_order([cases[i] for i in at], predicted[at]),
            score=score(error[at], inside[at] if np.isfinite(low[at]).all() else None),
            baselines={name: score(values[at]) for name, values in off.items() if np.isfinite(values[at]).all()},
        ))  # fmt: skip
    return tuple(found)


def _order(cases: Sequence[Case], predicted: Array) -> Order | None:
    """The order of devices inside each (network, task), by the time of one batch."""
    timed = [i for i, case in enumerate(cases) if quantity(case) == "time"]
    if not timed:
        return None
    own = [cases[i] for i in timed]
    seen, thought = batch_times(own, np.array([case.measured for case in own])), batch_times(own, predicted[timed])
    return device_order([(case.label, case.task) for case in own], [_work(case) for case in own],
                        [case.hardware for case in own], seen, thought)  # fmt: skip


def _work(case: Case) -> tuple[object, ...]:
    """The work of a case; devices are put in order where it is equal."""
    ops = case.ops if len(case.ops) <= 2 else ()
    devices = 1 if case.group is None else case.group.devices
    return (case.batch, case.precision, devices, *(op.signature for op in ops))
