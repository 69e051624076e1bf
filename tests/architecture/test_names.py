"""Words: one class of a name, so that a reader knows which is meant; functions of the model name what their numbers are."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "archsim"


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
    assert classes_of_one_name(sources) == {}


def test_two_classes_of_one_name_are_noticed() -> None:
    sources = [("a.py", "class Point: ..."), ("b.py", "def f():\n    class Point: ..."), ("c.py", "class Line: ...")]
    assert classes_of_one_name(sources) == {"Point": ["a.py", "b.py"]}


# ------------------------------------------------------------------------------------------- what a model function says

MODEL = ("schedule", "cache", "cost", "lower")
COMPILED = ("kernel.py", "inclusion.py", "distance_kernel.py")  # loops over cells, whose layout the module's words describe
UNIT_OR_SHAPE = re.compile(r"\[[A-Za-z0-9_./ ,x+*^-]{1,60}\]")
SOURCE = re.compile(r"\b(19|20)\d\d\b")
QUANTITY = re.compile(r"\b(Array|NDArray|Index|float|int)\b")  # in what a function returns


def says_nothing(source: str) -> list[str]:
    """Public functions that return numbers and name no unit or shape in brackets, no dated source and no worked example."""
    found = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        words = ast.get_docstring(node) or ""
        returned = ast.unparse(node.returns) if node.returns else ""
        told = UNIT_OR_SHAPE.search(words) or SOURCE.search(words) or ">>>" in words
        if QUANTITY.search(returned) and not told:
            found.append(node.name)
    return found


@pytest.mark.parametrize("room", MODEL)
def test_every_function_of_the_model_names_a_unit_a_shape_a_source_or_an_example(room: str) -> None:
    paths = [path for path in sorted((ROOT / room).glob("*.py")) if path.name not in COMPILED]
    found = {path.name: says_nothing(path.read_text("utf-8")) for path in paths}
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_a_function_that_says_nothing_is_noticed() -> None:
    assert says_nothing('def f(x) -> float:\n    """How long it takes."""') == ["f"]
    assert says_nothing('def f(x) -> float:\n    """How long it takes [s]."""') == []
    assert says_nothing('def f(x) -> float:\n    """Little\'s law (Bailey 1996)."""') == []
    assert says_nothing('def _f(x) -> float:\n    """How long it takes."""') == []


# --------------------------------------------------------------------------------------------------- words of the field

PRIVATE = {  # word that readers had to guess -> what to write
    "walk": "two-pass kernel, or advance", "crew": "workers", "teller": "what it computes", "story": "explanation",
    "stories": "explanations", "heir": "inherits", "heirs": "inherits", "whoever": "the caller", "wish": "goal",
}  # fmt: skip


def private_words(source: str) -> list[str]:
    """Words of `PRIVATE` in names, texts and comments of a module."""
    words = re.findall(r"(?<![.\w])[A-Za-z]+(?!\w)", source.replace("_", " "))
    return sorted({word.lower() for word in words} & PRIVATE.keys())


def test_the_package_uses_the_words_of_its_field() -> None:
    found = {str(path.relative_to(ROOT)): private_words(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}
    assert {path: words for path, words in found.items() if words} == {}


def test_a_private_word_is_noticed() -> None:
    assert private_words("def tell_story(crew): ...  # whoever asks") == ["crew", "story", "whoever"]
    assert private_words("for node in ast.walk(tree): ...") == []
