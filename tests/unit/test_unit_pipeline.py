"""What the host adds: copies of the input, and updates for which the device waits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archsim.base.errors import ArgumentError
from archsim.cost.cpu_traffic import core_bandwidth
from archsim.cost.dispatch import host_transfer_time
from archsim.cost.team import dispatch_clock
from archsim.device import catalog as devices
from archsim.device.device import Cpu
from archsim.estimation.hardware import arithmetic, on_tensor_cores
from archsim.estimation.pipeline import input_bytes, run, updated_bytes
from archsim.estimation.request import make_request, with_spec
from archsim.stack import catalog as stacks
from tests import shipped


def test_the_input_is_what_forward_ops_read_and_none_writes() -> None:
    assert input_bytes(make_request("alexnet", "gtx_1080", batch=2).trace) == 4 * 2 * 3 * 227 * 227
    assert input_bytes(make_request("alexnet", "gtx_1080", batch=2, task="training_step").trace) == 4 * 2 * 3 * 227 * 227
    assert input_bytes(make_request("lstm_ptb", "gtx_1080", batch=2).trace) == 4 * 32 * 2


@pytest.mark.parametrize(
    ("stack", "hw", "precision", "as_", "tensor"),
    [
        ("pytorch-2", "tesla_t4", "int8", "int8", True),
        ("pytorch-cudnn7.6", "tesla_t4", "fp16", "fp16", True),
        ("pytorch-cudnn7.6", "gtx_1080", "int8", "int8", False),
        ("caffe-cudnn5.1", "gtx_1080", "fp16", "half", False),
        ("caffe-cudnn5.1", "titan_x_maxwell", "fp16", "fp16", False),
    ],
)
def test_the_stack_says_where_operands_are_multiplied(stack: str, hw: str, precision: str, as_: str, tensor: bool) -> None:
    found, device = stacks.find(stack), devices.find(hw).device
    assert arithmetic(found, device, precision) == as_
    assert on_tensor_cores(device, precision) is tensor


def host(name: str = "xeon_e5_2630_v3") -> Cpu:
    return shipped.cpu(name)


def test_an_input_is_copied_in_the_host_and_over_the_link() -> None:
    """A copied byte is read, and written after its line was read: three that one core of the host draws."""
    device = devices.find("gtx_1080").device
    stack = replace(stacks.find("caffe-cudnn5.1"), inputs="host", input_copies=2)
    copies, link = 2 * 3 * 8e9 / core_bandwidth(host()), 8 / (15.75 * 0.76)
    assert host_transfer_time(8e9, stack, device, host()) == pytest.approx(copies + link)
    faster = replace(host(), memory=replace(host().memory, latency=host().memory.latency / 2))
    assert host_transfer_time(8e9, stack, device, faster) == pytest.approx(copies / 2 + link)
    assert host_transfer_time(8e9, replace(stack, inputs="device"), device, host()) == 0.0
    assert host_transfer_time(8e9, stack, devices.find("i7_3820").device, host()) == 0.0


def test_the_copy_comes_before_everything_else() -> None:
    request = make_request("alexnet", "gtx_1080", batch=64, stack="caffe-cudnn5.1")
    fed = replace(request, stack=replace(request.stack, inputs="host"))
    copy = host_transfer_time(input_bytes(request.trace), fed.stack, request.spec.device, request.host)
    assert copy > 0
    assert float(run(fed).latency_s[0]) == pytest.approx(float(run(request).latency_s[0]) + copy, rel=1e-3)


def test_updated_weights_cross_the_link_to_a_parameter_store_and_back() -> None:
    request = make_request("fcn_s", "gtx_1080", batch=64, task="training_step", stack="torch7-cudnn5.1")
    stored, trace = replace(request, stack=replace(request.stack, parameter_store="host")), request.trace
    assert (input_bytes(trace), updated_bytes(trace)) == (64 * 26752 * 4, 4 * 117_997_696)
    added = float(run(stored).latency_s[0]) - float(run(request).latency_s[0])
    assert added == pytest.approx(2 * updated_bytes(trace) / (15.75e9 * 0.76), rel=1e-3)


def test_the_device_waits_for_every_update_of_mxnet() -> None:
    request = make_request("resnet_50", "tesla_m40", batch=32, task="training_step", stack="mxnet-cudnn7.0")
    calls = request.stack.host_calls | {"update": request.stack.host_calls["update"] + 1}
    slower = replace(request, stack=replace(request.stack, host_calls=calls))
    layers, call = sum(op.kind.op == "update" for op in request.trace.ops), request.calibration["dispatch.engine"]
    added = layers * call / float(dispatch_clock(request.host))
    assert layers > 50
    assert float(run(slower).latency_s[0]) == pytest.approx(float(run(request).latency_s[0]) + added, rel=1e-9)


def test_another_host_cpu_dispatches_in_the_time_of_its_own_clocks() -> None:
    """The kernels stay as they are; a CPU dispatches for itself."""
    usual, other = (make_request("resnet_50", "gtx_1080", stack="pytorch-cudnn7.6", host_cpu=name)
                    for name in (None, "xeon_e5_2630_v3"))  # fmt: skip
    assert usual.host_cpu.identity.id == usual.spec.device.launch.host_cpu != "xeon_e5_2630_v3"
    ratio = float(dispatch_clock(usual.host)) / float(dispatch_clock(other.host))
    assert abs(ratio - 1) > 0.05
    before, after = run(usual), run(other)
    assert after.host_s == pytest.approx(ratio * before.host_s, rel=1e-12)
    assert np.array_equal(after.cost.time_s, before.cost.time_s)
    alone = make_request("resnet_50", "i7_6700k")
    assert alone.host is alone.spec.device
    with pytest.raises(ArgumentError, match="dispatches for itself"):
        make_request("resnet_50", "i7_6700k", host_cpu="xeon_e5_2630_v3")
    with pytest.raises(ArgumentError, match="is no CPU"):
        make_request("resnet_50", "gtx_1080", host_cpu="gtx_980")


def test_a_changed_cpu_dispatches_with_its_own_changes() -> None:
    """What-ifs take the same request with other numbers of the device; the CPU that dispatches for itself is that device."""
    request = make_request("alexnet", "i7_6700k", stack="caffe-openblas")
    twice = 2.0 * float(request.host.core.scalar_ipc)
    asked = make_request("alexnet", "i7_6700k", stack="caffe-openblas", settings={"core.scalar_ipc": f"{twice:g}"})
    changed = with_spec(request, request.spec.with_values({"core.scalar_ipc": twice}))
    assert run(asked).host_s.sum() == pytest.approx(run(request).host_s.sum() / 2)
    assert run(changed).host_s.sum() == pytest.approx(run(request).host_s.sum() / 2)


def test_a_timer_that_waits_for_each_layer_hides_no_host_time() -> None:
    request = make_request("resnet_50", "gtx_1080", batch=16, stack="caffe-cudnn5.1")
    apart = run(replace(request, stack=replace(request.stack, waits=True)))
    together = run(request)
    assert apart.latency_s[0] == pytest.approx(apart.timeline.op_time_s.sum())
    device_s = together.timeline.op_time_s.sum() - together.timeline.wait_s.sum()
    assert apart.latency_s[0] == pytest.approx(device_s + together.host_s.sum(), rel=1e-9)
    assert apart.latency_s[0] > together.latency_s[0]


def test_a_batch_may_lie_in_the_hosts_memory_whatever_the_stack_says() -> None:
    plain, fed = (make_request("alexnet", "gtx_1080", batch=64, stack="caffe-cudnn5.1", inputs=place) for place in (None, "host"))
    copy = host_transfer_time(input_bytes(plain.trace), fed.stack, plain.spec.device, plain.host)
    assert float(run(fed).latency_s[0]) == pytest.approx(float(run(plain).latency_s[0]) + copy, rel=1e-3)
    assert fed.stack.digest != plain.stack.digest
    there = make_request("alexnet", "gtx_1080", batch=64, stack="tensorflow-cudnn5.1-feed", inputs="device")
    assert there.stack.inputs == "device"
    with pytest.raises(ArgumentError, match="inputs belong to a GPU; the CPU i7_6700k reads them where they are"):
        make_request("alexnet", "i7_6700k", inputs="host")
    with pytest.raises(ArgumentError, match="inputs 'disk' is not one of device, host"):
        make_request("alexnet", "gtx_1080", inputs="disk")
