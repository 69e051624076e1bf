"""`archsim sensitivity`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from archsim.answers.sensitivity import sections
from archsim.estimation.request import make_request
from archsim.render.blocks import Table
from archsim.study.sensitivity import Sensitivity, sensitivity

ALEXNET = ("sensitivity", "--net", "alexnet", "--hw", "tegra_x1")


def test_the_verdict_names_what_matters_most_in_words(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "s.html"
    result = cli(*ALEXNET, "--layers", "--html", str(page))
    for text in ("What the latency depends on", "sm.count (streaming multiprocessors that are enabled) matters most: 25 % less",
                 "Limited by memory", "memory.achievable and 3 alike", "read by analytical, event, cycle",
                 "sm.shared_bandwidth, ", "read by cycle", "read by archsim cache", "read by no model",
                 "at a step"):  # fmt: skip
        assert text in result.out, text
        assert text in page.read_text("utf-8"), text
    assert len(cli(*ALEXNET).out.splitlines()) <= 24


def test_a_bar_goes_from_no_change_to_both_ends() -> None:
    request = make_request("alexnet", "tegra_x1")
    values = tuple(sensitivity(request, ["sm.count", "memory.bandwidth"]))
    blocks = sections(Sensitivity(request=request, values=values, step=0.01, span=0.25, output="latency_s"))
    table = next(block for block in blocks if isinstance(block, Table))
    less, more, zero = table.rows[0][3].bar
    assert (more.start, more.end, less.start, less.end) == (0.0, zero.end, zero.end, 1.0)  # less is slower, and the widest
    assert 0.0 < table.rows[1][3].bar[1].start < zero.end


def test_json_and_csv_agree(cli: Any) -> None:
    found = cli(*ALEXNET, "--json").json
    rows = cli(*ALEXNET, "--csv").rows
    assert found["schema"] == "archsim-sensitivity/1"
    assert [row["key"] for row in rows] == [value["key"] for value in found["values"]]
    for row, value in zip(rows, found["values"], strict=True):
        if value["elasticity"]:
            assert float(row["elasticity_latency_s"]) == value["elasticity"]["latency_s"]


def test_energy_can_be_asked_for(cli: Any) -> None:
    out = cli(*ALEXNET, "--of", "energy", "--keys", "power.idle,memory.bandwidth").out
    assert "What the energy depends on" in out
    assert "sm.count" not in out
