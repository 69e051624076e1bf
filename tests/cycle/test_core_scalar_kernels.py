"""Kernels whose loop a library runs value by value, in `--fidelity cycle`: programs where their instructions are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import archsim
from archsim.calibration.constants import default
from archsim.estimation.request import make_request
from archsim.explain.simulated import simulate_layer
from tests.each import each

SMALL = [
    {"schema": "archsim-trace/1", "name": "small", "inputs": {"x": ["N", 16, 9, 9]}, "dtype": "fp32", "source": "test"},
    {"op": "conv2d", "name": "c", "in": ["x"], "out": ["N", 20, 9, 9], "kernel": [3, 3], "stride": [1, 1], "pad": [1, 1],
     "groups": 1},
    {"op": "relu", "name": "r", "in": ["c"], "out": ["N", 20, 9, 9]},
    {"op": "max_pool", "name": "p", "in": ["r"], "out": ["N", 20, 4, 4], "kernel": [3, 3], "stride": [2, 2], "pad": [0, 0]},
    {"op": "lrn", "name": "n", "in": ["p"], "out": ["N", 20, 4, 4], "size": 5},
]  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("traces") / "small.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in SMALL))
    return str(path)


def loops(trace: str, layer: str, stack: str = "caffe-openblas", threads: int = 1, **settings: str) -> dict[str, float]:
    """Clocks of an iteration of each loop of a layer, by name."""
    request = make_request(trace, "i7_6700k", stack=stack, fidelity="cycle", threads=threads, settings=settings)
    return {loop.name: loop.cycles for kernel in simulate_layer(request, layer).kernels for loop in kernel.loops}


@each(("layer", "names"), [
    ("c", {"im2col", "further operations of a scalar loop"}), ("p", {"max pooling"}),
    ("r", {"step of a scalar loop", "further operations of a scalar loop"}),
    ("n", {"pow of the C library", "step of a scalar loop"}),
])  # fmt: skip
def test_what_is_counted_runs_as_programs(trace: str, layer: str, names: set[str]) -> None:
    assert names <= set(loops(trace, layer))


def test_what_is_inferred_from_times_keeps_its_closed_form(trace: str) -> None:
    assert loops(trace, "r", stack="mxnet-openblas") == {}
    assert loops(trace, "r", stack="torch7-cpu") == {}  # branches on the signs of single values


def test_a_misprediction_slows_pooling_down(trace: str) -> None:
    usual, late = (loops(trace, "p", **given)["max pooling"] for given in ({}, {"pipeline.mispredict": "60 clk"}))
    assert late > usual + 5.0


def test_a_hyper_thread_that_spins_takes_half_of_the_front_end(trace: str) -> None:
    """Four cores: beyond four threads of OpenBLAS, those that wait spin beside the one that unfolds."""
    alone, beside = (loops(trace, "c", threads=threads)["im2col"] for threads in (4, 8))
    assert beside == pytest.approx(2.0 * alone, rel=0.02)


def test_clocks_of_scalar_loops_move_nothing_that_is_simulated(trace: str) -> None:
    """The time of a network of counted loops is that of their programs, whatever a step is said to take."""
    other = default().with_values({"loop.exps_clk": 99.0})
    times = [archsim.estimate(trace, "i7_6700k", stack="caffe-openblas", fidelity="cycle", threads=1, **more).latency_s
             for more in ({}, {"calibration": other})]  # fmt: skip
    assert times[0] == times[1]
