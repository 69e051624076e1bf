"""Rings, pipelines and training steps against closed forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.node.node import CollectiveLatency, Disk, HostCpu, LinkKind, Node, StoredSamples
from archsim.node.rings import ring_demand, rings
from archsim.node.spec import find
from archsim.schedule.collective import all_reduce, unloaded_time_s
from archsim.schedule.observer import Recording
from archsim.schedule.training import PREFETCH, DeviceStep, Pipeline, device_step, train
from archsim.simulate.allreduce import all_reduce_time

PLAIN = LinkKind(name="pcie", type="test", bandwidth=10.0, achievable=1.0, ring=1.0)
STEP = DeviceStep(compute_s=3.0, update_s=0.5, buckets=((2.0, 4.0), (3.0, 8.0)), server_passes=4.0)
NO_INPUT = Pipeline(samples=1)


def star(devices: int, kind: LinkKind = PLAIN, start: float = 0.0, step: float = 0.0, memory: float = 100.0) -> Node:
    """Devices around one processor."""
    return Node(
        id="star", name="a star", devices=devices, links=tuple((f"gpu{i}", "cpu0", kind, 1) for i in range(devices)),
        host_cpu=HostCpu(id="i7_6700k", sockets=2, memory_bandwidth=memory), cores=8.0, disk=Disk(bandwidth=5.0),
        input=StoredSamples(sample=1.0, decode=2.0), collective=CollectiveLatency(start=start, step=step),
    )  # fmt: skip


@given(st.integers(2, 32), st.floats(1, 1e9), st.floats(0, 1e-3), st.floats(0, 1e-4))
def test_a_ring_moves_twice_the_bytes_less_one_part_and_pays_for_each_step(
    devices: int, size: float, start: float, step: float
) -> None:
    node = star(devices, start=start, step=step)
    closed = start + 2 * (devices - 1) * step + 2 * (devices - 1) / devices * size / PLAIN.bandwidth
    assert unloaded_time_s(all_reduce(node, devices, size), node) == pytest.approx(closed, rel=1e-9)
    assert all_reduce_time(node, devices, size) == pytest.approx(closed, rel=1e-9)


def test_the_slowest_link_sets_the_pace_of_a_ring() -> None:
    slow = replace(PLAIN, name="slow", bandwidth=2.0)
    node = replace(star(4), links=(*star(3).links, ("gpu3", "cpu0", slow, 1)))
    assert all_reduce_time(node, 3, 6.0) == pytest.approx(2 * 2 / 3 * 6.0 / 10.0)
    assert all_reduce_time(node, 4, 6.0) == pytest.approx(2 * 3 / 4 * 6.0 / 2.0)


def test_rings_over_direct_links_share_none_of_them() -> None:
    """A DGX-1 has two rings with P100 and three with V100, as NVIDIA says of its topology."""
    for name, count in (("dgx_1_p100", 2), ("dgx_1_v100", 3)):
        node = find(name).node
        found = rings(node, 8)
        assert len(found) == count
        assert all(sorted(ring) == node.gpus for ring in found)
        assert all("plx" not in name for name in ring_demand(node, 8))
        direct = {frozenset(link[:2]): link[3] for link in node.links}
        for edge, number in direct.items():
            taken = sum(frozenset(pair) == edge for ring in found for pair in pairwise((*ring, ring[0])))
            assert taken <= number or "plx" in str(edge)


def test_devices_that_no_direct_link_joins_sum_over_switches() -> None:
    assert rings(find("deepbench_8gpu").node, 4) == [("gpu0", "gpu1", "gpu2", "gpu3")]
    assert "gpu0 > plx0" in ring_demand(find("deepbench_8gpu").node, 4)
    assert "cpu0 > fabric" in ring_demand(find("deepbench_8gpu").node, 16)


def test_one_device_takes_its_step() -> None:
    found = train(star(1), 1, STEP, NO_INPUT)
    assert found.step_s == pytest.approx(3.5)
    assert (found.compute_s, found.update_s, found.exchange_s, found.input_s) == pytest.approx((3.0, 0.5, 0.0, 0.0))


def test_gradients_are_exchanged_while_others_are_computed() -> None:
    """Bucket 0 of 4 takes 0.4 s from 2.0 on, bucket 1 of 8 takes 0.8 s from 3.0 on: only the latter is seen."""
    apart, hidden = (train(star(2), 2, STEP, NO_INPUT, overlap=overlap) for overlap in (False, True))
    assert hidden.exchange_s == pytest.approx(0.8)
    assert apart.exchange_s == pytest.approx(1.2)
    assert hidden.step_s == pytest.approx(3.0 + 0.8 + 0.5)


def test_a_parameter_server_takes_every_device_s_bytes_over_its_link() -> None:
    """Push 0.4 s after 2.0; then sum, and pull 0.4 s. Bucket 1: 0.8 s from 3.0, sum (2 + 4) x 8 / 100, pull 0.8 s."""
    found = train(star(2), 2, STEP, NO_INPUT, sync="server")
    assert found.exchange_s == pytest.approx(0.8 + (2 + 4) * 8 / 100 + 0.8)
    assert found.update_s == 0.0


def test_a_shared_uplink_slows_a_parameter_server() -> None:
    """Two devices behind one switch push at half the rate each."""
    links = (("gpu0", "plx0", PLAIN, 1), ("gpu1", "plx0", PLAIN, 1), ("plx0", "cpu0", PLAIN, 1))
    node = replace(star(2, memory=1e9), links=links)
    assert train(node, 2, STEP, NO_INPUT, sync="server").exchange_s == pytest.approx(2 * 1.6, rel=1e-6)


@pytest.mark.parametrize(
    ("stages", "slowest"),
    [
        ({"disk_bytes": 40.0}, 8.0),  # at 5 B/s
        ({"decode_rate": 4.0}, 5.0),  # 20 samples at 4 a second
        ({"copy_bytes": 60.0}, 6.0),  # at 10 B/s
        ({"copy_bytes": 60.0, "copy_rate": 4.0}, 15.0),
        ({"disk_bytes": 40.0, "decode_rate": 2.0, "copy_bytes": 60.0}, 10.0),
        ({"disk_bytes": 1.0, "decode_rate": 20.0, "copy_bytes": 1.0}, 3.5),  # the step itself
    ],
)
def test_a_pipeline_runs_at_the_rate_of_its_slowest_stage(stages: dict[str, float], slowest: float) -> None:
    found = train(star(1), 1, STEP, Pipeline(samples=20, **stages), steps=24)
    assert found.step_s == pytest.approx(slowest, rel=1e-9)
    assert found.input_s == pytest.approx(slowest - 3.5, abs=1e-9)


def test_two_devices_share_disk_and_cores() -> None:
    found = train(star(2), 2, replace(STEP, buckets=()), Pipeline(samples=20, disk_bytes=40.0), steps=24)
    assert found.step_s == pytest.approx(16.0)
    assert found.busy["disk"] == pytest.approx(1.0)


@given(st.integers(1, 6), st.floats(0.1, 50), st.floats(1.0, 40.0), st.sampled_from(["allreduce", "server"]), st.booleans())
def test_the_parts_of_a_step_add_up_and_no_bound_is_passed(
    devices: int, disk: float, rate: float, sync: str, overlap: bool
) -> None:
    pipeline = Pipeline(samples=10, disk_bytes=disk, decode_rate=rate, copy_bytes=5.0)
    found = train(star(devices), devices, STEP, pipeline, sync=sync, overlap=overlap)
    assert found.step_s == pytest.approx(found.input_s + found.compute_s + found.exchange_s + found.update_s, rel=1e-9)
    assert found.compute_s == pytest.approx(3.0)
    bounds = [3.0, devices * disk / 5.0, devices * 10 / rate, 5.0 / 10.0]
    # stages work ahead by a batch or two, which a window of eight steps may end with or without
    assert found.step_s >= max(bounds) * (1 - (PREFETCH + 1) / 8)
    assert all(share <= 1 + (PREFETCH + 1) / 8 for share in found.busy.values())


def test_the_same_training_gives_the_same_bytes_and_observers_change_nothing() -> None:
    seen = Recording()
    pipeline = Pipeline(samples=10, disk_bytes=4.0, decode_rate=9.0, copy_bytes=5.0)
    first, again, watched = (train(star(3), 3, STEP, pipeline, observers=o) for o in ([], [], [seen]))
    assert first == again == watched
    assert {"gpu0", "gpu2 disk", "gpu1 decode", "gpu0 copy", "all-reduce"} <= set(seen.tracks)
    for track in seen.tracks:  # slices of a track lie beside each other
        mine = sorted((piece.start_s, piece.end_s) for piece in seen.slices if piece.track == track)
        assert all(end <= start + 1e-9 for (_, end), (start, _) in pairwise(mine))


def test_gradients_fill_buckets_in_the_order_in_which_they_are_computed() -> None:
    """FCN-5 at four bytes a value: its last layer comes first, with the one before it, as 9 MB are not full before."""
    result = run(make_request("fcn_5", "tesla_k40", batch=64, task="training_step"))
    step = device_step(result.lowered.ops, result.timeline.end_s[0].tolist(), 4.0, bucket_bytes=9e6)
    last, hidden, first = 4 * 2049 * 1000, 4 * 2049 * 2048, 4 * 513 * 2048
    assert [size for _, size in step.buckets] == [last + hidden, hidden, first]
    times = [time for time, _ in step.buckets]
    assert times == sorted(times)
    assert times[-1] == step.compute_s
    assert step.compute_s + step.update_s == pytest.approx(result.latency_s[0], rel=1e-12)
    full = device_step(result.lowered.ops, result.timeline.end_s[0].tolist(), 4.0, bucket_bytes=float(last + hidden))
    assert [size for _, size in full.buckets] == [last + hidden, hidden + first]  # closed by the value that fills it
