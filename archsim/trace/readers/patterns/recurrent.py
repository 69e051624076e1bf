"""Recurrent layers one on the other, of which frameworks make one call."""

from __future__ import annotations

from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode

VIEWS = ("Squeeze", "Reshape", "Transpose")


def recurrences(graph: NodeGraph) -> None:
    """Layers of one kind and width, each of which reads all steps of the one below."""
    for node in graph.nodes:
        if node in graph._place and node.kind in ("LSTM", "GRU", "RNN"):
            made: ModelNode | None = node
            while made is not None:
                made = _stacked(graph, made)


def _stacked(graph: NodeGraph, node: ModelNode) -> ModelNode | None:
    """A layer with the one above it as one node; None where they are not alike, or none is above."""
    held, views = node.outputs[0], []
    while held and (reader := graph.reader(held, *VIEWS)) is not None:
        views.append(reader)
        held = reader.outputs[0]
    above = graph.reader(held, node.kind) if held and views else None
    if above is None or above.inputs[0] != held or any(graph.readers(name) for name in node.outputs[1:] if name):
        return None
    below, over = graph.call(node), graph.call(above)
    same = all(below.attribute(name) == over.attribute(name) for name in ("hidden_size", "direction", "layout"))
    if not same or below.has(3) != over.has(3) or len(graph.shape(held)) != 3:
        return None
    if over.shape()[-1] != below.shape(2)[-1] * below.shape(1)[0]:
        return None
    layers = below.integer("layers", 1) + over.integer("layers", 1)
    return graph.replace([node, *views, above], node.kind, node.inputs, above.outputs, domain="", name=above.name,
                         **{**node.attributes, "layers": layers})  # fmt: skip
