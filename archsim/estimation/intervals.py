"""How far predictions are off, by the errors on rows that were held out of the fit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from archsim.base.files import data_folder
from archsim.calibration.constants import Spread, spread_of_product
from archsim.device.catalog import is_shipped
from archsim.device.spec import Spec
from archsim.estimation.hardware import platform_of
from archsim.estimation.pipeline import idle_of
from archsim.estimation.request import Request
from archsim.stack.catalog import rows_of


def class_of(request: Request) -> tuple[str, Spread]:
    """The class of predictions that a request belongs to, and the spread of their errors on held-out rows.

    Replayed graphs, cold caches, several streams, stacks that nobody measured, rules of fusion that were asked for, and
    fidelities without fitted constants have no rows of their own: their class is an extrapolated one, with a wider spread. So is
    it where the nearest rows are not of the card.
    """
    seen = rows_of(request.stack).own > 0 and request.asked.get("fusion") is None
    modelled = request.fidelity.calibrated and seen and not (request.graph or request.cold) and request.streams == 1
    what = "inference" if request.task == "inference" else "training"
    return request.calibration.spread_of(request.spec.kind, what, platform_of(request.spec, request.stack.id), modelled)


def trust(request: Request) -> str:
    """How far a time of this request may be off, in words."""
    kind, spread = class_of(request)
    low, high = (100 * (math.exp(-end) - 1) for end in (spread.high, spread.low))
    share = f"{100 * request.calibration.level:.0f} %"
    return f"times are estimates ({kind}): in {share} of such cells the measured one lies from {low:+.0f} % to {high:+.0f} %"


def power_interval(request: Request, power: float) -> tuple[float, float]:
    """Where a measured mean power is expected around a predicted one [W], at the calibration's level.

    [P exp(-high), P exp(-low)], cut at the idle power below and at the power limit above

    low, high: quantiles of log(predicted / measured) of held-out powers (split conformal; Lei et al. 2018, section 2.2)

    >>> from archsim.estimation.request import make_request
    >>> low, high = power_interval(make_request("alexnet", "gtx_1080"), 175.0)
    >>> low < 175.0 < high <= 180.0  # the board's limit
    True
    """
    device, spread = request.device, _power_spread(request)
    most = device.power.tdp if request.limit is None else request.limit
    idle, limit = (float(np.ravel(value)[0]) for value in (idle_of(request), most))
    low, high = spread.around(power)
    return max(min(idle, power), low), min(max(limit, power), high)


def energy_interval(request: Request, energy: float) -> tuple[float, float]:
    """Where a measured energy is expected around a predicted one [J], at the calibration's level.

    [E exp(-high), E exp(-low)], low and high of the product of time and power (`spread_of_product`)

    >>> from archsim.estimation.request import make_request
    >>> low, high = energy_interval(make_request("alexnet", "gtx_1080"), 1.0)
    >>> low < 1.0 < high
    True
    """
    return spread_of_product(class_of(request)[1], _power_spread(request)).around(energy)


def _power_spread(request: Request) -> Spread:
    modelled = request.fidelity.calibrated and request.streams == 1
    return request.calibration.spread_of(request.spec.kind, "power", platform_of(request.spec, request.stack.id), modelled)[1]


def own_rows(spec: Spec) -> str:
    """What the shipped validation says of predictions for whole networks on a shipped device; empty without any such row."""
    found = _validated().get(spec.identity.id, {}) if is_shipped(spec) else {}
    if "n" not in found:
        return ""
    n, bias, covered = found["n"], f"{100 * found['bias']:+.0f}", found["coverage"]
    side = "right" if bias[1:] == "0" else f"{bias[1:]} % too {'slow' if bias[0] == '+' else 'fast'}"
    inside = "" if covered is None else f", {100 * covered:.0f} % inside their interval"
    return f"{n:,} measurements of this device: predicted {side} in the median{inside}"


@cache
def _validated() -> Mapping[str, Mapping[str, Any]]:
    file = data_folder("reports/validation").joinpath("validation.json")
    return dict(json.loads(file.read_text("utf-8"))["devices"])
