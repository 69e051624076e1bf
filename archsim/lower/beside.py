"""Products of one input that an engine multiplies as one: their weights lie side by side, and so do their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from archsim.stack.stack import Stack
from archsim.trace.kind import FORWARD
from archsim.trace.trace import BoundOp

CHANNELS = {"linear": -1, "conv2d": 1}  # the axis of a result along which products of one input are joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The products of a network that run as one.

    into: product = the first of its group, whose kernel makes the results of all; joined: that first one = the product of all
    """

    into: Mapping[str, str] = field(default_factory=dict)
    joined: Mapping[str, BoundOp] = field(default_factory=dict)


def beside(ops: Sequence[BoundOp], stack: Stack, training: bool) -> Beside:
    """What the stack's `side_by_side` joins in these ops at inference; nothing in training.

    Two products are joined if they read the same tensor, differ in the number of their results alone, and are followed by the
    same kinds of op, so that one epilogue does for both.
    """
    if training or not stack.side_by_side:
        return Beside()
    behind: dict[str, list[str]] = {}
    for op in ops:
        for name in dict.fromkeys(op.inputs):
            behind.setdefault(name, []).append(op.kind.op)
    groups: dict[object, list[BoundOp]] = {}
    for op in ops:
        if op.kind.op in stack.side_by_side and op.phase == FORWARD and getattr(op.kind, "groups", 1) == 1:
            axis = CHANNELS[op.kind.op]
            apart = tuple(size for i, size in enumerate(op.shape) if i != axis % len(op.shape))
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
    return Beside(into=into, joined=joined)
