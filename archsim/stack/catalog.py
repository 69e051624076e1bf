"""Finding a stack by name or path: `stacks.toml` and the files of users name its parts, `compose` puts them together."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, near_words, refuse
from archsim.base.files import is_path, named_file
from archsim.base.naming import resolve
from archsim.stack.compose import AXES, FOLDER, Component, Composition, able, component, compose, document, folder, fusing
from archsim.stack.key import read
from archsim.stack.stack import Stack
from archsim.trace.formats import is_path as is_network_file

HINT = "`archsim list stacks` prints all"
COUNTED = "rows.csv"  # measured rows, counted in the published corpus: `python -m tests.data.regenerate`
LIST = "stacks.toml"  # every shipped stack: id = { parts, and what differs }
RECORD: type[Stack] = Stack  # the keys of all files are declared by its fields
IDENTITY = re.compile(r"[a-z0-9_.\-]{2,40}")
RESERVED = ("schema", "id", "like", "parts", "sources", "aliases", "by_name_only")  # beside the keys of the record


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRows:
    """Published measurements of a stack.

    own: of the stack itself; alike: of other frameworks and engines on its `libraries` in the same versions
    """

    stack: str
    own: int
    alike: int
    libraries: str

    @property
    def short(self) -> str:
        """`1,217 measured rows of this stack`, or those of its libraries where it has none."""
        if self.own or not self.alike:
            return f"{self.own:,} measured rows of this stack"
        return f"no measured row of this stack, {self.alike:,} of its libraries"

    @property
    def words(self) -> str:
        """`1,217 measured rows of caffe-cudnn5.1, 4,308 of others on cudnn 5.1 + cublas 8`."""
        own = f"{self.own:,}" if self.own else "no"
        others = f", {self.alike:,} of others on {self.libraries}" if self.alike else ""
        return f"{own} measured rows of {self.stack}{others}"


@cache
def names() -> tuple[str, ...]:
    """The identifiers of the shipped stacks, sorted."""
    return tuple(sorted(_listed()))


@cache
def find(name_or_path: str, architecture: str = "", fusion: str = "") -> Stack:
    """The stack of a shipped name or of a file, as it runs on an architecture; UnknownName or InputError.

    fusion: a rule of `fusing.LEVELS` in place of what the stack fuses by itself
    """
    composed = composition(name_or_path, architecture)
    if fusion:
        composed = fusing(RECORD, composed, fusion)
    stack, problems = read(RECORD, composed.table(), id=composed.id, libraries=composed.libraries)
    for net in filter(is_network_file, stack.variants.values() if stack is not None else ()):
        named_file(net)
    if stack is None or (problems := _lacking(stack)):
        raise InputError(_place(name_or_path), problems)
    return stack.filled()


@cache
def composition(name_or_path: str, architecture: str = "") -> Composition:
    """What a stack is composed of, and which component sets each value.

    On an architecture that a library is older than, its first version with kernels for it takes its place.
    """
    if is_path(name_or_path):
        return _of_file(named_file(name_or_path), architecture)
    name = canonical(name_or_path)
    return _composed(name, name, _listed()[name].get("parts", {}), [own_values(name)], architecture)


def canonical(name_or_path: str) -> str:
    """The id of the shipped stack that is spelled so; a path as it is. Raises UnknownName with the nearest names.

    >>> canonical("Caffe cuDNN 5.1")
    'caffe-cudnn5.1'
    """
    return name_or_path if is_path(name_or_path) else resolve("stack", name_or_path, names(), _aliases, HINT)


def by_name_only(name: str) -> bool:
    """Whether nobody means a shipped stack who does not name it: what runs on one device only."""
    return bool(_listed()[name].get("by_name_only", False))


def _aliases() -> dict[str, list[str]]:
    return {name: table.get("aliases", []) for name, table in _listed().items()}


def own_values(name: str) -> Component:
    """The values of a shipped stack that none of its parts sets."""
    return component(f"{LIST}: {name}", _listed()[name], RESERVED)


def _of_file(place: Path, architecture: str) -> Composition:
    table = document(place)
    problems = list(_problems(table))
    refuse(place, problems)
    parts, own = table.get("parts", {}), [component(str(place), table, RESERVED)]
    if unused := own[0].unused(RECORD):
        raise InputError(str(place), [f"sources.{key}: the file does not set this key" for key in unused])
    if "like" in table:
        parts, own = _listed()[table["like"]].get("parts", {}) | parts, [own_values(table["like"]), *own]
    return _composed(str(place), table["id"], parts, own, architecture)


def _composed(name: str, identity: str, parts: Mapping[str, str], own: list[Component], architecture: str) -> Composition:
    try:
        on_it = {axis: able(axis, part, architecture) if axis in AXES else part for axis, part in parts.items()}
        return compose(RECORD, identity, on_it, own)
    except ValueError as error:
        raise InputError(_place(name), str(error).splitlines()) from None


def _problems(table: Mapping[str, Any]) -> list[str]:
    """What is wrong in the keys of a user's file that say what it is composed of."""
    problems = [] if table.get("schema") == 1 else [f"schema: must be 1, is {table.get('schema')!r}"]
    identity, like, parts = table.get("id"), table.get("like"), table.get("parts", {})
    if not isinstance(identity, str) or not IDENTITY.fullmatch(identity):
        problems.append(f"id: must be 2 to 40 of a-z, 0-9, '_', '.', '-', is {identity!r}")
    if like is not None and (not isinstance(like, str) or like not in _listed()):
        problems.append(f"like: no stack {like!r}; nearest: {near_words(str(like), names())}")
    if not isinstance(parts, dict) or not all(isinstance(part, str) for part in parts.values()):
        return [*problems, f"parts: must be a table of names, is {parts!r}"]
    problems += [f"parts.{axis}: unknown part; known: {', '.join(AXES)}" for axis in parts if axis not in AXES]
    sources = table.get("sources", {})
    if not isinstance(sources, dict) or not all(isinstance(text, str) for text in sources.values()):
        problems.append("sources: must be a table of texts")
    return problems


def _lacking(stack: Stack) -> list[str]:
    """The rows that every op without a row of its own falls back on."""
    rows = stack.passes.get("default", {})
    missing = [f"passes.default.{phase}: is missing" for phase in ("forward", "backward") if phase not in rows]
    return missing + ([] if "default" in stack.optimiser_passes else ["optimiser_passes.default: is missing"])


@cache
def _listed() -> dict[str, dict[str, Any]]:
    listed = document(folder().joinpath(LIST))
    listed.pop("schema", None)
    return listed


def _place(name_or_path: str) -> str:
    return name_or_path if is_path(name_or_path) else f"{FOLDER}/{LIST}: {name_or_path}"


def rows_of(stack: Stack) -> MeasuredRows:
    """The measured rows behind a stack, by its id; those of other software also behind a file of one's own."""
    table = _counted()
    own, libraries = table.get(stack.id, (0, stack.libraries))
    alike = sum(rows for rows, of in table.values() if of == libraries != "") - own
    return MeasuredRows(stack=stack.id, own=own, alike=alike, libraries=libraries)


@cache
def _counted() -> Mapping[str, tuple[int, str]]:
    """Rows and libraries of each shipped stack."""
    with folder().joinpath(COUNTED).open("r", encoding="utf-8") as stream:
        return {line["stack"]: (int(line["rows"]), line["libraries"]) for line in csv.DictReader(stream)}
