"""The least-squares problem of a fit: weighted errors of many rows as a function of the logs of the constants."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.switched import memory_family, nodes_of
from archsim.device.device import Device
from archsim.estimation.hardware import on_tensor_cores
from archsim.evidence.case import Case, with_power
from archsim.lower.kernel import GpuKernels
from archsim.validation.predict import Group, evaluate, prepare

STEP = 0.03  # relative step of the differences: wide enough to see past the jumps of tile and algorithm choices
SOFT = 0.15  # residuals above this count linearly, not squared
PRIOR_SPREAD = 0.5  # how far, in log, a constant may leave its prior before it costs as much as one row that is 100 % off
NETWORK = 2.0  # weight of a whole network relative to one kernel: it is what users ask for
CARD = 4.0  # the same of the clock that a card holds: one row stands for the whole card
CPU_CONSTANTS = ("pack_clk", "issue", "wake_s", "sibling")  # of every CPU kernel
NEAR = 0.6  # log of the ratio of two process nodes, above which one says nothing of the other
OF_GPUS = ("clock", "tensor", "lane", "int", "double", "special", "shared", "voltage_slope", "voltage_floor")  # energies


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
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
    def of(cls, cases: Sequence[Case], start: Calibration, prefixes: Sequence[str]) -> Problem:
        """The problem of these cases, and of those constants whose names begin with one of `prefixes` and that any case feels."""
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
            weight=weights(cases),
        )  # fmt: skip

    def logs(self, calibration: Calibration) -> Array:
        """Logs of the constants, [P]."""
        return np.log([max(calibration[name], 1e-12) for name in self.names])

    def bounds(self, calibration: Calibration) -> tuple[Array, Array]:
        """The lowest and the highest logs of the constants, [P] each."""
        rows = [calibration.constants[name] for name in self.names]
        low = np.log([max(row.low, 1e-3 * row.high) for row in rows])
        return low - 1e-9, np.log([row.high for row in rows]) + 1e-9

    def calibration(self, logs: Array) -> Calibration:
        """The calibration with these constants, each within its range."""
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
        """The predicted value of each case in the unit of its metric, [R]; NaN outside the groups `only`."""
        chosen = self.groups if only is None else [self.groups[i] for i in only]
        result = np.full(self.measured.size, np.nan)
        positions = np.concatenate([group.positions for group in chosen])
        renumbered = _renumbered(chosen)
        result[positions] = evaluate(renumbered, calibration)
        return result

    def errors(self, logs: Array, only: Sequence[int] | None = None) -> Array:
        """log(predicted time / measured time) of each case; of those in `only` some groups, NaN for the others."""
        return self._log_error(self.predicted(self.calibration(logs), only))

    def _log_error(self, predicted: Array) -> Array:
        ratio = np.log(predicted / self.measured)
        return np.where(self.is_rate, -ratio, ratio)

    def pull(self, logs: Array) -> Array:
        """How far the constants have left their priors, in units of a residual, [P]."""
        return np.asarray((logs - self.prior) / PRIOR_SPREAD * SOFT)

    def residuals(self, logs: Array) -> Array:
        """Weighted errors and the pull of the priors, [R + P]."""
        return np.concatenate([self.weight * self.errors(logs), self.pull(logs)])

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

    def _slope(self, logs: Array, base: Array, column: int) -> Array:
        step = -STEP if logs[column] > self.prior[column] else STEP
        shifted = logs.copy()
        shifted[column] += step
        moved = self.errors(shifted, self.affected[self.names[column]])
        return np.where(np.isnan(moved), 0.0, (moved - base) / step)

    def jacobian(self, logs: Array, workers: int = 1) -> Array:
        """The slopes of the residuals, [R + P, P]."""
        return with_priors(self.weight[:, None] * self.slopes(logs, workers))


_SHARED: list[Callable[[int], Array]] = []


def _shared(column: int) -> Array:
    return _SHARED[-1](column)


def with_priors(rows: Array) -> Array:
    """Rows of a Jacobian, [R, P], and below them those of the priors, [R + P, P]."""
    return np.vstack([rows, np.eye(rows.shape[1]) * (SOFT / PRIOR_SPREAD)])


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
        parts = {"launch": device.kind == "gpu", "nested": bool(case.stack.nested_calls)}
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


def weights(cases: Sequence[Case]) -> Array:
    """What each case counts, [R], 1 in the mean.

    Each source counts by the square root of its rows, so that a file of thousands does not drown one of a hundred.
    """
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
