"""The heat that a cooler carries away as a power limit: of requests, of what-ifs and of units without a network."""

from __future__ import annotations

import pytest

import archsim
from archsim.base.errors import ArgumentError
from archsim.estimation.request import make_request

PASSIVE = {"power.throttle": "85", "power.air": "35"}


def cooled(resistance: float) -> dict[str, str]:
    """A card without a fan of its own, in warm air."""
    return {**PASSIVE, "power.thermal_resistance": f"{resistance}"}


def test_a_cooler_limits_as_a_power_limit_of_the_same_watts_does() -> None:
    hot = archsim.estimate("resnet_50", "tesla_t4", batch=32, set=cooled(1.0))
    limited = archsim.estimate("resnet_50", "tesla_t4", batch=32, power_limit=50.0)
    assert hot.power_limit_w == pytest.approx(50.0)
    assert hot.latency_s == pytest.approx(limited.latency_s, rel=1e-6)
    assert any("heat: in air of 35 degrees the chip reaches 85 degrees at 50 W" in said for said in hot.assumptions)


def test_worse_coolers_make_slower_cards_and_good_ones_change_nothing() -> None:
    times = [archsim.estimate("resnet_50", "tesla_t4", batch=32, set=cooled(of)).latency_s for of in (0.1, 0.8, 1.0, 1.2)]
    assert times == sorted(times)
    assert times[0] == archsim.estimate("resnet_50", "tesla_t4", batch=32).latency_s  # 500 W: the TDP is the lower limit
    assert times[1] < times[2] < times[3]


def test_the_lower_of_two_limits_holds() -> None:
    assert make_request("alexnet", "tesla_t4", power_limit=45.0, settings=cooled(1.0)).limit == 45.0
    assert make_request("alexnet", "tesla_t4", power_limit=65.0, settings=cooled(1.0)).limit == 50.0


def test_two_of_three_values_are_no_cooler() -> None:
    assert make_request("alexnet", "tesla_t4", settings=PASSIVE).limit == make_request("alexnet", "tesla_t4").limit


def test_a_cpu_has_a_cooler_too() -> None:
    alone, hot = (archsim.estimate("resnet_50", "i7_6700k", set=of) for of in (None, cooled(1.25)))
    assert hot.power_limit_w == pytest.approx(40.0)
    assert hot.latency_s > alone.latency_s


def test_units_without_a_network_are_held_to_it() -> None:
    found = archsim.power("tesla_t4", {"fp32": 0.8, "sm": 1.0}, set=cooled(1.0))
    assert found.power_limit_w == pytest.approx(50.0)
    assert any("what the cooler carries away" in said for said in found.assumptions)
    assert not any("changes no watt" in said for said in found.warnings)


def test_a_cooler_that_does_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"carries away 5 W .* no more than the idle power"):
        make_request("alexnet", "tesla_t4", settings=cooled(10.0))
    with pytest.raises(ArgumentError, match="thermal_resistance"):
        archsim.power("tesla_t4", {"fp32": 0.8}, set=cooled(10.0))
