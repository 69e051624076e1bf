"""A validation: measured rows beside what the model and its baselines predict, scored in groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archsim.cost.constants import Calibration
from archsim.cost.cost import Array
from archsim.errors import ArchsimError
from archsim.validate.baseline import Constants, baseline_roofline, constants_of
from archsim.validate.case import Case, Skip
from archsim.validate.interval import class_of
from archsim.validate.predict import Group, evaluate, prepare
from archsim.validate.score import Order, Score, device_order, errors, score

QUANTITY = {"latency_s": "time", "throughput_per_s": "time", "power_w": "power", "energy_j": "energy"}

Tell = Callable[[str], None]
Predictor = Callable[[Sequence[Case]], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a validation compares. `held_out`, where given, predicts instead of `fidelity` with `calibration`."""

    calibration: Calibration
    fidelity: str = "analytical"
    without: frozenset[str] = frozenset()
    baselines: tuple[str, ...] = ("roofline", "constants")
    by: tuple[str, ...] = ("source", "quantity")
    held_out: Predictor | None = None
    fold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """The score of the rows that agree in the columns of `by`, and of each baseline on them."""

    by: Mapping[str, str]
    score: Score
    order: Order | None
    baselines: Mapping[str, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The whole comparison. Arrays run along `cases`; `low` and `high` are NaN where a case has no interval."""

    request: Request
    cases: tuple[Case, ...]
    skips: tuple[Skip, ...]
    predicted: Array
    error: Array
    low: Array
    high: Array
    baselines: Mapping[str, Array] = field(default_factory=dict)
    constants: Constants | None = None
    groups: tuple[GroupScore, ...] = ()
    overall: tuple[GroupScore, ...] = ()

    def column(self, name: str) -> list[str]:
        """One column of all rows: of the case, or of the file that it came from."""
        return [value_of(case, name) for case in self.cases]


def validate(cases: Sequence[Case], skips: Sequence[Skip], request: Request, tell: Tell = lambda text: None) -> Validation:
    """Predict and score. A case whose prediction fails, or is no positive number, becomes a skip."""
    left, predicted, groups, failed = _predicted(cases, request, tell)
    is_rate = np.array([case.metric == "throughput_per_s" for case in left], dtype=bool)
    measured = np.array([case.measured for case in left])
    low, high = intervals(left, predicted, request)
    tell("scoring")
    found, constants = _baselines(left, groups, request)
    result = Validation(
        request=request, cases=tuple(left), skips=(*skips, *failed), predicted=predicted,
        error=errors(measured, predicted, is_rate), low=low, high=high, baselines=found, constants=constants,
    )  # fmt: skip
    return Validation(
        **{name: getattr(result, name) for name in result.__slots__ if name not in ("groups", "overall")},
        groups=_scored(result, request.by), overall=_scored(result, ("quantity",)),
    )  # fmt: skip


def value_of(case: Case, name: str) -> str:
    """The value of a column of a row."""
    own: Mapping[str, Callable[[Case], Any]] = {
        "source": lambda c: c.source, "hardware": lambda c: c.hardware, "stack": lambda c: c.stack_id,
        "task": lambda c: c.task, "metric": lambda c: c.metric, "split": lambda c: c.split, "batch": lambda c: c.batch,
        "precision": lambda c: c.precision, "label": lambda c: c.label, "file": lambda c: c.file,
        "quantity": lambda c: QUANTITY[c.metric], "kind": lambda c: c.spec.kind,
        "architecture": lambda c: c.spec.identity.architecture, "network": lambda c: c.fields.get("network", c.label),
    }  # fmt: skip
    return str(own[name](case)) if name in own else case.fields.get(name, "")


def _predicted(
    cases: Sequence[Case], request: Request, tell: Tell
) -> tuple[list[Case], Array, list[Group], list[Skip]]:
    """Predictions by partitions, so that one that fails does not take the others along."""
    parts: dict[object, list[Case]] = {}
    for case in cases:
        parts.setdefault((case.spec.digest, case.stack.digest, case.precision, case.training), []).append(case)
    failed: list[Skip] = []
    sound: list[Case] = []
    for i, part in enumerate(parts.values()):
        tell(f"{part[0].hardware} {part[0].stack_id} ({i + 1} of {len(parts)})")
        sound += _lowered(part, request, failed)
    sound.sort(key=_order({id(case): i for i, case in enumerate(cases)}))
    groups = prepare(sound, request.without) if sound else []
    tell("predicting")
    values = request.held_out(sound) if request.held_out else evaluate(groups, request.calibration, request.fidelity, request.without)
    usable = np.isfinite(values) & (values > 0)
    failed += [_skip(case, "the prediction is no positive number") for case, good in zip(sound, usable, strict=True) if not good]
    if not usable.all():
        sound = [case for case, good in zip(sound, usable, strict=True) if good]
        groups, values = (prepare(sound, request.without) if sound else []), values[usable]
    return sound, values, groups, failed
