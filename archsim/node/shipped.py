"""Files of a shipped folder by their names, or a user's own by its path: one rule for nodes and for systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar, cast

from archsim.base.files import data_folder, is_path, named_file
from archsim.base.naming import resolve

T = TypeVar("T")
SUFFIX = ".toml"


@cache
def names_in(folder: str) -> tuple[str, ...]:
    """The names of the files in a shipped folder, without their ending, sorted.

    >>> "server" in names_in("hwspecs/systems")
    True
    """
    return tuple(sorted(f.name.removesuffix(SUFFIX) for f in data_folder(folder).iterdir() if f.name.endswith(SUFFIX)))


def found(what: str, name_or_path: str, folder: str, load: Callable[[Path | Traversable], T]) -> T:
    """What `load` reads from a shipped file, once, or from a file of the user. Raises UnknownName, and what `load` raises."""
    names = names_in(folder)
    if name_or_path not in names and is_path(name_or_path):
        return load(named_file(name_or_path))
    name = name_or_path if name_or_path in names else resolve(what, name_or_path, names, dict,
                                                              f"one of {', '.join(names)}, or a path to a {SUFFIX}")  # fmt: skip
    return cast(T, _read(load, folder, name))


@cache
def _read(load: Callable[[Path | Traversable], object], folder: str, name: str) -> object:
    return load(data_folder(folder).joinpath(f"{name}{SUFFIX}"))
