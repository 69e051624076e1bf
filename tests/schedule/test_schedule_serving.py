"""Queues against their closed forms, dynamic batching by hand, repeatability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.schedule.observer import Recording
from archsim.schedule.serving import Batching, closed_loop, serve
from archsim.simulate.requests import poisson
from archsim.simulate.serve import batch_means, quantile

REQUESTS = 100_000


def test_md1_waits_as_pollaczek_and_khinchine_say() -> None:
    """M/D/1: W = rho s / (2 (1 - rho))."""
    rho, service = 0.6, 0.5
    served = serve(poisson(rho / service, REQUESTS, 3), lambda _: service)
    assert served.wait_s.mean() == pytest.approx(rho * service / (2 * (1 - rho)), rel=0.02)
    assert served.utilisation == pytest.approx(rho, rel=0.01)


def test_mm1_waits_as_its_closed_form_says() -> None:
    """M/M/1: W = rho s / (1 - rho)."""
    rho, service = 0.5, 2.0
    draw = np.random.default_rng(11)
    served = serve(poisson(rho / service, REQUESTS, 5), lambda _: float(draw.exponential(service)))
    assert served.wait_s.mean() == pytest.approx(rho * service / (1 - rho), rel=0.02)


@given(st.lists(st.floats(0, 3).map(lambda gap: round(gap, 3)), min_size=1, max_size=40), st.floats(0.01, 3))
def test_one_device_without_batches_is_lindleys_recursion(gaps: list[float], service: float) -> None:
    arrival = np.cumsum(gaps)
    served = serve(arrival, lambda _: service)
    wait = 0.0
    for i, gap in enumerate([0.0, *gaps[1:]]):
        wait = max(0.0, wait + service - gap) if i else 0.0
        assert served.wait_s[i] == pytest.approx(wait, abs=1e-9)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 5), st.floats(0, 2), st.integers(1, 3),
)  # fmt: skip
def test_every_request_is_answered_once_in_order_and_never_early(gaps: list[float], most: int, wait: float, devices: int) -> None:
    arrival = np.cumsum(gaps)
    served = serve(arrival, lambda size: 0.3 + 0.1 * size, Batching(most=most, wait_s=wait), devices)
    assert served.batches.sum() == len(gaps)
    assert served.batches.max() <= most
    assert np.all(np.diff(served.start_s) >= 0)
    assert np.all(served.latency_s >= 0.4 - 1e-9)
    assert served.batch_s.sum() == pytest.approx((0.3 + 0.1 * served.batches).sum())
    assert served.span_s >= served.batch_s.sum() / devices - 1e-9


def test_a_batch_starts_when_it_is_full_or_its_oldest_has_waited_long_enough() -> None:
    served = serve([0.0, 1.0, 1.5, 10.0, 20.0, 20.1], lambda _: 0.5, Batching(most=3, wait_s=4.0))
    assert served.start_s.tolist() == pytest.approx([1.5, 1.5, 1.5, 14.0, 24.0, 24.0])
    assert served.batches.tolist() == [3, 1, 2]


def test_an_alarm_of_a_batch_that_has_left_early_starts_no_other() -> None:
    """The oldest would have left at 4, but three were there at 2; the next, of 3, may wait until 7."""
    served = serve([0.0, 1.0, 2.0, 3.0], lambda _: 0.1, Batching(most=3, wait_s=4.0))
    assert served.start_s.tolist() == pytest.approx([2.0, 2.0, 2.0, 7.0])


def test_two_devices_answer_side_by_side() -> None:
    served = serve([0.0, 0.0, 0.0], lambda _: 1.0, devices=2)
    assert served.end_s.tolist() == [1.0, 1.0, 2.0]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    first, again, other = (serve(poisson(3.0, 500, seed), lambda _: 0.25).end_s.tobytes() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_observers_change_nothing_and_see_every_batch() -> None:
    seen, arrival = Recording(), poisson(3.0, 300, 1)
    watched, alone = (serve(arrival, lambda n: 0.2 + 0.05 * n, Batching(most=4), 2, o) for o in ([seen], []))
    assert watched.end_s.tobytes() == alone.end_s.tobytes()
    assert len(seen.slices) == len(alone.batches)
    assert set(seen.tracks) == {"device 0", "device 1"}
    assert min(value for _, _, value in seen.levels) == 0.0


def test_two_devices_that_run_all_the_time_are_used_fully_and_one_that_waits_half() -> None:
    assert serve([0.0, 0.0], lambda _: 3.0, devices=2).utilisation == 1.0
    assert serve([0.0], lambda _: 3.0, devices=2).utilisation == 0.5


def test_a_closed_loop_client_sees_the_time_of_its_query() -> None:
    served = closed_loop(10, 8, lambda size: 0.1 * size)
    assert served.latency_s == pytest.approx([0.8] * 10)
    assert served.utilisation == pytest.approx(1.0)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """95 % intervals of the mean wait of M/D/1 from runs of 4,000: most of 40 hold the closed form."""
    rho = 0.5
    truth, held = rho / (2 * (1 - rho)), 0
    for seed in range(40):
        interval = batch_means(serve(poisson(rho, 4000, seed), lambda _: 1.0).wait_s, np.mean).interval
        assert interval is not None
        held += interval[0] <= truth <= interval[1]
    assert held >= 34


def test_intervals_of_short_and_of_constant_runs() -> None:
    assert batch_means(np.arange(10.0), np.mean).interval is None
    assert batch_means(np.arange(1000.0), quantile(0.99), least=400).interval is None
    assert batch_means(np.full(5, 2.0), np.mean).interval == (2.0, 2.0)
    assert quantile(0.9)(np.arange(1.0, 11.0)) == 9.0
