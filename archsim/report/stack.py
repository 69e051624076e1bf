"""A stack for people and programs: every value, the component that set it and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from archsim.report.text import clean, table
from archsim.stack import catalog
from archsim.stack.compose import VIEWS, origins
from archsim.stack.key import lines
from archsim.stack.releases import of_parts
from archsim.stack.stack import Stack

SCHEMA = "archsim-stack/1"
DEFAULT = "default"


def stack_text(name: str) -> str:
    """All values, then the sources by their numbers."""
    stack, composed = catalog.find(name), catalog.composition(name)
    found = list(origins(catalog.RECORD, composed))
    numbers = {source: i for i, source in enumerate(dict.fromkeys(o.source for o in found if o.source), 1)}
    rows = [
        (path, o.component or DEFAULT, f"[{numbers[o.source]}]" if o.source else "", said)
        for o in found
        for path, said in _rows(o.path, o.value)
    ]
    parts = ", ".join(f"{axis} {part}" for axis, part in composed.parts.items()) or "values of its own"
    head = clean(f"{stack.id}: {stack.framework}, for {stack.kind}; composed of {parts}")
    sources = [clean(f"  [{number}] {source}") for source, number in numbers.items()]
    values = table(("key", "set by", "source", "value"), rows, left=4)
    changes = _changes(composed.parts)
    return "\n\n".join([head, f"fuses: {fusion_words(stack)}", values, *changes, "\n".join(["Sources", *sources])])


def fusion_words(stack: Stack) -> str:
    """Which rule a stack fuses by, in words."""
    if stack.fusion.rule != "own":
        return f"{stack.fusion.rule}, as --fusion {stack.fusion.rule}"
    free = sorted(op for op, rows in stack.passes.items() if "forward" in rows and not rows["forward"].launches)
    joined = sorted({*stack.fused, *(op for op in free if op not in VIEWS)})
    whole = ["attention is one kernel"] if stack.attention.fused else []
    return "; ".join([*([f"into other kernels {', '.join(joined)}"] if joined else []), *whole]) or "nothing"


def _changes(parts: Mapping[str, str]) -> list[str]:
    """The release notes that the parts of a stack stand for."""
    found = of_parts(parts)
    if not found:
        return []
    rows = [(r.name, r.version, r.date or "-", clean(r.effect), clean(r.changed)) for r in found]
    return ["Release notes (`archsim list releases` has their sources)\n"
            + table(("library", "release", "date", "key", "what changed"), rows, left=5)]  # fmt: skip


def stack_record(name: str) -> dict[str, Any]:
    """The same for programs, with the meaning of every key."""
    stack, composed = catalog.find(name), catalog.composition(name)
    return {
        "schema": SCHEMA, "id": stack.id, "parts": dict(composed.parts), "digest": stack.digest,
        "fuses": fusion_words(stack), "releases": [asdict(release) for release in of_parts(composed.parts)],
        "values": {o.path: {"value": o.value, "component": o.component or DEFAULT, "source": o.source}
                   for o in origins(catalog.RECORD, composed)},
        "keys": {key.pop("path"): key for key in map(asdict, lines(catalog.RECORD))},
    }  # fmt: skip


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
