"""Which tokens a mask of attention hides."""

from __future__ import annotations

from archsim.trace.dims import Shape
from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode

COMPARED = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Trilu")
DEEP = 60  # nodes above a mask that are looked at


def hides_later(graph: NodeGraph, mask: str, scores: Shape) -> bool:
    """Whether a mask hides the tokens after each query: it differs from query to query, and positions are compared above it.

    A mask that is the same for all heads and samples, whatever the model is given, and has a row for each query, is one; learned
    biases differ from head to head, and masks of padding from sample to sample.
    """
    known = graph.known[mask]
    queries, keys = scores[-2:]
    if len(known.shape) < 2 or known.shape[-2:] != (queries, keys) or queries == 1:
        return False
    if known.value is not None:
        square = known.value.reshape(-1, queries, keys)[0]
        return bool((square[0] != square[-1]).any())
    if known.fixed and all(size == 1 for size in known.shape[:-2]):
        return True
    return _compares(graph, mask, (queries, keys))


def _compares(graph: NodeGraph, tensor: str, square: Shape) -> bool:
    """Whether each position is compared with each on the way to a tensor."""
    waiting, seen = [tensor], set[ModelNode]()
    while waiting and len(seen) < DEEP:
        node = graph.all_makers.get(waiting.pop())
        if node is None or node in seen:
            continue
        seen.add(node)
        compared = [graph.shape(name) for name in node.inputs if name]
        if (
            node.kind in COMPARED
            and graph.shape(node.outputs[0])[-2:] == square
            and (node.kind == "Trilu" or all(len(shape) and max(shape[-2:]) > 1 for shape in compared))
        ):
            return True
        waiting += [name for name in node.inputs if name]
    return False
