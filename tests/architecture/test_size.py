"""Caps on what the code and the changelog hold: each is kept, and each check can fail."""

from __future__ import annotations

import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from shutil import which
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
MODULE = b"x = 1\n"  # one code line, three tokens


def loaded(path: Path) -> ModuleType:
    loader = SourceFileLoader("archsim_ci_size", str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


SIZE = loaded(ROOT / ".ci" / "size")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of two rooms and tests, each module of one code line, with caps that it just keeps."""
    for path in ("archsim/cost/bounds.py", "archsim/__main__.py", "tests/test_bounds.py", ".ci/size.toml"):
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_bytes(MODULE)
    caps = dict.fromkeys(("__main__", "cost", "tests"), SIZE.Size(1, 3, 1))
    (tmp_path / SIZE.CAPS).write_text(SIZE.text_of(caps))
    return tmp_path


def git(root: Path, *words: str) -> None:
    subprocess.run(("git", "-C", root, "-c", "user.name=n", "-c", "user.email=e", *words), check=True, capture_output=True)


# ------------------------------------------------------------------------------------------------------- what is counted


@pytest.mark.parametrize(
    ("source", "lines", "tokens"),
    [
        ("x = 1  # one\n\n# two\n", 1, 3),
        ("f(1,\n\n  2)\n", 2, 6),
        ('"""A module."""\n\n\ndef f():\n    """A function,\n\n    of two lines.\n    """\n', 1, 5),
        ('x = """a\nb\n"""\n', 3, 3),
        ("x = f'{a + b:>{width}} of {f(\"c\")}'\n", 1, 3),
        ("x = f'''{a}\n{b}\n'''\n", 3, 3),
        ("if x:\n    pass\n", 2, 4),
        ("", 0, 0),
    ],
)
def test_code_lines_and_tokens(source: str, lines: int, tokens: int) -> None:
    assert SIZE.size_of(source.encode()) == (lines, tokens, 1)


def test_a_room_is_a_folder_or_a_module_at_the_top() -> None:
    paths = ("archsim/cost/a.py", "archsim/cost/b/c.py", "archsim/__main__.py", "tests/unit/test_a.py", "tests/each.py")
    assert [SIZE.room_of(path) for path in paths] == ["cost", "cost", "__main__", "tests", "tests"]


# --------------------------------------------------------------------------------------------------------------- the caps


def test_every_room_has_its_caps_and_no_other() -> None:
    assert list(SIZE.caps_of((ROOT / SIZE.CAPS).read_text())) == sorted({SIZE.room_of(path) for path in SIZE.paths_of(ROOT)})


def test_a_tree_at_its_caps_passes(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SIZE.main([], tree) == 0
    assert "no commit to compare with" in capsys.readouterr().out


def test_each_count_above_its_cap_is_an_error(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "archsim/cost/traffic.py").write_bytes(MODULE)
    assert SIZE.main([], tree) == 1
    errors = [line for line in capsys.readouterr().out.splitlines() if "who grows" in line]
    assert errors == [
        "cost: 2 code lines, cap 1. Take 1 out: who grows a room pays for it there",
        "cost: 6 tokens, cap 3. Take 3 out: who grows a room pays for it there",
        "cost: 2 modules, cap 1. Take 1 out: who grows a room pays for it there",
    ]


def test_a_room_without_caps_and_caps_without_a_room_are_errors(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "archsim/cost").rename(tree / "archsim/price")
    assert SIZE.main([], tree) == 1
    out = capsys.readouterr().out
    assert "price: no cap." in out
    assert "cost: a cap, and no such room." in out


def test_caps_that_are_no_sizes_are_an_error(tree: Path) -> None:
    for text in ("cost = { lines = 1, words = 2 }", "cost = 3", "cost = ["):
        (tree / SIZE.CAPS).write_text(text)
        with pytest.raises(SystemExit, match=r"\.ci/size\.toml: a row is"):
            SIZE.main([], tree)


def test_lowering_never_raises(tree: Path) -> None:
    (tree / "archsim/cost/bounds.py").write_text("")
    (tree / "archsim/__main__.py").write_bytes(2 * MODULE)
    assert SIZE.main(["--lower"], tree) == 1
    rows = {"__main__": (1, 3, 1), "cost": (0, 0, 1), "tests": (1, 3, 1)}
    assert SIZE.caps_of((tree / SIZE.CAPS).read_text()) == rows
    (tree / "archsim/cost/bounds.py").unlink()
    assert SIZE.main(["--lower"], tree) == 1
    assert "cost" not in SIZE.caps_of((tree / SIZE.CAPS).read_text())


@pytest.mark.skipif(which("git") is None, reason="no git")
def test_changes_and_raised_caps_are_told_against_a_commit(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "first")
    (tree / "archsim/cost/bounds.py").write_bytes(2 * MODULE)
    caps = SIZE.caps_of((tree / SIZE.CAPS).read_text())
    (tree / SIZE.CAPS).write_text(SIZE.text_of(caps | {"cost": SIZE.Size(2, 6, 1)}))
    assert SIZE.main([], tree) == 0  # there is no commit before the first
    assert SIZE.main(["--against", "HEAD"], tree) == 1
    out = capsys.readouterr().out
    assert "first\n" in out
    assert out.count("caps of archsim: 3 code lines in all, 2 at") == out.count("caps of archsim: 9 tokens in all, 6 at") == 1
    (cost,) = [line.split() for line in out.split("first\n")[1].splitlines() if line.startswith("cost ")]
    assert cost == ["cost", "2", "+1", "2", "6", "+3", "6", "1", "1"]

    moved = {"cost": SIZE.Size(2, 6, 1), "__main__": SIZE.Size(0, 0, 1)}  # what one room gains, the other gives
    (tree / "archsim/__main__.py").write_text("")
    (tree / SIZE.CAPS).write_text(SIZE.text_of(caps | moved))
    assert SIZE.main(["--against", "HEAD"], tree) == 0
    with pytest.raises(SystemExit):
        SIZE.main(["--against", "nowhere"], tree)


# ------------------------------------------------------------------------------------------------- modules to be merged


@pytest.mark.parametrize(
    "how",
    [
        "import archsim.cost.bounds",
        "from archsim.cost import bounds",
        "from .bounds import x",
        "def f():\n    from archsim.cost.bounds import x",
        "import_module('archsim.cost.bounds:x')",
        "[import_module(f'archsim.cost.{name}') for name in ('bounds',)]",
    ],
)
def test_a_small_module_of_one_importer_is_listed(how: str) -> None:
    one = {"archsim/cost/bounds.py": MODULE, "archsim/cost/price.py": how.encode()}
    assert SIZE.to_merge(one) == [("archsim/cost/bounds.py", 1, "archsim/cost/price.py")]
    assert SIZE.to_merge(one | {"archsim/cli.py": b"import archsim.cost.bounds"}) == []
    assert SIZE.to_merge(one | {"archsim/cost/bounds.py": SIZE.SMALL * MODULE}) == []
    assert SIZE.to_merge(one | {"tests/test_bounds.py": b"import archsim.cost.bounds"}) == SIZE.to_merge(one)


def test_a_module_that_another_room_imports_stays() -> None:
    assert SIZE.to_merge({"archsim/cost/bounds.py": MODULE, "archsim/cli/main.py": b"import archsim.cost.bounds"}) == []


# ---------------------------------------------------------------------------------------------------------- the changelog

LONGEST_CHANGELOG = 200  # lines, of at most as many columns as code


def too_long(changelog: str) -> list[str]:
    """What a changelog has too much of: lines, or columns of a line."""
    lines = changelog.splitlines()
    wide = [f"line {number}: {len(line)} columns" for number, line in enumerate(lines, 1) if len(line) > 130]
    return wide if len(lines) < LONGEST_CHANGELOG else [*wide, f"{len(lines)} lines"]


def test_the_changelog_says_what_a_user_must_know() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert too_long(changelog) == []
    assert "\n### Numbers changed\n" in changelog


def test_a_long_changelog_is_noticed() -> None:
    assert too_long("- new\n" * 199) == []
    assert too_long("- new\n" * 200) == ["200 lines"]
    assert too_long("x" * 131) == ["line 1: 131 columns"]
