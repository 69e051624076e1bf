"""Nodes that a runtime timed, back to ops."""

from __future__ import annotations

import pytest

from archsim.measure.onnx_session import groups, owner, per_group
from archsim.trace.trace import BoundOp
from tests.shipped import line, network

SHAPE = [1, 4, 8, 8]


def ops(*records: tuple[str, str, list[str]]) -> tuple[BoundOp, ...]:
    made = [line(kind, name, " ".join(reads), SHAPE, **({"kernel": [1, 1]} if kind == "conv2d" else {}))
            for kind, name, reads in records]  # fmt: skip
    return network(*made, x=SHAPE).ops


BLOCK = ops(
    ("conv2d", "a", ["x"]), ("batch_norm", "a.bn", ["a"]), ("relu", "a.relu", ["a.bn"]),
    ("conv2d", "b", ["a.relu"]), ("add", "sum", ["b", "a.relu"]), ("relu", "out", ["sum"]), ("lrn", "norm", ["out"]),
)  # fmt: skip


def test_fused_ops_go_with_their_product() -> None:
    # the first node bears the name of the last of its ops, the second that of the first
    assert groups(BLOCK, {"a.relu", "b", "norm"}) == [("a", "a.bn", "a.relu"), ("b", "sum", "out"), ("norm",)]


def test_ops_that_run_alone_stand_alone() -> None:
    assert groups(BLOCK, {op.name for op in BLOCK}) == [(op.name,) for op in BLOCK]


def test_times_add_up_and_layout_changes_belong_to_no_op() -> None:
    node_s = {"a.relu_nchwc": 3.0, "b/1": 1.0, "fused b": 0.5, "norm": 2.0, "ReorderOutput_token_3": 0.25}
    times, others = per_group(BLOCK, node_s)
    assert times == {("a", "a.bn", "a.relu"): 3.0, ("b", "sum", "out"): 1.5, ("norm",): 2.0}
    assert others == 0.25


@pytest.mark.parametrize(("node", "name"), [("a.relu", "a.relu"), ("a/3", "a"), ("b_nchwc", "b"), ("z", None), ("", None)])
def test_the_owner_of_a_node(node: str, name: str | None) -> None:
    assert owner(node, {"a", "a.relu", "b"}) == name
