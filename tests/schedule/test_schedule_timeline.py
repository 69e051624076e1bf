"""One queue: the scans against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.schedule.timeline import asynchronous, synchronous

TIMES = st.floats(0, 1).map(lambda value: round(value, 6))


@st.composite
def queues(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    devices, ops = draw(st.integers(1, 3)), draw(st.integers(1, 12))
    rows = st.lists(st.lists(TIMES, min_size=ops, max_size=ops), min_size=devices, max_size=devices)
    return np.array(draw(rows)), np.array(draw(rows))


@given(queues())
def test_a_gpu_stream_against_a_loop(queue: tuple[np.ndarray, np.ndarray]) -> None:
    device, host = queue
    timeline = asynchronous(device, host)
    for row in range(len(device)):
        issued = end = 0.0
        for i, (work, call) in enumerate(zip(device[row], host[row], strict=True)):
            issued += call
            before, start = end, max(end, issued)
            end = start + work
            assert timeline.start_s[row, i] == pytest.approx(start, abs=1e-12)
            assert timeline.end_s[row, i] == pytest.approx(end, abs=1e-12)
            assert timeline.wait_s[row, i] == pytest.approx(start - before, abs=1e-12)
            assert timeline.op_time_s[row, i] == pytest.approx(end - before, abs=1e-12)
        assert timeline.latency_s[row] == pytest.approx(end, abs=1e-12)


def test_a_stalled_device_waits_for_the_host_even_where_the_host_is_ahead() -> None:
    work = np.array([[5.0, 5.0, 5.0]])
    free = asynchronous(work, np.zeros(3))
    stalled = asynchronous(work, np.array([0.0, 2.0, 1.0]), np.ones(3))
    assert stalled.end_s.tolist() == [[5.0, 12.0, 18.0]]
    assert stalled.start_s.tolist() == [[0.0, 7.0, 13.0]]
    assert stalled.wait_s.tolist() == [[0.0, 2.0, 1.0]]
    assert free.latency_s == 15.0


@given(queues())
def test_a_cpu_against_a_loop(queue: tuple[np.ndarray, np.ndarray]) -> None:
    device, host = queue
    timeline = synchronous(device, host)
    for row in range(len(device)):
        end = 0.0
        for i, (work, call) in enumerate(zip(device[row], host[row], strict=True)):
            start = end + call
            end = start + work
            assert timeline.start_s[row, i] == pytest.approx(start, abs=1e-12)
            assert timeline.end_s[row, i] == pytest.approx(end, abs=1e-12)
            assert timeline.wait_s[row, i] == call
        assert timeline.latency_s[row] == pytest.approx(end, abs=1e-12)


@given(queues())
def test_order_of_time(queue: tuple[np.ndarray, np.ndarray]) -> None:
    for schedule in (asynchronous, synchronous):
        timeline = schedule(*queue)
        assert np.all(timeline.wait_s >= 0)
        assert np.all(timeline.op_time_s >= -1e-15)
        assert np.all(timeline.end_s[:, -1] >= queue[0].sum(axis=-1) - 1e-12)


@pytest.mark.parametrize(
    ("work", "call", "starts", "waits"), [(5.0, 1.0, [1, 6, 11], [1, 0, 0]), (1.0, 5.0, [5, 10, 15], [5, 4, 4])]
)
def test_a_host_that_keeps_up_is_hidden_and_one_that_is_too_slow_is_seen(
    work: float, call: float, starts: list[float], waits: list[float]
) -> None:
    """Three kernels; only the first is waited for, or each."""
    timeline = asynchronous(np.full((1, 3), work), np.full(3, call))
    assert (timeline.start_s.tolist(), timeline.wait_s.tolist()) == ([starts], [waits])


def test_one_host_serves_all_devices() -> None:
    timeline = asynchronous(np.array([[1.0, 1.0], [5.0, 5.0]]), np.array([2.0, 2.0]))
    assert timeline.latency_s.tolist() == [5.0, 12.0]
