"""Fitting constants to measurements: bounded, robust least squares on log(predicted / measured)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from archsim.base.errors import ArchsimError, MissingExtra
from archsim.calibration.constants import Calibration, FitRecord
from archsim.cost.cost import Array
from archsim.cost.switched import memory_family, nodes_of
from archsim.device.device import Device
from archsim.estimation.arithmetic import on_tensor_cores
from archsim.evidence.case import Case, with_power
from archsim.lower.kernel import GpuKernels
from archsim.validation.predict import Group, evaluate, prepare

Tell = Callable[[str], None]
MOST_STEPS = 12  # of the search
STEP = 0.03  # relative step of the differences: wide enough to see past the jumps of tile and algorithm choices
SOFT = 0.15  # residuals above this count linearly, not squared
PRIOR_SPREAD = 0.5  # how far, in log, a constant may leave its prior before it costs as much as one row that is 100 % off
NETWORK = 2.0  # weight of a whole network relative to one kernel: it is what users ask for
CARD = 4.0  # the same of the clock that a card holds: one row stands for the whole card
CPU_CONSTANTS = ("pack_clk", "issue", "wake_s", "sibling")  # of every CPU kernel
NEAR = 0.6  # log of the ratio of two process nodes, above which one says nothing of the other
OF_GPUS = ("clock", "tensor", "lane", "int", "double", "special", "shared", "voltage_slope", "voltage_floor")  # energies
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
    begin: Calibration | None = None, tell: Tell = lambda text: None,
) -> Fit:  # fmt: skip
    """Fit every constant of `start` that the cases depend on, or those whose names begin with one of `prefixes`.

    `start` has the priors. The search begins there, or at `begin`, near which it ends sooner and a little less exactly.

    Raises CannotFit without usable rows or constants, MissingExtra without scipy.
    """
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise MissingExtra("calibrate", "calibrate") from None
    usable = [case for case in cases if case.split != "test"]
    if not usable:
        raise CannotFit("no row to fit to: those of split test, or of kinds that are only scored, may not be used")
    problem = _Problem.of(usable, start, prefixes)
    if not problem.names:
        raise CannotFit(f"no constant begins with {', '.join(prefixes)}" if prefixes else "no constant influences these rows")
    first, limits = problem.logs(start), problem.bounds(start)
    steps = count(1)

    def jacobian(x: Array) -> Array:
        tell(f"{next(steps)} of at most {MOST_STEPS} steps with {len(problem.names)} constants and {len(usable):,} rows")
        return problem.jacobian(x)

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


def model_hash(cases: Sequence[Case], calibration: Calibration) -> str:
    """Sixteen hexadecimal digits that stand for what model, specs and stacks make of these rows with these constants.

    Predictions are rounded to 1e-5 of their value, so that the last bits of another machine's arithmetic do not count.
    """
    logs = np.round(np.log(evaluate(prepare(cases), calibration)), 5) + 0.0
    return hashlib.sha256(logs.astype("<f8").tobytes()).hexdigest()[:16]


def recorded(fit: Fit, cases: Sequence[Case], version: str) -> Calibration:
    """The calibration of a fit with the record of what it was made from."""
    kinds = tuple(sorted({case.spec.kind for case in cases}))
    covariance = tuple(tuple(float(f"{value:.4g}") for value in row) for row in fit.covariance)
    record = FitRecord(
        rows=fit.rows, kinds=kinds, rows_hash=fit.rows_hash, model_hash=model_hash(cases, fit.calibration),
        median_before=fit.error_before, median_after=fit.error_after, names=fit.names, at_bound=fit.at_bound,
        covariance=covariance,
    )  # fmt: skip
    return replace(fit.calibration, version=version, fit=record)


def restated(record: FitRecord | None, cases: Sequence[Case], calibration: Calibration) -> FitRecord | None:
    """The record of a fit to `cases` after constants of energy have changed: clocks under power limits, and times, follow them.

    Only for the rows of that fit; with others, and without a record, it stays as it is.
    """
    if record is None or rows_hash(cases) != record.rows_hash:
        return record
    return replace(record, model_hash=model_hash(cases, calibration))


def bounds_reached(calibration: Calibration, names: Sequence[str]) -> tuple[str, ...]:
    """The constants whose value lies at a bound of its physical range: a sign of missing physics."""
    found = []
    for name in names:
        c = calibration.constants[name]
        margin = AT_BOUND * (c.high - c.low)
        if c.value - c.low < margin or c.high - c.value < margin:
            found.append(name)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """Residuals of the cases as a function of the logs of the constants."""

    groups: tuple[Group, ...]
    affected: Mapping[str, tuple[int, ...]]  # constant -> positions in `groups`
    names: tuple[str, ...]
    start: Calibration
    prior: Array
    measured: Array
    is_rate: Array
    weight: Array

    @classmethod
    def of(cls, cases: Sequence[Case], start: Calibration, prefixes: Sequence[str]) -> _Problem:
        groups = tuple(prepare(cases))
        affected: dict[str, list[int]] = {}
        free = [n for n, c in start.constants.items() if c.low < c.high and (not prefixes or n.startswith(tuple(prefixes)))]
        for position, group in enumerate(groups):
            for name in free:
                if _influences(name, group):
                    affected.setdefault(name, []).append(position)
        names = tuple(affected)
        return cls(
            groups=groups, affected={name: tuple(at) for name, at in affected.items()}, names=names, start=start,
            prior=np.log([max(start[name], 1e-12) for name in names]),
            measured=np.array([case.measured for case in cases]),
            is_rate=np.array([case.metric == "throughput_per_s" for case in cases]),
            weight=_weights(cases),
        )  # fmt: skip

    def logs(self, calibration: Calibration) -> Array:
        return np.log([max(calibration[name], 1e-12) for name in self.names])

    def bounds(self, calibration: Calibration) -> tuple[Array, Array]:
        rows = [calibration.constants[name] for name in self.names]
        low = np.log([max(row.low, 1e-3 * row.high) for row in rows])
        return low - 1e-9, np.log([row.high for row in rows]) + 1e-9

    def calibration(self, logs: Array) -> Calibration:
        values = {name: float(np.exp(x)) for name, x in zip(self.names, logs, strict=True)}
        limits = self.start.constants
        return self.start.with_values({n: min(max(v, limits[n].low), limits[n].high) for n, v in values.items()})

    def marked(self, logs: Array, told: Array) -> Calibration:
        """The calibration at `logs`, the constants of this fit marked as fitted, with how far the rows tell them."""
        calibration = self.calibration(logs)
        shares = dict(zip(self.names, told.tolist(), strict=True))
        own = {n: replace(c, fitted=True, identified=shares[n]) for n, c in calibration.constants.items() if n in shares}
        return replace(calibration, constants={**calibration.constants, **own})

    def predicted(self, calibration: Calibration, only: Sequence[int] | None = None) -> Array:
        chosen = self.groups if only is None else [self.groups[i] for i in only]
        result = np.full(self.measured.size, np.nan)
        positions = np.concatenate([group.positions for group in chosen])
        renumbered = _renumbered(chosen)
        result[positions] = evaluate(renumbered, calibration)
        return result

    def errors(self, logs: Array) -> Array:
        """log(predicted time / measured time) of each case."""
        return self._log_error(self.predicted(self.calibration(logs)))

    def _log_error(self, predicted: Array) -> Array:
        ratio = np.log(predicted / self.measured)
        return np.where(self.is_rate, -ratio, ratio)

    def residuals(self, logs: Array) -> Array:
        pull = (logs - self.prior) / PRIOR_SPREAD * SOFT
        return np.concatenate([self.weight * self.errors(logs), pull])

    def jacobian(self, logs: Array) -> Array:
        base = self.errors(logs)
        rows = np.zeros((base.size + len(logs), len(logs)))
        for column, name in enumerate(self.names):
            shifted = logs.copy()
            step = -STEP if logs[column] > self.prior[column] else STEP
            shifted[column] += step
            moved = self._log_error(self.predicted(self.calibration(shifted), self.affected[name]))
            rows[: base.size, column] = self.weight * np.where(np.isnan(moved), 0.0, (moved - base) / step)
            rows[base.size + column, column] = SOFT / PRIOR_SPREAD
        return rows


def _renumbered(groups: Sequence[Group]) -> list[Group]:
    """The groups with positions that count through them in order."""
    result, begin = [], 0
    for group in groups:
        size = len(group.cases)
        result.append(replace(group, positions=np.arange(begin, begin + size)))
        begin += size
    return result


def _influences(name: str, group: Group) -> bool:
    """Whether a constant can move the cases of a group; generous where that is not plain."""
    case, device = group.cases[0], group.cases[0].spec.device
    family, _, rest = name.partition(".")
    if family == "issue":
        return device.kind == "gpu" and rest == device.identity.kernels_of
    if family in ("dispatch", "stall"):
        parts = {"launch": device.kind == "gpu", "nested": bool(case.stack.nested_calls),
                 "library": device.kind == "gpu" and bool(case.stack.library_calls)}  # fmt: skip
        named = parts.get(rest, name in (case.stack.host, case.stack.stall))
        return named and any(c.dispatch for c in group.cases)
    if family == "energy":
        return bool(with_power(group.cases)) and _has_energy(rest, device)
    if group.lowered is None:
        return False
    if name in group.lowered.kernels.constants:
        return True
    if rest.startswith("cublas"):
        return False
    if rest == "tensor_prologue_clk":
        return on_tensor_cores(case.stack, device, case.precision)
    if rest == "prologue_clk" and family != "gemm":
        kernels = group.lowered.kernels
        return isinstance(kernels, GpuKernels) and bool(np.any(kernels.exps > 0))
    if name == "l2.rows_stay":
        kernels = group.lowered.kernels
        return isinstance(kernels, GpuKernels) and bool(np.any(kernels.row_in_flight > 0))
    if family == "cpu":
        return device.kind == "cpu" and rest in CPU_CONSTANTS
    if name in case.stack.efficiency.values():
        return True
    return family in ("gemm", "stream", "l2") and device.kind == "gpu" and name not in case.stack.efficiency.values()


def _has_energy(name: str, device: Device) -> bool:
    """Whether an energy constant is one of this kind of device, its memory and its process node, or of a node beside it."""
    if name.startswith("byte."):
        return memory_family(device) == name.removeprefix("byte.")
    if name.startswith("node."):
        size = float(np.ravel(device.chip.node)[0]) * 1e9
        return device.kind == "gpu" and any(bool(abs(np.log(size / node)) < NEAR) for node in nodes_of(f"energy.{name}"))
    only = dict.fromkeys(OF_GPUS, "gpu")
    if name.startswith("core_"):
        return device.kind == "cpu"
    return only.get(name, device.kind) == device.kind


def _weights(cases: Sequence[Case]) -> Array:
    """Each source counts by the square root of its rows, so that a file of thousands does not drown one of a hundred."""
    keys = [(case.source, case.spec.kind) for case in cases]
    count = {key: keys.count(key) for key in set(keys)}
    weight = np.array([count[key] ** -0.25 * _worth(case)
                       for key, case in zip(keys, cases, strict=True)])  # fmt: skip
    return np.asarray(weight / weight.mean())


def _worth(case: Case) -> float:
    """How much a row counts beside one of a single kernel."""
    if case.metric == "clock_hz":
        return CARD
    return NETWORK if case.dispatch and len(case.ops) > 1 else 1.0


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
