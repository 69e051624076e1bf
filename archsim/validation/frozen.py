"""Frozen results, the same on every run: of the shipped corpus and of served language models, and what shows that they are out of
date."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archsim.base.record import digest_of
from archsim.calibration.constants import Calibration
from archsim.estimation.measured import PARTS
from archsim.evidence.case import Case, Skip
from archsim.evidence.columns import quantity
from archsim.evidence.family import serving_files
from archsim.evidence.network_rows import engine_of
from archsim.evidence.readers import read_files
from archsim.validation.evaluation import POWER_PARTS, GroupScore, Tell, Validation, ValidationSettings, group_scores, validate
from archsim.validation.interval import class_of

SCHEMA, SERVED = "archsim-validation-summary/1", "archsim-served/1"
DIGITS = 4  # after the point; errors are shares of one
# By these rows of served models are grouped, in the order in which a table lists them.
CARD = ("engine", "hardware", "quantity")
COLUMNS: dict[str, Callable[[Case], str]] = {
    "engine": lambda case: engine_of(case.fields["engine"]), "hardware": lambda case: case.hardware,
    "model": lambda case: case.label, "quantity": quantity,
}  # fmt: skip

Record = dict[str, Any]


def is_network(case: Case) -> bool:
    """Whether a row times a whole network on one device, not a layer or a kernel, and not one run relative to another."""
    return quantity(case) == "time" and case.anchor is None and case.group is None and not class_of(case).endswith("kernel")


def scores(
    v: Validation, *by: Callable[[Case], str], only: Callable[[Case], bool] = lambda case: True
) -> dict[tuple[str, ...], GroupScore]:
    """The scores of the rows of a validation that agree in `by`."""
    columns = {str(i): [*map(key, v.cases)] for i, key in enumerate(by)}
    rows = [i for i, case in enumerate(v.cases) if only(case)]
    groups = group_scores(v.cases, columns, v.predicted, v.low, v.high, v.baselines, rows)
    return {tuple(group.by.values()): group for group in groups}


def record(group: GroupScore) -> Record:
    """A score as plain values."""
    s = group.score
    return {
        "n": s.n, "mape": s.mape, "median": s.median_ape, "p90": s.p90_ape, "bias": s.bias,
        "coverage": s.coverage,
        "baselines": {name: {"mape": one.mape, "median": one.median_ape} for name, one in group.baselines.items()},
    }  # fmt: skip


def summary(v: Validation, provenance: Mapping[str, str]) -> Record:
    """The scores of a validation: overall, and by source, device kind and class."""

    def by_quantity(key: Callable[[Case], str]) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for (name, kind), group in scores(v, key, quantity).items():
            found.setdefault(name, {})[kind] = record(group)
        return found

    networks = {**scores(v, lambda case: "all", only=is_network), **scores(v, lambda case: case.spec.kind, only=is_network)}
    own, told = scores(v, lambda case: case.hardware, only=is_network), ("n", "median", "bias", "coverage")
    devices: dict[str, Record] = {name: {"rows": rows} for name, rows in Counter(case.hardware for case in v.cases).items()}
    for (name,), group in own.items():
        devices[name] |= {key: record(group)[key] for key in told}
    return {
        "schema": SCHEMA, "provenance": dict(provenance), "level": v.settings.calibration.level,
        "overall": by_quantity(lambda case: "all").get("all", {}),
        "networks": {name: record(group) for (name,), group in networks.items()},
        "by_source": by_quantity(lambda case: case.source), "by_kind": by_quantity(lambda case: case.spec.kind),
        "by_class": by_quantity(class_of), "by_sight": by_sight(v), "devices": devices,
        "skipped": dict(Counter(skip.reason for skip in v.skips)),
    }  # fmt: skip


def by_sight(v: Validation) -> dict[str, dict[str, Record]]:
    """The scores of times and powers by what was predicted: of rows that fits may use, `seen`, and of all others, `unseen`."""
    found: dict[str, dict[str, Record]] = {}
    groups = scores(
        v, lambda case: f"{case.spec.kind} network" if is_network(case) else class_of(case),
        lambda case: "seen" if case.fitted else "unseen", only=lambda case: quantity(case) in ("time", "power"),
    )  # fmt: skip
    for (what, sight), group in groups.items():
        found.setdefault(what, {})[sight] = record(group)
    return found


def ablation(cases: Sequence[Case], calibration: Calibration, parts: Sequence[str], tell: Tell) -> dict[str, Record]:
    """For each part of the model how many rows there are, and by how much they are off without it: MAPE and median."""
    found = {}
    for number, part in enumerate(parts if cases else (), 1):
        tell(f"without {part} ({number} of {len(parts)})")
        settings = ValidationSettings(calibration=calibration, without=frozenset([part]), baselines=())
        off = np.abs(validate(cases, [], settings).error)
        found[part] = {"n": off.size, "mape": float(off.mean()), "median": float(np.median(off))}
    return found


def freeze(
    cases: Sequence[Case], skips: Sequence[Skip], calibration: Calibration, *, data: str, version: str,
    tell: Tell = lambda text: None,
) -> Record:  # fmt: skip
    """The whole summary. `data` stands for the files of the rows."""
    result = validate(cases, skips, ValidationSettings(calibration=calibration), tell)
    tell("scoring")
    made = digest_of(np.round(np.log(result.predicted), DIGITS) + 0.0)
    provenance = {"version": version, "calibration": calibration.digest, "data": data, "model": made}
    networks, powers = (list(filter(wanted, result.cases)) for wanted in (is_network, lambda case: quantity(case) == "power"))
    return rounded({  # type: ignore[no-any-return]
        **summary(result, provenance), "ablation": ablation(networks, calibration, PARTS, tell),
        "power_ablation": ablation(powers, calibration, POWER_PARTS, tell),
    })  # fmt: skip


def rounded(value: Any) -> Any:
    """The same plain values, floats rounded, so that the last bits of a machine's arithmetic do not show."""
    if isinstance(value, Mapping):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return round(float(value), DIGITS) + 0.0 if isinstance(value, float) else value


def served_cases() -> tuple[list[Case], list[Skip]]:
    """The shipped runs of served models; no constant of the calibration is fitted to them."""
    return read_files(serving_files())


def served_summary(
    cases: Sequence[Case], skips: Sequence[Skip], calibration: Calibration, *, data: str, version: str,
    tell: Tell = lambda text: None,
) -> Record:  # fmt: skip
    """Scores by quantity, by engine and card, and for each model. `data` stands for the files of the rows."""
    v = validate(cases, skips, ValidationSettings(calibration=calibration, baselines=()), tell)

    def rows(*by: str) -> list[Record]:
        told = ("n", "median", "p90", "bias", "coverage")
        return [{**dict(zip(by, names, strict=True)), **{key: record(group)[key] for key in told}}
                for names, group in sorted(scores(v, *map(COLUMNS.__getitem__, by)).items())]  # fmt: skip

    return rounded({  # type: ignore[no-any-return]
        "schema": SERVED, "level": calibration.level,
        "provenance": {"version": version, "calibration": calibration.digest, "data": data},
        "sources": dict(Counter(case.source for case in v.cases)), "skipped": dict(Counter(skip.reason for skip in v.skips)),
        "overall": rows("quantity"), "cards": rows(*CARD), "groups": rows(*COLUMNS),
    })  # fmt: skip


def as_text(summary: Mapping[str, Any]) -> str:
    """The file: keys sorted, one value a line, so that a change shows as such."""
    return json.dumps(summary, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=True) + "\n"
