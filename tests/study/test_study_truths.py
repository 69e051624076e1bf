"""What is known beforehand of machines that do not exist, and laws that hold at ten thousand of them."""

from __future__ import annotations

import numpy as np
import pytest

import archsim
from archsim.cost.cost import Array
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, make_request
from archsim.study.axis import axis_of
from archsim.study.grid import evaluate, with_columns
from archsim.study.space import hypercube_positions

POINTS = 10_000
PART = 500
EXACT = 1 + 1e-9
WAVES = 1.03  # whole waves and whole patches of tiles: an SM more may cost so much
CLOCK = 1.075e9
VARY = ("memory.bandwidth=50GB/s:2TB/s:log", "sm.count=4:160", "l2.size=256KiB:32MiB:log",
        "l2.bandwidth=128B/clk:4096B/clk:log", "memory.latency=200ns:900ns", "launch.latency=1us:8us",
        "rate.fp32=32FMA/clk:256FMA/clk", "clock=0.5GHz:2.5GHz")  # fmt: skip


def changed(stack: str | None) -> tuple[float, float]:
    """What VGG at batch 128 takes of its time with twice the bandwidth, and with twice the SMs, and power for both."""
    request = make_request("vgg_16", "titan_x_maxwell", batch=128, clock=CLOCK, stack=stack, power_limit=1000.0)
    memory, count = float(request.spec.device.memory.bandwidth), float(request.spec.device.sm.count)
    found = evaluate(request, {"memory.bandwidth": [memory, 2 * memory, memory], "sm.count": [count, count, 2 * count]})
    base, faster, wider = found["latency_s"].tolist()
    return faster / base, wider / base


def test_many_samples_of_vgg_want_multiprocessors_and_not_bandwidth() -> None:
    faster, wider = changed("caffe-cudnn4")  # products throughout
    assert 0.92 < faster < 1.0
    assert 0.5 < wider < 0.62


def test_transforms_that_go_through_memory_want_some_bandwidth_too() -> None:
    """Winograd and Fourier transforms of a whole batch: less arithmetic, more traffic."""
    faster, wider = changed("torch7-cudnn5.1")
    assert 0.7 < wider < faster < 0.9


def test_fully_connected_layers_of_one_sample_follow_the_bandwidth() -> None:
    base, double, wide = (archsim.estimate("alexnet", "titan_x_maxwell", clock=CLOCK, scale=scales)
                          for scales in ({}, {"memory.bandwidth": 2.0}, {"sm.count": 2.0}))  # fmt: skip
    seen = 0
    for before, after, wider in zip(base.ops, double.ops, wide.ops, strict=True):
        if before.kind == "linear":
            seen += 1
            assert before.bound == "dram"
            assert 0.5 <= (after.time_s - after.wait_s) / (before.time_s - before.wait_s) < 0.7  # what the host takes stays
            assert wider.time_s / before.time_s > 0.95
    assert seen == 3


@pytest.fixture(scope="module")
def machines() -> dict[str, Array]:
    axes = [axis_of(text, "gpu") for text in VARY]
    return {axis.knob: axis.drawn(hypercube_positions(0, POINTS, POINTS, 1, axis.knob)) for axis in axes}


def plan_times(request: Request, columns: dict[str, Array]) -> Array:
    """The time of the kernels of each plan, without the host, [D, O]."""
    parts = [{knob: column[start : start + PART] for knob, column in columns.items()} for start in range(0, POINTS, PART)]
    return np.concatenate([run(with_columns(request, part)).cost.time_s for part in parts])


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_a_better_machine_is_not_slower_at_ten_thousand_points(
    machines: dict[str, Array], batch: int
) -> None:
    request = make_request("alexnet", "gtx_1080", batch=batch)
    before = plan_times(request, machines)
    better = {"memory.bandwidth": 1.3, "l2.bandwidth": 1.3, "memory.latency": 1 / 1.3, "launch.latency": 1 / 1.3,
              "rate.fp32": 1.3, "clock": 1.3}  # fmt: skip
    for knob, factor in better.items():
        after = plan_times(request, {**machines, knob: machines[knob] * factor})
        assert (after <= before * EXACT).all(), knob
        assert (after < before).any(), knob
    more = plan_times(request, {**machines, "sm.count": machines["sm.count"] + 4}).sum(axis=-1)
    assert (more <= before.sum(axis=-1) * WAVES).all()
