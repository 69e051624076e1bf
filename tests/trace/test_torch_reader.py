"""Programs of torch.export, written by hand as the recorder writes them; none of it needs torch."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import archsim
from archsim.base.errors import EXIT, InputError, MissingExtra, Unsupported
from archsim.trace import Trace
from archsim.trace.file import hold
from archsim.trace.readers.draft import NoProduct
from archsim.trace.readers.torch import trace_of_programs
from archsim.trace.readers.torch_program import SCHEMA

X = {"tensor": "x"}


def call(operator: str, name: str, shape: list[int], *args: Any) -> dict[str, Any]:
    return {"call": operator, "name": name, "args": list(args), "named": {}, "shapes": [shape]}


def program(*calls: dict[str, Any], x: list[int], **held: list[int]) -> dict[str, Any]:
    return {"schema": SCHEMA, "name": "Small", "torch": "2.15.0", "inputs": {"x": x}, "held": held, "calls": list(calls),
            "outputs": [calls[-1]["name"]], "integers": [], "dtypes": {"bfloat16": 10}}  # fmt: skip


def small(batch: int) -> dict[str, Any]:
    return program(
        call("aten.linear.default", "h", [batch, 32], X, {"tensor": "w"}, {"tensor": "b"}),
        call("aten.relu_.default", "r", [batch, 32], {"tensor": "h"}), x=[batch, 16], w=[32, 16], b=[32],
    )  # fmt: skip


def at_two(make: Any) -> Trace:
    return trace_of_programs([make(11), make(13)], (11, 13))


def test_a_program_at_two_batches_has_a_free_one():
    trace = at_two(small)
    assert [(op.kind.op, op.shape) for op in trace.ops] == [("linear", ("N", 32)), ("relu", ("N", 32))]
    assert (trace.dtype, trace.source) == ("bf16", "PyTorch 2.15.0, torch.export")
    assert trace_of_programs([small(4)], ()).fixed_batch == 4


def test_a_trace_is_a_network_wherever_one_is_named():
    trace = at_two(small)
    assert archsim.estimate(net=trace, hw="gtx_1080", batch=3).flop == 3 * (2 * 16 * 32 + 2 * 32)
    ranked = archsim.compare([trace, "lstm_32"], "gtx_1080,titan_xp", batch=2)
    assert len(ranked) == 2
    assert archsim.estimate(net=hold(trace), hw="gtx_1080").network.endswith(".held")


def test_calls_that_the_tables_lack_count_as_their_traffic():
    def custom(batch: int) -> dict[str, Any]:
        return program(call("mine.warp.default", "y", [batch, 8], X), x=[batch, 16])

    found = archsim.estimate(net=at_two(custom), hw="gtx_1080")
    assert any("mine.warp.default x 1" in text for text in found.warnings)
    with pytest.raises(Unsupported, match="strict: 1 op is not known here"):
        archsim.estimate(net=at_two(custom), hw="gtx_1080", strict=True)


def test_what_does_not_grow_with_the_batch_alone_is_noticed():
    with pytest.raises(NoProduct):
        at_two(lambda batch: program(call("aten.pad.default", "y", [batch + 1, 4], X, [0, 0, 0, 1]), x=[batch, 4]))


def test_programs_that_cannot_be_are_refused_by_name():
    wrong = program(call("aten.view.default", "y", [3, 5], X, [3, 5]), x=[4, 4])
    with pytest.raises(InputError, match=r"Small: node 'y' .Reshape. cannot turn \[4, 4\] into \[3, 5\]"):
        trace_of_programs([wrong], ())
    with pytest.raises(Unsupported, match="Small: has cond, control flow"):
        trace_of_programs([program(call("cond", "y", [4], X), x=[4])], ())


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_way_to_it_is_said():
    with pytest.raises(MissingExtra, match=r"tracing a torch.nn.Module needs an optional package: pip install torch$") as caught:
        archsim.trace(None, ())  # type: ignore[operator]
    assert caught.value.exit_code == EXIT["missing extra"]
