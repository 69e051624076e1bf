"""`archsim tune` and `--energy-budget`: forms of the answer, exit codes, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TUNE = ("tune", "--net", "alexnet", "--hw", "tesla_v100_sxm2", "--batch", "8", "--vary", "clock=600MHz:1530MHz:30MHz")


def test_the_verdict_has_the_setting_and_what_it_saves(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "front.html"
    found = cli(*TUNE, "--where", "latency < 20ms", "--html", str(page))
    assert found.code == 0
    for text in ("Least energy per sample where latency_s < 20ms", "% less energy per sample", "80 %: -", "Best with core clock",
                 "memory clock 876 MHz", "power limit 120 W to 300 W (13)", "The best is limited by"):  # fmt: skip
        assert text in found.out, text
        assert text in page.read_text("utf-8").replace("&lt;", "<"), text
    assert len(cli(*TUNE, "--all").out.splitlines()) > len(found.out.splitlines())
    assert "more: --all" in found.out


def test_json_and_csv_hold_the_same_settings(cli: Any) -> None:
    found = cli(*TUNE, "--json").json
    rows = cli(*TUNE, "--csv").rows
    assert [row["which"] for row in rows] == ["default", "best", *["front"] * len(found["front"])]
    assert float(rows[1]["energy_per_sample_j"]) == found["best"]["energy_per_sample_j"] < found["default"]["energy_per_sample_j"]
    assert found["points"] == 32 * 13
    saved = found["saved"]["energy_per_sample_j"]
    assert saved["interval"][0] < saved["ratio"] < saved["interval"][1]
    assert saved["uncertain"] == (saved["interval"][1] >= 1.0)


def test_a_deadline_that_nothing_meets_ends_with_1_and_the_nearest(cli: Any) -> None:
    found = cli(*TUNE, "--where", "latency < 1us")
    assert found.code == 1
    assert found.err.count("\n") == 1
    assert "archsim: no setting meets latency_s < 1us; the nearest has core clock 1.53 GHz" in found.err
    assert "No setting meets latency_s < 1us; the nearest has" in found.out
    assert "% less" not in found.out


def test_a_budget_below_the_least_energy_ends_with_1_and_the_least(cli: Any) -> None:
    found = cli(*TUNE, "--energy-budget", "1mJ", "--json")
    assert found.code == 1
    assert "no setting meets energy_per_sample_j <= 1 mJ; the nearest has" in found.err
    assert found.json["best"] is None


def test_an_estimate_takes_the_highest_clock_within_a_budget(cli: Any) -> None:
    words = ("estimate", "--net", "resnet_50", "--hw", "tesla_v100_sxm2", "--batch", "16", "--energy-budget")
    budget = 0.9 * cli(*words[:-1], "--json").json["energy_j"] / 16
    found = cli(*words, f"{budget} J", "--json").json
    assert 0.98 * budget < found["energy_j"] / 16 <= budget
    assert found["energy_budget_j"] == budget
    assert any("mJ per sample: core clock" in line for line in found["assumptions"])
    refused = cli(*words, "1mJ")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "mJ at least, at a core clock of" in refused.err
    assert cli(*words, "5W").code == 2


def test_settings_that_no_device_has_are_counted_with_their_reason(cli: Any) -> None:
    found = cli("tune", "--net", "alexnet", "--hw", "i7_6700k", "--vary", "clock=2GHz", "--vary", "memory_clock=1GHz")
    assert found.code == 1
    assert "no setting is possible: memory clock 1 GHz: i7_6700k is a CPU" in found.err
