"""What is known of every tensor of a model, node by node, at given sizes of its symbols: shapes, and the values of small ones."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archsim.base.errors import InputError, Unsupported
from archsim.trace.dims import LARGEST, Shape, Shapes, short, show
from archsim.trace.readers.control import Inlining
from archsim.trace.readers.model import (
    REFUSED,
    Array,
    Call,
    Dim,
    Dims,
    KnownTensor,
    ModelFile,
    ModelNode,
    Refusal,
    Unknown,
    axis_in,
    constant,
)
from archsim.trace.readers.shapes import possible, shapes_of, split_sizes

MOST = 1 << 12  # values of a tensor that is worked out
ValueRule = Callable[[Call, Sequence[Array]], Any]

# element types of a Cast that change a value
CASTS = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
    11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip


def values_of(call: Call, shapes: Shapes) -> Sequence[Array | None]:
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


# --------------------------------------------------------------------------------------------------------- node by node

RANDOM = ("RandomNormalLike", "RandomUniformLike", "RandomNormal", "RandomUniform", "Bernoulli")
MOST_WRITTEN = 1000  # different texts of sizes in a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """A model with what is known of its tensors."""

    model: ModelFile
    known: Mapping[str, KnownTensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSizes:
    """The sizes that a file writes as names, sums and products, each of them worked out once."""

    path: str
    sizes: Mapping[str, int]
    found: dict[str, int | None] = field(default_factory=dict)

    def of(self, dim: Dim) -> int | None:
        """A dimension. Raises InputError for a file that writes too many."""
        if isinstance(dim, int):
            return dim
        if dim not in self.found:
            if len(self.found) == MOST_WRITTEN:
                raise too_many_written(self.path)
            self.found[dim] = size_of(dim, self.sizes)
        return self.found[dim]


def too_many_written(path: str) -> InputError:
    """The error for a file that writes more sizes as texts than any exporter."""
    return InputError(path, f"leaves more than {MOST_WRITTEN} different sizes open; refused")


def size_of(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    """A dimension at given sizes; text may be sums, differences and products of names. None where it is none of those.

    >>> size_of("past + 1", {"past": 7}), size_of("2*batch", {"batch": 3}), size_of("floor(x)", {"x": 1})
    (8, 6, None)
    """
    if isinstance(dim, int):
        return dim
    if dim in sizes:
        return sizes[dim]
    try:
        return _worked_out(ast.parse(dim[:200], mode="eval").body, sizes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _worked_out(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        left, right = _worked_out(node.left, sizes), _worked_out(node.right, sizes)
        return left + right if isinstance(node.op, ast.Add) else left - right if isinstance(node.op, ast.Sub) else left * right
    raise ValueError("is no sum or product of names")


def names_in(dim: Dim) -> list[str]:
    """The symbols of a dimension: the names of a sum or product, else the whole text.

    >>> names_in("past + 1"), names_in("floor(x)"), names_in(3)
    (['past'], ['floor(x)'], [])
    """
    if isinstance(dim, int):
        return []
    try:
        parsed = ast.parse(dim[:200], mode="eval").body
        found = list(dict.fromkeys(node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)))
        _worked_out(parsed, dict.fromkeys(found, 1))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [dim]
    return found


def refused(model: ModelFile) -> dict[str, list[ModelNode]]:
    """The nodes that are not read, by operator."""
    found: dict[str, list[ModelNode]] = {}
    for node in model.nodes:
        if not node.domain and node.kind in REFUSED:
            found.setdefault(node.kind, []).append(node)
    return found


def infer(model: ModelFile, sizes: Mapping[str, int]) -> Inferred:
    """All tensors. Raises InputError for the first node that cannot be, Unsupported for operators that are not read."""
    nodes = refused(model)
    if nodes:
        said = [f"{kind} ({len(found)} {'nodes' if len(found) > 1 else 'node'}) {REFUSED[kind]}" for kind, found in nodes.items()]
        raise Unsupported(f"has operators that are not read: {'; '.join(said)}")
    written = WrittenSizes(path=model.path, sizes=sizes)
    known = {name: constant(value) for name, value in model.constants.items()}
    known |= {name: KnownTensor(shape=_at(name, dims, written)) for name, dims in model.inputs.items()}
    flow = Inlining(path=model.path, known=known, constants=dict(model.constants),
                    step=lambda node: _node(model, node, known, written))  # fmt: skip
    flow.all(model.nodes)
    return Inferred(model=replace(model, nodes=tuple(flow.nodes), constants=flow.constants), known=known)


def _at(name: str, dims: Dims, written: WrittenSizes) -> Shape:
    found = []
    for dim in dims:
        size = written.of(dim)
        if size is None or not 1 <= size <= LARGEST:
            raise InputError(written.path, f"input {short(name)} has the dimension {short(dim)}, which is no size here")
        found.append(size)
    return tuple(found)


def _node(model: ModelFile, node: ModelNode, known: dict[str, KnownTensor], written: WrittenSizes) -> None:
    """The results of one node."""
    call = Call(node=node, inputs=[known[name] if name else None for name in node.inputs], opset=model.opset)
    try:
        shapes = shapes_of(call)
    except Unknown:
        shapes = None
        if not all(name in model.hints for name in node.outputs if name):
            raise
    except (IndexError, TypeError, OverflowError) as error:
        raise Refusal(f"has attributes or inputs that do not fit ({type(error).__name__})") from None
    if shapes is None:
        shapes = _stated(model, node, call, written)
    for name, shape in zip(node.outputs, shapes, strict=False):
        if not possible(shape):
            raise Refusal(f"makes {short(name)} of the shape {show(shape)}, which no tensor has")
    if len(shapes) < sum(map(bool, node.outputs)):
        raise Refusal(f"has {len(node.outputs)} results; it makes {len(shapes)}")
    fixed = node.kind in ("Shape", "Size") or (node.kind not in RANDOM and all(k is None or k.fixed for k in call.inputs))
    values = values_of(call, shapes) if fixed else [None] * len(shapes)
    for name, shape, value in zip(node.outputs, shapes, values, strict=False):
        if name:
            known[name] = KnownTensor(shape=tuple(map(int, shape)), value=value, fixed=fixed)


def _stated(model: ModelFile, node: ModelNode, call: Call, written: WrittenSizes) -> Shapes:
    """Shapes that the file states, or those of a registered function, for an operator without a rule."""
    from archsim.trace.kinds.general import registered

    own = registered(node.operator)
    if own is not None and own.shape is not None:
        return [tuple(own.shape([k.shape for k in call.inputs if k is not None]))]
    found = []
    for name in node.outputs:
        dims = model.hints.get(name)
        at = None if dims is None else [written.of(dim) for dim in dims]
        if at is None or None in at:
            raise Unknown(f"is not known here, and the file does not state the shape of {short(name)}: archsim.register_op("
                          f"{node.operator!r}, work, shape=...) does")  # fmt: skip
        found.append(tuple([size for size in at if size is not None]))
    return found


def single(value: object) -> float | None:
    """The one number of a tensor; None where it holds several, or is not known."""
    array = None if value is None else np.ravel(np.asarray(value))
    return None if array is None or array.size != 1 else float(array[0])
