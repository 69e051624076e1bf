"""The release: what it finds out of date, what it runs, and that it goes on where it failed."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "reports" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "release", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release(shipped: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, over a folder with three steps: `b` reads what `a` writes, `c` reads a folder of code."""
    module = shipped
    for name in ("reports", "code"):
        (tmp_path / name).mkdir()
    for name in ("one", "two", "code/three.py"):
        (tmp_path / name).write_text("1")
    double = "from pathlib import Path; p = Path('two'); p.write_text(Path('one').read_text() * 2)"
    steps = [module.Step(name=name, what=name, reads=(reads,), commands=((sys.executable, "-c", code),), minutes=1)
             for name, reads, code in (("a", "one", double), ("b", "two", "pass"), ("c", "code", "pass"))]  # fmt: skip
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "STEPS", tuple(steps))
    monkeypatch.setattr(module, "NAMES", ("a", "b", "c"))
    return module


def run(release: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["release.py", *words])
    code: int = release.main()
    return code


def test_only_what_depends_on_a_change_runs_again(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(release, monkeypatch, "--check") == 1
    assert run(release, monkeypatch) == 0
    assert run(release, monkeypatch, "--check") == 0
    capsys.readouterr()
    assert run(release, monkeypatch) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "code" / "three.py").write_text("2")
    (tmp_path / "code" / "__pycache__").mkdir()
    (tmp_path / "code" / "__pycache__" / "three.pyc").write_text("2")
    assert run(release, monkeypatch, "--check") == 1
    assert capsys.readouterr().out.startswith("out of date: c;")
    assert run(release, monkeypatch) == 0
    (tmp_path / "one").write_text("2")
    capsys.readouterr()
    assert run(release, monkeypatch) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["== a", "== a", "== b", "== b"]


def test_a_step_that_fails_is_named_and_is_where_the_next_call_begins(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = release.STEPS
    failing = replace(right[1], commands=((sys.executable, "-c", "raise SystemExit(3)"),))
    monkeypatch.setattr(release, "STEPS", (right[0], failing))
    assert run(release, monkeypatch) == 1
    assert "b failed with exit code 3" in capsys.readouterr().err
    monkeypatch.setattr(release, "STEPS", right)
    assert run(release, monkeypatch, "--list") == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [["a", "current"], ["b", "due"], ["c", "due"]]


def test_one_step_can_be_made_or_taken_as_made(
    release: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(release, monkeypatch, "--only", "b") == 0
    assert run(release, monkeypatch, "--current", "c") == 0
    capsys.readouterr()
    run(release, monkeypatch, "--check")
    assert capsys.readouterr().out.startswith("out of date: a;")


def test_the_shipped_steps_read_files_that_are_there(shipped: ModuleType) -> None:
    for step in shipped.STEPS:
        assert len(shipped.digest(step.reads)) == 16
    assert {path.parent.name for path in (ROOT / "reports" / "studies").glob("*/study.toml")} == {
        Path(word).parent.name for step in shipped.STEPS if step.name == "studies" for word in step.commands[0] if "/" in word[3:]
        and word.endswith("study.toml")
    }
