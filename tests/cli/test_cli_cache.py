"""`archsim cache`: programs and layers, text, JSON and page, and clear words for what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archsim.answers.caches import curve_chart
from archsim.estimation.hardware import find_device
from archsim.explain.caches import of_trace

PROGRAM = str(Path(__file__).parents[1] / "cache" / "valgrind" / "program.lackey.gz")
TRACE = ("cache", "--hw", "i7_6700k", "--trace", PROGRAM)
LAYER = ("cache", "--net", "alexnet", "--layer", "conv5")


def test_json_is_one_object_whose_counts_add_up(cli: Any) -> None:
    result = cli(*TRACE, "--json")
    assert (result.code, result.err, result.out) == (0, "", cli(*TRACE, "--json", "--plain").out)
    answer = result.json
    assert answer["schema"] == "archsim-cache/1"
    for level in answer["levels"]:
        count = level["count"]
        missed = count["read_misses"] + count["write_misses"]
        assert level["cold"] + level["capacity"] + level["conflict"] == missed
        assert level["miss_rate"] == pytest.approx(missed / (missed + count["read_hits"] + count["write_hits"]))
    misses = [point[1] for point in answer["curve"]]
    assert misses == sorted(misses, reverse=True)


def test_instructions_are_a_second_core(cli: Any) -> None:
    alone, both = (cli(*TRACE, "--json", *more).json for more in ((), ("--instructions",)))
    assert both["cores"] == 2
    assert both["accesses"] > alone["accesses"]


def test_a_layer_on_a_gpu_and_on_a_cpu(cli: Any) -> None:
    gpu = cli(*LAYER, "--hw", "gtx_1080", "--json").json
    assert [level["name"] for level in gpu["levels"]] == ["L1", "L2"]
    assert gpu["cores"] == 20
    assert gpu["dram_bytes"] > 1e6
    cpu = cli(*LAYER, "--hw", "i7_6700k", "--json", "--no-curve").json
    assert [level["name"] for level in cpu["levels"]] == ["L1", "L2", "L3"]
    assert cpu["curve"] == []
    assert cpu["levels"][0]["cold"] is None


def test_the_curve_reaches_the_largest_level_and_names_all() -> None:
    answer = of_trace(find_device("i7_6700k", {}), PROGRAM)
    chart = curve_chart(answer)
    assert [(said, size) for _, size, said in chart.guides] == [(x.name, x.size) for x in answer.levels]
    assert chart.series[0].x[-1] == answer.levels[-1].size
    ways = answer.levels[0].ways
    assert all(full == in_sets for size, full, in_sets in answer.curve if size <= 64 * ways)  # one set of as many ways as fit


def test_sets_and_ways_over_time(cli: Any, tmp_path: Path) -> None:
    """Sixteen lines 4 KiB apart fall into one set of eight ways, in which each drives out the one that came eight before it."""
    trace = tmp_path / "walk.din"
    trace.write_text("".join(f"0 {4096 * (i % 16):x}\n" for i in range(32)))
    words = ("cache", "--hw", "i7_6700k", "--trace", str(trace), "--sets", "--no-curve")
    found = cli(*words, "--json").json["stays"]
    assert {(stay["set"], stay["until"] - stay["since"]) for stay in found if stay["since"] < 24} == {(0, 8)}
    assert [stay["address"] // 4096 for stay in found if stay["way"] == 3] == [3, 11, 3, 11]
    assert len(found) == 32  # all miss
    assert "set 0 way 3      4  3000 3-11, b000 11-19" in cli(*words).out
    assert "belongs to --trace" in cli(*LAYER, "--hw", "i7_6700k", "--sets").err


def test_the_three_times_are_of_a_program(cli: Any) -> None:
    timing = cli(*TRACE, "--time", "--no-curve", "--json").json["timing"]
    assert timing["lower_s"] <= timing["time_s"] <= timing["upper_s"]
    assert "accesses overlap within 224 instructions" in cli(*TRACE, "--time", "--no-curve").out
    found = cli(*LAYER, "--hw", "i7_6700k", "--time")
    assert found.code == 2
    assert "--time belongs to --trace" in found.err
