"""Streams of one device: the serial schedule, the critical path, the launch queue."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.schedule.events import Phase
from archsim.schedule.streams import IssuedOp, assign, run_streams
from archsim.schedule.timeline import asynchronous, synchronous

TIMES = st.floats(0, 1).map(lambda value: round(value, 6))


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[float], list[float], list[float]]:
    ops = draw(st.integers(1, 12))
    rows = [draw(st.lists(TIMES, min_size=ops, max_size=ops)) for _ in range(3)]
    return rows[0], rows[1], rows[2]


def phases(time: float) -> tuple[Phase, ...]:
    """A kernel with a launch gap, full waves and a tail that together take `time`."""
    parts = (Phase(0.1 * time), Phase(0.6 * time, (("DRAM", 0.9),), slots=1.0), Phase(0.3 * time, (("DRAM", 1.0),), slots=0.4))
    return parts if time > 0 else ()


@given(queues())
def test_one_stream_is_the_serial_schedule(queue: tuple[list[float], list[float], list[float]]) -> None:
    device, host, stall = queue
    stands = [float(s > 0) for s in stall]
    launches = [IssuedOp(name=str(i), issue_s=h * (1 - s), phases=phases(g), stall_s=h * s)
                for i, (g, h, s) in enumerate(zip(device, host, stands, strict=True))]  # fmt: skip
    played = run_streams(launches, {"DRAM": 1.0})
    serial = asynchronous(np.array([device]), np.array([host]), np.array(stands))
    assert played.end_s == pytest.approx(serial.end_s[0].tolist(), rel=1e-9, abs=1e-12)
    assert played.start_s == pytest.approx(serial.start_s[0].tolist(), rel=1e-9, abs=1e-12)


@given(queues())
def test_a_host_that_waits_for_each_op_is_the_synchronous_schedule(queue: tuple[list[float], list[float], list[float]]) -> None:
    device, host, _ = queue
    ops = [IssuedOp(name="", issue_s=h, phases=phases(g)) for g, h in zip(device, host, strict=True)]
    played = run_streams(ops, {}, waits=True)
    serial = synchronous(np.array([device]), np.array([host]))
    assert played.end_s == pytest.approx(serial.end_s[0].tolist(), rel=1e-9, abs=1e-12)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, ...]]]:
    """Times of ops, and for each the ops before it that it needs."""
    ops = draw(st.integers(1, 10))
    times = [draw(TIMES) + 0.001 for _ in range(ops)]
    after = [tuple(sorted(draw(st.sets(st.integers(0, i - 1), max_size=3)))) if i else () for i in range(ops)]
    return times, after


def longest_path(times: list[float], after: list[tuple[int, ...]]) -> float:
    """Length of the critical path: each op as an edge from its start to its end."""
    graph = nx.DiGraph()
    for i, before in enumerate(after):
        graph.add_edge(("start", i), ("end", i), weight=times[i])
        graph.add_edges_from((("end", j), ("start", i), {"weight": 0.0}) for j in before)
    return float(nx.dag_longest_path_length(graph))


@given(graphs())
def test_without_limits_the_end_is_that_of_the_critical_path(graph: tuple[list[float], list[tuple[int, ...]]]) -> None:
    times, after = graph
    launches = [IssuedOp(name="", issue_s=0.0, phases=(Phase(time),), after=before, stream=i)
                for i, (time, before) in enumerate(zip(times, after, strict=True))]  # fmt: skip
    assert max(run_streams(launches, {}).end_s) == pytest.approx(longest_path(times, after), rel=1e-9)


@given(graphs(), st.integers(1, 4))
def test_streams_keep_the_order_of_dependencies_and_all_bounds(
    graph: tuple[list[float], list[tuple[int, ...]]], streams: int
) -> None:
    times, after = graph
    chosen = assign(after, times, streams)
    assert set(chosen) <= set(range(streams))
    launches = [IssuedOp(name="", issue_s=0.01, phases=phases(time), after=before, stream=stream)
                for time, before, stream in zip(times, after, chosen, strict=True)]  # fmt: skip
    played = run_streams(launches, {"DRAM": 1.0})
    for i, before in enumerate(after):
        assert all(played.start_s[i] >= played.end_s[j] for j in before)
    latest = max(played.end_s) * (1 + 1e-9)
    assert latest >= longest_path(times, after)
    assert latest >= 0.84 * sum(times)  # the memory is busy for 0.6 x 0.9 + 0.3 of every kernel's time
    assert latest >= 0.01 * len(times)
    assert latest <= (0.01 * len(times) + sum(times)) * (1 + 1e-6) or streams > 1


def test_branches_overlap_on_streams_and_do_not_on_one() -> None:
    """A diamond: one op, two independent ones, one that joins them."""
    times, after = [1.0, 2.0, 2.0, 1.0], [(), (0,), (0,), (1, 2)]
    for streams, end in ((1, 6.0), (2, 4.0)):
        chosen = assign(after, times, streams)
        launches = [IssuedOp(name="", issue_s=0.0, phases=(Phase(t, slots=0.5),), after=a, stream=s)
                    for t, a, s in zip(times, after, chosen, strict=True)]  # fmt: skip
        assert max(run_streams(launches, {}).end_s) == pytest.approx(end)


def test_a_full_launch_queue_holds_the_host() -> None:
    """Two places: the third op is issued when the first has left the queue for the device, and so on."""
    launches = [IssuedOp(name="", issue_s=0.1, phases=(Phase(1.0),)) for _ in range(3)] + [
        IssuedOp(name="", issue_s=3.0, phases=(Phase(1.0),))
    ]
    free = run_streams(launches, {})
    held = run_streams(launches, {}, queue=1)
    assert max(free.end_s) == pytest.approx(0.3 + 3.0 + 1.0)
    assert max(held.end_s) == pytest.approx(2.1 + 3.0 + 1.0)


def test_the_host_blocks_as_soon_as_every_place_is_taken() -> None:
    """One place: the second op takes it while the first runs, so the host begins the third when the first has ended."""
    launches = [IssuedOp(name="", issue_s=time, phases=(Phase(1.0),)) for time in (0.1, 0.1, 3.0)]
    assert run_streams(launches, {}, queue=1).end_s == pytest.approx([1.1, 2.1, 1.1 + 3.0 + 1.0])


def test_an_op_longer_than_the_queue_still_runs() -> None:
    assert run_streams([IssuedOp(name="", issue_s=0.0, phases=(Phase(1.0),), launches=5000.0)] * 2, {}).end_s == [1.0, 2.0]
