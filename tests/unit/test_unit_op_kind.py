"""A new kind of op is its class with a row in `KINDS`, and its rule with a row in `RULES`: nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import archsim
from archsim.answers.estimate import record as values_of
from archsim.estimation.request import make_request
from archsim.explain.layer import explain
from archsim.lower import lower as lowering
from archsim.lower.columns import Role
from archsim.lower.context import Context, element_wise, single
from archsim.lower.kernel import Plan
from archsim.trace.dims import Shape
from archsim.trace.kind import Kind
from archsim.trace.op import KINDS
from archsim.trace.trace import BoundOp
from archsim.trace.values import integer
from tests.shipped import line, written


class PrefixSum(Kind, op="prefix_sum", flop_per_element=2, backward_flop_per_element=2):
    """Sums of all values so far, in blocks of `block`. FLOP: 2 adds."""

    block: int = integer(least=1, default=1024)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        return inputs[0]


def prefix_sum(op: BoundOp, context: Context) -> Plan:
    """Blocks are summed first, then each starts from the sum of those before it."""
    moved = context.bytes(op.shape)
    first = element_wise("sum_blocks", Role.PASS, moved, moved / op.kind.block, flop=op.flop / 2, element=context.element)
    second = element_wise("add_offsets", Role.PASS, moved, moved, flop=op.flop / 2, element=context.element)
    return single("two_pass", op, context, first, second)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A network file with a layer of the new kind, which has its two rows."""
    monkeypatch.setitem(KINDS, PrefixSum.op, PrefixSum)
    monkeypatch.setitem(lowering.RULES, PrefixSum.op, prefix_sum)
    path = tmp_path / "sums.jsonl"
    path.write_text(written(line("linear", "fc", "data", ["N", 65536], bias=False),
                            line("prefix_sum", "sums", "fc", ["N", 65536], block=256), data=["N", 4096]))  # fmt: skip
    return str(path)


@pytest.mark.parametrize("hw", ["gtx_1080", "i7_6700k"])
def test_a_new_kind_is_estimated_with_its_kernels_power_and_json(network: str, hw: str) -> None:
    estimate = archsim.estimate(net=network, hw=hw, batch=64)
    _, sums = values_of(estimate)["ops"]
    assert (sums["name"], sums["kind"]) == ("sums", "prefix_sum")
    assert [kernel["name"] for kernel in sums["kernels"]] == ["sum_blocks", "add_offsets"]
    assert sums["flop"] == 2 * 64 * 65536
    assert sums["time_s"] > 0
    assert sums["energy_breakdown_j"]["dram"] > 0
    assert estimate.power_w > 0


@pytest.mark.parametrize("hw", ["gtx_1080", "i7_6700k"])
def test_a_new_kind_is_explained(network: str, hw: str) -> None:
    story = explain(make_request(network, hw, batch=64), "sums")
    assert story.attributes == {"block": 256}
    assert [kernel.name for kernel in story.kernels] == ["sum_blocks", "add_offsets"]
    assert all(kernel.energy_j > 0 for kernel in story.kernels)
    for kernel in story.kernels:
        assert all(step.right == pytest.approx(step.value) for step in kernel.steps)


def test_a_new_kind_trains_and_obeys_a_power_limit(network: str) -> None:
    trained = archsim.estimate(net=network, hw="gtx_1080", batch=64, task="training_step")
    assert {op.phase for op in trained.ops if op.kind == "prefix_sum"} == {"forward", "backward"}
    limited = archsim.estimate(net=network, hw="gtx_1080", batch=64, power_limit=60.0)
    assert limited.power_w <= 60.0 * (1 + 1e-6)
    assert limited.latency_s > archsim.estimate(net=network, hw="gtx_1080", batch=64).latency_s


def test_a_kind_without_a_rule_is_lowered_to_the_passes_of_its_stack(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(lowering.RULES, PrefixSum.op)
    lowering._plan.cache_clear()
    sums = archsim.estimate(net=network, hw="gtx_1080", batch=32).ops[1]
    assert [kernel.name for kernel in sums.kernels] == ["prefix_sum"]


def test_a_kind_without_a_class_is_refused_by_its_name(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, PrefixSum.op)
    with pytest.raises(archsim.base.errors.InputError, match="prefix_sum"):
        archsim.estimate(net=network, hw="gtx_1080", batch=64)
