"""Laws that hold for all sizes and graphs, tried on many."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.base.errors import InputError
from archsim.trace import KINDS, Op, Trace, dumps, loads, names, training_step
from archsim.trace.kinds.convolution import windows
from archsim.trace.op import Add, Concat, Conv2d, Linear, Relu, Sigmoid
from archsim.trace.values import read, written

from ..each import each
from ..shipped import load

FEW = settings(max_examples=60, deadline=None)

size = st.integers(1, 14)
window = st.integers(1, 5)
step = st.integers(1, 4)
edge = st.integers(0, 3)


@FEW
@given(size, window, step, edge, edge, st.integers(1, 3))
def test_windows_are_the_places_where_a_window_fits(n, kernel, stride, before, after, dilation):
    extent = dilation * (kernel - 1) + 1
    places = [start for start in range(0, n + before + after, stride) if start + extent <= n + before + after]
    if not places:
        with pytest.raises(ValueError, match="too large"):
            windows(n, kernel, stride, before, after, dilation)
    else:
        assert windows(n, kernel, stride, before, after, dilation) == len(places)


@FEW
@given(size, window, step, edge)
def test_rounding_up_adds_one_window_when_elements_are_left_and_it_starts_inside(n, kernel, stride, pad):
    if n + 2 * pad < kernel or pad >= kernel:
        return
    floor, ceiling = (windows(n, kernel, stride, pad, pad, ceil=c) for c in (False, True))
    last_end = (floor - 1) * stride + kernel
    starts_inside = floor * stride < n + pad
    assert ceiling == floor + (last_end < n + 2 * pad and starts_inside)


def by_hand(kind: Conv2d, shape: tuple[int, ...], filters: int) -> int:
    """Multiply-accumulates of a convolution, one loop step each."""
    n, c, h, w = shape
    total = 0
    top, left, bottom, right = kind.pad * 2 if len(kind.pad) == 2 else kind.pad
    down, along = kind.dilation[0] * (kind.kernel[0] - 1), kind.dilation[1] * (kind.kernel[1] - 1)
    for _sample in range(n):
        for _filter in range(filters):
            for y in range(-top, h + bottom - down, kind.stride[0]):
                for x in range(-left, w + right - along, kind.stride[1]):
                    assert y + down < h + bottom
                    assert x + along < w + right
                    for _channel in range(c // kind.groups):
                        total += kind.kernel[0] * kind.kernel[1]
    return total


@FEW
@given(st.data())
def test_a_convolution_multiplies_as_often_as_its_loops(data):
    groups = data.draw(st.integers(1, 2))
    shape = (data.draw(st.integers(1, 2)), groups * data.draw(st.integers(1, 2)), data.draw(size), data.draw(size))
    pad = data.draw(st.one_of(st.tuples(edge, edge), st.tuples(edge, edge, edge, edge)))
    kind = Conv2d(
        kernel=data.draw(st.tuples(window, window)), stride=data.draw(st.tuples(step, step)), pad=pad,
        dilation=data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2))), groups=groups,
    )  # fmt: skip
    filters = groups * data.draw(st.integers(1, 3))
    try:
        out = kind.shape([shape], (0, filters, 0, 0))
    except ValueError:
        return
    assert kind.macs([shape], out) == by_hand(kind, shape, filters)


@each("name", names())
def test_work_is_proportional_to_the_batch_and_parameters_do_not_depend_on_it(name):
    trace = load(name)
    one, seven = trace.bind(N=1), trace.bind(N=7)
    assert seven.macs == 7 * one.macs
    assert seven.flop == 7 * one.flop
    assert seven.parameters == one.parameters


@st.composite
def traces(draw) -> Trace:
    """A random graph of layers on [N, 6], some of them dead."""
    tensors, ops = ["data"], []
    for number in range(draw(st.integers(1, 12))):
        name = f"op{number}"
        kind, arity = draw(st.sampled_from([(Linear(), 1), (Relu(), 1), (Sigmoid(), 1), (Add(), 2), (Add(), 3)]))
        inputs = tuple(draw(st.sampled_from(tensors)) for _ in range(arity))
        ops.append(Op(name=name, kind=kind, inputs=inputs, shape=("N", 6)))
        tensors.append(name)
    outputs = draw(st.lists(st.sampled_from(tensors[1:]), max_size=2, unique=True))
    return Trace(name="random", inputs={"data": ("N", 6)}, source="random", ops=tuple(ops), outputs=tuple(outputs))


@FEW
@given(traces())
def test_what_is_written_is_read_back(trace):
    assert loads(dumps(trace)) == trace


@FEW
@given(st.data())
def test_a_damaged_file_is_refused_in_words_or_still_a_trace(data):
    content = dumps(load("alexnet_r"))
    at = data.draw(st.integers(0, len(content) - 1))
    length = data.draw(st.integers(0, 30))
    insert = data.draw(st.text(max_size=10))
    try:
        trace = loads(content[:at] + insert + content[at + length :])
    except InputError:
        return
    assert loads(dumps(trace)) == trace


@FEW
@given(traces())
def test_removing_dead_ops_twice_removes_no_more(trace):
    live = trace.without_dead_code()
    assert live.without_dead_code() == live
    assert set(trace.outputs) <= {op.name for op in live.ops}


@FEW
@given(traces(), st.randoms(use_true_random=False))
def test_the_order_of_lines_changes_nothing_but_the_order_among_equals(trace, rng: random.Random):
    header, *lines = dumps(trace).splitlines(keepends=True)
    rng.shuffle(lines)
    shuffled = loads(header + "".join(lines))
    assert set(shuffled.ops) == set(trace.ops)
    assert shuffled.bind(N=3).flop == trace.bind(N=3).flop
    seen = {"data"}
    for op in shuffled.ops:
        assert seen.issuperset(op.inputs)
        seen.add(op.name)


@FEW
@given(traces())
def test_a_training_step_updates_what_it_uses_and_adds_up_every_fork(trace):
    live = trace.without_dead_code()
    if not any(isinstance(op.kind, Linear) for op in live.ops):
        return
    step = training_step(trace)
    assert loads(dumps(step)) == step
    bound = step.bind(N=2)
    assert sum(op.kind.count for op in bound.ops if op.phase == "update") == live.bind(N=2).parameters
    # a tensor receives one gradient for each place where it is read by something that learns or is an end
    phases = {op.name for op in step.ops if op.phase.startswith("backward")}
    accumulated = [op for op in step.ops if op.kind == Add(accumulate=True)]
    assert all(set(op.inputs) <= phases | set(step.inputs) for op in accumulated)
    assert len({op.name for op in step.ops}) == len(step.ops)


@FEW
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.integers(0, 1))
def test_concatenation_adds_sizes(sizes, axis):
    shapes = [(3, n) if axis else (n, 3) for n in sizes]
    assert Concat(axis=axis).shape(shapes, ())[axis] == sum(sizes)


@each("name", lambda: sorted({op.kind for n in names() for op in load(n).ops}, key=repr))
def test_the_attributes_of_every_shipped_kind_are_read_as_they_are_written(name):
    kind, wrong = read(KINDS[name.op], written(name))
    assert (kind, wrong) == (name, [])
