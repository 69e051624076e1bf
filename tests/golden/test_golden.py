"""Predictions do not move by accident: a dozen cells, to 12 digits.

After a change that is meant to move them: `python tests/golden/regenerate.py`, and the changelog says old -> new.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


def load_cells() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_cells", Path(__file__).with_name("cells.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CELLS = load_cells()


def moved(old: dict[str, dict[str, float]], new: dict[str, dict[str, float]]) -> list[str]:
    """One line for each value that differs beyond the last digit, `old -> new`."""
    lines = [f"{name}: only in one of golden.json and cells.py" for name in sorted(old.keys() ^ new.keys())]
    for name in old.keys() & new.keys():
        for key, before in old[name].items():
            after = new[name][key]
            if abs(after - before) > 2 * 10.0 ** (1 - CELLS.DIGITS) * abs(before):
                lines.append(f"{name}: {key} {before} -> {after} ({100 * (after / before - 1):+.3f} %)")
    return sorted(lines)


def test_no_prediction_has_moved() -> None:
    lines = moved(json.loads(CELLS.FILE.read_text()), CELLS.compute())
    if lines:
        hint = "if this is meant: python tests/golden/regenerate.py, and say so in CHANGELOG.md"
        pytest.fail("\n".join([f"{len(lines)} values moved, old -> new:", *lines, hint]), pytrace=False)


def test_a_small_move_is_noticed_and_said() -> None:
    old = {"cell": {"latency_s": 1.0, "energy_j": 2.0}}
    assert moved(old, {"cell": {"latency_s": 1.0, "energy_j": 2.0 + 1e-10}}) == ["cell: energy_j 2.0 -> 2.0000000001 (+0.000 %)"]
    assert moved(old, {"cell": {"latency_s": 1.0 + 1e-12, "energy_j": 2.0}}) == []
    assert moved(old, {"other": old["cell"]}) == [
        "cell: only in one of golden.json and cells.py", "other: only in one of golden.json and cells.py",
    ]  # fmt: skip


def test_the_file_is_in_the_form_that_regenerate_writes() -> None:
    content = CELLS.FILE.read_text()
    assert CELLS.text(json.loads(content)) == content
