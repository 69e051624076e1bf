"""Fitting constants to measurements: bounded, robust least squares on log(predicted / measured)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from archsim.base.errors import ArchsimError, MissingExtra
from archsim.calibration.constants import Calibration, FitRecord
from archsim.cost.cost import Array
from archsim.evidence.case import Case
from archsim.validation.predict import evaluate, prepare
from archsim.validation.problem import PRIOR_SPREAD, SOFT, Problem

Tell = Callable[[str], None]
MOST_STEPS = 12  # of the search
TOLD = 0.5  # share of the prior's variance that rows must remove before they are said to tell a constant
AT_BOUND = 0.01  # share of the range within which a value counts as at its bound


class CannotFit(ArchsimError):
    """There is nothing to fit, or nothing to fit it to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The outcome: `calibration` with the fitted values, their covariance (of the logs), and how good it is."""

    calibration: Calibration
    names: tuple[str, ...]
    values: tuple[float, ...]
    covariance: Array
    rows: int
    rows_hash: str
    error_before: float  # median of |predicted / measured - 1|
    error_after: float
    at_bound: tuple[str, ...]
    identified: tuple[float, ...]  # share of the prior's variance that the rows have removed, of each constant


def fit(
    cases: Sequence[Case], start: Calibration, prefixes: Sequence[str] = (), verbose: bool = False,
    begin: Calibration | None = None, tell: Tell = lambda text: None, workers: int = 1,
) -> Fit:  # fmt: skip
    """Fit every constant of `start` that the cases depend on, or those whose names begin with one of `prefixes`.

    `start` has the priors. The search begins there, or at `begin`, near which it ends sooner and a little less exactly.
    `workers` processes share each step.

    Raises CannotFit without usable rows or constants, MissingExtra without scipy.
    """
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise MissingExtra("calibrate", "calibrate") from None
    usable = [case for case in cases if case.fitted]
    if not usable:
        raise CannotFit("no row to fit to: those of split watched, or of kinds that are only scored, may not be used")
    problem = Problem.of(usable, start, prefixes)
    if not problem.names:
        raise CannotFit(f"no constant begins with {', '.join(prefixes)}" if prefixes else "no constant influences these rows")
    first, limits = problem.logs(start), problem.bounds(start)
    steps = count(1)

    def jacobian(x: Array) -> Array:
        tell(f"{next(steps)} of at most {MOST_STEPS} steps with {len(problem.names)} constants and {len(usable):,} rows")
        return problem.jacobian(x, workers)

    answer = least_squares(
        problem.residuals, np.clip(problem.logs(begin or start), *limits), jac=jacobian, bounds=limits,
        loss="soft_l1", f_scale=SOFT, x_scale=1.0, max_nfev=MOST_STEPS, ftol=1e-4 if begin is None else 1e-3, xtol=1e-3,
        verbose=2 if verbose else 0,
    )  # fmt: skip
    told = identified(answer.jac)
    fitted = problem.marked(answer.x, told)
    before, after = (np.median(np.abs(np.expm1(problem.errors(x)))) for x in (first, answer.x))
    values = np.exp(answer.x)
    return Fit(
        calibration=fitted, names=problem.names, values=tuple(values.tolist()), covariance=_covariance(answer.jac, answer.fun),
        rows=len(usable), rows_hash=rows_hash(usable), error_before=float(before), error_after=float(after),
        at_bound=bounds_reached(fitted, problem.names), identified=tuple(told.tolist()),
    )  # fmt: skip


def fittable(cases: Sequence[Case], start: Calibration) -> list[Case]:
    """The cases that the model gives a time at all: a view takes none, whatever the constants, and a ratio to it says nothing."""
    with np.errstate(all="ignore"):
        predicted = evaluate(prepare(cases), start)
    return [case for case, value in zip(cases, predicted, strict=True) if np.isfinite(value) and value > 0]


def kept(fit: Fit, given: Calibration, told: bool = False) -> Calibration:
    """The fitted calibration, with the constants that no row depends on as they were given, not at their priors.

    `told`: also those that the rows do not tell, as where a user's rows of one machine follow a fit to many.
    """
    shares = dict(zip(fit.names, fit.identified, strict=True))
    changed = {name for name, share in shares.items() if share >= TOLD or not told}
    constants = {name: c if name in changed else given.constants[name] for name, c in fit.calibration.constants.items()}
    return replace(fit.calibration, constants=constants)


def unchanged(fit: Fit, given: Calibration, prefixes: Sequence[str], told: bool = False) -> dict[str, list[str]]:
    """The constants that were to be fitted and could not be, or hardly, by the reason; `told`: see `kept`."""
    untold = f"{'unchanged' if told else 'hardly changed'}, because the rows do not tell them from others or at all"
    asked = [name for name in given.constants if name.startswith(tuple(prefixes))]
    fixed = [name for name in asked if given.constants[name].low == given.constants[name].high]
    shares = dict(zip(fit.names, fit.identified, strict=True))
    found = {
        "unchanged, because their range is one value": fixed,
        "unchanged, because no row depends on them": [name for name in asked if name not in shares and name not in fixed],
        untold: [n for n in shares if shares[n] < TOLD],
    }
    return {why: which for why, which in found.items() if which}


def rows_hash(cases: Sequence[Case]) -> str:
    """Sixteen hexadecimal digits that stand for these rows and their measured values."""
    lines = sorted(f"{c.source},{c.label},{c.hardware},{c.stack_id},{c.task},{c.batch},{c.metric},{c.measured!r}" for c in cases)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def recorded(fit: Fit, cases: Sequence[Case], version: str) -> Calibration:
    """The calibration of a fit with the record of what it was made from."""
    kinds = tuple(sorted({case.spec.kind for case in cases}))
    covariance = tuple(tuple(float(f"{value:.4g}") for value in row) for row in fit.covariance)
    record = FitRecord(
        rows=fit.rows, kinds=kinds, rows_hash=fit.rows_hash, median_before=fit.error_before,
        median_after=fit.error_after, names=fit.names, at_bound=fit.at_bound, covariance=covariance,
    )  # fmt: skip
    return replace(fit.calibration, version=version, fit=record)


def bounds_reached(calibration: Calibration, names: Sequence[str]) -> tuple[str, ...]:
    """The constants whose value lies at a bound of its physical range: a sign of missing physics."""
    found = []
    for name in names:
        c = calibration.constants[name]
        margin = AT_BOUND * (c.high - c.low)
        if c.value - c.low < margin or c.high - c.value < margin:
            found.append(name)
    return tuple(found)


def identified(jacobian: Array) -> Array:
    """Share of the prior's variance that the rows have removed, of each constant, [P].

    1 - C_ii / s^2 with C = (J^T J)^-1        (J [R + P, P] with the rows of the prior; its variance s^2 is that of one of these)

    1: the rows tell the constant alone; 0: they say nothing of it, or cannot tell it from another one.

    >>> import numpy as np
    >>> pull = SOFT / PRIOR_SPREAD
    >>> identified(np.array([[3 * pull, 0.0], [pull, 0.0], [0.0, pull]])).tolist()
    [0.9, 0.0]
    """
    remaining = np.diagonal(np.linalg.pinv(jacobian.T @ jacobian)) * (SOFT / PRIOR_SPREAD) ** 2
    return np.asarray(np.round(np.clip(1.0 - remaining, 0.0, 1.0), 3))


def _covariance(jacobian: Array, residuals: Array) -> Array:
    """Covariance of the logs, s^2 (J^T J)^-1 (Gauss-Newton); the pseudo-inverse where rows do not tell constants apart."""
    freedom = max(1, residuals.size - jacobian.shape[1])
    return np.asarray(np.linalg.pinv(jacobian.T @ jacobian) * float(residuals @ residuals) / freedom)
