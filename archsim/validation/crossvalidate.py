"""Cross-validation: each row predicted with constants that were fitted without its device or source, and which of these constants
rows need that were not in view.

A constant that only follows the rows it was fitted to makes the errors of others larger: it is told by the rows of a source and
leads astray on those of the next. So the order in which constants can be left out is found by rows that a fit has not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from archsim.base.record import by_key
from archsim.calibration.constants import ENERGY, Calibration
from archsim.cost.cost import Array
from archsim.estimation.clock import clock_and_limit
from archsim.evidence.case import UNSIMULATED, Case, with_power
from archsim.validation.fit import PULL, SOFT, Problem, robust_least_squares, weights, with_priors
from archsim.validation.predict import predict

STEPS = 8  # most of a search: near its end, with slopes that hardly change, two or three are enough
ENOUGH = 1e-3  # share of the sum of squares below which a step ends the search


@dataclass(frozen=True, kw_only=True, eq=False)
class Refits:
    """Fits to `cases` without some of them. All begin at `optimum`, the fit to all, and use the slopes that it has there.

    x_{n+1} = x_n - (J^T J)^-1 J^T r(x_n)        (chord method: J [R + P, P] of the optimum, without held-out rows)

    The slopes cost an evaluation for each constant, which `workers` processes share; a step then costs one. `start` has the
    priors, and the values of all that is not fitted; the names of what is begin with one of `prefixes`. Source: the chord method
    of Ortega and Rheinboldt, Iterative Solution of Nonlinear Equations in Several Variables (1970), section 7.1.
    """

    cases: Sequence[Case]
    start: Calibration
    prefixes: Sequence[str]
    optimum: Calibration
    workers: int = 1

    @cached_property
    def problem(self) -> Problem:
        """What is fitted, and to what."""
        return Problem.of(self.cases, self.start, self.prefixes)

    @cached_property
    def logs(self) -> Array:
        """Logs of the constants at the optimum, [P]."""
        return np.clip(self.problem.logs(self.optimum), *self.problem.bounds)

    @cached_property
    def slopes(self) -> Array:
        """How errors change there with the logs of the constants, [R, P]."""
        return self.problem.slopes(self.logs, self.workers)

    @cached_property
    def errors(self) -> Array:
        """Errors there, [R]."""
        return self.problem.errors(self.logs)

    @cached_property
    def weight(self) -> Array:
        """What each case counts in a fit, [R]: nothing where it is not fitted."""
        weight = np.array([float(case.fitted) for case in self.cases])
        weight[weight > 0.0] = weights([case for case in self.cases if case.fitted])
        return weight

    def without(self, held_out: Callable[[Case], bool], start: Calibration | None = None) -> Calibration:
        """The constants fitted to the cases that are not held out; at their priors where no such case feels any of them.

        start: takes the place of the calibration's, as where other constants have been fitted without these cases

        Raises MissingExtra without scipy.
        """
        base = start or self.start
        keep = np.array([not held_out(case) for case in self.cases], dtype=bool)
        if not keep.any() or not self.problem.names:
            return base
        problem = replace(self.problem, start=base)
        weight = weights([case for case in self.cases if not held_out(case)])
        groups = [i for i, group in enumerate(problem.groups) if keep[group.positions].any()]
        jacobian = with_priors(weight[:, None] * self.slopes[keep])

        def residuals(x: Array) -> Array:
            return np.concatenate([weight * problem.errors(x, groups)[keep], problem.pull(x)])

        answer = robust_least_squares(residuals, self.logs, lambda x: jacobian, problem.bounds, max_nfev=STEPS, ftol=ENOUGH,
                                      xtol=1e-3)  # fmt: skip
        return problem.calibration(answer.x)


FOLDS: dict[str, Callable[[Case], str]] = {"hardware": attrgetter("hardware"), "source": attrgetter("source")}
# Kinds of op to which nothing is fitted (attention over a window neither): their errors say how the constants of others do there.
NOT_FITTED = ("rnn", "gru", "dropout", "quantise")
POWERS_PER_SOURCE = 150  # that a fit without a fold uses: most constants of energy belong to every GPU
ROWS_PER_SOURCE = 800  # of one device kind that a fit uses: constants of few kernels need rows of their own


def cross_validate(
    cases: Sequence[Case], training: Sequence[Case], calibration: Calibration, fold: str, prefixes: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda text: None, most: int = ROWS_PER_SOURCE, workers: int = 1,
) -> Array:  # fmt: skip
    """Predictions of `cases` by constants that have not seen them, in the units of their metrics, shape [cases].

    For each value of `fold` (a device, a network, a stack, a source) and each kind of device, constants are fitted to the rows
    of `training` of that kind without that value, and predict the cases with it. Fits have the priors of `calibration`, begin at
    its values and move the constants whose names begin with one of `prefixes`; by default those that it has fitted itself.
    At most `most` rows of a source are used, and never a watched one. Constants of energy are fitted anew where a power, or a
    clock that the power model decides, is predicted and rows of power are held out.
    """
    key = FOLDS[fold]
    names = tuple(prefixes if prefixes is not None else [n for n, c in calibration.constants.items() if c.fitted])
    of_times, of_energy = (tuple(n for n in names if n.startswith(ENERGY) is energy) for energy in (False, True))
    result = np.full(len(cases), np.nan)
    folds = sorted({(case.spec.kind, key(case)) for case in cases})
    fits: dict[str, tuple[Refits, Refits]] = {}
    for number, (kind, name) in enumerate(folds, 1):
        progress(f"held out {fold} {name} ({kind}), {number} of {len(folds)}")
        inside = [i for i, case in enumerate(cases) if (case.spec.kind, key(case)) == (kind, name)]
        held = [cases[i] for i in inside]
        if calibration.fit is not None and kind not in calibration.fit.kinds:
            result[inside] = predict(held, calibration)  # fitted without any row of this kind
            continue
        if kind not in fits:
            own = [case for case in training if case.spec.kind == kind]
            fits[kind] = (
                Refits(cases=thinned(with_times(own), most), start=calibration.before_fit(of_times), prefixes=of_times,
                       optimum=calibration, workers=workers),
                Refits(cases=thinned(with_power(own), min(most, POWERS_PER_SOURCE)), prefixes=of_energy,
                       start=calibration.before_energy_fit(of_energy), optimum=calibration, workers=workers),
            )  # fmt: skip

        def unseen(case: Case, own: str = name) -> bool:
            return key(case) == own

        times, powers = fits[kind]
        constants = times.without(unseen) if of_times and any(map(unseen, times.cases)) else calibration
        if of_energy and any(depends_on_power(case) for case in held) and any(unseen(case) for case in powers.cases):
            constants = powers.without(unseen, constants.before_energy_fit(of_energy))
        result[inside] = predict(held, constants)
    return result


def depends_on_power(case: Case) -> bool:
    """Whether a prediction needs the power model: a power, an energy, or a time at a clock that no source states."""
    _, limit = clock_and_limit(case.spec, case.clock, case.limit, measured=True)
    return limit is not None or bool(with_power([case]))


def with_times(cases: Sequence[Case]) -> list[Case]:
    """The cases of a time or a rate, to which constants of time are fitted; ratios under a power limit belong to energy's."""
    return [case for case in cases if case.metric in ("latency_s", "throughput_per_s") and case.anchor is None]


def carries_over(case: Case) -> bool:
    """Whether all ops of a row are of kinds to which nothing is fitted."""
    kinds = [op.kind for op in case.ops]
    return bool(kinds) and all(kind.op in NOT_FITTED or getattr(kind, "window", 0) for kind in kinds)


def thinned(cases: Sequence[Case], most: int = ROWS_PER_SOURCE, unfitted: bool = False) -> list[Case]:
    """The rows that may be fitted, at most `most` of each source and device kind, evenly picked in file order.

    All rows without ops: they cost nothing to predict. `unfitted`: also rows to which nothing is fitted, which intervals count.
    """
    found = by_key(((case.source, case.spec.kind, case.fitted), case) for case in cases
                   if (case.fitted or unfitted) and not carries_over(case))  # fmt: skip
    picked = []
    for rows in found.values():
        bare = [row for row in rows if isinstance(row.pattern, UNSIMULATED)]
        rows = [row for row in rows if not isinstance(row.pattern, UNSIMULATED)]
        picked += bare + [rows[int(i)] for i in np.linspace(0, len(rows) - 1, min(most, len(rows)))]
    return picked


# ------------------------------------------------------------------------------------------- which constants a fit needs

GROUPS = (attrgetter("source"), attrgetter("spec.identity.kernels_of"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Errors where a constant stays at its prior, and with it all that were removed before: of rows in view, of those of a source
    that was left out, of an architecture that was, of rows to which nothing is fitted.

    An error is the root of the mean of the fit's objective, each source counting on an architecture by the square root of its
    rows: near a root mean square of log(predicted / measured), to which rows that are far off add little.
    """

    name: str
    seen: float
    source: float
    architecture: float
    unfitted: float | None

    @property
    def unseen(self) -> float:
        """What a choice is judged by: the mean of the errors of rows that were not in view, of three kinds or two."""
        return float(np.mean([one for one in (self.source, self.architecture, self.unfitted) if one is not None]))


def selection(refits: Refits, tell: Callable[[str], None] = lambda text: None) -> list[Removal]:
    """The constants in the order in which they are removed, the one first that rows not in view miss least; before them the fit
    with all, which has no name.

    x_F = prior, x_free = x* - H^-1 (g + H_F (prior - x*))        (of the rows that are left in, to first order)

    H, g: `normal_equations` at the optimum x*; one constant at a time is removed (backward elimination).
    """
    names, prior = refits.problem.names, refits.problem.prior
    counts = Counter(keys := [tuple(key(case) for key in GROUPS) for case in refits.cases])
    worth, fitted = np.array([counts[key] ** -0.5 for key in keys]), refits.weight > 0.0
    shares = [worth * rows for rows in (fitted, ~fitted) if rows.any()]
    folds = [_folds(each) for each in ([""] * len(keys), *zip(*keys, strict=True))]
    equations = [_equations(refits, fold, held=bool(i)) for i, fold in enumerate(folds)]

    def removed(gone: Sequence[int], name: str = "") -> Removal:
        free = np.setdiff1d(np.arange(len(names)), gone)
        off = []
        for fold, (curvature, gradient) in zip(folds, equations, strict=True):
            step = np.zeros(gradient.shape)
            step[:, gone] = (prior - refits.logs)[list(gone)]
            right = -(gradient + np.einsum("fij,fj->fi", curvature, step))[:, free, None]
            step[:, free] = np.linalg.solve(curvature[:, free[:, None], free], right)[..., 0]
            lowest, highest = (bound - refits.logs for bound in refits.problem.bounds)
            errors = refits.errors + np.einsum("rp,rp->r", refits.slopes, np.clip(step, lowest, highest)[fold])
            loss = 2.0 * (np.sqrt(1.0 + (errors / SOFT) ** 2) - 1.0)
            off += [SOFT * float(np.sqrt(share @ loss / share.sum())) for share in shares]
        seen, source, arch = off[:: len(shares)]
        return Removal(name=name, seen=seen, source=source, architecture=arch, unfitted=None if fitted.all() else off[1])

    path, gone = [removed([])], list[int]()
    while len(gone) < len(names):
        tell(f"{len(gone)} of {len(names)} constants removed")
        left = (removed([*gone, i], name) for i, name in enumerate(names) if i not in gone)
        path.append(min(left, key=lambda removal: removal.unseen))
        gone.append(names.index(path[-1].name))
    return path


def _folds(keys: Sequence[str]) -> NDArray[np.intp]:
    """The number of the fold of each row, [R]."""
    return np.unique(keys, return_inverse=True)[1]


def _equations(refits: Refits, fold: NDArray[np.intp], held: bool) -> tuple[Array, Array]:
    """Curvature [F, P, P] and gradient [F, P] of the rows that each fold leaves in: all others, or its own if none is `held`."""
    left = refits.logs - refits.problem.prior
    found = [normal_equations(refits.slopes[use], refits.errors[use], refits.weight[use], left)
             for use in ((fold != i) == held for i in range(int(fold.max()) + 1))]  # fmt: skip
    return np.array([curvature for curvature, _ in found]), np.array([gradient for _, gradient in found])


def normal_equations(slopes: Array, errors: Array, weight: Array, left: Array) -> tuple[Array, Array]:
    """Curvature [P, P] and gradient [P] of the fit's objective, by which a Gauss-Newton step ends at -curvature^-1 gradient.

    S^T W S + p^2 I and S^T W e + p^2 left, W = w^2 / sqrt(1 + (w e / soft)^2)        (iteratively reweighted least squares)

    slopes: S, [R, P]; errors: e, [R]; weight: w, [R]; left: how far the logs of the constants have left their priors, [P]
    p: pull of a prior. Source: Holland and Welsch 1977, Robust regression using iteratively reweighted least-squares.
    """
    count = weight**2 / np.sqrt(1.0 + (weight * errors / SOFT) ** 2)
    return slopes.T @ (count[:, None] * slopes) + PULL**2 * np.eye(left.size), slopes.T @ (count * errors) + PULL**2 * left
