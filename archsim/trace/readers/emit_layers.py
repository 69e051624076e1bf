"""Nodes with products, windows, recurrences, attention as ops of a trace; what an engine's optimiser writes into a file."""

from __future__ import annotations

import math
from collections.abc import Callable

from archsim.trace.dims import Shape, elements
from archsim.trace.kind import Kind
from archsim.trace.kinds.convolution import AvgPool, Conv2d, ConvTranspose2d, GlobalAvgPool, MaxPool
from archsim.trace.kinds.dense import BiasAdd, Embedding, Experts, Linear, Matmul
from archsim.trace.kinds.general import Gather, Reduce
from archsim.trace.kinds.normalise import LayerNorm
from archsim.trace.kinds.pointwise import Add, Relu, Rotary, Sigmoid, Tanh
from archsim.trace.kinds.sequence import Attention, Gru, Lstm, Recurrent, Rnn
from archsim.trace.kinds.shaping import Slice, Transpose
from archsim.trace.readers.draft import Emitter, Rule
from archsim.trace.readers.layer_shapes import (
    HEADS,
    PACKED,
    Heads,
    SlidingWindow,
    conv_of,
    heads_of,
    parsed,
    recurrent_of,
    transposed_of,
    window_of,
)
from archsim.trace.readers.model import Refusal

RECURRENT: dict[str, type[Recurrent]] = {"LSTM": Lstm, "GRU": Gru, "RNN": Rnn}
ACTIVATIONS: dict[str, Kind] = {"Relu": Relu(), "Sigmoid": Sigmoid(), "Tanh": Tanh()}


def _flat(shape: Shape) -> Shape:
    """[N, C, L] as an image of one row; other shapes as they are."""
    return (*shape[:2], 1, shape[2]) if len(shape) == 3 else shape


def _two(values: tuple[int, ...], missing: int = 1) -> tuple[int, int]:
    """Numbers of a window over one or two dimensions as two."""
    return (missing, values[0]) if len(values) == 1 else (values[0], values[1])


def _sides(window: SlidingWindow) -> tuple[int, int, int, int]:
    (top, left), (bottom, right) = _two(window.before, 0), _two(window.after, 0)
    return (top, left, bottom, right) if (top, left) != (bottom, right) else (top, left)  # type: ignore[return-value]


def _conv(weights: int, bias: int) -> Rule:
    def rule(e: Emitter) -> None:
        window, groups, channels = conv_of(e.call, weights)
        data, made, biased = e.call.shape(), e.shape, e.call.has(bias)
        held = e.tensor()
        if len(data) == 5:  # a sum over depth of convolutions: as many more channels, from a copy of the planes under each window
            deep = (data[0] * made[2], data[1] * window.kernel[0], *data[3:])
            held = e.draft.add(Gather(function="planes"), [held], deep, f"{e.name}/planes")
            data, made, window = deep, (deep[0], channels, *made[3:]), window.last(2)
        elif len(data) > 5:
            raise Refusal(f"is a convolution over {len(data) - 2} dimensions; up to 3 are read")
        kernel, stride, dilation = map(_two, (window.kernel, window.stride, window.dilation))
        kind = Conv2d(kernel=kernel, stride=stride, pad=_sides(window), dilation=dilation, groups=groups, bias=biased)
        held = e.draft.view(held, _flat(data), f"{e.name}/image")
        held = e.draft.add(kind, [held], _flat(made), e.name)
        activation = ACTIVATIONS.get(e.call.text("activation", ""))
        if activation is not None:
            held = e.draft.add(activation, [held], _flat(made), f"{e.name}/{activation.op}")
        e.end(held)

    return rule


def _conv_transpose(e: Emitter) -> None:
    """Over three dimensions each plane makes a window's depth of them, as so many more channels, which are summed in place."""
    window, groups, channels, _ = transposed_of(e.call)
    data, made, deep, biased = e.call.shape(), e.shape, len(e.call.shape()) == 5, e.call.has(2)
    if len(data) > 5:
        raise Refusal(f"is a transposed convolution over {len(data) - 2} dimensions; up to 3 are read")
    image, result = _flat(data), _flat(made)
    if deep:
        window, planes = window.last(2), window.kernel[0]
        image, result = (data[0] * data[2], data[1], *data[3:]), (data[0] * data[2], channels * planes, *made[3:])
    (top, left), stride, kernel, dilation = _two(window.before, 0), *map(_two, (window.stride, window.kernel, window.dilation))
    whole = [(size - 1) * s + d * (k - 1) + 1
             for size, s, k, d in zip(image[2:], stride, kernel, dilation, strict=True)]  # fmt: skip
    bottom, right = whole[0] - top - result[2], whole[1] - left - result[3]
    kind = ConvTranspose2d(kernel=kernel, stride=stride, pad=(top, left, max(0, bottom), max(0, right)), dilation=dilation,
                           groups=groups, bias=biased and not deep, output_pad=(max(0, -bottom), max(0, -right)))  # fmt: skip
    held = e.viewed(0, image, "image")
    held = e.draft.add(kind, [held], result, e.name)
    if deep:
        held = e.draft.add(Gather(function="planes"), [held], made, f"{e.name}/planes")
        held = e.draft.add(BiasAdd(), [held], made, f"{e.name}/bias") if biased else held
    e.end(held)


def _pool(e: Emitter) -> None:
    data, made = e.call.shape(), e.shape
    window = window_of(e.call, None, data[2:])
    if len(data) > 4 or set(window.dilation) != {1}:
        return e.bounded(e.tensor(), each=math.prod(window.kernel))
    words = {"kernel": _two(window.kernel), "stride": _two(window.stride), "pad": _sides(window), "ceil_mode": window.ceil}
    counted = bool(e.call.integer("count_include_pad", 0))
    kind: Kind = MaxPool(**words) if e.node.kind == "MaxPool" else AvgPool(**words, count_include_pad=counted)  # type: ignore[arg-type]
    e.made(kind, _flat(made), e.viewed(0, _flat(data), "image"))


def _global_pool(e: Emitter) -> None:
    data = e.call.shape()
    flat = (*data[:2], 1, math.prod(data[2:])) if len(data) != 4 else data
    held = e.viewed(0, flat, "image")
    kind: Kind = GlobalAvgPool() if "Average" in e.node.kind else Reduce(function="max", axes=(2, 3))
    e.made(kind, (*flat[:2], 1, 1), held)


def _gemm(second: int, bias: int) -> Rule:
    def rule(e: Emitter) -> None:
        (m, n), a, biased = e.shape, e.call.shape(0), e.call.has(bias)
        turned = bool(e.call.integer("transA", 0)), bool(e.call.integer("transB", 0))
        if e.fixed(second) and not e.fixed(0):
            held = e.viewed(0, (m, a[0] if turned[0] else a[1]), "rows")
            return e.made(Linear(bias=biased, weight_bits=e.narrow(second)), (m, n), held)
        if e.fixed(0):
            return e.made(Linear(bias=biased), (n, m), e.viewed(second, (n, a[0] if turned[0] else a[1]), "rows"))
        kind = Matmul(transpose_a=turned[0], transpose_b=turned[1])
        e.made(kind, (m, n), e.tensor(0), e.tensor(second))

    return rule


def _matmul(first: int, second: int) -> Rule:
    def rule(e: Emitter) -> None:
        a, b, bias = e.call.shape(first), e.call.shape(second), bool(e.call.attribute("bias", 0))
        turned = bool(e.call.integer("transA", 0)), bool(e.call.integer("transB", 0))
        a, b = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
        inner = a[-2] if turned[0] else a[-1]
        m, n = a[-1] if turned[0] else a[-2], b[-2] if turned[1] else b[-1]
        if e.fixed(second) and not e.fixed(first):
            return _weighted(e, e.tensor(first), (a, b), (m, inner, n), Linear(bias=bias, weight_bits=e.narrow(second)))
        if e.fixed(first):  # weights from the left: the same product turned round
            rows = elements(b) // inner
            if elements(a) != m * inner:
                return e.bounded(e.tensor(second), each=2 * inner)
            return e.made(Linear(bias=bias), (rows, m), e.viewed(second, (rows, inner), "rows"))
        _two_tensors(e, (first, second), (a, b), (m, inner, n), turned)

    return rule


def _weighted(e: Emitter, held: str, shapes: tuple[Shape, Shape], mkn: tuple[int, int, int], kind: Linear) -> None:
    """A product with weights: a linear layer, or as many beside each other as the weights have leading dimensions."""
    (a, b), (m, k, n) = shapes, mkn
    if math.prod(b[:-2]) == 1:
        made = e.shape if len(e.shape) > 1 and e.shape[-1] == n else (elements(a) // k, n)
        return e.made(kind, made, e.draft.view(held, (*made[:-1], k), f"{e.name}/rows"))
    groups = math.prod(b[:-2])
    if a[:-2] != b[:-2] and math.prod(a[:-2]) not in (groups, 1) and elements(a) % (groups * k):
        return e.bounded(held, each=2 * k)
    if elements(a) < groups * m * k:  # the same rows for all of them
        return e.made(kind, (m, groups * n), e.draft.view(held, (m, k), f"{e.name}/rows"))
    rows = elements(a) // (groups * k)
    held = e.draft.view(held, (rows, groups * k, 1, 1), f"{e.name}/groups")
    e.made(Conv2d(kernel=(1, 1), groups=groups, bias=kind.bias), (rows, groups * n, 1, 1), held)


def _two_tensors(
    e: Emitter, at: tuple[int, int], shapes: tuple[Shape, Shape], mkn: tuple[int, int, int], turned: tuple[bool, bool]
) -> None:
    """A product of two tensors that both depend on the model's inputs."""
    (a, b), (m, k, n) = shapes, mkn
    first, second = (e.tensor(i) for i in at)
    lead = math.prod(e.shape) // (m * n)
    if math.prod(b[:-2]) == 1 and math.prod(a[:-2]) > 1 and not turned[0]:
        a, b, lead, m = (elements(a) // k, k), b[-2:], 1, elements(a) // k
    shapes = [(*shape[:-2], *shape[-2:]) for shape in (a, b)]  # type: ignore[assignment]
    parts = []
    for name, tensor, shape in (("a", first, shapes[0]), ("b", second, shapes[1])):
        whole = (lead, *shape[-2:]) if lead > 1 or len(shape) > 2 else tuple(shape[-2:])
        if math.prod(shape[:-2]) < lead:
            tensor = e.draft.add(Gather(function="expand"), [tensor], whole, f"{e.name}/{name}.expanded")
        parts.append(
            tensor if e.draft.shapes[tensor] == tuple(shape) == whole else e.draft.view(tensor, whole, f"{e.name}/{name}")
        )
    own = [e.draft.shapes[part] for part in parts]
    same = (
        len(e.call.shape(at[0])) == len(e.call.shape(at[1])) == len(e.shape)
        and e.call.shape(at[0])[:-2] == e.call.shape(at[1])[:-2]
    )
    if same:
        parts, made = [first, second], e.shape
    else:
        made = (*own[0][:-2], m, n)
    e.made(Matmul(transpose_a=turned[0], transpose_b=turned[1]), made, *parts)


def _einsum(e: Emitter) -> None:
    found, names = parsed(e.call), e.moving()
    a, b = (found.together, found.rows, found.inner), (found.together, found.inner, found.columns)
    sizes = [elements(e.call.shape(i)) for i in range(len(e.node.inputs))]
    if len(names) == 2 and sizes == [math.prod(a), math.prod(b)]:
        parts = [e.draft.view(name, shape, f"{e.name}/{part}") for name, shape, part in zip(names, (a, b), "ab", strict=True)]
        return e.made(Matmul(), (found.together, found.rows, found.columns), *parts)
    if len(names) == 1 and sizes == [math.prod(a), math.prod(b)]:
        k, groups = found.inner, found.together
        rows, columns = (found.rows, found.columns) if e.fixed(1) else (found.columns, found.rows)
        held = e.draft.view(names[0], (rows, groups * k, 1, 1), f"{e.name}/groups")
        kind = Conv2d(kernel=(1, 1), groups=groups, bias=False)
        if groups == 1:
            return e.made(Linear(bias=False), (rows, columns), e.draft.view(names[0], (rows, k), f"{e.name}/rows"))
        return e.made(kind, (rows, groups * columns, 1, 1), held)
    if found.order:
        return e.made(Transpose(order=found.order), e.shape, *names)
    e.bounded(*names, each=2 * found.inner)


def _recurrent(e: Emitter) -> None:
    hidden, ways = recurrent_of(e.call)
    steps, samples, _ = e.call.shape()
    if e.call.integer("layout", 0):
        steps, samples = samples, steps
    kind = RECURRENT[e.node.kind](
        hidden=hidden, layers=e.call.integer("layers", 1), biases=e.call.integer("biases", 2 if e.call.has(3) else 0),
        bidirectional=ways == 2,
    )  # fmt: skip
    held = e.viewed(0, (steps, samples, e.call.shape()[2]), "steps")
    made = e.draft.add(kind, [held], (steps, samples, ways * hidden), e.name)
    for output, name in enumerate(e.node.outputs):
        if not name:
            continue
        if output == 0:
            e.end(made)
        elif e.graph.readers(name) or e.graph.ends(name):
            last = e.draft.add(Gather(function="last step"), [made], (1, samples, ways * hidden), f"{e.name}/last{output}")
            e.end(last, output)


def _rotary(e: Emitter) -> None:
    kind, shape = Rotary(width=e.call.integer("width", 2)), e.shape
    flat = shape if len(shape) == 3 else (shape[0], shape[-2], elements(shape) // (shape[0] * shape[-2]))
    e.made(kind, flat, e.viewed(0, flat))


LAYERS: dict[str, Callable[[Emitter], None]] = {
    "Conv": _conv(1, 2), "FusedConv": _conv(1, 2), "ConvInteger": _conv(1, 4), "QLinearConv": _conv(3, 8),
    "ConvTranspose": _conv_transpose, "MaxPool": _pool, "AveragePool": _pool, "LpPool": _pool,
    "GlobalAveragePool": _global_pool, "GlobalMaxPool": _global_pool, "GlobalLpPool": _global_pool,
    "QLinearGlobalAveragePool": _global_pool, "QLinearAveragePool": _pool,
    "Gemm": _gemm(1, 2), "QGemm": _gemm(3, 6), "FusedMatMul": _matmul(0, 1),
    "MatMul": _matmul(0, 1), "MatMulInteger": _matmul(0, 1), "QLinearMatMul": _matmul(0, 3), "Einsum": _einsum,
    "LSTM": _recurrent, "GRU": _recurrent, "RNN": _recurrent,
    "Rotary": _rotary,
}  # fmt: skip


# ------------------------------------------------------------------------------------- operators that stand for several


def attention(e: Emitter) -> None:
    """Products and softmax as one op, its heads side by side; a cache grows in place where nothing reads what it becomes."""
    h = heads_of(e.call)
    if e.node.kind == PACKED:
        projected = (h.samples, h.queries, sum(h.widths))
        inputs = [e.draft.add(Linear(bias=e.call.has(2)), [e.tensor()], projected, f"{e.name}/qkv")]
    elif h.packed:
        inputs = [e.viewed(0, (h.samples, h.queries, sum(h.widths)), "qkv")]
    else:
        rows = (h.queries, h.keys, h.keys)
        places = [i if e.call.has(i) else 1 for i in range(3)]
        inputs = [e.viewed(at, (h.samples, count, width), part) if elements(e.call.shape(at)) == h.samples * count * width
                  else e.tensor(at) for at, count, width, part in zip(places, rows, h.widths, "qkv", strict=True)]  # fmt: skip
    if h.size != h.value or (len(inputs) == 3 and e.draft.shapes[inputs[1]][-1] != h.widths[1]):
        return _unlike(e, h, inputs)
    if e.node.kind == "MultiHeadAttention" and e.call.has(3):
        inputs = [e.draft.add(BiasAdd(axis=-1), [each], e.draft.shapes[each], f"{e.name}/bias") for each in inputs]
    if h.past:
        inputs = [*(_apart(e, inputs[0], h) if len(inputs) == 1 else inputs), *_cached(e, h)]
    kind = Attention(heads=h.heads, kv_heads=0 if h.shared == h.heads else h.shared, window=h.window if _masks(h) else 0,
                     causal=_masks(h))  # fmt: skip
    e.made(kind, (h.samples, h.queries, h.heads * h.size), *inputs)
    if e.node.kind == "GroupQueryAttention":
        for name in filter(None, e.node.outputs[1:3]):
            if not e.graph.readers(name):
                e.draft.alias(name, e.draft.name_of(e.node.outputs[0]))


def _masks(h: Heads) -> bool:
    return h.causal and h.queries <= h.past + h.keys and (h.queries > 1 or h.window > 0)


def _apart(e: Emitter, packed: str, h: Heads) -> list[str]:
    """Queries, keys and values of one tensor."""
    made, start = [], 0
    for part, width in zip("qkv", h.widths, strict=True):
        kind = Slice(axis=2, start=start, stop=start + width, whole=True)
        made.append(e.draft.add(kind, [packed], (h.samples, h.queries, width), f"{e.name}/{part}"))
        start += width
    return made


def _cached(e: Emitter, h: Heads) -> list[str]:
    """Keys and values of earlier tokens; in Microsoft's Attention they are halves of one tensor."""
    shape = (h.samples, h.past, h.widths[1])
    if e.node.kind != PACKED:
        return [e.viewed(at, shape, part) for at, part in ((h.cache, "keys"), (h.cache + 1, "values"))]
    both = e.viewed(h.cache, (2 * h.samples, *shape[1:]), "cache")
    return [e.draft.add(Slice(axis=0, start=start, stop=start + h.samples, whole=True), [both], shape, f"{e.name}/{part}")
            for part, start in (("keys", 0), ("values", h.samples))]  # fmt: skip


def _unlike(e: Emitter, h: Heads, inputs: list[str]) -> None:
    """Values of another size than keys: the two products bound it with their work."""
    work = 2 * h.heads * h.samples * h.queries * (h.past + h.keys) * (h.size + h.value)
    e.bounded(*inputs, each=work / elements(e.shape))


def _narrow_product(e: Emitter) -> None:
    """A product with weights of few bits, packed into bytes; the scales of their blocks are left out."""
    kind = Linear(bias=e.call.has(5), weight_bits=e.call.integer("bits", 4))
    rows = (*e.shape[:-1], e.call.integer("K", 1))
    e.made(kind, e.shape, e.viewed(0, rows, "rows"))


def _experts(e: Emitter) -> None:
    """Experts with two projections, or with three, two of which may lie in one tensor."""
    tokens, total = e.call.shape(), e.call.shape(1)[-1]
    hidden = elements(e.call.shape(4)) // (total * tokens[-1])
    gated = e.call.has(6) or elements(e.call.shape(2)) == 2 * elements(e.call.shape(4))
    kind = Experts(total=total, top=e.call.integer("k", 1), hidden=hidden, gated=gated, bias=e.call.has(3) or e.call.has(5))
    scores = e.viewed(1, (*tokens[:-1], total), "scores")
    e.add(kind, e.tensor(), scores)


def _embedded(e: Emitter) -> None:
    """Words, their segments and places, summed and normalised; each has a table."""
    tables = [(place, e.call.shape(place)) for place in (2, 3, 4) if e.call.has(place)]
    parts = [e.draft.add(Embedding(vocabulary=table[0], features=table[1]), [e.tensor(1 if place == 4 else 0)], e.shape,
                         f"{e.name}/table{place}") for place, table in tables]  # fmt: skip
    e.add(LayerNorm(), e.draft.add(Add(), parts, e.shape, f"{e.name}/sum"))


FUSED: dict[str, Callable[[Emitter], None]] = {
    **dict.fromkeys(HEADS, attention), "MatMulNBits": _narrow_product, "MoE": _experts,
    "EmbedLayerNormalization": _embedded,
}  # fmt: skip
