"""What a stack says: what it is composed of and fuses, then every value, the component that set it and its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from archsim.answers.device import sources
from archsim.render.blocks import Block, Table, Verdict, columns, words
from archsim.stack import catalog
from archsim.stack.changes import of_parts
from archsim.stack.compose import VIEWS, origins
from archsim.stack.key import lines
from archsim.stack.stack import Stack

SCHEMA = "archsim-stack/1"
DEFAULT = "default"


def record(name: str) -> dict[str, Any]:
    """The stack of a name or path as plain values, with the meaning of every key."""
    stack, composed = catalog.find(name), catalog.composition(name)
    return {
        "schema": SCHEMA, "id": stack.id, "parts": dict(composed.parts), "digest": stack.digest,
        "measured_rows": asdict(catalog.rows_of(stack)),
        "fuses": fusion_words(stack), "releases": [asdict(release) for release in of_parts(composed.parts)],
        "values": {o.path: {"value": o.value, "component": o.component or DEFAULT, "source": o.source}
                   for o in origins(catalog.RECORD, composed)},
        "keys": {key.pop("path"): key for key in map(asdict, lines(catalog.RECORD))},
    }  # fmt: skip


def sections(name: str) -> list[Block]:
    """All values, then the sources by their numbers; the release notes that its parts stand for at level 2."""
    stack, composed = catalog.find(name), catalog.composition(name)
    found = list(origins(catalog.RECORD, composed))
    numbers = {source: i for i, source in enumerate(dict.fromkeys(o.source for o in found if o.source), 1)}
    rows = [[words(path), words(said), words(o.component or DEFAULT, tone="" if o.component else "quiet"),
             words(f"[{numbers[o.source]}]" if o.source else "")]
            for o in found for path, said in _rows(o.path, o.value)]  # fmt: skip
    parts = ", ".join(f"{axis} {part}" for axis, part in composed.parts.items()) or "values of its own"
    notes = [[words(r.name), words(r.version), words(r.date or "-"), words(r.effect), words(r.changed)]
             for r in of_parts(composed.parts)]  # fmt: skip
    return [
        Verdict(title=stack.id, asked=[stack.framework, f"for {stack.kind}", f"composed of {parts}"],
                sentences=[f"It fuses: {fusion_words(stack)}.", f"There are {catalog.rows_of(stack).words}."]),
        Table(title="Values", columns=columns("", "value", "set by", "source", numbers=(3,)), rows=rows, long=True),
        sources(numbers),
        Table(title="Release notes", columns=columns("", "release", "date", "key", "what changed"), rows=notes, level=2,
              notes=["`archsim list releases` has their sources."]),
    ]  # fmt: skip


def fusion_words(stack: Stack) -> str:
    """Which rule a stack fuses by, in words."""
    if stack.fusion.rule != "own":
        return f"{stack.fusion.rule}, as --fusion {stack.fusion.rule}"
    free = sorted(op for op, rows in stack.passes.items() if "forward" in rows and not rows["forward"].launches)
    joined = sorted({*stack.fused, *(op for op in free if op not in VIEWS)})
    whole = ["attention is one kernel"] if stack.attention.fused else []
    return "; ".join([*([f"into other kernels {', '.join(joined)}"] if joined else []), *whole]) or "nothing"


def _rows(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """A table of tables has a line for each of its entries."""
    if isinstance(value, dict) and any(isinstance(entry, dict) for entry in value.values()):
        for name, entry in value.items():
            yield from _rows(f"{path}.{name}", entry)
    else:
        yield path, _said(value)


def _said(value: Any) -> str:
    """One value on one line; a tile as its rows x columns x depth."""
    if isinstance(value, dict):
        if {"m", "n", "k"} <= value.keys():
            return f"{value['m']}x{value['n']}x{value['k']}"
        return ", ".join(f"{name} = {_said(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, list):
        return " ".join("x".join(map(str, v)) if isinstance(v, list) else _said(v) for v in value) or "none"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
