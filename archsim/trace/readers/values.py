"""Values of small tensors that follow from constants and shapes: the arithmetic by which exporters find shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archsim.trace.dims import Shape
from archsim.trace.readers.call import Call, axis_in
from archsim.trace.readers.model import Array
from archsim.trace.readers.shapes import split_sizes

MOST = 1 << 12  # values of a tensor that is worked out
ValueRule = Callable[[Call, Sequence[Array]], Any]

# element types of a Cast that change a value
CASTS = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
    11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip


def values_of(call: Call, shapes: Sequence[Shape]) -> Sequence[Array | None]:
    """The values of all results, None for those that are not known."""
    unknown = [None] * len(shapes)
    rule = RULES.get(call.node.kind)
    if rule is None or call.node.domain or any(int(np.prod(shape, dtype=float)) > MOST for shape in shapes):
        return unknown
    if call.node.kind in OF_SHAPES:
        values: list[Array] = []
    else:
        given = [call.value(i) for i in range(len(call)) if call.has(i)]
        values = [value for value in given if value is not None]
        if len(values) < len(given):
            return unknown
    try:
        with np.errstate(all="ignore"):
            found = rule(call, values)
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, ZeroDivisionError, MemoryError):
        return unknown
    results = [np.asarray(each) for each in (found if isinstance(found, list) else [found])]
    fitting = [result if result.shape == tuple(shape) else None for result, shape in zip(results, shapes, strict=False)]
    return [*fitting, *unknown[len(fitting) :]]


def _of(function: Callable[..., Any]) -> ValueRule:
    return lambda call, values: function(*values)


def _chain(function: Callable[[Array, Array], Array]) -> ValueRule:
    def rule(call: Call, values: Sequence[Array]) -> Array:
        held = values[0]
        for value in values[1:]:
            held = function(held, value)
        return held

    return rule


def _divided(a: Array, b: Array) -> Array:
    """Whole numbers towards zero, as ONNX has it."""
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)), a.dtype)
    return np.asarray(a / b)


def _cast(call: Call, values: Sequence[Array]) -> Array:
    return np.asarray(values[0]).astype(CASTS[call.integer("to", 1)])


def _shape(call: Call, values: Sequence[Array]) -> Array:
    last = call.attribute("end")
    return np.array(call.shape()[call.integer("start", 0) : last], np.int64)


def _filled(call: Call, values: Sequence[Array]) -> Array:
    value = call.attribute("value")
    filled = np.float32(0) if value is None else value.value
    return np.full(tuple(values[0].tolist()), np.ravel(filled)[0])


def _gather(call: Call, values: Sequence[Array]) -> Array:
    return np.asarray(np.take(values[0], values[1], axis=call.axis()))


def _slice(call: Call, values: Sequence[Array]) -> Array:
    data = values[0]
    starts, ends = call.integers("starts", at=1) or [], call.integers("ends", at=2) or []
    axes = call.integers("axes", range(len(starts)), at=3) or []
    steps = call.integers("steps", [1] * len(starts), at=4) or []
    cut = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = axis_in(axis, data.ndim)
        cut[at] = slice(start, end if step > 0 or end >= -data.shape[at] else None, step)
    return np.asarray(data[tuple(cut)])


def _split(call: Call, values: Sequence[Array]) -> list[Array]:
    axis, sizes = split_sizes(call)
    return list(np.split(values[0], np.cumsum(sizes)[:-1], axis=axis))


def _reshaped(call: Call, values: Sequence[Array]) -> Array:
    from archsim.trace.readers.shapes import shapes_of

    found = shapes_of(call)
    return np.reshape(values[0], (found or [()])[0])


def _reduced(function: Callable[..., Any]) -> ValueRule:
    def rule(call: Call, values: Sequence[Array]) -> Array:
        axes = call.integers("axes", at=1)
        data = values[0]
        at = tuple(axis_in(axis, data.ndim) for axis in axes) if axes else None
        return np.asarray(function(data, axis=at, keepdims=bool(call.integer("keepdims", 1))))

    return rule


OF_SHAPES = ("Shape", "Size")
RULES: dict[str, ValueRule] = {
    "Shape": _shape, "Size": lambda call, values: np.array(int(np.prod(call.shape(), dtype=float)), np.int64),
    "Add": _chain(np.add), "Sub": _chain(np.subtract), "Mul": _chain(np.multiply), "Div": _chain(_divided),
    "Max": _chain(np.maximum), "Min": _chain(np.minimum), "And": _chain(np.logical_and), "Or": _chain(np.logical_or),
    "Mod": _of(np.mod), "Pow": _of(lambda a, b: np.asarray(np.power(a, b), a.dtype)), "Equal": _of(np.equal),
    "Less": _of(np.less), "Greater": _of(np.greater), "LessOrEqual": _of(np.less_equal), "GreaterOrEqual": _of(np.greater_equal),
    "Not": _of(np.logical_not), "Where": _of(np.where), "Neg": _of(np.negative), "Abs": _of(np.abs), "Floor": _of(np.floor),
    "Ceil": _of(np.ceil), "Round": _of(np.round), "Sqrt": _of(np.sqrt), "Reciprocal": _of(np.reciprocal), "Sign": _of(np.sign),
    "Identity": _of(np.asarray), "Cast": _cast, "ConstantOfShape": _filled, "Gather": _gather, "Slice": _slice, "Split": _split,
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _reshaped),
    "Concat": lambda call, values: np.concatenate(values, axis=call.axis("axis", 0)),
    "Transpose": lambda call, values: np.transpose(values[0], call.integers("perm")),
    "Expand": _of(lambda a, shape: np.broadcast_to(a, np.broadcast_shapes(a.shape, tuple(shape.tolist())))),
    "Tile": _of(lambda a, times: np.tile(a, times.tolist())),
    "Range": _of(lambda a, b, c: np.arange(np.ravel(a)[0], np.ravel(b)[0], np.ravel(c)[0])),
    "ReduceProd": _reduced(np.prod), "ReduceSum": _reduced(np.sum), "ReduceMax": _reduced(np.max), "ReduceMin": _reduced(np.min),
    "ReduceMean": _reduced(np.mean),
}  # fmt: skip
