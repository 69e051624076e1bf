"""Power over time: a curve that is constant between the starts and ends of kernels, whose area is the energy of the run.

Kernels draw their mean power, launch gaps included; while the device waits for the host it draws its idle power at its clock.
Where kernels overlap, what each takes beyond that adds up, and the idle power is drawn once, as in the energies of the ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from archsim.cost.energy import IDLE
from archsim.schedule.timeline import Array

if TYPE_CHECKING:
    from archsim.estimation.pipeline import Run
    from archsim.estimation.request import Request

# Boxcar over which the sensors of A100 and H100 average each reading (Yang, Adamek & Armour 2024, "Part-time power measurements",
# SC24): the shortest that they found. `nvmlDeviceGetPowerUsage` averages over 1 s on later chips (NVML reference).
SENSOR_S = 25e-3
NEGLIGIBLE = 1e-12  # of the latency: a step that is shorter is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCurve:
    """Power between moments: `power_w[i]` from `time_s[i]` to `time_s[i + 1]` [s, W].

    time_s: the first is 0, the last the end of the run
    """

    time_s: tuple[float, ...]
    power_w: tuple[float, ...]

    @property
    def energy_j(self) -> float:
        """The area under the curve [J].

        >>> PowerCurve(time_s=(0.0, 1.0, 3.0), power_w=(50.0, 100.0)).energy_j
        250.0
        """
        return float(np.dot(np.diff(self.time_s), self.power_w))

    @property
    def peak_w(self) -> float:
        """The highest power [W]."""
        return max(self.power_w)

    def sensed_peak_w(self, window_s: float = SENSOR_S) -> float:
        """The highest mean over any window of that length, as a sensor sees it while the run is repeated without a pause [W].

        >>> curve = PowerCurve(time_s=(0.0, 1.0, 3.0), power_w=(50.0, 100.0))
        >>> curve.sensed_peak_w(1.0), curve.sensed_peak_w(2.5), curve.sensed_peak_w(3.0)
        (100.0, 90.0, 83.33333333333333)
        """
        if not window_s > 0.0:
            raise ValueError(f"window of {window_s:g} s: must be above 0")
        edges, powers = np.asarray(self.time_s), np.asarray(self.power_w)
        period, whole = edges[-1], self.energy_j
        runs, rest = divmod(window_s, period)
        passed = np.concatenate([[0.0], np.cumsum(np.diff(edges) * powers)])

        def until(at: Array) -> Array:
            return np.asarray(np.floor_divide(at, period) * whole + np.interp(np.mod(at, period), edges, passed))

        begins = np.concatenate([edges, np.mod(edges - rest, period)])  # the mean is highest where an end of it meets a step
        return float((runs * whole + np.max(until(begins + rest) - until(begins))) / window_s)


def power_curve(request: Request, result: Run) -> PowerCurve:
    """The power of a run over its time, on the first of its devices."""
    streams = result.overlaps and request.streams > 1 and result.cost.variants is not None
    lengths, powers = _of_streams(request, result) if streams else _one_by_one(result)
    kept = lengths > NEGLIGIBLE * lengths.sum()
    lengths, powers = lengths[kept], powers[kept]
    # equal neighbours are one step
    changes = np.concatenate([[True], np.abs(np.diff(powers)) > NEGLIGIBLE * powers[1:]])
    starts = np.flatnonzero(changes)
    edges = np.concatenate([[0.0], np.cumsum(np.add.reduceat(lengths, starts))])
    return PowerCurve(time_s=tuple(edges.tolist()), power_w=tuple(powers[starts].tolist()))


def _idle(result: Run) -> float:
    return float(sum(np.ravel(part)[0] for part in result.idle_w.values()))


def _one_by_one(result: Run) -> tuple[Array, Array]:
    """The steps of ops that follow each other: the wait of each for the host, then its kernels."""
    kernels, cost, idle = result.lowered.kernels, result.cost, _idle(result)
    times, drawn, options = cost.kernel_time_s[0], np.atleast_2d(cost.kernel_power_w)[0], cost.option[0].tolist()
    plans, waits = result.lowered.plan_of.tolist(), result.timeline.wait_s[0].tolist()
    those = {plan: kernels.places(options[plan]) if plan >= 0 else range(0) for plan in {*plans}}
    lengths = [part for plan, wait in zip(plans, waits, strict=True) for part in ([wait], times[those[plan]])]
    return np.concatenate(lengths), np.concatenate([part for plan in plans for part in ([idle], drawn[those[plan]])])


def _of_streams(request: Request, result: Run) -> tuple[Array, Array]:
    """The steps of ops that overlap: what kernels draw beyond idle, as the events have it, on what is drawn in any case."""
    from archsim.estimation.pipeline import priced, scheduled
    from archsim.schedule.observer import Recording
    from archsim.schedule.streams import BEYOND_IDLE

    seen = Recording()
    scheduled(request, result.lowered, priced(request, result.lowered.kernels), (seen,))
    levels = [(time, value) for name, time, value in seen.levels if name == BEYOND_IDLE]
    base_ends, base_powers = _drawn_anyway(result)
    moments = np.array([0.0, *(time for time, _ in levels)])
    values = np.array([0.0, *(value for _, value in levels)])
    ends = np.union1d(moments[moments > 0.0], base_ends)
    ends = ends[ends <= base_ends[-1]]
    starts = np.concatenate([[0.0], ends[:-1]])
    middle = 0.5 * (starts + ends)
    beyond = values[np.searchsorted(moments, middle, side="right") - 1]
    return ends - starts, beyond + base_powers[np.minimum(np.searchsorted(base_ends, middle), base_ends.size - 1)]


def _drawn_anyway(result: Run) -> tuple[Array, Array]:
    """Ends [s] of steps and what is drawn in them whatever runs [W]: between the ends of two ops that of the later one, as far
    as its kernels take that long alone, and the idle power before."""
    energy, plans = result.cost.energy_j, result.lowered.plan_of
    alone = np.where(plans >= 0, result.cost.time_s[0, plans], 0.0)
    in_any_case = reduce(np.add, [energy[name] for name in IDLE])
    spent = np.where(plans >= 0, in_any_case[0, plans], 0.0)
    own_w = spent / np.maximum(alone, np.finfo(float).tiny)
    added, idle = result.timeline.op_time_s[0], _idle(result)
    order = np.argsort(result.timeline.end_s[0], kind="stable")
    working = np.minimum(added, alone)[order]
    lengths = np.stack([added[order] - working, working], axis=-1).ravel()
    powers = np.stack([np.full(order.size, idle), own_w[order]], axis=-1).ravel()
    return np.cumsum(lengths), powers


def averaged(curve: PowerCurve, most: int) -> PowerCurve:
    """A curve of more steps than `most` as so many of equal length, each with the mean power over it: the energy is the same.

    >>> averaged(PowerCurve(time_s=(0.0, 1.0, 2.0, 4.0), power_w=(50.0, 100.0, 150.0)), 2)
    PowerCurve(time_s=(0.0, 2.0, 4.0), power_w=(75.0, 150.0))
    """
    if len(curve.power_w) <= most:
        return curve
    ends = np.linspace(0.0, curve.time_s[-1], most + 1)
    energy = np.interp(ends, curve.time_s, np.concatenate([[0.0], np.cumsum(np.diff(curve.time_s) * curve.power_w)]))
    return PowerCurve(time_s=tuple(ends.tolist()), power_w=tuple((np.diff(energy) / np.diff(ends)).tolist()))
