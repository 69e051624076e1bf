"""Attention that was run as two products around a softmax, found among the calls of a profile by their shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from archsim.trace.dims import Shape
from archsim.trace.profiles.nesting import operator_of
from archsim.trace.profiles.record import ProfiledCall, ProfiledTensor

PRODUCTS = ("matmul", "bmm", "baddbmm", "MatMul", "FusedMatMul")
SOFTMAX = ("softmax", "_softmax", "Softmax")
VIEWS = ("view", "reshape", "expand", "_unsafe_view", "Reshape", "slice", "select", "transpose", "permute", "unsqueeze",
         "detach")  # fmt: skip
BETWEEN = (*VIEWS, "div", "mul", "add", "masked_fill", "where", "dropout", "to", "_to_copy", "Div", "Mul", "Add", "Where",
           "clamp", "tril", "contiguous", "Cast", "sub", "Sub", "eq", "lt", "empty", "scalar_tensor", "full", "lift_fresh")  # fmt: skip
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
    first = _product(kinds, range(at - 1, max(after, at - LONGEST), -1))
    last = _product(kinds, range(at + 1, min(len(calls), at + LONGEST)))
    if first is None or last is None:
        return None
    left, right = tensors_of(calls[first])[-2:], tensors_of(calls[last])[-2:]
    if len(left) < 2 or len(right) < 2:
        return None
    (queries, keys), (weights, values) = [each.shape for each in left], [each.shape for each in right]
    size = math.prod(scores[0].shape)
    if min(map(len, (queries, keys, weights, values))) < 3 or math.prod(weights) != size:
        return None
    t, d, s, e = queries[-2], queries[-1], scores[0].shape[-1], values[-1]
    if size != math.prod(queries[:-1]) * s or d not in keys[-2:] or s not in keys[-2:] or values[-2] != s or d != e:
        return None
    if math.prod(keys[:-2]) != math.prod(queries[:-2]):
        return None
    whole = len(scores[0].shape) >= 4
    n, heads = (math.prod(scores[0].shape[:-3]), scores[0].shape[-3]) if whole else (1, scores[0].shape[0])
    chosen = [i for i in range(first, last + 1) if i in (first, at, last) or kinds[i] not in VIEWS]
    return RecordedAttention(tuple(chosen), heads, ((n, t, heads * d), (n, s, heads * d), (n, s, heads * d)))


def _product(kinds: Sequence[str], places: Sequence[int]) -> int | None:
    for i in places:
        if kinds[i] in PRODUCTS:
            return i
        if kinds[i] not in BETWEEN:
            return None
    return None
