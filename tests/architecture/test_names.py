"""Names: one class of a name in the package, so that a reader who meets it knows which is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2] / "archsim"

NOT_YET_RENAMED = {"Attention", "Row"}


def classes_of_one_name(sources: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that more than one class bears, with the modules where they stand, of (module, source) pairs."""
    found = defaultdict(list)
    for module, source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_class_names_are_unique() -> None:
    sources = [(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))]
    found = classes_of_one_name(sources)
    assert {name: found[name] for name in found.keys() - NOT_YET_RENAMED} == {}


def test_two_classes_of_one_name_are_noticed() -> None:
    sources = [("a.py", "class Point: ..."), ("b.py", "def f():\n    class Point: ..."), ("c.py", "class Line: ...")]
    assert classes_of_one_name(sources) == {"Point": ["a.py", "b.py"]}
