"""Device memory of a served model by part, and the largest batch and context that fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache

from archsim.base.record import kept
from archsim.estimation.memory import largest
from archsim.generation.plan import CACHE_BYTES, WEIGHTS, ServingPlan
from archsim.generation.step import stages_of, step_tokens
from archsim.trace.huggingface.graph import graph_of
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.kinds.dense import Experts
from archsim.trace.trace import BoundOp

WORD = 4  # B of a score of a word, which engines widen to fp32
HALF = 2  # B of an activation


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Memory of the fullest device by part [B]. `kv_per_layer` is the cache of the largest layer, a part of `kv_cache`."""

    weights: float
    kv_cache: float
    kv_per_layer: float
    activations: float
    compute_buffers: float
    reserved: float

    @property
    def total(self) -> float:
        """All parts [B]."""
        return self.weights + self.kv_cache + self.activations + self.compute_buffers + self.reserved

    @property
    def parts(self) -> dict[str, float]:
        """The parts by name [B], with `kv_per_layer`, which is not one of its own."""
        return {**asdict(self), "total": self.total}


def memory_of(plan: ServingPlan, batch: int, context: int) -> ServingMemory:
    """Memory of `batch` sequences of `context` tokens on the fullest device.

    weights         = stored values x their bytes (`WeightFormat`)
    kv_cache        = sequences x those of one (`cache_of`)
    activations     = tokens of the largest step x the widest values that are alive at once x 2 B
    compute_buffers = scores of words in fp32, for each sequence of a step
    """
    tokens = step_tokens(plan, context)
    engine, model = plan.stack.serving, plan.model
    wide = max(model.hidden * (2 + model.gated) / plan.tensor, (model.heads + 2 * model.kv_heads) * model.head_size / plan.tensor)
    return ServingMemory(
        weights=weights_of(plan), kv_cache=batch * cache_of(plan, context),
        kv_per_layer=batch * max(cache_of_layers(plan, context)) / _sharing(plan),
        activations=tokens * HALF * (2.0 * model.width + wide),
        compute_buffers=float(min(batch, engine.sequences)) * model.vocabulary * WORD * 2.0 / plan.tensor,
        reserved=plan.stack.reserved,
    )  # fmt: skip


def blocks(tokens: int, block: int) -> int:
    """Tokens in whole blocks.

    >>> blocks(17, 16)
    32
    """
    return -(-tokens // block) * block


@kept(65536)
def cache_of(plan: ServingPlan, tokens: int) -> float:
    """Bytes that the fullest device keeps of one sequence: its share of the heads, or the latent vectors, which all keep."""
    layers = cache_of_layers(plan, blocks(tokens, plan.stack.serving.block))
    return max(sum(layers[first:last]) for first, last in stages_of(plan.model, plan.stages)) / _sharing(plan)


def cache_of_layers(plan: ServingPlan, tokens: int) -> list[float]:
    """Bytes that each layer keeps of one sequence, in whole blocks: of all its tokens, or of those in its window."""
    model, block = plan.model, plan.stack.serving.block
    return [blocks(min(tokens, model.window_of(layer) or tokens), block) * model.cached_values(layer) * CACHE_BYTES[plan.cache]
            for layer in range(model.layers)]  # fmt: skip


def _sharing(plan: ServingPlan) -> int:
    """Devices that each keep a part of a layer's cache."""
    most = max(plan.model.heads_of_keys(layer) for layer in range(plan.model.layers))
    return 1 if plan.model.latent is not None else min(plan.tensor, most)


@kept(256)
def weights_of(plan: ServingPlan) -> float:
    """Bytes of the weights on the fullest device."""
    width, spread = WEIGHTS[plan.weights], max(plan.tensor, plan.experts)
    return sum(op.parameters * width.bytes_of(op, plan.model) / (spread if isinstance(op.kind, Experts) else plan.tensor)
               for op in _learned(plan.model)) / plan.stages  # fmt: skip


def _learned(model: TransformerModel) -> list[BoundOp]:
    """The ops of a model that have learned values."""
    trace = graph_of(model)
    return [op for op in trace.bind(**dict.fromkeys(trace.free_symbols, 1)).ops if op.parameters]


@lru_cache(maxsize=64)
def parameters_of(model: TransformerModel) -> tuple[float, float]:
    """Learned values of a model, and those that a token meets."""
    found, chosen = _learned(model), model.experts
    idle = 1.0 - chosen.top / chosen.experts if chosen else 0.0
    total = float(sum(op.parameters for op in found))
    return total, total - idle * sum(op.parameters for op in found if isinstance(op.kind, Experts))


def room(plan: ServingPlan) -> float:
    """What the engine may take of each device [B]."""
    return plan.stack.serving.memory_share * float(plan.spec.device.memory.capacity)


def largest_batch(plan: ServingPlan, context: int) -> int:
    """Most sequences of `context` tokens that fit, 0 if none does; not more than the engine runs at once."""
    return _most(lambda batch: memory_of(plan, batch, context).total, room(plan), plan.stack.serving.sequences)


def largest_context(plan: ServingPlan, batch: int) -> int:
    """Most tokens of each of `batch` sequences that fit, 0 if none does; not more than the model takes."""
    return _most(lambda tokens: memory_of(plan, batch, tokens).total, room(plan), plan.model.context)


def _most(need: Callable[[int], float], room: float, limit: int) -> int:
    return largest(need, room, (1, need(1)), limit, limit)
