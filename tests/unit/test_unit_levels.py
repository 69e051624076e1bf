"""Levels of memory on the chip: what they deliver and which one holds the data of an op; and the roofline above them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archsim.answers.layers import roofline
from archsim.estimation.estimate import estimate
from archsim.explain.summary import level_of, levels
from archsim.render.blocks import Series


def test_levels_of_a_gpu_deliver_what_the_spec_says_at_the_clock() -> None:
    e = estimate("alexnet", "gtx_1080")
    device, clock = e.spec.device, e.clock_hz
    first, second = levels(e)
    assert (first.name, first.bandwidth, first.keeps) == ("L1", device.sm.count * device.l1.bandwidth * clock, 0.0)
    assert (second.name, second.bandwidth, second.keeps) == ("L2", device.l2.bandwidth * clock, device.l2.size)


def test_levels_of_a_cpu_are_those_of_the_cores_in_use() -> None:
    one, four = (levels(estimate("lenet_5", "i7_6700k", threads=threads, clock=4e9)) for threads in (1, 4))
    assert [level.name for level in four] == ["L1", "L2", "L3"]
    assert [b.bandwidth / a.bandwidth for a, b in zip(one, four, strict=True)] == pytest.approx([4, 4, 4])
    assert [b.keeps / a.keeps for a, b in zip(one, four, strict=True)] == pytest.approx([4, 4, 1])


def test_the_level_that_has_room_holds_the_data_of_an_op() -> None:
    e = estimate("resnet_50", "i7_6700k")
    small = e.ops[0]
    room = [level.keeps for level in levels(e)]
    for moved, name in ((0.9 * room[0], "L1"), (1.1 * room[0], "L2"), (1.1 * room[1], "L3"), (9 * room[2], "L3")):
        level = level_of(small, replace(e, least_bytes={small.name: moved}))
        assert level is not None
        assert level.name == name


def test_operands_and_results_are_counted_once() -> None:
    e = estimate("alexnet", "tegra_x1")
    assert e.least_bytes["fc6"] == 4 * (9216 * 4096 + 4096 + 9216 + 4096)  # weights, bias, input, output
    assert {op.name for op in e.ops} == {*e.least_bytes}


def marks(points: list[Series]) -> list[tuple[float, float, bool]]:
    return [(x, y, hollow) for s in points for x, y, hollow in zip(s.x, s.y, s.hollow, strict=True)]


def test_ops_in_memory_and_ops_in_a_cache_lie_under_the_slopes_of_what_holds_them() -> None:
    for net, hw, cached in (("alexnet", "tegra_x1", False), ("mobilenet_v2", "rtx_4090", True)):
        e = estimate(net, hw)
        chart = roofline(e)
        slopes = {s.name: s.y[0] / s.x[0] for s in chart.series if not s.mark and s.labels[0]}
        assert list(slopes) == ["memory", "L1", "L2"]
        assert slopes["L1"] > slopes["L2"] > slopes["memory"]
        found = marks([s for s in chart.series if s.mark])
        assert any(hollow for *_, hollow in found) == cached
        for x, y, hollow in found:
            assert y <= 1.01 * x * slopes["L2" if hollow else "memory"]
        low, high = chart.x.ends or (0.0, 0.0)
        assert all(low < x < high for x, *_ in found)
        assert ("Hollow marks: the data stay in the L2" in " ".join(chart.notes)) == cached


def test_equal_ops_are_one_mark_and_nothing_is_lost() -> None:
    e = estimate("mobilenet_v2", "rtx_4090")
    drawn = sum(len(s.x) for s in roofline(e).series if s.mark)
    assert drawn < len([op for op in e.ops if op.flop > 0 and op.time_s > 0])
    assert any("alike" in label for s in roofline(e).series for label in s.labels)


def test_ops_without_a_known_level_are_counted_below() -> None:
    e = estimate("jouppi_mlp0", "tpu_v1", batch=16)
    ops = tuple(replace(op, dram_bytes=0.0) for op in e.ops)
    text = " ".join(roofline(replace(e, ops=ops)).notes)
    known = e.spec.device.buffer.bandwidth is not None
    assert ("Hollow marks: the data stay in the buffer" in text) == known
    assert ("whose data stay on the chip, of which the spec gives no bandwidth" in text) != known
