"""Operators that stand for several, as ops of a trace: attention, and what an engine's optimiser writes into a file."""

from __future__ import annotations

from collections.abc import Callable

from archsim.trace.dims import elements
from archsim.trace.kinds.attention import Attention
from archsim.trace.kinds.dense import BiasAdd, Embedding, Linear
from archsim.trace.kinds.experts import Experts
from archsim.trace.kinds.normalise import LayerNorm
from archsim.trace.kinds.pointwise import Add
from archsim.trace.kinds.shaping import Slice
from archsim.trace.readers.emitter import Emitter
from archsim.trace.readers.heads import HEADS, PACKED, Heads, heads_of


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
    e.end(e.draft.add(kind, inputs, (h.samples, h.queries, h.heads * h.size), e.name))
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
    e.end(e.draft.add(kind, [e.viewed(0, rows, "rows")], e.shape, e.name))


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
