"""Where a measured value is to be expected around its prediction, from the errors on rows that were held out of the fit."""

from __future__ import annotations

import math

import numpy as np

from archsim.calibration.constants import Spread
from archsim.estimation.request import Request


def class_of(request: Request) -> tuple[str, Spread]:
    """The class of predictions whose held-out errors give the interval, and these."""
    modelled = request.fidelity.calibrated and not request.graph and request.streams == 1
    what = "inference" if request.task == "inference" else "training"
    return request.calibration.spread_of(request.spec.kind, what, request.stack.id, modelled)


def trust(request: Request) -> str:
    """How far a time of this request may be off, in words."""
    kind, spread = class_of(request)
    low, high = (100 * (math.exp(-end) - 1) for end in (spread.high, spread.low))
    share = f"{100 * request.calibration.level:.0f} %"
    return f"times are estimates ({kind}): in {share} of such cells the measured one lies from {low:+.0f} % to {high:+.0f} %"


def power_interval(request: Request, power: float) -> tuple[float, float]:
    """Where the mean power lies [W] at the calibration's level, never below idle or above the limit."""
    device, spread = request.spec.device, _power_spread(request)
    most = device.power.tdp if request.limit is None else request.limit
    idle, limit = (float(np.ravel(value)[0]) for value in (device.power.idle, most))
    return max(min(idle, power), power * math.exp(-spread.high)), min(max(limit, power), power * math.exp(-spread.low))


def energy_interval(request: Request, energy: float) -> tuple[float, float]:
    """Where the energy lies [J]: errors of power and of time are taken to be independent, so their logs add in quadrature."""
    (_, time), power = class_of(request), _power_spread(request)
    return (energy * math.exp(-math.hypot(time.high, power.high)), energy * math.exp(math.hypot(time.low, power.low)))


def _power_spread(request: Request) -> Spread:
    modelled = request.fidelity.calibrated and request.streams == 1
    return request.calibration.spread_of(request.spec.kind, "power", request.stack.id, modelled)[1]
