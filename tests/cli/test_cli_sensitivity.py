"""`archsim sensitivity`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

ALEXNET = ("sensitivity", "--net", "alexnet", "--hw", "tegra_x1")


def test_the_table_says_what_matters_and_what_does_not(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "s.html"
    result = cli(*ALEXNET, "--html", str(page))
    for text in ("memory.bandwidth", "-0.5", "without effect here: ", "read by --fidelity cycle alone: sm.shared_bandwidth, ",
                 "read by --traffic simulated alone: l1.sector, l2.sector", "read by no model:", "at a step"):
        assert text in result.out, text
    assert "<h1>Sensitivity" in page.read_text("utf-8")


def test_json_and_csv_agree(cli: Any) -> None:
    found = json.loads(cli(*ALEXNET, "--json").out)
    rows = list(csv.DictReader(io.StringIO(cli(*ALEXNET, "--csv").out)))
    assert found["schema"] == "archsim-sensitivity/1"
    assert [row["key"] for row in rows] == [value["key"] for value in found["values"]]
    for row, value in zip(rows, found["values"], strict=True):
        if value["elasticity"]:
            assert float(row["elasticity_latency_s"]) == value["elasticity"]["latency_s"]


def test_energy_can_be_asked_for(cli: Any) -> None:
    out = cli(*ALEXNET, "--of", "energy", "--keys", "power.idle,memory.bandwidth").out
    assert "energy at -25 %" in out
    assert "sm.count" not in out
