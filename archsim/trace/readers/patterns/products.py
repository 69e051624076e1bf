"""Products with their biases, and with operands that lie transposed."""

from __future__ import annotations

from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode


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
