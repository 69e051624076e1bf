"""Nodes of attention as ops of a trace."""

from __future__ import annotations

from archsim.trace.dims import elements
from archsim.trace.kinds.attention import Attention
from archsim.trace.kinds.dense import BiasAdd, Linear
from archsim.trace.kinds.shaping import Slice
from archsim.trace.readers.emitter import Emitter
from archsim.trace.readers.heads import PACKED, Heads, heads_of


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
