"""Traces: binding symbols, dead code, graph, digest."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import pytest

from archsim.trace import BoundOp, Op, Trace, load
from archsim.trace.dims import factors
from archsim.trace.file import digest
from archsim.trace.op import Conv2d, Linear, Relu, Update

from ..each import each

DATA = ("N", 4)


def relu(name: str, *inputs: str) -> Op:
    return Op(name=name, kind=Relu(), inputs=inputs, shape=DATA)


def small(*ops: Op, outputs: tuple[str, ...] = ()) -> Trace:
    return Trace(name="small", inputs={"data": DATA}, ops=ops, outputs=outputs)


def test_binding_gives_every_op_its_shapes():
    bound = load("alexnet").bind(N=16)
    conv1 = bound.ops[0]
    assert (conv1.name, conv1.input_shapes, conv1.shape) == ("conv1", ((16, 3, 227, 227),), (16, 96, 55, 55))
    assert bound.symbols == {"N": 16}
    assert bound.inputs == {"data": (16, 3, 227, 227)}
    assert bound.outputs == ("prob",)


def test_totals_are_sums_over_ops():
    bound = load("alexnet").bind(N=2)
    assert bound.flop == sum(op.flop for op in bound.ops)
    assert bound.macs == 2 * 724_406_816
    assert bound.parameters == 60_965_224


@each(
    ("symbols", "sentence"),
    [
        ({}, "needs a value for N: bind(N=1)"),
        ({"N": 0}, "N must be a whole number from 1, not 0"),
        ({"N": -3}, "not -3"),
        ({"N": True}, "not True"),
        ({"N": 1.5}, "not 1.5"),
        ({"N": "16"}, "not '16'"),
        ({"N": 1, "B": 2}, "has no symbol 'B'; it has N"),
        ({"N": 2**50}, "'data' [1125899906842624, 3, 227, 227] has more than 2^53 values"),
    ],
)
def test_symbols_without_a_usable_value_are_refused(symbols, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        load("alexnet").bind(**symbols)


def test_a_product_of_symbols_binds():
    assert factors("2*N*16*T") == (32, ("N", "T"))
    trace = small(Op(name="fc", kind=Linear(), inputs=("data",), shape=("32*N", 3)))
    trace = dataclasses.replace(trace, inputs={"data": ("32*N", 4)})
    assert trace.bind(N=2).ops[0].shape == (64, 3)
    assert trace.free_symbols == ("N",)


def test_a_tensor_of_more_than_2_53_values_is_refused_wherever_it_stands():
    trace = small(Op(name="fc", kind=Linear(), inputs=("data",), shape=("N", 2**40)))
    assert trace.bind(N=2).ops[0].shape == (2, 2**40)
    with pytest.raises(ValueError, match="'fc'"):
        trace.bind(N=2**14)


@pytest.mark.parametrize(
    ("phase", "macs", "flop"),
    [
        ("forward", 24, 54),
        ("backward_data", 24, 48),
        ("backward_filter", 24, 54),
        ("backward", 48, 96),
    ],
)
def test_a_phase_has_its_own_work(phase, macs, flop):
    op = BoundOp(name="fc", kind=Linear(), inputs=("x",), input_shapes=((2, 4),), shape=(2, 3), phase=phase)
    assert (op.macs, op.flop) == (macs, flop)
    assert op.parameters == (15 if phase == "forward" else 0)


def test_an_update_has_the_work_of_its_optimiser():
    op = BoundOp(name="u", kind=Update(count=15), inputs=("g",), input_shapes=((15,),), shape=(15,), phase="update")
    assert (op.macs, op.flop, op.parameters) == (0, 60, 0)


def test_equal_layers_have_equal_signatures_and_the_phase_tells_gradients_apart():
    ops = {op.name: op for op in load("vgg_16").bind(N=1).ops}
    assert ops["conv5_1"].signature == ops["conv5_2"].signature
    assert ops["conv5_1"].signature != ops["conv4_2"].signature
    forward = ops["conv5_1"]
    assert dataclasses.replace(forward, phase="backward_data").signature != forward.signature


def test_dead_ops_are_those_that_no_output_needs():
    trace = small(relu("a", "data"), relu("b", "a"), relu("c", "a"), outputs=("c",))
    assert [op.name for op in trace.without_dead_code().ops] == ["a", "c"]


def test_without_named_outputs_every_unread_tensor_is_an_end_and_nothing_is_dead():
    trace = small(relu("a", "data"), relu("b", "a"), relu("c", "a"))
    assert trace.ends == ("b", "c")
    assert trace.without_dead_code() is trace


def test_consumers_are_listed_once_each_in_order():
    trace = small(relu("a", "data"), Op(name="d", kind=Relu(), inputs=("a", "a"), shape=DATA), relu("c", "a"))
    assert trace.consumers() == {"data": ("a",), "a": ("d", "c")}


def test_the_graph_has_a_node_for_each_tensor():
    graph = load("googlenet").graph()
    assert graph.in_degree("inception_3a.concat") == 4
    assert graph.out_degree("data") == 1
    assert graph.nodes["conv1"]["op"].kind == Conv2d(kernel=(7, 7), stride=(2, 2), pad=(3, 3))
    assert "op" not in graph.nodes["data"]


def test_the_digest_tells_traces_apart():
    trace = small(relu("a", "data"))
    assert digest(trace) == digest(small(relu("a", "data")))
    assert digest(trace) != digest(small(relu("b", "data")))
    assert len(digest(trace)) == 64


def test_importing_traces_stays_light():
    heavy = "numpy networkx pydantic simpy plotly scipy pandas click rich"
    code = f"import archsim.trace, sys; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
