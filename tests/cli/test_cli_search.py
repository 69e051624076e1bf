"""`archsim search`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from archsim.answers.search import sections
from archsim.cli import change
from archsim.estimation.request import make_request
from archsim.render.blocks import Chart
from archsim.study.axis import axis_of
from archsim.study.objective import objectives
from archsim.study.search import SearchGoal, with_default_front
from archsim.study.search import search as search_points
from archsim.study.space import Space

ALEXNET = ("search", "--net", "alexnet", "--hw", "gtx_1080")
GRID = ("--vary", "memory.bandwidth=100GB/s:500GB/s:5lin", "--vary", "sm.count=8:40:8")


def test_the_best_point_stands_beside_the_device_as_it_is(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "f.html"
    result = cli(*ALEXNET, *GRID, "--minimise", "energy", "--where", "latency_s < 0.002 and power_w < 200", "--html", str(page))
    assert result.code == 0
    for text in ("Least energy where latency_s < 0.002", "Best with memory.bandwidth", "Limited by", "every point: 25",
                 "area and cost are estimates"):  # fmt: skip
        assert text in result.out, text
        assert text in page.read_text("utf-8").replace("&lt;", "<"), text
    rows = [line.split() for line in result.out.splitlines() if line.startswith(("  best", "  as it is"))]
    assert [row[0] for row in rows] == ["as", "best"]


def test_the_chart_has_the_front_with_its_settings_on_axes_that_fit() -> None:
    request = make_request("alexnet", "gtx_1080")
    space = Space(bases=({"net": "alexnet", "hw": "gtx_1080"},), axes=tuple(axis_of(text, "gpu") for text in GRID[1::2]))
    goal = SearchGoal(objectives=tuple(objectives(["latency", "area"], [])))
    found = search_points(request, space, with_default_front(goal, space.knobs, True))
    (chart,) = (block for block in sections(found) if isinstance(block, Chart))
    names = [series.name for series in chart.series if series.name]
    assert set(names) == {"other points", "Pareto front", "as it is", "best"}
    assert any(label.startswith("memory.bandwidth") for series in chart.series for label in series.labels)
    assert chart.y.ends is not None
    assert chart.y.ends[0] > 0.5 * min(row["area_mm2"] for row in found.cloud)


def test_json_and_csv_hold_the_same_rows(cli: Any) -> None:
    words = (*ALEXNET, *GRID, "--minimise", "latency,area", "--top", "2")
    found = cli(*words, "--json").json
    assert (found["schema"], len(found["best"]), found["points"]) == ("archsim-search/1", 2, 25)
    rows = cli(*words, "--csv").out.splitlines()
    assert len(rows) == 1 + len(found["best"]) + len(found["front"])


def test_a_sample_repeats_with_its_seed(cli: Any) -> None:
    words = (*ALEXNET, "--vary", "memory.bandwidth=100GB/s:500GB/s:log", "--sample", "50", "--minimise", "energy", "--json")
    assert cli(*words).out == cli(*words).out
    assert cli(*words).out != cli(*words, "--seed", "2").out


def test_a_target_starts_from_the_length_of_the_sequence(cli: Any) -> None:
    found = cli("search", "--net", "gpt2_small", "--hw", "gtx_1080", "--target", "latency=1s", "--vary", "seq_len",
                           "--json").json  # fmt: skip
    assert found["ways"][0]["factor"] == 1.0


def test_very_many_points_are_asked_about(cli: Any) -> None:
    words = (*ALEXNET, "--minimise", "energy", "--vary", "sm.count=1:1000:1", "--vary")
    result = cli(*words, "memory.bandwidth=100GB/s:1TB/s:1000log")
    assert (result.code, result.out) == (2, "")
    assert "1,000,000 points would take about" in result.err
    assert "more than 3,000,000" in cli(*words, "memory.bandwidth=100GB/s:1TB/s:5000log", "--yes").err


def test_yes_goes_on_with_many_points(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "MANY", 25)
    assert cli(*ALEXNET, *GRID, "--minimise", "energy").code == 2
    assert cli(*ALEXNET, *GRID, "--minimise", "energy", "--yes").code == 0


def test_a_target_names_every_way(cli: Any) -> None:
    out = cli(*ALEXNET, "--batch", "16", "--target", "throughput=3000/s").out
    for text in ("To reach throughput 3000/s", "As it is: ", "The least change is", "memory.bandwidth", "all hardware values"):
        assert text in out, text
    found = cli(*ALEXNET, "--target", "latency=1ms", "--vary", "clock", "--json").json
    assert [way["knobs"] for way in found["ways"]] == [["clock"]]


def test_a_missing_extra_says_how_to_get_it(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    result = cli(*ALEXNET, *GRID, "--minimise", "energy", "--trials", "5")
    assert result.code == 69
    assert 'pip install "archsim[dse]"' in result.err


def test_dies_that_no_mask_can_make_are_left_out_unless_asked_for(cli: Any, tmp_path: Path) -> None:
    words = (*ALEXNET, "--vary", "sm.count=20,40,80,160", "--minimise", "latency")
    page = tmp_path / "f.html"
    out = cli(*words, "--html", str(page)).out
    assert "2 are left out because no mask can make so large a die (--any-die counts them)" in out
    assert "2 are left out because no mask" in page.read_text("utf-8")
    assert not re.search(r"^ *best +160 ", out, re.M)
    found = cli(*words, "--json").json
    assert (found["feasible"], found["no_mask"], {row["one_die"] for row in found["best"]}) == (2, 2, {1.0})
    every = cli(*words, "--any-die").out
    assert "left out" not in every
    assert re.search(r"160 .* mm2, no mask", every)


def test_a_search_among_too_large_dies_says_why_it_finds_nothing(cli: Any) -> None:
    result = cli(*ALEXNET, "--vary", "sm.count=160,320", "--minimise", "latency")
    assert result.code == 1
    assert "no point meets the conditions; 2 are left out because no mask" in result.err


def test_two_dies_may_be_as_large_as_those_that_are_sold(cli: Any) -> None:
    words = ("search", "--net", "alexnet", "--hw", "b200_sxm", "--minimise", "latency", "--vary")
    assert cli(*words, "sm.count=148,160", "--json").json["no_mask"] == 0
    assert cli(*words, "sm.count=148,400", "--json").json["no_mask"] == 1
