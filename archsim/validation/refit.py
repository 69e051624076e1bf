"""Fitting again without some of the rows: what a cross-validation does for each of its folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from archsim.base.errors import MissingExtra
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.evidence.case import Case
from archsim.validation.problem import SOFT, Problem, weights, with_priors

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
    def _problem(self) -> Problem:
        return Problem.of(self.cases, self.start, self.prefixes)

    @cached_property
    def _begin(self) -> Array:
        return np.clip(self._problem.logs(self.optimum), *self._problem.bounds(self.start))

    @cached_property
    def _slopes(self) -> Array:
        return self._problem.slopes(self._begin, self.workers)

    def without(self, held_out: Callable[[Case], bool], start: Calibration | None = None) -> Calibration:
        """The constants fitted to the cases that are not held out; at their priors where no such case feels any of them.

        start: takes the place of the calibration's, as where other constants have been fitted without these cases

        Raises MissingExtra without scipy.
        """
        try:
            from scipy.optimize import least_squares
        except ImportError:
            raise MissingExtra("calibrate", "calibrate") from None
        base = start or self.start
        keep = np.array([not held_out(case) for case in self.cases], dtype=bool)
        if not keep.any() or not self._problem.names:
            return base
        problem = replace(self._problem, start=base)
        weight = weights([case for case, stays in zip(self.cases, keep, strict=True) if stays])
        groups = [i for i, group in enumerate(problem.groups) if keep[group.positions].any()]
        jacobian = with_priors(weight[:, None] * self._slopes[keep])

        def residuals(x: Array) -> Array:
            return np.concatenate([weight * problem.errors(x, groups)[keep], problem.pull(x)])

        answer = least_squares(residuals, self._begin, jac=lambda x: jacobian, bounds=problem.bounds(base), loss="soft_l1",
                               f_scale=SOFT, x_scale=1.0, max_nfev=STEPS, ftol=ENOUGH, xtol=1e-3)  # fmt: skip
        return problem.calibration(answer.x)
