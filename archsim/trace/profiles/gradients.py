"""Calls of ATen that compute gradients or update parameters, as the gradients of ops of a network, with the shapes of these.

Arguments by place: pytorch/pytorch, aten/src/ATen/native/native_functions.yaml.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from archsim.trace.dims import Shape
from archsim.trace.kind import BACKWARD, BACKWARD_DATA, BACKWARD_FILTER, FORWARD, Kind
from archsim.trace.kinds.activation import Gelu, GeluTanh, HardSigmoid, HardSwish, LeakyRelu, Relu, Relu6, Sigmoid, Silu, Tanh
from archsim.trace.kinds.attention import Attention
from archsim.trace.kinds.convolution import Conv2d
from archsim.trace.kinds.dense import Embedding
from archsim.trace.kinds.general import GroupNorm, Stated
from archsim.trace.kinds.normalise import BatchNorm, LayerNorm, Softmax
from archsim.trace.kinds.pooling import AvgPool, GlobalAvgPool, MaxPool
from archsim.trace.profiles.record import Argument, ProfiledCall, ProfiledTensor

BYTES = {"float": 4, "double": 8, "half": 2, "c10::half": 2, "bfloat16": 2, "c10::bfloat16": 2}  # of a value, by its type
PLANAR = 4  # dimensions of a batch of images


class Given:
    """The arguments of a call, by place."""

    def __init__(self, kind: str, arguments: Sequence[Argument]) -> None:
        self.kind, self.arguments = kind, arguments

    def size(self, place: int) -> Shape:
        """The shape of a tensor."""
        found = self.at(place)
        if not isinstance(found, ProfiledTensor):
            raise ValueError(f"argument {place} is no tensor")
        return found.shape

    def at(self, place: int, default: Any = None) -> Any:
        """An argument."""
        found = self.arguments[place] if place < len(self.arguments) else None
        return default if found is None else found

    def each(self, place: int, rank: int, default: Any = None) -> list[int]:
        """A whole number for each dimension of an image; ValueError where none was recorded."""
        found = self.at(place)
        found = default if found is None or found == [] else found
        listed = [found] * rank if type(found) is int else found
        if not isinstance(listed, list) or len(listed) not in (1, rank) or not all(type(each) is int for each in listed):
            raise ValueError(f"argument {place} was not recorded: profiles of PyTorch 2.1 and later hold it")
        return listed * rank if len(listed) == 1 else listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """One op of the backward pass or of an optimiser.

    reads: shape of the gradient that it waits for
    of, shape: shapes of the inputs and of the result of the forward op
    made: shape of what it computes
    """

    kind: Kind
    phase: str
    reads: Shape
    of: tuple[Shape, ...]
    shape: Shape
    made: Shape


def gradients_of(call: ProfiledCall, operator: str) -> tuple[Gradient, ...]:
    """What a call of one of `GRADIENTS`, or of an optimiser, computes. Raises ValueError where its arguments do not fit."""
    given = Given(operator, call.arguments)
    try:
        return _updated(call, operator) if is_update(operator) else GRADIENTS[operator](given)
    except (IndexError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"has arguments that do not fit ({type(error).__name__})") from None


def is_gradient(operator: str) -> bool:
    """Whether an operator of ATen has a rule here."""
    return operator in GRADIENTS or is_update(operator)


def is_update(operator: str) -> bool:
    """Whether it is one kernel over the parameters of an optimiser, or over a group of them."""
    return operator.startswith(("_foreach_", "_fused_adam", "_fused_sgd", "_fused_adagrad"))


def _same(kind: Kind, data: Shape, phase: str = BACKWARD) -> tuple[Gradient, ...]:
    return (Gradient(kind=kind, phase=phase, reads=data, of=(data,), shape=data, made=data),)


def _chosen(given: Given, place: int) -> list[bool]:
    """The `output_mask`, a list of truth values as text."""
    found = given.at(place, "")
    return [word.strip() == "True" for word in str(found).strip("[] ").split(",")]


def _convolution(g: Given) -> tuple[Gradient, ...]:
    grad, data, weight = g.size(0), g.size(1), g.size(2)
    if len(data) != PLANAR:
        raise ValueError(f"is the gradient of a convolution of {len(data) - 2} dimensions; those of images are known")
    if g.at(7) is True:
        raise ValueError("is the gradient of a transposed convolution, which is not known")
    stride, pad, dilation = (g.each(place, 2) for place in (4, 5, 6))
    wanted = _chosen(g, 10)
    kind = Conv2d(kernel=(weight[2], weight[3]), stride=(stride[0], stride[1]), pad=(pad[0], pad[1]),
                  dilation=(dilation[0], dilation[1]), groups=int(g.at(9, 1)), bias=len(wanted) > 2 and wanted[2])  # fmt: skip
    both = ((BACKWARD_DATA, data, wanted[0]), (BACKWARD_FILTER, weight, len(wanted) > 1 and wanted[1]))
    return tuple([Gradient(kind=kind, phase=phase, reads=grad, of=(data,), shape=grad, made=made)
                  for phase, made, asked in both if asked])  # fmt: skip


def _batch_norm(g: Given) -> tuple[Gradient, ...]:
    return _same(BatchNorm(training=True), g.size(1))


def _group_norm(g: Given) -> tuple[Gradient, ...]:
    return _same(GroupNorm(groups=int(g.at(8))), g.size(1))


def _softmax(g: Given) -> tuple[Gradient, ...]:
    return _same(Softmax(axis=int(g.at(2, -1))), g.size(0))


def _gelu(g: Given) -> tuple[Gradient, ...]:
    return _same(GeluTanh() if g.at(2) == "tanh" else Gelu(), g.size(0))


def _pool(g: Given) -> tuple[Gradient, ...]:
    grad, data = g.size(0), g.size(1)
    kernel = g.each(2, 2)
    stride, pad = g.each(3, 2, kernel), g.each(4, 2, 0)
    form = MaxPool if g.kind.startswith("max") else AvgPool
    kind = form(kernel=(kernel[0], kernel[1]), stride=(stride[0], stride[1]), pad=(pad[0], pad[1]),
                ceil_mode=g.at(6 if form is MaxPool else 5) is True)  # fmt: skip
    return (Gradient(kind=kind, phase=BACKWARD, reads=grad, of=(data,), shape=grad, made=data),)


def _adaptive_pool(g: Given) -> tuple[Gradient, ...]:
    grad, data = g.size(0), g.size(1)
    if grad[-2:] == (1, 1):
        kind: Kind = GlobalAvgPool()
    else:
        window = (max(1, data[-2] // grad[-2]), max(1, data[-1] // grad[-1]))
        kind = AvgPool(kernel=window, stride=window)
    return (Gradient(kind=kind, phase=BACKWARD, reads=grad, of=(data,), shape=grad, made=data),)


def _embedding(g: Given) -> tuple[Gradient, ...]:
    grad, indices, rows = g.size(0), g.size(1), int(g.at(2))
    kind = Embedding(vocabulary=rows, features=grad[-1])
    return (Gradient(kind=kind, phase=BACKWARD_FILTER, reads=grad, of=(indices,), shape=grad, made=(rows, grad[-1])),)


def _attention(causal: int) -> Callable[[Given], tuple[Gradient, ...]]:
    """The rule of an operator whose argument `is_causal` has this place."""

    def rule(g: Given) -> tuple[Gradient, ...]:
        queries, keys, values = g.size(1), g.size(2), g.size(3)
        n, heads = math.prod(queries[:-3]), queries[-3]
        shared = keys[-3]
        flat = ((n, queries[-2], heads * queries[-1]), (n, keys[-2], shared * keys[-1]), (n, values[-2], shared * values[-1]))
        kind = Attention(heads=heads, kv_heads=0 if shared == heads else shared, causal=g.at(causal) is True)
        return (Gradient(kind=kind, phase=BACKWARD, reads=queries, of=flat, shape=flat[0], made=queries),)

    return rule


def _updated(call: ProfiledCall, operator: str) -> tuple[Gradient, ...]:
    """A pass over lists of parameters: each list is read, and the first written; fused optimisers write all but gradients."""
    lists = [each for each in call.arguments if isinstance(each, list) and each and isinstance(each[0], ProfiledTensor)]
    bytes_of = [sum(math.prod(one.shape) * BYTES.get(one.type.lower(), BYTES["float"]) for one in each) for each in lists]
    values = sum(math.prod(one.shape) for one in lists[0])
    written = sum(bytes_of) - bytes_of[1] if operator.startswith("_fused_") else bytes_of[0]
    kind = Stated(operator=operator, flops=values * len(lists), moves=max(1, sum(bytes_of) + written))
    return (Gradient(kind=kind, phase=FORWARD, reads=lists[0][0].shape, of=((values,),), shape=(values,), made=(values,)),)


def _activation(kind: Kind) -> Callable[[Given], tuple[Gradient, ...]]:
    return lambda g: _same(kind, g.size(0))


GRADIENTS: dict[str, Callable[[Given], tuple[Gradient, ...]]] = {
    "convolution_backward": _convolution,
    **dict.fromkeys(("native_batch_norm_backward", "cudnn_batch_norm_backward", "miopen_batch_norm_backward"), _batch_norm),
    "native_layer_norm_backward": lambda g: _same(LayerNorm(), g.size(1)),
    "native_group_norm_backward": _group_norm,
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), _softmax),
    **dict.fromkeys(("max_pool2d_with_indices_backward", "avg_pool2d_backward"), _pool),
    "_adaptive_avg_pool2d_backward": _adaptive_pool,
    "embedding_dense_backward": _embedding,
    "_scaled_dot_product_flash_attention_backward": _attention(11),
    "_scaled_dot_product_efficient_attention_backward": _attention(11),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(7),
    "gelu_backward": _gelu,
    "threshold_backward": _activation(Relu()), "hardtanh_backward": _activation(Relu6()),
    "leaky_relu_backward": _activation(LeakyRelu()), "sigmoid_backward": _activation(Sigmoid()),
    "tanh_backward": _activation(Tanh()), "silu_backward": _activation(Silu()),
    "hardswish_backward": _activation(HardSwish()), "hardsigmoid_backward": _activation(HardSigmoid()),
}  # fmt: skip
