"""Models that any prediction has to beat: the roofline, that with three global constants, and the model asked with the words of a
row alone.

time = sum over ops of max(FLOP / (a peak), bytes / (b bandwidth)) + c ops: a and b are the shares of the peaks that all
kernels reach, c [s] is what every op costs besides. The three are fitted to the rows of split calibrate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.roofline import RooflineTerms, compute_bound, memory_bound
from archsim.estimation.measured import differences, request_of, value_of
from archsim.estimation.pipeline import run, spread
from archsim.estimation.request import Request, make_request
from archsim.evidence.case import Case
from archsim.validation.predict import Group, evaluate

PLAIN = "plain"  # the model itself, asked with the words of the row alone
BASELINES = ("roofline", "constants", PLAIN)
TIMES = ("latency_s", "throughput_per_s")
MOST_FITTED = 1500  # rows: three numbers need no more
SHARES = np.geomspace(0.02, 1.0, 14)
PER_OP_S = np.concatenate([[0.0], np.geomspace(1e-6, 1e-3, 13)])
Conditions = tuple[str, ...]
Timed = Callable[[float, float, Array | float], Array]
FINER = 5  # values of each constant in the second, finer pass


def roofline(groups: Sequence[Group], calibration: Calibration) -> Array:
    """What the roofline predicts, NaN for rows without ops, to which it has no answer."""
    size = sum(len(group.cases) for group in groups)
    return evaluate([group for group in groups if group.lowered is not None], calibration, "roofline", size=size)


def plain_values(cases: Sequence[Case], calibration: Calibration, fidelity: str) -> tuple[Array, list[Conditions]]:
    """For each case the plain prediction in the unit of its metric, and the conditions of the source that it lacks.

    NaN and no conditions for rows of single ops, of several devices, of other tables, and where the words are not understood.
    """
    found, lacking = np.full(len(cases), np.nan), [Conditions()] * len(cases)
    for i, case in enumerate(cases):
        if case.work is None or case.group is not None or case.anchor is not None or "network" not in case.fields:
            continue
        try:
            request = plain_request(case, calibration, fidelity)
            found[i] = value_of(case, request, run(request))
            lacking[i] = differences(request_of(case, calibration, fidelity), request)
        except ArchsimError:
            continue
    return found, lacking


def plain_request(case: Case, calibration: Calibration, fidelity: str) -> Request:
    """What the row's own words ask. Raises ArchsimError for words that `archsim estimate` does not take."""
    cells = case.fields
    return make_request(
        cells["network"], cells["hardware"], batch=int(cells["batch"]), precision=cells["precision"], task=cells["task"],
        stack=cells["stack"], threads=case.threads, seq_len=int(cells["seq_len"]) if cells.get("seq_len") else None,
        calibration=calibration, fidelity=fidelity,
    )  # fmt: skip


def constants_of(cases: Sequence[Case], groups: Sequence[Group]) -> Array:
    """Predictions of the roofline with three constants fitted to the calibrate rows among `cases`; `groups`: these, prepared.

    NaN for power and energy; without a calibrate row nothing is fitted and all are NaN.
    """
    timed = np.array([case.metric in TIMES and case.anchor is None for case in cases])
    usable = np.flatnonzero(timed & np.array([case.split == "calibrate" for case in cases]))
    if not usable.size:
        return np.full(len(cases), np.nan)
    peaks, count = _at_peaks(groups, len(cases))
    seconds = batch_times(cases, np.array([case.measured for case in cases]))
    chosen = usable[np.linspace(0, usable.size - 1, min(MOST_FITTED, usable.size)).astype(np.intp)]
    time = _timed(peaks, count)(*_fitted(_timed([peaks[i] for i in chosen], count[chosen]), seconds[chosen]))[0]
    with np.errstate(divide="ignore"):
        return np.where(timed, batch_times(cases, time), np.nan)


def batch_times(cases: Sequence[Case], values: Array) -> Array:
    """Times of one batch [s] from times and rates, and the other way round."""
    rate = np.array([case.metric == "throughput_per_s" for case in cases], dtype=bool)
    return np.where(rate, np.array([case.batch for case in cases]) / values, values)


def _at_peaks(groups: Sequence[Group], size: int) -> tuple[list[Array], Array]:
    """Of each case the times of its ops at the peaks of arithmetic and of the memory [s], [2, ops], and how many launch
    something."""
    peaks, count = [np.zeros((2, 1))] * size, np.zeros(size)
    for group in groups:
        if group.lowered is None:
            continue
        first = group.requests[0]
        threads = 1 if first.threads is None else first.threads
        terms = RooflineTerms(kernels=group.lowered.kernels, device=first.spec.device, precision=first.precision,
                              clock=first.clock, threads=threads)  # fmt: skip
        bounds = np.concatenate(np.broadcast_arrays(compute_bound(terms), memory_bound(terms)))
        for position, plan_of in zip(group.positions, group.plans, strict=True):
            peaks[position], count[position] = spread(bounds, plan_of), np.sum(plan_of >= 0)
    return peaks, count


def _timed(peaks: Sequence[Array], count: Array) -> Timed:
    """Time of each case by the shares of both peaks and the time of an op [s], [times of an op, cases]; see `_at_peaks`."""
    start = np.cumsum([0, *(part.shape[1] for part in peaks)], dtype=np.intp)[:-1]
    compute, dram = np.concatenate(peaks, axis=1)

    def time(share: float, of_bandwidth: float, per_op: Array | float) -> Array:
        at_shares = np.add.reduceat(np.maximum(compute / share, dram / of_bandwidth), start)
        return at_shares + np.atleast_1d(per_op)[:, None] * count

    return time


def _fitted(timed: Timed, seconds: Array) -> tuple[float, float, float]:
    """The least mean |log(predicted / measured)| on a coarse grid, then on a finer one around its best point."""
    best = _search(timed, seconds, SHARES, SHARES, PER_OP_S)
    step = float(SHARES[1] / SHARES[0])
    near = np.geomspace(1 / step, step, FINER)
    near_a, near_b = (np.minimum(1.0, value * near) for value in best[:2])
    near_c = np.append(0.0, best[2] * np.geomspace(0.5, 2.0, FINER))
    return _search(timed, seconds, near_a, near_b, near_c)


def _search(timed: Timed, seconds: Array, compute: Array, bandwidth: Array, per_op: Array) -> tuple[float, float, float]:
    best = (np.inf, 1.0, 1.0, 0.0)
    for a, b in product(compute, bandwidth):
        off = np.mean(np.abs(np.log(np.maximum(timed(float(a), float(b), per_op), 1e-12) / seconds)), axis=1)
        i = int(np.argmin(off))
        best = min(best, (float(off[i]), float(a), float(b), float(per_op[i])))
    return best[1:]
