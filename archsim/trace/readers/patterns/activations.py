"""Activations that exporters write as arithmetic: GELU in its two forms, SiLU, hard swish and hard sigmoid."""

from __future__ import annotations

from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode

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
        able = [m for m in makers if m is not None and m.kind in ARITHMETIC and not _leaves(graph, m, taken, node)]
        if not able:
            break
        last = max(able, key=lambda m: graph._place[m])
        taken.append(last)
        frontier.discard(last.outputs[0])
        frontier |= set(graph.moving(last))
        if len(frontier) == 1:
            best = (next(iter(frontier)), [*taken])
    return best


def _leaves(graph: NodeGraph, maker: ModelNode, taken: list[ModelNode], node: ModelNode) -> bool:
    """Whether somebody else reads what a node makes."""
    return graph.ends(maker.outputs[0]) or any(r not in taken and r is not node for r in graph.readers(maker.outputs[0]))


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
        made = "Gelu"
        approximate = {"approximate": "tanh"} if kind == "GeluTanh" else {}
        graph.replace(nodes, made, [x], [held], domain="", name=after[-1].name, **approximate)


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
