"""How far predictions of served language models are from their published runs: a summary that is the same on every run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archsim.base.version import __version__
from archsim.calibration.constants import Calibration
from archsim.evidence.case import Case, Skip
from archsim.evidence.columns import quantity
from archsim.evidence.family import serving_files
from archsim.evidence.network_rows import engine_of
from archsim.evidence.readers import data_hash, read_files
from archsim.validation.evaluation import Tell, Validation, ValidationSettings, validate
from archsim.validation.frozen import rounded
from archsim.validation.score import score

SCHEMA = "archsim-served/1"
# A group is of the rows that agree in these, which a table lists in this order.
COLUMNS: dict[str, Callable[[Case], str]] = {
    "engine": lambda case: engine_of(case.fields["engine"]), "hardware": lambda case: case.hardware,
    "model": lambda case: case.label, "quantity": quantity,
}  # fmt: skip
CARD, GROUP = ("engine", "hardware", "quantity"), tuple(COLUMNS)

Record = dict[str, Any]


def served_cases() -> tuple[list[Case], list[Skip]]:
    """The shipped runs of served models; no constant of the calibration is fitted to them."""
    return read_files(serving_files())


def provenance(calibration: Calibration) -> dict[str, str]:
    """What a summary is made from."""
    return {"version": __version__, "calibration": calibration.digest, "data": data_hash(serving_files())}


def served_summary(
    cases: Sequence[Case], skips: Sequence[Skip], calibration: Calibration, made_from: Mapping[str, str],
    tell: Tell = lambda text: None,
) -> Record:  # fmt: skip
    """Scores by quantity, by engine and card, and for each model."""
    v = validate(cases, skips, ValidationSettings(calibration=calibration, baselines=()), tell)
    found: Record = rounded({
        "schema": SCHEMA, "provenance": dict(made_from), "level": calibration.level,
        "sources": dict(Counter(case.source for case in v.cases)),
        "skipped": dict(Counter(skip.reason for skip in v.skips)),
        "overall": _scores(v, ("quantity",)), "cards": _scores(v, CARD), "groups": _scores(v, GROUP),
    })  # fmt: skip
    return found


def _scores(v: Validation, by: Sequence[str]) -> list[Record]:
    """One record for each combination of values, in their order."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for i, case in enumerate(v.cases):
        rows.setdefault(tuple(COLUMNS[name](case) for name in by), []).append(i)
    found = []
    for names, own in sorted(rows.items()):
        measured = np.array([v.cases[i].measured for i in own])
        low, high = v.low[own], v.high[own]
        s = score(v.error[own], (low <= measured) & (measured <= high) if np.isfinite(low).all() else None)
        found.append({**dict(zip(by, names, strict=True)), "n": s.n, "median": s.median_ape, "p90": s.p90_ape, "bias": s.bias,
                      "coverage": s.coverage})  # fmt: skip
    return found
