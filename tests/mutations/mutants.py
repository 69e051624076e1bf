"""The mutants of a module: its source with one small change, each with the place and the words that it changes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code

from .operators import COMPARISON, OPERATORS

ROOT = Path(__file__).parents[2]
GENERIC = ("dict", "list", "tuple", "set", "type")
ORDERS = {f"ReplaceComparisonOperator_{one}_{other}" for one, others in COMPARISON.items() for other in others
          if one in ("Eq", "NotEq") and other not in ("Eq", "NotEq")}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of one module; `right` and `wrong` are the lines that differ, joined and without their indentation."""

    file: str
    function: str
    line: int
    operator: str
    occurrence: int
    right: str
    wrong: str
    source: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is called in the list of equivalent mutants: it stays the same when lines move."""
        return self.file, self.function, self.right, self.wrong


@dataclass(frozen=True)
class Site:
    """A place that an operator can change: the `occurrence` that cosmic-ray counts."""

    file: str
    line: int
    operator: str
    occurrence: int


def sites_of(file: str) -> list[Site]:
    """All places of a file of the package that no rule leaves out, in the order of their lines."""
    source = (ROOT / file).read_text("utf-8")
    left_out, words = _left_out(ast.parse(source)), _words_compared(source)
    found = []
    for name, operator in OPERATORS.items():
        for occurrence, (line, column) in enumerate(_positions(source, operator())):
            if any(begin <= (line, column) < end for begin, end in left_out) or (name in ORDERS and (line, column) in words):
                continue
            found.append(Site(file, line, name, occurrence))
    return sorted(found, key=lambda site: (site.line, site.operator, site.occurrence))


def mutants_at(sites: Iterable[Site]) -> list[Mutant]:
    """The mutants of some places; each text once, and none that cannot be parsed."""
    found: dict[str, Mutant] = {}
    for site in sites:
        source = (ROOT / site.file).read_text("utf-8")
        mutated = mutate_code(source, OPERATORS[site.operator](), site.occurrence)
        if mutated is None or mutated == source or mutated in found or not _compiles(mutated):
            continue
        right, wrong = _difference(source, mutated)
        function = _enclosing(_functions(ast.parse(source)), site.line)
        found[mutated] = Mutant(file=site.file, function=function, line=site.line, operator=site.operator,
                                occurrence=site.occurrence, right=right, wrong=wrong, source=mutated)  # fmt: skip
    return list(found.values())


class _Positions(Visitor):  # type: ignore[misc]
    """Where an operator can change something, in the order in which cosmic-ray counts the occurrences."""

    def __init__(self, operator: Any) -> None:
        self.operator, self.found = operator, []

    def visit(self, node: Any) -> Any:
        self.found += [begin for begin, _ in self.operator.mutation_positions(node)]
        return node


def _positions(source: str, operator: Any) -> list[tuple[int, int]]:
    visitor = _Positions(operator)
    visitor.walk(get_ast(source))
    return visitor.found


def _words_compared(source: str) -> set[tuple[int, int]]:
    """Where a name is compared with a word: nobody mistakes equality there for an order."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(each, ast.Constant) and isinstance(each.value, str)
                                                 for each in (node.left, *node.comparators)):  # fmt: skip
            found |= {(node.lineno, column) for column in range(node.col_offset, node.end_col_offset or 0)}
    return found


def _compiles(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _difference(source: str, mutated: str) -> tuple[str, str]:
    """The lines that differ, of either text."""
    old, new = source.splitlines(), mutated.splitlines()
    begin = next((i for i, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
    end = next((i for i, (one, other) in enumerate(zip(old[::-1], new[::-1], strict=False)) if one != other), 0)
    end = min(end, len(old) - begin, len(new) - begin)
    first, second = (" ".join(line.strip() for line in lines[begin:len(lines) - end]) for lines in (old, new))
    return first, second


Span = tuple[tuple[int, int], tuple[int, int]]


def _left_out(module: ast.Module) -> list[Span]:
    """Code that decides no value: annotations and types, the options of decorators, what an error says, internal checks.

    Doc strings have no operators, and words no order (`_words_compared`). `assert` and `zip(strict=True)` say what always holds.
    """
    found: list[ast.AST | None] = []
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found += [node.returns, *[each.annotation for each in _arguments(node.args)]]
                found += [part for each in node.decorator_list if isinstance(each, ast.Call)
                          for part in (*each.args, *[word.value for word in each.keywords])]  # fmt: skip
            case ast.ClassDef():
                found += [part for each in node.decorator_list if isinstance(each, ast.Call)
                          for part in (*each.args, *[word.value for word in each.keywords])]  # fmt: skip
                found += node.bases
            case ast.AnnAssign():
                found.append(node.annotation)
            case ast.Assign(value=ast.Subscript(value=ast.Name(id=name))) if name[0].isupper() or name in GENERIC:
                found.append(node.value)  # the name of a type
            case ast.Raise() | ast.Assert():
                found.append(node)
            case ast.keyword(arg="strict"):
                found.append(node.value)
    return [((each.lineno, each.col_offset), (each.end_lineno, each.end_col_offset)) for each in found
            if isinstance(each, (ast.expr, ast.stmt))]  # type: ignore[misc]  # fmt: skip


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (each for each in (arguments.vararg, arguments.kwarg) if each is not None)


def _functions(module: ast.Module) -> list[tuple[int, int, str]]:
    """First and last line and dotted name of every function and class, the inner ones after the outer ones."""
    found: list[tuple[int, int, str]] = []

    def walk(node: ast.AST, above: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = above
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{above}.{child.name}".lstrip(".")
                first = min([child.lineno, *[each.lineno for each in child.decorator_list]])
                found.append((first, child.end_lineno or first, name))
            walk(child, name)

    walk(module, "")
    return found


def _enclosing(functions: list[tuple[int, int, str]], line: int) -> str:
    return next((name for first, last, name in reversed(functions) if first <= line <= last), "")
