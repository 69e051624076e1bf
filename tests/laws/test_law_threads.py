"""Laws of threads: one fork and join for each parallel loop, whatever the groups, channels and images that it runs over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from archsim.lower.kernel import Kernel
from archsim.lower.lower import lower
from archsim.stack import catalog as stacks
from archsim.trace import BoundTrace, loads, task_trace

from ..each import each

ONE_LOOP = ("pytorch-cpu", "onnxruntime-cpu", "mxnet-mkldnn", "mxnet-mkl2017", "tensorflow-eigen")  # convolve in one loop
OF_PRODUCTS = ("caffe-openblas", "mxnet-openblas", "cntk-cpu")  # call a BLAS for each group


def network(*ops: dict[str, Any], batch: int, task: str = "inference", channels: int = 64, side: int = 14) -> BoundTrace:
    inputs = {"data": ["N", channels, side, side]}
    head = {"schema": "archsim-trace/1", "name": "t", "inputs": inputs, "dtype": "fp32", "source": "test"}
    text = "".join(json.dumps(record) + "\n" for record in (head, *ops))
    return task_trace(loads(text, "t.jsonl"), task).bind(N=batch)


def convolution(groups: int, channels: int = 64) -> dict[str, Any]:
    return {"op": "conv2d", "name": "c", "in": ["data"], "out": ["N", channels, 14, 14], "kernel": [3, 3], "pad": [1, 1],
            "groups": groups, "bias": False}  # fmt: skip


def plain(op: str, **words: Any) -> dict[str, Any]:
    return {"op": op, "name": "p", "in": ["c"], "out": ["N", 64, 14, 14], **words}


def launched(stack: str, trace: BoundTrace) -> list[Kernel]:
    """The kernels of the first way to run each op of a trace."""
    columns = lower(trace.ops, stacks.find(stack), "cpu", "fp32", any(op.phase != "forward" for op in trace.ops)).kernels
    first = [columns.options[int(start)] for start in columns.plan_start]
    return [kernel for option in first for kernel in option.kernels]


def loops(stack: str, trace: BoundTrace) -> float:
    """Parallel loops of a trace: how often threads are forked and joined."""
    return sum(kernel.repeat for kernel in launched(stack, trace) if kernel.cpu.threaded)


@each(("stack", "groups"), [(stack, groups) for stack in ONE_LOOP for groups in (2, 8, 64)])
def test_a_convolution_is_one_parallel_loop_whatever_its_groups(stack: str, groups: int) -> None:
    for batch in (1, 16):
        for task in ("inference", "forward_backward"):
            whole, cut = (loops(stack, network(convolution(each), batch=batch, task=task)) for each in (1, groups))
            assert cut == whole


@each(("stack", "groups"), [(stack, groups) for stack in OF_PRODUCTS for groups in (2, 8)])
def test_a_blas_forks_for_the_product_of_each_group(stack: str, groups: int) -> None:
    whole, cut = (launched(stack, network(convolution(each), batch=2)) for each in (1, groups))
    assert sum(k.repeat for k in cut if k.menu) == groups * sum(k.repeat for k in whole if k.menu)


@each("stack", ONE_LOOP)
def test_loops_over_elements_do_not_grow_in_number_with_channels_or_images(stack: str) -> None:
    window = {"kernel": [3, 3], "pad": [1, 1], "stride": [1, 1]}
    for op in (plain("relu"), plain("batch_norm"), plain("max_pool", **window), plain("lrn", size=5)):
        small, large = (loops(stack, network(convolution(1), op, batch=batch)) for batch in (1, 64))
        assert small == large


@pytest.mark.parametrize("stack", ONE_LOOP)
def test_depthwise_channels_lie_in_the_lanes_of_a_register_block(stack: str) -> None:
    """Pixels are its rows: one product of all channels, which multiplies what those of each channel do."""
    (kernel,) = (k for k in launched(stack, network(convolution(64), batch=2)) if k.menu)
    assert (kernel.m, kernel.n, kernel.k, kernel.count, kernel.repeat) == (2 * 14 * 14, 64, 9, 1, 1)
    assert kernel.flop == 2.0 * kernel.m * kernel.n * kernel.k
