"""The fuzzer itself: every target runs, what breaks is noticed, and a seed gives the same case again."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from . import __main__ as fuzzer
from . import check, mutate
from .targets import TARGETS, Target

FEW = {"store": 4, "command": 8, "measurements": 6, "spec_deep": 4}


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_takes_what_it_is_given(name: str, tmp_path: Path) -> None:
    for number in range(FEW.get(name, 12)):
        data = TARGETS[name].make(Random(f"test {number}"))
        assert fuzzer.one(TARGETS[name], data, tmp_path) in ("", fuzzer.REFUSED)
        fuzzer.clear(tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_a_sound_input_reaches_the_end(name: str, tmp_path: Path) -> None:
    assert fuzzer.one(TARGETS[name], TARGETS[name].sound(), tmp_path) == ""


def test_a_seed_gives_the_same_case_again() -> None:
    for target in TARGETS.values():
        assert target.make(Random("a")) == target.make(Random("a"))


def broken(kind: str) -> Target:
    def run(data: bytes, folder: Path) -> None:
        if kind == "exception":
            raise KeyError(data)
        if kind == "hang":
            while True:
                pass
        if kind == "infinite":
            check.json_of('{"a": Infinity}')
        check.all_finite({"a": [1.0, float("nan")]})

    return Target(name=kind, make=lambda random: b"x", sound=lambda: b"x", run=run, weight=1)


@pytest.mark.parametrize("kind", ["exception", "hang", "infinite", "nan"])
def test_what_breaks_is_a_finding(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzer, "in_time", lambda: check.in_time(0.2))
    said = fuzzer.one(broken(kind), b"x", tmp_path)
    assert {"exception": "KeyError", "hang": "Hang", "infinite": "Infinity in JSON", "nan": "nan is not finite"}[kind] in said


def test_findings_are_counted_and_kept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(TARGETS, "exception", broken("exception"))
    keep, state = tmp_path / "found", tmp_path / "counts.json"
    assert fuzzer.fuzz(["exception"], 1, 20, 10.0, keep, state) == 1
    assert fuzzer.fuzz(["exception"], 2, 10, 10.0, keep, state) == 1
    assert json.loads(state.read_text())["exception"]["cases"] == 30
    assert sorted(path.suffix for path in keep.iterdir()) == ["", ".txt"]
    assert "10 cases of this run, 1 findings" in capsys.readouterr().out


def test_changes_stay_small_and_are_changes() -> None:
    random, value = Random(1), {"a": [1, {"b": "c"}], "d": None}
    changed = [mutate.text_of('x = { value = "5 GB/s" }\n' * 50, random) for _ in range(200)]
    assert max(map(len, changed)) <= mutate.MOST
    assert len(set(changed)) > 150
    others: list[Any] = [mutate.json_value(value, random) for _ in range(50)]
    assert sum(other != value for other in others) > 40
