"""Heads of attention as an operator, of ONNX and of Microsoft's domain: where they stand, and where cached keys lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from archsim.trace.dims import Shape, elements, show
from archsim.trace.readers.call import Call, Refusal

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
