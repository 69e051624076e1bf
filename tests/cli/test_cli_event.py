"""`--fidelity event`, `--streams` and `--timeline`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVENT = ("estimate", "--net", "googlenet", "--hw", "gtx_1080", "--batch", "16", "--fidelity", "event")


def test_an_estimate_writes_its_timeline_and_a_page_with_the_chart(cli: Any, tmp_path: Path) -> None:
    timeline, page = tmp_path / "out.json", tmp_path / "out.html"
    result = cli(*EVENT, "--streams", "4", "--timeline", str(timeline), "--html", str(page), "--all")
    assert result.code == 0
    assert "streams 4: ops that do not wait for each other overlap" in result.out
    assert result.err.count("archsim: wrote") == 2
    assert json.loads(timeline.read_text("utf-8"))["traceEvents"]
    assert "<h2>Timeline</h2>" in page.read_text("utf-8")


def test_any_fidelity_has_a_timeline(cli: Any, tmp_path: Path) -> None:
    for fidelity in ("roofline", "analytical"):
        place = tmp_path / f"{fidelity}.json"
        assert cli("estimate", "--net", "alexnet", "--hw", "i7_6700k", "--fidelity", fidelity, "--timeline", str(place)).code == 0
        assert json.loads(place.read_text("utf-8"))["traceEvents"]


def test_a_folder_that_is_not_there_is_said_and_nothing_is_written(cli: Any, tmp_path: Path) -> None:
    result = cli(*EVENT, "--timeline", str(tmp_path / "no" / "out.json"))
    assert result.code == 65
    assert "no folder" in result.err
    assert result.out == ""


def test_streams_need_the_event_level(cli: Any) -> None:
    result = cli("estimate", "--net", "googlenet", "--hw", "gtx_1080", "--streams", "4")
    assert result.code == 2
    assert "add --fidelity event" in result.err
