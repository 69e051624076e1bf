"""Which ops a stack computes in the kernel of another one, and which stay kernels of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from archsim.lower.fusion import fusion_of
from archsim.lower.lower import lower
from archsim.stack import catalog as stacks
from archsim.trace import BoundTrace, load, loads, task_trace

from ..each import each

IMAGE = [2, 32, 8, 8]


def network(*ops: dict[str, Any], task: str = "inference") -> BoundTrace:
    head = {"schema": "archsim-trace/1", "name": "t", "inputs": {"data": ["N", *IMAGE[1:]]}, "dtype": "fp32", "source": "test"}
    text = "".join(json.dumps(record) + "\n" for record in (head, *ops))
    return task_trace(loads(text, "t.jsonl"), task).bind(N=2)


def op(kind: str, name: str, *inputs: str, **words: Any) -> dict[str, Any]:
    more = {"kernel": [3, 3], "pad": [1, 1], "bias": False} if kind == "conv2d" else {}
    return {"op": kind, "name": name, "in": list(inputs), "out": ["N", *IMAGE[1:]], **more, **words}


def alone(*ops: dict[str, Any], stack: str = "onnxruntime-cpu", task: str = "inference") -> list[str]:
    """The ops that have a kernel of their own."""
    bound = network(*ops, task=task)
    lowered = lower(bound.ops, stacks.find(stack), "cpu", "fp32", task != "inference")
    return [o.name for o, plan in zip(bound.ops, lowered.plan_of, strict=True) if plan >= 0 and o.phase == "forward"]


CONV, NORM = op("conv2d", "c", "data"), op("batch_norm", "n", "c")


FUSED = {
    "norm and activation": ([CONV, NORM, op("relu", "r", "n")], ["c"]),
    "a clip": ([CONV, op("relu6", "r", "c")], ["c"]),
    "norm before": ([op("batch_norm", "n", "data"), op("relu", "r", "n"), op("conv2d", "c", "r")], ["n", "c"]),
    "norm of a concat": ([op("concat", "k", "data", "data", out=["N", 64, 8, 8], axis=1),
                          op("batch_norm", "n", "k", out=["N", 64, 8, 8])], ["k", "n"]),
    "activation without a kernel before it": ([op("relu", "r", "data")], ["r"]),
    "two readers": ([CONV, op("relu", "r", "c"), op("add", "a", "c", "r")], ["c", "r", "a"]),
    "shortcut": ([CONV, NORM, op("add", "a", "n", "data"), op("relu", "r", "a")], ["c"]),
    "sum of activations": ([op("relu", "x", "data"), op("relu", "y", "data"), op("add", "a", "x", "y")], ["x", "y", "a"]),
    "sum behind an activation": ([CONV, op("relu", "r", "c"), op("add", "a", "r", "data")], ["c", "a"]),
    "norm behind a sum": ([CONV, op("add", "a", "c", "data"), op("batch_norm", "n", "a")], ["c", "n"]),
    "norm behind an activation": ([CONV, op("relu", "r", "c"), op("batch_norm", "n", "r")], ["c", "n"]),
}  # fmt: skip


@each("case", FUSED)
def test_onnxruntime_fuses_what_follows_a_convolution_and_no_other_op(case: str) -> None:
    ops, left = FUSED[case]
    assert alone(*ops) == left


def test_onnxruntime_at_the_basic_level_fuses_constants_only() -> None:
    assert alone(CONV, NORM, op("relu", "r", "n"), stack="onnxruntime-im2col") == ["c", "r"]


def test_nothing_is_fused_in_training() -> None:
    assert alone(CONV, op("relu6", "r", "c"), task="forward") == ["c", "r"]


def test_a_stack_without_the_key_fuses_by_its_passes_alone() -> None:
    ops = network(CONV, NORM).ops
    assert not fusion_of(ops, replace(stacks.find("onnxruntime-cpu"), fused={}), False)
    assert not fusion_of(ops, stacks.find("caffe-openblas"), False)


def test_the_normalisations_before_the_convolutions_of_densenet_stay() -> None:
    bound = task_trace(load("densenet_121"), "inference").bind(N=1)
    lowered = lower(bound.ops, stacks.find("onnxruntime-cpu"), "cpu", "fp32", False)
    kinds = [o.kind.op for o, plan in zip(bound.ops, lowered.plan_of, strict=True) if plan >= 0]
    assert kinds.count("batch_norm") == 62
    assert kinds.count("relu") == 0


def test_networks_that_are_lowered_together_do_not_see_each_other() -> None:
    one = network(CONV, NORM, op("relu", "r", "n")).ops
    other = network(op("relu", "r", "data"), op("batch_norm", "n", "data")).ops
    apart = [lower(ops, stacks.find("onnxruntime-cpu"), "cpu", "fp32", False).plan_of >= 0 for ops in (one, other)]
    both = lower((*one, *other), stacks.find("onnxruntime-cpu"), "cpu", "fp32", False, lengths=(len(one), len(other)))
    assert (both.plan_of >= 0).tolist() == [*apart[0], *apart[1]]
