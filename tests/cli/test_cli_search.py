"""`archsim search`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ALEXNET = ("search", "--net", "alexnet", "--hw", "gtx_1080")
GRID = ("--vary", "memory.bandwidth=100GB/s:500GB/s:5lin", "--vary", "sm.count=8:40:8")


def test_best_front_and_base_are_printed(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "f.html"
    result = cli(*ALEXNET, *GRID, "--minimise", "energy", "--where", "latency_s < 0.002 and power_w < 200", "--html", str(page))
    assert result.code == 0
    for text in ("wanted      least energy where latency_s < 0.002", "every point: 25", "Best:", "base",
                 "Pareto front of energy and area", "area and cost are estimates"):  # fmt: skip
        assert text in result.out, text
    assert "Pareto front" in page.read_text("utf-8")


def test_json_and_csv_hold_the_same_rows(cli: Any) -> None:
    words = (*ALEXNET, *GRID, "--minimise", "latency,area", "--top", "2")
    found = json.loads(cli(*words, "--json").out)
    assert (found["schema"], len(found["best"]), found["points"]) == ("archsim-search/1", 2, 25)
    rows = cli(*words, "--csv").out.splitlines()
    assert len(rows) == 1 + len(found["best"]) + len(found["front"])


def test_a_sample_repeats_with_its_seed(cli: Any) -> None:
    words = (*ALEXNET, "--vary", "memory.bandwidth=100GB/s:500GB/s:log", "--sample", "50", "--minimise", "energy", "--json")
    assert cli(*words).out == cli(*words).out
    assert cli(*words).out != cli(*words, "--seed", "2").out


def test_nothing_within_the_limits_is_an_answer(cli: Any) -> None:
    assert "No point meets the conditions" in cli(*ALEXNET, *GRID, "--minimise", "energy", "--where", "latency < 1us").out


def test_a_target_names_every_way(cli: Any) -> None:
    out = cli(*ALEXNET, "--batch", "16", "--target", "throughput=3000/s").out
    for text in ("the base device has", "memory.bandwidth", "all hardware values", "x "):
        assert text in out, text
    found = json.loads(cli(*ALEXNET, "--target", "latency=1ms", "--vary", "clock", "--json").out)
    assert [way["knobs"] for way in found["ways"]] == [["clock"]]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (GRID, "no objective"), (("--minimise", "energy"), "nothing varies"), ((*GRID, "--minimise", "enrgy"), "energy"),
        ((*GRID, "--minimise", "energy", "--where", "latency is low"), "not a condition"),
        (("--minimise", "energy", "--vary", "sm.count=40:8:8"), "runs backwards"),
        (("--minimise", "energy", "--vary", "sm.count=8:40"), "--sample"), (("--target", "speed"), "OUTPUT=VALUE"),
        (("--target", "latency=1ms", "--where", "power < 3W"), "--target goes with"),
        ((*GRID, "--minimise", "energy", "--sample", "5", "--trials", "5"), "give one of them"),
        ((*GRID, "--minimise", "energy", "--link", "l2.size=batch"), "not varied"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(cli: Any, words: tuple[str, ...], text: str) -> None:
    result = cli(*ALEXNET, *words)
    assert (result.code, result.out) == (2, "")
    assert text in result.err


def test_a_missing_extra_says_how_to_get_it(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    result = cli(*ALEXNET, *GRID, "--minimise", "energy", "--trials", "5")
    assert result.code == 69
    assert 'pip install "archsim[dse]"' in result.err
