"""Which ops share a kernel: under a rule of fusion, and what such a kernel moves; in the kernel of another op."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import pytest

import archsim
from archsim.base.errors import UnknownName
from archsim.lower.fusion import fusion_of
from archsim.lower.lower import Lowered, lower
from archsim.stack import catalog, choose
from archsim.stack.changes import NONE, releases
from archsim.stack.parts import LEVELS
from archsim.stack.stack import Stack
from archsim.trace import BoundTrace, load
from archsim.trace.op import KINDS

from .. import shipped
from ..each import each

SHAPE = [32, 8, 8]
TENSOR = 2 * prod(SHAPE) * 4.0  # bytes of one tensor of two samples


def network(*ops: dict[str, Any], task: str = "inference") -> BoundTrace:
    return shipped.network(*ops, task=task, data=["N", *SHAPE], other=["N", *SHAPE])


def op(kind: str, name: str, *inputs: str, **words: Any) -> dict[str, Any]:
    more = {"kernel": [3, 3], "pad": [1, 1], "bias": False} if kind == "conv2d" else {}
    return shipped.line(kind, name, " ".join(inputs), words.pop("out", ["N", *SHAPE]), **more, **words)


def lowered(*ops: dict[str, Any], rule: str = "pointwise", task: str = "inference") -> Lowered:
    stack = choose.fused("pytorch-2", "ampere", rule)
    return lower(network(*ops, task=task).ops, stack, "gpu", "fp32", task != "inference", architecture="ampere")


def moved(found: Lowered, name: str) -> tuple[float, float]:
    """What the kernel of an op reads and writes, in tensors."""
    plan = int(found.plan_of[[o.name for o in found.ops].index(name)])
    kernels = found.kernels.options[int(found.kernels.plan_start[plan])].kernels
    reads = sum(k.repeat * (k.a_bytes + k.b_bytes) for k in kernels)
    return reads / TENSOR, sum(k.repeat * k.c_bytes for k in kernels) / TENSOR


CONV, NORM = op("conv2d", "c", "data"), op("batch_norm", "n", "c")
CASES = {
    "a chain behind a product": ([CONV, NORM, op("relu", "r", "n")], "pointwise", {"r": "n"}),
    "the product's epilogue": ([CONV, NORM, op("relu", "r", "n")], "aggressive", {"n": "c", "r": "c"}),
    "nothing": ([CONV, NORM, op("relu", "r", "n")], "none", {}),
    "two chains that meet": ([op("relu", "a", "data"), op("relu", "b", "other"), op("add", "s", "a", "b")], "pointwise",
                             {"a": "s", "b": "s"}),
    "an intermediate that others read": ([op("relu", "a", "data"), op("sigmoid", "b", "a"), op("conv2d", "c", "a")], "pointwise",
                                         {"b": "a"}),
    "the epilogue of a product that makes less than it reads": (
        [op("conv2d", "c", "data", out=["N", 16, 4, 4], stride=[2, 2]), op("batch_norm", "n", "c", out=["N", 16, 4, 4]),
         op("relu", "r", "n", out=["N", 16, 4, 4])], "aggressive", {"n": "c", "r": "c"}),
    "a product that others read": ([CONV, op("relu", "r", "c"), op("add", "s", "r", "c")], "aggressive", {"r": "s"}),
    "what waits for a product": ([op("relu", "a", "data"), op("conv2d", "c", "a"), op("add", "s", "a", "c")], "pointwise", {}),
}  # fmt: skip


@each("case", CASES)
def test_a_rule_joins_what_can_share_a_kernel_and_no_more(case: str) -> None:
    ops, rule, into = CASES[case]
    assert dict(lowered(*ops, rule=rule).into) == into


def test_a_fused_chain_reads_its_operands_once_and_writes_its_result_once() -> None:
    alone = lowered(CONV, NORM, op("add", "s", "n", "other"), op("relu", "r", "s"), rule="none")
    assert sum(sum(moved(alone, name)) for name in "nsr") == pytest.approx(2 + 3 + 2, rel=0.01)
    found = lowered(CONV, NORM, op("add", "s", "n", "other"), op("relu", "r", "s"))
    (anchor,) = set(found.into.values())
    reads, writes = moved(found, anchor)
    assert (reads, writes) == (pytest.approx(2, rel=0.01), pytest.approx(1, rel=0.01))


def test_a_value_that_others_read_is_still_written() -> None:
    found = lowered(op("relu", "a", "data"), op("sigmoid", "b", "a"), op("conv2d", "c", "a"))
    assert moved(found, "a") == (pytest.approx(1), pytest.approx(2))


def test_a_shortcut_is_read_in_the_epilogue_of_a_product() -> None:
    with_sum = lowered(CONV, op("add", "s", "c", "other"), rule="aggressive")
    bare = lowered(CONV, rule="aggressive")
    assert sum(moved(with_sum, "c")) - sum(moved(bare, "c")) == pytest.approx(1)


def test_a_kernel_has_one_sum_over_rows() -> None:
    found = lowered(op("layer_norm", "m", "data"), op("relu", "r", "m"), op("layer_norm", "l", "r"))
    assert len(set(found.into.values())) == 1
    assert {"m", "l"} - set(found.into) != set()
    assert found.into.keys() <= {"r", "m", "l"}
    assert not {"m", "l"} <= set(found.into) | set(found.into.values()) or len(found.into) == 1


def test_gradients_are_fused_too() -> None:
    found = lowered(CONV, NORM, op("relu", "r", "n"), op("conv2d", "d", "r"), task="forward_backward")
    assert found.into["r.backward"] == "n.backward"
    assert not lowered(CONV, NORM, op("relu", "r", "n"), rule="none", task="forward_backward").into


@each("rule", LEVELS)
def test_each_rule_fuses_no_less_than_the_one_before(rule: str) -> None:
    before = LEVELS[max(0, LEVELS.index(rule) - 1)]
    for net, task in (("resnet_50", "inference"), ("bert_base", "inference"), ("resnet_50", "training_step")):
        one, other = (archsim.estimate(net=net, hw="a100_sxm4_40gb", stack="pytorch-2", precision="fp16", batch=64, task=task,
                                       fusion=fusion).latency_s for fusion in (before, rule))  # fmt: skip
        assert other <= one * (1 + 1e-9)


def test_a_rule_that_is_asked_for_widens_the_interval_and_is_told() -> None:
    how = {"net": "resnet_50", "hw": "a100_sxm4_40gb", "stack": "pytorch-2", "precision": "fp16"}
    own, asked = archsim.estimate(**how), archsim.estimate(**how, fusion="pointwise")  # type: ignore[arg-type]
    width = [hi / lo for lo, hi in (own.latency_interval_s, asked.latency_interval_s)]
    assert width[1] > width[0]
    assert "fusion pointwise" in str(asked.to_dict())


def test_an_engine_that_fuses_by_itself_is_taken_apart_by_none() -> None:
    tensorrt = [choose.fused("tensorrt-1", "pascal", rule) for rule in (None, "none")]
    assert tensorrt[0].passes["relu"]["forward"].launches == 0
    assert "forward" not in tensorrt[1].passes.get("relu", {}) or tensorrt[1].passes["relu"]["forward"].launches == 1


def test_another_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="none, pointwise, attention, aggressive"):
        choose.fused("pytorch-2", "ampere", "all")


@each("rule", LEVELS[1:])
def test_a_rule_names_op_kinds_that_exist(rule: str) -> None:
    fusion = choose.fused("pytorch-2", "ampere", rule).fusion
    assert {*fusion.pointwise, *fusion.sums, *fusion.products} <= {*KINDS}


def test_a_stack_that_nobody_measured_says_so_and_has_a_wider_interval() -> None:
    of = {name: archsim.estimate(net="resnet_50", hw="a100_sxm4_40gb", stack=name, precision="fp16") for name in
          ("pytorch-2", "jax-xla")}  # fmt: skip
    width = {name: e.latency_interval_s[1] / e.latency_interval_s[0] for name, e in of.items()}
    assert width["jax-xla"] > width["pytorch-2"]
    jax, torch = of["jax-xla"].stack_rows, of["pytorch-2"].stack_rows
    assert (jax.own, torch.own > 10_000, jax.alike > torch.alike > 1_000) == (0, True, True)
    assert [("jax-xla" in said and "wider" in said) for said in of["jax-xla"].assumptions].count(True) == 1


# Published: PyTorch 2.0 release notes and Ansel et al. 2024, A100: geometric means of 1.3 to 1.8 over eager, for training and
# inference, in halves and tf32. A check of plausibility; nothing is fitted to it.
@each("task", ("inference", "training_step"))
def test_compilation_gains_what_its_makers_published(task: str) -> None:
    gains = []
    for net, batch in (("resnet_50", 64), ("bert_base", 32), ("mobilenet_v2", 64), ("gpt2_small", 8), ("vit_base_16", 64)):
        eager, compiled = (archsim.estimate(net=net, hw="a100_sxm4_40gb", stack=stack, precision="fp16", batch=batch, task=task)
                           .latency_s for stack in ("pytorch-2-eager", "pytorch-2-compile-graphs"))  # fmt: skip
        gains.append(eager / compiled)
    assert min(gains) > 1.0
    mean = prod(gains) ** (1 / len(gains))
    assert 1.2 < mean < 2.3, gains


def test_the_steps_between_two_stacks_add_up() -> None:
    from archsim.study.stack_change import stack_change

    change = stack_change("resnet_50", "a100_sxm4_40gb", "pytorch-2", "pytorch-2-compile-graphs", batch=1)
    titles = [step.title for step in change.steps]
    assert {"channels last", "chains in one kernel", "CUDA graph"} <= {*titles}
    assert sum(step.saved_s for step in change.steps) == pytest.approx(change.before_s - change.after_s)
    own = archsim.estimate(net="resnet_50", hw="a100_sxm4_40gb", stack="pytorch-2-compile-graphs", batch=1).latency_s
    assert change.after_s == pytest.approx(own)
    assert all(step.sources for step in change.steps)
    assert sum(one.before_s for one in change.layers) == pytest.approx(change.before_s)
    assert sum(one.after_s for one in change.layers) == pytest.approx(change.after_s)
    assert change.fp32_s is not None
    assert "tf32" in change.tf32_source.lower()


def test_every_release_names_a_key_a_block_and_a_source() -> None:
    from archsim.stack.compose import part_versions
    from archsim.stack.key import lines

    keys = {line.path.partition(".NAME")[0] for line in lines(Stack)}
    heads = {".".join(key.split(".")[:n]) for key in keys for n in (1, 2, 3)}
    for one in releases():
        assert one.effect == NONE or one.effect in heads, one
        assert not one.block or one.block in part_versions(one.axis, one.part), one
        assert len(one.source) > 20
        assert not one.date or one.date[:4].isdigit()


def test_a_stack_of_today_has_the_releases_of_its_parts() -> None:
    from archsim.stack.changes import of_parts

    old, new = (of_parts(catalog.composition(name).parts) for name in ("pytorch-2", "pytorch-2-cuda12"))
    assert {*old} < {*new}
    assert all(one.part in ("cudnn", "cublas") for one in {*new} - {*old})


# --------------------------------------------------------------------------------------- in the kernel of another op


def alone(*ops: dict[str, Any], stack: str = "onnxruntime-cpu", task: str = "inference") -> list[str]:
    """The ops that have a kernel of their own."""
    bound = network(*ops, task=task)
    lowered = lower(bound.ops, catalog.find(stack), "cpu", "fp32", task != "inference")
    return [o.name for o, plan in zip(bound.ops, lowered.plan_of, strict=True) if plan >= 0 and o.phase == "forward"]


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
    assert not fusion_of(ops, replace(catalog.find("onnxruntime-cpu"), fused={}), False)
    assert not fusion_of(ops, catalog.find("caffe-openblas"), False)


def test_the_normalisations_before_the_convolutions_of_densenet_stay() -> None:
    bound = load("densenet_121").bind(N=1)
    lowered = lower(bound.ops, catalog.find("onnxruntime-cpu"), "cpu", "fp32", False)
    kinds = [o.kind.op for o, plan in zip(bound.ops, lowered.plan_of, strict=True) if plan >= 0]
    assert kinds.count("batch_norm") == 62
    assert kinds.count("relu") == 0


def test_networks_that_are_lowered_together_do_not_see_each_other() -> None:
    one = network(CONV, NORM, op("relu", "r", "n")).ops
    other = network(op("relu", "r", "data"), op("batch_norm", "n", "data")).ops
    apart = [lower(ops, catalog.find("onnxruntime-cpu"), "cpu", "fp32", False).plan_of >= 0 for ops in (one, other)]
    both = lower((*one, *other), catalog.find("onnxruntime-cpu"), "cpu", "fp32", False, lengths=(len(one), len(other)))
    assert (both.plan_of >= 0).tolist() == [*apart[0], *apart[1]]
