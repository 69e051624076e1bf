"""`archsim cache`: programs and layers, text, JSON and page, and clear words for what cannot be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from archsim.answers.caches import curve_chart
from archsim.estimation.request import find_device
from archsim.explain.caches import of_trace

PROGRAM = str(Path(__file__).parents[1] / "cache" / "valgrind" / "program.lackey.gz")
TRACE = ("cache", "--hw", "i7_6700k", "--trace", PROGRAM)
LAYER = ("cache", "--net", "alexnet", "--layer", "conv5")


def test_a_program(cli: Any) -> None:
    result = cli(*TRACE)
    assert result.code == 0
    for word in ("L1", "L2", "L3", "6,458 accesses", "demand", "fully associative", "assumed  ", "policy lru"):
        assert word in result.out
    assert "L1 serves 97.9 %" in result.out
    assert result.err == ""


def test_json_is_one_object_whose_counts_add_up(cli: Any) -> None:
    answer = json.loads(cli(*TRACE, "--json").out)
    assert answer["schema"] == "archsim-cache/1"
    for level in answer["levels"]:
        count = level["count"]
        missed = count["read_misses"] + count["write_misses"]
        assert level["cold"] + level["capacity"] + level["conflict"] == missed
        assert level["miss_rate"] == pytest.approx(missed / (missed + count["read_hits"] + count["write_hits"]))
    misses = [point[1] for point in answer["curve"]]
    assert misses == sorted(misses, reverse=True)


def test_plain_and_fast_say_the_same(cli: Any) -> None:
    assert cli(*TRACE, "--json").out == cli(*TRACE, "--json", "--plain").out


def test_instructions_are_a_second_core(cli: Any) -> None:
    alone, both = (json.loads(cli(*TRACE, "--json", *more).out) for more in ((), ("--instructions",)))
    assert both["cores"] == 2
    assert both["accesses"] > alone["accesses"]


def test_a_layer_on_a_gpu_and_on_a_cpu(cli: Any) -> None:
    gpu = json.loads(cli(*LAYER, "--hw", "gtx_1080", "--json").out)
    assert [level["name"] for level in gpu["levels"]] == ["L1", "L2"]
    assert gpu["cores"] == 20
    assert gpu["dram_bytes"] > 1e6
    cpu = json.loads(cli(*LAYER, "--hw", "i7_6700k", "--json", "--no-curve").out)
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


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (gzip.compress(b" L 1000,8\n" * 1000)[:-12], "truncated"),
        (gzip.compress(b" L 00001000,8\n" * 2_000_000), "inflates to more than"),
        (b" L 1000,8\n L \x1b[2Jwhere,8\n", "line 2"),
    ],
    ids=["truncated", "bomb", "text for an address"],
)
def test_a_bad_trace(cli: Any, tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "a").write_bytes(content)
    result = cli("cache", "--hw", "i7_6700k", "--trace", str(tmp_path / "a"), "--plain")
    assert result.code == 65
    assert text in result.err
    assert len(result.err.splitlines()) == 1
    assert "\x1b" not in result.err


def test_the_command_prints_the_three_times(cli: Any) -> None:
    words = ("cache", "--hw", "i7_6700k", "--trace", PROGRAM, "--no-curve", "--plain")
    text = cli(*words, "--time").out
    for part in ("accesses overlap within 224 instructions", "at least", "at most", "front end", "per clock", "accesses hit  L1"):
        assert part in text
    timing = json.loads(cli(*words, "--time", "--json").out)["timing"]
    assert timing["lower_s"] <= timing["time_s"] <= timing["upper_s"]
    assert json.loads(cli(*words, "--json").out)["timing"] is None
    found = cli("cache", "--hw", "i7_6700k", "--net", "alexnet", "--layer", "conv1", "--time")
    assert found.code == 2
    assert "--time belongs to --trace" in found.err
