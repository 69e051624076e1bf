"""Composing a stack: a framework, a library, a BLAS and an engine say what each is known to do, the stack itself the rest.

Nothing is inherited further: a component names no other component. Every value keeps the component that set it and its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib.resources.abc import Traversable
from itertools import combinations
from pathlib import Path as FilePath
from typing import Any

from archsim.base.errors import near_words
from archsim.base.files import data_folder
from archsim.base.toml import read_document
from archsim.stack.key import Path, declared, leaves, split, written

FOLDER = "traces/stacks"
# What a stack is composed of, in the order of precedence, and the folder of its files. The first three may not disagree.
AXES = {"framework": "frameworks", "library": "libraries", "blas": "blas", "engine": "engines", "fusion": "fusion"}
LIBRARIES = ("library", "blas")
EQUALS = ("framework", *LIBRARIES)
ABOVE = ("engine", "fusion")  # what stands over them
KINDS = ("gpu", "cpu")
RESERVED = ("sources", "since", "version", "first", "aliases", *KINDS)  # of a component's tables, beside the keys of the record
VIEWS = ("slice", "reshape")  # ops that launch nothing whatever is fused
REST = "*"  # the source of every value of a component that has no source of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A value of a stack, the component that set it and its source (empty where a user's file names none)."""

    value: Any
    component: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The values that one table of one file sets; `label` names both."""

    label: str
    table: Mapping[str, Any]
    sources: Mapping[str, str]

    def assigned(self, record: type) -> dict[Path, Assigned]:
        """The values by their path in the record."""
        return {path: Assigned(value=value, component=self.label, source=self.source(path))
                for path, value in leaves(record, self.table)}  # fmt: skip

    def source(self, path: Path) -> str:
        """The source of the longest part of a path that has one, else that of the rest."""
        at = ".".join(path)
        named = [(key, text) for keys, text in self.sources.items() for key in split(keys)]
        found = [(len(key), text) for key, text in named if key == at or at.startswith(f"{key}.")]
        return max(found)[1] if found else self.sources.get(REST, "")

    def unused(self, record: type) -> list[str]:
        """The sources of keys that the component does not set."""
        paths = [".".join(path) for path, _ in leaves(record, self.table)]
        keys = [key for keys in self.sources for key in split(keys) if key != REST]
        return [key for key in keys if not any(path == key or path.startswith(f"{key}.") for path in paths)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A stack before it is read: its components and, for each path, the value that holds."""

    id: str
    parts: Mapping[str, str]
    assigned: Mapping[Path, Assigned]

    @property
    def libraries(self) -> str:
        """The libraries of its kernels, with their versions: `cudnn 5.1 + cublas 8`."""
        return " + ".join(self.parts[axis] for axis in LIBRARIES if axis in self.parts)

    def table(self) -> dict[str, Any]:
        """The values as one file would write them."""
        table: dict[str, Any] = {}
        for path, one in self.assigned.items():
            at = table
            for name in path[:-1]:
                at = at.setdefault(name, {})
            at[path[-1]] = one.value
        return table


@cache
def folder() -> Traversable:
    """Where the shipped stacks and their components lie."""
    return data_folder(FOLDER)


def document(place: FilePath | Traversable) -> dict[str, Any]:
    """The content of a TOML file, or InputError."""
    return read_document(place, "stack")


def compose(record: type, identity: str, parts: Mapping[str, str], own: list[Component]) -> Composition:
    """The stack of these parts (axis -> "NAME" or "NAME VERSION") and of its own values, later ones over earlier ones.

    Raises ValueError with one line for each part that does not exist and each key that framework, library and BLAS set to
    different values, unless the engine or the stack itself sets it.
    """
    named = [axis for axis in AXES if axis in parts]
    tables = [*(component.table for component in own), *(_part(axis, parts[axis].partition(" ")[0]) for axis in named)]
    kind = next((table["kind"] for table in tables if "kind" in table), "")
    values = {axis: _stacked([c.assigned(record) for c in components(axis, parts[axis], kind)]) for axis in named}
    last = _stacked([*(values.get(axis, {}) for axis in ABOVE), *(component.assigned(record) for component in own)])
    if disagreed := _disagreed([values[axis] for axis in EQUALS if axis in values], last):
        raise ValueError("\n".join(disagreed))
    return Composition(id=identity, parts=parts, assigned=_stacked([_base().assigned(record), *values.values(), last]))


def fusing(record: type, composed: Composition, rule: str) -> Composition:
    """The stack with another rule of fusion, which takes the place of all that it fuses by itself."""
    values = _stacked([c.assigned(record) for c in components("fusion", rule, "")])
    kept = {path: one for path, one in composed.assigned.items() if not _fuses(path, one.value)}
    return Composition(id=composed.id, parts={**composed.parts, "fusion": rule}, assigned=_stacked([kept, values]))


def _fuses(path: Path, value: Any) -> bool:
    """Whether a value says what is fused: a rule, or the row of an op that is part of another kernel."""
    row = path[0] == "passes" and path[-1] == "forward" and isinstance(value, dict) and value.get("launches") == 0
    return path[0] in ("fusion", "fused") or (row and path[1] not in VIEWS)


def _disagreed(equals: Sequence[Mapping[Path, Assigned]], last: Mapping[Path, Assigned]) -> list[str]:
    """One line for each path that two of the parts set to different values, unless it is set after them."""
    return sorted(
        f"{'.'.join(path)}: {one[path].component} and {other[path].component} set it to different values"
        for one, other in combinations(equals, 2)
        for path in one.keys() & other.keys() - last.keys()
        if one[path].value != other[path].value
    )


def _stacked(layers: Iterable[Mapping[Path, Assigned]]) -> dict[Path, Assigned]:
    """Later layers over earlier ones."""
    return {path: one for layer in layers for path, one in layer.items()}


@cache
def part_names(axis: str) -> tuple[str, ...]:
    """The shipped components of an axis, by the names of their files."""
    files = folder().joinpath(AXES[axis]).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def part_versions(axis: str, name: str) -> list[str]:
    """The versions of a shipped component, oldest first; none where it has only one."""
    return [block["version"] for block in _part(axis, name).get("since", [])]


def able(axis: str, reference: str, architecture: str) -> str:
    """A part ("NAME" or "NAME VERSION") at the first version that has kernels for an architecture, where that is a later one.

    >>> able("blas", "cublas 8", "volta"), able("blas", "cublas 8", "maxwell")
    ('cublas 9', 'cublas 8')
    """
    name, _, version = reference.partition(" ")
    known = part_versions(axis, name)
    since = [block["version"] for block in _part(axis, name).get("since", []) if architecture in block.get("first", ())]
    later = since and version in known and known.index(since[0]) > known.index(version)
    return f"{name} {since[0]}" if later else reference


def part_aliases(axis: str, name: str) -> tuple[str, ...]:
    """Other names of a shipped component."""
    return tuple(_part(axis, name).get("aliases", ()))


@cache
def _base() -> Component:
    return component("base.toml", document(folder().joinpath("base.toml")))


@cache
def _part(axis: str, name: str) -> dict[str, Any]:
    known = part_names(axis)
    if name not in known:
        raise ValueError(f"parts.{axis}: no {axis} {name!r}; nearest: {near_words(name, known)}")
    return document(folder().joinpath(AXES[axis], f"{name}.toml"))


def components(axis: str, reference: str, kind: str) -> list[Component]:
    """The tables of a part ("NAME" or "NAME VERSION") that hold for a kind of device, general ones first."""
    name, _, version = reference.partition(" ")
    found = _part(axis, name)
    file, known = f"{AXES[axis]}/{name}.toml", part_versions(axis, name)
    if (version and version not in known) or (known and not version):
        said = f"no version {version!r}" if version else "no version is named"
        raise ValueError(f"parts.{axis}: {name}: {said}; known: {', '.join(known) or 'none'}")
    blocks = found.get("since", [])[: known.index(version) + 1] if version else []
    tables = [(file, found), *((f"{file} since {block['version']}", block) for block in blocks)]
    return [component for label, table in tables for component in _tables(label, table, kind)]


def _tables(label: str, table: Mapping[str, Any], kind: str) -> Iterator[Component]:
    yield component(label, table)
    if kind in KINDS and kind in table:
        yield component(f"{label} [{kind}]", table[kind])


def component(label: str, table: Mapping[str, Any], reserved: Collection[str] = RESERVED) -> Component:
    """The values of a table, all but those under `reserved` keys."""
    values = {key: value for key, value in table.items() if key not in reserved}
    return Component(label=label, table=values, sources=table.get("sources", {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A value of a stack as its file writes it, the component that set it and its source; `component` is empty for a default."""

    path: str
    value: Any
    component: str
    source: str


def origins(record: type, composed: Composition) -> Iterator[Origin]:
    """Every key of the record in the order of its declaration; a table has one line for each of its entries."""
    return _origins(record, composed.assigned, ())


def _origins(record: type, assigned: Mapping[Path, Assigned], at: Path) -> Iterator[Origin]:
    for name, (kind, about, default) in declared(record).items():
        path = (*at, name)
        if isinstance(kind, type) and is_dataclass(kind):
            yield from _origins(kind, assigned, path)
            continue
        found = [(own, one) for own, one in assigned.items() if own[: len(path)] == path]
        for own, one in found:
            yield Origin(path=".".join(own), value=one.value, component=one.component, source=one.source)
        if not found:
            yield Origin(path=".".join(path), value=written(default, about), component="", source="")
