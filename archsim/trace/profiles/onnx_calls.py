"""A node that onnxruntime ran as a model of its own. Attributes are not recorded: those that shapes tell are worked out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

from archsim.base.errors import ArchsimError
from archsim.trace.dims import Shape
from archsim.trace.profiles.nesting import MOVED, VIEWED
from archsim.trace.profiles.record import ProfiledCall, ProfiledTensor
from archsim.trace.readers.model import ModelFile, ModelNode, StoredTensor, checked
from archsim.trace.readers.read import trace_at_batches

VIEWS = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Shape", "Size", "ConstantOfShape", "Constant",
                   "Dropout"))  # fmt: skip
MOVES = frozenset(("ReorderInput", "ReorderOutput", "Cast", "MemcpyFromHost", "MemcpyToHost", "CastLike"))
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8e4m3fn": "fp8", "float8e5m2": "fp8"}
WHOLE = ("int", "uint", "bool")
LARGEST_STRIDE, LARGEST_WINDOW, MOST_ORDERED = 16, 512, 6
Made = tuple[str, list[Shape], list[Shape], dict[str, Any]]  # operator, moving inputs, learned inputs, attributes


def model_of_onnx(call: ProfiledCall, place: int, path: str) -> ModelFile | str:
    """A model of this one node, or why it is no op of a network. An operator whose attributes cannot be told is its traffic."""
    if call.operator in VIEWS:
        return VIEWED
    if call.operator in MOVES:
        return MOVED
    if not call.results or not math.prod(call.results[0].shape):
        return "makes no tensor, or its shapes were not recorded"
    name = f"{call.name or call.operator}_{place}"
    for known in (True, False):
        try:
            model = _model(call, name, path, _made(call) if known else _traffic(call), known)
            trace_at_batches([checked(model)], ())
            return model
        except (ArchsimError, ValueError, IndexError, ZeroDivisionError):
            if not known:
                raise
    raise AssertionError


def _model(call: ProfiledCall, name: str, path: str, made: Made, known: bool) -> ModelFile:
    operator, moving, learned, attributes = made
    inputs: dict[str, Shape] = {f"{name}.in{i}": shape for i, shape in enumerate(moving)}
    held = {f"{name}.held{i}": StoredTensor(shape=shape) for i, shape in enumerate(learned)}
    whole = frozenset(f"{name}.in{i}" for i, each in enumerate(call.arguments[: len(moving)])
                      if isinstance(each, ProfiledTensor) and each.type.startswith(WHOLE))  # fmt: skip
    order = [*held, *inputs] if operator == "Gather" else [*inputs, *held]
    node = ModelNode(kind=operator, name=name, inputs=tuple(order), outputs=(name,), attributes=attributes,
                     domain="" if known else "onnxruntime")  # fmt: skip
    dtype = TYPES.get(call.results[0].type, "fp32")
    return ModelFile(path=path, name=name, source="onnxruntime", inputs=inputs, constants=held, nodes=(node,), outputs=(name,),
                     hints={name: call.results[0].shape}, indices=whole, dtype=dtype)  # fmt: skip


def _made(call: ProfiledCall) -> Made:
    rule = RULES.get(call.operator.removeprefix("Fused"))
    shapes = [each.shape for each in call.arguments if isinstance(each, ProfiledTensor)]
    return rule(shapes, call.results[0].shape) if rule else (call.operator, shapes, [], {})


def _traffic(call: ProfiledCall) -> Made:
    shapes = [each.shape for each in call.arguments if isinstance(each, ProfiledTensor)]
    return call.operator, shapes, [], {}


def _conv(shapes: Sequence[Shape], out: Shape) -> Made:
    data, weight = shapes[0], shapes[1]
    strides, before, after = [], [], []
    for n, k, made in zip(data[2:], weight[2:], out[2:], strict=True):
        stride, pad = window_of(n, k, made)
        strides.append(stride)
        before.append(pad // 2)
        after.append(pad - pad // 2)
    words = {"strides": strides, "pads": before + after, "group": max(1, data[1] // weight[1])}
    return "Conv", [data], [weight, *[(weight[0],)] * any(len(shape) == 1 for shape in shapes[2:])], words


@lru_cache(maxsize=1024)
def window_of(size: int, kernel: int, made: int) -> tuple[int, int]:
    """Stride and padding of both sides with which a window makes `made` of `size`, of those that do the usual ones.

    >>> window_of(224, 7, 112), window_of(14, 1, 7), window_of(27, 5, 27)
    ((2, 6), (2, 0), (1, 4))
    """
    if not (0 < kernel <= LARGEST_WINDOW and made > 0):
        raise ValueError(f"has a window of {kernel}")
    near = max(1, round(size / made))
    usual = 2 * ((kernel - 1) // 2)
    found = [(stride, pad) for stride in sorted(range(1, LARGEST_STRIDE + 1), key=lambda s: abs(s - near))
             for pad in sorted(range(2 * kernel), key=lambda p: (p % 2, abs(p - usual)))
             if size + pad >= kernel and (size + pad - kernel) // stride + 1 == made]  # fmt: skip
    if not found:
        raise ValueError(f"no stride makes {made} of {size} with a window of {kernel}")
    return found[0]


def _pool(kind: str) -> Callable[[Sequence[Shape], Shape], Made]:
    def rule(shapes: Sequence[Shape], out: Shape) -> Made:
        data = shapes[0]
        strides = [max(1, round(n / made)) for n, made in zip(data[2:], out[2:], strict=True)]
        needs = [(made - 1) * s + s for made, s in zip(out[2:], strides, strict=True)]
        pads = [max(0, need - n) for need, n in zip(needs, data[2:], strict=True)]
        return kind, [data], [], {"kernel_shape": strides, "strides": strides, "pads": [0] * len(pads) + pads}

    return rule


def _matmul(shapes: Sequence[Shape], out: Shape) -> Made:
    left = shapes[0]
    if len(shapes) == 1 or len(shapes[1]) < 2:
        return "MatMul", [left], [(left[-1], out[-1])], {}
    right = shapes[1] if shapes[1][-2] == left[-1] and shapes[1][-1] == out[-1] else (*shapes[1][:-2], *shapes[1][:-3:-1])
    if len(right) == 2:
        return "MatMul", [left], [right], {}
    return "MatMul", [left, right], [], {}


def _gemm(shapes: Sequence[Shape], out: Shape) -> Made:
    left = shapes[0] if shapes[0][0] == out[0] else shapes[0][::-1]
    return "Gemm", [left], [(left[1], out[1]), *[(out[1],)] * any(len(shape) == 1 for shape in shapes[1:])], {}


def _norm(shapes: Sequence[Shape], out: Shape) -> Made:
    return "LayerNormalization", [shapes[0]], [(shapes[0][-1],)] * min(2, max(1, len(shapes) - 1)), {"axis": -1}


def _softmax(shapes: Sequence[Shape], out: Shape) -> Made:
    return "Softmax", [shapes[0]], [], {"axis": -1}


def _transpose(shapes: Sequence[Shape], out: Shape) -> Made:
    rank = len(out)
    orders = permutations(range(rank)) if rank <= MOST_ORDERED else ()
    fits = [order for order in orders if tuple(shapes[0][i] for i in order) == out and order != tuple(range(rank))]
    if not fits:
        raise ValueError("is no transposition")
    return "Transpose", [shapes[0]], [], {"perm": list(fits[0])}


def _concat(shapes: Sequence[Shape], out: Shape) -> Made:
    axis = next(i for i, size in enumerate(out) if sum(shape[i] for shape in shapes) == size and shapes[0][i] != size)
    return "Concat", [*shapes], [], {"axis": axis}


def _gather(shapes: Sequence[Shape], out: Shape) -> Made:
    if (*shapes[1], *shapes[0][1:]) != out:
        raise ValueError("is no look-up of rows")
    return "Gather", [shapes[1]], [shapes[0]], {"axis": 0}


def _same(kind: str) -> Callable[[Sequence[Shape], Shape], Made]:
    return lambda shapes, out: (kind, [shapes[0]], [], {})


RULES: Mapping[str, Callable[[Sequence[Shape], Shape], Made]] = {
    "Conv": _conv, "MaxPool": _pool("MaxPool"), "AveragePool": _pool("AveragePool"), "MatMul": _matmul, "Gemm": _gemm,
    "LayerNormalization": _norm, "Softmax": _softmax, "Transpose": _transpose, "Concat": _concat, "Gather": _gather,
    "QuickGelu": _same("QuickGelu"), "FastGelu": _same("Gelu"), "BiasGelu": _same("Gelu"), "Gelu": _same("Gelu"),
}  # fmt: skip
