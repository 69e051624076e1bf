"""Calls of ATen in a profile: as models of their own or as gradients of ops; which of them count, and what repeats.

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
from archsim.trace.profiles.record import Argument, ProfiledCall, ProfiledTensor
from archsim.trace.readers.aten_rules import RULES
from archsim.trace.readers.model import ModelFile, checked
from archsim.trace.readers.read import trace_at_batches
from archsim.trace.readers.torch import model_of_program
from archsim.trace.readers.torch_program import LEARNED, NO_OPS, PRECISIONS, SCHEMA, TYPES, WHOLE, counted, operator_of

# operators that only change how a tensor is seen, or make one without reading any
VIEWS = frozenset((
    "view", "reshape", "_unsafe_view", "unflatten", "flatten", "squeeze", "unsqueeze", "view_as", "permute", "transpose", "t",
    "swapaxes", "expand", "expand_as", "chunk", "split", "split_with_sizes", "unbind", "tensor_split", "slice", "narrow",
    "select", "alias", "detach", "as_strided", "lift_fresh", "resolve_conj", "resolve_neg", "numpy_T", "T", "mT",
    "_reshape_alias", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize", "set", "item",
    "_local_scalar_dense", "is_nonzero", "result_type", "to", "_to_copy", "contiguous", "clone", "copy", "dropout",
    "feature_dropout", "unfold", "zero", "zeros", "ones", "zeros_like", "ones_like", "fill", "full", "full_like", "arange",
    "scalar_tensor", "new_zeros", "new_ones", "new_full",
))  # fmt: skip
VIEWED, MOVED = "changes only how a tensor is seen", "copies a tensor: layout, type or device"
# of these, the operators that copy where the layout, the type or the device asks for it
MOVES = frozenset(("to", "_to_copy", "contiguous", "clone", "copy", "reshape", "flatten"))
UNSHAPED = "has no tensors, or their shapes were not recorded"


def model_of_aten(call: ProfiledCall, space: str, kind: str, name: str, path: str) -> ModelFile | str:
    """A model of this one call, or why it is no op of a network. Raises ValueError, InputError or Unsupported."""
    if space == "aten" and kind in VIEWS:
        return VIEWED
    tensors = [each for each in call.arguments if isinstance(each, ProfiledTensor)]
    lists = [each for each in call.arguments if isinstance(each, list) and each and isinstance(each[0], ProfiledTensor)]
    if not tensors and not lists:
        return UNSHAPED
    largest = max((each.shape for each in tensors), key=math.prod, default=())  # where no rule says what it makes
    return model_of_program(_program(call, f"{space}.{kind}.default", kind, name, largest), path)


def _program(call: ProfiledCall, target: str, kind: str, name: str, shape: tuple[int, ...]) -> dict[str, Any]:
    held: dict[str, tuple[int, ...]] = {}
    inputs: dict[str, tuple[int, ...]] = {}
    whole: list[str] = []
    dtypes: dict[str, int] = {}

    def tensor(given: ProfiledTensor, place: int, part: str = "") -> dict[str, str]:
        called = f"{name}.in{place}{part}"
        learned = place in LEARNED.get(kind, ()) and kind not in ("expand", "t")
        (held if learned else inputs)[called] = given.shape
        if given.type.startswith(WHOLE) and not learned:
            whole.append(called)
        type_ = TYPES.get(given.type, "")
        if type_ in PRECISIONS:
            dtypes[type_] = dtypes.get(type_, 0) + math.prod(given.shape)
        return {"tensor": called}

    args: list[Any] = []
    for place, value in enumerate(call.arguments):
        if isinstance(value, ProfiledTensor):
            args.append(tensor(value, place))
        elif isinstance(value, list) and value and isinstance(value[0], ProfiledTensor):
            args.append([tensor(each, place, f".{i}") for i, each in enumerate(value)])
        else:
            args.append(value)
    made = {"call": target, "name": name, "args": args, "named": {}, "shapes": [list(shape)], "guessed": True}
    return {
        "schema": SCHEMA, "name": name, "torch": "", "held": held, "inputs": inputs, "outputs": [name], "dtypes": dtypes,
        "integers": whole, "calls": [made],
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ gradients

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


# ---------------------------------------------------------------------------------------------------- which calls count


def parents_of(starts: Sequence[float], durations: Sequence[float], threads: Sequence[int]) -> list[int]:
    """For each call, in the order in which they began, the call that it ran within; -1 for none."""
    open_: dict[int, list[int]] = {}
    found = []
    for i, (start, duration, thread) in enumerate(zip(starts, durations, threads, strict=True)):
        stack = open_.setdefault(thread, [])
        while stack and starts[stack[-1]] + durations[stack[-1]] < start + min(duration, 1e-9):
            stack.pop()
        while stack and starts[stack[-1]] + durations[stack[-1]] <= start and duration > 0:
            stack.pop()
        found.append(stack[-1] if stack else -1)
        stack.append(i)
    return found


def counted_calls(
    starts: Sequence[float], durations: Sequence[float], threads: Sequence[int], names: Sequence[str], launched: Sequence[bool]
) -> tuple[list[int], dict[int, int]]:
    """The calls that count, in the order in which they began; and for each call within one of them, that one.

    A kernel that a compiler made has no operator around it: its launch counts, `launched`, under the name of the kernel.
    """
    called = [operator_of(name) for name in names]
    known = [space == "aten" and ((kind in RULES and kind not in VIEWS) or is_gradient(kind)) for space, kind in called]
    able = [space not in NO_OPS if kind else each for (space, kind), each in zip(called, launched, strict=True)]
    return counted(parents_of(starts, durations, threads), able, known)


def outermost(starts: Sequence[float], durations: Sequence[float], threads: Sequence[int]) -> list[int]:
    """The places of the outermost calls of the thread that has most of them, in the order in which they began."""
    order = sorted(range(len(starts)), key=lambda i: (starts[i], -durations[i]))
    ends: dict[int, float] = {}
    found: dict[int, list[int]] = {}
    for i in order:
        thread = threads[i]
        if starts[i] >= ends.get(thread, float("-inf")):
            found.setdefault(thread, []).append(i)
            ends[thread] = starts[i] + durations[i]
    return max(found.values(), key=len)


def period(items: Sequence[int]) -> int:
    """The length of the shortest beginning whose repetitions are all of the list; its own length where it repeats nothing.

    >>> period([1, 2, 1, 2, 1, 2]), period([1, 2, 1])
    (2, 3)
    """
    border = [0] * len(items)
    k = 0
    for i in range(1, len(items)):
        while k and items[i] != items[k]:
            k = border[k - 1]
        k += items[i] == items[k]
        border[i] = k
    length = len(items) - border[-1] if items else 0
    return length if items and len(items) % length == 0 else len(items)
