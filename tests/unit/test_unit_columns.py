"""Columns of kernels: declared once, and found in one kernel, in the arrays of many and in explanations."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import pytest

from archsim.base.units import parse
from archsim.estimation.pipeline import lowered_of
from archsim.estimation.request import make_request
from archsim.explain.layer import explain
from archsim.lower.columns import Columns, CpuColumns, GpuColumns, Role, TileColumns, columns_of
from archsim.lower.kernel import CpuKernels, GpuKernels, Kernel

COUNTS = ("1", "FLOP", "clk", "FMA/clk")
# (network, device, stack, task, precision): together they launch kernels of every role.
EVERY_ROLE = (
    ("alexnet", "gtx_1080", "caffe-cudnn4", "training_step", "fp32"),
    ("resnet_18", "gtx_1080", "caffe-native", "training_step", "fp32"),
    ("vgg_16", "gtx_1080", "torch7-cudnn5.1", "training_step", "fp32"),
    ("mobilenet_v2", "tesla_v100_sxm2", "pytorch-cudnn7.6", "inference", "fp16"),
    ("bert_base", "i7_6700k", "pytorch-cpu", "inference", "fp32"),
    ("lstm_ptb", "tesla_k80", "torch7-cudnn5.1", "inference", "fp32"),
    ("gpt2_small", "h100_sxm5_80gb", "serving", "inference", "fp8"),
)


def kernels_of(net: str, hw: str, stack: str, task: str, precision: str) -> GpuKernels | CpuKernels:
    found = lowered_of(make_request(net, hw, stack=stack, task=task, precision=precision, batch=2)).kernels
    assert isinstance(found, GpuKernels | CpuKernels)
    return found


@pytest.mark.parametrize("record", [Columns, GpuColumns, TileColumns, CpuColumns])
def test_every_column_has_a_unit_and_a_meaning(record: type[Any]) -> None:
    assert columns_of(record)
    for name, column in columns_of(record).items():
        assert column.unit in COUNTS or parse(f"1 {column.unit}", column.unit) == 1, name
        assert len(column.meaning) > 10, name


def test_the_kernels_of_a_kind_of_device_have_its_columns_and_none_of_the_other() -> None:
    common, gpu = {*columns_of(Columns), "matrix"}, {*columns_of(GpuColumns), *columns_of(TileColumns)}
    cpu = {*columns_of(CpuColumns)}
    assert not gpu & cpu
    assert set(columns_of(GpuKernels)) == common | gpu
    assert set(columns_of(CpuKernels)) == common | cpu
    on_gpu = kernels_of("alexnet", "gtx_1080", "caffe-cudnn4", "inference", "fp32")
    assert not any(hasattr(on_gpu, name) for name in cpu - gpu)
    assert all(kernel.cpu is None for kernel in on_gpu.kernels)
    on_cpu = kernels_of("alexnet", "i7_6700k", "caffe-openblas", "inference", "fp32")
    assert not any(hasattr(on_cpu, name) for name in gpu - cpu)
    assert on_cpu.counts["exps"].sum() > 0  # of the softmax in a scalar loop


@pytest.mark.parametrize(
    ("hw", "stack", "parts"),
    [("gtx_1080", "torch7-cudnn5.1", {"": Columns, "gpu.": GpuColumns}),
     ("i7_6700k", "torch7-cpu", {"": Columns, "cpu.": CpuColumns})],
)  # fmt: skip
def test_each_column_holds_the_values_of_its_kernels(hw: str, stack: str, parts: dict[str, type[Any]]) -> None:
    kernels = kernels_of("alexnet", hw, stack, "training_step", "fp32")
    for prefix, record in parts.items():
        for name in columns_of(record):
            own = np.array([attrgetter(prefix + name)(kernel) for kernel in kernels.kernels], dtype=float)
            assert np.array_equal(getattr(kernels, name), own[kernels.kernel_of]), name


def test_an_equation_names_columns_in_their_units() -> None:
    story = explain(make_request("alexnet", "i7_6700k", stack="caffe-openblas"), "conv2")
    units = {name: unit for kernel in story.kernels for step in kernel.steps for name, (_, unit) in step.names.items()}
    columns = columns_of(CpuKernels)
    named = set(units) & set(columns) - {"pipe"}  # in an equation: that of the core or of the code, whichever is slower
    assert len(named) > 5
    assert {name: units[name] for name in named} == {name: columns[name].unit for name in named}


def test_every_role_is_that_of_some_kernel() -> None:
    seen: set[Role] = set()
    for case in EVERY_ROLE:
        seen |= {kernel.role for kernel in kernels_of(*case).kernels}
    assert seen == set(Role)


def test_a_kernel_without_a_role_is_not_made() -> None:
    with pytest.raises(TypeError, match="role"):
        Kernel(name="gemm", efficiency="full")  # type: ignore[call-arg]
