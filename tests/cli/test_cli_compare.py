"""`archsim compare`: rankings and curves on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BUYER = ("compare", "--net", "alexnet", "--hw", "tesla_k40,gtx_1080,tesla_v100_sxm2", "--batch", "16")
CROSS = ("compare", "--hw", "tegra_x1_cpu,gtx_1080", "--batch", "1:4:x2")


def test_places_and_certainty_are_printed(cli: Any) -> None:
    out = cli(*BUYER).out
    for text in ("by speed per watt", "by speed per dollar", "before next", "whole order right", "independent",
                 "no launch price is known of tesla_v100_sxm2"):  # fmt: skip
        assert text in out, text
    assert "correlation 0.5" in cli(*BUYER, "--correlation", "0.5").out


def test_json_has_the_places(cli: Any) -> None:
    rows = json.loads(cli(*BUYER, "--by", "dollar", "--json").out)
    assert [row["hardware"] for row in rows] == ["gtx_1080", "tesla_k40", "tesla_v100_sxm2"]
    assert rows[0]["ranking"]["dollar"]["place"] == 1
    assert rows[2]["ranking"]["dollar"] is None
    assert rows[2]["ranking"]["speed"]["place"] == 1
    assert 0.5 <= rows[2]["ranking"]["speed"]["before_next"] <= 1


def test_curves_name_crossing_memory_and_ops(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    out = cli(*CROSS, "--html", str(page)).out
    for text in ("Time per sample", "gtx_1080 is faster than tegra_x1_cpu from the first batch", "largest batch that fits",
                 "never faster:", "Times include copying"):  # fmt: skip
        assert text in out, text
    assert "Ops that gain on gtx_1080" in page.read_text("utf-8")
    assert "Times include copying" not in cli(*CROSS, "--no-copies").out


def test_curves_as_json_and_csv(cli: Any) -> None:
    found = json.loads(cli(*CROSS, "--json").out)
    assert found["schema"] == "archsim-curves/1"
    assert [p["batch"] for p in found["curves"][0]["points"]] == [1, 2, 4]
    assert found["copies"] is True
    assert {row["guest"] for row in found["payoffs"]} == {"gtx_1080"}
    assert len(cli(*CROSS, "--csv").out.splitlines()) == 7


def test_a_point_of_a_curve_is_the_single_comparison(cli: Any) -> None:
    curves = json.loads(cli(*CROSS, "--json", "--no-copies").out)["curves"]
    single = json.loads(cli("compare", "--hw", "gtx_1080", "--batch", "4", "--json").out)[0]
    point = next(c for c in curves if c["hardware"] == "gtx_1080")["points"][-1]
    assert point["latency_s"] == pytest.approx(single["latency_s"], rel=1e-12)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--hw", "gtx_1080", "--batch", "8:1:x2"), "comes before"), (("--hw", "gtx_1080", "--batch", "1:8"), "FIRST:LAST:STEP"),
        (("--hw", "gtx_1080,gtx_9999"), "nearest"), (("--hw", "gtx_1080", "--correlation", "2"), "correlation"),
        (("--hw", "gtx_1080", "--json", "--csv"), "choose one"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(cli: Any, words: tuple[str, ...], text: str) -> None:
    result = cli("compare", *words)
    assert (result.code, result.out) == (2, "")
    assert text in result.err
