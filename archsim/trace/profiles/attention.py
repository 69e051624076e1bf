"""Attention that was run as two products around a softmax, found among the calls of a profile by their shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from archsim.trace.dims import Shape
from archsim.trace.profiles.record import ProfiledCall, ProfiledTensor
from archsim.trace.readers.aten_calls import operator_of

PRODUCTS = ("matmul", "bmm", "baddbmm", "MatMul", "FusedMatMul")
SOFTMAX = ("softmax", "_softmax", "Softmax")
BETWEEN = ("div", "mul", "add", "masked_fill", "where", "dropout", "to", "_to_copy", "Div", "Mul", "Add", "Where", "Cast", "sub",
           "Sub", "clamp", "tril", "contiguous")  # fmt: skip
LONGEST = 24  # calls from the first product to the second


class RecordedAttention(NamedTuple):
    """One attention: its calls, and queries, keys and values as [N, T, heads * d]."""

    calls: tuple[int, ...]
    heads: int
    shapes: tuple[Shape, Shape, Shape]


def kind_of_call(call: ProfiledCall) -> str:
    """The operator of a call, without its namespace."""
    return operator_of(call.operator)[1] or call.operator


def tensors_of(call: ProfiledCall) -> list[ProfiledTensor]:
    """The tensors among the arguments of a call."""
    return [each for each in call.arguments if isinstance(each, ProfiledTensor)]


def attentions(calls: Sequence[ProfiledCall]) -> list[RecordedAttention]:
    """All of them, in the order of the calls."""
    found: list[RecordedAttention] = []
    kinds = [kind_of_call(call) for call in calls]
    for at, kind in enumerate(kinds):
        if kind in SOFTMAX:
            one = _around(calls, kinds, at, found[-1].calls[-1] if found else -1)
            if one is not None:
                found.append(one)
    return found


def _around(calls: Sequence[ProfiledCall], kinds: Sequence[str], at: int, after: int) -> RecordedAttention | None:
    scores = tensors_of(calls[at])[:1]
    if not scores or len(scores[0].shape) < 3:
        return None
    size = math.prod(scores[0].shape)
    before, behind = range(at - 1, max(after, at - LONGEST), -1), range(at + 1, min(len(calls), at + LONGEST))
    first = next((i for i in before if kinds[i] in PRODUCTS and _makes(calls[i]) == size), None)
    last = next((i for i in behind if kinds[i] in PRODUCTS and _reads(calls[i]) == size), None)
    if first is None or last is None:
        return None
    (queries, keys), (_, values) = ([each.shape for each in tensors_of(calls[i])[-2:]] for i in (first, last))
    t, d, s, e = queries[-2], queries[-1], scores[0].shape[-1], values[-1]
    if {d, s} != {*keys[-2:]} or values[-2] != s or d != e or math.prod(keys[:-2]) != math.prod(queries[:-2]):
        return None
    whole = len(scores[0].shape) >= 4
    n, heads = (math.prod(scores[0].shape[:-3]), scores[0].shape[-3]) if whole else (1, scores[0].shape[0])
    chosen = [i for i in range(first, last + 1)
              if i in (first, at, last) or (kinds[i] in BETWEEN and size in [math.prod(a.shape) for a in tensors_of(calls[i])])]
    return RecordedAttention(tuple(chosen), heads, ((n, t, heads * d), (n, s, heads * d), (n, s, heads * d)))  # fmt: skip


def _makes(call: ProfiledCall) -> int:
    """Values in what a batched product makes; 0 for another."""
    shapes = [each.shape for each in tensors_of(call)[-2:]]
    if len(shapes) < 2 or min(map(len, shapes)) < 3:
        return 0
    a, b = shapes
    return math.prod(a[:-1]) * (b[-1] if b[-2] == a[-1] else b[-2])


def _reads(call: ProfiledCall) -> int:
    """Values in the first operand of a batched product; 0 for another."""
    shapes = [each.shape for each in tensors_of(call)[-2:]]
    return math.prod(shapes[0]) if len(shapes) == 2 and min(map(len, shapes)) >= 3 else 0
