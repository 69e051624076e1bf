"""Memory, counted by hand on a network of four ops."""

from __future__ import annotations

import json

import archsim
from archsim.footprint import Footprint, footprint
from archsim.trace import BoundTrace, loads, task_trace

N = 4
HEAD = {"schema": "archsim-trace/1", "name": "t", "inputs": {"data": ["N", 2, 6, 6]}, "dtype": "fp32", "source": "test"}
OPS = [
    {"op": "conv2d", "name": "c", "in": ["data"], "out": ["N", 5, 4, 4], "kernel": [3, 3]},
    {"op": "relu", "name": "r", "in": ["c"], "out": ["N", 5, 4, 4]},
    {"op": "reshape", "name": "f", "in": ["r"], "out": ["N", 80]},
    {"op": "linear", "name": "l", "in": ["f"], "out": ["N", 10]},
]
DATA, CONV, FC = N * 2 * 6 * 6, N * 5 * 4 * 4, N * 10
LEARNED = (5 * 2 * 9 + 5) + (80 * 10 + 10)


def network(task: str) -> BoundTrace:
    text = "".join(json.dumps(record) + "\n" for record in (HEAD, *OPS))
    return task_trace(loads(text, "t.jsonl"), task).bind(N=N)


def test_inference_keeps_a_tensor_until_its_last_reader_has_run() -> None:
    """The peak is while the convolution runs: input and output. ReLU and reshape work in place."""
    found = footprint(network("inference"), 4, 1000.0, 2000.0)
    assert found == Footprint(parameters=4.0 * LEARNED, activations=4.0 * (DATA + CONV), gradients=0.0, optimiser=0.0,
                              workspace=1000.0, reserved=2000.0)  # fmt: skip
    assert found.total == 4 * (LEARNED + DATA + CONV) + 3000


def test_training_keeps_every_tensor_and_the_largest_gradients() -> None:
    found = footprint(network("training_step"), 4, 0.0, 0.0)
    assert found.parameters == 4 * LEARNED
    assert found.activations == 4 * (DATA + CONV + FC + FC)  # this network ends without a loss: its last gradient is handed in
    assert found.gradients == 4 * (LEARNED + 2 * CONV)
    assert found.optimiser == 4 * LEARNED  # momentum


def test_what_works_in_place_keeps_its_place_occupied() -> None:
    """conv -> relu -> conv: while the second convolution runs, its input is still there, though a ReLU wrote it."""
    convs = [OPS[0], OPS[1], {"op": "conv2d", "name": "d", "in": ["r"], "out": ["N", 7, 4, 4], "kernel": [1, 1]}]
    text = "".join(json.dumps(record) + "\n" for record in (HEAD, *convs))
    found = footprint(loads(text, "t.jsonl").bind(N=N), 4, 0.0, 0.0)
    assert found.activations == 4 * max(DATA + CONV, CONV + N * 7 * 4 * 4)


def test_gradients_without_updates_have_no_optimiser() -> None:
    found = footprint(network("forward_backward"), 4, 0.0, 0.0)
    assert found.optimiser == 0
    assert found.gradients == 4 * (LEARNED + 2 * CONV)


def test_the_gradients_alone_know_their_parameters() -> None:
    assert footprint(network("backward"), 4, 0.0, 0.0).parameters == 4 * LEARNED


def test_narrow_values_take_half() -> None:
    wide, narrow = (footprint(network("inference"), element, 0.0, 0.0) for element in (4, 2))
    assert wide.total == 2 * narrow.total


def test_known_networks() -> None:
    alexnet = archsim.estimate(net="alexnet", hw="gtx_1080", stack="ideal")
    assert alexnet.memory.parameters == 4 * 60_965_224
    vgg = archsim.estimate(net="vgg_16", hw="gtx_1080", stack="ideal", batch=16)
    assert vgg.memory.parameters == 4 * 138_357_544
    assert vgg.memory.activations == 4 * 16 * 2 * 64 * 224 * 224  # input and output of the second convolution


def test_what_does_not_fit_is_said() -> None:
    small = archsim.estimate(net="vgg_16", hw="tegra_x1", batch=1)
    large = archsim.estimate(net="vgg_16", hw="tegra_x1", batch=256)
    assert small.fits
    assert not large.fits
    assert any("does not fit" in warning for warning in large.warnings)
    assert large.memory_bytes > 0.95 * large.memory_capacity_bytes


def test_memory_grows_with_the_batch() -> None:
    sizes = [
        archsim.estimate(net="alexnet", hw="gtx_1080", batch=batch, task="training_step").memory_bytes
        for batch in (1, 2, 16, 128)
    ]
    assert sizes == sorted(set(sizes))
