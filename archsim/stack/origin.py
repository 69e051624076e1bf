"""Which component of a stack set each value, and which values nobody set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

from archsim.stack.compose import Assigned, Composition
from archsim.stack.key import declared, written
from archsim.stack.read import Path


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
