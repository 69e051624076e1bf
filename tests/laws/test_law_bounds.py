"""Laws of one answer: its bounds, its sums, its energy; of tensor processing units also what a larger batch does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.errors import ArchsimError
from archsim.calibration.constants import default
from archsim.cost.energy import COMPONENTS
from archsim.cost.idle import standing_power
from archsim.device import catalog as devices
from archsim.estimation.estimate import estimate_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.estimation.result import Estimate
from archsim.stack import catalog as stacks

NETWORKS = (
    "alexnet", "alexnet_owt", "googlenet", "vgg_16", "resnet_18", "resnet_56", "squeezenet_1_1", "mobilenet_v2", "overfeat",
    "fcn_5", "lstm_32", "lstm_ptb",
)  # fmt: skip
KIND = {name: devices.find(name).kind for name in devices.names() if devices.find(name).kind != "tpu"}
STACKS = {kind: [n for n in stacks.names() if stacks.find(n).kind in ("any", kind)] for kind in ("gpu", "cpu")}
LAST_BITS = 1e-9


def runs_on(stack: str, hw: str) -> bool:
    """Whether the kernels of a stack run on a device of its kind."""
    of, identity = stacks.find(stack), devices.find(hw).identity
    own = of.vendor in ("", identity.vendor)
    return own and (not of.architectures or identity.kernels_of in of.architectures)


def tasks(stack: str) -> tuple[str, ...]:
    """The tasks that a stack can run: a library for inference has no gradients."""
    trains = "backward_filter" in stacks.find(stack).conv.algorithms
    return ("inference", "backward", "forward_backward", "training_step") if trains else ("inference",)


@st.composite
def cells(draw: st.DrawFn, kind: str = "") -> dict[str, Any]:
    hw = draw(st.sampled_from(sorted(name for name in KIND if kind in ("", KIND[name]))))
    stack = draw(st.sampled_from([name for name in STACKS[KIND[hw]] if runs_on(name, hw)]))
    return {
        "net": draw(st.sampled_from(NETWORKS)), "hw": hw, "stack": stack,
        "batch": draw(st.sampled_from((1, 2, 3, 4, 5, 8, 16, 37, 64, 128))),
        "precision": draw(st.sampled_from(("fp32", "fp16"))),
        "task": draw(st.sampled_from(tasks(stack))),
        "fidelity": draw(st.sampled_from(("analytical", "roofline"))),
        "power_limit": draw(st.sampled_from((None, None, *[limit_of(hw, share) for share in (0.01, 0.3, 1.0)]))),
    }  # fmt: skip


def limit_of(hw: str, share: float) -> float:
    """A power limit that lies between the idle power and that of the spec."""
    power = devices.find(hw).device.power
    return float(power.idle + share * (power.tdp - power.idle))


def predicted(cell: dict[str, Any]) -> Estimate:
    return estimate_of(make_request(**cell), references=False)


@given(cells())
def test_roofline_is_never_slower_than_analytical_nor_is_any_op_of_a_gpu(cell: dict[str, Any]) -> None:
    bound, model = (run(make_request(**cell | {"fidelity": fidelity})) for fidelity in ("roofline", "analytical"))
    assert 0 < bound.latency_s[0] <= model.latency_s[0] * (1 + LAST_BITS)
    if KIND[cell["hw"]] == "gpu":
        assert np.all(bound.timeline.op_time_s <= model.timeline.op_time_s + LAST_BITS * model.latency_s[0])


@given(cells())
def test_no_model_beats_the_useful_arithmetic_at_peak(cell: dict[str, Any]) -> None:
    """Independent of the roofline's own code, for what no algorithm can shorten: fully connected layers and LSTMs."""
    request = make_request(**cell)
    if cell["net"] not in ("fcn_5", "lstm_32", "lstm_ptb"):
        return
    device = request.spec.device
    peak = float(device.peak_flops(cell["precision"], request.clock))
    macs = sum(op.macs for op in request.trace.ops)
    assert run(request).latency_s[0] >= 2 * macs / peak * (1 - LAST_BITS)


@given(cells())
def test_an_answer_adds_up(cell: dict[str, Any]) -> None:
    """Times of ops, of bounds, and of kernels with the wait for the host; FLOP, traffic and energy of ops and of components."""
    estimate = predicted(cell)
    assert all(op.time_s >= 0 and math.isfinite(op.time_s) for op in estimate.ops)
    assert min(estimate.breakdown_s.values()) >= 0
    kernels = math.fsum(kernel.time_s for op in estimate.ops for kernel in op.kernels)
    times = {"ops": math.fsum(op.time_s for op in estimate.ops), "pipeline": run(make_request(**cell)).latency_s[0],
             "bounds": math.fsum(estimate.breakdown_s.values()), "kernels": kernels + estimate.breakdown_s["host"]}  # fmt: skip
    for name, time in times.items():
        assert math.isclose(time, estimate.latency_s, rel_tol=1e-9), name
    for name in ("flop", "dram_bytes", "energy_j"):
        total = math.fsum(getattr(op, name) for op in estimate.ops)
        assert math.isclose(total, getattr(estimate, name), rel_tol=1e-12), name
    assert tuple(estimate.energy_breakdown_j) == tuple(COMPONENTS)
    for found in (estimate, *estimate.ops):
        assert min(found.energy_breakdown_j.values()) >= 0
        assert math.isclose(math.fsum(found.energy_breakdown_j.values()), found.energy_j, rel_tol=1e-12)
    for name in COMPONENTS:
        parts = math.fsum(op.energy_breakdown_j[name] for op in estimate.ops)
        assert math.isclose(parts, estimate.energy_breakdown_j[name], rel_tol=1e-12, abs_tol=1e-30)


@given(cells())
def test_energy_is_power_times_time_and_power_lies_between_idle_and_the_limit(cell: dict[str, Any]) -> None:
    estimate, device = predicted(cell), make_request(**cell).spec.device
    assert math.isclose(estimate.energy_j, estimate.power_w * estimate.latency_s, rel_tol=1e-12)
    assert math.isclose(estimate.throughput_per_s * estimate.latency_s, cell["batch"], rel_tol=1e-12)
    assert math.isclose(estimate.throughput_per_w * estimate.power_w, estimate.throughput_per_s, rel_tol=1e-12)
    limit = cell["power_limit"] or device.power.tdp
    assert estimate.power_limit_w == limit
    assert device.power.idle * (1 - LAST_BITS) <= estimate.power_w <= limit * (1 + LAST_BITS)
    low, high = estimate.power_interval_w
    assert device.power.idle * (1 - LAST_BITS) <= low <= estimate.power_w <= high <= limit * (1 + LAST_BITS)
    low, high = estimate.latency_interval_s
    assert 0 < low < estimate.latency_s < high
    assert 0 < estimate.interval_level < 1


@given(cells())
def test_every_op_stays_within_the_power_limit(cell: dict[str, Any]) -> None:
    device = make_request(**cell).spec.device
    limit = cell["power_limit"] or device.power.tdp
    stands = float(np.ravel(standing_power(device, default(), 1.0))[0])  # of the idle power, which is that at the highest clock
    for op in predicted(cell).ops:
        assert op.energy_j <= limit * op.time_s * (1 + LAST_BITS) + 1e-13
        assert op.energy_j >= stands * op.time_s * (1 - LAST_BITS) - 1e-13


@given(cells(), st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 1.0)))
def test_a_lower_power_limit_is_never_faster(cell: dict[str, Any], shares: tuple[float, float]) -> None:
    low, high = (run(make_request(**cell | {"power_limit": limit_of(cell["hw"], share)})) for share in sorted(shares))
    assert np.all(low.cost.time_s >= high.cost.time_s * (1 - LAST_BITS))
    assert low.latency_s[0] >= high.latency_s[0] * (1 - LAST_BITS) or np.any(low.cost.launches != high.cost.launches)


FEWER = ("winograd", "fft", "stage")  # algorithms that multiply less, or keep whole blocks of layers on the chip


def fastest(net: str, hw: str, batch: int, precision: str, task: str, name: str) -> float:
    """The time of a stack [s]; inf where it cannot run this, runs another graph, or does less work than is asked for."""
    try:
        request = make_request(net, hw, batch=batch, precision=precision, task=task, stack=name)
        result = run(request)
    except ArchsimError:
        return math.inf
    options = result.lowered.kernels.options
    algorithms = " ".join(options[i].algorithm for i in result.cost.option[0].astype(int))
    other = net in request.stack.variants or any(word in algorithms for word in FEWER)
    return math.inf if other else float(result.latency_s[0])


@pytest.mark.parametrize(("net", "hw", "batches", "precision", "task"), [
    ("alexnet", "i7_6700k", (1, 2), "int8", "inference"), ("mobilenet_v2", "i7_6700k", (1, 32), "fp32", "inference"),
    ("resnet_50", "xeon_platinum_8480", (2, 32), "bf16", "inference"), ("bert_base", "epyc_9654", (1,), "fp32", "backward"),
    ("mobilenet_v1", "raspberry_pi_4", (4,), "int8", "inference"), ("mobilenet_v2", "gtx_1080", (1, 32), "fp32", "inference"),
    ("alexnet", "a100_sxm4_40gb", (1,), "int8", "inference"), ("bert_base", "h100_sxm5_80gb", (32,), "fp8", "inference"),
    ("resnet_50", "h100_sxm5_80gb", (32,), "bf16", "forward_backward"),
])  # fmt: skip
def test_no_software_is_faster_than_the_ideal_one(net: str, hw: str, batches: tuple[int, ...], precision: str, task: str) -> None:
    for batch in batches:
        times = {name: fastest(net, hw, batch, precision, task, name) for name in stacks.names()}
        assert min(times.values()) == times["ideal"] < math.inf, sorted(times.items(), key=lambda one: one[1])[:3]
        assert sum(time < math.inf for time in times.values()) > 3


# ------------------------------------------------------------------------------------------------- tensor processing units


TPUS = [name for name in devices.names() if devices.find(name).kind == "tpu"]
OF_TPUS = ("alexnet", "resnet_18", "mobilenet_v2", "squeezenet_1_1", "fcn_5", "lstm_ptb", "jouppi_mlp1")


@st.composite
def tpu_cells(draw: st.DrawFn) -> dict[str, Any]:
    return {"net": draw(st.sampled_from(OF_TPUS)), "hw": draw(st.sampled_from(TPUS)),
            "batch": draw(st.sampled_from((1, 3, 8, 64, 200))),
            "fidelity": draw(st.sampled_from(("analytical", "cycle", "event")))}  # fmt: skip


@given(tpu_cells())
def test_sums_and_bounds(cell: dict[str, Any]) -> None:
    found, request = estimate_of(make_request(**cell), references=False), make_request(**cell)
    assert sum(found.breakdown_s.values()) == pytest.approx(found.latency_s, rel=LAST_BITS)
    assert sum(op.energy_j for op in found.ops) == pytest.approx(found.energy_j, rel=LAST_BITS)
    power = request.device.power
    assert power.idle * (1 - LAST_BITS) <= found.power_w <= power.busy * (1 + LAST_BITS)
    least = run(make_request(**cell | {"fidelity": "roofline"}))
    assert 0 < least.latency_s[0] <= found.latency_s * (1 + LAST_BITS)


@given(tpu_cells())
def test_events_one_after_the_other_are_the_serial_schedule(cell: dict[str, Any]) -> None:
    serial, events = (run(make_request(**cell | {"fidelity": name})).latency_s[0] for name in ("analytical", "event"))
    assert events == pytest.approx(serial, rel=1e-9)


@given(tpu_cells(), st.sampled_from((2, 4)))
def test_a_larger_batch_is_never_faster(cell: dict[str, Any], factor: int) -> None:
    one = make_request(**cell | {"fidelity": "analytical"})
    more = make_request(**cell | {"fidelity": "analytical", "batch": factor * cell["batch"]})
    assert run(one).latency_s[0] <= run(more).latency_s[0] * (1 + LAST_BITS)
