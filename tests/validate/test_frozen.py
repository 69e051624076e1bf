"""The frozen result: the same on every run, changed by what must change it, and never out of date."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import archsim.evidence.readers
from archsim.calibration.constants import default
from archsim.estimation.measured import PARTS
from archsim.evidence.case import Case
from archsim.evidence.readers import data_hash, read
from archsim.validation import frozen
from archsim.validation.predict import predict

from ..measurements import ROW

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]

CELLS = [
    (network, hardware, metric)
    for network in ("alexnet", "googlenet")
    for hardware, metric in (("gtx_1080", "latency_s"), ("gtx_980", "throughput_per_s"), ("gtx_1080", "power_w"))
]


@pytest.fixture
def cases(write: Write) -> list[Case]:
    """Six cells measured exactly as predicted: two latencies, two rates, two powers."""
    lines = [f"me,{n},{h},caffe-cudnn5.1,inference,16,fp32,,1,,{m},1.0,calibrate" for n, h, m in CELLS]
    found, skips = read(write(*lines))
    assert skips == []
    return [replace(case, measured=float(value)) for case, value in zip(found, predict(found, default()), strict=True)]


def freeze(cases: list[Case], **more: Any) -> dict[str, Any]:
    return frozen.freeze(cases, [], default(), data="d", version="v", **more)


def doctored(cases: list[Case]) -> list[Case]:
    return [replace(cases[0], measured=cases[0].measured / 2), *cases[1:]]


def test_a_perfect_model_has_no_error(cases: list[Case]) -> None:
    s = freeze(cases)
    time = s["overall"]["time"]
    assert (time["n"], time["mape"], time["bias"], time["coverage"]) == (4, 0.0, 0.0, 1.0)
    assert time["baselines"]["roofline"]["median"] > 0.1
    assert s["overall"]["power"]["n"] == 2
    assert s["by_source"]["me"] == s["by_kind"]["gpu"] == s["overall"]
    assert s["by_class"] == {"gpu inference": {"time": time}, "gpu power": {"power": s["overall"]["power"]}}
    assert s["networks"] == {"all": time, "gpu": time}
    assert {name: of["rows"] for name, of in s["devices"].items()} == {"gtx_1080": 4, "gtx_980": 2}
    assert {(of["n"], of["bias"]) for of in s["devices"].values()} == {(2, 0.0)}


def test_one_row_that_is_100_percent_off_changes_it_as_it_must(cases: list[Case]) -> None:
    time = freeze(doctored(cases))["overall"]["time"]
    assert (time["mape"], time["median"], time["p90"]) == (0.25, 0.0, 0.7)
    assert time["coverage"] == 0.75


def test_every_part_is_left_out_once(cases: list[Case]) -> None:
    parts = freeze(cases)["ablation"]
    assert list(parts) == list(PARTS)
    assert all(own["n"] == 4 for own in parts.values())
    assert max(own["median"] for own in parts.values()) > 0.01


# ------------------------------------------------------------------------------------------------- on the command line


@pytest.fixture
def tiny(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped corpus of two rows, one of them of an unknown device."""
    path = write(ROW, ROW.replace("gtx_1080", "gtx_0"))
    monkeypatch.setattr(archsim.evidence.readers, "shipped_files", lambda: [Path(path)])
    monkeypatch.setattr(frozen, "served_cases", lambda: ([], []))


@pytest.mark.usefixtures("tiny")
def test_the_command_writes_both_files_and_the_same_twice(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    assert run("validate", "--freeze", str(folder))[0] == 0
    first = {place.name: place.read_bytes() for place in folder.iterdir()}
    assert sorted(first) == ["served.json", "validation.json"]
    assert run("validate", "--freeze", str(folder))[0] == 0
    assert first == {place.name: place.read_bytes() for place in folder.iterdir()}
    s = json.loads(first["validation.json"])
    assert s["schema"] == "archsim-validation-summary/1"
    assert s["provenance"]["data"] == data_hash()
    assert s["overall"]["time"]["n"] == 1
    assert sum(s["skipped"].values()) == 1


@pytest.mark.parametrize(("words", "said", "code"), [
    (("--limit", "3"), "--limit: no effect with --freeze", 2), (("--without", "waves"), "--without: no effect", 2),
    (("--json",), "--json: no effect", 2), (("--disturbed",), "--disturbed: no effect", 2),
    (("--freeze", "no/such"), "no folder", 65),
])  # fmt: skip
def test_what_cannot_stand_beside_freeze_is_refused(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str, code: int
) -> None:
    found, _, error = run("validate", "--freeze", str(tmp_path), *words)
    assert found == code
    assert said in error
    assert [*tmp_path.iterdir()] == []
