"""TOML files of strangers: bounded before and after they are parsed; the shape of their words, checked by pydantic."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from archsim.base.errors import InputError, nearest
from archsim.base.files import LIMITS, MOST_DOTS, InputLimit, read_text

# ----------------------------------------------------------------------------------------------------------------- TOML

_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*"|'[^'\n]*')[ \t]*+\.[ \t]*+)""" f"{{{MOST_DOTS + 1}}}")


def read_document(place: str | Path | Traversable, kind: str) -> dict[str, Any]:
    """The content of a TOML file within the limits of its kind. Raises MissingFile or InputError."""
    return parsed(read_text(place, LIMITS[kind].size), str(place), kind)


def parsed(text: str, path: str, kind: str) -> dict[str, Any]:
    """The content of TOML text within the limits of a kind of file; InputError calls it `path`."""
    dotted = _DOTTED.search(text)
    if dotted is not None:
        line = text.count("\n", 0, dotted.start()) + 1
        raise InputError(path, f"line {line}: a key with more than {MOST_DOTS} dots")
    try:
        words = tomllib.loads(text)
    except RecursionError:
        raise InputError(path, f"is nested deeper than {LIMITS[kind].depth} levels") from None
    except ValueError as error:  # TOMLDecodeError, and numbers of thousands of digits
        raise InputError(path, f"is not valid TOML: {error}") from None
    _check(words, path, LIMITS[kind])
    return words


def _check(words: dict[str, Any], path: str, limit: InputLimit) -> None:
    level: list[Any] = [words]
    entries, depth = 0, 0
    while level:
        depth += 1
        inner = [one for value in level for one in (value.values() if isinstance(value, dict) else value)]
        entries += len(inner)
        if entries > limit.entries:
            raise InputError(path, f"has more than {limit.entries:,} entries")
        level = [value for value in inner if isinstance(value, dict | list)]
        if level and depth >= limit.depth:
            raise InputError(path, f"is nested deeper than {limit.depth} levels")


# ------------------------------------------------------------------------------------------------ the base of all forms

LONGEST_WORD = 2000  # characters

Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD)]


class Form(BaseModel):
    """No unknown keys, no coercion, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


F = TypeVar("F", bound=Form)


def problems_of(form: type[F], words: dict[str, Any], prefix: str, also: Iterable[str] = ()) -> tuple[F | None, list[str]]:
    """The checked form, or None and one sentence for each problem, each beginning with `prefix` and the key.

    also: keys that are read elsewhere
    """
    try:
        return form.model_validate(words), []
    except ValidationError as error:
        return None, [_sentence(form, item, prefix, also) for item in _first_per_key(error)]


def _first_per_key(error: ValidationError) -> list[Any]:
    """One error for each key: a union (`str | int | float`) would otherwise report every member.

    That a number is not finite says more than that it is no text, so it goes first.
    """
    firsts: dict[str, Any] = {}
    for item in sorted(error.errors(include_url=False), key=lambda item: item["type"] != "finite_number"):
        firsts.setdefault(str(item["loc"][0]), item)
    return list(firsts.values())


def _sentence(form: type[Form], item: Any, prefix: str, also: Iterable[str]) -> str:
    key = str(item["loc"][0])
    if item["type"] == "extra_forbidden":
        known = [*(field.alias or name for name, field in form.model_fields.items()), *also]
        return f"{prefix}{key}: unknown key; nearest: {', '.join(nearest(key, known) or known)}"
    if item["type"] == "missing":
        return f"{prefix}{key}: is missing"
    if item["type"] == "finite_number":
        return f"{prefix}{key}: must be a finite number"
    if item["type"] == "value_error":  # a check of our own says it all
        return f"{prefix}{key}: {item['ctx']['error']}"
    return f"{prefix}{key}: {item['msg'][:1].lower()}{item['msg'][1:]}, is {item['input']!r}"


def rows_of(form: type[F], name: str, text: str, path: str) -> tuple[F, ...]:
    """The tables `[[name]]` of a text that has nothing else. Raises InputError with all problems; it calls the text `path`."""
    document = parsed(text, path, "sources")
    rows = document.pop(name, [])
    problems = [f"{key}: unknown key; known: {name}" for key in document]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(path, [*problems, f"{name}: must be tables `[[{name}]]`"])
    read = [problems_of(form, row, f"{name} {i}: ") for i, row in enumerate(rows, 1)]
    problems += [problem for _, wrong in read for problem in wrong]
    if problems:
        raise InputError(path, problems)
    return tuple([found for found, _ in read if found is not None])
