"""Benches are listed and take --smoke, what fails is named, ratios are those of neighbours, and a worktree leaves no trace."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from . import __main__ as bench
from .against import Failed, line, worktree
from .figure import Figure

FIGURE = Figure(name="a figure", unit="s", prepare=lambda small: lambda: 1.0, most=3)


@pytest.mark.parametrize("name", bench.benches())
def test_each_bench_has_a_line_and_takes_smoke(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(bench.benches()[name]) > 20
    with pytest.raises(SystemExit) as end:
        bench.run(name, ["--help"])
    assert (end.value.code, "--smoke" in capsys.readouterr().out) == (0, True)


def test_every_new_module_is_a_bench(tmp_path: Path) -> None:
    for name in ("figure", "test_bench", "new"):
        (tmp_path / f"{name}.py").write_text('"""A line.\n\nMore."""')
    assert bench.benches(tmp_path) == {"new": "A line."}


def test_a_bench_that_does_not_run_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.failing(["no_such_bench"]) == ["no_such_bench"]
    assert "no_such_bench: FAILS\n" in capsys.readouterr().out


def test_a_worktree_is_removed_whatever_ends_it(tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run([*git, *words], check=True)
    trees = []

    def interrupted() -> None:
        with worktree("HEAD", tmp_path) as tree:
            trees.append((tree, tree.is_dir()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [(tree.parent.exists(), was) for tree, was in trees] == [(False, True)]
    assert len(subprocess.check_output([*git, "worktree", "list"], text=True).splitlines()) == 1


class Fake:
    """Takes samples of its own, one after the other; None is a figure that cannot be sampled."""

    def __init__(self, *samples: float | None) -> None:
        self.samples = list(samples)

    def sample(self, *_: object) -> float:
        value = self.samples.pop(0)
        if value is None:
            raise Failed("ImportError: gone")
        return value


def told(old: Fake, new: Fake) -> str:
    return line("v1", old, new, "sweep", FIGURE, 7, False)  # type: ignore[arg-type]


def test_the_ratio_is_that_of_samples_side_by_side() -> None:
    assert " ".join(told(Fake(1.0, 2.0, 4.0), Fake(2.0, 4.0, 8.0)).split()) == "2 s 4 s 2.00 (2.00 to 2.00) worse"
    assert " ".join(told(Fake(1.0, 2.0, 4.0), Fake(0.9, 2.1, 4.0)).split()) == "2 s 2.1 s 1.00 (0.95 to 1.02)"


def test_what_the_older_version_lacks_is_said_and_what_this_one_lacks_is_an_error() -> None:
    assert told(Fake(None), Fake(1.0)) == "not there in v1 (ImportError: gone)"
    with pytest.raises(Failed, match="gone"):
        told(Fake(1.0), Fake(None))
