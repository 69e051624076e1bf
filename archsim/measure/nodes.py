"""`Graph`: the ONNX nodes and random weights of a network, as plain values without `onnx`; one builder for each op kind.

A tensor and the node that makes it keep the tensor's name in the trace; further nodes of the same op are called `op/1`, `op/2`,
..., so that a profile leads back to the op.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import Unsupported
from archsim.trace.kinds.convolution import sides
from archsim.trace.kinds.sequence import GATES
from archsim.trace.trace import BoundOp, BoundTrace

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One node: operator, name, tensors, attributes."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class Graph:
    """The nodes and weights of a network, collected op by op; `hollow` weights have a shape and no values of their own."""

    def __init__(self, trace: BoundTrace, hollow: bool = False) -> None:
        self.trace, self.hollow = trace, hollow
        self.nodes: list[GraphNode] = []
        self.weights: dict[str, Array] = {}
        self._random = np.random.default_rng(0)

    def weight(self, op: BoundOp, label: str, shape: Sequence[int], fan_in: int = 0) -> str:
        """Random values scaled by fan-in, so that activations keep their magnitude; small ones without a fan-in."""
        if self.hollow:
            return self.constant(op, label, np.broadcast_to(np.float32(0.0), tuple(shape)))
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
        """One node of an op, its last one unless `step` numbers it; returns the name of its first output."""
        name = f"{op.name}/{step}" if step else op.name
        made = tuple(outputs) or (name,)
        given = {key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()}
        self.nodes.append(GraphNode(kind=kind, name=name, inputs=tuple(inputs), outputs=made, attributes=given))
        return next(filter(None, made))


# ------------------------------------------------------------------------------------------------------------- builders

TINY = 1e-5
LEAK = 0.1  # slope of Darknet's leaky ReLU; the time does not depend on it


def _conv(g: Graph, op: BoundOp) -> None:
    """A convolution, or a transposed one, whose filters lie the other way round."""
    k: Any = op.kind
    turned, (read, made) = k.op == "conv_transpose2d", (op.input_shapes[0][1], op.shape[1])
    filters = (read, made // k.groups, *k.kernel) if turned else (made, read // k.groups, *k.kernel)
    inputs = [op.inputs[0], g.weight(op, "w", filters, read if turned else math.prod(filters[1:]))]
    if k.bias:
        inputs.append(g.weight(op, "b", (made,)))
    more = {"output_padding": k.output_pad} if turned else {}
    g.node(op, "ConvTranspose" if turned else "Conv", inputs, kernel_shape=k.kernel, strides=k.stride, pads=sides(k.pad),
           dilations=k.dilation, group=k.groups, **more)  # fmt: skip


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
    g.node(op, "Add", [op.inputs[0], g.weight(op, "b", along(op, int(getattr(op.kind, "axis", 1))))])


def window_pads(op: BoundOp) -> tuple[int, int, int, int]:
    """Padding (top, left, bottom, right) that gives the op's output size in a runtime that rounds down."""
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


LEAST = -3.0e38  # what takes the place of a score that is not to be seen


def _plain(kind: str, **usual: Any) -> Callable[[Graph, BoundOp], None]:
    """A node with attributes: those of the op's kind by the same names, and of these what it usually has."""

    def add(g: Graph, op: BoundOp) -> None:
        g.node(op, kind, op.inputs, **{name: getattr(op.kind, name, value) for name, value in usual.items()})

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
    x, axis = op.inputs[0], int(getattr(op.kind, "axis", -1))
    tiny = g.constant(op, "tiny", np.array(TINY, np.float32))
    mean = g.node(op, "ReduceMean", [g.node(op, "Mul", [x, x], 1), g.whole(op, "axis", axis)], 2)
    root = g.node(op, "Sqrt", [g.node(op, "Add", [mean, tiny], 3)], 4)
    g.node(op, "Mul", [g.node(op, "Div", [x, root], 5), g.constant(op, "scale", np.ones(along(op, axis), np.float32))])


def along(op: BoundOp, axis: int) -> list[int]:
    """The shape of learned values along one axis, for broadcasting."""
    return [size if i == axis % len(op.shape) else 1 for i, size in enumerate(op.shape)]


def _scale(g: Graph, op: BoundOp) -> None:
    g.node(op, "Mul", [op.inputs[0], g.weight(op, "s", along(op, int(getattr(op.kind, "axis", 1))))])


def _scale_by(g: Graph, op: BoundOp) -> None:
    g.node(op, "Mul", [op.inputs[0], g.constant(op, "factor", np.array(getattr(op.kind, "factor", 1.0), np.float32))])


def _quantise(g: Graph, op: BoundOp) -> None:
    """To eight bits and back, so that what follows reads floats."""
    x = op.inputs[0]
    if getattr(op.kind, "dynamic", False):
        parts = f"{op.name}/bytes", f"{op.name}/scale", f"{op.name}/zero"
        g.node(op, "DynamicQuantizeLinear", [x], 1, outputs=parts)
    else:
        scale = g.constant(op, "scale", np.array(2**-5, np.float32))
        zero = g.constant(op, "zero", np.array(0, np.int8))
        parts = g.node(op, "QuantizeLinear", [x, scale, zero], 1), scale, zero
    g.node(op, "DequantizeLinear", parts)


def _upsample(g: Graph, op: BoundOp) -> None:
    mode = {"nearest": "nearest", "bilinear": "linear"}[str(getattr(op.kind, "mode", ""))]
    g.node(op, "Resize", [op.inputs[0], "", "", g.whole(op, "size", *op.shape)], mode=mode)


def _masked(g: Graph, op: BoundOp) -> None:
    """The least number in the place of what lies over the diagonal."""
    hidden = g.constant(op, "hidden", np.triu(np.ones(op.shape[-2:], np.bool_), 1))
    g.node(op, "Where", [hidden, g.constant(op, "least", np.array(LEAST, np.float32)), op.inputs[0]])


def _floor(g: Graph, op: BoundOp) -> None:
    g.node(op, "Max", [op.inputs[0], g.constant(op, "least", np.array(LEAST, np.float32))])


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


def _argmax(g: Graph, op: BoundOp) -> None:
    index = g.node(op, "ArgMax", op.inputs, 1, axis=-1, keepdims=0)
    g.node(op, "Cast", [index], to=1)  # an index as the float that every output of a model is


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


def _recurrent(kind: str, **more: Any) -> Callable[[Graph, BoundOp], None]:
    def add(g: Graph, op: BoundOp) -> None:
        k: Any = op.kind
        held, features = op.inputs[0], op.input_shapes[0][2]
        whole = g.whole(op, "steps", *op.shape)
        ways = {"direction": "bidirectional"} if k.bidirectional else {}
        for layer in range(k.layers):
            weights = _recurrent_weights(g, op, str(layer), k.gates, features, k.hidden, k.directions)
            steps = g.node(op, kind, [held, *weights], 3 * layer + 1, hidden_size=k.hidden, **ways, **more)
            beside, last = steps, layer == k.layers - 1
            if k.bidirectional:  # from [T, directions, N, H]
                beside = g.node(op, "Transpose", [steps], 3 * layer + 2, perm=(0, 2, 1, 3))
            held, features = g.node(op, "Reshape", [beside, whole], 0 if last else 3 * layer + 3), op.shape[2]

    return add


def _recurrent_weights(
    g: Graph, op: BoundOp, label: str, gates: int, features: int, hidden: int, ways: int = 1
) -> list[str]:
    shapes = {"w": (ways, gates * hidden, features), "r": (ways, gates * hidden, hidden), "b": (ways, 2 * gates * hidden)}
    fans = {"w": features, "r": hidden, "b": 0}
    return [g.weight(op, f"{name}{label}", shape, fans[name]) for name, shape in shapes.items()]


def _lstm_cell(g: Graph, op: BoundOp) -> None:
    k: Any = op.kind
    data, state = op.inputs
    axis = g.whole(op, "axis", 0)
    row = g.node(op, "Unsqueeze", [data, axis], 1)
    weights = _recurrent_weights(g, op, "", GATES, op.input_shapes[0][1], k.hidden)
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
        mask += np.tril(np.full((t, s), -1e9, np.float32), s - t - k.window) if k.window else 0
        scores = g.node(op, "Add", [scores, g.constant(op, "mask", np.tile(mask, (k.heads // shared, 1)))], 10)
    mixed = g.node(op, "MatMul", [g.node(op, "Softmax", [scores], 11, axis=-1), values], 12)
    apart = g.node(op, "Reshape", [mixed, g.whole(op, "apart", n, k.heads, t, d)], 13)
    g.node(op, "Reshape", [g.node(op, "Transpose", [apart], 14, perm=(0, 2, 1, 3)), g.whole(op, "joined", n, t, width)])


def _heads(g: Graph, op: BoundOp, step: int, name: str, shape: Sequence[int], order: Sequence[int]) -> str:
    split = g.node(op, "Reshape", [name, g.whole(op, f"split{step}", *shape)], step)
    return g.node(op, "Transpose", [split], step + 1, perm=tuple(order))


BUILDERS: dict[str, Callable[[Graph, BoundOp], None]] = {
    "conv2d": _conv, "conv_transpose2d": _conv, "linear": _linear, "matmul": _matmul, "embedding": _embedding,
    "bias_add": _bias_add,
    "max_pool": _pool("MaxPool"), "avg_pool": _pool("AveragePool"), "global_avg_pool": _plain("GlobalAveragePool"),
    "lrn": _plain("LRN", size=5), "batch_norm": _batch_norm, "layer_norm": _layer_norm,
    "softmax": _plain("Softmax", axis=-1), "argmax": _argmax,
    "relu": _plain("Relu"), "relu6": _relu6, "sigmoid": _plain("Sigmoid"), "tanh": _plain("Tanh"), "gelu": _plain("Gelu"),
    "leaky_relu": _plain("LeakyRelu", alpha=LEAK), "hard_sigmoid": _plain("HardSigmoid", alpha=1 / 6, beta=0.5),
    "hard_swish": _plain("HardSwish"), "gelu_tanh": _plain("Gelu", approximate="tanh"), "mask": _masked, "floor": _floor,
    "rms_norm": _rms_norm, "silu": _silu, "rotary": _rotary, "scale": _scale, "scale_by": _scale_by,
    "quantise": _quantise,
    "dropout": _plain("Identity"), "add": _several("Add"), "mul": _several("Mul"),
    "concat": _plain("Concat", axis=1), "pad": _pad, "reshape": _reshape, "transpose": _transpose, "slice": _slice,
    "upsample": _upsample, "rnn": _recurrent("RNN"), "gru": _recurrent("GRU", linear_before_reset=1),
    "lstm": _recurrent("LSTM"), "lstm_cell": _lstm_cell, "attention": _attention,
}  # fmt: skip
