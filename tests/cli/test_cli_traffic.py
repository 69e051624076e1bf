"""`--traffic simulated`: what says so, what moves, what refuses it, and that a second run finds it in the memo."""

from __future__ import annotations

from typing import Any

import pytest

from archsim.cache import launch
from archsim.estimation.memo import memo

CPU = ("--net", "resnet_18", "--hw", "i7_6700k", "--batch", "4", "--traffic", "simulated")
GPU = ("--net", "lenet5", "--hw", "gtx_1080", "--traffic", "simulated")


def estimated(cli: Any, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = cli("estimate", *words, "--json").json
    return found


def test_the_answer_says_which(cli: Any) -> None:
    closed, simulated = estimated(cli, *CPU[:-2]), estimated(cli, *CPU)
    assert (closed["traffic"], simulated["traffic"]) == ("closed", "simulated")
    assert closed["dram_bytes"] != simulated["dram_bytes"]
    text = cli("estimate", *CPU, "--all").out
    assert "simulated traffic" in text.splitlines()[0]
    assert "traffic simulated: the constants of the model were fitted with the closed forms" in text


@pytest.mark.parametrize("change", [("--scale", f"{level}.size=0.25") for level in ("l1", "l2", "l3")] + [
    ("--set", "l1.line=128B"), ("--set", "l2.ways=16"), ("--set", "l3.ways=4"), ("--set", "l2.size=1MiB")])  # fmt: skip
def test_every_level_of_a_cpu_moves_the_time(cli: Any, change: tuple[str, str]) -> None:
    before, after = estimated(cli, *CPU), estimated(cli, *CPU, *change)
    assert (before["latency_s"], before["energy_j"]) != (after["latency_s"], after["energy_j"])


@pytest.mark.parametrize("change", [("--scale", "l1.size=0.125"), ("--scale", "l2.size=0.0625"), ("--set", "l1.sector=128B"),
                                    ("--set", "l2.sector=128B"), ("--set", "l1.ways=1"), ("--set", "l2.ways=1")])  # fmt: skip
def test_every_level_of_a_gpu_moves_the_energy(cli: Any, change: tuple[str, str]) -> None:
    batch = ("--net", "alexnet", "--hw", "gtx_1080", "--batch", "2", "--traffic", "simulated")
    assert estimated(cli, *batch)["energy_j"] != estimated(cli, *batch, *change)["energy_j"]


def test_a_second_run_simulates_nothing(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHSIM_MEMO", "off")
    memo().close()
    memo.cache_clear()
    first = estimated(cli, *GPU)

    def never(*_: object) -> None:
        raise AssertionError("simulated again")

    monkeypatch.setattr(launch, "_simulated", never)
    assert estimated(cli, *GPU)["latency_s"] == first["latency_s"]
    memo.cache_clear()


def test_other_commands_take_it(cli: Any) -> None:
    one = ("--net", "lenet5", "--hw", "i7_6700k", "--traffic", "simulated")
    for words in (("explain", *one, "--layer", "c3"), ("compare", *one), ("whatif", *one, "--scale", "l2.size=0.25"),
                  ("sweep", *one, "--vary", "l3.size=1MiB,8MiB"), ("sensitivity", *one, "--keys", "l2.size")):  # fmt: skip
        assert cli(*words).code == 0, words


def test_a_fidelity_without_caches_refuses_it(cli: Any) -> None:
    result = cli("estimate", "--net", "alexnet", "--hw", "i7_6700k", "--traffic", "simulated", "--fidelity", "roofline")
    assert result.code == 2
    assert "traffic simulated: the roofline model moves every tensor once, whatever the caches" in result.err
