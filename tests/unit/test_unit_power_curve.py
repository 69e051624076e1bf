"""Power over time: its area is the energy, whatever overlaps; its peaks are those of kernels and of a sensor."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import archsim
from archsim.cost.idle import idle_parts
from archsim.estimation.power_curve import PowerCurve
from archsim.estimation.request import make_request
from archsim.node.spec import find
from archsim.render.chrome_trace import POWER, chrome_trace
from archsim.schedule.observer import Recording
from archsim.simulate.train import simulate_training
from tests.each import each

CELLS: dict[str, dict[str, Any]] = {
    "serial": {"net": "alexnet", "hw": "gtx_1080"},
    "cpu": {"net": "googlenet", "hw": "i7_6700k"},
    "training": {"net": "resnet_50", "hw": "tesla_v100_sxm2", "batch": 8, "task": "training_step"},
    "limit": {"net": "resnet_50", "hw": "a100_sxm4_40gb", "batch": 64, "power_limit": 150.0},
    "graph": {"net": "resnet_50", "hw": "tesla_v100_sxm2", "stack": "pytorch-2", "graph": True},
    "roofline": {"net": "alexnet", "hw": "tesla_k80", "fidelity": "roofline"},
    "events": {"net": "googlenet", "hw": "gtx_1080", "fidelity": "event"},
    "streams": {"net": "googlenet", "hw": "gtx_1080", "batch": 16, "fidelity": "event", "streams": 4},
    "limited": {"net": "googlenet", "hw": "a100_sxm4_40gb", "fidelity": "event", "streams": 4, "power_limit": 120.0},
    "decoded": {"net": "alexnet_r", "hw": "gtx_1080", "batch": 64, "stack": "tensorflow-cudnn5.1", "inputs": "decoded"},
}


@each("cell", CELLS.values())
def test_the_area_under_the_curve_is_the_energy(cell: dict[str, Any]) -> None:
    found = archsim.estimate(**cell)
    curve = found.power_over_time
    assert curve.energy_j == pytest.approx(found.energy_j, rel=1e-9)
    assert curve.time_s[0] == 0.0
    assert curve.time_s[-1] == pytest.approx(found.latency_s, rel=1e-9)
    assert len(curve.time_s) == len(curve.power_w) + 1
    assert min(np.diff(curve.time_s)) > 0.0
    assert found.power_w <= found.power_sensed_peak_w * (1 + 1e-9) <= found.power_peak_w * (1 + 2e-9)


def test_while_the_device_waits_it_draws_its_idle_power_at_its_clock() -> None:
    request = make_request("lstm_32", "tesla_k80", batch=64)
    found = archsim.estimate("lstm_32", "tesla_k80", batch=64)
    parts = idle_parts(request.spec.device, request.clock, request.calibration)
    idle = sum(float(np.ravel(part)[0]) for part in parts.values())
    assert idle < request.spec.device.power.idle
    assert found.power_over_time.power_w[0] == pytest.approx(idle)
    assert min(found.power_over_time.power_w) == pytest.approx(idle)


def test_without_overlap_no_kernel_passes_the_limit_and_the_peak_is_one_of_them() -> None:
    found = archsim.estimate(**CELLS["limit"])
    drawn = [kernel.power_w for op in found.ops for kernel in op.kernels]
    assert found.power_peak_w == pytest.approx(max(drawn))
    assert found.power_peak_w <= 150.0 * (1 + 1e-9)


def test_what_stands_is_drawn_once_where_kernels_overlap() -> None:
    """At no moment less than the idle power, and less than twice of it in all for two kernels that do next to nothing."""
    one, four = (archsim.estimate(**{**CELLS["streams"], "streams": n}) for n in (1, 4))
    floor = min(one.power_over_time.power_w)
    assert min(four.power_over_time.power_w) == pytest.approx(floor, rel=0.05)
    assert four.power_over_time.energy_j < one.power_over_time.energy_j
    assert four.power_peak_w > one.power_peak_w


def test_a_sensor_sees_the_mean_of_runs_that_are_shorter_than_its_window() -> None:
    curve = PowerCurve(time_s=(0.0, 1e-3, 2e-3), power_w=(50.0, 150.0))
    assert curve.sensed_peak_w(20e-3) == pytest.approx(100.0)
    assert curve.sensed_peak_w(20.5e-3) == pytest.approx((20 * 100.0 + 0.5 * 150.0) / 20.5)
    assert curve.sensed_peak_w(0.5e-3) == pytest.approx(150.0)
    assert PowerCurve(time_s=(0.0, 1.0, 2.0), power_w=(150.0, 50.0)).sensed_peak_w(1.5) == pytest.approx(350.0 / 3.0)
    with pytest.raises(ValueError, match="above 0"):
        curve.sensed_peak_w(0.0)


def test_the_timeline_has_a_counter_of_the_power() -> None:
    seen = Recording()
    found = archsim.estimate(**CELLS["streams"], observers=[seen])
    events = json.loads(chrome_trace(seen, "x", found.power_over_time))["traceEvents"]
    steps = [(event["ts"] * 1e-6, event["args"]["value"]) for event in events if event["name"] == POWER]
    area = sum(value * (after - time) for (time, value), (after, _) in itertools.pairwise(steps))
    assert area == pytest.approx(found.energy_j, rel=1e-3)  # times of the file are whole nanoseconds
    assert steps[-1][1] == 0.0


def test_the_timeline_of_a_training_has_the_power_of_all_devices() -> None:
    """Its area, over steps in which no device waits for inputs, is their energy."""
    seen, steps = Recording(), 6
    request = make_request("alexnet", "tesla_v100_sxm2", batch=32, task="training_step")
    found = simulate_training(request, find("dgx_1_v100"), [1, 4], observers=[seen], steps=steps)
    levels = [(time, value) for name, time, value in seen.levels if name == POWER]
    area = sum(value * (after - time) for (time, value), (after, _) in itertools.pairwise(levels))
    assert levels[-1][1] == 0.0
    assert area == pytest.approx(4 * 32 * steps * found.points[1].energy_per_sample_j, rel=0.02)
    assert 4 * request.spec.device.power.idle * 0.5 < min(value for _, value in levels[:-1])
