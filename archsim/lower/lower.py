"""The table from op kinds to lowering rules, and the lowering of a whole network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from math import inf, prod

import numpy as np

from archsim.base.errors import Unsupported, refuse
from archsim.base.record import ByIdentity, by_key
from archsim.device.device import PRECISION_BYTES
from archsim.lower import conv, gemm, pointwise
from archsim.lower.context import AS_MULTIPLIED, Context, Stored
from archsim.lower.fusion import Fused, Stages, fusion_of
from archsim.lower.kernel import GpuKernels, Index, Kernels, Plan, pack_cpu, pack_gpu, pack_tpu
from archsim.lower.layer import untransposed
from archsim.lower.processor import on_cpu, rewriting, runtime_of
from archsim.stack.stack import NEVER_AGAIN, Stack
from archsim.trace.kind import FORWARD
from archsim.trace.trace import BoundOp

UNFUSED = ("own", "none")  # rules without chains
# What a CPU does with each sum of int32 behind a product of int8: made a float, scaled, a bias added, the activation, scaled,
# rounded, narrowed twice (ncnn, src/layer/arm/convolution_arm.cpp; gemmlowp's output stages take as many). Counted, recalled.
REQUANTISED = 8.0
TENSOR_PRECISIONS = ("tf32", "fp16", "bf16", "fp8", "int8")

CHANNELS = {"linear": -1, "conv2d": 1}  # the axis of a result along which products of one input are joined

UNCACHED = 1e9  # B of a run of which no cache of today has anything left. A choice, not a fit.

Rule = Callable[[BoundOp, Context], Plan | None]


def _later(name: str) -> Rule:
    """A rule for attention, whose module is imported when a network first needs it."""

    def rule(op: BoundOp, context: Context) -> Plan | None:
        from archsim.lower import attention

        found: Rule = getattr(attention, name)
        return found(op, context)

    return rule


# What has no row here is lowered to the passes of its stack over its tensors.
RULES: dict[str, Rule] = {
    "conv2d": conv.conv2d,
    "conv_transpose2d": conv.conv_transpose2d,
    "linear": gemm.linear,
    "matmul": gemm.matmul,
    "attention": _later("attention"),
    "latent_attention": _later("latent"),
    "experts": gemm.experts,
    "reshape": pointwise.view,
    "dropout": pointwise.dropout,
    "concat": pointwise.concat,
    **dict.fromkeys(("embedding", "gather", "scatter"), pointwise.gathered),
    "slice": pointwise.part,
    "quantise": pointwise.quantise,
    **dict.fromkeys(("rnn", "gru", "lstm"), gemm.sequence),
    "lstm_cell": gemm.lstm_cell,
    "update": pointwise.update,
    "traffic": pointwise.traffic,
    "stated": pointwise.traffic,
    "collective": pointwise.traffic,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A network as kernels. `plan_of[i]` is the plan of op i in `kernels`, -1 for an op that launches nothing."""

    ops: tuple[BoundOp, ...]
    kernels: Kernels
    plan_of: Index
    into: Mapping[str, str] = field(default_factory=dict)  # fused op = the op whose kernel computes it too


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """What a run leaves to the next one, and an op to those behind it.

    run_bytes: what a run touches, all of which comes again in the next [B]; infinite: more than any cache, or not known
    short_lived: whether the memory of a result is used for others once it was read
    """

    run_bytes: float = inf
    short_lived: bool = False


NOTHING_CACHED = CacheState()


def cache_state(ops: Sequence[BoundOp], stack: Stack, training: bool, element: float) -> CacheState:
    """What the ops of a network, run again and again at inference, leave in caches; nothing of training, or of one op alone.

    run_bytes = (parameters + results) element        results = twice the largest, or all where each op keeps its own
    """
    if stack.operand_sets or len(ops) < 2:
        return NOTHING_CACHED
    if training:
        return NOTHING_CACHED
    kept = stack.activations == "kept"
    sizes = [prod(op.shape) for op in ops]
    touched = sum(op.stored(element) for op in ops if op.phase == "forward") + (sum(sizes) if kept else 2 * max(sizes)) * element
    return CacheState(run_bytes=touched if touched < UNCACHED else inf, short_lived=not kept)


def lower(
    ops: Sequence[BoundOp], stack: Stack, device_kind: str, precision: str, training: bool, tensor: bool | None = None,
    architecture: str = "", narrowed: frozenset[str] | None = None, lengths: tuple[int, ...] = (), stored: Stored = AS_MULTIPLIED,
    halves: bool = False, cache: CacheState | None = None,
) -> Lowered:  # fmt: skip
    """The kernels of a network's ops on a stack; equal layers share one plan.

    `lengths`: how many ops each network has, where `ops` are those of several, one behind the other; names hold inside each.

    `tensor`: whether the device multiplies this precision on tensor cores; None: on a GPU, if it is a precision of theirs.
    `architecture` selects kernels that a library has for some GPUs only. `narrowed`: the op kinds whose products may have this
    precision, or be fp32 where that is faster, those of others being fp32; None: all have it. `stored`: formats of weights and of
    cached values in memory. `halves`: a CPU on which the stack computes fp16 in lanes of 16 bit. `cache`: what a run
    leaves to the next, where `ops` are a part of it; None: what `cache_state` says of them.

    Raises Unsupported for a stack of the other kind of device or of other architectures, an unknown precision, or an op without a
    rule.
    """
    if stack.kind not in ("any", device_kind):
        raise Unsupported(f"stack {stack.id} is for a {stack.kind}, not a {device_kind}; `archsim list stacks` prints others")
    if stack.architectures and architecture and architecture not in stack.architectures:
        runs = ", ".join(stack.architectures)
        problem = f"its kernels run on {runs}, not on {architecture}; `archsim list stacks` prints others"
        raise Unsupported(f"stack {stack.id}: {problem}")
    if precision not in PRECISION_BYTES:
        raise Unsupported(f"precision {precision!r} is not one of {', '.join(PRECISION_BYTES)}")
    on_tensor = device_kind == "gpu" and precision in TENSOR_PRECISIONS if tensor is None else tensor
    network, library = ByIdentity(tuple(ops)), ByIdentity(stack)
    element = PRECISION_BYTES[precision]
    return _lowered(network, library, device_kind, element, training, on_tensor, architecture, narrowed, lengths or (len(ops),),
                    stored, halves, cache)  # fmt: skip


@lru_cache(maxsize=128)
def _lowered(
    network: ByIdentity[tuple[BoundOp, ...]], library: ByIdentity[Stack], device_kind: str, element: int, training: bool,
    tensor: bool, architecture: str, narrowed: frozenset[str] | None, lengths: tuple[int, ...], stored: Stored,
    halves: bool, whole: CacheState | None,
) -> Lowered:  # fmt: skip
    ops, stack = network.it, library.it
    context = Context(stack=stack, device_kind=device_kind, element=element, training=training, tensor=tensor,
                      architecture=architecture, stored=stored, halves=halves)  # fmt: skip
    ends = tuple(accumulate(lengths))
    networks = [ops[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    plans: list[Plan] = []
    seen: dict[object, int] = {}
    plan_of, planned, states = [], [], []
    into: dict[str, str] = {}
    for each in networks:
        staged = _stages(each, context)
        fusion = fusion_of(each, stack, training)
        cache = NOTHING_CACHED if device_kind != "gpu" else whole or cache_state(each, stack, training, element)
        each, side = horizontally_fused(each, stack, training)
        own: dict[object, Plan | None] = {}  # equal ops share one
        alone = [op for op in each if op.name not in staged.into and op.name not in staged.plans]
        for op in alone:
            if op.name not in fusion and op.signature not in own:
                own[op.signature] = _own_plan(op, context, narrowed)
        fused = _fused(alone, context, {op.name: own.get(op.signature) for op in alone})
        elsewhere = {**side, **fusion, **fused.into, **staged.into}
        into |= elsewhere
        for op in each:
            if op.name in elsewhere:
                plan_of.append(-1)
                continue
            joined, stage = fused.joined.get(op.name), staged.plans.get(op.name)
            sums = prod(op.shape) if element == 1 and device_kind == "cpu" and op.kind.op in ("conv2d", "linear") else 0.0
            kind = (op.signature, joined, stage, cache)
            if kind not in seen:
                plan = own[op.signature] if stage is None else stage
                seen[kind] = len(plans) if plan is not None else -1
                if plan is not None:
                    plan = rewriting(plan, REQUANTISED * sums)
                    plans.append(plan if joined is None else joined.added_to(plan))
                    planned.append(op)
                    states.append(cache)
            plan_of.append(seen[kind])
    if not plans:
        raise Unsupported("the network has no op that takes time")
    kernels = replace(_packed(plans, stack, device_kind, architecture), ops=tuple(planned))
    if any(cache is not NOTHING_CACHED for cache in states):
        columns = np.array([(cache.run_bytes, float(cache.short_lived)) for cache in states])
        run_bytes, short_lived = columns[kernels.nest.plan_of].T
        kernels = replace(kernels, run_bytes=run_bytes, short_lived=short_lived)
    if stack.operand_sets:
        kernels = _in_rounds(kernels, stack.operand_sets)
    return Lowered(ops=ops, kernels=kernels, plan_of=np.array(plan_of, dtype=np.intp), into=into)


def _in_rounds(kernels: Kernels, sets: int) -> Kernels:
    """The kernels of a loop through `sets` sets of operands, whose results are freed and allocated again at one place.

    So many that none comes again are no loop: other kernels ran before, the last of which wrote the activations.
    """
    plan, reads, writes = kernels.nest.plan_of, kernels.read_bytes, kernels.write_bytes.copy()
    np.maximum.at(writes, plan, kernels.c_bytes)  # sums of operands of one byte have two
    if sets >= NEVER_AGAIN:
        return replace(kernels, call_bytes=(reads + writes)[plan])
    return replace(kernels, round_bytes=(sets * (reads + writes))[plan], reread_bytes=(sets * reads + writes)[plan],
                   call_bytes=(reads + writes)[plan])  # fmt: skip


def horizontally_fused(ops: tuple[BoundOp, ...], stack: Stack, training: bool) -> tuple[tuple[BoundOp, ...], Mapping[str, str]]:
    """The ops, with products of one input joined as an engine multiplies them, and which product is part of which.

    Two products are joined if they read the same tensor, differ in the number of their results alone, and are followed by the
    same kinds of op, so that one epilogue does for both. Their weights lie side by side, and so do their results.
    """
    if training or not stack.horizontal_fusion:
        return ops, {}
    behind = by_key((name, op.kind.op) for op in ops for name in dict.fromkeys(op.inputs))
    groups: dict[object, list[BoundOp]] = {}
    for op in ops:
        if op.kind.op in stack.horizontal_fusion and op.phase == FORWARD and getattr(op.kind, "groups", 1) == 1:
            axis = CHANNELS[op.kind.op] % len(op.shape)
            apart = (*op.shape[:axis], *op.shape[axis + 1 :])
            alike = (op.inputs, op.input_shapes, op.kind, apart, tuple(sorted(behind.get(op.name, ()))))
            groups.setdefault(alike, []).append(op)
    into: dict[str, str] = {}
    joined: dict[str, BoundOp] = {}
    for first, *others in groups.values():
        if others:
            axis = CHANNELS[first.kind.op] % len(first.shape)
            wide = sum(op.shape[axis] for op in (first, *others))
            joined[first.name] = replace(first, shape=(*first.shape[:axis], wide, *first.shape[axis + 1 :]))
            into |= {op.name: first.name for op in others}
    return tuple([joined.get(op.name, op) for op in ops]), into


def _own_plan(op: BoundOp, own: Context, narrowed: frozenset[str] | None) -> Plan | None:
    """The plan of an op that has its kernels for itself. A library that may narrow products need not."""
    narrow = getattr(op.kind, "weight_bytes", 0.0)
    if 0 < narrow < own.element and own.stored is AS_MULTIPLIED:
        own = replace(own, stored=Stored(weight_bytes=narrow))
    if own.element == 1 and own.wide_values and op.kind.op != "conv2d":
        own = replace(own, element=own.wide_values)
    if narrowed is None:
        return _plan(_Work(op=op, context=own))
    plan = _plan(_Work(op=op, context=own)) if op.kind.op in narrowed else None
    wide = _wide(_plan(_Work(op=op, context=replace(own, tensor=False))))
    return wide if plan is None or wide is None else replace(plan, options=(*plan.options, *wide.options))


def _stages(ops: Sequence[BoundOp], context: Context) -> Stages:
    """The blocks that the stack computes in one kernel."""
    if not context.stack.conv.stage_channels:
        return Stages()
    from archsim.lower.stages import stages

    return stages(ops, context)


def _fused(ops: Sequence[BoundOp], context: Context, plans: Mapping[str, Plan | None]) -> Fused:
    """What the stack's rule fuses."""
    if context.stack.fusion.rule in UNFUSED:
        return Fused()
    from archsim.lower.chains import fuse

    running = {name: plan for name, plan in plans.items() if plan is not None}
    return fuse(ops, context.stack.fusion, context.training, running, context.element)


def _wide(plan: Plan | None) -> Plan | None:
    """A plan whose products leave the tensor cores idle."""
    return plan and plan.with_kernels(
        lambda own: [replace(k, gpu=replace(k.gpu, plain=1)) if k.menu or k.dense else k for k in own])  # fmt: skip


def _packed(plans: Sequence[Plan], stack: Stack, device_kind: str, architecture: str) -> Kernels:
    if device_kind == "cpu":
        return pack_cpu(plans, runtime_of(stack))
    return pack_tpu(plans) if device_kind == "tpu" else _tiled(plans, stack, architecture)


def _tiled(plans: Sequence[Plan], stack: Stack, architecture: str) -> GpuKernels:
    asked = {k.menu for plan in plans for option in plan.options for k in option.kernels if k.menu}
    problems = [f"menus.{name}: is missing" for name in sorted(asked - set(stack.menus))]
    problems += [f"menus.{name}: its files have no kernel for {architecture or 'all architectures'}"
                 for name in sorted(asked & set(stack.menus)) if not stack.menus[name].on(architecture)]  # fmt: skip
    refuse(f"stack {stack.id}", problems)
    return pack_gpu(plans, stack.menus, architecture)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Work:
    """One op in its context, equal to others by what decides its plan."""

    op: BoundOp
    context: Context

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Work) and self._key == other._key

    @property
    def _key(self) -> tuple[object, ...]:
        context = self.context
        return (*self.op.signature, context.stack.digest, context.device_kind, context.element, context.training,
                context.tensor, context.architecture, context.stored, context.halves)  # fmt: skip


@lru_cache(maxsize=65536)
def _plan(work: _Work) -> Plan | None:
    rule = RULES.get(work.op.kind.op, pointwise.pointwise)
    plan = rule(work.op, work.context)
    return plan if plan is None or work.context.device_kind != "cpu" else on_cpu(plan, untransposed(work.op), work.context)
