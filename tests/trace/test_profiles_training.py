"""Backward passes and optimisers in profiles: what one call computes, and that a step costs what the same network's does."""

from __future__ import annotations

from pathlib import Path

import pytest

import archsim
from archsim.trace import load
from archsim.trace.dims import Shape
from archsim.trace.profiles.calls import GRADIENTS, gradients_of
from archsim.trace.profiles.reader import of_profile
from archsim.trace.profiles.record import ProfiledCall, ProfiledTensor
from tests.each import each

FOLDER = Path(__file__).parent / "profiles"
CNN, TRANSFORMER = (FOLDER / f"pytorch_cpu_training_{name}.json.gz" for name in ("cnn", "transformer"))
# The network whose step the first one records, on 8 images of 64 x 64.
WRITTEN = """{"schema": "archsim-trace/1", "name": "own", "inputs": {"data": ["N", 3, 64, 64]}, "dtype": "fp32", "source": "own"}
{"op": "conv2d", "name": "c1", "in": ["data"], "out": ["N", 32, 64, 64], "kernel": [3, 3], "pad": [1, 1], "bias": false}
{"op": "batch_norm", "name": "b1", "in": ["c1"], "out": ["N", 32, 64, 64]}
{"op": "relu", "name": "r1", "in": ["b1"], "out": ["N", 32, 64, 64]}
{"op": "conv2d", "name": "c2", "in": ["r1"], "out": ["N", 64, 32, 32], "kernel": [3, 3], "stride": [2, 2], "pad": [1, 1]}
{"op": "batch_norm", "name": "b2", "in": ["c2"], "out": ["N", 64, 32, 32]}
{"op": "relu", "name": "r2", "in": ["b2"], "out": ["N", 64, 32, 32]}
{"op": "max_pool", "name": "p", "in": ["r2"], "out": ["N", 64, 16, 16], "kernel": [2, 2], "stride": [2, 2]}
{"op": "global_avg_pool", "name": "g", "in": ["p"], "out": ["N", 64, 1, 1]}
{"op": "reshape", "name": "f", "in": ["g"], "out": ["N", 64]}
{"op": "linear", "name": "fc", "in": ["f"], "out": ["N", 10]}
{"op": "softmax", "name": "s", "in": ["fc"], "out": ["N", 10]}
"""
ALIKE = ("conv2d", "batch_norm", "max_pool")


def call(operator: str, *arguments: object) -> ProfiledCall:
    """A call whose tensors are given as shapes."""
    listed = [ProfiledTensor(shape=each, type="float") if isinstance(each, tuple) else each for each in arguments]
    return ProfiledCall(operator=f"aten::{operator}", arguments=tuple(listed), start_s=0.0, duration_s=1e-6, within=())


def test_a_recorded_step_has_the_work_of_the_step_of_the_same_network(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text(WRITTEN)
    recorded = archsim.estimate(str(CNN), "i7_6700k", stack="pytorch-cpu")
    step = archsim.estimate(str(tmp_path / "own.jsonl"), "i7_6700k", stack="pytorch-cpu", task="training_step", batch=8)
    for kind in ALIKE:
        ours, theirs = ([op for op in one.ops if op.kind == kind and op.phase != "forward"] for one in (recorded, step))
        assert [op.phase for op in ours] == [op.phase for op in theirs], kind
        assert [op.flop for op in ours] == [op.flop for op in theirs], kind
        assert [op.time_s for op in ours] == pytest.approx([op.time_s for op in theirs], rel=0.05), kind


@each("path", (CNN, TRANSFORMER))
def test_every_call_of_a_training_step_is_an_op_or_only_a_view(path: Path) -> None:
    trace, rows = of_profile(path, {})
    left = [row for row in rows if row.status != "mapped"]
    assert {row.why for row in left} <= {"changes only how a tensor is seen", "copies a tensor: layout, type or device"}
    assert not [op.name for op in trace.ops if op.kind.op == "traffic" and "backward" in op.name and "nll_loss" not in op.name]


def test_what_reads_a_gradient_sees_its_shape_and_not_that_of_the_forward_result() -> None:
    trace = load(str(CNN)).bind()
    op = next(op for op in trace.ops if op.kind.op == "relu" and op.inputs and "convolution_backward" in op.inputs[0])
    assert op.input_shapes[0] == (8, 32, 64, 64)


def test_the_mask_says_which_gradients_of_a_convolution_are_computed() -> None:
    def phases(mask: str) -> list[tuple[str, Shape, bool]]:
        one = call("convolution_backward", (8, 64, 16, 16), (8, 32, 32, 32), (64, 16, 3, 3), [64], [2, 2], [1, 1], [1, 1], False,
                   [0, 0], 2, mask)  # fmt: skip
        return [(each.phase, each.made, each.kind.bias) for each in gradients_of(one, "convolution_backward")]  # type: ignore[attr-defined]

    assert phases("[True, True, True]") == [("backward_data", (8, 32, 32, 32), True), ("backward_filter", (64, 16, 3, 3), True)]
    assert phases("[False, True, False]") == [("backward_filter", (64, 16, 3, 3), False)]
    assert phases("[False, False, False]") == []


def test_attention_has_the_heads_of_its_queries_and_of_its_keys() -> None:
    name = "_scaled_dot_product_flash_attention_backward"
    shapes = ((2, 8, 128, 64), (2, 8, 128, 64), (2, 2, 256, 64), (2, 2, 256, 64), (2, 8, 128, 64), (2, 8, 128))
    (found,) = gradients_of(call(name, *shapes, None, None, 128, 256, 0.0, True), name)
    assert (found.kind.heads, found.kind.kv_heads, found.kind.causal) == (8, 2, True)  # type: ignore[attr-defined]
    assert found.of == ((2, 128, 512), (2, 256, 128), (2, 256, 128))


def test_an_optimiser_reads_its_lists_and_writes_parameters_and_state() -> None:
    listed = [ProfiledTensor(shape=(10, 10), type="float"), ProfiledTensor(shape=(50,), type="float")]
    (plain,) = gradients_of(call("_foreach_add_", listed, listed), "_foreach_add")
    (fused,) = gradients_of(call("_fused_adamw_", *[listed] * 4), "_fused_adamw")
    assert plain.kind.moves == 4 * 150 * 3  # type: ignore[attr-defined]
    assert fused.kind.moves == 4 * 150 * 7  # type: ignore[attr-defined]  # all but the gradients are written


@each("operator", sorted(GRADIENTS))
def test_arguments_that_do_not_fit_are_one_line(operator: str) -> None:
    with pytest.raises(ValueError, match=r"argument|do not fit"):
        gradients_of(call(operator), operator)


def test_convolutions_over_lines_and_those_that_enlarge_have_gradients() -> None:
    one = ((8, 64, 16), (8, 32, 16), (64, 32, 3), [64], [1], [1], [1], False, [0], 1, "[True, True, True]")
    two = ((8, 64, 9, 9), (8, 32, 9, 9), (32, 64, 3, 3), [64], [1, 1], [1, 1], [1, 1], True, [0, 0], 1, "[True, True, True]")
    for arguments, macs in ((one, 8 * 16 * 64 * 32 * 3), (two, 8 * 81 * 32 * 64 * 9)):
        found = gradients_of(call("convolution_backward", *arguments), "convolution_backward")
        assert [each.kind.gradient_macs(each.phase, each.of, each.shape) for each in found] == [macs, macs]
