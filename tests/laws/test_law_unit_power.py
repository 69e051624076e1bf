"""Power by unit: more of a share never draws less, higher clocks draw more, parts add up, idle is the idle power."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.cost.idle import idle_top
from archsim.device.units import AWAKE, UNITS, UnitClocks, unit_rates
from archsim.estimation.power import PowerEstimate, power_by_unit
from tests.shipped import gpu

DEVICES = ("tesla_k40", "gtx_980", "titan_x_maxwell", "titan_xp", "tesla_v100_sxm2", "tesla_t4", "a100_sxm4_40gb", "rtx_4090",
           "h100_sxm5_80gb", "tegra_x1")  # fmt: skip
HW, SHARE, CLOCK = st.sampled_from(DEVICES), st.floats(0.0, 1.0), st.floats(2e8, 1.7e9)  # not twice the boost of any
SHARES = st.fixed_dictionaries(dict.fromkeys((AWAKE, *UNITS), SHARE))


def of(hw: str, shares: dict[str, float], clock: float, **asked: object) -> PowerEstimate:
    """The power with those shares whose unit the chip has."""
    rates = unit_rates(gpu(hw), UnitClocks(core=1.0))
    able = {unit: share for unit, share in shares.items() if unit == AWAKE or float(rates[unit]) > 0.0}
    return power_by_unit(hw, able, clock=clock, **asked)  # type: ignore[arg-type]


@given(HW, SHARES, CLOCK, st.sampled_from((AWAKE, *UNITS)), SHARE)
def test_more_of_any_share_never_draws_less(hw: str, shares: dict[str, float], clock: float, unit: str, other: float) -> None:
    low, high = sorted((shares[unit], other))
    less, more = (of(hw, {**shares, unit: share}, clock).power_w for share in (low, high))
    assert more >= less - 1e-9 * less


@given(HW, SHARES, CLOCK, CLOCK)
def test_a_higher_clock_draws_more_for_the_same_shares_and_for_the_same_work(
    hw: str, shares: dict[str, float], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert of(hw, shares, high).power_w >= of(hw, shares, low).power_w
    slow, fast = (of(hw, shares, clock, counted_at=(high, None)) for clock in (low, high))
    assert fast.power_w >= slow.power_w * (1 - 1e-9)
    for found in (slow, of(hw, shares, high, counted_at=(low, None))):
        assert 0.0 <= min(found.shares.values()) <= max(found.shares.values()) <= 1.0


@given(HW, SHARES, CLOCK, st.floats(0.2, 1.0))
def test_parts_add_up_and_lie_above_nothing(hw: str, shares: dict[str, float], clock: float, memory: float) -> None:
    usual = of(hw, {}, clock).memory_clock_hz
    assert usual is not None
    found = of(hw, shares, clock, memory_clock=memory * usual)
    assert math.fsum(found.parts_w.values()) == pytest.approx(found.power_w, rel=1e-12)
    assert min(found.parts_w.values()) >= 0.0
    low, high = found.power_interval_w
    assert found.idle_w <= low <= found.power_w * (1 + 1e-12)
    assert found.power_w < high


@given(HW)
def test_idle_at_the_highest_clock_is_that_of_the_spec(hw: str) -> None:
    found = of(hw, {}, float(idle_top(gpu(hw))))
    assert found.power_w == pytest.approx(float(gpu(hw).power.idle), rel=1e-9)
    assert found.power_w == pytest.approx(found.idle_w)


@given(HW, SHARES, CLOCK, st.floats(0.1, 0.95))
def test_within_the_limit_is_within_it(hw: str, shares: dict[str, float], clock: float, share: float) -> None:
    free = of(hw, shares, clock)
    idle = float(gpu(hw).power.idle)
    limit = idle + share * max(free.power_w - idle, 1.0)
    found = of(hw, shares, clock, power_limit=limit)
    assert found.power_w == free.power_w
    assert found.above_limit == (found.power_w > limit)
    if found.clock_within_limit_hz is not None:
        assert found.clock_within_limit_hz <= clock
        kept = of(hw, shares, found.clock_within_limit_hz, counted_at=(clock, None)).power_w
        assert kept <= limit * (1 + 1e-9)
        assert not found.above_limit or kept == pytest.approx(limit, rel=1e-6)
