"""A call of ATen as a model of its own, in the form in which programs of `torch.export` are read."""

from __future__ import annotations

import math
from typing import Any

from archsim.trace.chakra.pytorch import LEARNED, TYPES, WHOLE
from archsim.trace.profiles.nesting import MOVED, MOVES, VIEWED, VIEWS
from archsim.trace.profiles.record import ProfiledCall, ProfiledTensor
from archsim.trace.profiles.results import result_shape
from archsim.trace.readers.aten import model_of_program
from archsim.trace.readers.model import ModelFile
from archsim.trace.readers.torch_program import PRECISIONS, SCHEMA

AS = {  # operators of one implementation -> what they are
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_cudnn_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
}


def model_of_aten(call: ProfiledCall, space: str, kind: str, name: str, path: str) -> ModelFile | str:
    """A model of this one call, or why it is no op of a network. Raises ValueError, InputError or Unsupported."""
    kind = AS.get(kind, kind) if space == "aten" else kind
    if space == "aten" and kind in VIEWS:
        return MOVED if kind in MOVES else VIEWED
    tensors = [each for each in call.arguments if isinstance(each, ProfiledTensor)]
    lists = [each for each in call.arguments if isinstance(each, list) and each and isinstance(each[0], ProfiledTensor)]
    if not tensors and not lists:
        return "has no tensors, or their shapes were not recorded"
    shape = result_shape(kind, call.arguments) if space == "aten" else None
    if shape is None:
        shape = max((each.shape for each in tensors), key=math.prod, default=())
    if not math.prod(shape):
        return "makes an empty tensor"
    program = _program(call, f"{space}.{kind}.default", kind, name, shape)
    return model_of_program(program, path)


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
    return {
        "schema": SCHEMA, "name": name, "torch": "", "held": held, "inputs": inputs, "outputs": [name], "dtypes": dtypes,
        "integers": whole, "calls": [{"call": target, "name": name, "args": args, "named": {}, "shapes": [list(shape)]}],
    }  # fmt: skip
