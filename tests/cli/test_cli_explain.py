"""`archsim explain`: what it prints, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

import archsim

CELL = ("--net", "alexnet", "--hw", "gtx_1080")


def test_the_verdict_comes_before_the_kernels_and_the_equations_on_request(cli: Any) -> None:
    words = ("explain", *CELL, "--layer", "conv2", "--stack", "caffe-cudnn4")
    first, full = cli(*words), cli(*words, "--equations")
    assert (first.code, first.err, full.code) == (0, "", 0)
    lines = first.out.splitlines()
    assert lines[0].startswith("conv2 of alexnet on gtx_1080 · conv2d, forward · inference · batch 1 · fp32 · caffe-cudnn4")
    assert len(lines) < 32
    for text in ("what no software can beat here", "199 FLOP/B", "times the least", "Arithmetic decides: ", "% of its time.",
                 "its workspace is over the limit", "assumed", "--equations"):  # fmt: skip
        assert text in first.out, text
        assert text in full.out or text == "--equations"
    for text in ("The fastest tiles", "C[128, 729] = A[128, 1200] B[1200, 729]", "128 FMA/clk x 0.97", "320 GB/s x 0.75",
                 "memory.bandwidth x memory.achievable", "Spec values", "whitepaper", "Constants", "fitted", "manual model"):
        assert text in full.out, text
        assert text not in first.out, text


def test_a_wait_for_the_host_is_a_row_and_a_sentence(cli: Any) -> None:
    text = cli("explain", *CELL, "--layer", "conv2").out
    assert "waiting for the host" in text
    found = cli("explain", *CELL, "--layer", "conv2", "--json").json
    share = 100 * found["wait_s"] / found["time_s"]
    assert f"host {share:.0f} %" in text
    assert f"({share:.0f} %) for the host to issue it." in text
    assert "host" not in cli("explain", "--net", "alexnet", "--hw", "i7_6700k", "--layer", "fc6").out


def test_json_is_the_same_as_data(cli: Any) -> None:
    found = cli("explain", *CELL, "--layer", "fc6", "--batch", "4", "--json").json
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
    assert "These 10 ops take 97 % of the time." in result.out
    assert cli("explain", *CELL, "--json").json[0]["layer"] == result.out.splitlines()[5].split()[0]


def test_all_kernels_or_the_longest(cli: Any) -> None:
    words = ("explain", *CELL, "--layer", "conv3", "--batch", "16")
    one, every = (cli(*words, more).out for more in ("--equations", "--all"))
    assert one.count("\nKernel ") == 1
    assert every.count("\nKernel ") > 1


def test_on_a_cpu_and_with_a_changed_spec(cli: Any) -> None:
    words = ("explain", "--net", "alexnet", "--hw", "i7_6700k", "--layer", "conv2", "--threads", "2")
    assert "l3.latency" in cli(*words, "--equations").out
    changed = cli(*words, "--set", "memory.bandwidth=10GB/s", "--json").json
    row = next(row for row in changed["spec"] if row["name"] == "memory.bandwidth")
    assert (row["value"], row["kind"], row["source"]) == (10e9, "set", "set by the user")


def test_the_cycle_model_says_what_an_sm_does(cli: Any) -> None:
    result = cli("explain", *CELL, "--layer", "norm1", "--fidelity", "cycle")
    assert (result.code, result.err) == (0, "")
    for text in ("norm1 of alexnet on gtx_1080", "cycle model", "CTAs on 20 SMs", "sm.registers and sm.warps let no more in",
                 "Waiting limits it: ", "long scoreboard", "FFMA after LDG.32, instruction 14 of 16 of the loop",
                 "What would relieve lrn", "sm.registers, sm.shared_memory"):  # fmt: skip
        assert text in result.out, text


def test_a_kernel_without_a_program_says_so(cli: Any) -> None:
    assert "keeps its closed form" in cli("explain", *CELL, "--layer", "pool1", "--fidelity", "cycle").out


def test_the_simulated_layer_is_that_of_the_estimate(cli: Any) -> None:
    found = cli("explain", *CELL, "--layer", "conv5", "--fidelity", "cycle", "--json").json
    estimate = archsim.estimate(net="alexnet", hw="gtx_1080", fidelity="cycle")
    assert found["schema"] == "archsim-simulated-layer/1"
    assert found["time_s"] == pytest.approx(next(op for op in estimate.ops if op.name == "conv5").time_s, rel=1e-12)
    assert sum(kernel["time_s"] for kernel in found["kernels"]) == pytest.approx(found["device_s"], rel=1e-12)
    for kernel in found["kernels"]:
        gap = kernel["time_s"] / kernel["launches"] - kernel["sm"]["busy_s"]
        assert gap == pytest.approx(2e-6, abs=2e-6)  # what stands between two launches
        saved = [one["saved"] for one in kernel["sm"]["improvements"]]
        assert saved == sorted(saved, reverse=True)
    assert {kernel["tile"] is None for kernel in found["kernels"]} == {True, False}


@pytest.mark.parametrize(("stack", "loop"), [("intel-mkl", "block of 1 x "), ("mxnet-mkl2017", "matrix times vector")])
def test_weights_that_a_library_copies_for_one_image_are_multiplied_from_panels(cli: Any, stack: str, loop: str) -> None:
    loops = {"block of 1 x ", "matrix times vector"}
    said = cli("explain", "--net", "alexnet", "--hw", "i7_6700k", "--stack", stack, "--layer", "fc8", "--fidelity", "cycle").out
    assert {name for name in loops if name in said} == {loop}
