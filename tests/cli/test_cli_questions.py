"""Questions that people ask: each command gives its answer, and each mistake says the way out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from archsim.cli.computer import hello
from archsim.study.objective import BadCondition
from archsim.study.within import conditions_of

WORDS = ("compare", "--net", "alexnet", "--hw", "gtx_1080,i7_6700k", "--where")


def test_who_reaches_it_and_who_does_not_is_printed(cli: Any) -> None:
    out = cli(*WORDS, "latency < 5ms").out
    for text in ("the largest batch with latency < 5ms", "GTX 1080: ", "closest  Core i7-6700K: batch 1: latency",
                 "times as fast with --stack"):  # fmt: skip
        assert text in out, text
    rows = cli(*WORDS, "latency < 5ms", "--json").json
    assert [(row["hardware"], row["missed"] is None, row["where"]) for row in rows] == [
        ("gtx_1080", True, ["latency < 5ms"]), ("i7_6700k", False, ["latency < 5ms"])]  # fmt: skip
    assert rows[0]["latency_s"] < 5e-3 <= rows[1]["latency_s"]


def test_a_condition_that_nobody_reaches_or_that_makes_no_sense(cli: Any) -> None:
    result = cli(*WORDS, "latency < 1us")
    assert (result.code, "No device reaches latency < 1us" in result.out) == (1, True)
    assert "leave out batch" in cli(*WORDS, "latency < 5ms", "--batch", "4").err
    assert re.search(r"Core i7-6700K: batch 1: latency [0-9.]+ ms, too much", cli(*WORDS, "latency < 0s").out)
    assert "one of latency, throughput" in cli(*WORDS, "speed < 5ms").err
    with pytest.raises(BadCondition, match="lacks its unit"):
        conditions_of("latency < 5")


def test_several_batches_stand_side_by_side(cli: Any) -> None:
    words = ("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--batch")
    out = cli(*words, "1,16,2000").out
    for text in ("batch 1, 16, 2000 ", "Batch 16 does 2.34 times the img/s of batch 1, with 56 % less energy per img",
                 "NO: does not fit", "Where the time goes", "conv2d"):  # fmt: skip
        assert text in out, text
    both = cli(*words, "1,16", "--json").json
    assert both == [cli(*words, batch, "--json").json for batch in ("1", "16")]
    assert len(cli(*words, "1,16", "--csv").out.splitlines()) == 2 * len(cli(*words, "1", "--csv").out.splitlines()) - 1


def test_a_condition_holds_for_any_of_several_batches(cli: Any) -> None:
    words = ("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--batch", "1,16", "--fail-if")
    assert [cli(*words, f"latency > {limit}").code for limit in ("30ms", "300ms")] == [1, 0]
    assert "of one batch" in cli(*words[:-1], "--html", "a.html").err


def test_the_nearest_measured_batch_is_named(cli: Any) -> None:
    out = cli("estimate", "--net", "alexnet", "--hw", "i7_6700k", "--batch", "128").out
    assert "nearest   242 img/s with the same software (NVIDIA Jetson TX1 whitepaper" in out
    assert "batch 48 samples, not 128 samples" in out
    there = cli("estimate", "--net", "alexnet", "--hw", "i7_6700k", "--batch", "48").out
    assert "measured  242 img/s" in there
    assert "nearest " not in there


def test_a_command_line_without_a_command_says_what_to_do_here(cli: Any) -> None:
    """All three commands work by copy and paste."""
    found = cli()
    assert (found.code, found.err) == (0, "")
    said, _, *commands = found.out.splitlines()
    assert said.startswith("This computer")
    assert len(commands) == 3
    for line in commands:
        assert cli(*line.partition("#")[0].split()[1:]).code == 0, line


def test_a_computer_that_tells_nothing_is_said_to(tmp_path: Path) -> None:
    assert hello(tmp_path).startswith("This computer cannot be described")
    assert "--hw i7_6700k" in hello(tmp_path)
    card = tmp_path / "proc" / "driver" / "nvidia" / "gpus" / "0"
    card.mkdir(parents=True)
    (card / "information").write_text("Model: \t\t NVIDIA L4\nIRQ: 1\n", "utf-8")
    (tmp_path / "proc" / "cpuinfo").write_text("processor : 0\nmodel name : A CPU\n", "utf-8")
    assert hello(tmp_path).startswith("This computer: A CPU, 1 core, NVIDIA L4.")


def test_torch_is_pytorch_where_that_is_usual(cli: Any) -> None:
    words = ("compare", "--net", "alexnet", "--stack", "torch", "--csv", "--hw")
    stacks = [cli(*words, hw).out.splitlines()[1].split(",")[2] for hw in ("l4", "gtx_1080", "i9_13900k")]
    assert stacks == ["pytorch-2", "torch7-cudnn5.1", "pytorch-cpu"]


def test_default_stacks_of_several_frameworks_are_said(cli: Any) -> None:
    words = ("compare", "--net", "alexnet", "--hw", "l4,gtx_1080")
    assert "not comparable: torch7 (GTX 1080) beside pytorch; --stack pytorch asks" in cli(*words).out
    assert "not comparable" not in cli(*words, "--stack", "pytorch").out
