"""Attention written as two products with a softmax between: one op over queries, keys and values with their heads side by side.

Between a projection and the products stand views only: a fused kernel reads heads where they lie, by their strides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from archsim.trace.dims import Shape
from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode

VIEWS = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Split", "Gather", "Flatten")
REPEATS = ("Expand", "Tile")
CHANGED = ("Add", "Mul", "Div", "Where", "Sub", "Max", "Min", "Reshape")  # scores on their way to the softmax
DEEP = 12  # nodes on a way


@dataclass(slots=True, kw_only=True)
class HeadOrigin:
    """What a part of attention was made of: the tensor before all views, turned by its positions or not."""

    tensor: str
    rotated: ModelNode | None = None
    size: int = 0
    repeated: bool = False


@dataclass(slots=True, kw_only=True)
class AttentionNodes:
    """The nodes of one attention."""

    softmax: ModelNode
    scores: ModelNode
    values: ModelNode
    causal: bool = False
    nodes: list[ModelNode] = field(default_factory=list)


COMPARED = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Trilu")
MOST_ABOVE = 60  # nodes above a mask that are looked at


def attention(graph: NodeGraph) -> None:
    """From each softmax back to the product with the keys, and forth to that with the values."""
    for node in graph.nodes:
        if node not in graph._place:
            continue
        if node.kind == "Softmax":
            parts = _parts(graph, node)
            if parts is not None:
                _fused(graph, parts)
        elif node.kind == "Attention" and node.domain == "" and _is_plain(graph, node):
            own = AttentionNodes(
                softmax=node, scores=node, values=node, causal=bool(node.attributes.get("is_causal", 0)), nodes=[node]
            )
            if len(node.inputs) > 3 and node.inputs[3]:
                own.causal = own.causal or hides_later(
                    graph, node.inputs[3], (*graph.shape(node.inputs[0])[:-1], graph.shape(node.inputs[1])[-2]))  # fmt: skip
            _fused(graph, own)


def _is_plain(graph: NodeGraph, node: ModelNode) -> bool:
    """Whether heads stand before tokens, and no keys of earlier tokens come in or go out."""
    return len(graph.shape(node.inputs[0])) == 4 and not any(node.inputs[4:]) and not any(node.outputs[1:])


def _parts(graph: NodeGraph, softmax: ModelNode) -> AttentionNodes | None:
    """The products around a softmax."""
    parts = AttentionNodes(softmax=softmax, scores=softmax, values=softmax, nodes=[softmax])
    scores = _product_before(graph, softmax.inputs[0], parts)
    weights = _guarded(graph, softmax.outputs[0], parts)
    while (reader := graph.reader(weights, "Dropout", "Where", "Reshape")) is not None:
        if reader.kind == "Where" and graph.shape(reader.outputs[0]) != graph.shape(weights):
            return None
        parts.nodes.append(reader)
        weights = reader.outputs[0]
    values = graph.reader(weights, "MatMul")
    if scores is None or values is None or values.inputs[0] != weights or values.attributes.get("bias"):
        return None
    q, k, v = (graph.shape(name) for name in (*scores.inputs[:2], values.inputs[1]))
    turned = bool(scores.attributes.get("transB"))
    keys, inner = (k[-2], k[-1]) if turned else (k[-1], k[-2])
    if len({len(q), len(k), len(v)}) != 1 or len(q) not in (3, 4) or scores.attributes.get("transA"):
        return None
    if (keys, inner) != (v[-2], q[-1]) or not q[:-2] == k[:-2] == v[:-2]:
        return None
    parts.scores, parts.values = scores, values
    parts.nodes += [scores, values]
    return parts


def _guarded(graph: NodeGraph, weights: str, parts: AttentionNodes) -> str:
    """The weights behind a guard against rows of which everything is hidden: zero where a weight is no number."""
    readers = graph.readers(weights)
    test = next((reader for reader in readers if reader.kind == "IsNaN"), None)
    guard = None if test is None else graph.reader(test.outputs[0], "Where")
    if test is None or guard is None or set(readers) != {test, guard}:
        return weights
    parts.nodes += [test, guard]
    return guard.outputs[0]


def _product_before(graph: NodeGraph, tensor: str, parts: AttentionNodes) -> ModelNode | None:
    """The product whose scaled and masked result a softmax reads."""
    for _ in range(DEEP):
        maker = graph.producer.get(tensor)
        if maker is None or graph.reader(tensor) is None:
            return None
        if maker.kind == "MatMul":
            return maker if not maker.attributes.get("bias") else None
        if maker.kind not in CHANGED:
            return None
        source = maker.inputs[0]
        if maker.kind != "Reshape":
            wide = [name for name in maker.inputs if name and not graph.fixed(name) and graph.shape(name) == graph.shape(tensor)]
            made = [name for name in wide if _from_product(graph, name)]
            if len(made) != 1:
                return None
            source = made[0]
            others = [name for name in maker.inputs if name and name != source]
            parts.causal = parts.causal or any(hides_later(graph, name, graph.shape(tensor)) for name in others)
        parts.nodes.append(maker)
        tensor = source
    return None


def _from_product(graph: NodeGraph, tensor: str) -> bool:
    """Whether a tensor is a product of two tensors, changed value by value."""
    for _ in range(DEEP):
        maker = graph.producer.get(tensor)
        if maker is None:
            return False
        if maker.kind == "MatMul":
            return not any(graph.fixed(name) for name in maker.inputs[:2])
        if maker.kind not in CHANGED:
            return False
        wide = [name for name in maker.inputs if name and not graph.fixed(name) and graph.shape(name) == graph.shape(tensor)]
        wide = [maker.inputs[0]] if maker.kind == "Reshape" else wide
        if not wide:
            return False
        tensor = wide[0]
    return False


def _fused(graph: NodeGraph, parts: AttentionNodes) -> None:
    """One node in place of the products, on the tensors from which heads were made."""
    tensors = (*parts.scores.inputs[:2], parts.scores.inputs[2] if parts.values is parts.scores else parts.values.inputs[1])
    q, v = graph.shape(tensors[0]), graph.shape(tensors[2])
    size, s = q[-1], v[-2]
    found = [_origin(graph, tensor, size) for tensor in tensors]
    if found[0] is None or found[1] is None or found[2] is None or v[-1] != size:
        return
    origins = [origin for origin in found if origin is not None]
    features = [graph.shape(origin.tensor)[-1] for origin in origins]
    packed = len({origin.tensor for origin in origins}) == 1
    heads = q[1] if packed and len(q) == 4 else _heads(features[0], size, packed)
    if not heads or math.prod(q[:-1]) % (heads * (n := _samples(q, heads))):
        return
    t = math.prod(q[:-1]) // (heads * n)  # heads that share keys may stand below each other as more queries
    shared = (features[0] - heads * size) // (2 * size) if packed else features[1] // size
    widths = [heads * size, shared * size, shared * size]
    wanted = [sum(widths)] * 3 if packed else widths
    rows = [math.prod(graph.shape(origin.tensor)[:-1]) for origin in origins]
    if features != wanted or not shared or heads % shared or rows != [n * t, n * s, n * s]:
        return
    _place(graph, parts, origins, (n, t, s, heads, shared, size), packed)


def _heads(features: int, size: int, packed: bool) -> int:
    """Heads of [N * heads, T, size], by the features of what they were made of."""
    width = features // 3 if packed else features
    return width // size if width % size == 0 else 0


def _samples(q: Shape, heads: int) -> int:
    """Samples of queries [N, heads, T, size] or [N * heads, T, size]."""
    return q[0] if len(q) == 4 else max(1, q[0] // heads)


def _place(
    graph: NodeGraph, parts: AttentionNodes, origins: list[HeadOrigin], sizes: tuple[int, int, int, int, int, int], packed: bool
) -> None:
    """The new node with its inputs as [N, T, features], and a view of its result in place of the old one."""
    n, t, s, heads, shared, size = sizes
    old = parts.values.outputs[0]
    kept = [node for node in dict.fromkeys(parts.nodes) if node is parts.values or _inside(graph, node, parts.nodes)]
    read = [tensor for node in kept for tensor in node.inputs]
    for origin in origins:
        _unpermuted(graph, origin.tensor)
    made = graph.add_tensor(f"{old}.heads", (n, t, heads * size))
    view = graph.replace(kept, "Reshape", [made], [old], name=f"{parts.values.name}.view")
    rotated = any(origin.rotated for origin in origins)
    if packed and not rotated:
        inputs = [_viewed(graph, view, origins[0].tensor, (n, t, (heads + 2 * shared) * size))]
    elif packed:  # its parts are turned by their positions one by one
        inputs = _split(graph, view, origins, (n, t, heads, shared, size))
    else:
        shapes = [(n, t, heads * size), (n, s, shared * size), (n, s, shared * size)]
        inputs = [_viewed(graph, view, origin.tensor, shape) for origin, shape in zip(origins, shapes, strict=True)]
    if rotated:
        inputs = [_rotated(graph, view, tensor, origin, size) for tensor, origin in zip(inputs, origins, strict=True)]
    graph.insert(view, "Attention", inputs, made, parts.values.name, q_num_heads=heads, kv_num_heads=shared,
                 is_causal=int(parts.causal), packed=int(len(inputs) == 1))  # fmt: skip
    _forwards(graph, view, (n, t, heads * size))
    graph.without_unread(read)
    for tensor in inputs:
        _as_projected(graph, tensor)


def _inside(graph: NodeGraph, node: ModelNode, nodes: list[ModelNode]) -> bool:
    """Whether only these nodes read what one of them makes."""
    return all(reader in nodes for output in node.outputs for reader in graph.readers(output))


def _origin(graph: NodeGraph, tensor: str, size: int) -> HeadOrigin | None:
    """The tensor before all views, heads and repetitions of heads."""
    found = HeadOrigin(tensor=tensor, size=size)
    for _ in range(2 * DEEP):
        maker = graph.producer.get(found.tensor)
        if maker is None:
            return found if len(graph.shape(found.tensor)) > 1 else None
        if maker.kind == "Rotary" and maker.domain:
            found.rotated, found.tensor = maker, maker.inputs[0]
        elif (
            maker.kind in VIEWS
            and not graph.fixed(maker.inputs[0])
            and not (maker.kind == "Gather" and not graph.known[maker.inputs[1]].fixed)
        ):
            found.tensor = maker.inputs[0]
        elif maker.kind in REPEATS:
            found.tensor, found.repeated = maker.inputs[0], True
        elif maker.kind in ("Mul", "Div") and len(graph.moving(maker)) == 1 and _scales(graph, maker):
            found.tensor = graph.moving(maker)[0]
        else:
            return found
    return None


def _scales(graph: NodeGraph, node: ModelNode) -> bool:
    """Whether a node multiplies by one number."""
    return all(math.prod(graph.shape(name)) == 1 for name in node.inputs if graph.fixed(name))


def _viewed(graph: NodeGraph, before: ModelNode, tensor: str, shape: Shape) -> str:
    if graph.shape(tensor) == shape:
        return tensor
    made = graph.add_tensor(f"{tensor}.view", shape)
    graph.insert(before, "Reshape", [tensor], made, made)
    return made


def _as_projected(graph: NodeGraph, tensor: str) -> None:
    """A view of a projection that only attention reads is the shape that the projection has."""
    view = graph.maker(tensor, "Reshape")
    projection = None if view is None else graph.maker(view.inputs[0], "MatMul")
    if view is None or projection is None or not graph.fixed(projection.inputs[1]) or graph.reader(view.inputs[0]) is not view:
        return
    graph.known[view.inputs[0]] = graph.known[tensor]
    graph.bypass(view, view.inputs[0])


def _split(graph: NodeGraph, before: ModelNode, origins: list[HeadOrigin], sizes: tuple[int, int, int, int, int]) -> list[str]:
    """Queries, keys and values of one tensor as three."""
    n, t, heads, shared, size = sizes
    whole = _viewed(graph, before, origins[0].tensor, (n, t, (heads + 2 * shared) * size))
    made, start = [], 0
    for number, count in enumerate((heads, shared, shared)):
        part = graph.add_tensor(f"{whole}.part{number}", (n, t, count * size))
        graph.insert(before, "Part", [whole], part, part, start=start, stop=start + count * size)
        made.append(part)
        start += count * size
    return made


def _rotated(graph: NodeGraph, before: ModelNode, tensor: str, origin: HeadOrigin, size: int) -> str:
    """A part turned by its positions, heads side by side."""
    if origin.rotated is None:
        return tensor
    made = graph.add_tensor(f"{origin.rotated.outputs[0]}.flat", graph.shape(tensor))
    graph.insert(before, "Rotary", [tensor], made, origin.rotated.name, width=size)
    return made


def _unpermuted(graph: NodeGraph, tensor: str) -> None:
    """A projection of rows in another order than samples and tokens: the order of rows changes nothing in it."""
    maker = graph.maker(tensor, "MatMul", "Gemm")
    before = None if maker is None else graph.maker(maker.inputs[0], "Transpose")
    if maker is None or before is None or not graph.fixed(maker.inputs[1]) or not _keeps_last(graph, before):
        return
    for reader in graph.readers(before.outputs[0]):
        if not (reader.kind in ("MatMul", "Gemm") and graph.fixed(reader.inputs[1])):
            return
    graph.bypass(before, before.inputs[0])


def _keeps_last(graph: NodeGraph, node: ModelNode) -> bool:
    rank = len(graph.shape(node.outputs[0]))
    return (graph.call(node).integers("perm", range(rank)[::-1]) or [0])[-1] == rank - 1 and rank > 2


def _forwards(graph: NodeGraph, view: ModelNode, whole: Shape) -> None:
    """Views behind the result, up to its projection and behind it: rows in any order, which cost nothing."""
    node: ModelNode | None = view
    projected = False
    while node is not None:
        node = graph.reader(node.outputs[0])
        if node is None:
            return
        if node.kind in ("MatMul", "Gemm") and graph.fixed(node.inputs[1]) and not projected:
            projected = True
        elif node.kind == "Transpose":
            joined = graph.shape(node.outputs[0])
            if projected and not (_keeps_last(graph, node) and joined[:-1] == whole[:-1]):
                return
            node = graph.replace([node], "Reshape", node.inputs, node.outputs, name=node.name)
            if projected:
                return
        elif node.kind != "Reshape":
            return


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
    while waiting and len(seen) < MOST_ABOVE:
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
