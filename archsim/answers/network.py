"""What a network says: its work, its ops, and what became of the operators of its file."""

from __future__ import annotations

from typing import Any

from archsim.base.units import show
from archsim.render.blocks import Block, Table, Verdict, columns, number, words
from archsim.trace.file import ShownNetwork


def record(shown: ShownNetwork) -> dict[str, Any]:
    """A network as plain values."""
    trace, bound = shown.trace, shown.bound
    found: dict[str, Any] = {"schema": "archsim-network/1", "network": trace.name if trace else shown.name}
    found |= {"source": "", "macs": None, "flop": None, "parameters": None, "sizes": {}, "ops": []}
    if trace is not None and bound is not None:
        ops = [
            {"name": op.name, "kind": op.kind.op, "inputs": list(op.inputs), "output": list(op.shape), "macs": b.macs,
             "flop": b.flop, "parameters": b.parameters}
            for op, b in zip(trace.ops, bound.ops, strict=True)
        ]  # fmt: skip
        found |= {"source": trace.source, "macs": bound.macs, "flop": bound.flop, "parameters": bound.parameters,
                  "sizes": {name: size.usual for name, size in trace.sizes.items()}, "ops": ops}  # fmt: skip
    found["operators"] = [row._asdict() for row in shown.operators]
    return found


def sections(shown: ShownNetwork) -> list[Block]:
    """The blocks of a network."""
    found: list[Block] = []
    trace, bound = shown.trace, shown.bound
    if trace is not None and bound is not None:
        said = {"N": 1} | {name: size.usual for name, size in trace.sizes.items()} | dict(shown.sizes)
        sizes = [f"at batch {said.pop('N')}", *(f"{name} = {size}" for name, size in said.items())]
        rows = [
            [words(op.name), words(op.kind.op), words(", ".join(op.inputs)), words("x".join(map(str, op.shape))),
             words(f"{b.macs:,}"), number(b.flop, "FLOP"), words(f"{b.parameters:,}")]
            for op, b in zip(trace.ops, bound.ops, strict=True)
        ]  # fmt: skip
        found = [
            Verdict(title=trace.name, asked=[f"{len(rows)} ops", *sizes], lines=[
                (f"{show(bound.flop, 'FLOP')}", f"{bound.macs:,} MACs", f"{bound.parameters:,} parameters")],
                sentences=[trace.source] if trace.source else []),
            Table(title="Ops", rows=rows, long=len(rows) > 20,
                  columns=columns("", "kind", "inputs", "output", "MACs", "work", "parameters", numbers=(4, 5, 6))),
        ]  # fmt: skip
    listed = [[words(row.operator), words(str(row.nodes)), words(row.status), words(row.why)] for row in shown.operators]
    heads = columns("", "nodes", "becomes", "", numbers=(1,))
    return [*found, Table(title="Operators of the file", columns=heads, rows=listed)] if listed else found
