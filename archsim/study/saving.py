"""What another setting of the same device saves, and whether errors of predictions could undo it.

Two predictions for one device, network and stack share most of their error, so that their ratio is known better than either. How
well was counted on pairs of rows of one device, network, stack and source (tests/bench/correlation.py prints them): within what
factor the measured ratio lies of the predicted one in 80 % of the pairs, as its logarithm.

    time, two power limits       0.087    570 pairs, correlation of the two errors 0.40
    power, two power limits      0.071    816 pairs, 0.64
    energy, two power limits     0.082    570 pairs, 0.44
    time, two batches            0.187   9065 pairs, 0.53

Power at another clock has held-out rows of its own, the class `by clock` of the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from archsim.estimation.hardware import platform_of
from archsim.estimation.request import Request
from archsim.study.certainty import log_normal, probability_less

LIMITED = {"time": 0.087, "power": 0.071, "energy": 0.082}  # of logs of ratios, at 80 %
BATCHES = 0.187  # the same of times of samples
PARTS = {"latency_s": "time", "throughput_per_s": "time", "power_w": "power", "energy_per_sample_j": "energy"}
SAME = 1e-9  # relative; outputs that differ by less are equal
MORE = ("throughput_per_s",)  # of which more is saved, not less


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """An output of one setting beside that of another.

    ratio: after / before; interval: where the measured ratio is expected, at the level of the calibration
    probability: that there is less of it (of a throughput: more), if errors of logs are normal
    uncertain: whether 1 is within the interval, unless both predictions are the same
    """

    ratio: float
    interval: tuple[float, float]
    probability: float
    uncertain: bool


def savings(
    request: Request, before: Mapping[str, float], after: Mapping[str, float], clocks: bool, batches: bool
) -> dict[str, Saving]:  # fmt: skip
    """The outputs of `PARTS` of a setting beside those of another one.

    before, after: outputs by name; clocks: whether core or memory clock differ; batches: whether the batch does
    """
    return {name: _saving(name, before[name], after[name], _width(request, part, clocks, batches), request.calibration.level)
            for name, part in PARTS.items()}  # fmt: skip


def correlated(
    name: str, before: tuple[float, float, float], after: tuple[float, float, float], correlation: float, level: float
) -> Saving:  # fmt: skip
    """An output beside another whose errors are correlated: half the interval of the log of the ratio is
    w = sqrt(v^2 + u^2 - 2 r v u).

    before, after: value and ends of its interval, of which half the logs are v and u; correlation: r

    >>> one = correlated("latency_s", (1.0, 0.8, 1.25), (0.5, 0.4, 0.625), 0.6, 0.8)
    >>> one.ratio, [round(end, 3) for end in one.interval], one.uncertain
    (0.5, [0.41, 0.61], False)
    """
    v, u = (0.5 * math.log(high / low) for _, low, high in (before, after))
    return _saving(name, before[0], after[0], math.sqrt(max(v * v + u * u - 2.0 * correlation * v * u, 0.0)), level)


def _saving(name: str, before: float, after: float, width: float, level: float) -> Saving:
    """The ratio with its interval, [r exp(-w), r exp(w)]."""
    ratio = after / before
    if abs(ratio - 1.0) <= SAME:
        return Saving(ratio=1.0, interval=(1.0, 1.0), probability=0.5, uncertain=False)
    low, high = ratio * math.exp(-width), ratio * math.exp(width)
    mean, deviation = log_normal(low, high, level)
    less = probability_less((mean, 0.0), (deviation, 0.0))
    probability = 1.0 - less if name in MORE else less
    return Saving(ratio=ratio, interval=(low, high), probability=probability, uncertain=low <= 1.0 <= high)


def _width(request: Request, part: str, clocks: bool, batches: bool) -> float:
    """Half the interval of the log of a ratio; errors of different origins add in quadrature.

    w^2 = w_limits^2 (+ w_power^2 in place of the power's, where clocks differ) (+ w_batches^2 of times and energies)
    """
    width = LIMITED[part]
    if clocks and part != "time":
        _, spread = request.calibration.spread_of(request.spec.kind, "by clock", platform_of(request.spec, request.stack.id))
        power = 0.5 * (spread.high - spread.low)
        width = power if part == "power" else math.hypot(LIMITED["time"], power)
    return math.hypot(width, BATCHES) if batches and part != "power" else width
