"""Rotary position embedding: x cos + rotated(x) sin, where rotated changes halves of the features, the second of them negated."""

from __future__ import annotations

from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode


def rotary(graph: NodeGraph) -> None:
    """On [N, heads, T, size] as exporters write it; it becomes one node over those dimensions."""
    for node in graph.nodes:
        if node in graph._place and node.kind == "Add" and len(node.inputs) == 2:
            _turned(graph, node)


def _turned(graph: NodeGraph, node: ModelNode) -> None:
    for first, second in (node.inputs, node.inputs[::-1]):
        plain, swapped = graph.maker(first, "Mul"), graph.maker(second, "Mul")
        if plain is None or swapped is None or plain is swapped:
            continue
        for rotated in swapped.inputs:
            joined = graph.maker(rotated, "Concat")
            found = None if joined is None else _halves(graph, joined)
            if joined is None or found is None or found[0] not in plain.inputs:
                continue
            x, parts = found
            inner = [plain, swapped, joined, *parts]
            if any(graph.reader(n.outputs[0]) is None for n in (plain, swapped, joined)) or len(graph.shape(x)) < 3:
                continue
            nodes = [n for n in inner if all(r in [*inner, node] for o in n.outputs for r in graph.readers(o))]
            graph.replace([*nodes, node], "Rotary", [x], node.outputs, name=node.name, width=graph.shape(x)[-1])
            return


def _halves(graph: NodeGraph, joined: ModelNode) -> tuple[str, list[ModelNode]] | None:
    """The tensor whose halves are joined the other way round, the first negated."""
    if len(joined.inputs) != 2:
        return None
    negated = graph.maker(joined.inputs[0], "Neg")
    if negated is None:
        return None
    parts = [graph.maker(tensor, "Slice", "Split") for tensor in (negated.inputs[0], joined.inputs[1])]
    if parts[0] is None or parts[1] is None or parts[0].inputs[0] != parts[1].inputs[0]:
        return None
    x = parts[0].inputs[0]
    if graph.shape(joined.outputs[0]) != graph.shape(x):
        return None
    return x, [negated, *dict.fromkeys(part for part in parts if part is not None)]
