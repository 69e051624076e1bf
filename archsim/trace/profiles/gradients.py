"""Calls of ATen that compute gradients or update parameters, as the gradients of ops of a network, with the shapes of these.

A backward operator holds the arguments of its forward one at other places. A row says which, so that the forward call, and the op
that it is, are read as everywhere. Arguments by place: pytorch/pytorch, aten/src/ATen/native/native_functions.yaml.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from archsim.trace.dims import Shape
from archsim.trace.kind import BACKWARD, BACKWARD_DATA, BACKWARD_FILTER, FORWARD, Kind
from archsim.trace.kinds.dense import Embedding
from archsim.trace.kinds.general import Stated
from archsim.trace.kinds.normalise import BatchNorm
from archsim.trace.profiles.aten import model_of_aten
from archsim.trace.profiles.record import Argument, ProfiledCall, ProfiledTensor
from archsim.trace.readers.model import checked
from archsim.trace.readers.read import trace_at_batches

BYTES = {"float": 4, "double": 8, "half": 2, "c10::half": 2, "bfloat16": 2, "c10::bfloat16": 2}  # of a value, by its type


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


class Backward(NamedTuple):
    """The forward operator of a gradient, and its arguments: by place among those of the backward call, or worked out of them.

    of: the place of what the gradient is computed of
    """

    forward: str
    arguments: tuple[int | Callable[[Sequence[Argument]], Any] | None, ...] = (0,)
    of: int = 0


def gradients_of(call: ProfiledCall, operator: str) -> tuple[Gradient, ...]:
    """What a call of one of `GRADIENTS`, or of an optimiser, computes. Raises ValueError or InputError where it does not fit."""
    try:
        return _updated(call, operator) if is_update(operator) else _gradients(call, GRADIENTS[operator])
    except (IndexError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"has arguments that do not fit ({type(error).__name__})") from None


def is_gradient(operator: str) -> bool:
    """Whether an operator of ATen has a rule here."""
    return operator in GRADIENTS or is_update(operator)


def is_update(operator: str) -> bool:
    """Whether it is one kernel over the parameters of an optimiser, or over a group of them."""
    return operator.startswith(("_foreach_", "_fused_adam", "_fused_sgd", "_fused_adagrad"))


def _gradients(call: ProfiledCall, row: Backward) -> tuple[Gradient, ...]:
    given = call.arguments
    arguments = tuple([given[each] if isinstance(each, int) else each and each(given) for each in row.arguments])
    model = model_of_aten(replace(call, arguments=arguments), "aten", row.forward, row.forward, "")
    if isinstance(model, str):
        raise ValueError(model)
    op = next(op for op in reversed(trace_at_batches([checked(model)], ()).bind().ops) if op.kind.op != "reshape")
    if op.kind.op == "traffic":
        raise ValueError(f"is the gradient of a form of {row.forward} that is not known")
    kind = replace(op.kind, training=True) if isinstance(op.kind, BatchNorm) else op.kind
    made = [(BACKWARD, given[row.of].shape)]
    if row.forward == "convolution":
        wanted = zip((BACKWARD_DATA, BACKWARD_FILTER), given[1:3], _chosen(given), strict=False)
        made = [(phase, tensor.shape) for phase, tensor, asked in wanted if asked]
    elif isinstance(kind, Embedding):
        made = [(BACKWARD_FILTER, (kind.vocabulary, kind.features))]
    return tuple([Gradient(kind=kind, phase=phase, reads=given[0].shape, of=op.input_shapes, shape=op.shape, made=shape)
                  for phase, shape in made])  # fmt: skip


def _chosen(given: Sequence[Argument]) -> list[bool]:
    """The `output_mask` of a convolution, a list of truth values as text: gradients of its input, weights and biases."""
    return [word.strip() == "True" for word in str(given[10]).strip("[] ").split(",")]


def _biases(given: Sequence[Argument]) -> ProfiledTensor | None:
    """Those of a convolution, where their gradient is wanted; of another they were not recorded."""
    return ProfiledTensor(shape=given[0].shape[1:2]) if _chosen(given)[2:] == [True] else None


def _table(given: Sequence[Argument]) -> ProfiledTensor:
    return ProfiledTensor(shape=(int(given[2]), given[0].shape[-1]))


def _updated(call: ProfiledCall, operator: str) -> tuple[Gradient, ...]:
    """A pass over lists of parameters: each list is read, and the first written; fused optimisers write all but gradients."""
    lists = [each for each in call.arguments if isinstance(each, list) and each and isinstance(each[0], ProfiledTensor)]
    bytes_of = [sum(math.prod(one.shape) * BYTES.get(one.type.lower(), BYTES["float"]) for one in each) for each in lists]
    values = sum(math.prod(one.shape) for one in lists[0])
    written = sum(bytes_of) - bytes_of[1] if operator.startswith("_fused_") else bytes_of[0]
    kind = Stated(operator=operator, flops=values * len(lists), moves=max(1, sum(bytes_of) + written))
    return (Gradient(kind=kind, phase=FORWARD, reads=lists[0][0].shape, of=((values,),), shape=(values,), made=(values,)),)


def _attention(causal: int) -> Backward:
    return Backward("scaled_dot_product_attention", (1, 2, 3, None, None, causal), 1)


POOLING = (1, 2, 3, 4, 5, 6)
GRADIENTS: Mapping[str, Backward] = {
    "convolution_backward": Backward("convolution", (1, 2, _biases, 4, 5, 6, 7, 8, 9), 1),
    **dict.fromkeys(("native_batch_norm_backward", "cudnn_batch_norm_backward", "miopen_batch_norm_backward"),
                    Backward("native_batch_norm", (1,), 1)),
    "native_layer_norm_backward": Backward("layer_norm", (1, 2), 1),
    "native_group_norm_backward": Backward("group_norm", (1, 8), 1),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), Backward("softmax", (0, 2))),
    "max_pool2d_with_indices_backward": Backward("max_pool2d", POOLING, 1),
    "avg_pool2d_backward": Backward("avg_pool2d", POOLING, 1),
    "_adaptive_avg_pool2d_backward": Backward("adaptive_avg_pool2d", (1, lambda given: [*given[0].shape[-2:]]), 1),
    "embedding_dense_backward": Backward("embedding", (_table, 1)),
    "_scaled_dot_product_flash_attention_backward": _attention(11),
    "_scaled_dot_product_efficient_attention_backward": _attention(11),
    "_scaled_dot_product_cudnn_attention_backward": _attention(14),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(7),
    "gelu_backward": Backward("gelu", (0, 2)), "threshold_backward": Backward("relu"),
    "hardtanh_backward": Backward("hardtanh", (0, 2, 3)),
    **{f"{name}_backward": Backward(name) for name in ("leaky_relu", "sigmoid", "tanh", "silu", "hardswish", "hardsigmoid")},
}  # fmt: skip
