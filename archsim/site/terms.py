"""A page for each term of the cost model, from the docstring of the function that computes it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import archsim.cost
from archsim.explain.docs import meaning_in, unit_in
from archsim.render.markdown import table
from archsim.site.markdown import contents, fenced, plain

FOLDER = "terms"
APART = "---\norphan: true\n---\n"  # a page that its room lists, and not the menu, which every page repeats
SHOWN = 12  # tests of a term that its page names
_SYMBOLS = re.compile(r"[A-Za-z_][\w.]*(?:, [A-Za-z_][\w.]*)*: \S")
_NEXT = re.compile(r"; (?=[A-Za-z_]\w*(?:, [A-Za-z_]\w*)*: )")  # between two symbols of one line

Term = Callable[..., Any]


def pages(tests: Path | None) -> dict[str, str]:
    """Pages by their place in the site.

    tests: folder of the tests of a checkout, of which each page names those that call its function; None without a checkout
    """
    rooms = dict(modules())
    held = _tests_by_name(tests) if tests else {}
    found = {f"{FOLDER}/index": _index(rooms)}
    for room, (about, terms) in rooms.items():
        found[f"{FOLDER}/{room}/index"] = _room(room, about, terms)
        found |= {f"{FOLDER}/{room}/{term.__name__}": _page(term, held.get(term.__name__, ())) for term in terms}
    return found


def modules() -> Iterator[tuple[str, tuple[str, list[Term]]]]:
    """Modules of the cost model with their public functions that show an example, in their order in the file."""
    for found in pkgutil.iter_modules(archsim.cost.__path__):
        module = importlib.import_module(f"{archsim.cost.__name__}.{found.name}")
        own = {name: thing for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__}
        terms: list[Term] = [thing for name, thing in own.items()
                             if inspect.isfunction(thing) and name[0] != "_" and ">>>" in (thing.__doc__ or "")]  # fmt: skip
        if terms:
            yield found.name, (module.__doc__ or "", terms)


def _tests_by_name(folder: Path) -> Mapping[str, list[str]]:
    """Tests that name a function, by its name: `tests/unit/test_unit_cost.py::test_...`, in the order of files and lines."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        for part in ast.parse(path.read_text("utf-8")).body:
            if isinstance(part, ast.FunctionDef) and part.name.startswith("test_"):
                where = f"{path.relative_to(folder.parent).as_posix()}::{part.name}"
                for name in {node.id for node in ast.walk(part) if isinstance(node, ast.Name)} | {
                    node.attr for node in ast.walk(part) if isinstance(node, ast.Attribute)
                }:
                    found[name].append(where)
    return found


def _index(rooms: Mapping[str, tuple[str, list[Term]]]) -> str:
    rows = [[f"[`{room}`]({room}/index.md)", plain(about.partition("\n")[0]), str(len(terms))]
            for room, (about, terms) in rooms.items()]  # fmt: skip
    return (
        "# Terms of the model\n\nOne page for each quantity between an op and its time or energy: its equation with what the "
        "letters mean, where it comes from, an example that a test computes, and the tests that hold it. `archsim explain` "
        "prints the same equations with the numbers of one layer in them.\n\n"
        + table(["part", "what it computes", "terms"], rows) + "\n" + contents([f"{room}/index" for room in rooms], hidden=True)
    )  # fmt: skip


def _room(room: str, about: str, terms: list[Term]) -> str:
    first = {term.__name__: (inspect.getdoc(term) or "").partition("\n")[0] for term in terms}
    rows = [[f"[`{name}`]({name}.md)", plain(meaning_in(line)), plain(unit_in(line))] for name, line in first.items()]
    return f"# `{room}`\n\n{_prose(inspect.cleandoc(about))}\n\n" + table(["term", "what it is", "unit"], rows)


def _page(term: Term, tests: list[str] | tuple[()]) -> str:
    text, _, example = (inspect.getdoc(term) or "").partition(">>>")
    place = f"{term.__module__}.{term.__name__}"
    source = f"`{place}`, whose example above is one test."
    shown = "".join(f"- `{name}`\n" for name in tests[:SHOWN])
    more = f"- and {len(tests) - SHOWN} more\n" * (len(tests) > SHOWN)
    held = f"Tests that name it:\n\n{shown}{more}" if tests else ""
    worked = fenced(">>>" + example, "python")
    room = term.__module__.rpartition(".")[2]
    head = f"{APART}# `{term.__name__}`\n\nA term of [{room}](index.md).\n\n{_prose(text)}"
    return f"{head}\n\n## Worked number\n\n{worked}\n## Where it is held\n\n{source}\n\n{held}"


def _prose(text: str) -> str:
    """Paragraphs of a docstring: sentences as text, symbols as a list, equations and all else with their lines."""
    return "\n\n".join(filter(None, map(_paragraph, re.split(r"\n\s*\n", text.strip()))))


def _paragraph(text: str) -> str:
    if not text.strip():
        return ""
    lines = text.split("\n")
    if _SYMBOLS.match(text):
        return "".join(f"- {_symbol(one)}\n" for line in _unfolded(lines) for one in _NEXT.split(line)).rstrip()
    sentence = text.rstrip()[-1] in ".:" and text[0].isupper()
    return plain(text) if sentence and not any(line.startswith(" ") for line in lines) else fenced(text).rstrip()


def _unfolded(lines: list[str]) -> list[str]:
    """Lines with those that continue them."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return found


def _symbol(line: str) -> str:
    name, separator, text = line.partition(": ")
    return f"`{name}`: {plain(text)}" if separator and _SYMBOLS.match(line) else plain(line)
