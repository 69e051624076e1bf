"""Shapes of operators that slide a window or go through time, of attention with its heads and cached keys, of Einstein sums."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from archsim.trace.dims import Shape, elements, show
from archsim.trace.kinds.convolution import windows
from archsim.trace.readers.model import Call, Refusal

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
        kernel=tuple(taken), stride=tuple(stride), before=tuple(before), after=tuple(after), dilation=tuple(dilation),
        ceil=bool(call.integer("ceil_mode", 0)),
    )  # fmt: skip


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


# --------------------------------------------------------------------------------------------------- heads of attention

PACKED = "com.microsoft.Attention"  # a projection and its attention in one


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """What a node of attention computes.

    samples, queries, keys: sizes; `past` cached keys stand before the new ones, at input `cache`, and their values behind them
    heads, shared: heads of queries, and of keys; size, value: features of a head's keys, and of its values
    packed: one input holds queries, keys and values; deep: heads stand before tokens
    """

    samples: int
    queries: int
    keys: int
    heads: int
    shared: int
    size: int
    value: int
    causal: bool
    window: int = 0
    past: int = 0
    cache: int = 0
    packed: bool = False
    deep: bool = False

    @property
    def widths(self) -> tuple[int, int, int]:
        """Features of queries, keys and values."""
        return self.heads * self.size, self.shared * self.size, self.shared * self.value


def heads_of(call: Call) -> Heads:
    """The heads of a node. Raises Refusal where its inputs do not fit."""
    found = HEADS[call.node.kind](call)
    if min(found.heads, found.shared, found.size, found.value) < 1 or found.heads % found.shared:
        raise Refusal(f"has {found.heads} heads, and {found.shared} of keys, for queries {show(call.shape(0))}")
    return found


def _of(call: Call, heads: int, shared: int, cache: int, causal: bool, window: int = 0) -> Heads:
    """From queries, keys and values apart, [N, T, features] or [N, heads, T, size], or packed in the first input."""
    q, packed = call.shape(0), not call.has(1)
    if packed:
        q = (*q[:2], elements(q[2:]))
        size = q[2] // max(1, heads + 2 * shared)
        k = v = (*q[:2], shared * size)
        q = (*q[:2], heads * size)
    else:
        k = call.shape(1)
        v = call.shape(2) if call.has(2) else (*k[:3], k[-1])  # keys and values [N, S, heads, 2, size] in one
        k, v = ((*each[:3], each[-1]) if len(each) == 5 else each for each in (k, v))
    deep = len(q) == 4
    heads, shared = (q[1], k[1]) if deep else (heads, shared)
    if len(q) not in (3, 4) or len(k) not in (3, 4) or len(v) not in (3, 4):
        raise Refusal(f"reads queries {show(q)}, keys {show(k)} and values {show(v)}")
    if not deep and (heads < 1 or shared < 1 or q[2] % heads or (len(v) == 3 and v[2] % shared)):
        raise Refusal(f"has {heads} heads for queries {show(q)} and values {show(v)}")
    later = deep or (len(k) == 4 and k[1] == shared)  # heads before tokens
    return Heads(
        samples=q[0], queries=q[-2] if deep else q[1], keys=k[2] if later else k[1], heads=heads, shared=shared,
        size=q[3] if deep else q[2] // heads, value=v[3] if len(v) == 4 else v[2] // shared, causal=causal, window=window,
        past=call.shape(cache)[-2] if call.has(cache) else 0, cache=cache, packed=packed, deep=deep,
    )  # fmt: skip


def _onnx(call: Call) -> Heads:
    heads = call.integer("q_num_heads", 0)
    return _of(call, heads, call.integer("kv_num_heads", heads), 4, bool(call.integer("is_causal", 0)), call.integer("window", 0))


def _multi_head(call: Call) -> Heads:
    heads = call.integer("num_heads", 0)
    return _of(call, heads, heads, 6, bool(call.integer("unidirectional", 0)))


def _grouped(call: Call) -> Heads:
    return _of(call, call.integer("num_heads", 0), call.integer("kv_num_heads", 0), 3, causal=True,
               window=max(0, call.integer("local_window_size", -1)))  # fmt: skip


def _projected(call: Call) -> Heads:
    (n, t, _), heads = call.shape(0), call.integer("num_heads", 1)
    wide = call.shape(1)[1] // 3
    query, _, value = call.integers("qkv_hidden_sizes", [wide] * 3) or [wide] * 3
    return Heads(samples=n, queries=t, keys=t, heads=heads, shared=heads, size=query // heads, value=value // heads,
                 causal=bool(call.integer("unidirectional", 0)), past=call.shape(4)[-2] if call.has(4) else 0, cache=4,
                 packed=True)  # fmt: skip


def attended(call: Call) -> list[Shape]:
    """The result, keys and values with those of earlier tokens, and the scores."""
    h = heads_of(call)
    result = (h.samples, h.heads, h.queries, h.value) if h.deep else (h.samples, h.queries, h.heads * h.value)
    kept = [(h.samples, h.shared, h.past + h.keys, size) for size in (h.size, h.value)]
    if call.node.kind == PACKED:
        return [result, (2, *kept[0])]
    return [result, *kept, (h.samples, h.heads, h.queries, h.past + h.keys)]


HEADS: dict[str, Callable[[Call], Heads]] = {
    "Attention": _onnx, "MultiHeadAttention": _multi_head, "GroupQueryAttention": _grouped, PACKED: _projected,
}  # fmt: skip
ATTENDED = dict.fromkeys(HEADS, attended)


# -------------------------------------------------------------------------------------------------------- Einstein sums

LONGEST = 200  # characters of an equation


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """An equation with the sizes of its letters: those that both tensors keep, one keeps, the other keeps, and none.

    order: the places in the first tensor of the result's dimensions, where it is that one turned; else empty
    """

    result: Shape
    together: int = 1
    rows: int = 1
    columns: int = 1
    inner: int = 1
    order: tuple[int, ...] = ()


def parsed(call: Call) -> Sum:
    """The equation of a node. Raises Refusal for one that is not read."""
    equation = call.text("equation", "").replace(" ", "")
    shapes = [call.shape(i) for i in range(len(call))]
    terms, right = _letters(equation, shapes)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise Refusal(f"has the letters {''.join(term)!r} for {show(shape)}")
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) not in (size, 1) and size != 1:
                raise Refusal(f"has the letter {letter!r} for {sizes[letter]} and {size}")
            sizes[letter] = max(sizes[letter], size)
    if not set(right) <= set(sizes):
        raise Refusal(f"has the equation {equation[:60]!r}, whose result has letters of its own")
    first, rest = set(terms[0]), set(chain(*terms[1:]))
    found = {"together": 1, "rows": 1, "columns": 1, "inner": 1}
    for letter, size in sizes.items():
        kept = letter in right
        where = "inner" if not kept else "together" if letter in first & rest else "rows" if letter in first else "columns"
        found[where] *= size
    turned = len(terms) == 1 and sorted(terms[0]) == sorted(right) and len(first) == len(right)
    order = tuple([terms[0].index(letter) for letter in right]) if turned else ()
    return Sum(result=tuple([sizes[letter] for letter in right]), order=order, **found)


def _letters(equation: str, shapes: list[Shape]) -> tuple[list[list[str]], list[str]]:
    """The letters of each tensor and of the result; `...` stands for so many dimensions, counted from the last, "0", "1" ...

    Without an arrow the result has those that occur once, in their order, behind the dimensions of `...`.
    """
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    plain = all(re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", term) for term in (*terms, right))
    if len(terms) != len(shapes) or len(equation) > LONGEST or not plain:
        raise Refusal(f"has the equation {equation[:60]!r}, which is none of {len(shapes)} tensors")
    wide = [max(0, len(shape) - len(term) + 3) if "..." in term else 0 for term, shape in zip(terms, shapes, strict=True)]
    found = [_spelled(term, count) for term, count in zip(terms, wide, strict=True)]
    if arrow:
        return found, _spelled(right, max(wide))
    once = [letter for letter, count in Counter(chain(*found)).items() if count == 1 and letter.isalpha()]
    return found, _spelled("...", max(wide)) + sorted(once)


def _spelled(term: str, count: int) -> list[str]:
    before, _, after = term.partition("...")
    return [*before, *(map(str, range(count - 1, -1, -1)) if "..." in term else ()), *after]
