"""Probability of an order: against closed forms, against random draws, and its laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.study.certainty import log_normal, probability_in_order, probability_least, probability_less

MEANS = st.lists(st.floats(-2, 2), min_size=2, max_size=5)


def test_an_interval_is_read_at_its_level() -> None:
    mean, deviation = log_normal(2.0, 8.0, 0.8)
    assert mean == pytest.approx(math.log(4.0))
    inside = math.erf(math.log(2.0) / deviation / math.sqrt(2.0))
    assert inside == pytest.approx(0.8, abs=1e-9)


def test_two_equal_predictions_are_a_coin() -> None:
    assert probability_less((1.0, 1.0), (0.2, 0.3)) == 0.5
    assert probability_in_order(np.array([1.0, 1.0]), np.array([0.2, 0.3])) == pytest.approx(0.5, abs=1e-6)


def test_three_alike_have_six_orders() -> None:
    assert probability_in_order(np.zeros(3), np.ones(3)) == pytest.approx(1 / 6, abs=1e-5)
    assert probability_least(np.zeros(3), np.ones(3)).tolist() == pytest.approx([1 / 3] * 3, abs=1e-5)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
def test_two_places_agree_with_the_closed_form(correlation: float) -> None:
    mean, deviation = (0.1, 0.4), (0.2, 0.5)
    found = probability_in_order(np.array(mean), np.array(deviation), correlation)
    assert found == pytest.approx(probability_less(mean, deviation, correlation), abs=1e-5)


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_the_integral_agrees_with_random_draws(correlation: float) -> None:
    rng = np.random.default_rng(1)
    mean, deviation = np.array([0.0, 0.1, 0.35, 0.4]), np.array([0.1, 0.3, 0.2, 0.1])
    common, own = rng.standard_normal((400_000, 1)), rng.standard_normal((400_000, 4))
    drawn = mean + deviation * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own)
    ordered = (np.diff(drawn, axis=1) > 0).all(axis=1).mean()
    assert probability_in_order(mean, deviation, correlation) == pytest.approx(ordered, abs=0.003)
    winners = np.bincount(drawn.argmin(axis=1), minlength=4) / len(drawn)
    assert probability_least(mean, deviation, correlation).tolist() == pytest.approx(winners.tolist(), abs=0.003)


@given(MEANS, st.floats(0.02, 0.6))
def test_someone_is_the_first(means: list[float], deviation: float) -> None:
    assert probability_least(np.array(means), np.full(len(means), deviation)).sum() == pytest.approx(1.0, abs=1e-4)


@given(st.floats(0.01, 1.0), st.floats(0.05, 0.5), st.floats(0.0, 0.9))
def test_shared_errors_make_an_order_surer(gap: float, deviation: float, correlation: float) -> None:
    apart = probability_less((0.0, gap), (deviation, deviation))
    assert probability_less((0.0, gap), (deviation, deviation), correlation) >= apart - 1e-12


def test_a_narrow_among_wide_ones_is_not_lost_between_grid_points() -> None:
    assert probability_least(np.array([0.0, 0.3]), np.array([1e-6, 1.0]))[0] == pytest.approx(0.6179, abs=1e-3)


def test_a_correlation_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="correlation 1"):
        probability_in_order(np.zeros(2), np.ones(2), 1.0)
