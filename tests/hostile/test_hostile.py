"""Every hostile input ends in one clear message and the right code, and nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .run import FOLDER, Case, cases, judged

HERE = [path.stem for path in sorted(FOLDER.glob("*.toml"))]


def failures(chosen: list[Case], folder: Path) -> list[str]:
    found = []
    for case in chosen:
        place = folder / "case"
        place.mkdir()
        found += [f"{case}\n    {wrong}" for wrong in judged(case, place)]
        shutil.rmtree(place)
    return found


def whats(name: str) -> list[str]:
    return list(dict.fromkeys(case.what for case in cases(name)))


QUICK = [(name, what) for name in HERE if name != "processes" for what in whats(name)]
SLOW = [("processes", what) for what in whats("processes")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "what"), QUICK, ids=[what for _, what in QUICK])
def test_in_this_process(name: str, what: str, tmp_path: Path) -> None:
    found = failures([case for case in cases(name) if case.what == what], tmp_path)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "what"), SLOW, ids=[what for _, what in SLOW])
def test_in_a_process_of_its_own(name: str, what: str, tmp_path: Path) -> None:
    found = failures([case for case in cases(name) if case.what == what], tmp_path)
    assert not found, "\n" + "\n".join(found)


def test_there_are_many() -> None:
    assert sum(1 for name in HERE for _ in cases(name)) > 700


def test_a_case_that_fails_is_noticed(tmp_path: Path) -> None:
    case = next(cases("names"))
    wrong = Case(what="", words=("list", "fidelities"), codes=frozenset([65]), says=("nothing",), writes=frozenset(), files={})
    assert not failures([case], tmp_path)
    assert len(failures([wrong], tmp_path)) == 2
