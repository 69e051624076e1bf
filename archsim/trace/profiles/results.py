"""The shape of what a call of ATen makes, from its arguments: Kineto does not record it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from archsim.trace.dims import Shape
from archsim.trace.profiles.record import Argument, ProfiledTensor
from archsim.trace.readers.aten_rules import FUNCTIONS, OPERANDS

Rule = Callable[["Given"], Sequence[int]]


class Given:
    """The arguments of a call, by place."""

    def __init__(self, kind: str, arguments: Sequence[Argument]) -> None:
        self.kind, self.arguments = kind, arguments

    def size(self, place: int) -> Shape:
        """The shape of a tensor."""
        found = self.at(place)
        if not isinstance(found, ProfiledTensor):
            raise ValueError(f"argument {place} is no tensor")
        return found.shape

    def at(self, place: int, default: Any = None) -> Any:
        """An argument."""
        found = self.arguments[place] if place < len(self.arguments) else None
        return default if found is None else found

    def each(self, place: int, rank: int, default: Any = None) -> list[int]:
        """A whole number for each dimension of an image; ValueError where none was recorded."""
        found = self.at(place)
        found = default if found is None or found == [] else found
        listed = [found] * rank if type(found) is int else found
        if not isinstance(listed, list) or len(listed) not in (1, rank) or not all(type(each) is int for each in listed):
            raise ValueError(f"argument {place} was not recorded: profiles of PyTorch 2.1 and later hold it")
        return listed * rank if len(listed) == 1 else listed


def result_shape(kind: str, arguments: Sequence[Argument]) -> Shape | None:
    """The shape of the result; None for an operator whose rule is not known. Raises ValueError where arguments do not fit."""
    rule = RESULTS.get(kind)
    if rule is None:
        return None
    try:
        found = tuple(rule(Given(kind, arguments)))
    except (IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"has arguments that do not fit ({type(error).__name__})") from None
    if any(type(size) is not int or size < 0 for size in found):
        raise ValueError(f"makes a tensor of shape {list(found)[:8]}, which none has")
    return found


def _first(g: Given) -> Shape:
    return g.size(0)


def _joined(g: Given) -> Sequence[int]:
    shapes = [each.shape for each in g.arguments if isinstance(each, ProfiledTensor)]
    return broadcast(*shapes)


def broadcast(*shapes: Shape) -> Shape:
    """The shape to which all stretch. Raises ValueError.

    >>> broadcast((8, 1, 4), (3, 1), ())
    (8, 3, 4)
    """
    rank = max((len(shape) for shape in shapes), default=0)
    found = []
    for place in range(1, rank + 1):
        sizes = {shape[-place] for shape in shapes if len(shape) >= place} - {1}
        if len(sizes) > 1:
            raise ValueError(f"operands {', '.join(map(str, shapes))} do not fit each other")
        found.append(sizes.pop() if sizes else 1)
    return tuple(found[::-1])


def _window(size: int, kernel: int, stride: int, pad: int, dilation: int, up: bool = False) -> int:
    reach = size + 2 * pad - dilation * (kernel - 1) - 1
    made = (-(-reach // stride) if up else reach // stride) + 1
    if up and (made - 1) * stride >= size + pad:
        made -= 1
    return made


def _conv(g: Given) -> Sequence[int]:
    data, weight = g.size(0), g.size(1)
    rank = len(data) - 2
    general = g.kind == "convolution"
    if general and g.at(6) is True:
        return _turned(g, g.each(3, rank), g.each(4, rank), g.each(7, rank), g.each(5, rank), int(g.at(8, 1)))
    stride, dilation = g.each(3, rank), g.each(5, rank)
    if g.at(4) == "same":
        return (data[0], weight[0], *data[2:])
    pads = [0] * rank if g.at(4) == "valid" else g.each(4, rank)
    sizes = [_window(*each) for each in zip(data[2:], weight[2:], stride, pads, dilation, strict=True)]
    return (data[0], weight[0], *sizes)


def _turned(
    g: Given, stride: Sequence[int], pads: Sequence[int], extra: Sequence[int], dilation: Sequence[int], groups: int
) -> Sequence[int]:
    data, weight = g.size(0), g.size(1)
    each = zip(data[2:], weight[2:], stride, pads, extra, dilation, strict=True)
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, e, d in each]
    return (data[0], weight[1] * groups, *sizes)


def _conv_transpose(g: Given) -> Sequence[int]:
    rank = len(g.size(0)) - 2
    return _turned(g, g.each(3, rank), g.each(4, rank), g.each(5, rank), g.each(7, rank), int(g.at(6, 1)))


def _pool(g: Given) -> Sequence[int]:
    data = g.size(0)
    rank = len(data) - 2 if len(data) > 3 or "1d" in g.kind else len(data) - 1
    kernel = g.each(1, rank)
    stride, pads = g.each(2, rank, kernel), g.each(3, rank, 0)
    largest = g.kind.startswith("max")
    dilation = g.each(4, rank, 1) if largest else [1] * rank
    up = g.at(5 if largest else 4) is True
    ends = [_window(*each, up) for each in zip(data[-rank:], kernel, stride, pads, dilation, strict=True)]
    return (*data[:-rank], *ends)


def _adaptive(g: Given) -> Sequence[int]:
    data = g.size(0)
    rank = 1 if "1d" in g.kind else 2
    return (*data[:-rank], *g.each(1, rank))


def _linear(g: Given) -> Sequence[int]:
    return (*g.size(0)[:-1], g.size(1)[0])


def _addmm(g: Given) -> Sequence[int]:
    return (*g.size(1)[:-1], g.size(2)[-1])


def _matmul(g: Given) -> Sequence[int]:
    a, b = g.size(0), g.size(1)
    if len(a) == 1 or len(b) == 1:
        return (*a[:-1],) if len(b) == 1 else (*b[:-2], b[-1])
    return (*broadcast(a[:-2], b[:-2]), a[-2], b[-1])


def _reduced(g: Given) -> Sequence[int]:
    data, axes = g.size(0), g.at(1)
    if axes is None or isinstance(axes, bool):
        return ()
    listed = {int(axis) % len(data) for axis in (axes if isinstance(axes, list) else [axes])}
    kept = g.at(2) is True
    return [1 if i in listed else size for i, size in enumerate(data) if kept or i not in listed]


def _embedding(g: Given) -> Sequence[int]:
    return (*g.size(1), *g.size(0)[1:])


def _cat(g: Given) -> Sequence[int]:
    shapes = [each.shape for each in g.at(0) if each.shape not in ((), (0,))]
    axis = int(g.at(1, 0))
    if g.kind == "stack":
        place = axis % (len(shapes[0]) + 1)
        return (*shapes[0][:place], len(shapes), *shapes[0][place:])
    axis %= len(shapes[0])
    return [sum(shape[axis] for shape in shapes) if i == axis else size for i, size in enumerate(shapes[0])]


def _attention(g: Given) -> Sequence[int]:
    return (*g.size(0)[:-1], g.size(2)[-1])


def _upsampled(g: Given) -> Sequence[int]:
    data = g.size(0)
    return (*data[:2], *g.each(1, len(data) - 2))


RESULTS: dict[str, Rule] = {
    **dict.fromkeys(FUNCTIONS, _first), **dict.fromkeys(OPERANDS, _joined),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    **dict.fromkeys(("batch_norm", "native_batch_norm", "layer_norm", "native_layer_norm", "rms_norm", "group_norm",
                     "instance_norm", "softmax", "_softmax", "log_softmax", "_log_softmax", "clamp", "hardtanh", "clamp_min",
                     "clamp_max", "relu6", "rsqrt", "gelu", "rsub"), _first),
    "linear": _linear, "addmm": _addmm, "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "embedding": _embedding,
    **dict.fromkeys(("masked_fill", "where"), _joined), "cat": _cat, "concat": _cat, "stack": _cat,
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "avg_pool1d", "avg_pool2d",
                     "avg_pool3d"), _pool),
    **dict.fromkeys(("adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d"), _adaptive),
    **dict.fromkeys(("mean", "sum", "amax", "amin"), _reduced), "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"), _upsampled),
}  # fmt: skip
