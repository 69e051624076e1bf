"""What is known of every tensor of a model, node by node, at given sizes of its symbols."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from archsim.base.errors import InputError, Unsupported
from archsim.trace.dims import LARGEST, Shape, short, show
from archsim.trace.readers.call import Call, KnownTensor, Refusal, Unknown, constant
from archsim.trace.readers.control import Inlining
from archsim.trace.readers.model import Dim, Dims, ModelFile, ModelNode
from archsim.trace.readers.operators import REFUSED
from archsim.trace.readers.shapes import possible, shapes_of
from archsim.trace.readers.values import values_of

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


def _stated(model: ModelFile, node: ModelNode, call: Call, written: WrittenSizes) -> Sequence[Shape]:
    """Shapes that the file states, or those of a registered function, for an operator without a rule."""
    from archsim.trace.registry import registered

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
