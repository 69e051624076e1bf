"""Attention: two products around a softmax, in one kernel that never writes the scores to memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from archsim.lower.columns import GpuColumns, Role
from archsim.lower.context import Context, element_wise, plan
from archsim.lower.fusion import quantised
from archsim.lower.gemm import THIN
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.kinds.sequence import SOFTMAX_FLOP, Attention, LatentAttention
from archsim.trace.trace import BoundOp

RECOMPUTED = 2.5  # products of the backward pass over those of the forward pass: five instead of two (Dao 2023, section 4.1)
BLOCK = 128  # queries and keys of a block, which is computed whole or skipped whole under a mask (Dao 2023, section 3.1)


def attention(op: BoundOp, context: Context) -> Plan:
    """Fused attention (Dao et al. 2022, algorithm 1): queries [N, T, heads d], keys and values [N, S, kv_heads d].

    Where the stack keeps a cache of keys and values, kernels store the new ones in it first. On a CPU the exponentials are a loop
    of their own.
    """
    kind = op.kind
    assert isinstance(kind, Attention)
    queries, keys, _ = kind.parts(op.input_shapes)
    new = 2.0 * prod((keys[0], min(queries[1], keys[1]), keys[2]))
    rows = (prod(queries) + new) / queries[-1]
    kernels = [*quantised(context, rows, queries[-1], "quantise_attention"), _fused(op, context, kind)]
    return _fused_plan(op, context, kernels, new, _over_cache(queries[1], keys[1]))


def _fused_plan(op: BoundOp, context: Context, kernels: list[Kernel], new: float, cached: bool) -> Plan:
    """The kernels of fused attention, after those that store its `new` keys and values, where the engine has any.

    cached: most keys were stored before
    """
    count = context.stack.attention.cache_kernels[cached]
    if count and op.phase == "forward":
        moved = new * context.result / count
        kernels.insert(0, element_wise("store_keys", Role.STORE, moved, moved, element=context.vector, repeat=count))
    if context.device_kind == "cpu":
        kernels.append(_softmax(op))
    return plan(op, context, Option(algorithm="fused", kernels=tuple(kernels)))


def _softmax(op: BoundOp) -> Kernel:
    """The exponentials of a CPU, between the products, over scores that stay in its cache: no memory traffic."""
    flop = float(op.flop - 2 * op.macs)
    return replace(element_wise("softmax", Role.SOFTMAX, 0.0, 0.0, flop=flop), items=max(1.0, flop / SOFTMAX_FLOP))


def _fused(op: BoundOp, context: Context, kind: Attention) -> Kernel:
    """The fused kernel: a CTA holds a tile of queries and loops over the keys, block by block.

    A head is two products of one size: scores [m, k] = queries [m, n] x keys [n, k], results [m, n] = scores [m, k] x values
    [k, n]; m queries, k keys, n features. It is described as one product of m n k points with

        work = 2 times share        multiply-accumulates for each point
        exps = times share          exponentials for each of the m k scores

    times: 1 forward, RECOMPUTED backward; share: `computed_share`. Scores stay in registers, so that a tile loads keys and
    values alone: operand_a = 0, operand_b = work x size of a value [B]. Under a window a tile loops over the keys of its own
    queries only. Heads that share keys are rows of
    one product. Under a mask the last queries of a head see all of its keys, 1 / share of what a tile
    has on average.
    """
    queries, keys, _ = kind.parts(op.input_shapes)
    shared = kind.kv_heads or kind.heads
    size, group = queries[2] // kind.heads, kind.heads // shared
    times = 1.0 if op.phase == "forward" else RECOMPUTED
    cached = _over_cache(queries[1], keys[1])
    menu = context.first_menu("attention_cached" if cached else "attention", "attention")
    block = max(BLOCK, _step(context, menu, size)) if kind.window else BLOCK
    reached = min(keys[1], kind.window + block) if kind.window else keys[1]
    share = computed_share(queries[1], keys[1], kind, block) * keys[1] / reached
    wider = times * context.result / context.element  # queries and results, where keys are kept in one byte
    seen = (keys[0], min(keys[1], kind.window + queries[1] - 1) if kind.window else keys[1], keys[2])  # by any of the queries
    pairs = times * context.bytes(seen, seen) * _kept(context)
    return Kernel(
        name="attention", role=Role.ATTENTION, efficiency=context.efficiency("attention"), menu=menu,
        m=queries[1] * group, n=size, k=reached, count=queries[0] * shared, work=2.0 * times * share,
        operand_a=0.0, operand_b=2.0 * times * share * context.element * _kept(context), a_bytes=pairs,
        b_bytes=wider * context.bytes(queries), c_bytes=wider * context.bytes(op.shape),
        flop=times * kind.flop(op.input_shapes, op.shape),
        items=max(1.0, pairs / context.vector), dense=1,
        exps=times * share,
        gpu=GpuColumns(longest=1.0 / share),
    )  # fmt: skip


def latent(op: BoundOp, context: Context) -> Plan:
    """Attention to latent vectors: as `_fused`, of one head of keys whose tile all heads of queries share, and which is loaded
    once for scores and results alike. Over cached vectors the stack's menu `attention_latent` comes before others.

        m = queries x heads        n = d        k = vectors        work = (d + rank) / d x share
    """
    kind = op.kind
    assert isinstance(kind, LatentAttention)
    queries, cache = op.input_shapes
    share = kind.scores(op.input_shapes) / (queries[0] * kind.heads * queries[1] * cache[1])
    new = float(prod((cache[0], min(queries[1], cache[1]), cache[2])))
    cached = _over_cache(queries[1], cache[1])
    menu = context.first_menu(*(("attention_latent", "attention_cached") if cached else ()), "attention")
    work, pairs = (1.0 + kind.rank / cache[2]) * share, context.bytes(cache) * _kept(context)
    kernels = [Kernel(
        name="attention", role=Role.ATTENTION, efficiency=context.efficiency("attention"), menu=menu,
        m=queries[1] * kind.heads, n=cache[2], k=cache[1], count=queries[0], work=work, operand_a=0.0,
        operand_b=share * context.element * _kept(context), a_bytes=pairs, b_bytes=context.bytes(queries),
        c_bytes=context.bytes(op.shape),
        flop=float(op.flop), items=max(1.0, pairs / context.vector), dense=1,
        exps=share,
    )]  # fmt: skip
    return _fused_plan(op, context, kernels, new, cached)


def _kept(context: Context) -> float:
    """Bytes of a cached value over those of one that is multiplied."""
    return context.stored.cache_bytes / context.element if context.stored.cache_bytes else 1.0


def _over_cache(queries: int, keys: int) -> bool:
    """Whether a few new queries meet the keys of earlier ones (decoding)."""
    return queries <= THIN and queries < keys


def _step(context: Context, menu: str, features: int) -> int:
    """Keys of a step of the tile that holds whole heads of so many features; 1 where the library has no such tile."""
    tiles = context.stack.menus[menu].on(context.architecture) if menu in context.stack.menus else ()
    return min(((tile.n, tile.k) for tile in tiles if tile.n >= features), default=(0, 1))[1]


def computed_share(queries: int, keys: int, kind: Attention, block: int = BLOCK) -> float:
    """Share of the query-key pairs that are computed: those in blocks that the mask does not skip whole.

    share = (seen + cut / 2) / (queries keys), at most 1
    cut = queries (BLOCK - 1) + outside (2 block - BLOCK)

    block: keys of a step, BLOCK or more: BLOCK queries under a window see window + block keys, of steps that begin at multiples
    seen: pairs that the mask leaves; cut: pairs of the blocks through which one of its edges passes, on average half of them
    computed in vain, along the diagonal for every query, along the start of the window for the `outside` queries whose window
    leaves keys out. Holds for whole heads of one sample.

    >>> round(computed_share(1024, 1024, Attention(heads=1, causal=True)), 4)
    0.5625
    >>> computed_share(1024, 1024, Attention(heads=1))
    1.0
    >>> [round(4096 * computed_share(4096, 4096, Attention(heads=1, causal=True, window=128), of)) for of in (128, 256)]
    [252, 376]
    """
    if not kind.causal:
        return 1.0
    cut = queries * (BLOCK - 1) + (max(0, min(queries, keys - kind.window)) * (2 * block - BLOCK) if kind.window else 0)
    return min(1.0, (kind.seen(queries, keys) + 0.5 * cut) / (queries * keys))
