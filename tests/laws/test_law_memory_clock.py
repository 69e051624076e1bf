"""A lower memory clock: never faster, never more power at idle, and as slow as the memory for what only streams."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import archsim
from archsim.base.errors import ArchsimError, ArgumentError, Unsupported
from archsim.calibration.constants import default
from archsim.cost.idle import idle_power, idle_top, standing_power
from archsim.cost.units import unit_power
from archsim.device.catalog import find
from archsim.device.spec import Spec
from archsim.device.units import UnitClocks
from archsim.estimation.clock import memory_clock_share
from archsim.estimation.pipeline import Run, idle_of, run
from archsim.estimation.request import make_request
from archsim.study.grid import evaluate
from tests import shipped

from ..each import each

DEVICES = ("tesla_k40", "gtx_980", "titan_x_maxwell", "titan_xp", "tesla_v100_sxm2", "tesla_t4", "a100_sxm4_40gb", "rtx_4090")
NETWORKS = ("alexnet", "resnet_18", "lstm_32", "mobilenet_v2")
ROUNDING = 1.0 + 1e-9


def usual(hw: str) -> float:
    """The usual memory clock of a shipped GPU [Hz]."""
    device = shipped.gpu(hw)
    clock = device.memory_clock
    assert clock is not None
    return clock


def kernel_time(result: Run) -> np.ndarray[Any, Any]:
    """Time of each op's kernels, without waiting for the host, which issues fewer of them where another algorithm is faster."""
    plans = result.lowered.plan_of
    return np.where(plans >= 0, result.cost.time_s[0][np.maximum(plans, 0)], 0.0)


@given(st.sampled_from(DEVICES), st.sampled_from(NETWORKS), st.sampled_from(("roofline", "analytical", "event")),
       st.floats(0.2, 1.0), st.floats(0.2, 1.0))  # fmt: skip
def test_kernels_are_never_faster_at_a_lower_memory_clock(hw: str, net: str, fidelity: str, one: float, other: float) -> None:
    free = 10.0 * float(np.ravel(find(hw).device.power.tdp)[0])  # within a limit the watts that the memory saves are the core's
    slow, fast = (run(make_request(net, hw, batch=4, fidelity=fidelity, power_limit=free, memory_clock=share * usual(hw)))
                  for share in sorted((one, other)))  # fmt: skip
    assert np.all(kernel_time(fast) <= kernel_time(slow) * ROUNDING)


@given(st.sampled_from(DEVICES), st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_a_lower_memory_clock_draws_no_more_at_idle(hw: str, one: float, other: float) -> None:
    less, more = (idle_of(make_request("alexnet", hw, memory_clock=share * usual(hw))) for share in sorted((one, other)))
    assert float(less) <= float(more) <= float(np.ravel(find(hw).device.power.idle)[0]) * ROUNDING


def test_a_device_that_waits_for_the_host_has_its_memory_at_that_clock() -> None:
    request = make_request("resnet_18", "titan_x_maxwell", memory_clock=810e6)
    result = run(request)
    plain = run(make_request("resnet_18", "titan_x_maxwell"))
    slow, usual_w = (sum(float(np.ravel(part)[0]) for part in each.idle_w.values()) for each in (result, plain))
    assert slow < 0.7 * usual_w


@given(st.sampled_from(DEVICES), st.floats(0.1, 1.0))
def test_the_idle_power_is_that_of_units(hw: str, share: float) -> None:
    """What stands, leaks and takes clocks at the highest core clock is the idle power, in a network as for a profiler's units."""
    device = shipped.gpu(hw)
    of_units = unit_power(device, {}, UnitClocks(core=idle_top(device), memory=share), default())
    assert math.fsum(float(np.ravel(part)[0]) for part in of_units.values()) == pytest.approx(
        float(idle_power(device, default(), share)), rel=1e-12)  # fmt: skip
    request = make_request("alexnet", hw, memory_clock=share * usual(hw))
    assert request.device.memory.clock_share == pytest.approx(share, rel=1e-12)
    assert float(standing_power(request.device, default(), request.device.memory.clock_share)) == pytest.approx(
        float(np.ravel(of_units["standing"])[0]), rel=1e-9)  # fmt: skip


def test_products_hardly_move_and_streams_follow_the_clock() -> None:
    request = make_request("vgg_16", "titan_x_maxwell", batch=64)
    half = make_request("vgg_16", "titan_x_maxwell", batch=64, memory_clock=0.8 * usual("titan_x_maxwell"))
    now, then = run(request), run(half)
    ratio = (then.timeline.op_time_s / np.maximum(now.timeline.op_time_s, 1e-12))[0]
    kinds = [op.kind.op for op in now.lowered.ops]
    streams = [float(r) for r, kind in zip(ratio, kinds, strict=True) if kind == "relu"]
    products = [float(r) for r, kind in zip(ratio, kinds, strict=True) if kind == "conv2d"]
    assert float(np.median(streams)) == pytest.approx(1.25, rel=0.03)
    assert float(np.median(products)) < 1.06
    assert float(then.latency_s[0] / now.latency_s[0]) < 1.1


@each("hw", DEVICES)
def test_the_usual_clock_changes_nothing(hw: str) -> None:
    plain, said = (archsim.estimate("alexnet", hw, **words) for words in ({}, {"memory_clock": usual(hw)}))  # type: ignore[arg-type]
    assert (said.latency_s, said.energy_j, said.memory_clock_hz) == (plain.latency_s, plain.energy_j, usual(hw))
    rounded = archsim.estimate("alexnet", hw, memory_clock=1.002 * usual(hw))
    assert rounded.latency_s == plain.latency_s


def test_columns_of_memory_clocks_are_single_estimates() -> None:
    clocks = [0.25 * usual("titan_xp"), 0.5 * usual("titan_xp"), usual("titan_xp")]
    found = evaluate(make_request("alexnet", "titan_xp"), {"memory_clock": clocks, "power_limit": [120.0, 150.0, 200.0]})
    for i, (clock, limit) in enumerate(zip(clocks, (120, 150, 200), strict=True)):
        one = archsim.estimate("alexnet", "titan_xp", memory_clock=clock, power_limit=limit)
        assert found["latency_s"][i] == pytest.approx(one.latency_s, rel=1e-12)
        assert found["energy_j"][i] == pytest.approx(one.energy_j, rel=1e-12)


def test_the_cycle_model_has_the_clock_too() -> None:
    plain, slow = (archsim.estimate("alexnet", "gtx_1080", fidelity="cycle", **words)  # type: ignore[arg-type]
                   for words in ({}, {"memory_clock": "2.5GHz"}))  # fmt: skip
    assert 1.5 < slow.latency_s / plain.latency_s < 2.05


REFUSED: tuple[tuple[dict[str, object], type[ArchsimError], str], ...] = (
    ({"hw": "i7_6700k", "memory_clock": "1GHz"}, Unsupported, "is a CPU.*--set memory.bandwidth"),
    ({"hw": "gtx_980", "memory_clock": "4005MHz"}, ArgumentError, "4.005 GHz is above 3.5 GHz.*gtx_980"),
    ({"hw": "gtx_980", "memory_clock": float("nan")}, ArgumentError, "memory_clock|memory clock"),
    ({"hw": "gtx_980", "memory_clock": 0.0}, ArgumentError, "memory clock 0 Hz is not between"),
)


@each(("words", "error", "said"), REFUSED)
def test_what_no_memory_has_is_refused(words: dict[str, object], error: type[ArchsimError], said: str) -> None:
    with pytest.raises(error, match=said):
        archsim.estimate("alexnet", **words)  # type: ignore[arg-type]


def test_a_device_without_a_data_rate_says_the_way_out() -> None:
    spec = find("gtx_1080")
    bare = Spec(path=spec.path, kind=spec.kind, identity=spec.identity, stated=spec.stated,
                entries={key: entry for key, entry in spec.entries.items() if key != "memory.data_rate"})  # fmt: skip
    with pytest.raises(Unsupported, match=r"data rate of its memory is not known.*--set memory.data_rate"):
        memory_clock_share(bare, 1e9)
