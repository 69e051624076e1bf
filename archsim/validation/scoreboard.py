"""Several predictors on the same measured rows: archsim, the bare roofline, and others whose values are given."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.cost.cost import Array
from archsim.evidence.case import UNSIMULATED, Case, Skip
from archsim.evidence.columns import ID, column
from archsim.evidence.sources import Claim
from archsim.validation.evaluation import GroupScore, ValidationSettings, errors, group_scores, validate
from archsim.validation.predictor import Predictions

OWN, ROOFLINE = "archsim", "roofline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPredictor:
    """One predictor on the rows of a scoreboard. Arrays run along all its cases, NaN where the predictor has no answer.

    overall: one score for each quantity; groups: for the columns that were asked for. Both are of the rows that it answers, and
    have the scores of archsim and of the roofline on these same rows as baselines.
    """

    predictions: Predictions
    predicted: Array
    error: Array
    low: Array
    high: Array
    overall: tuple[GroupScore, ...]
    groups: tuple[GroupScore, ...]

    @property
    def answered(self) -> int:
        """The rows that it has a value for."""
        return int(np.isfinite(self.predicted).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoreboard:
    """All predictors, on the rows that somebody besides archsim answers.

    asked: how many rows all were asked for
    common: by predictor, the scores of the rows that every one answers; empty where there are none
    data: hash of the measurement files, where it is known; claims: what other tools say of themselves
    """

    settings: ValidationSettings
    asked: int
    cases: tuple[Case, ...]
    skips: tuple[Skip, ...]
    entrants: tuple[ScoredPredictor, ...]
    common: tuple[tuple[GroupScore, ...], ...]
    data: str = ""
    claims: tuple[Claim, ...] = ()


def scoreboard(
    cases: Sequence[Case], skips: Sequence[Skip], others: Sequence[Predictions], settings: ValidationSettings,
    tell: Callable[[str], None] = lambda text: None,
) -> Scoreboard:  # fmt: skip
    """Score `others` beside archsim and the roofline; the cases have ids (`evidence.identity.with_ids`).

    Rows that nobody else answers are left to `validate`: they would say nothing of a predictor.
    """
    answered = {own for one in others for own in one.values}
    played = [case for case in cases if case.fields[ID] in answered]
    computed = [case for case in played if not isinstance(case.pattern, UNSIMULATED)]  # a roofline has no answer without ops
    own = [_own(OWN, settings.fidelity, played, settings, tell), _own(ROOFLINE, ROOFLINE, computed, settings, tell)]
    entered = [one for one in (*own, *others) if any(case.fields[ID] in one.values for case in played)]
    values = {one.name: one.of(played) for one in entered}
    entrants = [_entrant(one, played, values, settings.by) for one in entered]
    all_answer = np.all([np.isfinite(one.predicted) for one in entrants], axis=0) if entrants else np.zeros(len(played), bool)
    shared = [case for case, wanted in zip(played, all_answer, strict=True) if wanted]
    common = [_scores(one.predictions, shared, {}, ("quantity",)) for one in entrants] if shared else []
    return Scoreboard(settings=settings, asked=len(cases), cases=tuple(played), skips=tuple(skips), entrants=tuple(entrants),
                      common=tuple(common))  # fmt: skip


def _own(
    name: str, fidelity: str, cases: Sequence[Case], settings: ValidationSettings, tell: Callable[[str], None]
) -> Predictions:
    """The predictions of a fidelity of archsim, timed."""
    asked = replace(settings, fidelity=fidelity, baselines=())
    begin = time.perf_counter()
    found = validate(cases, (), asked, tell)
    took = time.perf_counter() - begin
    ids = [case.fields[ID] for case in found.cases]
    ends = [(float(a), float(b)) for a, b in zip(found.low, found.high, strict=True)] if name == OWN else []
    return Predictions(
        name=name, values=dict(zip(ids, map(float, found.predicted), strict=True)), seconds=took / len(ids) if ids else None,
        intervals={own: pair for own, pair in zip(ids, ends, strict=bool(ends)) if np.isfinite(pair[0])},
        about=f"the {fidelity} model of archsim, timed here",
    )  # fmt: skip


def _entrant(one: Predictions, cases: Sequence[Case], values: dict[str, Array], by: Sequence[str]) -> ScoredPredictor:
    low, high = one.intervals_of(cases)
    beside = {name: own for name, own in values.items() if name in (OWN, ROOFLINE) and name != one.name}
    return ScoredPredictor(
        predictions=one, predicted=values[one.name], error=errors(cases, values[one.name]), low=low, high=high,
        overall=_scores(one, cases, beside, ("quantity",)), groups=_scores(one, cases, beside, by),
    )  # fmt: skip


def _scores(
    one: Predictions, cases: Sequence[Case], beside: dict[str, Array], by: Sequence[str]
) -> tuple[GroupScore, ...]:
    """The scores of the rows that a predictor answers."""
    predicted = one.of(cases)
    rows = np.flatnonzero(np.isfinite(predicted))
    left = [cases[int(i)] for i in rows]
    return group_scores(left, {name: column(left, name) for name in by}, predicted[rows], *one.intervals_of(left),
                        {name: values[rows] for name, values in beside.items()})  # fmt: skip
