"""Probability of an order: against closed forms, and its laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.study.certainty import log_normal, order_probabilities, probability_less

MEANS = st.lists(st.floats(-2, 2), min_size=2, max_size=5)
DRAWN = 0.006  # three standard errors of a probability


def alike(count: int, correlation: float) -> np.ndarray:
    return np.full((count, count), correlation) + (1.0 - correlation) * np.eye(count)


def test_an_interval_is_read_at_its_level() -> None:
    mean, deviation = log_normal(2.0, 8.0, 0.8)
    assert mean == pytest.approx(math.log(4.0))
    inside = math.erf(math.log(2.0) / deviation / math.sqrt(2.0))
    assert inside == pytest.approx(0.8, abs=1e-9)


def test_two_equal_predictions_are_a_coin() -> None:
    assert probability_less((1.0, 1.0), (0.2, 0.3)) == 0.5
    assert order_probabilities(np.ones(2), np.array([0.2, 0.3]), np.eye(2))[0] == pytest.approx(0.5, abs=DRAWN)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8, 0.99])
def test_two_places_agree_with_the_closed_form(correlation: float) -> None:
    mean, deviation = (0.1, 0.4), (0.2, 0.5)
    whole, least = order_probabilities(np.array(mean), np.array(deviation), alike(2, correlation))
    exact = probability_less(mean, deviation, correlation)
    assert whole == least[0] == pytest.approx(exact, abs=DRAWN)


def test_every_pair_has_its_own_correlation() -> None:
    """The third is as far from the first as from the second, but shares its error with the second only."""
    mean, deviation = np.array([0.0, 0.0, 0.1]), np.full(3, 0.2)
    matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.9], [0.0, 0.9, 1.0]])
    for first, correlation in ((0, 0.0), (1, 0.9)):
        rest = [first, 2]
        found = order_probabilities(mean[rest], deviation[rest], matrix[np.ix_(rest, rest)])[0]
        assert found == pytest.approx(probability_less((0.0, 0.1), (0.2, 0.2), correlation), abs=DRAWN)
    _, least = order_probabilities(mean, deviation, matrix)
    assert least[0] > least[1] > least[2]  # the second and the third are fast together, and share that between them


@settings(max_examples=25)
@given(MEANS, st.floats(0.02, 0.6), st.floats(0.0, 0.9))
def test_someone_is_the_first(means: list[float], deviation: float, correlation: float) -> None:
    found = order_probabilities(np.array(means), np.full(len(means), deviation), alike(len(means), correlation))[1]
    assert found.sum() == pytest.approx(1.0, abs=1e-9)


@given(st.floats(0.01, 1.0), st.floats(0.05, 0.5), st.floats(0.0, 0.9))
def test_shared_errors_make_an_order_surer(gap: float, deviation: float, correlation: float) -> None:
    apart = probability_less((0.0, gap), (deviation, deviation))
    assert probability_less((0.0, gap), (deviation, deviation), correlation) >= apart - 1e-12


def test_a_narrow_among_wide_ones() -> None:
    found = order_probabilities(np.array([0.0, 0.3]), np.array([1e-6, 1.0]), np.eye(2))[1]
    assert found[0] == pytest.approx(0.6179, abs=DRAWN)


def test_correlations_that_no_errors_can_have_are_refused() -> None:
    with pytest.raises(ValueError, match="positive definite"):
        order_probabilities(np.zeros(3), np.ones(3), np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]))
