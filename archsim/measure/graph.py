"""A trace as a graph of ONNX nodes with random weights: plain values here, `onnx` itself only in `model_of`.

A tensor keeps its name from the trace, and so does the node that makes it; further nodes of the same op are called
`op/1`, `op/2`, ... so that a profile leads back to the op.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.errors import Unsupported
from archsim.trace.kinds.convolution import sides
from archsim.trace.trace import BoundOp, BoundTrace

OPSET, IR_VERSION = 20, 9  # the first opset with Gelu; what onnxruntime 1.17 and newer read
Array = NDArray[Any]
TINY = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: operator, name, tensors, attributes."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class Graph:
    """The nodes and weights of a network as they are collected, op by op."""

    def __init__(self, trace: BoundTrace, seed: int = 0) -> None:
        self.trace = trace
        self.nodes: list[Node] = []
        self.weights: dict[str, Array] = {}
        self._random = np.random.default_rng(seed)
        for op in trace.ops:
            BUILDERS[op.kind.op](self, op)

    def weight(self, op: BoundOp, label: str, shape: Sequence[int], fan_in: int = 0) -> str:
        """Random values that keep the size of what flows through; small ones where there is no fan-in."""
        scale = math.sqrt(2.0 / fan_in) if fan_in else 0.01
        values = self._random.standard_normal(tuple(shape), dtype=np.float32)
        values *= np.float32(scale)
        return self.constant(op, label, values)

    def constant(self, op: BoundOp, label: str, values: Array) -> str:
        """A named array."""
        name = f"{op.name}:{label}"
        self.weights[name] = values
        return name

    def whole(self, op: BoundOp, label: str, *values: int) -> str:
        """A named vector of whole numbers."""
        return self.constant(op, label, np.array(values, np.int64))

    def node(
        self, op: BoundOp, kind: str, inputs: Sequence[str], step: int = 0, outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """One node of an op, its last one unless `step` numbers it; gives the name of its first output."""
        name = f"{op.name}/{step}" if step else op.name
        made = tuple(outputs) or (name,)
        given = {key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()}
        self.nodes.append(Node(kind=kind, name=name, inputs=tuple(inputs), outputs=made, attributes=given))
        return next(filter(None, made))


def missing_builders(trace: BoundTrace) -> list[str]:
    """The op kinds of a network that cannot be built, sorted."""
    return sorted({op.kind.op for op in trace.ops} - set(BUILDERS))


def build(trace: BoundTrace) -> Graph:
    """The graph of a network; Unsupported names the op kinds that cannot be built."""
    missing = missing_builders(trace)
    if missing:
        raise Unsupported(f"network {trace.name} cannot be built: it has {', '.join(missing)}")
    return Graph(trace)


def index_limits(trace: BoundTrace) -> dict[str, int]:
    """The inputs that hold indices, with the number of rows they may point at."""
    return {name: int(getattr(op.kind, "vocabulary", 1)) for op in trace.ops if op.kind.op == "embedding"
            for name in op.inputs if name in trace.inputs}  # fmt: skip


def feeds(trace: BoundTrace, seed: int = 1) -> dict[str, Array]:
    """Random inputs."""
    random, limits = np.random.default_rng(seed), index_limits(trace)
    return {
        name: random.integers(0, limits[name], shape) if name in limits else random.standard_normal(shape, dtype=np.float32)
        for name, shape in trace.inputs.items()
    }  # fmt: skip


def model_of(graph: Graph) -> bytes:
    """The serialised ONNX model; its weights are external, to be handed to the session as arrays."""
    from onnx import TensorProto, helper

    limits, trace = index_limits(graph.trace), graph.trace
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64 if name in limits else TensorProto.FLOAT, shape)
              for name, shape in trace.inputs.items()]  # fmt: skip
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in trace.outputs]
    nodes = [helper.make_node(n.kind, n.inputs, n.outputs, name=n.name, **n.attributes) for n in graph.nodes]
    stored = [_initializer(name, values) for name, values in graph.weights.items()]
    whole = helper.make_graph(nodes, "archsim", inputs, outputs, initializer=stored)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return bytes(model.SerializeToString())


def is_external(values: Array) -> bool:
    """Whether an array stays outside the model: small whole numbers (shapes, bounds) must be seen by the optimiser."""
    return values.dtype == np.float32 and values.ndim > 0


def _initializer(name: str, values: Array) -> Any:
    from onnx import TensorProto, numpy_helper

    if not is_external(values):
        return numpy_helper.from_array(values, name)
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=values.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="handed over in memory")
    return tensor


# ---------------------------------------------------------------------------------------------- one builder for each kind


def _conv(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    channels = op.input_shapes[0][1] // k.groups
    inputs = [op.inputs[0], g.weight(op, "w", (op.shape[1], channels, *k.kernel), channels * math.prod(k.kernel))]
    if k.bias:
        inputs.append(g.weight(op, "b", (op.shape[1],)))
    g.node(op, "Conv", inputs, kernel_shape=k.kernel, strides=k.stride, pads=sides(k.pad), dilations=k.dilation, group=k.groups)


def _linear(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    features, outputs = op.input_shapes[0][-1], op.shape[-1]
    flat = len(op.shape) == 2
    w = g.weight(op, "w", (outputs, features) if flat else (features, outputs), features)
    bias = [g.weight(op, "b", (outputs,))] if k.bias else []
    if flat:
        g.node(op, "Gemm", [op.inputs[0], w, *bias], transB=1)
    elif bias:
        g.node(op, "Add", [g.node(op, "MatMul", [op.inputs[0], w], 1), *bias])
    else:
        g.node(op, "MatMul", [op.inputs[0], w])


def _matmul(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    swapped = []
    for step, (name, shape, flag) in enumerate(zip(op.inputs, op.input_shapes, (k.transpose_a, k.transpose_b), strict=True), 1):
        rank = len(shape)
        order = (*range(rank - 2), rank - 1, rank - 2)
        swapped.append(g.node(op, "Transpose", [name], step, perm=order) if flag else name)
    g.node(op, "MatMul", swapped)


def _embedding(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    table = g.weight(op, "table", (k.vocabulary, k.features))
    if op.inputs[0] not in g.trace.inputs:
        raise Unsupported(f"{op.name}: an embedding of computed indices cannot be built")
    g.node(op, "Gather", [table, op.inputs[0]])


def _bias_add(g: Graph, op: BoundOp) -> None:
    axis = int(getattr(op.kind, "axis", 1)) % len(op.shape)
    shape = [size if i == axis else 1 for i, size in enumerate(op.shape)]
    g.node(op, "Add", [op.inputs[0], g.weight(op, "b", shape)])


def window_pads(op: BoundOp) -> tuple[int, int, int, int]:
    """Padding (top, left, bottom, right) that gives the op's own output size by the rule that rounds down."""
    k: Any = op.kind
    top, left, _, _ = sides(k.pad)
    ends = [(out - 1) * stride + kernel - size - before
            for out, stride, kernel, size, before in zip(op.shape[2:], k.stride, k.kernel, op.input_shapes[0][2:], (top, left),
                                                         strict=True)]  # fmt: skip
    return (top, left, max(0, ends[0]), max(0, ends[1]))


def _pool(kind: str) -> Callable[[Graph, BoundOp], None]:
    def add(g: Graph, op: BoundOp) -> None:
        k: Any = op.kind
        more: dict[str, Any] = {"count_include_pad": int(k.count_include_pad)} if kind == "AveragePool" else {}
        g.node(op, kind, op.inputs, kernel_shape=k.kernel, strides=k.stride, pads=window_pads(op), **more)

    return add


def _plain(kind: str) -> Callable[[Graph, BoundOp], None]:
    """A node without attributes."""

    def add(g: Graph, op: BoundOp) -> None:
        g.node(op, kind, op.inputs)

    return add


def _several(kind: str) -> Callable[[Graph, BoundOp], None]:
    """A node of two inputs, chained where there are more."""

    def add(g: Graph, op: BoundOp) -> None:
        held = op.inputs[0]
        for step, name in enumerate(op.inputs[1:-1], 1):
            held = g.node(op, kind, [held, name], step)
        g.node(op, kind, [held, op.inputs[-1]])

    return add


def _batch_norm(g: Graph, op: BoundOp) -> None:
    size = (op.shape[1],)
    one, zero = np.ones(size, np.float32), np.zeros(size, np.float32)
    held = [g.constant(op, label, values) for label, values in (("scale", one), ("shift", zero), ("mean", zero), ("var", one))]
    g.node(op, "BatchNormalization", [op.inputs[0], *held], epsilon=TINY)


def _layer_norm(g: Graph, op: BoundOp) -> None:
    size = (op.shape[-1],)
    held = [g.constant(op, "scale", np.ones(size, np.float32)), g.constant(op, "shift", np.zeros(size, np.float32))]
    g.node(op, "LayerNormalization", [op.inputs[0], *held], epsilon=TINY)


def _rms_norm(g: Graph, op: BoundOp) -> None:
    x = op.inputs[0]
    tiny = g.constant(op, "tiny", np.array(TINY, np.float32))
    mean = g.node(op, "ReduceMean", [g.node(op, "Mul", [x, x], 1), g.whole(op, "axis", -1)], 2)
    root = g.node(op, "Sqrt", [g.node(op, "Add", [mean, tiny], 3)], 4)
    g.node(op, "Mul", [g.node(op, "Div", [x, root], 5), g.constant(op, "scale", np.ones(op.shape[-1:], np.float32))])


def _silu(g: Graph, op: BoundOp) -> None:
    g.node(op, "Mul", [op.inputs[0], g.node(op, "Sigmoid", op.inputs, 1)])


@lru_cache(maxsize=16)
def turns(positions: int, size: int) -> tuple[Array, Array]:
    """Cosines and sines of rotary positions, [positions, 1, size]: one angle for features i and i + size / 2 (Su et al. 2021)."""
    rates = 10000.0 ** (-2.0 * np.arange(size // 2) / size)
    angles = np.tile(np.outer(np.arange(positions), rates), 2)[:, None, :]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _rotary(g: Graph, op: BoundOp) -> None:
    n, t, width = op.shape
    size = int(getattr(op.kind, "width", 2))
    cosines, sines = (g.constant(op, label, values) for label, values in zip(("cos", "sin"), turns(t, size), strict=True))
    x = g.node(op, "Reshape", [op.inputs[0], g.whole(op, "heads", n, t, width // size, size)], 1)
    halves = f"{op.name}/first", f"{op.name}/second"
    g.node(op, "Split", [x], 2, outputs=halves, axis=3, num_outputs=2)
    turned = g.node(op, "Concat", [g.node(op, "Neg", [halves[1]], 3), halves[0]], 4, axis=3)
    total = g.node(op, "Add", [g.node(op, "Mul", [x, cosines], 5), g.node(op, "Mul", [turned, sines], 6)], 7)
    g.node(op, "Reshape", [total, g.whole(op, "joined", n, t, width)])


def _relu6(g: Graph, op: BoundOp) -> None:
    # Bounds inside the model, so that the runtime sees the pattern that it fuses.
    low, high = (g.constant(op, label, np.array(value, np.float32)) for label, value in (("low", 0.0), ("high", 6.0)))
    g.node(op, "Clip", [op.inputs[0], low, high])


def _softmax(g: Graph, op: BoundOp) -> None:
    g.node(op, "Softmax", op.inputs, axis=int(getattr(op.kind, "axis", -1)))


def _concat(g: Graph, op: BoundOp) -> None:
    g.node(op, "Concat", op.inputs, axis=int(getattr(op.kind, "axis", 1)))


def _lrn(g: Graph, op: BoundOp) -> None:
    g.node(op, "LRN", op.inputs, size=int(getattr(op.kind, "size", 5)))


def _pad(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    g.node(op, "Pad", [op.inputs[0], g.whole(op, "pads", *k.before, *k.after)])


def _reshape(g: Graph, op: BoundOp) -> None:
    g.node(op, "Reshape", [op.inputs[0], g.whole(op, "shape", *op.shape)])


def _transpose(g: Graph, op: BoundOp) -> None:
    g.node(op, "Transpose", op.inputs, perm=tuple(getattr(op.kind, "order", ())))


def _slice(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    bounds = [g.whole(op, label, value) for label, value in (("start", k.start), ("stop", k.stop), ("axis", k.axis))]
    g.node(op, "Slice", [op.inputs[0], *bounds])


def _lstm(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    held, features = op.inputs[0], op.input_shapes[0][2]
    axis = g.whole(op, "direction", 1)
    for layer in range(k.layers):
        weights = _lstm_weights(g, op, str(layer), features, k.hidden)
        steps = g.node(op, "LSTM", [held, *weights], 2 * layer + 1, hidden_size=k.hidden)  # [T, 1, N, H]
        held, features = g.node(op, "Squeeze", [steps, axis], 0 if layer == k.layers - 1 else 2 * layer + 2), k.hidden


def _lstm_weights(g: Graph, op: BoundOp, label: str, features: int, hidden: int) -> list[str]:
    shapes = {"w": (1, 4 * hidden, features), "r": (1, 4 * hidden, hidden), "b": (1, 8 * hidden)}
    fans = {"w": features, "r": hidden, "b": 0}
    return [g.weight(op, f"{name}{label}", shape, fans[name]) for name, shape in shapes.items()]


def _lstm_cell(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    data, state = op.inputs
    axis = g.whole(op, "axis", 0)
    row = g.node(op, "Unsqueeze", [data, axis], 1)
    weights = _lstm_weights(g, op, "", op.input_shapes[0][1], k.hidden)
    h, c = f"{op.name}/h", f"{op.name}/c"
    g.node(op, "Split", [state], 2, outputs=(h, c), axis=0, num_outputs=2)
    outputs = ("", f"{op.name}/h2", f"{op.name}/c2")
    g.node(op, "LSTM", [row, *weights, "", h, c], 3, outputs=outputs, hidden_size=k.hidden)
    g.node(op, "Concat", outputs[1:], axis=0)


def _attention(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    n, t, width = op.shape
    wholes = k.parts(op.input_shapes)
    s, d, shared = wholes[1][1], width // k.heads, k.kv_heads or k.heads
    parts = op.inputs
    if len(parts) == 1:
        sizes = g.whole(op, "parts", *(shape[2] for shape in wholes))
        parts = tuple([f"{op.name}/{part}" for part in ("queries", "keys", "values")])
        g.node(op, "Split", [op.inputs[0], sizes], 15, outputs=parts, axis=2)
    q = _heads(g, op, 1, parts[0], (n, t, k.heads, d), (0, 2, 1, 3))
    keys = _heads(g, op, 3, parts[1], (n, s, shared, d), (0, 2, 3, 1))
    values = _heads(g, op, 5, parts[2], (n, s, shared, d), (0, 2, 1, 3))
    if shared != k.heads:  # a group of heads is one taller block of queries
        q = g.node(op, "Reshape", [q, g.whole(op, "grouped", n, shared, k.heads // shared * t, d)], 7)
    scaled = g.node(op, "Mul", [q, g.constant(op, "scale", np.array(d**-0.5, np.float32))], 8)
    scores = g.node(op, "MatMul", [scaled, keys], 9)
    if k.causal:
        mask = np.triu(np.full((t, s), -1e9, np.float32), 1 + s - t)
        scores = g.node(op, "Add", [scores, g.constant(op, "mask", np.tile(mask, (k.heads // shared, 1)))], 10)
    mixed = g.node(op, "MatMul", [g.node(op, "Softmax", [scores], 11, axis=-1), values], 12)
    apart = g.node(op, "Reshape", [mixed, g.whole(op, "apart", n, k.heads, t, d)], 13)
    g.node(op, "Reshape", [g.node(op, "Transpose", [apart], 14, perm=(0, 2, 1, 3)), g.whole(op, "joined", n, t, width)])


def _heads(g: Graph, op: BoundOp, step: int, name: str, shape: Sequence[int], order: Sequence[int]) -> str:
    split = g.node(op, "Reshape", [name, g.whole(op, f"split{step}", *shape)], step)
    return g.node(op, "Transpose", [split], step + 1, perm=tuple(order))


BUILDERS: dict[str, Callable[[Graph, BoundOp], None]] = {
    "conv2d": _conv, "linear": _linear, "matmul": _matmul, "embedding": _embedding, "bias_add": _bias_add,
    "max_pool": _pool("MaxPool"), "avg_pool": _pool("AveragePool"), "global_avg_pool": _plain("GlobalAveragePool"),
    "lrn": _lrn, "batch_norm": _batch_norm, "layer_norm": _layer_norm, "softmax": _softmax,
    "relu": _plain("Relu"), "relu6": _relu6, "sigmoid": _plain("Sigmoid"), "tanh": _plain("Tanh"), "gelu": _plain("Gelu"),
    "rms_norm": _rms_norm, "silu": _silu, "rotary": _rotary,
    "dropout": _plain("Identity"), "add": _several("Add"), "mul": _several("Mul"),
    "concat": _concat, "pad": _pad, "reshape": _reshape, "transpose": _transpose, "slice": _slice,
    "lstm": _lstm, "lstm_cell": _lstm_cell, "attention": _attention,
}  # fmt: skip
