"""Shapes of operators that slide a window: convolution, pooling; and of recurrent layers, which go through time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from archsim.trace.dims import Shape, show
from archsim.trace.kinds.convolution import windows
from archsim.trace.readers.call import Call, Refusal

MOST = 1 << 31  # of a stride, a window or a dilation


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow:
    """A window over the last dimensions: one number for each of them."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool = False

    def last(self, dimensions: int) -> SlidingWindow:
        """The window over the last dimensions alone."""
        parts = ("kernel", "stride", "before", "after", "dilation")
        return replace(self, **{part: getattr(self, part)[-dimensions:] for part in parts})

    def counted(self, sizes: Sequence[int]) -> Shape:
        """Positions of the window along each dimension."""
        try:
            return tuple([windows(size, k, s, before, after, d, self.ceil) for size, k, s, before, after, d in zip(
                sizes, self.kernel, self.stride, self.before, self.after, self.dilation, strict=True)])  # fmt: skip
        except ValueError as error:
            raise Refusal(str(error)) from None


def window_of(call: Call, kernel: Sequence[int] | None, sizes: Sequence[int]) -> SlidingWindow:
    """The window of a node over dimensions of these sizes; `kernel` is that of its weights, None where it has none."""
    rank = len(sizes)
    taken = call.integers("kernel_shape", kernel)
    if taken is None or len(taken) != rank or (kernel is not None and list(kernel) != taken):
        raise Refusal(f"has a window of {taken} over {rank} dimensions" + (f", and weights of {list(kernel)}" if kernel else ""))
    stride, dilation = (call.integers(name, [1] * rank) or [] for name in ("strides", "dilations"))
    for name, values in (("kernel_shape", taken), ("strides", stride), ("dilations", dilation)):
        if len(values) != rank or not all(1 <= value < MOST for value in values):
            raise Refusal(f"has {name} {values}; they must be {rank} numbers from 1 on")
    automatic = call.text("auto_pad", "NOTSET")
    pads = call.integers("pads", [0] * 2 * rank) or []
    if len(pads) != 2 * rank or not all(0 <= pad < MOST for pad in pads):
        raise Refusal(f"has pads {pads}; they must be {2 * rank} numbers from 0 on")
    before, after = pads[:rank], pads[rank:]
    if automatic == "VALID":
        before, after = [0] * rank, [0] * rank
    elif automatic in ("SAME_UPPER", "SAME_LOWER"):
        missing = [max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
                   for size, s, d, k in zip(sizes, stride, dilation, taken, strict=True)]  # fmt: skip
        less, more = [m // 2 for m in missing], [m - m // 2 for m in missing]
        before, after = (less, more) if automatic == "SAME_UPPER" else (more, less)
    elif automatic != "NOTSET":
        raise Refusal(f"has auto_pad {automatic!r}")
    return SlidingWindow(
        kernel=tuple(taken),
        stride=tuple(stride),
        before=tuple(before),
        after=tuple(after),
        dilation=tuple(dilation),
        ceil=bool(call.integer("ceil_mode", 0)),
    )


def _images(call: Call, shape: Shape) -> None:
    if len(shape) < 3:
        raise Refusal(f"needs an input of the form [N, C, ...], got {show(shape)}")


def conv_of(call: Call, weights: int = 1) -> tuple[SlidingWindow, int, int]:
    """The window of a convolution, its groups, and its output channels."""
    data, filters, groups = call.shape(), call.shape(weights), call.integer("group", 1)
    _images(call, data)
    if len(filters) != len(data):
        raise Refusal(f"has weights {show(filters)} for an input {show(data)}")
    if groups < 1 or data[1] != filters[1] * groups or filters[0] % groups:
        raise Refusal(f"has weights {show(filters)} in {groups} groups, which do not fit {data[1]} channels of {show(data)}")
    return window_of(call, filters[2:], data[2:]), groups, filters[0]


def _conv(weights: int) -> Callable[[Call], list[Shape]]:
    def rule(call: Call) -> list[Shape]:
        window, _, channels = conv_of(call, weights)
        data = call.shape()
        return [(data[0], channels, *window.counted(data[2:]))]

    return rule


def transposed_of(call: Call) -> tuple[SlidingWindow, int, int, tuple[int, ...]]:
    """The window of a transposed convolution, its groups, its output channels, and how much larger its output is."""
    data, filters, groups = call.shape(), call.shape(1), call.integer("group", 1)
    _images(call, data)
    if len(filters) != len(data) or groups < 1 or data[1] != filters[0] or filters[0] % groups:
        raise Refusal(f"has weights {show(filters)} in {groups} groups, which do not fit an input {show(data)}")
    rank = len(data) - 2
    extra = call.integers("output_padding", [0] * rank) or []
    if len(extra) != rank or not all(0 <= e < MOST for e in extra):
        raise Refusal(f"has output_padding {extra}")
    return window_of(call, filters[2:], data[2:]), groups, filters[1] * groups, tuple(extra)


def _conv_transpose(call: Call) -> list[Shape]:
    data, (w, _, channels, extra) = call.shape(), transposed_of(call)
    asked = call.integers("output_shape")
    sizes = (
        tuple(asked[-(len(data) - 2) :])
        if asked
        else tuple(
            [
                (size - 1) * w.stride[i] + extra[i] + w.dilation[i] * (w.kernel[i] - 1) + 1 - w.before[i] - w.after[i]
                for i, size in enumerate(data[2:])
            ]
        )
    )
    if len(sizes) != len(data) - 2 or min(sizes, default=0) < 1:
        raise Refusal(f"makes images of {list(sizes)} from {show(data)}")
    return [(data[0], channels, *sizes)]


def _pool(call: Call) -> list[Shape]:
    data = call.shape()
    _images(call, data)
    window = window_of(call, None, data[2:])
    if any(
        max(b, a) >= (k - 1) * d + 1
        for b, a, k, d in zip(window.before, window.after, window.kernel, window.dilation, strict=True)
    ):
        raise Refusal(f"has pads {[*window.before, *window.after]} as large as its window {list(window.kernel)}")
    found = (*data[:2], *window.counted(data[2:]))
    return [found] * len(call.node.outputs)


def _global_pool(call: Call) -> list[Shape]:
    data = call.shape()
    _images(call, data)
    return [(*data[:2], *[1] * (len(data) - 2))]


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent_of(call: Call) -> tuple[int, int]:
    """Hidden units of a recurrent layer, and the directions in which it reads."""
    data, weights, recurrence = call.shape(), call.shape(1), call.shape(2)
    ways = 2 if call.text("direction", "forward") == "bidirectional" else 1
    hidden = call.integer("hidden_size", recurrence[-1] if recurrence else 0)
    rows = GATES[call.node.kind] * hidden
    if len(data) != 3 or hidden < 1 or weights != (ways, rows, data[2]) or recurrence != (ways, rows, hidden):
        wanted = f"{show((ways, rows, data[-1] if data else 0))} and {show((ways, rows, hidden))}"
        raise Refusal(f"reads {show(data)} with weights {show(weights)} and {show(recurrence)}; needs {wanted}")
    return hidden, ways


def _recurrent(call: Call) -> list[Shape]:
    hidden, ways = recurrent_of(call)
    first, second, _ = call.shape()
    late = call.integer("layout", 0)
    steps, samples = (second, first) if late else (first, second)
    whole = (samples, steps, ways, hidden) if late else (steps, ways, samples, hidden)
    last = (samples, ways, hidden) if late else (ways, samples, hidden)
    return [whole, last, last][: max(1, len(call.node.outputs))]


WINDOWS: dict[str, Callable[[Call], list[Shape]]] = {
    "Conv": _conv(1), "ConvInteger": _conv(1), "QLinearConv": _conv(3), "FusedConv": _conv(1), "ConvTranspose": _conv_transpose,
    "MaxPool": _pool, "AveragePool": _pool, "LpPool": _pool, "GlobalAveragePool": _global_pool, "GlobalMaxPool": _global_pool,
    "GlobalLpPool": _global_pool, "QLinearGlobalAveragePool": _global_pool, "QLinearAveragePool": _pool,
    "LSTM": _recurrent, "GRU": _recurrent, "RNN": _recurrent,
}  # fmt: skip
