"""Networks in PyTorch (eager): on the CPU, or on a CUDA GPU timed by events."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from archsim.base.errors import ArchsimError, Unsupported
from archsim.measure.nodes import LEAK, TINY, along, turns, window_pads
from archsim.measure.onnx_model import feeds
from archsim.trace.kinds.convolution import sides
from archsim.trace.kinds.recurrent import GATES
from archsim.trace.trace import BoundOp, BoundTrace

STACKS = {"cpu": "pytorch-cpu", "cuda": "pytorch-2"}


class NoTorch(ArchsimError):
    """PyTorch is not installed. It is no extra, because users need the build for their hardware."""

    exit_code = 69


def runtime() -> Any:
    """The torch module."""
    try:
        import torch
    except (ImportError, OSError):
        raise NoTorch("`--backend torch` needs PyTorch: install the build for this computer (https://pytorch.org)") from None
    return torch


def session_class(device: str) -> Callable[[BoundTrace, int], TorchSession]:
    """Sessions on `cpu` or `cuda`; Unsupported where there is no such device."""
    torch = runtime()
    if device == "cuda" and not torch.cuda.is_available():
        raise Unsupported("--device cuda: PyTorch sees no GPU here")
    return lambda trace, threads: TorchSession(torch, trace, threads, device)


class TorchSession:
    """One network, batch and number of threads, ready to run."""

    def __init__(self, torch: Any, trace: BoundTrace, threads: int, device: str) -> None:
        missing = sorted({op.kind.op for op in trace.ops} - set(CALLS))
        if missing:
            raise Unsupported(f"network {trace.name} cannot be built with torch: it has {', '.join(missing)}")
        self._torch, self.trace, self._device = torch, trace, device
        self.threads = threads if device == "cpu" else 1
        self.stack, self.host = STACKS[device], "gpu" if device == "cuda" else "cpu"
        self.software = f"torch {torch.__version__}"
        torch.set_num_threads(threads)
        if device == "cuda":  # rows say fp32, and PyTorch would let convolutions use tf32
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(0)
        self._feeds = {name: torch.from_numpy(array).to(device) for name, array in feeds(trace).items()}
        self._weights = {op.name: [self._weight(shape) for shape in shapes_of(op)] for op in trace.ops}

    def _weight(self, shape: tuple[int, ...]) -> Any:
        fan_in = 1
        for size in shape[1:]:
            fan_in *= size
        values = self._torch.randn(shape) * ((2.0 / fan_in) ** 0.5 if len(shape) > 1 else 0.01)
        return values.to(self._device)

    def _forward(self, mark: Callable[[BoundOp], None] = lambda op: None) -> dict[str, Any]:
        """All tensors of one run; `mark` is called after each op."""
        held = dict(self._feeds)
        for op in self.trace.ops:
            held[op.name] = CALLS[op.kind.op](self._torch, op, [held[name] for name in op.inputs], self._weights[op.name])
            mark(op)
        return held

    def outputs(self) -> list[tuple[int, ...]]:
        """The shapes of the outputs of one run."""
        with self._torch.inference_mode():
            held = self._forward()
        return [tuple(held[name].shape) for name in self.trace.outputs]

    def timed(self, times: int) -> float:
        """Time of `times` runs [s]; by CUDA events on a GPU."""
        with self._torch.inference_mode():
            if self._device == "cpu":
                begin = time.perf_counter()
                for _ in range(times):
                    self._forward()
                return time.perf_counter() - begin
            first, last = self._event(), self._event()
            first.record()
            for _ in range(times):
                self._forward()
            last.record()
            last.synchronize()
            return float(first.elapsed_time(last)) * 1e-3

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def per_op(self, rounds: int) -> tuple[dict[tuple[str, ...], float], float]:
        """Median time of each op [s]; in eager mode ops are not fused."""
        spent: dict[tuple[str, ...], list[float]] = {(op.name,): [] for op in self.trace.ops}
        for _ in range(rounds):
            with self._torch.inference_mode():
                for name, seconds in (self._stamps() if self._device == "cpu" else self._events()):
                    spent[(name,)].append(seconds)
        return {group: sorted(values)[len(values) // 2] for group, values in spent.items()}, 0.0

    def _stamps(self) -> list[tuple[str, float]]:
        stamps: list[tuple[str, float]] = []
        begin = time.perf_counter()
        self._forward(lambda op: stamps.append((op.name, time.perf_counter())))
        return [(name, at - before) for (name, at), before in zip(stamps, [begin, *(at for _, at in stamps)], strict=False)]

    def _events(self) -> list[tuple[str, float]]:
        marks = [("", self._event())]
        marks[0][1].record()

        def mark(op: BoundOp) -> None:
            marks.append((op.name, self._event()))
            marks[-1][1].record()

        self._forward(mark)
        marks[-1][1].synchronize()
        return [(name, float(before.elapsed_time(after)) * 1e-3)
                for (_, before), (name, after) in itertools.pairwise(marks)]  # fmt: skip


def shapes_of(op: BoundOp) -> list[tuple[int, ...]]:
    """The shapes of an op's learned values, in the order of its call's arguments."""
    k: Any = op.kind
    channels = op.shape[1] if len(op.shape) > 1 else 0

    def layers() -> list[tuple[int, ...]]:
        return [shape for layer in range(k.layers) for _ in range(k.directions)
                for shape in recurrent_shapes(k.gates, op.shape[2] if layer else op.input_shapes[0][2], k.hidden)]  # fmt: skip

    shapes: dict[str, Callable[[], list[tuple[int, ...]]]] = {
        "conv2d": lambda: [(channels, op.input_shapes[0][1] // k.groups, *k.kernel), *([(channels,)] if k.bias else [])],
        "conv_transpose2d": lambda: [(op.input_shapes[0][1], channels, *k.kernel), *([(channels,)] if k.bias else [])],
        "linear": lambda: [(op.shape[-1], op.input_shapes[0][-1]), *([(op.shape[-1],)] if k.bias else [])],
        "embedding": lambda: [(k.vocabulary, k.features)],
        "bias_add": lambda: [tuple(along(op, k.axis))],
        "scale": lambda: [tuple(along(op, k.axis))],
        "batch_norm": lambda: [(channels,)] * 3,
        "layer_norm": lambda: [(op.shape[-1],)] * 2,
        "rms_norm": lambda: [tuple(along(op, k.axis))],
        "rnn": layers, "gru": layers, "lstm": layers,
        "lstm_cell": lambda: recurrent_shapes(GATES, op.input_shapes[0][1], k.hidden),
    }  # fmt: skip
    return shapes[k.op]() if k.op in shapes else []


def recurrent_shapes(gates: int, features: int, hidden: int) -> list[tuple[int, ...]]:
    """Weights and biases of one recurrent layer in PyTorch's order."""
    return [(gates * hidden, features), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,)]


def _padded(torch: Any, op: BoundOp, x: Any, pads: tuple[int, int, int, int], fill: float) -> tuple[Any, tuple[int, int]]:
    """The input with uneven padding applied, and the even padding that is left to the op."""
    top, left, bottom, right = pads
    if (top, left) == (bottom, right):
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


def _attention(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    n, t, width = op.shape
    size = width // k.heads
    parts = x if len(x) == 3 else x[0].split([shape[2] for shape in k.parts(op.input_shapes)], -1)
    q, keys, values = (data.reshape(n, -1, heads, size).transpose(1, 2)
                       for data, heads in zip(parts, (k.heads, *[k.kv_heads or k.heads] * 2), strict=True))  # fmt: skip
    if (k.kv_heads or k.heads) != k.heads:
        keys, values = (data.repeat_interleave(k.heads // k.kv_heads, 1) for data in (keys, values))
    mask = None
    if k.causal:
        mask = torch.ones(t, keys.shape[2], dtype=torch.bool, device=q.device).tril(keys.shape[2] - t)
        mask = mask.triu(keys.shape[2] - t - k.window + 1) if k.window else mask
    mixed = torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
    return mixed.transpose(1, 2).reshape(n, t, width)


def _rms_norm(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    return x[0] * torch.rsqrt(x[0].pow(2).mean(getattr(op.kind, "axis", -1), keepdim=True) + TINY) * w[0]


def _rotary(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    n, t, width = op.shape
    size = int(getattr(op.kind, "width", 2))
    heads = x[0].reshape(n, t, width // size, size)
    cosines, sines = (torch.from_numpy(values).to(heads) for values in turns(t, size))
    first, second = heads.chunk(2, -1)
    return (heads * cosines + torch.cat((-second, first), -1) * sines).reshape(n, t, width)


def _lstm(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    state = x[0].new_zeros(k.layers * k.directions, op.shape[1], k.hidden)
    return torch.lstm(x[0], (state, state), w, True, k.layers, 0.0, False, k.bidirectional, False)[0]


def _rnn(name: str) -> Callable[[Any, BoundOp, list[Any], list[Any]], Any]:
    """A recurrent layer whose state is one tensor."""

    def call(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
        k: Any = op.kind
        state = x[0].new_zeros(k.layers * k.directions, op.shape[1], k.hidden)
        return getattr(torch, name)(x[0], state, w, True, k.layers, 0.0, False, k.bidirectional, False)[0]

    return call


def _conv_transpose(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    top, left, bottom, right = sides(k.pad)
    whole = torch.nn.functional.conv_transpose2d(x[0], w[0], w[1] if k.bias else None, k.stride)
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


def _total(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    held = x[0]
    for data in x[1:]:
        held = held + data
    return held


def _product(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    held = x[0]
    for data in x[1:]:
        held = held * data
    return held


def _pad(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    k: Any = op.kind
    ends = [size for pair in reversed(list(zip(k.before, k.after, strict=True))) for size in pair]
    return torch.nn.functional.pad(x[0], ends)


def _batch_norm(torch: Any, op: BoundOp, x: list[Any], w: list[Any]) -> Any:
    return torch.nn.functional.batch_norm(x[0], w[0], w[0].abs() + 1.0, w[1], w[2])


def _of(name: str, *more: Any) -> Callable[[Any, BoundOp, list[Any], list[Any]], Any]:
    """A function of torch.nn.functional on the one input."""
    return lambda torch, op, x, w: getattr(torch.nn.functional, name)(x[0], *more)


LEAST = -3.0e38  # what takes the place of a score that is not to be seen
CALLS: dict[str, Callable[[Any, BoundOp, list[Any], list[Any]], Any]] = {
    "conv2d": _conv, "conv_transpose2d": _conv_transpose, "upsample": _upsample,
    "max_pool": _max_pool, "avg_pool": _avg_pool, "global_avg_pool": _of("adaptive_avg_pool2d", 1),
    "linear": lambda torch, op, x, w: torch.nn.functional.linear(x[0], *w), "matmul": _matmul,
    "embedding": lambda torch, op, x, w: torch.nn.functional.embedding(x[0], w[0]),
    "bias_add": lambda torch, op, x, w: x[0] + w[0],
    "batch_norm": _batch_norm, "softmax": lambda torch, op, x, w: torch.softmax(x[0], getattr(op.kind, "axis", -1)),
    "argmax": lambda torch, op, x, w: torch.argmax(x[0], -1),
    "layer_norm": lambda torch, op, x, w: torch.nn.functional.layer_norm(x[0], op.shape[-1:], *w),
    "lrn": lambda torch, op, x, w: torch.nn.functional.local_response_norm(x[0], getattr(op.kind, "size", 5)),
    "relu": _of("relu"), "relu6": _of("relu6"), "gelu": _of("gelu"), "silu": _of("silu"),
    "leaky_relu": _of("leaky_relu", LEAK), "hard_sigmoid": _of("hardsigmoid"), "hard_swish": _of("hardswish"),
    "gelu_tanh": lambda torch, op, x, w: torch.nn.functional.gelu(x[0], approximate="tanh"),
    "mask": lambda torch, op, x, w: x[0].masked_fill(torch.ones(op.shape[-2:], dtype=torch.bool).triu(1), LEAST),
    "floor": lambda torch, op, x, w: x[0].clamp(min=LEAST), "scale": lambda torch, op, x, w: x[0] * w[0],
    "quantise": _quantise, "scale_by": lambda torch, op, x, w: x[0] * getattr(op.kind, "factor", 1.0),
    "rms_norm": _rms_norm, "rotary": _rotary, "sigmoid": lambda torch, op, x, w: torch.sigmoid(x[0]),
    "tanh": lambda torch, op, x, w: torch.tanh(x[0]), "dropout": lambda torch, op, x, w: x[0], "add": _total, "mul": _product,
    "concat": lambda torch, op, x, w: torch.cat(x, getattr(op.kind, "axis", 1)), "pad": _pad,
    "reshape": lambda torch, op, x, w: x[0].reshape(op.shape),
    "transpose": lambda torch, op, x, w: x[0].permute(getattr(op.kind, "order", ())).contiguous(),
    "slice": lambda torch, op, x, w: x[0].narrow(
        getattr(op.kind, "axis", 0), getattr(op.kind, "start", 0), op.shape[getattr(op.kind, "axis", 0)]),
    "rnn": _rnn("rnn_tanh"), "gru": _rnn("gru"), "lstm": _lstm, "lstm_cell": _lstm_cell, "attention": _attention,
}  # fmt: skip
