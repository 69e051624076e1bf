"""The notebooks run from the first cell to the last, and their answers show themselves."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.readme.shell import reading_once

FOLDER = Path(__file__).parents[2] / "reports" / "notebooks"
NAMES = ("first-steps", "which-card", "why-slow", "own-model")


def cells(name: str, kind: str = "code") -> list[str]:
    book = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == kind]


@cache
def executed(name: str) -> list[tuple[Any, str]]:
    """Of each cell, the value of its last expression and what it prints."""
    space: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for number, source in enumerate(cells(name)):
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        said = io.StringIO()
        with contextlib.redirect_stdout(said), reading_once():
            exec(compile(tree, f"{name}, cell {number}", "exec"), space)
            value = None
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"{name}, cell {number}", "eval"), space)
        found.append((value, said.getvalue()))
    return found


def test_there_are_the_notebooks_that_are_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_every_cell_says_something(name: str) -> None:
    for value, said in executed(name):
        shown = getattr(value, "_repr_html_", lambda: "")()
        assert said.strip() or "<table" in shown


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stored_without_outputs_and_begins_with_its_question(name: str) -> None:
    book = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in book["cells"])
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    assert cells(name, "markdown")[0].startswith("# ")


def test_what_the_notebooks_claim_holds() -> None:
    slow = [said for _, said in executed("why-slow")]
    bandwidth = next(said for said in slow if "twice the bandwidth" in said)
    shares = [float(line.split(":")[1].split()[0]) for line in bandwidth.splitlines()]
    assert all(0.55 < share < 1 for share in shares)
    first = [said for _, said in executed("first-steps")]
    batches = next(said for said in first if said.startswith("batch"))
    times = [float(line.split(":")[1].split()[0]) for line in batches.splitlines()]
    assert times == sorted(times, reverse=True)
    assert next(said for said in first if "fc6" in said).startswith("fc6")
