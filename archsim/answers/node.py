"""What a node says: its devices and links, then every value with its kind and source."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.answers.device import unpublished, values
from archsim.node.spec import NodeSpec
from archsim.render.blocks import Block, Table, Verdict, columns, words


def record(spec: NodeSpec) -> dict[str, Any]:
    """A node as plain values."""
    node = spec.node
    return {
        "schema": "archsim-node/1", "id": node.id, "name": node.name, "devices": node.devices, "holds": node.holds or None,
        "values": {key: asdict(entry) for key, entry in spec.entries.items()},
        "links": [{"from": one, "to": other, "kind": kind.name, "count": count} for one, other, kind, count in node.links],
    }  # fmt: skip


def sections(spec: NodeSpec) -> list[Block]:
    """The blocks of a node."""
    node = spec.node
    links = [[words(one), words(other), words(f"{count} x {kind.name}")] for one, other, kind, count in node.links]
    holds = [f"sold with {node.holds}"] if node.holds else []
    return [Verdict(title=f"{node.name} ({node.id})", asked=[f"{node.devices} devices", *holds],
                    sentences=[f"{len(spec.entries)} values: {unpublished(spec.assumed)}"]),
            Table(title="Links from", columns=columns("", "to", "links"), rows=links),
            *values((entry.key, entry.written, entry) for entry in spec.entries.values())]  # fmt: skip
