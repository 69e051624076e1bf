"""`--memory-clock` on the command line: which commands take it, what they say of it."""

from __future__ import annotations

from typing import Any

LOWER = ("--net", "alexnet", "--hw", "titan_x_maxwell", "--memory-clock", "810MHz")


def test_a_memory_clock_is_echoed_and_explained(cli: Any) -> None:
    assert cli("estimate", *LOWER, "--json").json["memory_clock_hz"] == 810e6
    assert "1.119 GHz, memory 810 MHz" in cli("estimate", *LOWER).out
    assert "memory 3.505 GHz" not in cli("estimate", *LOWER[:4]).out
    explained = cli("explain", *LOWER, "--layer", "relu1", "--equations").out
    assert "memory.bandwidth x memory_clock_share" in explained
    assert "energy.idle_memory x (1 - memory_clock_share)" in explained


def test_a_sweep_takes_memory_clocks_and_says_which_a_memory_cannot_have(cli: Any) -> None:
    found = cli("sweep", "--net", "alexnet", "--hw", "titan_x_maxwell", "--vary", "memory_clock=810MHz,3505MHz,4005MHz", "--csv")
    rows = found.rows
    slow, usual, above = rows
    assert float(slow["latency_s"]) > 1.5 * float(usual["latency_s"])
    assert float(slow["power_w"]) < float(usual["power_w"])
    assert not above["latency_s"]
    assert "above 3.505 GHz" in above["problem"]
