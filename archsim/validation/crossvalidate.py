"""Cross-validation: each row predicted with constants that were fitted without its device, network, stack or source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from archsim.base.record import by_key
from archsim.calibration.constants import ENERGY, Calibration
from archsim.cost.cost import Array
from archsim.estimation.clock import clock_and_limit
from archsim.evidence.case import UNSIMULATED, Case, with_power
from archsim.validation.fit import Problem, robust_least_squares, weights, with_priors
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
        fitted = np.array([case.fitted for case in self.cases])
        weight = np.zeros(fitted.size)
        weight[fitted] = weights([case for case in self.cases if case.fitted])
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


FOLDS: dict[str, Callable[[Case], str]] = {
    "hardware": attrgetter("hardware"), "network": attrgetter("label"), "stack": attrgetter("stack_id"),
    "source": attrgetter("source"),
}  # fmt: skip
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
