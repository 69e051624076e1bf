"""Layers that exporters write as arithmetic: activations (GELU, SiLU, hard swish, hard sigmoid) and normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from archsim.trace.dims import Shape
from archsim.trace.readers.graph import OWN, NodeGraph
from archsim.trace.readers.model import ModelNode, axis_in

LONGEST = 10  # nodes on the way from the input to the result
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow")


def activations(graph: NodeGraph) -> None:
    """Find them by the function in their middle."""
    for node in graph.nodes:
        if node.kind == "Erf":
            _around(graph, node, "Gelu")
        elif node.kind == "Tanh":
            _around(graph, node, "GeluTanh")
        elif node.kind in ("Sigmoid", "HardSigmoid"):
            _gated(graph, node)
        elif node.kind in ("Clip", "Min", "Max"):
            _hard(graph, node)


def _source(graph: NodeGraph, node: ModelNode) -> tuple[str, list[ModelNode]] | None:
    """The one tensor from which arithmetic with constants makes the input of a function, and the nodes on the way.

    The tensor may enter several times, as in x + 0.044715 x^3: it is the one at which all ways from the function end.
    """
    start = graph.moving(node)
    if len(start) != 1:
        return None
    best: tuple[str, list[ModelNode]] = (start[0], [])
    frontier, taken = {start[0]}, list[ModelNode]()
    for _ in range(LONGEST):
        makers = [graph.producer.get(tensor) for tensor in frontier]
        able = [m for m in makers if m is not None and m.kind in ARITHMETIC and not _used_outside(graph, m, [*taken, node])]
        if not able:
            break
        last = max(able, key=lambda m: graph._place[m])
        taken.append(last)
        frontier.discard(last.outputs[0])
        frontier |= set(graph.moving(last))
        if len(frontier) == 1:
            best = (next(iter(frontier)), [*taken])
    return best


def _around(graph: NodeGraph, node: ModelNode, kind: str) -> None:
    """(1 + f(g(x))) * x / 2, in whatever order its factors stand."""
    found = _source(graph, node)
    if found is None:
        return
    x, before = found
    after: list[ModelNode] = []
    held, added, gated, halves = node.outputs[0], False, False, 0
    candidates = _sources_of(graph, x, before, node)
    for _ in range(LONGEST):
        reader = graph.reader(held, "Add", "Mul", "Div", "Sub")
        if reader is None:
            break
        other = graph.other(reader, held)
        if reader.kind == "Mul" and not gated and added and _is_source(graph, other, candidates):
            gated = True
            x = _plain(graph, other, candidates)
            maker = graph.producer.get(other)
            if other != x and maker is not None:
                after.append(maker)
                halves += 1
        elif other and graph.fixed(other) and graph.number(other) is not None:
            added = added or (reader.kind == "Add" and graph.number(other) == 1.0)
            halves += reader.kind in ("Mul", "Div")
        else:
            break
        after.append(reader)
        held = reader.outputs[0]
        if gated and added and halves:
            break
    if not (gated and added):
        return
    nodes = [*(n for n in before if not _used_outside(graph, n, [*before, *after, node])), node, *after]
    if graph.shape(held) == graph.shape(x):
        approximate = {"approximate": "tanh"} if kind == "GeluTanh" else {}
        graph.replace(nodes, "Gelu", [x], [held], domain="", name=after[-1].name, **approximate)


def _sources_of(graph: NodeGraph, x: str, before: list[ModelNode], node: ModelNode) -> list[str]:
    """The tensors that may be the x of the factor: the source and what lies between it and the function."""
    return [x, *(tensor for n in [*before, node] for tensor in graph.moving(n))]


def _is_source(graph: NodeGraph, tensor: str, candidates: list[str]) -> bool:
    return bool(tensor) and (tensor in candidates or _plain(graph, tensor, candidates) in candidates)


def _plain(graph: NodeGraph, tensor: str, candidates: list[str]) -> str:
    """x of x / 2."""
    maker = graph.maker(tensor, "Mul", "Div")
    if tensor in candidates or maker is None:
        return tensor
    moving = graph.moving(maker)
    return moving[0] if len(moving) == 1 and graph.learned(maker, moving[0]) and len(graph.readers(tensor)) == 1 else tensor


def _used_outside(graph: NodeGraph, node: ModelNode, inside: list[ModelNode]) -> bool:
    return graph.ends(node.outputs[0]) or any(reader not in inside for reader in graph.readers(node.outputs[0]))


def _gated(graph: NodeGraph, node: ModelNode) -> None:
    """x * sigmoid(x), or x * hard_sigmoid(x); the sigmoid may be of a multiple of x."""
    reader = graph.reader(node.outputs[0], "Mul")
    x = node.inputs[0]
    if reader is None:
        return
    other, nodes = graph.other(reader, node.outputs[0]), [node, reader]
    scaled = graph.maker(x, "Mul")
    if other != x and scaled is not None and graph.learned(scaled, other) and graph.reader(x) is node:
        x, nodes = other, [scaled, *nodes]
    if other == x:
        kind = "Silu" if node.kind == "Sigmoid" else "HardSwish"
        graph.replace(nodes, kind, [x], reader.outputs, name=reader.name)


def _hard(graph: NodeGraph, node: ModelNode) -> None:
    """min(max(x + 3, 0), 6) / 6, and its product with x."""
    start = graph.maker(node.inputs[0], "Add")
    if start is None or graph.reader(start.outputs[0]) is not node or len(graph.moving(start)) != 1:
        return
    x = graph.moving(start)[0]
    if graph.number(graph.other(start, x)) != 3.0:
        return
    nodes, held, gated, scaled = [start, node], node.outputs[0], False, False
    while (reader := graph.reader(held, "Div", "Mul")) is not None and not (gated and scaled):
        other = graph.other(reader, held)
        number = graph.number(other) if other else None
        if reader.kind == "Mul" and other == x and not gated:
            gated = True
        elif number is not None and (6.5 > number > 5.5 or 0.16 < number < 0.17) and not scaled:
            scaled = True
        else:
            break
        nodes.append(reader)
        held = reader.outputs[0]
    if scaled:
        graph.replace(nodes, "HardSwish" if gated else "HardSigmoid", [x], [held], domain="archsim", name=nodes[-1].name)


# ------------------------------------------------------------------------------------------------------- normalisations


def norms(graph: NodeGraph) -> None:
    """Layer and RMS normalisation over the last dimensions; group normalisation as an instance normalisation of groups."""
    for node in graph.nodes:
        if node not in graph._place:
            continue
        if node.kind == "ReduceMean":
            _layer_norm(graph, node) or _rms_norm(graph, node)
        elif node.kind == "InstanceNormalization":
            _group_norm(graph, node)
        elif node.kind in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
            _with_scale(graph, node)


def _last_axes(graph: NodeGraph, node: ModelNode) -> int:
    """The first of the last dimensions over which a mean goes; 0 where it goes over others."""
    call = graph.call(node)
    rank = len(call.shape())
    axes = sorted(axis_in(axis, rank) for axis in call.integers("axes", at=1) or range(rank))
    keeps = call.integer("keepdims", 1)
    return axes[0] if keeps and axes == list(range(axes[0], rank)) else 0


def _square(graph: NodeGraph, tensor: str) -> ModelNode | None:
    """The node that squares a tensor."""
    for reader in graph.readers(tensor):
        power = reader.kind == "Pow" and reader.inputs[0] == tensor and graph.number(reader.inputs[1]) == 2.0
        if power or (reader.kind == "Mul" and reader.inputs == (tensor, tensor)):
            return reader
    return None


def _root(graph: NodeGraph, mean: ModelNode) -> tuple[list[ModelNode], str] | None:
    """From the mean of squares to its root, or the inverse of that: the nodes, and the tensor."""
    nodes, held = [mean], mean.outputs[0]
    for kinds in (("Add",), ("Sqrt",), ("Reciprocal",)):
        reader = graph.reader(held, *kinds)
        if reader is None:
            if kinds == ("Reciprocal",):
                break
            power = graph.reader(held, "Pow")
            if power is not None and graph.number(power.inputs[1]) in (0.5, -0.5):
                return [*nodes, power], power.outputs[0]
            return None
        if kinds == ("Add",) and not graph.learned(reader, held):
            return None
        nodes.append(reader)
        held = reader.outputs[0]
    inverse = graph.reader(held, "Div")
    if inverse is not None and inverse.inputs[1] == held and graph.number(inverse.inputs[0]) == 1.0:
        return [*nodes, inverse], inverse.outputs[0]
    return nodes, held


def _layer_norm(graph: NodeGraph, mean: ModelNode) -> bool:
    axis, x = _last_axes(graph, mean), mean.inputs[0]
    centred = graph.readers(mean.outputs[0])
    if not axis or not centred or any(reader.kind != "Sub" or reader.inputs != (x, mean.outputs[0]) for reader in centred):
        return False
    for reader in centred:
        square = _square(graph, reader.outputs[0])
        second = None if square is None else graph.reader(square.outputs[0], "ReduceMean")
        found = None if second is None else _root(graph, second)
        if square is None or found is None:
            continue
        nodes, root = found
        scaled = graph.reader(root, "Div", "Mul")
        tops = [top.outputs[0] for top in centred]
        if scaled is None or graph.other(scaled, root) not in tops:
            continue
        _finish(graph, [mean, *centred, square, *nodes, scaled], "LayerNormalization", x, axis)
        return True
    return False


def _one_axis(graph: NodeGraph, node: ModelNode) -> int:
    """The one dimension over which a mean goes, as no last one: 0 where there are several."""
    call = graph.call(node)
    axes = call.integers("axes", at=1) or []
    return axis_in(axes[0], len(call.shape())) if len(axes) == 1 and call.integer("keepdims", 1) else 0


def _rms_norm(graph: NodeGraph, mean: ModelNode) -> bool:
    axis = _last_axes(graph, mean)
    if not axis:
        axis = _one_axis(graph, mean)
    square = graph.producer.get(mean.inputs[0])
    if not axis or square is None or graph.reader(square.outputs[0]) is not mean:
        return False
    x = square.inputs[0]
    found = _root(graph, mean) if _square(graph, x) is square else None
    if found is None:
        return False
    nodes, root = found
    scaled = graph.reader(root, "Div", "Mul")
    if scaled is None or graph.other(scaled, root) != x:
        return False
    if axis == len(graph.shape(x)) - 1 or _last_axes(graph, mean):
        _finish(graph, [square, *nodes, scaled], "RMSNormalization", x, axis)
    else:
        _scaled(graph, [square, *nodes, scaled], "ChannelNorm", x, lambda shape: math.prod(shape) == graph.shape(x)[axis],
                domain=OWN, axis=axis)  # fmt: skip
    return True


def _finish(graph: NodeGraph, nodes: list[ModelNode], kind: str, x: str, axis: int) -> None:
    """Over the last dimensions."""
    width = graph.shape(x)[axis:]
    _scaled(graph, nodes, kind, x, lambda shape: shape[-len(width) :] == width, shifts="Layer" in kind, axis=axis)


def _scaled(
    graph: NodeGraph, nodes: list[ModelNode], kind: str, x: str, fits: Callable[[Shape], bool], *, shifts: bool = False,
    domain: str = "", **attributes: Any,
) -> None:  # fmt: skip
    """One node with the learned scale and shift behind it, where there are some of a shape that fits."""
    nodes, read = [*nodes], [x]
    for operator in ("Mul", "Add")[: 1 + shifts]:
        reader = graph.reader(nodes[-1].outputs[0], operator)
        learned = "" if reader is None else graph.learned(reader, nodes[-1].outputs[0])
        if reader is not None and learned and fits(graph.shape(learned)):
            nodes.append(reader)
            read.append(learned)
    graph.replace(nodes, kind, read, nodes[-1].outputs, domain=domain, name=nodes[-1].name, **attributes)


def _with_scale(graph: NodeGraph, node: ModelNode) -> None:
    """A normalisation without scale and shift of its own, and those behind it."""
    if len([name for name in node.inputs[1:] if name and not graph.known[name].value is not None]) > 0:
        return
    if graph.reader(node.outputs[0], "Mul") is not None:
        _finish(graph, [node], node.kind, node.inputs[0], graph.call(node).axis("axis", -1))


def _group_norm(graph: NodeGraph, node: ModelNode) -> None:
    """Reshape to groups, normalise each, reshape back, scale and shift."""
    before = graph.maker(node.inputs[0], "Reshape")
    after = graph.reader(node.outputs[0], "Reshape")
    if before is None or after is None or graph.reader(before.outputs[0]) is not node:
        return
    x = before.inputs[0]
    shape, grouped = graph.shape(x), graph.shape(before.outputs[0])
    if len(shape) < 3 or graph.shape(after.outputs[0]) != shape or len(grouped) < 2 or shape[1] % grouped[1]:
        return
    _scaled(graph, [before, node, after], "GroupNormalization", x, lambda learned: math.prod(learned) in (1, shape[1]),
            shifts=True, num_groups=grouped[1])  # fmt: skip
