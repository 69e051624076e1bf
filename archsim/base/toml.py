"""TOML files of strangers: bounded before and after they are parsed, with one kind of error."""

from __future__ import annotations

import re
import tomllib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.base.files import LIMITS, MOST_DOTS, InputLimit, read_text

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
