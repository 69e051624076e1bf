"""Residual blocks in a row that an engine computes in one kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archsim.lower.context import Context
from archsim.lower.fusion import Stages
from archsim.lower.stages import stages
from archsim.stack import catalog as stacks
from archsim.stack import choose
from archsim.trace.op import Add, Conv2d, Relu
from archsim.trace.task import prepared
from archsim.trace.trace import BoundOp

from ..each import each

ENGINE = stacks.find("tensorrt-8")
RUN = ("0.conv1", "0.conv2", "0.conv3", "0.shortcut", "1.conv1", "1.conv2", "1.conv3", "2.conv1", "2.conv2", "2.conv3")


def setting(architecture: str = "ampere", element: int = 1, training: bool = False, tensor: bool = True) -> Context:
    return Context(stack=ENGINE, device_kind="gpu", element=element, training=training, tensor=tensor, architecture=architecture)


def resnet(batch: int = 2) -> tuple[BoundOp, ...]:
    return tuple(prepared("resnet_50", "inference").bind(N=batch).ops)


def conv(name: str, reads: str, channels: tuple[int, int], side: int = 1) -> BoundOp:
    kind = Conv2d(kernel=(side, side), pad=(side // 2, side // 2), bias=False)
    return BoundOp(name=name, kind=kind, inputs=(reads,), input_shapes=((1, channels[0], 8, 8),), shape=(1, channels[1], 8, 8))


def after(kind: Add | Relu, name: str, *reads: str, channels: int = 256) -> BoundOp:
    shape = (1, channels, 8, 8)
    return BoundOp(name=name, kind=kind, inputs=reads, input_shapes=(shape,) * len(reads), shape=shape)


def block(i: int, reads: str, inner: int = 64) -> list[BoundOp]:
    return [
        conv(f"a{i}", reads, (256, inner)), after(Relu(), f"ra{i}", f"a{i}", channels=inner),
        conv(f"b{i}", f"ra{i}", (inner, inner), 3), after(Relu(), f"rb{i}", f"b{i}", channels=inner),
        conv(f"c{i}", f"rb{i}", (inner, 256)), after(Add(), f"s{i}", f"c{i}", reads), after(Relu(), f"y{i}", f"s{i}"),
    ]  # fmt: skip


def found(*ops: BoundOp) -> Stages:
    return stages(ops, setting())


def test_the_first_stage_of_a_resnet_is_one_kernel() -> None:
    ops = resnet()
    made = stages(ops, setting())
    (name,) = made.plans
    assert name == "layer1.2.conv3"
    convolutions = {op.name: op for op in ops if op.kind.op == "conv2d"}
    inside = {other for other in made.into if other in convolutions} | {name}
    assert inside == {f"layer1.{part}" for part in RUN}
    assert set(made.into.values()) == {name}


def test_its_kernel_multiplies_for_all_and_moves_what_enters_and_leaves() -> None:
    ops = {op.name: op for op in resnet()}
    (plan,) = stages(tuple(ops.values()), setting()).plans.values()
    (kernel,) = plan.options[0].kernels
    members = [ops[f"layer1.{part}"] for part in RUN]
    assert kernel.flop == sum(2.0 * op.macs for op in members)
    assert kernel.m * kernel.n * kernel.k == pytest.approx(kernel.flop / 2.0)
    assert kernel.a_bytes == sum(op.parameters for op in members)
    assert (kernel.b_bytes, kernel.c_bytes) == (2.0 * 64 * 56 * 56, 2.0 * 256 * 56 * 56)
    assert kernel.operand_b * kernel.n * kernel.k == pytest.approx(kernel.b_bytes)
    assert (plan.read_bytes, plan.write_bytes) == (kernel.a_bytes + kernel.b_bytes, kernel.c_bytes)


@each("context", [setting(element=2), setting("volta"), setting(training=True), setting(tensor=False),
                  replace(setting(), stack=choose.fused("tensorrt-8", "ampere", "none"))])  # fmt: skip
def test_only_bytes_at_inference_where_the_kernel_is(context: Context) -> None:
    assert stages(resnet(), context) == Stages()


def test_blocks_in_a_row_are_one_run_and_a_single_one_is_none() -> None:
    assert set(found(*block(0, "x"), *block(1, "y0")).plans) == {"c1"}
    assert not found(*block(0, "x")).plans
    assert not found(*block(0, "x"), *block(1, "other")).plans


def test_wider_blocks_are_kernels_of_their_own() -> None:
    assert not found(*block(0, "x", 128), *block(1, "y0", 128)).plans


def test_a_result_that_others_read_stays_in_memory() -> None:
    assert not found(*block(0, "x"), *block(1, "y0"), after(Relu(), "z", "y0")).plans
    assert not found(*block(0, "x"), *block(1, "y0"), after(Relu(), "z", "b1", channels=64)).plans


def test_the_sum_may_name_its_terms_in_either_order() -> None:
    swapped = [op if op.name != "s1" else after(Add(), "s1", "y0", "c1") for op in (*block(0, "x"), *block(1, "y0"))]
    assert set(found(*swapped).plans) == {"c1"}
