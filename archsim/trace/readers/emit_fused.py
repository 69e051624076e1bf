"""Operators of Microsoft's domain that stand for several, as ops of a trace: what its optimiser writes into a file."""

from __future__ import annotations

from collections.abc import Callable

from archsim.trace.dims import elements
from archsim.trace.kinds.dense import Embedding, Linear
from archsim.trace.kinds.experts import Experts
from archsim.trace.kinds.normalise import LayerNorm
from archsim.trace.kinds.pointwise import Add
from archsim.trace.readers.emitter import Emitter


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
    "MatMulNBits": _narrow_product, "MoE": _experts, "EmbedLayerNormalization": _embedded,
}  # fmt: skip
