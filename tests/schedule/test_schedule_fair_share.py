"""Max-min fairness: hand-made cases, and its definition on drawn ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.schedule.events import Demand, max_min

RESOURCES = ("a", "b", "c")
WEIGHTS = st.floats(0.05, 5).map(lambda value: round(value, 3))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    names = draw(st.lists(st.sampled_from(RESOURCES), unique=True, max_size=3))
    return tuple((name, draw(WEIGHTS)) for name in names)


FLOWS = st.lists(st.tuples(demands(), WEIGHTS), min_size=1, max_size=6)


def used(flows: list[tuple[Demand, float]], rates: list[float], resource: str) -> float:
    return sum(rate * dict(demand).get(resource, 0.0) for (demand, _), rate in zip(flows, rates, strict=True))


def test_equal_flows_have_equal_shares() -> None:
    assert max_min([(("link", 1.0),)] * 4, [10.0] * 4, {"link": 8.0}) == [2.0] * 4


def test_what_a_capped_flow_leaves_goes_to_the_others() -> None:
    assert max_min([(("link", 1.0),)] * 3, [1.0, 9.0, 9.0], {"link": 9.0}) == pytest.approx([1.0, 4.0, 4.0])


def test_the_flow_over_two_links_has_what_the_narrow_one_gives() -> None:
    """Flow 0 shares link a (1) with flow 1 and link b (10) with flow 2, which takes what is left."""
    rates = max_min([(("a", 1.0), ("b", 1.0)), (("a", 1.0),), (("b", 1.0),)], [99.0] * 3, {"a": 1.0, "b": 10.0})
    assert rates == pytest.approx([0.5, 0.5, 9.5])


def test_a_resource_without_capacity_has_no_end() -> None:
    assert max_min([(("sky", 1e9),), (("sky", 1.0),)], [3.0, 4.0], {}) == [3.0, 4.0]


def test_a_flow_that_may_not_run_takes_nothing() -> None:
    assert max_min([(("a", 1.0),), (("a", 1.0),)], [0.0, 5.0], {"a": 2.0}) == [0.0, 2.0]


@given(FLOWS, st.tuples(*[WEIGHTS] * 3))
def test_nothing_is_used_beyond_its_capacity_and_every_flow_is_held_by_its_cap_or_by_a_full_resource(
    flows: list[tuple[Demand, float]], sizes: tuple[float, ...]
) -> None:
    capacity = dict(zip(RESOURCES, sizes, strict=True))
    rates = max_min([demand for demand, _ in flows], [cap for _, cap in flows], capacity)
    load = {name: used(flows, rates, name) for name in RESOURCES}
    assert all(load[name] <= capacity[name] * (1 + 1e-9) for name in RESOURCES)
    for (demand, cap), rate in zip(flows, rates, strict=True):
        assert 0 <= rate <= cap * (1 + 1e-12)
        full = [name for name, _ in demand if load[name] >= capacity[name] * (1 - 1e-9)]
        # held by its cap, or on a full resource no other flow has more than it
        most = [max(r for (d, _), r in zip(flows, rates, strict=True) if name in dict(d)) for name in full]
        assert rate >= cap * (1 - 1e-9) or any(rate >= m * (1 - 1e-9) for m in most)
