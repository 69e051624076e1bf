"""Training steps: which gradients and updates a network has, and in which order."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import replace

import pytest

from archsim.trace import TASKS, Op, Trace, backward, dumps, loads, names, task_trace, training_step
from archsim.trace.op import Add, ArgMax, BatchNorm, CrossEntropy, Dropout, Embedding, Linear, Matmul, Mul, Relu, Slice, Softmax

from ..each import each
from ..shipped import load

DATA = ("N", 4)


def op(name: str, kind, *inputs: str, shape=DATA) -> Op:
    return Op(name=name, kind=kind, inputs=inputs, shape=shape)


def net(*ops: Op) -> Trace:
    return Trace(name="net", inputs={"data": DATA}, ops=ops)


def listed(trace: Trace) -> list[str]:
    return [one.name for one in trace.ops]


CHAIN = net(
    op("fc1", Linear(), "data"), op("relu", Relu(), "fc1"), op("fc2", Linear(), "relu"), op("prob", Softmax(), "fc2")
)  # fmt: skip


def test_a_step_is_forward_then_gradients_in_reverse_then_updates():
    assert listed(training_step(CHAIN)) == [
        "fc1", "relu", "fc2", "prob",
        "prob.backward", "fc2.backward_data", "fc2.backward_filter", "relu.backward", "fc1.backward_filter",
        "fc1.update", "fc2.update",
    ]  # fmt: skip


def test_each_task_has_its_part():
    assert task_trace(CHAIN, "inference") == CHAIN
    step = listed(training_step(CHAIN))
    assert listed(task_trace(CHAIN, "forward_backward")) == step[:9]
    assert listed(backward(CHAIN)) == step[4:9]
    assert listed(task_trace(CHAIN, "backward_update")) == step[4:]
    assert task_trace(CHAIN, "backward_update").inputs == backward(CHAIN).inputs


def test_gradients_alone_take_the_forward_tensors_that_they_read_as_inputs():
    assert backward(CHAIN).inputs == {"fc2": DATA, "relu": DATA, "data": DATA}


def test_a_softmax_at_the_end_becomes_the_loss_and_only_there():
    last = {one.name: one for one in training_step(CHAIN).ops}["prob"]
    assert (last.kind, last.shape) == (CrossEntropy(), ("N",))
    inner = net(op("fc1", Linear(), "data"), op("gate", Softmax(), "fc1"), op("fc2", Linear(), "gate"))
    assert {one.name: one for one in training_step(inner).ops}["gate"].kind == Softmax()


def test_without_a_loss_the_gradient_of_the_output_is_handed_in():
    trace = net(op("fc1", Linear(), "data"), op("relu", Relu(), "fc1"))
    step = training_step(trace)
    assert step.inputs == {"data": DATA, "relu.gradient": DATA}
    assert step.ops[2].inputs == ("relu.gradient", "relu")


def test_training_forward_normalises_by_batch_and_drops():
    trace = net(op("bn", BatchNorm(), "data"), op("drop", Dropout(), "bn"), op("fc", Linear(), "drop"))
    forward = training_step(trace).ops[:3]
    assert [one.kind for one in forward] == [BatchNorm(training=True), Dropout(training=True), Linear()]
    assert task_trace(trace, "inference").ops[0].kind == BatchNorm()


def test_what_depends_on_no_learned_value_gets_no_gradient():
    trace = net(op("relu", Relu(), "data"), op("fc", Linear(), "relu"), op("out", Add(), "fc", "relu"))
    names_of = listed(training_step(trace))
    assert "relu.backward" not in names_of
    assert "fc.backward_data" not in names_of
    assert "fc.backward_filter" in names_of


def test_a_tensor_read_k_times_gets_k_minus_one_adds():
    ops = [op("fc", Linear(), "data"), *[op(f"r{i}", Relu(), "fc") for i in range(4)]]
    trace = net(*ops, op("sum", Add(), "r0", "r1", "r2", "r3"), op("head", Linear(), "sum"))
    adds = [one for one in training_step(trace).ops if one.kind == Add(accumulate=True)]
    assert [one.name for one in adds] == ["fc.accumulate_1", "fc.accumulate_2", "fc.accumulate_3"]
    assert adds[0].inputs == ("r3.backward", "r2.backward")
    assert adds[1].inputs == ("fc.accumulate_1", "r1.backward")
    filters = [one for one in training_step(trace).ops if one.name == "fc.backward_filter"]
    assert filters[0].inputs == ("fc.accumulate_3", "data")


def test_a_tensor_used_twice_by_one_op_counts_twice():
    trace = net(op("fc", Linear(), "data"), op("square", Mul(), "fc", "fc"))
    adds = [one for one in training_step(trace).ops if one.kind == Add(accumulate=True)]
    assert [one.inputs for one in adds] == [("square.backward", "square.backward")]


def test_the_operands_of_a_matmul_each_get_their_gradient():
    trace = net(op("a", Linear(), "data"), op("b", Linear(), "data"), op("ab", Matmul(transpose_b=True), "a", "b"))
    trace = dataclasses.replace(trace, inputs={"data": (8, 4)})
    ops = [dataclasses.replace(one, shape=(8, 8) if one.name == "ab" else (8, 4)) for one in trace.ops]
    step = {one.name: one for one in training_step(trace.keeping(ops)).ops}
    assert step["a.backward_filter"].inputs == ("ab.backward_data", "data")
    assert step["b.backward_filter"].inputs == ("ab.backward_filter", "data")


def test_an_embedding_has_only_a_filter_gradient():
    table = op("table", Embedding(vocabulary=10, features=4), "tokens", shape=("N", 4))
    trace = Trace(name="net", inputs={"tokens": ("N",)}, ops=(table, op("fc", Linear(), "table")))
    assert listed(training_step(trace))[2:] == [
        "fc.backward_data", "fc.backward_filter", "table.backward_filter", "table.update", "fc.update"
    ]  # fmt: skip


def test_an_lstm_filter_gradient_waits_for_its_data_gradient():
    step = {one.name: one for one in training_step(load("lstm_ptb")).ops}
    assert step["lstm.backward_filter"].inputs == ("rows.backward", "embedding", "lstm.backward_data")
    assert step["embedding.backward_filter"].inputs == ("lstm.backward_data", "tokens")


def test_dead_layers_are_neither_run_nor_trained():
    names_of = listed(training_step(load("alexnet_s@mxnet")))
    assert not [name for name in names_of if name.split(".")[0] in ("conv4", "conv5", "fc6", "fc7")]
    assert "conv3.backward_filter" in names_of


def test_gradients_keep_the_shapes_of_the_forward_layer():
    bound = {one.name: one for one in training_step(load("alexnet")).bind(N=2).ops}
    forward = bound["conv2"]
    for phase in ("backward_data", "backward_filter"):
        gradient = bound[f"conv2.{phase}"]
        assert gradient.kind == forward.kind
        assert (gradient.input_shapes, gradient.shape) == (forward.input_shapes, forward.shape)
        assert (gradient.macs, gradient.phase, gradient.parent) == (forward.macs, phase, "conv2")


@pytest.mark.parametrize("optimiser", ["sgd", "sgd_momentum", "adam"])
def test_updates_name_the_optimiser(optimiser):
    update = training_step(CHAIN, optimiser).ops[-1]
    assert (update.kind.optimiser, update.kind.count, update.inputs) == (optimiser, 20, ("fc2.backward_filter",))


@each("name", names())
def test_every_shipped_network_trains(name):
    trace = task_trace(load(name), "inference")
    forward, step = trace.bind(N=2), training_step(trace)
    bound = step.bind(N=2)
    updated = [one for one in bound.ops if one.phase == "update"]
    assert sum(one.kind.count for one in updated) == forward.parameters == bound.parameters
    # each learned layer has a filter gradient of its own cost, and all but those that read raw data a data gradient
    filters = sum(one.macs for one in bound.ops if one.phase == "backward_filter")
    data = sum(one.macs for one in bound.ops if one.phase == "backward_data")
    unlearned = set(forward.inputs)  # and what is made of them alone by ops that multiply nothing
    for one in forward.ops:
        made = not one.macs and not one.parameters and unlearned.issuperset(one.inputs)
        unlearned |= {one.name} if made else set()
    raw = sum(one.macs for one in forward.ops if set(one.inputs) & unlearned)
    attended = sum(one.macs for one in forward.ops if one.kind.op == "attention")  # both gradients of its products are one op
    assert sum(one.macs for one in bound.ops if one.phase == "backward") == 2 * attended
    assert filters == forward.macs - attended
    assert data == forward.macs - attended - raw
    # the order is one that could run
    seen = set(bound.inputs)
    for one in bound.ops:
        assert seen.issuperset(one.inputs)
        seen.add(one.name)
    # every gradient that is sent is used, or updates something
    unread = set(step.ends)
    assert {one.name for one in bound.ops if one.phase.startswith("backward")}.isdisjoint(unread)


@each("name", ["alexnet", "resnet_50", "googlenet", "lstm_ptb", "densenet_121"])
@each("task", TASKS)
def test_a_training_trace_can_be_written_and_read(name, task):
    trace = task_trace(load(name), task)
    assert loads(dumps(trace)) == trace


def test_residual_networks_add_one_gradient_at_each_block():
    step = training_step(load("resnet_50"))
    assert len([one for one in step.ops if one.kind == Add(accumulate=True)]) == 16


@pytest.mark.parametrize(
    ("trace", "task", "sentence"),
    [
        (CHAIN, "train", "unknown task 'train'; one of inference, forward, backward"),
        (training_step(CHAIN), "training_step", "holds gradients or updates already: it runs as it is"),
        (net(op("relu", Relu(), "data")), "training_step", "has no learned values"),
        (
            net(op("fc", Linear(), "data"), op("fc.update", Linear(), "fc")),
            "training_step",
            "uses the name 'fc.update'",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(trace, task, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        task_trace(trace, task)


# --------------------------------------------------------------------------------------------------- as others time it


def test_slices_that_are_the_whole_tensor_have_gradients_side_by_side():
    """What adds their gradients would read and write all of the tensor once more for each."""
    halves = [op(name, Slice(axis=1, start=start, stop=start + 2, whole=True), "fc1", shape=("N", 2))
              for name, start in (("left", 0), ("right", 2))]  # fmt: skip
    trace = net(op("fc1", Linear(), "data"), *halves, op("sum", Add(), "left", "right", shape=("N", 2)))
    gradients = {one.name: one for one in backward(trace).ops}
    assert "fc1.accumulate_1" not in gradients
    assert {"left.backward", "right.backward"} <= set(gradients["fc1.backward_filter"].inputs)
    apart = net(*[dataclasses.replace(one, kind=dataclasses.replace(one.kind, whole=False)) if one in halves else one
                  for one in trace.ops])  # fmt: skip
    assert "fc1.accumulate_1" in listed(backward(apart))


def test_an_index_of_the_largest_value_has_no_gradient_and_no_other_op_waits_for_one():
    fc = op("fc", Linear(), "data", shape=("N", 8))
    loss = op("loss", CrossEntropy(), "fc", shape=("N",))
    predicted = op("predicted", ArgMax(), "fc", shape=("N",))
    plain, counted = training_step(net(fc, loss)), training_step(replace(net(fc, loss, predicted), outputs=("loss", "predicted")))
    assert set(listed(counted)) - set(listed(plain)) == {"predicted"}
    assert counted.inputs == plain.inputs


def test_stored_statistics_stay_stored_in_training():
    norms = [op("own", BatchNorm(), "data"), op("stored", BatchNorm(stored=True), "own")]
    kinds = {one.name: one.kind for one in training_step(net(*norms, op("prob", Softmax(), "stored"))).ops}
    assert (kinds["own"].training, kinds["stored"].training) == (True, False)
