"""Patterns: nodes that together are one layer, found by what they compute and not by their names; all in the order of use."""

from __future__ import annotations

from collections.abc import Callable

from archsim.trace.readers.arithmetic_patterns import activations, norms
from archsim.trace.readers.attention_pattern import attention
from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode

NOTHING = ("Identity", "Cast", "CastLike")
BETWEEN = ("Squeeze", "Reshape", "Transpose")


def tidy(graph: NodeGraph) -> None:
    """Take out what changes nothing that is counted, names and formats, unless it alone leads from an input to an output."""
    same: dict[str, str] = {}
    for node in graph.nodes:
        if node.kind in NOTHING and not node.domain:
            source = same.get(node.inputs[0], node.inputs[0])
            if not (graph.ends(node.outputs[0]) and source in graph.inferred.model.inputs):
                same[node.outputs[0]] = source
    graph.bypass_all(same)


def products(graph: NodeGraph) -> None:
    """A bias that is added to a product with weights belongs to it; a swap of the last two dimensions is a flag of a product."""
    for node in graph.nodes:
        if (
            node.kind == "Gemm"
            and graph.fixed(node.inputs[1])
            and not graph.fixed(node.inputs[0])
            and not node.attributes.get("transA")
        ):
            graph.replace([node], "MatMul", node.inputs, node.outputs, name=node.name, bias=int(len(node.inputs) > 2),
                          transB=node.attributes.get("transB", 0))  # fmt: skip
        elif node in graph._place and node.kind == "MatMul" and not node.domain:
            _biased(graph, _turned(graph, node))
        elif node in graph._place and node.kind == "Conv":
            _conv_bias(graph, node)


def _biased(graph: NodeGraph, node: ModelNode) -> None:
    fixed = [graph.fixed(name) for name in node.inputs[:2]]
    if fixed[0] == fixed[1]:
        return
    reader = graph.reader(node.outputs[0], "Add")
    bias = "" if reader is None else graph.learned(reader, node.outputs[0])
    if reader is None or not bias:
        return
    width = graph.shape(node.outputs[0])[-1:]
    if tuple(size for size in graph.shape(bias) if size != 1) in (width, ()) and graph.shape(bias)[-1:] == width:
        graph.replace([node, reader], "MatMul", node.inputs, reader.outputs, domain="", name=node.name,
                      **{**node.attributes, "bias": 1})  # fmt: skip


def _conv_bias(graph: NodeGraph, node: ModelNode) -> None:
    if len([name for name in node.inputs if name]) != 2:
        return
    reader = graph.reader(node.outputs[0], "Add")
    bias = "" if reader is None else graph.learned(reader, node.outputs[0])
    shape = graph.shape(node.outputs[0])
    if (
        reader is not None
        and bias
        and graph.shape(bias) in ((shape[1], *[1] * (len(shape) - 2)), (1, shape[1], *[1] * (len(shape) - 2)))
    ):
        graph.replace(
            [node, reader], "Conv", [*node.inputs[:2], bias], reader.outputs, domain="", name=node.name, **node.attributes
        )


def _turned(graph: NodeGraph, node: ModelNode) -> ModelNode:
    """A product of two tensors, one of which is a plain transpose of the last two dimensions."""
    if any(graph.fixed(name) for name in node.inputs[:2]):
        return node
    inputs, flags, nodes = list(node.inputs), {}, [node]
    for i, flag in enumerate(("transA", "transB")):
        maker = graph.maker(inputs[i], "Transpose")
        if maker is None or graph.reader(inputs[i]) is not node:
            continue
        rank = len(graph.shape(inputs[i]))
        if graph.call(maker).integers("perm", range(rank)[::-1]) == [*range(rank - 2), rank - 1, rank - 2]:
            inputs[i], flags[flag] = maker.inputs[0], 1
            nodes.append(maker)
    if not flags:
        return node
    return graph.replace(nodes, "MatMul", inputs, node.outputs, name=node.name, **{**node.attributes, **flags})


def rotary(graph: NodeGraph) -> None:
    """x cos + rotated(x) sin on [N, heads, T, size], where rotated changes halves of the features, the second of them negated."""
    for node in graph.nodes:
        if node in graph._place and node.kind == "Add" and len(node.inputs) == 2:
            _rotated(graph, node)


def _rotated(graph: NodeGraph, node: ModelNode) -> None:
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


def recurrences(graph: NodeGraph) -> None:
    """Layers of one kind and width, each of which reads all steps of the one below: frameworks make one call of them."""
    for node in graph.nodes:
        if node in graph._place and node.kind in ("LSTM", "GRU", "RNN"):
            made: ModelNode | None = node
            while made is not None:
                made = _stacked(graph, made)


def _stacked(graph: NodeGraph, node: ModelNode) -> ModelNode | None:
    """A layer with the one above it as one node; None where they are not alike, or none is above."""
    held, views = node.outputs[0], []
    while held and (reader := graph.reader(held, *BETWEEN)) is not None:
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


PATTERNS: tuple[Callable[[NodeGraph], None], ...] = (tidy, norms, activations, products, rotary, attention, recurrences)


def apply_patterns(graph: NodeGraph) -> None:
    """Let each pattern take its nodes."""
    graph.without_dead()
    for pattern in PATTERNS:
        pattern(graph)
        graph.without_dead()
