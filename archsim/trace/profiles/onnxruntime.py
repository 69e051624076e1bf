"""Profiles of onnxruntime: events, each node with its operator and shapes; and such a node as a model of its own.

Runs are marked by events `model_run`. A node is the event `..._kernel_time` of the category "Node"; kernels of a GPU have the
category "Kernel" and name the node that launched them.

Format: microsoft/onnxruntime, onnxruntime/core/common/profiler.cc and core/framework/sequential_executor.cc.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from archsim.base.errors import ArchsimError, InputError
from archsim.trace.dims import LARGEST, MOST_DIMS, Shape, Shapes, short
from archsim.trace.profiles.calls import MOVED, VIEWED
from archsim.trace.profiles.record import US, Profile, ProfiledCall, ProfiledKernel, ProfiledTensor, events, middle, times_of
from archsim.trace.readers.layer_shapes import GATES
from archsim.trace.readers.model import ModelFile, ModelNode, StoredTensor, checked
from archsim.trace.readers.read import trace_at_batches

KEY = "traceEvents"
TIMED = "_kernel_time"
MOST_NODES = 1 << 20


class NodeEvent(NamedTuple):
    """A node as it ran once."""

    name: str
    start_us: float
    duration_us: float
    args: Mapping[str, Any]


def read(path: Path) -> Profile:
    """The profile in a file. Raises MissingFile or InputError."""
    nodes: list[NodeEvent] = []
    kernels: list[NodeEvent] = []
    runs: list[tuple[float, float]] = []
    for count, event in enumerate(events(path, KEY)):
        kind, name = event.get("cat"), event.get("name")
        if not isinstance(name, str) or event.get("ph") != "X":
            continue
        if kind == "Session" and name == "model_run":
            runs.append(times_of(event, path, count))
        elif kind in ("Node", "Kernel") and (kind == "Kernel" or name.endswith(TIMED)):
            args = event.get("args")
            found = NodeEvent(name.removesuffix(TIMED), *times_of(event, path, count), args if isinstance(args, dict) else {})
            (nodes if kind == "Node" else kernels).append(found)
            if len(nodes) + len(kernels) > MOST_NODES:
                raise InputError(str(path), f"has more than {MOST_NODES} nodes; refused")
    if not nodes:
        raise InputError(str(path), "has no nodes that ran: a profile of onnxruntime has events of the category Node")
    return _profile(str(path), nodes, kernels, sorted(runs))


def _profile(path: str, nodes: list[NodeEvent], kernels: list[NodeEvent], runs: list[tuple[float, float]]) -> Profile:
    """The run of the median time."""
    notes = [] if runs else ["all is one run: it marks none (model_run)"]
    windows = [(start, start + took) for start, took in runs] or [(nodes[0].start_us, max(each.start_us for each in nodes) + 1)]
    nodes = sorted(nodes, key=lambda each: each.start_us)
    starts = [each.start_us for each in nodes]
    spans = [(bisect_left(starts, start), bisect_left(starts, end)) for start, end in windows]
    windows = [window for window, (first_node, end) in zip(windows, spans, strict=True) if end > first_node]
    inside = [nodes[first_node:end] for first_node, end in spans if end > first_node]
    if not inside:
        raise InputError(path, "has nodes, but none within a run (model_run)")
    lengths = [max(each.start_us + each.duration_us for each in run) - run[0].start_us for run in inside]
    shown = middle(lengths)
    run, (first, last) = inside[shown], windows[shown]
    place = {each.name: i for i, each in enumerate(run)}
    launched = sorted((k for k in kernels if first <= k.start_us < last), key=lambda k: k.start_us)
    return Profile(
        path=path, source="onnxruntime", calls=tuple(_call(each, path, run[0].start_us) for each in run),
        kernels=tuple(ProfiledKernel(
            name=k.name, start_s=(k.start_us - run[0].start_us) * US, duration_s=k.duration_us * US,
            stream=str(k.args.get("stream", "")), copy=k.name.startswith(("Memcpy", "Memset")),
            call=place.get(str(k.args.get("parent_name", "")).removesuffix(TIMED)),
        ) for k in launched),
        run_s=tuple(length * US for length in lengths), shown=shown, notes=tuple(notes),
    )  # fmt: skip


def _call(event: NodeEvent, path: str, origin_us: float) -> ProfiledCall:
    return ProfiledCall(
        operator=str(event.args.get("op_name", "")) or "node", name=event.name, start_s=(event.start_us - origin_us) * US,
        duration_s=event.duration_us * US, arguments=_tensors(event, "input_type_shape", path),
        results=_tensors(event, "output_type_shape", path),
    )  # fmt: skip


def _tensors(event: NodeEvent, key: str, path: str) -> tuple[ProfiledTensor, ...]:
    """Tensors as [{"float": [2, 3]}, ...]. Raises InputError for shapes that none has."""
    listed = event.args.get(key)
    found = []
    for each in listed if isinstance(listed, list) else []:
        for type_, shape in each.items() if isinstance(each, dict) else ():
            if not isinstance(shape, list):
                continue  # of a sequence
            if len(shape) > MOST_DIMS or not all(type(size) is int and 0 <= size <= LARGEST for size in shape):
                raise InputError(path, f"node {short(event.name)} has the {key} {short(shape)}, which no tensor has")
            found.append(ProfiledTensor(shape=tuple(shape), type=str(type_)))
    return tuple(found)


# ---------------------------------------------------------------------------------------------------- a node as a model

VIEWS = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Shape", "Size", "ConstantOfShape", "Constant",
                   "Dropout"))  # fmt: skip
MOVES = frozenset(("ReorderInput", "ReorderOutput", "Cast", "MemcpyFromHost", "MemcpyToHost", "CastLike"))
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8e4m3fn": "fp8", "float8e5m2": "fp8"}
WHOLE = ("int32", "int64", "bool")  # of indices; shorter ones are of quantised tensors
LARGEST_STRIDE, LARGEST_WINDOW, MOST_ORDERED = 16, 512, 6
BOUNDED = "onnxruntime"  # domain of a node of which only a bound is known


class Made(NamedTuple):
    """A node by what it reads: tensors that depend on the network's inputs, learned ones, and its attributes."""

    operator: str
    moving: Shapes
    learned: Shapes = ()
    attributes: Mapping[str, Any] = {}
    domain: str = ""


Rule = Callable[[Shapes, Shape], Made]


def model_of_onnx(call: ProfiledCall, place: int, path: str) -> ModelFile | str:
    """A model of this one node, or why it is no op of a network. An operator whose attributes cannot be told is its traffic."""
    if call.operator in VIEWS:
        return VIEWED
    if call.operator in MOVES:
        return MOVED
    if not call.results or not math.prod(call.results[0].shape):
        return "makes no tensor, or its shapes were not recorded"
    shapes = [each.shape for each in call.arguments if isinstance(each, ProfiledTensor)]
    traffic = Made(f"{BOUNDED}.{call.operator}", shapes, domain=BOUNDED)
    rule = RULES.get(call.operator.removeprefix("Fused"))
    name = f"{call.name or call.operator}_{place}"
    try:
        made = rule(shapes, call.results[0].shape) if rule else traffic._replace(operator=call.operator, domain="")
        made = made._replace(operator=traffic.operator) if made.domain == BOUNDED else made
        model = _model(call, name, path, made)
        trace_at_batches([checked(model)], ())
        return model
    except (ArchsimError, ValueError, IndexError, ZeroDivisionError, StopIteration):
        return _model(call, name, path, traffic)


def _model(call: ProfiledCall, name: str, path: str, made: Made) -> ModelFile:
    inputs: dict[str, Shape] = {f"{name}.in{i}": shape for i, shape in enumerate(made.moving)}
    held = {f"{name}.held{i}": StoredTensor(shape=shape) for i, shape in enumerate(made.learned)}
    whole = frozenset(f"{name}.in{i}" for i, each in enumerate(call.arguments[: len(inputs)])
                      if isinstance(each, ProfiledTensor) and each.type.startswith(WHOLE))  # fmt: skip
    order = [*held, *inputs] if made.operator == "Gather" else [*inputs, *held]
    node = ModelNode(kind=made.operator, name=name, inputs=tuple(order), outputs=(name,), attributes=made.attributes,
                     domain=made.domain)  # fmt: skip
    dtype = TYPES.get(call.results[0].type, "fp32")
    return ModelFile(path=path, name=name, source="onnxruntime", inputs=inputs, constants=held, nodes=(node,), outputs=(name,),
                     hints={name: call.results[0].shape}, indices=whole, dtype=dtype)  # fmt: skip


def _packed(shapes: Shapes, out: Shape) -> Made:
    """A convolution whose weights were packed when the model was loaded, so that its window is not recorded.

    It counts as one of all channels with the least window, 1 x 1, or that of the strides where it enlarges; its channels lie last
    where the scales or biases are as many as the last size of the result.
    """
    last = len(shapes[-1]) == 1 and shapes[-1][0] == out[-1] != out[1]
    return Made("Conv", shapes[:1], (), {"each": 2 * shapes[0][-1 if last else 1]}, BOUNDED)


def _conv(shapes: Shapes, out: Shape) -> Made:
    data, weight = shapes[0], next((each for each in shapes[1:] if len(each) == len(out)), None)
    if weight is None or data[1] % weight[1] or weight[0] != out[1]:
        return _packed(shapes, out)
    strides, before, after = [], [], []
    for n, k, made in zip(data[2:], weight[2:], out[2:], strict=True):
        stride, pad = window_of(n, k, made)
        strides.append(stride)
        before.append(pad // 2)
        after.append(pad - pad // 2)
    words = {"strides": strides, "pads": before + after, "group": max(1, data[1] // weight[1])}
    return Made("Conv", [data], [weight, *[(weight[0],)] * any(len(shape) == 1 for shape in shapes[2:])], words)


def _turned(shapes: Shapes, out: Shape) -> Made:
    data, weight = shapes[0], next((each for each in shapes[1:] if len(each) == len(out)), None)
    if weight is None:
        return _packed(shapes, out)
    strides = [max(1, round(made / n)) for n, made in zip(data[2:], out[2:], strict=True)]
    words = {"strides": strides, "group": max(1, out[1] // weight[1]), "output_shape": list(out[2:])}
    return Made("ConvTranspose", [data], [weight, *[(out[1],)] * any(len(shape) == 1 for shape in shapes[2:])], words)


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


def _pool(kind: str) -> Rule:
    def rule(shapes: Shapes, out: Shape) -> Made:
        data = shapes[0]
        strides = [max(1, round(n / made)) for n, made in zip(data[2:], out[2:], strict=True)]
        needs = [(made - 1) * s + s for made, s in zip(out[2:], strides, strict=True)]
        pads = [max(0, need - n) for need, n in zip(needs, data[2:], strict=True)]
        return Made(kind, [data], [], {"kernel_shape": strides, "strides": strides, "pads": [0] * len(pads) + pads})

    return rule


def _matmul(shapes: Shapes, out: Shape) -> Made:
    left = shapes[0]
    if len(shapes) == 1 or len(shapes[1]) < 2:
        return Made("MatMul", [left], [(left[-1], out[-1])])
    right = shapes[1] if shapes[1][-2] == left[-1] and shapes[1][-1] == out[-1] else (*shapes[1][:-2], *shapes[1][:-3:-1])
    return Made("MatMul", [left], [right]) if len(right) == 2 else Made("MatMul", [left, right])


def _quantised(shapes: Shapes, out: Shape) -> Made:
    """A product beside whose operands stand scales and zeros."""
    return _matmul([shape for shape in shapes if len(shape) > 1][:2], out)


def _gemm(shapes: Shapes, out: Shape) -> Made:
    left = shapes[0] if shapes[0][0] == out[0] else shapes[0][::-1]
    return Made("Gemm", [left], [(left[1], out[1]), *[(out[1],)] * any(len(shape) == 1 for shape in shapes[1:])])


def _einsum(shapes: Shapes, out: Shape) -> Made:
    first, second = shapes
    return Made("Einsum", [first, second], [], {"equation": equation_of(first, second, out)})


@lru_cache(maxsize=1024)
def equation_of(first: Shape, second: Shape, made: Shape) -> str:
    """A product of two tensors by its shapes: what the result keeps of both stands at one place in them, the rest is summed.

    >>> equation_of((2, 4, 10, 32), (2, 4, 12, 32), (2, 4, 10, 12)), equation_of((5, 7), (7, 3), (5, 3))
    ('abcZ,abdZ->abcd', 'aZ,Zb->ab')
    """

    def places(at: int, left: str, right: str) -> str:
        """The letters of the operands, spaces where none is set, while those of the result before `at` are."""
        if at == len(made):
            rest = [[size for size, letter in zip(shape, letters, strict=True) if letter == " "]
                    for shape, letters in ((first, left), (second, right))]  # fmt: skip
            if not rest[0] or rest[0] != rest[1]:
                return ""
            for letter in "ZYXWVU"[: len(rest[0])]:
                left, right = left.replace(" ", letter, 1), right.replace(" ", letter, 1)
            return f"{left},{right}->{letters_of[: len(made)]}"
        one, other = ([i for i, size in enumerate(shape) if size == made[at] and letters[i] == " "]
                      for shape, letters in ((first, left), (second, right)))  # fmt: skip
        both = [(i, i) for i in one if i in other]
        for i, j in [*both, *((i, -1) for i in one), *((-1, j) for j in other)]:
            found = places(at + 1, *(letters if k < 0 else letters[:k] + letters_of[at] + letters[k + 1 :]
                                     for letters, k in ((left, i), (right, j))))  # fmt: skip
            if found:
                return found
        return ""

    letters_of = "abcdef"
    found = places(0, " " * len(first), " " * len(second)) if max(map(len, (first, second, made))) <= MOST_ORDERED else ""
    if not found:
        raise ValueError("is no product of two tensors")
    return found


def _recurrent(kind: str) -> Rule:
    def rule(shapes: Shapes, out: Shape) -> Made:
        features, (ways, hidden) = shapes[0][2], (out[-3], out[-1])
        rows = GATES[kind] * hidden
        learned = [(ways, rows, features), (ways, rows, hidden), *[(ways, 2 * rows)] * ((ways, 2 * rows) in shapes)]
        words = {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else "forward"}
        return Made(kind, shapes[:1], learned, words)

    return rule


def _norm(shapes: Shapes, out: Shape) -> Made:
    return Made("LayerNormalization", [shapes[0]], [(shapes[0][-1],)] * min(2, max(1, len(shapes) - 1)), {"axis": -1})


def _transpose(shapes: Shapes, out: Shape) -> Made:
    rank = len(out)
    orders = permutations(range(rank)) if rank <= MOST_ORDERED else ()
    fits = [order for order in orders if tuple(shapes[0][i] for i in order) == out and order != tuple(range(rank))]
    if not fits:
        raise ValueError("is no transposition")
    return Made("Transpose", [shapes[0]], [], {"perm": list(fits[0])})


def _concat(shapes: Shapes, out: Shape) -> Made:
    axis = next(i for i, size in enumerate(out) if sum(shape[i] for shape in shapes) == size and shapes[0][i] != size)
    return Made("Concat", shapes, [], {"axis": axis})


def _gather(shapes: Shapes, out: Shape) -> Made:
    data, index = shapes
    axis = next(i for i in range(len(data)) if (*data[:i], *index, *data[i + 1 :]) == out)
    if axis == 0 and len(data) == 2:
        return Made("Gather", [index], [data], {"axis": 0})
    return Made("Copied", shapes, domain="archsim")


def _same(kind: str, learned: Shapes = (), domain: str = "", **attributes: int) -> Rule:
    return lambda shapes, out: Made(kind, shapes[:1], learned, attributes, domain)


RULES: Mapping[str, Rule] = {
    "Conv": _conv, "QLinearConv": _conv, "ConvInteger": _conv, "ConvTranspose": _turned, "MaxPool": _pool("MaxPool"),
    "AveragePool": _pool("AveragePool"), "MatMul": _matmul, "Gemm": _gemm, "Einsum": _einsum,
    **dict.fromkeys(("QLinearMatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"), _quantised),
    "LSTM": _recurrent("LSTM"), "GRU": _recurrent("GRU"), "RNN": _recurrent("RNN"),
    "LayerNormalization": _norm, "Softmax": _same("Softmax", axis=-1), "Transpose": _transpose, "Concat": _concat,
    "Gather": _gather, "QuickGelu": _same("QuickGelu"), **dict.fromkeys(("FastGelu", "BiasGelu", "Gelu"), _same("Gelu")),
    "DequantizeLinear": _same("Mul", [()]), **dict.fromkeys(("Slice", "Expand", "Tile"), _same("Copied", domain="archsim")),
}  # fmt: skip
