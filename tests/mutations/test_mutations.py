"""Small faults in the model are noticed by tests that know what is right, not only by those that compare with before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from ..each import each
from .faults import FAULTS, Fault
from .run import ROOT, main

# Tests that compare with earlier results: any change fails them, whatever it is.
COMPARING = ("tests/replay", "tests/validate/test_frozen.py", "tests/readme", "tests/study/test_study_file.py")
ROOMS = ("cost", "lower", "schedule")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("room", ROOMS)
def test_every_fault_is_caught(room: str) -> None:
    words = [sys.executable, "-m", "tests.mutations.run", room]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("caught ") == sum(fault.file.startswith(f"archsim/{room}/") for fault in FAULTS)


@pytest.mark.slow
def test_without_a_fault_their_tests_pass() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sorted({fault.caught_by for fault in FAULTS})]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@each("fault", FAULTS)
def test_every_fault_has_its_place_and_a_test_that_knows_what_is_right(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text("utf-8")
    assert source.count(fault.right) == 1, "write the fault anew, in the words that the module has now"
    assert fault.put_into(source) != source
    place, _, test = fault.caught_by.partition("::")
    assert not place.startswith(COMPARING)
    assert place.endswith(".py")
    assert f"def {test.rpartition('.')[2]}(" in (ROOT / place).read_text("utf-8")


def test_there_are_faults_in_every_room() -> None:
    rooms = Counter(fault.file.split("/")[1] for fault in FAULTS)
    assert set(rooms) == set(ROOMS)
    assert min(rooms.values()) >= 10
    of_power = ("energy", "idle", "power", "switched", "voltage")
    assert sum(fault.file in {f"archsim/cost/{name}.py" for name in of_power} for fault in FAULTS) >= 10
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_fault_that_its_test_does_not_see_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tests.mutations.run.tried", lambda fault: (0, "1 passed"))
    monkeypatch.setattr("tests.mutations.run.SHARED", ())
    assert main(["cost/sm.py"]) == 1
    assert "ESCAPED  archsim/cost/sm.py" in capsys.readouterr().out
