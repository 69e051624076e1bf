"""What the host adds: copies of the input, and updates for which the device waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archsim.calibration.constants import default
from archsim.device import catalog as devices
from archsim.estimation.pipeline import arithmetic, feed_time, input_bytes, on_tensor_cores, run
from archsim.estimation.request import make_request
from archsim.stack import catalog as stacks


def test_the_input_is_what_forward_ops_read_and_none_writes() -> None:
    assert input_bytes(make_request("alexnet", "gtx_1080", batch=2).trace.ops) == 4 * 2 * 3 * 227 * 227
    assert input_bytes(make_request("alexnet", "gtx_1080", batch=2, task="training_step").trace.ops) == 4 * 2 * 3 * 227 * 227
    assert input_bytes(make_request("lstm_ptb", "gtx_1080", batch=2).trace.ops) == 4 * 32 * 2


@pytest.mark.parametrize(
    ("stack", "hw", "precision", "as_", "tensor"),
    [
        ("pytorch-cudnn7.6", "tesla_t4", "int8", "dp4a", False),
        ("pytorch-2", "tesla_t4", "int8", "int8", True),
        ("pytorch-cudnn7.6", "tesla_t4", "fp16", "fp16", True),
        ("pytorch-cudnn7.6", "gtx_1080", "int8", "dp4a", False),
        ("caffe-cudnn5.1", "gtx_1080", "fp16", "half", False),
        ("caffe-cudnn5.1", "titan_x_maxwell", "fp16", "fp16", False),
    ],
)
def test_the_stack_says_where_operands_are_multiplied(stack: str, hw: str, precision: str, as_: str, tensor: bool) -> None:
    found, device = stacks.find(stack), devices.find(hw).device
    assert arithmetic(found, device, precision) == as_
    assert on_tensor_cores(found, device, precision) is tensor


def test_an_input_is_copied_in_the_host_and_over_the_link() -> None:
    constants, device = default().with_values({"host.copy_Bps": 4e9}), devices.find("gtx_1080").device
    stack = replace(stacks.find("caffe-cudnn5.1"), inputs="host", input_copies=2)
    assert feed_time(8e9, stack, device, constants) == pytest.approx(4.0 + 8 / (15.75 * 0.76))
    assert feed_time(8e9, replace(stack, inputs="device"), device, constants) == 0.0
    assert feed_time(8e9, stack, devices.find("i7_3820").device, constants) == 0.0


def test_the_copy_comes_before_everything_else() -> None:
    request = make_request("alexnet", "gtx_1080", batch=64, stack="caffe-cudnn5.1")
    fed = replace(request, stack=replace(request.stack, inputs="host"))
    copy = feed_time(input_bytes(request.trace.ops), fed.stack, request.spec.device, request.calibration)
    assert copy > 0
    assert float(run(fed).latency_s[0]) == pytest.approx(float(run(request).latency_s[0]) + copy, rel=1e-3)


def test_the_device_waits_for_every_update_of_mxnet() -> None:
    request = make_request("resnet_50", "tesla_m40", batch=32, task="training_step", stack="mxnet-cudnn7.0")
    constants = request.calibration
    slower = replace(request, calibration=constants.with_values({"host.update": constants["host.update"] + 1e-4}))
    layers = sum(op.kind.op == "update" for op in request.trace.ops)
    assert layers > 50
    assert float(run(slower).latency_s[0]) == pytest.approx(float(run(request).latency_s[0]) + layers * 1e-4, rel=1e-9)


def test_caffe_calls_its_host_for_every_kernel() -> None:
    request = make_request("resnet_50", "gtx_1080", batch=1, stack="caffe-cudnn5.1")
    per_op = replace(request, stack=replace(request.stack, host_unit="op"))
    dear = request.calibration.with_values({"host.caffe": 5e-5})
    assert run(replace(request, calibration=dear)).latency_s[0] > 2 * run(replace(per_op, calibration=dear)).latency_s[0]


def test_a_timer_that_waits_for_each_layer_hides_no_host_time() -> None:
    request = make_request("resnet_50", "gtx_1080", batch=16, stack="caffe-cudnn5.1")
    apart = run(replace(request, stack=replace(request.stack, waits=True)))
    together = run(request)
    assert apart.latency_s[0] == pytest.approx(apart.timeline.op_time_s.sum())
    device_s = together.timeline.op_time_s.sum() - together.timeline.wait_s.sum()
    assert apart.latency_s[0] == pytest.approx(device_s + together.host_s.sum(), rel=1e-9)
    assert apart.latency_s[0] > together.latency_s[0]
