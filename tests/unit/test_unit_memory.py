"""Memory, counted by hand on a network of four ops."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.base.files import data_folder
from archsim.estimation.memory import Footprint, fits, footprint, footprint_of, largest
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.trace import BoundTrace

from .. import shipped
from ..each import each
from ..shipped import line

N = 4
OPS = [
    line("conv2d", "c", "data", ["N", 5, 4, 4], kernel=[3, 3]),
    line("relu", "r", "c", ["N", 5, 4, 4]),
    line("reshape", "f", "r", ["N", 80]),
    line("linear", "l", "f", ["N", 10]),
]
DATA, CONV, FC = N * 2 * 6 * 6, N * 5 * 4 * 4, N * 10
LEARNED = (5 * 2 * 9 + 5) + (80 * 10 + 10)


def network(task: str, *ops: dict[str, Any]) -> BoundTrace:
    return shipped.network(*(ops or OPS), task=task, batch=N, data=["N", 2, 6, 6])


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
    convs = [OPS[0], OPS[1], line("conv2d", "d", "r", ["N", 7, 4, 4], kernel=[1, 1])]
    found = footprint(network("inference", *convs), 4, 0.0, 0.0)
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


def test_layers_that_keep_their_output_and_gradient_share_nothing() -> None:
    inference, training = (footprint(network(task), 4, 0.0, 0.0, True) for task in ("inference", "forward_backward"))
    assert inference.activations == 4 * (DATA + CONV + FC)
    assert training.activations == footprint(network("forward_backward"), 4, 0.0, 0.0).activations
    assert training.gradients == 4 * (LEARNED + 2 * CONV)  # more than those of the convolution and of the linear layer together


def test_a_stack_says_which_ops_work_in_place() -> None:
    in_place, apart = (footprint(network("inference"), 4, 0.0, 0.0, True, ops) for ops in (("relu",), ()))
    assert apart.activations - in_place.activations == 4 * CONV


def test_a_network_that_ran_out_of_memory_does_not_fit_and_one_that_ran_does() -> None:
    """ResNet-200 at batch 16 trained on the Titan X cards of cnn-benchmarks, whose GTX 1080 was too small for it."""
    cell = {"net": "resnet_200", "batch": 16, "task": "training_step", "stack": "torch7-cudnn5.1"}
    assert not archsim.estimate(hw="gtx_1080", **cell).fits
    assert archsim.estimate(hw="titan_x_maxwell", **cell).fits
    assert archsim.estimate(hw="titan_x_pascal", **cell).fits


def measured_to_fit() -> list[tuple[str, str, str, str, int]]:
    """(network, hardware, stack, task, batch) of published Torch runs on GPUs: what was measured had room."""
    with data_folder("reports/published").joinpath("networks.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == "jcjohnson" and row["split"] != "watched"]
    cells = [(row["network"], row["hardware"], row["stack"], "forward_backward", int(row["batch"])) for row in rows
             if row["task"] == "forward_backward" and "cudnn5.1" in row["stack"]]  # fmt: skip
    return list(dict.fromkeys(cells))


def test_whatever_was_measured_fits() -> None:
    cells = measured_to_fit()
    assert len(cells) > 10
    for net, hw, stack, task, batch in cells:
        request = make_request(net, hw, stack=stack, task=task, batch=batch)
        assert fits(footprint_of(request, run(request)), request.spec.device.memory.capacity), (net, hw)


@pytest.mark.parametrize(
    ("net", "hw", "choices"),
    [
        ("alexnet", "tegra_x1", {}),
        ("resnet_50", "gtx_1080", {"task": "training_step"}),
        ("vgg_16", "tesla_v100_sxm2", {"precision": "fp16", "stack": "pytorch-2"}),
        ("squeezenet_1_0", "gtx_480", {"task": "training_step", "stack": "ideal"}),
        ("lstm_32", "gtx_980", {"task": "training_step"}),
        ("squeezenet_1_0", "i7_6700k", {}),
    ],
)
def test_the_largest_batch_fits_and_one_more_does_not(net: str, hw: str, choices: dict[str, str]) -> None:
    largest_one = archsim.estimate(net=net, hw=hw, **choices).max_batch
    assert largest_one == archsim.estimate(net=net, hw=hw, batch=7, **choices).max_batch
    assert archsim.estimate(net=net, hw=hw, batch=largest_one, **choices).fits
    assert not archsim.estimate(net=net, hw=hw, batch=largest_one + 1, **choices).fits


def test_a_network_that_never_fits_has_no_batch() -> None:
    found = archsim.estimate(net="vgg_16", hw="gtx_1080", set={"memory.capacity": "256 MiB"})
    assert (found.max_batch, found.fits) == (0, False)


def test_a_network_of_a_fixed_batch_has_no_largest_one(tmp_path: Path) -> None:
    text = shipped.written(*OPS, data=["N", 2, 6, 6]).replace('"N"', "4")
    (tmp_path / "fixed.jsonl").write_text(text)
    assert archsim.estimate(net=str(tmp_path / "fixed.jsonl"), hw="gtx_1080").max_batch is None


@each("guess", [0, 1, 41, 42, 43, 999, 10**9])
@each("limit", [1, 10, 42, 1000])
@each(
    "need", [lambda n: 5.0 + 2 * n, lambda n: n**3, lambda n: 10.0 * (n > 42), lambda n: 1.0 if n < 43 else math.inf]
)
def test_the_search_does_not_depend_on_its_guess(guess: int, limit: int, need: Callable[[int], float]) -> None:
    asked: list[int] = []

    def noted(number: int) -> float:
        asked.append(number)
        return need(number)

    assert largest(noted, need(42), (7, need(7)), guess, limit) == min(42, limit)
    assert all(1 <= number <= limit for number in asked)
    assert len(asked) <= 8 + 10  # a few along lines, the rest halves a thousand
    assert largest(lambda number: math.inf, 1.0, (7, 1.0), guess, limit) == 0


def test_a_straight_line_is_followed_to_its_end() -> None:
    asked: list[int] = []
    assert largest(lambda n: asked.append(n) or 5.0 + 2 * n, 90.0, (7, 19.0), 999, 1000) == 42
    assert len(asked) <= 4


def test_how_the_memory_was_counted_is_said() -> None:
    notes = archsim.estimate(net="alexnet", hw="gtx_1080").assumptions
    assert any(note.startswith("memory: each layer keeps its output") and "300 MB of context" in note for note in notes)
