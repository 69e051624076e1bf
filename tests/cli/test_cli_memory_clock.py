"""`--memory-clock` on the command line: which commands take it, what they say of it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from tests.each import each

LOWER = ("--net", "alexnet", "--hw", "titan_x_maxwell", "--memory-clock", "810MHz")


def test_a_memory_clock_is_echoed_and_explained(cli: Any) -> None:
    assert json.loads(cli("estimate", *LOWER, "--json").out)["memory_clock_hz"] == 810e6
    assert "1.119 GHz, memory 810 MHz, analytical model" in cli("estimate", *LOWER, "--no-layers").out
    usual = cli("estimate", *LOWER[:4], "--no-layers").out
    assert "memory 3.505 GHz" not in usual
    explained = cli("explain", *LOWER, "--layer", "relu1").out
    assert "memory.bandwidth x memory_clock_share" in explained
    assert "energy.idle_memory x (1 - memory_clock_share)" in explained


TAKING = (
    ("compare", "--net", "alexnet", "--hw", "titan_x_maxwell,titan_xp", "--memory-clock", "3GHz"),
    ("whatif", *LOWER[:4], "--to", "memory_clock=810MHz"), ("sensitivity", *LOWER, "--keys", "memory.bandwidth"),
    ("search", *LOWER[:4], "--minimise", "energy", "--vary", "memory_clock=810MHz,3300MHz,3505MHz"),
    ("simulate", "serve", *LOWER, "--rate", "50/s", "--requests", "20"), ("simulate", "train", *LOWER, "--devices", "1"),
    ("simulate", "sm", "--hw", "titan_x_maxwell", "--kernel", "stream read=1 write=1", *LOWER[4:]),
)  # fmt: skip


@each("words", TAKING)
def test_every_command_that_estimates_takes_a_memory_clock(cli: Any, words: tuple[str, ...]) -> None:
    found = cli(*words)
    assert found.code == 0, found.err


def test_a_sweep_takes_memory_clocks_and_says_which_a_memory_cannot_have(cli: Any) -> None:
    found = cli("sweep", "--net", "alexnet", "--hw", "titan_x_maxwell", "--vary", "memory_clock=810MHz,3505MHz,4005MHz", "--csv")
    rows = list(csv.DictReader(io.StringIO(found.out)))
    slow, usual, above = rows
    assert float(slow["latency_s"]) > 1.5 * float(usual["latency_s"])
    assert float(slow["power_w"]) < float(usual["power_w"])
    assert not above["latency_s"]
    assert "above 3.505 GHz" in above["problem"]
