"""`archsim explain`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

import archsim

CELL = ("--net", "alexnet", "--hw", "gtx_1080")


def test_the_text_has_the_equations_with_their_numbers(cli: Any) -> None:
    result = cli("explain", *CELL, "--layer", "conv2", "--stack", "caffe-cudnn4")
    assert (result.code, result.err) == (0, "")
    for text in ("conv2 of alexnet on gtx_1080", "448.1 MFLOP", "implicit_gemm", "its workspace is over the limit",
                 "The fastest tiles", "C[128, 729] = A[128, 1200] B[1200, 729]", "128 FMA/clk x 0.97", "320 GB/s x 0.75",
                 "memory.bandwidth x memory.achievable", "Spec values", "whitepaper", "Constants", "fitted", "assumed",
                 "limited by"):  # fmt: skip
        assert text in result.out, text


def test_json_is_the_same_as_data(cli: Any) -> None:
    found = json.loads(cli("explain", *CELL, "--layer", "fc6", "--batch", "4", "--json").out)
    estimate = archsim.estimate(net="alexnet", hw="gtx_1080", batch=4)
    op = next(op for op in estimate.ops if op.name == "fc6")
    assert found["schema"] == "archsim-explanation/1"
    assert found["time_s"] == pytest.approx(op.time_s, rel=1e-9)
    assert found["latency_s"] == pytest.approx(estimate.latency_s, rel=1e-9)
    steps = {step["name"]: step for step in found["kernels"][0]["steps"]}
    assert steps["dram"]["right"] == pytest.approx(steps["dram"]["value"], rel=1e-9)
    assert steps["dram"]["names"]["memory.bandwidth"] == [320e9, "B/s"]
    assert {"memory.bandwidth", "sm.count"} <= {row["name"] for row in found["spec"]}


def test_without_a_layer_the_slowest_are_listed(cli: Any) -> None:
    result = cli("explain", *CELL)
    assert result.code == 0
    assert "--layer NAME" in result.out
    assert len(result.out.splitlines()) == 14
    assert json.loads(cli("explain", *CELL, "--json").out)[0]["layer"] == result.out.splitlines()[4].split()[0]


def test_all_kernels_or_the_longest(cli: Any) -> None:
    words = ("explain", *CELL, "--layer", "conv3", "--batch", "16")
    one, every = (cli(*words, *more).out for more in ((), ("--all",)))
    assert one.count("\nKernel ") == 1
    assert every.count("\nKernel ") > 1


def test_on_a_cpu_and_with_a_changed_spec(cli: Any) -> None:
    words = ("explain", "--net", "alexnet", "--hw", "i7_6700k", "--layer", "conv2", "--threads", "2")
    assert "l3.latency" in cli(*words).out
    changed = json.loads(cli(*words, "--set", "memory.bandwidth=10GB/s", "--json").out)
    row = next(row for row in changed["spec"] if row["name"] == "memory.bandwidth")
    assert (row["value"], row["kind"], row["source"]) == (10e9, "set", "set by the user")


def test_the_cycle_model_says_what_an_sm_does(cli: Any) -> None:
    result = cli("explain", *CELL, "--layer", "norm1", "--fidelity", "cycle")
    assert (result.code, result.err) == (0, "")
    for text in ("norm1 of alexnet on gtx_1080", "cycle model", "CTAs on 20 SMs", "sm.registers and sm.warps let no more in",
                 "of the issue slots", "occupancy", "long scoreboard", "FFMA after LDG.32, instruction 14 of 16 of the loop",
                 "What would relieve it", "room for CTAs (sm.registers, "):  # fmt: skip
        assert text in result.out, text


def test_a_kernel_without_a_program_says_so(cli: Any) -> None:
    assert "keeps its closed form" in cli("explain", *CELL, "--layer", "pool1", "--fidelity", "cycle").out


def test_the_simulated_layer_is_that_of_the_estimate(cli: Any) -> None:
    found = json.loads(cli("explain", *CELL, "--layer", "conv5", "--fidelity", "cycle", "--json").out)
    estimate = archsim.estimate(net="alexnet", hw="gtx_1080", fidelity="cycle")
    assert found["schema"] == "archsim-simulated-layer/1"
    assert found["time_s"] == pytest.approx(next(op for op in estimate.ops if op.name == "conv5").time_s, rel=1e-12)
    assert sum(kernel["time_s"] for kernel in found["kernels"]) == pytest.approx(found["device_s"], rel=1e-12)
    for kernel in found["kernels"]:
        gap = kernel["time_s"] / kernel["launches"] - kernel["sm"]["busy_s"]
        assert gap == pytest.approx(2e-6, abs=2e-6)  # what stands between two launches
        saved = [one["saved"] for one in kernel["sm"]["relief"]]
        assert saved == sorted(saved, reverse=True)
    assert {kernel["tile"] is None for kernel in found["kernels"]} == {True, False}


@pytest.mark.parametrize(("stack", "loop"), [("intel-mkl", "block of 1 x "), ("mxnet-mkl2017", "matrix times vector")])
def test_weights_that_a_library_copies_for_one_image_are_multiplied_from_panels(cli: Any, stack: str, loop: str) -> None:
    loops = {"block of 1 x ", "matrix times vector"}
    said = cli("explain", "--net", "alexnet", "--hw", "i7_6700k", "--stack", stack, "--layer", "fc8", "--fidelity", "cycle").out
    assert {name for name in loops if name in said} == {loop}
