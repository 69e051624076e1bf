"""A call of ATen as a model of its own, in the form in which programs of `torch.export` are read."""

from __future__ import annotations

import math
from typing import Any

from archsim.trace.profiles.record import ProfiledCall, ProfiledTensor
from archsim.trace.readers.aten import model_of_program
from archsim.trace.readers.aten_calls import LEARNED, TYPES, WHOLE
from archsim.trace.readers.model import ModelFile
from archsim.trace.readers.torch_program import PRECISIONS, SCHEMA

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
