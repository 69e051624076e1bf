"""Puts the code of a mutant into the functions of a module that is already imported.

Tests are then collected once for all mutants, and each mutant costs a fork and the tests that reach its line. What lies outside
of functions (constants, tables, defaults, fields) cannot be changed so: it was read when other modules were imported.
"""

from __future__ import annotations

import sys
from functools import cached_property
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).parents[2]
Named = dict[str, CodeType]


def codes_of(source: str, file: str) -> tuple[object, Named]:
    """What runs when the module is imported, in a form that compares, and the code of each function by its dotted name."""
    outside: list[object] = []
    functions: Named = {}

    def walk(code: CodeType, name: str) -> None:
        values = []
        for value in code.co_consts:
            if not isinstance(value, CodeType):
                values.append((type(value).__name__, repr(value)))
            elif value.co_name.startswith("<"):  # a comprehension or lambda that runs, or is made, at import
                values.append(("code", value.co_name, repr(_text(value))))
            elif value.co_flags & 0x02 and value.co_flags & 0x01:  # CO_NEWLOCALS, CO_OPTIMIZED: a function
                functions[f"{name}{value.co_name}"] = value
                values.append(("function", value.co_name))
            else:
                walk(value, f"{name}{value.co_name}.")
        outside.append((name, code.co_code, code.co_names, tuple(values)))

    walk(compile(source, file, "exec"), "")
    return outside, functions


def _text(code: CodeType) -> object:
    inner = [_text(value) if isinstance(value, CodeType) else (type(value).__name__, repr(value)) for value in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, inner


def changed(source: str, mutated: str, file: str) -> list[tuple[str, CodeType]] | None:
    """The functions that differ, with their mutated code; None where something else differs too."""
    before, old = codes_of(source, file)
    after, new = codes_of(mutated, file)
    if before != after or old.keys() != new.keys():
        return None
    return [(name, code) for name, code in new.items() if _text(code) != _text(old[name])]


def put(module: str, name: str, code: CodeType) -> bool:
    """The code in the place of that of a live function or method; False where it has no such place."""
    *above, last = name.split(".")
    holder: Any = sys.modules[module]
    for each in above:
        holder = getattr(holder, each)
    found = vars(holder).get(last)
    if isinstance(found, cached_property):
        found = found.func
    elif isinstance(found, property):
        found = found.fget
    elif isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    found = unwrap(found) if callable(found) else None
    if not isinstance(found, FunctionType) or len(found.__code__.co_freevars) != len(code.co_freevars):
        return False
    found.__code__ = code
    return True
