"""Nodes as ops of a trace, by one table from operators to functions; what it lacks is bounded by its memory traffic."""

from __future__ import annotations

import math
from typing import Any

from archsim.base.errors import InputError
from archsim.trace.dims import Shape, elements
from archsim.trace.kind import Kind
from archsim.trace.kinds.dense import BiasAdd, Embedding
from archsim.trace.kinds.general import ElementWise, Gather, GroupNorm, Reduce, Scatter
from archsim.trace.kinds.normalise import ArgMax, BatchNorm, LayerNorm, Lrn, RmsNorm, Softmax
from archsim.trace.kinds.pointwise import (
    Add,
    Dropout,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mul,
    Quantise,
    Relu,
    Relu6,
    Scale,
    ScaleBy,
    Sigmoid,
    Silu,
    Tanh,
)
from archsim.trace.kinds.shaping import Concat, Pad, Slice, Transpose, Upsample
from archsim.trace.readers.draft import Draft, Emitter, Rule
from archsim.trace.readers.emit_layers import FUSED, LAYERS
from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import BROADCAST, REDUCTIONS, UNARY, Refusal
from archsim.trace.readers.shapes import pads_of, slice_ranges, split_sizes
from archsim.trace.values import printable


def emit(graph: NodeGraph, draft: Draft) -> None:
    """All nodes of a graph. Raises InputError."""
    for node in graph.nodes:
        e, made = Emitter(graph, draft, node), len(draft.ops)
        try:
            RULES.get(node.kind, traffic)(e)
        except Refusal as problem:
            raise InputError(draft.path, f"{node.said} {problem}") from None
        for output in filter(None, node.outputs):
            if output not in draft.names:
                _extra(e, output)
        learned = [name for name in node.inputs if name and graph.fixed(name)]
        if learned:
            draft.share(made, graph.stored(max(learned, key=lambda name: elements(graph.shape(name)))))


def _extra(e: Emitter, output: str) -> None:
    """One more result of a node, written beside the first, where something reads it."""
    if e.graph.readers(output) or e.graph.ends(output):
        first = e.draft.name_of(e.node.outputs[0])
        name = e.draft.add(Gather(function=f"{e.node.kind} result"), [first], e.graph.shape(output), f"{e.name}/{output}")
        e.draft.alias(output, name)


def traffic(e: Emitter) -> None:
    """An operator without a rule: its memory traffic bounds it, or a registered function says its work."""
    from archsim.trace.kinds.general import registered

    operator = printable(e.node.operator, 200) or "?"
    own = registered(e.node.operator)
    e.bounded(*e.moving(), operator=operator, each=e.call.integer("each", 0), own=0 if own is None else own.number)


def _alone(kind: Kind) -> Rule:
    """An op of one input and no attributes."""
    return lambda e: e.add(kind, *e.moving()[:1])


def same(e: Emitter) -> None:
    """No op: the result is the input."""
    e.end(e.moving()[0])


def _function(e: Emitter) -> None:
    kind = e.node.kind
    e.add(ElementWise(function=kind.lower(), each=e.call.integer("each", max(1, UNARY.get(kind, 1)))), *e.moving()[:1])


def joined(e: Emitter) -> Any:
    """Several inputs that stretch to one shape: sums and products of tensors, of one with learned values, or others."""
    kind, found = e.node.kind, e.moving()
    learned = [e.graph.shape(name) for name in e.node.inputs if name and e.graph.fixed(name)]
    whole = e.draft.shapes[found[0]] == (e.shape or (1,))
    if len(found) == 1 and len(learned) == 1 and whole and kind in ("Add", "Sub", "Mul", "Div"):
        axis = _axis_of(learned[0], e.shape)
        if axis is not None and elements(learned[0]) > 1:
            return e.add(BiasAdd(axis=axis) if kind in ("Add", "Sub") else Scale(axis=axis), found[0])
        if elements(learned[0]) == 1:
            if kind in ("Mul", "Div"):
                return e.add(ScaleBy(factor=_factor(e, kind)), found[0])
            return e.add(ElementWise(function=kind.lower()), found[0])
    if len(found) == 1 and whole:
        each = max(1, len(e.node.inputs) - 1)
        return e.add(ElementWise(function=kind.lower(), each=each, learned=e.learned()), found[0])
    if len(found) == 1:  # stretched by what the file holds
        return e.add(Gather(function=kind.lower(), learned=e.learned()), found[0])
    if len(found) == len([name for name in e.node.inputs if name]) and kind in ("Add", "Sum", "Sub", "Mul"):
        kinds: dict[str, Kind] = {"Mul": Mul()}
        return e.add(kinds.get(kind, Add()), *found) if _fits(e, found) else e.add(Gather(function=kind.lower()), *found)
    if _fits(e, found):
        return e.add(ElementWise(function=kind.lower()), *found)
    e.add(Gather(function=kind.lower()), *found)


def _fits(e: Emitter, found: list[str]) -> bool:
    """Whether the tensors alone stretch to the result, without what the file holds."""
    from archsim.trace.readers.model import broadcast

    return broadcast(*(e.draft.shapes[name] for name in found)) == (e.shape or (1,))


def _axis_of(learned: Shape, shape: Shape) -> int | None:
    """The axis along which learned values differ, where there is only one."""
    padded = (1,) * (len(shape) - len(learned)) + tuple(learned)
    wide = [axis for axis, size in enumerate(padded) if size > 1]
    return wide[0] if len(wide) == 1 and len(padded) == len(shape) else None


def _factor(e: Emitter, kind: str) -> float:
    """A factor for a file, which holds numbers from 0 to 1 only; what it is changes nothing."""
    numbers = [e.graph.number(name) for name in e.node.inputs if e.graph.fixed(name)]
    value = numbers[0] if numbers and numbers[0] is not None and math.isfinite(numbers[0]) else 1.0
    value = 1.0 / value if kind == "Div" and value else value
    return value if 0 <= value <= 1 else 1.0


def _clip(e: Emitter) -> None:
    low, high = (e.call.attribute(name, e.graph.number(e.node.inputs[i]) if len(e.node.inputs) > i and e.node.inputs[i] else None)
                 for i, name in ((1, "min"), (2, "max")))  # fmt: skip
    if low == 0 and high == 6:
        e.add(Relu6(), e.tensor())
    elif low == 0 and high in (None, math.inf):
        e.add(Relu(), e.tensor())
    else:
        e.add(ElementWise(function="clip", each=2), e.tensor())


def _softmax(e: Emitter) -> Any:
    rank = len(e.shape)
    flat = e.call.opset < 13
    axis = e.call.axis("axis", 1 if flat else -1)
    if not flat or axis == rank - 1 or math.prod(e.shape[axis:]) == e.shape[axis]:
        return e.add(Softmax(axis=axis - rank if axis == rank - 1 else axis), e.tensor())
    rows = math.prod(e.shape[:axis])
    held = e.draft.add(
        Softmax(), [e.viewed(0, (rows, math.prod(e.shape[axis:])))], (rows, math.prod(e.shape[axis:])), f"{e.name}/rows"
    )
    e.end(held)


def _gelu(e: Emitter) -> None:
    held = e.tensor()
    if e.node.kind == "BiasGelu":
        held = e.add(BiasAdd(axis=-1), held, shape=e.shape, part="bias")
    e.add(GeluTanh() if e.call.text("approximate", "none") == "tanh" or e.node.kind == "FastGelu" else Gelu(), held)


def _batch_norm(e: Emitter) -> None:
    if len(e.shape) < 2:
        raise Refusal("normalises a tensor without channels")
    e.add(BatchNorm(), e.tensor())


def _layer_norm(e: Emitter) -> Any:
    axis = e.call.axis("axis", -1)
    rows, width = math.prod(e.shape[:axis]), math.prod(e.shape[axis:])
    kind: Kind = RmsNorm() if e.node.kind in ("RMSNormalization", "SimplifiedLayerNormalization") else LayerNorm()
    if axis == len(e.shape) - 1:
        return e.add(kind, e.tensor())
    e.made(kind, (rows, width), e.viewed(0, (rows, width)))


def _channel_norm(e: Emitter) -> None:
    e.add(RmsNorm(axis=e.call.axis()), e.tensor())


def _skip_norm(e: Emitter) -> None:
    total = e.add(Add(), *e.moving()[:2], shape=e.shape, part="sum")
    e.add(RmsNorm() if "Simplified" in e.node.kind else LayerNorm(), total)


def _group_norm(e: Emitter) -> None:
    shape, groups = e.shape, e.call.integer("num_groups", e.call.integer("groups", 1))
    if e.node.kind == "InstanceNormalization":
        groups = shape[1]
    flat = (shape[0], shape[1], 1, math.prod(shape[2:])) if len(shape) != 4 else shape
    e.made(GroupNorm(groups=groups), flat, e.viewed(0, flat))


def _reshaped(e: Emitter) -> None:
    e.end(e.tensor())


def _transpose(e: Emitter) -> None:
    order = e.call.integers("perm", range(len(e.shape))[::-1]) or [0]
    e.add(Transpose(order=tuple(order)), e.tensor())


def _concat(e: Emitter) -> Any:
    found = e.moving()
    if len(found) == 1 and e.draft.shapes[found[0]] == e.shape:
        return e.end(found[0])
    if len(found) == len(e.node.inputs):
        return e.add(Concat(axis=e.call.axis("axis", 1)), *found)
    e.add(Gather(function="concat", learned=e.learned()), *found)  # beside what the file holds


def _split(e: Emitter) -> None:
    axis, sizes = split_sizes(e.call)
    start = 0
    for output, size in enumerate(sizes):
        name = e.node.outputs[output]
        if name and size and (e.graph.readers(name) or e.graph.ends(name)):
            if size == e.call.shape()[axis]:
                e.end(e.tensor(), output)
            else:
                kind = Slice(axis=axis, start=start, stop=start + size, whole=True)
                e.draft.alias(name, e.draft.add(kind, [e.tensor()], e.graph.shape(name), f"{e.name}/{output}"))
        start += size


def _slice(e: Emitter) -> Any:
    held, shape = e.tensor(), list(e.call.shape())
    ranges = {axis: taken for axis, taken in slice_ranges(e.call).items() if taken != (0, shape[axis], 1)}
    if any(step != 1 or not count for _, count, step in ranges.values()):
        return e.add(Gather(function="slice"), held)
    if not ranges:
        return e.end(held)
    for place, (axis, (start, count, _)) in enumerate(ranges.items()):
        shape[axis] = count
        last = place == len(ranges) - 1
        held = e.draft.add(
            Slice(axis=axis, start=start, stop=start + count), [held], tuple(shape), e.name if last else f"{e.name}/{axis}"
        )
    e.draft.alias(e.node.outputs[0], held)


def _part(e: Emitter) -> None:
    e.add(Slice(axis=2, start=e.call.integer("start", 0), stop=e.call.integer("stop", 1)), e.tensor())


def _gather(e: Emitter) -> Any:
    data, axis = e.call.shape(), e.call.integer("axis", 0)
    if e.fixed(0) and not e.fixed(1) and len(data) == 2 and axis in (0, -2):
        return e.add(Embedding(vocabulary=data[0], features=data[1]), e.tensor(1))
    index = e.graph.number(e.node.inputs[1])
    if index is not None and not e.fixed(0):
        at = e.call.axis()
        start = int(index) + (data[at] if index < 0 else 0)
        if not 0 <= start < data[at]:
            raise Refusal(f"takes the index {int(index)} of {data[at]}")
        one = (*data[:at], 1, *data[at + 1 :])
        held = e.tensor() if data[at] == 1 else e.draft.add(
            Slice(axis=at, start=start, stop=start + 1), [e.tensor()], one, f"{e.name}/part")  # fmt: skip
        return e.end(held)
    e.add(Gather(function="gather"), *e.moving())


def _sampled(e: Emitter) -> None:
    """Values between those of an image, each from its neighbours along every dimension."""
    near = {"nearest": 0, "cubic": 4, "bicubic": 4}.get(e.call.text("mode", "linear"), 2)
    e.add(Gather(function="grid sample", each=2 * near ** (len(e.shape) - 2) if near else 0), *e.moving())


def copied(e: Emitter) -> None:
    """Values moved, repeated or picked."""
    found = e.moving()
    if e.draft.shapes[found[0]] == (e.shape or (1,)) and e.node.kind in ("Expand", "Tile", "Resize", "Upsample"):
        return e.end(found[0])
    e.add(Gather(function=e.node.kind.lower()), *found)


def _scattered(e: Emitter) -> None:
    """Values written to places of a tensor. Where the file holds them, they are copied from there first."""
    places = range(1, len(e.call))
    if e.fixed(0):
        return copied(e)
    held = [e.tensor(i) for i in places if e.call.has(i) and not e.fixed(i)]
    if e.fixed(places[-1]):
        source = (held or [e.tensor(0)])[0]
        held.append(e.draft.add(Gather(function="held"), [source], e.call.shape(places[-1]) or (1,), f"{e.name}/held"))
    adds = e.call.text("reduction", "none") not in ("none", "update")
    e.add(Scatter(adds=adds), e.tensor(0), *held)


def _bags(e: Emitter) -> None:
    rows, features = e.call.shape()
    e.add(Embedding(vocabulary=rows, features=features), e.tensor(1), e.tensor(2))


def _pad(e: Emitter) -> Any:
    before, after = pads_of(e.call)
    if not any(before) and not any(after):
        return e.end(e.tensor())
    if min(*before, *after) < 0 or e.call.text("mode", "constant") != "constant":
        return e.add(Gather(function="pad"), e.tensor())
    e.add(Pad(before=tuple(before), after=tuple(after)), e.tensor())


def _resize(e: Emitter) -> None:
    old, new = e.call.shape(), e.shape
    larger = len(old) == 4 and old[:2] == new[:2] and new[2] >= old[2] and new[3] >= old[3] and old != new
    if not larger or e.call.text("mode", "nearest") not in ("nearest", "linear", "bilinear"):
        return copied(e)
    e.add(Upsample(mode="nearest" if e.call.text("mode", "nearest") == "nearest" else "bilinear"), e.tensor())


def _reduced(e: Emitter) -> None:
    from archsim.trace.readers.model import axis_in

    data, axes = e.call.shape(), e.call.integers("axes", at=1)
    at = tuple(sorted({axis_in(axis, len(data)) for axis in axes})) if axes else tuple(range(len(data)))
    kept = tuple([1 if i in at else size for i, size in enumerate(data)])
    if e.node.kind == "ReduceMean" and len(data) == 4 and at == (2, 3):
        from archsim.trace.kinds.convolution import GlobalAvgPool

        return e.made(GlobalAvgPool(), kept, e.tensor())
    if kept == tuple(data):
        return e.end(e.tensor())
    e.made(Reduce(function=e.node.kind.removeprefix("Reduce").lower(), axes=at), kept or (1,), e.tensor())


def _arg_max(e: Emitter) -> None:
    data, axis = e.call.shape(), e.call.axis()
    if e.node.kind == "ArgMax" and axis == len(data) - 1 and len(data) > 1:
        return e.made(ArgMax(), data[:-1], e.tensor())
    kept = (*data[:axis], 1, *data[axis + 1 :])
    e.made(Reduce(function=e.node.kind.lower(), axes=(axis,)), kept, e.tensor())


def _quantised(e: Emitter) -> None:
    if e.node.kind == "QuantizeLinear" and e.graph.producer.get(e.node.inputs[0]) is not None:
        return same(e)  # what makes the values writes them so
    e.add(Quantise(dynamic=e.node.kind == "DynamicQuantizeLinear"), e.tensor())
    for name in filter(None, e.node.outputs[1:]):  # the scale and the zero that a dynamic one finds
        flat = e.viewed(0, (elements(e.call.shape()),), "flat")
        e.draft.alias(name, e.draft.add(Reduce(function="max", axes=(0,)), [flat], (1,), f"{e.name}/{name}"))


NOTHING = ("Identity", "Cast", "CastLike", "DequantizeLinear")
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
WRITES = ("ScatterND", "ScatterElements", "Scatter", "TensorScatter", "Written")
COPIES = (
    "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "GatherElements", "GatherND", "OneHot", "ReverseSequence", "EyeLike",
    "Trilu",
)  # fmt: skip
RULES: dict[str, Rule] = {
    **LAYERS, **FUSED, **dict.fromkeys(UNARY, _function), **dict.fromkeys(BROADCAST, joined),
    **dict.fromkeys(REDUCTIONS, _reduced), **dict.fromkeys(NOTHING, same), **dict.fromkeys(VIEWS, _reshaped),
    **dict.fromkeys(COPIES, copied), **dict.fromkeys(WRITES, _scattered), "EmbeddingBag": _bags,
    "Relu": _alone(Relu()), "LeakyRelu": _alone(LeakyRelu()), "PRelu": _alone(LeakyRelu()), "Sigmoid": _alone(Sigmoid()),
    "Tanh": _alone(Tanh()), "HardSigmoid": _alone(HardSigmoid()), "HardSwish": _alone(HardSwish()), "Silu": _alone(Silu()),
    "Swish": _alone(Silu()), "QuickGelu": _alone(Silu()), "Gelu": _gelu, "FastGelu": _gelu, "BiasGelu": _gelu, "Clip": _clip,
    "Softmax": _softmax, "Dropout": lambda e: e.add(Dropout(ratio=float(e.call.attribute("ratio", 0.5))), e.tensor()),
    "LRN": lambda e: e.add(Lrn(size=e.call.integer("size", 5)), e.tensor()),
    "BatchNormalization": _batch_norm, "InstanceNormalization": _group_norm, "GroupNormalization": _group_norm,
    "LayerNormalization": _layer_norm, "RMSNormalization": _layer_norm, "SimplifiedLayerNormalization": _layer_norm,
    "ChannelNorm": _channel_norm, "SkipLayerNormalization": _skip_norm, "SkipSimplifiedLayerNormalization": _skip_norm,
    "Transpose": _transpose, "Concat": _concat, "Split": _split, "Slice": _slice, "Part": _part, "Gather": _gather, "Pad": _pad,
    "Copied": copied, "Resize": _resize, "Upsample": _resize, "ArgMax": _arg_max, "ArgMin": _arg_max, "GridSample": _sampled,
    "QLinearAdd": joined, "QLinearMul": joined, "QuantizeLinear": _quantised, "DynamicQuantizeLinear": _quantised,
}  # fmt: skip
