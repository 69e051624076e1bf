"""Nodes that change nothing that is counted: names, and formats of values between layers."""

from __future__ import annotations

from archsim.trace.readers.graph import NodeGraph

NOTHING = ("Identity", "Cast", "CastLike")


def tidy(graph: NodeGraph) -> None:
    """Take them out, wherever they do not stand between an input and an output alone."""
    same: dict[str, str] = {}
    for node in graph.nodes:
        if node.kind in NOTHING and not node.domain:
            source = same.get(node.inputs[0], node.inputs[0])
            if not (graph.ends(node.outputs[0]) and source in graph.inferred.model.inputs):
                same[node.outputs[0]] = source
    graph.bypass_all(same)
