"""Fitting constants to measurements: bounded, robust least squares on log(predicted / measured) of many rows."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.base.errors import ArchsimError, MissingExtra
from archsim.base.record import by_key
from archsim.calibration.constants import Calibration, FitRecord
from archsim.cost.cost import Array
from archsim.cost.switched import memory_family, nodes_of
from archsim.device.device import Device
from archsim.device.variant import first_of
from archsim.evidence.case import Case, with_power
from archsim.lower.kernel import GpuKernels
from archsim.validation.evaluation import ValidationSettings, predictions
from archsim.validation.interval import log_errors
from archsim.validation.predict import Group, evaluate, prepare

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

Tell = Callable[[str], None]
MOST_STEPS = 12  # of the search
TOLD = 0.5  # share of the prior's variance that rows must remove before they are said to tell a constant
AT_BOUND = 0.01  # share of the range within which a value counts as at its bound
STEP = 0.03  # relative step of the differences: wide enough to see past the jumps of tile and algorithm choices
SOFT = 0.15  # residuals above this count linearly, not squared
PRIOR_SPREAD = 0.3  # how far, in log, a constant may leave its prior before it costs as much as one row that is 100 % off
PULL = SOFT / PRIOR_SPREAD  # of the prior on a constant, in units of a residual for each unit of its log
NETWORK = 2.0  # weight of a whole network relative to one kernel: it is what users ask for
CARD = 4.0  # the same of the clock that a card holds: one row stands for the whole card
CPU_CONSTANTS = ("pack_clk", "issue", "wake_s", "sibling")  # of every CPU kernel
NEAR = 0.6  # log of the ratio of two process nodes, above which one says nothing of the other
OF_GPUS = ("clock", "tensor", "lane", "int", "double", "special", "shared", "voltage_slope", "voltage_floor")  # energies


class CannotFit(ArchsimError):
    """There is nothing to fit, or nothing to fit it to."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Residuals of the cases as a function of the logs of the constants.

    start: has the priors, and the values of all that is not fitted
    affected: of each constant that is fitted, the positions of the groups in which any case feels it
    """

    cases: Sequence[Case]
    start: Calibration
    groups: tuple[Group, ...]
    affected: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, cases: Sequence[Case], start: Calibration, prefixes: Sequence[str]) -> Problem:
        """The problem of these cases, and of those constants whose names begin with one of `prefixes` and that any case feels."""
        groups = tuple(prepare(cases))
        free = [n for n, c in start.constants.items() if c.low < c.high and (not prefixes or n.startswith(tuple(prefixes)))]
        affected = by_key((name, at) for at, group in enumerate(groups) for name in free if _influences(name, group))
        return cls(cases=cases, start=start, groups=groups, affected={name: tuple(at) for name, at in affected.items()})

    @property
    def names(self) -> tuple[str, ...]:
        """The constants that are fitted."""
        return tuple(self.affected)

    @cached_property
    def prior(self) -> Array:
        """Logs of the priors, [P]."""
        return self.logs(self.start)

    def logs(self, calibration: Calibration) -> Array:
        """Logs of the constants, [P]."""
        return np.log([max(calibration[name], 1e-12) for name in self.names])

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The lowest and the highest logs of the constants, [P] each."""
        rows = [self.start.constants[name] for name in self.names]
        low = np.log([max(row.low, 1e-3 * row.high) for row in rows])
        return low - 1e-9, np.log([row.high for row in rows]) + 1e-9

    def calibration(self, logs: Array) -> Calibration:
        """The calibration with these constants, each within its range."""
        values, limits = dict(zip(self.names, np.exp(logs).tolist(), strict=True)), self.start.constants
        return self.start.with_values({n: min(max(v, limits[n].low), limits[n].high) for n, v in values.items()})

    def errors(self, logs: Array, only: Sequence[int] | None = None) -> Array:
        """log(predicted time / measured time) of each case, [R]; of those in `only` some groups, NaN for the others."""
        chosen = self.groups if only is None else [self.groups[i] for i in only]
        return log_errors(self.cases, evaluate(chosen, self.calibration(logs), size=len(self.cases)))

    def pull(self, logs: Array) -> Array:
        """How far the constants have left their priors, in units of a residual, [P]."""
        return np.asarray((logs - self.prior) / PRIOR_SPREAD * SOFT)

    def slopes(self, logs: Array, workers: int = 1) -> Array:
        """How the error of each case changes with the log of each constant, [R, P], by differences.

        workers: processes that share the constants, where the system can fork
        """
        column = partial(self._slope, logs, self.errors(logs))
        if workers > 1 and "fork" in multiprocessing.get_all_start_methods():
            _SHARED.append(column)  # a forked process has it, and nothing needs to be sent
            try:
                with multiprocessing.get_context("fork").Pool(workers) as pool:
                    found = pool.map(_shared, range(len(self.names)), chunksize=1)
                    pool.close()  # they end by themselves: the signal that would end them is one that the command line answers
                    pool.join()
                return np.array(found).T
            finally:
                _SHARED.pop()
        return np.array([column(i) for i in range(len(self.names))]).T

    def _slope(self, logs: Array, base: Array, i: int) -> Array:
        step = -STEP if logs[i] > self.prior[i] else STEP
        moved = self.errors(logs + step * (np.arange(logs.size) == i), self.affected[self.names[i]])
        return np.where(np.isnan(moved), 0.0, (moved - base) / step)


_SHARED: list[Callable[[int], Array]] = []


def _shared(i: int) -> Array:
    return _SHARED[-1](i)


def with_priors(rows: Array) -> Array:
    """Rows of a Jacobian, [R, P], and below them those of the priors, [R + P, P]."""
    return np.vstack([rows, np.eye(rows.shape[1]) * PULL])


def robust_least_squares(
    residuals: Callable[[Array], Array], begin: Array, jacobian: Callable[[Array], Array] | str, bounds: tuple[Array, Array],
    soft: float = SOFT, **more: Any,
) -> OptimizeResult:  # fmt: skip
    """The answer of scipy's search, in which residuals above `soft` count linearly. Raises MissingExtra without scipy."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise MissingExtra("calibrate", "calibrate") from None
    return least_squares(residuals, begin, jac=jacobian, bounds=bounds, loss="soft_l1", f_scale=soft, x_scale=1.0, **more)


def fit(
    cases: Sequence[Case], start: Calibration, prefixes: Sequence[str] = (), tell: Tell = lambda text: None, workers: int = 1
) -> Calibration:
    """The calibration with every constant of `start` fitted that the cases depend on, or those whose names begin with one of
    `prefixes`. Its record `fit` says how good it is, and of each constant how far the rows tell it.

    `start` has the priors, where the search begins. `workers` processes share each step.

    Raises CannotFit without usable rows or constants, MissingExtra without scipy.
    """
    usable = [case for case in cases if case.fitted]
    if not usable:
        raise CannotFit("no row to fit to: those of split watched, or of kinds that are only scored, may not be used")
    problem = Problem.of(usable, start, prefixes)
    if not problem.names:
        raise CannotFit(f"no constant begins with {', '.join(prefixes)}" if prefixes else "no constant influences these rows")
    steps, weight = count(1), weights(usable)

    def residuals(x: Array) -> Array:
        return np.concatenate([weight * problem.errors(x), problem.pull(x)])

    def jacobian(x: Array) -> Array:
        tell(f"{next(steps)} of at most {MOST_STEPS} steps with {len(problem.names)} constants and {len(usable):,} rows")
        return with_priors(weight[:, None] * problem.slopes(x, workers))

    answer = robust_least_squares(residuals, np.clip(problem.prior, *problem.bounds), jacobian, problem.bounds,
                                  max_nfev=MOST_STEPS, ftol=1e-4, xtol=1e-3)  # fmt: skip
    told = dict(zip(problem.names, identified(answer.jac).tolist(), strict=True))
    fitted = problem.calibration(answer.x)
    constants = {name: replace(c, fitted=True, identified=told[name]) if name in told else c
                 for name, c in fitted.constants.items()}  # fmt: skip
    before, after = (float(np.median(np.abs(np.expm1(problem.errors(x))))) for x in (problem.prior, answer.x))
    variance = float(answer.fun @ answer.fun) / max(1, answer.fun.size - answer.x.size)  # of a residual
    of_logs = np.linalg.pinv(answer.jac.T @ answer.jac) * variance  # pseudo-inverse: rows may not tell constants apart
    covariance = tuple(tuple(float(f"{value:.4g}") for value in row) for row in of_logs)
    record = FitRecord(
        rows=len(usable), kinds=tuple(sorted({case.spec.kind for case in usable})), rows_hash=rows_hash(usable),
        median_before=before, median_after=after, names=problem.names, covariance=covariance,
        at_bound=bounds_reached(fitted, problem.names),
    )  # fmt: skip
    return replace(fitted, constants=constants, fit=record, version=f"fitted-{record.rows_hash}")


def fittable(cases: Sequence[Case], start: Calibration) -> list[Case]:
    """The cases that the model has an answer to: a view takes no time, whatever the constants, and a ratio to it says nothing."""
    with np.errstate(all="ignore"):
        predicted, *_ = predictions(cases, ValidationSettings(calibration=start, baselines=()))
    return [case for case, value in zip(cases, predicted, strict=True) if np.isfinite(value) and value > 0]


def told(fitted: Calibration) -> dict[str, float]:
    """How far the rows of a fit tell each of its constants: the share of the prior's variance that they have removed."""
    assert fitted.fit is not None
    return {name: fitted.constants[name].identified or 0.0 for name in fitted.fit.names}


def kept(fitted: Calibration, given: Calibration, only_told: bool = False) -> Calibration:
    """The fitted calibration, with the constants that no row depends on as they were given, not at their priors.

    `only_told`: also those that the rows do not tell, as where a user's rows of one machine follow a fit to many.
    """
    changed = {name for name, share in told(fitted).items() if share >= TOLD or not only_told}
    constants = {name: c if name in changed else given.constants[name] for name, c in fitted.constants.items()}
    return replace(fitted, constants=constants)


def unchanged(shares: Mapping[str, float], given: Calibration, prefixes: Sequence[str], only_told: bool) -> dict[str, list[str]]:
    """The constants that were to be fitted and could not be, or hardly, by the reason; `shares`: of `told`, before `kept`."""
    untold = f"{'unchanged' if only_told else 'hardly changed'}, because the rows do not tell them from others or at all"
    asked = [name for name in given.constants if name.startswith(tuple(prefixes))]
    fixed = [name for name in asked if given.constants[name].low == given.constants[name].high]
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


def bounds_reached(calibration: Calibration, names: Sequence[str]) -> tuple[str, ...]:
    """The constants whose value lies at a bound of its physical range: a sign of missing physics."""
    rows = [(name, calibration.constants[name]) for name in names]
    return tuple([name for name, c in rows if min(c.value - c.low, c.high - c.value) < AT_BOUND * (c.high - c.low)])


def identified(jacobian: Array) -> Array:
    """Share of the prior's variance that the rows have removed, of each constant, [P].

    1 - C_ii / s^2 with C = (J^T J)^-1        (J [R + P, P] with the rows of the prior; its variance s^2 is that of one of these)

    1: the rows tell the constant alone; 0: they say nothing of it, or cannot tell it from another one.

    >>> import numpy as np
    >>> identified(PULL * np.array([[3.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).tolist()
    [0.9, 0.0]
    """
    remaining = np.diagonal(np.linalg.pinv(jacobian.T @ jacobian)) * PULL**2
    return np.asarray(np.round(np.clip(1.0 - remaining, 0.0, 1.0), 3))


def _influences(name: str, group: Group) -> bool:
    """Whether a constant can move the cases of a group; generous where that is not plain."""
    case, device = group.cases[0], group.cases[0].spec.device
    family, _, rest = name.partition(".")
    gpu = device.kind == "gpu"
    if family == "dispatch":
        parts = {"launch": gpu, "nested": bool(case.stack.nested_calls)}
        return parts.get(rest, name == case.stack.host) and any(c.timer.host for c in group.cases)
    if family == "energy":
        return bool(with_power(group.cases)) and _has_energy(rest, device)
    if group.lowered is None:
        return False
    kernels, of_stack = group.lowered.kernels, name in case.stack.efficiency.values()
    if name in kernels.constants:
        return True
    if rest.startswith("cublas"):
        return False
    if name == "attention.prologue":
        return isinstance(kernels, GpuKernels) and bool(np.any(kernels.exps > 0))
    if name == "l2.rows_stay":
        return isinstance(kernels, GpuKernels) and bool(np.any(kernels.row_in_flight > 0))
    if family == "cpu":
        return not gpu and rest in CPU_CONSTANTS
    return of_stack or (gpu and family in ("gemm", "stream", "l2"))


def _has_energy(name: str, device: Device) -> bool:
    """Whether an energy constant is one of this kind of device, its memory and its process node, or of a node beside it."""
    if name.startswith("byte."):
        return memory_family(device) == name.removeprefix("byte.")
    if name.startswith("node."):
        size = first_of(device.chip.node) * 1e9
        return device.kind == "gpu" and any(bool(abs(np.log(size / node)) < NEAR) for node in nodes_of(f"energy.{name}"))
    return device.kind == ("cpu" if name.startswith("core_") else "gpu" if name in OF_GPUS else device.kind)


def weights(cases: Sequence[Case]) -> Array:
    """What each case counts, [R], 1 in the mean.

    Each source counts by the square root of its rows on an architecture, so that thousands do not drown a hundred.
    """
    keys = [(case.source, case.spec.identity.kernels_of) for case in cases]
    rows = Counter(keys)
    weight = np.array([rows[key] ** -0.25 * _worth(case) for key, case in zip(keys, cases, strict=True)])
    return np.asarray(weight / weight.mean())


def _worth(case: Case) -> float:
    """How much a row counts beside one of a single kernel."""
    if case.metric == "clock_hz":
        return CARD
    return NETWORK if case.timer.host and len(case.ops) > 1 else 1.0
