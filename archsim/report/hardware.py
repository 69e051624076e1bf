"""Devices and nodes as text and as plain records: every value with unit, range, source, kind and the file that has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.base.units import show
from archsim.device.entry import Entry
from archsim.device.spec import Spec, keys
from archsim.node.spec import NodeSpec
from archsim.report.text import clean, table

HEAD = ("key", "value", "type", "range", "kind", "file", "meaning", "source, note")


def device_text(spec: Spec) -> str:
    """A device for a terminal: every key of its kind, those that it lacks too, then what the vendor states."""
    i = spec.identity
    rows = []
    for key, unit, _ in keys(spec.kind):
        entry = spec.entries.get(key)
        if entry is not None:
            value = entry.written if isinstance(entry.value, str) else show(float(entry.number), unit.unit)
            about = "; ".join(filter(None, (entry.source, entry.note, "informs only" if unit.informational else "")))
            rows.append((key, value, unit.kind, unit.range, entry.kind, entry.file, unit.doc, about))
        else:
            rows.append((key, "-", unit.kind, unit.range, "", "", unit.doc, "not in this spec; --set gives it a value"))
    head = f"{i.name} ({i.id}): {i.vendor} {i.architecture}, {i.year}, {spec.kind}, default stack {i.default_stack}"
    stated = [(key, e.written, f"{e.clock} clock" if e.clock != "none" else "", e.source) for key, e in spec.stated.items()]
    parts = [clean(head), table(HEAD, rows, left=len(HEAD))]
    if stated:
        parts.append("Stated by the vendor\n" + table(("peak", "value", "at", "source"), stated, left=4))
    return "\n\n".join([*parts, _counted(spec)])


def _counted(spec: Spec) -> str:
    """How many values are assumed or of a sibling chip, and how many come from the specs that this one inherits."""
    text = f"{len(spec.entries)} values: {_unpublished(spec.assumed)}"
    others = dict.fromkeys(entry.file for entry in spec.entries.values() if entry.file != spec.identity.id)
    for file in others:
        text += f"; {sum(entry.file == file for entry in spec.entries.values())} are inherited from {file}"
    return text


def _unpublished(entries: Sequence[Entry]) -> str:
    """How many values nobody has published of this very device, by kind."""
    of_sibling = sum(entry.kind == "sibling" for entry in entries)
    return f"{len(entries) - of_sibling} are assumed, {of_sibling} are of a sibling chip"


def device_record(spec: Spec) -> dict[str, Any]:
    """A device as plain values, for JSON."""
    return {
        "identity": asdict(spec.identity),
        "kind": spec.kind,
        "hash": spec.digest,
        "values": {key: asdict(entry) for key, entry in spec.entries.items()},
        "keys": {key: {"type": unit.kind, "unit": unit.unit, "range": unit.range, "meaning": unit.doc,
                       "informs_only": unit.informational, "inherited": unit.inherited, "required": required}
                 for key, unit, required in keys(spec.kind)},
        "stated": {key: asdict(entry) for key, entry in spec.stated.items()},
    }  # fmt: skip


def node_record(spec: NodeSpec) -> dict[str, Any]:
    """A node as plain values, for JSON."""
    node = spec.node
    return {
        "schema": "archsim-node/1", "id": node.id, "name": node.name, "devices": node.devices, "holds": node.holds or None,
        "values": {key: asdict(entry) for key, entry in spec.entries.items()},
        "links": [{"from": one, "to": other, "kind": kind.name, "count": count} for one, other, kind, count in node.links],
    }  # fmt: skip


def node_text(spec: NodeSpec) -> str:
    """A node for a terminal: its values, then its links."""
    node = spec.node
    rows = [(e.key, e.written, e.kind, "; ".join(filter(None, (e.source, e.note)))) for e in spec.entries.values()]
    links = [(one, other, f"{count} x {kind.name}") for one, other, kind, count in node.links]
    holds = f", sold with {node.holds}" if node.holds else ""
    parts = [clean(f"{node.name} ({node.id}): {node.devices} devices{holds}"),
             table(("key", "value", "kind", "source, note"), rows, left=4), table(("from", "to", "links"), links, left=3),
             f"{len(spec.entries)} values: {_unpublished(spec.assumed)}"]  # fmt: skip
    return "\n\n".join(parts)
