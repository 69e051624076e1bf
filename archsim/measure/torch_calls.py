"""The call of PyTorch that computes each op kind, and the learned values that it takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

from archsim.measure.nodes import LEAK, TINY, along, turns, window_pads
from archsim.trace.kinds.convolution import sides
from archsim.trace.kinds.sequence import GATES
from archsim.trace.trace import BoundOp

Call = Callable[[Any, BoundOp, list[Any], list[Any]], Any]  # of torch, the op, its inputs, its learned values and constants


def shapes_of(op: BoundOp) -> list[tuple[int, ...]]:
    """The shapes of an op's learned values, in the order of its call's arguments."""
    k: Any = op.kind
    channels = op.shape[1] if len(op.shape) > 1 else 0

    def layers() -> list[tuple[int, ...]]:
        return [shape for layer in range(k.layers) for _ in range(k.directions)
                for shape in recurrent_shapes(k.gates, op.shape[2] if layer else op.input_shapes[0][2], k.hidden)]  # fmt: skip

    shapes: dict[str, Callable[[], list[tuple[int, ...]]]] = {
        "conv2d": lambda: [(channels, op.input_shapes[0][1] // k.groups, *k.kernel), *([(channels,)] if k.bias else [])],
        "conv_transpose2d": lambda: [(op.input_shapes[0][1], channels // k.groups, *k.kernel),
                                     *([(channels,)] if k.bias else [])],
        "linear": lambda: [(op.shape[-1], op.input_shapes[0][-1]), *([(op.shape[-1],)] if k.bias else [])],
        "embedding": lambda: [(k.vocabulary, k.features)],
        "bias_add": lambda: [tuple(along(op, k.axis))],
        "scale": lambda: [tuple(along(op, k.axis))],
        "batch_norm": lambda: [(channels,)] * 4,
        "layer_norm": lambda: [(op.shape[-1],)] * 2,
        "rms_norm": lambda: [tuple(along(op, k.axis))],
        "rnn": layers, "gru": layers, "lstm": layers,
        "lstm_cell": lambda: recurrent_shapes(GATES, op.input_shapes[0][1], k.hidden),
    }  # fmt: skip
    return shapes[k.op]() if k.op in shapes else []


VARIANCES = {"batch_norm": 1}  # op kind = which of its values must be above zero


def constants_of(torch: Any, op: BoundOp) -> list[Any]:
    """Tensors that an op's call takes after its learned values, made once: angles of rotary positions, masks."""
    k: Any = op.kind
    if k.op == "rotary":
        return [torch.from_numpy(values) for values in turns(op.shape[1], int(getattr(k, "width", 2)))]
    if k.op == "mask":
        return [torch.ones(op.shape[-2:], dtype=torch.bool).triu(1)]
    if k.op == "attention" and k.causal:
        queries, keys = op.shape[1], k.parts(op.input_shapes)[1][1]
        seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        return [seen.triu(keys - queries - k.window + 1) if k.window else seen]
    return []


def recurrent_shapes(gates: int, features: int, hidden: int) -> list[tuple[int, ...]]:
    """Weights and biases of one recurrent layer in PyTorch's order."""
    return [(gates * hidden, features), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,)]


def _padded(torch: Any, op: BoundOp, x: Any, pads: tuple[int, int, int, int], fill: float) -> tuple[Any, tuple[int, int]]:
    """The input with uneven padding applied, and the even padding that is left to the op.

    Where the last rows or columns that even padding adds begin no window, it does as well.
    """
    k: Any = op.kind
    top, left, bottom, right = pads
    spans = [(size + 2 * pad - window) // step + 1 for size, pad, window, step in
             zip(op.input_shapes[0][2:], (top, left), k.kernel, k.stride, strict=True)]  # fmt: skip
    if (top, left) == (bottom, right) or (getattr(k, "dilation", (1, 1)) == (1, 1) and tuple(spans) == tuple(op.shape[2:])):
        return x, (top, left)
    return torch.nn.functional.pad(x, (left, right, top, bottom), value=fill), (0, 0)


def _conv(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    data, pad = _padded(torch, op, x[0], sides(k.pad), 0.0)
    return torch.nn.functional.conv2d(data, w[0], w[1] if k.bias else None, k.stride, pad, k.dilation, k.groups)


def _max_pool(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    data, pad = _padded(torch, op, x[0], window_pads(op), float("-inf"))
    return torch.nn.functional.max_pool2d(data, k.kernel, k.stride, pad)


def _avg_pool(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    data, pad = _padded(torch, op, x[0], window_pads(op), 0.0)
    return torch.nn.functional.avg_pool2d(data, k.kernel, k.stride, pad, False, k.count_include_pad)


def _heads(torch: Any, op: BoundOp, x: list[Any]) -> tuple[Any, Any, Any]:
    """Queries, keys and values as [N, heads, T, head size]; fewer heads of keys stay as they are."""
    k: Any = op.kind
    n, _, width = op.shape
    size = width // k.heads
    parts = x if len(x) == 3 else x[0].split([shape[2] for shape in k.parts(op.input_shapes)], -1)
    q, keys, values = (data.reshape(n, -1, heads, size).transpose(1, 2)
                       for data, heads in zip(parts, (k.heads, *[k.kv_heads or k.heads] * 2), strict=True))  # fmt: skip
    return q, keys, values


def _attention(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    """By scaled_dot_product_attention, which has a causal kernel where all tokens are queries."""
    k: Any = op.kind
    q, keys, values = _heads(torch, op, x)
    whole = k.causal and not k.window and op.shape[1] == k.parts(op.input_shapes)[1][1]
    more = {"enable_gqa": True} if (k.kv_heads or k.heads) != k.heads else {}
    mixed = torch.nn.functional.scaled_dot_product_attention(
        q, keys, values, attn_mask=w[0] if k.causal and not whole else None, is_causal=whole, **more)  # fmt: skip
    return mixed.transpose(1, 2).reshape(op.shape)


def attention_by_products(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    """By two batched products around a softmax, each a kernel that leaves its result in memory."""
    k: Any = op.kind
    q, keys, values = _heads(torch, op, x)
    if (k.kv_heads or k.heads) != k.heads:
        keys, values = (data.repeat_interleave(k.heads // k.kv_heads, 1) for data in (keys, values))
    scores = torch.matmul(q, keys.transpose(-1, -2)) * (op.shape[2] // k.heads) ** -0.5
    if k.causal:
        scores = torch.where(w[0], scores, UNSEEN)
    return torch.matmul(torch.softmax(scores, -1), values).transpose(1, 2).reshape(op.shape)


def _rms_norm(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    return x[0] * torch.rsqrt(x[0].pow(2).mean(getattr(op.kind, "axis", -1), keepdim=True) + TINY) * w[0]


def _rotary(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    n, t, width = op.shape
    size = int(getattr(op.kind, "width", 2))
    heads = x[0].reshape(n, t, width // size, size)
    cosines, sines = w
    first, second = heads.chunk(2, -1)
    return (heads * cosines + torch.cat((-second, first), -1) * sines).reshape(n, t, width)


def _recurrent(name: str, states: int = 1) -> Call:
    """A recurrent layer whose state is one tensor, or several."""

    def call(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
        k: Any = op.kind
        zeros = x[0].new_zeros(k.layers * k.directions, op.shape[1], k.hidden)
        state = zeros if states == 1 else (zeros,) * states
        return getattr(torch, name)(x[0], state, w, True, k.layers, 0.0, False, k.bidirectional, False)[0]

    return call


def _conv_transpose(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    top, left, bottom, right = sides(k.pad)
    whole = torch.nn.functional.conv_transpose2d(x[0], w[0], w[1] if k.bias else None, k.stride, 0, k.output_pad, k.groups,
                                                 k.dilation)  # fmt: skip
    return whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]


def _quantise(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    scale = x[0].abs().max() / 127 if getattr(op.kind, "dynamic", False) else 2**-5
    return (x[0] / scale).round() * scale


def _upsample(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    return torch.nn.functional.interpolate(x[0], op.shape[2:], mode=getattr(op.kind, "mode", "nearest"))


def _lstm_cell(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    return torch.stack(torch.lstm_cell(x[0], (x[1][0], x[1][1]), *w))


def _matmul(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    a, b = (data.transpose(-1, -2) if flag else data for data, flag in zip(x, (k.transpose_a, k.transpose_b), strict=True))
    return torch.matmul(a, b)


def _pad(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    ends = [size for pair in reversed(list(zip(k.before, k.after, strict=True))) for size in pair]
    return torch.nn.functional.pad(x[0], ends)


def batch_norm_of_batch(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    """Batch normalisation of a training run: by the statistics of the batch, which move the stored ones."""
    return torch.nn.functional.batch_norm(x[0], *w, training=True)


def _of(name: str, *more: Any) -> Call:
    """A function of torch.nn.functional on the one input."""
    return lambda torch, op, x, w: getattr(torch.nn.functional, name)(x[0], *more)


UNSEEN = -1.0e4  # what takes the place of a score that is not to be seen; half precision holds it
CALLS: dict[str, Call] = {
    "conv2d": _conv, "conv_transpose2d": _conv_transpose, "upsample": _upsample,
    "max_pool": _max_pool, "avg_pool": _avg_pool, "global_avg_pool": _of("adaptive_avg_pool2d", 1),
    "linear": lambda torch, op, x, w: torch.nn.functional.linear(x[0], *w), "matmul": _matmul,
    "embedding": lambda torch, op, x, w: torch.nn.functional.embedding(x[0], w[0]),
    "bias_add": lambda torch, op, x, w: x[0] + w[0],
    "batch_norm": lambda torch, op, x, w: torch.nn.functional.batch_norm(x[0], *w),
    "softmax": lambda torch, op, x, w: torch.softmax(x[0], getattr(op.kind, "axis", -1)),
    "argmax": lambda torch, op, x, w: torch.argmax(x[0], -1),
    "layer_norm": lambda torch, op, x, w: torch.nn.functional.layer_norm(x[0], op.shape[-1:], *w),
    "lrn": lambda torch, op, x, w: torch.nn.functional.local_response_norm(x[0], getattr(op.kind, "size", 5)),
    "relu": _of("relu"), "relu6": _of("relu6"), "gelu": _of("gelu"), "silu": _of("silu"),
    "leaky_relu": _of("leaky_relu", LEAK), "hard_sigmoid": _of("hardsigmoid"), "hard_swish": _of("hardswish"),
    "gelu_tanh": lambda torch, op, x, w: torch.nn.functional.gelu(x[0], approximate="tanh"),
    "mask": lambda torch, op, x, w: x[0].masked_fill(w[0], UNSEEN),
    "floor": lambda torch, op, x, w: x[0].clamp(min=UNSEEN), "scale": lambda torch, op, x, w: x[0] * w[0],
    "quantise": _quantise, "scale_by": lambda torch, op, x, w: x[0] * getattr(op.kind, "factor", 1.0),
    "rms_norm": _rms_norm, "rotary": _rotary, "sigmoid": lambda torch, op, x, w: torch.sigmoid(x[0]),
    "tanh": lambda torch, op, x, w: torch.tanh(x[0]), "dropout": lambda torch, op, x, w: x[0],
    "add": lambda torch, op, x, w: reduce(add, x), "mul": lambda torch, op, x, w: reduce(mul, x),
    "concat": lambda torch, op, x, w: torch.cat(x, getattr(op.kind, "axis", 1)), "pad": _pad,
    "reshape": lambda torch, op, x, w: x[0].reshape(op.shape),
    "transpose": lambda torch, op, x, w: x[0].permute(getattr(op.kind, "order", ())).contiguous(),
    "slice": lambda torch, op, x, w: x[0].narrow(
        getattr(op.kind, "axis", 0), getattr(op.kind, "start", 0), op.shape[getattr(op.kind, "axis", 0)]),
    "rnn": _recurrent("rnn_tanh"), "gru": _recurrent("gru"), "lstm": _recurrent("lstm", states=2),
    "lstm_cell": _lstm_cell, "attention": _attention,
}  # fmt: skip
