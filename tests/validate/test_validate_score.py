"""Scores against numbers worked out by hand and against scipy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from archsim.validation.evaluation import errors
from archsim.validation.score import device_order, kendall_tau, score


def test_errors_of_times_and_rates() -> None:
    measured = (("latency_s", 2.0), ("throughput_per_s", 100.0), ("power_w", 5.0))
    cases = [SimpleNamespace(metric=metric, measured=value) for metric, value in measured]
    found = errors(cases, np.array([3.0, 50.0, 4.0]))
    # half the rate is twice the time
    assert found == pytest.approx([0.5, 1.0, -0.2])


def test_score_by_hand() -> None:
    found = score(np.array([0.1, -0.2, 0.3, -0.4, 1.0]), np.array([True, True, False, False, False]))
    assert found.n == 5
    assert found.mape == pytest.approx(0.4)
    assert found.median_ape == pytest.approx(0.3)
    assert found.p90_ape == pytest.approx(0.4 + 0.6 * 0.6)  # position 3.6 of 0.1 0.2 0.3 0.4 1.0
    assert found.bias == pytest.approx(0.1)
    assert found.coverage == pytest.approx(0.4)


def test_no_rows_no_score() -> None:
    with pytest.raises(ValueError, match="no rows"):
        score(np.zeros(0))
    assert score(np.array([0.5])).coverage is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=30))
def test_kendall_tau_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    ours, theirs = kendall_tau(first, second), stats.kendalltau(first, second).statistic
    assert (np.isnan(ours) and np.isnan(theirs)) or ours == pytest.approx(theirs, abs=1e-12)


def test_device_order() -> None:
    groups = ["alexnet"] * 6 + ["vgg"] * 2
    cells = [1, 1, 1, 1, 16, 16, 1, 1]
    devices = ["a", "b", "c", "a", "a", "b", "a", "b"]
    measured = np.array([1.0, 2.0, 3.0, 1.2, 1.0, 2.0, 1.0, 2.0])
    predicted = np.array([1.0, 3.0, 2.0, 1.0, 1.0, 5.0, 4.0, 3.0])
    found = device_order(groups, cells, devices, measured, predicted)
    assert found is not None
    # alexnet, batch 1: of three pairs one is swapped, tau 1/3; batch 16: one pair, tau 1; weighted by pairs: 1/2. vgg: -1.
    assert found.groups == 2
    assert found.mean == pytest.approx((0.5 - 1.0) / 2)
    assert found.least == -1.0


def test_one_device_has_no_order() -> None:
    assert device_order(["a", "a"], [1, 1], ["x", "x"], np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert device_order(["a", "a"], [1, 2], ["x", "y"], np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
