"""The frozen result of the shipped corpus: a summary that is the same on every run, and what shows that it is out of date."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.base.identity import digest_of
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.estimation.measured import PARTS
from archsim.evidence.case import Case, Skip
from archsim.evidence.columns import RATES, quantity
from archsim.validation.ablation import POWER_PARTS, worth
from archsim.validation.crossvalidate import cross_validate
from archsim.validation.evaluation import Tell, Validation, ValidationSettings, intervals, validate
from archsim.validation.interval import class_of
from archsim.validation.score import errors, score

SCHEMA = "archsim-validation-summary/1"
ROWS_PER_FIT = 60  # of each source; a summary refits the model for every device, network, stack and source
DIGITS = 4  # after the point; errors are shares of one
MADE_FROM = ("calibration", "data", "model")  # what has to be equal for a result to be still true

Record = dict[str, Any]


def is_network(case: Case) -> bool:
    """Whether a row times a whole network on one device, not a layer or a kernel, and not one run relative to another."""
    return quantity(case) == "time" and case.anchor is None and case.group is None and not class_of(case).endswith("kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Cases with what has to be known to score any part of them; `baselines` are their errors by name."""

    cases: tuple[Case, ...]
    error: Array
    low: Array
    high: Array
    baselines: Mapping[str, Array]

    @classmethod
    def of(cls, v: Validation) -> Scored:
        """The cases of a validation with its errors and those of its baselines."""
        off = {name: _errors(v.cases, values) for name, values in v.baselines.items()}
        return cls(cases=v.cases, error=v.error, low=v.low, high=v.high, baselines=off)

    def by(self, key: Callable[[Case], str]) -> dict[str, Record]:
        """The scores of the cases that agree in `key`."""
        rows: dict[str, list[int]] = {}
        for i, case in enumerate(self.cases):
            rows.setdefault(key(case), []).append(i)
        return {name: self._scores(own) for name, own in rows.items()}

    def by_quantity(self, key: Callable[[Case], str]) -> dict[str, Record]:
        """The scores of the cases that agree in `key`, times and powers apart."""
        found: dict[str, Record] = {}
        for kind in sorted({quantity(case) for case in self.cases}):
            own = self.only(lambda case, kind=kind: quantity(case) == kind)  # type: ignore[misc]
            for name, scores in own.by(key).items():
                found.setdefault(name, {})[kind] = scores
        return found

    def only(self, wanted: Callable[[Case], bool]) -> Scored:
        """The cases that `wanted` accepts."""
        at = [i for i, case in enumerate(self.cases) if wanted(case)]
        return Scored(
            cases=tuple(self.cases[i] for i in at), error=self.error[at], low=self.low[at], high=self.high[at],
            baselines={name: values[at] for name, values in self.baselines.items()},
        )  # fmt: skip

    def _scores(self, own: list[int]) -> Record:
        measured = np.array([self.cases[i].measured for i in own])
        low, high = self.low[own], self.high[own]
        s = score(self.error[own], (low <= measured) & (measured <= high) if np.isfinite(low).all() else None)
        return {
            "n": s.n, "mape": s.mape, "median": s.median_ape, "p90": s.p90_ape, "bias": s.bias, "ci": list(s.mape_interval),
            "coverage": s.coverage,
            "baselines": {
                name: {"mape": float(np.abs(values[own]).mean()), "median": float(np.median(np.abs(values[own])))}
                for name, values in self.baselines.items() if np.isfinite(values[own]).all()
            },
        }  # fmt: skip


def _errors(cases: Sequence[Case], predicted: Array) -> Array:
    measured = np.array([case.measured for case in cases])
    return errors(measured, predicted, np.array([case.metric in RATES for case in cases], dtype=bool))


def summary(v: Validation, provenance: Mapping[str, str]) -> Record:
    """The scores of a validation: overall, and by source, device kind and class; without ablation and cross-validation."""
    every = Scored.of(v)
    networks = every.only(is_network)
    return {
        "schema": SCHEMA,
        "provenance": dict(provenance),
        "level": v.settings.calibration.level,
        "overall": every.by_quantity(lambda case: "all").get("all", {}),
        "networks": {**networks.by(lambda case: "all"), **networks.by(lambda case: case.spec.kind)},
        "by_source": every.by_quantity(lambda case: case.source),
        "by_kind": every.by_quantity(lambda case: case.spec.kind),
        "by_class": every.by_quantity(class_of),
        "devices": _by_device(every, networks),
        "skipped": dict(Counter(skip.reason for skip in v.skips)),
        "ablation": {},
        "power_ablation": {},
        "cross_validation": {},
    }


def _by_device(every: Scored, networks: Scored) -> dict[str, Record]:
    """For each device how many rows it has, and how far those of whole networks on it are off."""
    rows, scores = Counter(case.hardware for case in every.cases), networks.by(lambda case: case.hardware)
    told = ("n", "median", "bias", "coverage")
    return {name: {"rows": rows[name], **{key: scores[name][key] for key in told if name in scores}} for name in sorted(rows)}


def ablation(cases: Sequence[Case], calibration: Calibration, parts: Sequence[str], tell: Tell) -> dict[str, Record]:
    """For each part of the model, how far these rows are off without it."""

    def errors_without(part: str) -> Array:
        settings = ValidationSettings(calibration=calibration, without=frozenset([part]), baselines=())
        return validate(cases, [], settings).error

    return worth(parts if cases else (), errors_without, tell)


def held_out(
    cases: Sequence[Case], training: Sequence[Case], calibration: Calibration, fold: str, tell: Tell = lambda text: None
) -> dict[str, Record]:
    """The scores by device kind of rows of whole networks that were predicted by constants fitted without their fold."""
    networks = [case for case in cases if is_network(case)]
    predicted = cross_validate(networks, training, calibration, fold, progress=tell, most=ROWS_PER_FIT)
    low, high = intervals(networks, predicted, calibration)
    every = Scored(cases=tuple(networks), error=_errors(networks, predicted), low=low, high=high, baselines={})
    return every.by(lambda case: case.spec.kind)


def kept_folds(text: str, provenance: Mapping[str, str]) -> dict[str, Record]:
    """The cross-validation of an earlier summary, if it was made from the same data and calibration by the same model."""
    try:
        earlier = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(earlier, dict) or earlier.get("schema") != SCHEMA:
        return {}
    made_from, folds = earlier.get("provenance"), earlier.get("cross_validation")
    if not isinstance(made_from, dict) or not isinstance(folds, dict):
        return {}
    return folds if all(made_from.get(name) == provenance[name] for name in MADE_FROM) else {}


def freeze(
    cases: Sequence[Case], skips: Sequence[Skip], calibration: Calibration, *, data: str, version: str,
    folds: Sequence[str] = (), earlier: str = "", tell: Tell = lambda text: None,
) -> Record:  # fmt: skip
    """The whole summary. `data` stands for the files of the rows; `earlier` is the text of the summary that it replaces."""
    result = validate(cases, skips, ValidationSettings(calibration=calibration), tell)
    tell("scoring")
    made = digest_of(np.round(np.log(result.predicted), DIGITS) + 0.0)
    provenance = {"version": version, "calibration": calibration.digest, "data": data, "model": made}
    found = summary(result, provenance)
    found["ablation"] = ablation([case for case in result.cases if is_network(case)], calibration, PARTS, tell)
    powers = [case for case in result.cases if quantity(case) == "power"]
    found["power_ablation"] = ablation(powers, calibration, POWER_PARTS, tell)
    found["cross_validation"] = kept_folds(earlier, provenance)
    for fold in folds:
        found["cross_validation"][fold] = held_out(result.cases, cases, calibration, fold, tell)
    plain: Record = rounded(found)
    return plain


def rounded(value: Any) -> Any:
    """The same plain values, floats rounded, so that the last bits of a machine's arithmetic do not show."""
    if isinstance(value, Mapping):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return round(float(value), DIGITS) + 0.0 if isinstance(value, float) else value


def as_text(summary: Mapping[str, Any]) -> str:
    """The file: keys sorted, one value a line, so that a change shows as such."""
    return json.dumps(summary, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=True) + "\n"
