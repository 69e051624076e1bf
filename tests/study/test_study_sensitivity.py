"""Elasticities: known truths, agreement with a sweep, and what has none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from archsim.base.errors import UnknownName
from archsim.device.part import Unit
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request, make_request
from archsim.study.grid import evaluate
from archsim.study.sensitivity import Elasticity, by_swing, neighbours, sensitivity, slope


def of(net: str, hw: str, *keys: str, step: float = 0.01, **choices: Any) -> dict[str, Elasticity]:
    return {e.key: e for e in sensitivity(make_request(net, hw, **choices), keys, step)}


def test_batch_128_vgg_follows_the_arithmetic() -> None:
    found = of("vgg_16", "gtx_1080", "clock.sustained", "memory.bandwidth", "launch.latency", batch=128)
    clock, memory, launch = (found[key].local["latency_s"] for key in ("clock.sustained", "memory.bandwidth", "launch.latency"))
    assert clock < -0.5 < memory < -10 * launch < 0


def test_one_image_of_alexnet_follows_the_memory() -> None:
    found = of("alexnet", "tegra_x1", "memory.bandwidth", "rate.fp32")
    assert found["memory.bandwidth"].local["latency_s"] < found["rate.fp32"].local["latency_s"] < 0


def test_achievable_and_bandwidth_are_one_product() -> None:
    found = of("alexnet", "tegra_x1", "memory.bandwidth", "memory.achievable")
    a, b = (e.local["latency_s"] for e in found.values())
    assert a == pytest.approx(b, rel=1e-9)


def test_values_that_act_alike_are_one_row_whatever_the_last_digits_say() -> None:
    one, other = of("alexnet", "tegra_x1", "memory.bandwidth", "memory.achievable").values()
    for digits in (1 - 1e-12, 1.0, 1 + 1e-12):
        swing = {name: tuple(None if value is None else value * digits for value in pair) for name, pair in one.swing.items()}
        assert [e.key for e in by_swing([replace(one, swing=swing), other])] == ["memory.achievable, memory.bandwidth"]


def test_an_elasticity_is_the_slope_of_the_sweep() -> None:
    request = make_request("alexnet", "gtx_1080", batch=4)
    base = float(request.spec.entries["memory.bandwidth"].number)
    x = base * np.array([0.99, 1.01])
    y = evaluate(request, {"memory.bandwidth": x})
    found = sensitivity(request, ["memory.bandwidth"])[0]
    for name in ("latency_s", "energy_j", "power_w"):
        assert found.local[name] == pytest.approx(math.log(y[name][1] / y[name][0]) / math.log(x[1] / x[0]), rel=1e-9)


def test_the_wide_step_is_two_single_estimates() -> None:
    request = make_request("alexnet", "gtx_1080", batch=4)
    found = sensitivity(request, ["sm.count"], span=0.25)[0]
    assert (found.low, found.high) == (15.0, 25.0)

    def latency(**more: Any) -> float:
        return estimate_of(make_request("alexnet", "gtx_1080", batch=4, **more), references=False).latency_s

    for end, swing in zip((15, 25), found.swing["latency_s"], strict=True):
        assert swing == pytest.approx(math.log(latency(settings={"sm.count": str(end)}) / latency()), rel=1e-9)


def test_power_is_energy_over_time() -> None:
    for e in of("alexnet", "tegra_x1").values():
        if e.local:
            assert e.local["power_w"] == pytest.approx(e.local["energy_j"] - e.local["latency_s"], abs=1e-9)


@pytest.mark.parametrize("hw", ["tegra_x1", "i7_6700k", "tesla_v100_sxm2"])
def test_every_number_of_the_spec_has_a_row(hw: str) -> None:
    request = make_request("alexnet", hw)
    found = sensitivity(request)
    numbers = [key for key, entry in request.spec.entries.items() if not isinstance(entry.value, str)]
    assert [e.key for e in found] == numbers
    assert all(not e.matters for e in found if e.unit.informational)
    assert {"memory.bandwidth", "power.idle"} <= {key for e in by_swing(found) for key in e.key.split(", ")}
    assert all(e.why for e in found if e.key == "chip.node")


def test_an_edge_is_taken_from_one_side() -> None:
    request: Request = make_request("alexnet", "gtx_1080", settings={"memory.achievable": "1"})
    found = sensitivity(request, ["memory.achievable"])[0]
    assert found.sides["latency_s"][1] is None
    assert found.local["latency_s"] < 0


def test_a_higher_boost_clock_is_faster_and_takes_more_energy() -> None:
    """The sustained clock goes with it, and the voltage of a clock stays that of the chip before."""
    found = of("resnet_50", "gtx_1080", "clock.boost")["clock.boost"].local
    assert found["latency_s"] < 0 < found["energy_j"]


def test_a_cliff_is_named() -> None:
    assert of("alexnet", "tegra_x1", "sm.registers")["sm.registers"].jump == "at a step: less has an effect, more little"
    assert of("alexnet", "tegra_x1", "memory.bandwidth")["memory.bandwidth"].jump == ""


def test_slopes() -> None:
    x = np.array([0.9, 1.0, 1.1])
    assert slope(x, -2 * np.log(x)) == pytest.approx(-2)
    assert slope(x, np.array([math.nan, 0.0, math.log(1.1)])) == pytest.approx(1)
    assert math.isnan(slope(x, np.array([math.nan, 0.0, math.nan])))
    assert neighbours(1.0, 0.01, Unit(unit="1", doc="", whole=True, low=1, above=False)) == (1.0, 2.0)


def test_a_key_that_the_device_lacks_is_refused() -> None:
    with pytest.raises(UnknownName, match="bandwidth"):
        sensitivity(make_request("alexnet", "tegra_x1"), ["memory.bandwith"])
