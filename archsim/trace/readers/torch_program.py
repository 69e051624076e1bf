"""A program of PyTorch as a record, by `torch.export` (only this module needs torch), and its calls of ATen's operators.

The record is plain data: calls of ATen's operators with the shapes of all tensors, without any values. `torch` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archsim.base.errors import ArgumentError, InputError, Unsupported
from archsim.trace.readers.model import Array, ModelNode, StoredTensor

PROBES = (11, 13)  # batches at which a module is exported, to see which sizes grow with it
SCHEMA = "archsim-program/1"
PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8"}


def programs(model: Any, inputs: Sequence[Any], named: Mapping[str, Any], batch: bool) -> list[dict[str, Any]]:
    """The module at two batches, or with `batch` False as its inputs are. Raises Unsupported for one that torch cannot export."""
    import torch

    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"trace: {type(model).__name__} is no torch.nn.Module")
    tensors = [value for value in (*inputs, *named.values()) if isinstance(value, torch.Tensor)]
    if not tensors:
        raise ArgumentError("trace: example_inputs hold no tensor")
    first = {value.shape[0] for value in tensors if value.dim()}
    if not batch or len(first) != 1:
        return [_record(model, inputs, named)]

    def at(value: Any, size: int) -> Any:
        if not isinstance(value, torch.Tensor) or not value.dim() or value.shape[0] == 0:
            return value
        return value[:1].expand(size, *value.shape[1:]).contiguous()

    return [_record(model, [at(v, size) for v in inputs], {k: at(v, size) for k, v in named.items()}) for size in PROBES]


def _record(model: Any, inputs: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            program = torch.export.export(model, tuple(inputs), dict(named))
    except Exception as error:  # torch has no common base for what it cannot export
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise Unsupported(f"trace: torch.export cannot export {type(model).__name__}: {said[0][:300]}") from None
    finally:
        model.train(training)
    return record(program, type(model).__name__)


def record(program: Any, name: str) -> dict[str, Any]:
    """An exported program as plain data."""
    import torch

    held = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name != "USER_INPUT"}
    found: dict[str, Any] = {"schema": SCHEMA, "name": name, "torch": torch.__version__.split("+")[0], "inputs": {}, "held": {},
                             "calls": [], "outputs": [], "integers": [], "dtypes": {}}  # fmt: skip
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            if isinstance(value, torch.Tensor):
                found["held" if node.name in held else "inputs"][node.name] = _shape(value)
                dtype = str(value.dtype).removeprefix("torch.")
                if not value.dtype.is_floating_point and node.name not in held:
                    found["integers"].append(node.name)
                if node.name in held:
                    found["dtypes"][dtype] = found["dtypes"].get(dtype, 0) + value.numel()
        elif node.op == "call_function":
            makes = value if isinstance(value, tuple | list) else [value]
            shapes = [_shape(each) if isinstance(each, torch.Tensor) else None for each in makes]
            found["calls"].append({"call": _called(node.target), "name": node.name, "args": _plain(node.args),
                                   "named": _plain(dict(node.kwargs)), "shapes": shapes})  # fmt: skip
        elif node.op == "output":
            ends = [each for each in _flat(_plain(node.args)) if isinstance(each, dict)]
            found["outputs"] = [each["tensor"] for each in ends if "tensor" in each]
        elif node.op == "get_attr":
            attribute = program.graph_module
            for part in str(node.target).split("."):
                attribute = getattr(attribute, part, None)
            if isinstance(attribute, torch.Tensor):
                found["held"][node.name] = _shape(attribute)
    return found


def _called(target: Any) -> str:
    name = str(target)
    return "getitem" if "getitem" in name else name


def _shape(value: Any) -> list[int]:
    return [int(size) for size in value.shape]


def _plain(value: Any) -> Any:
    """Arguments as data: tensors by name, what has no form of its own as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if type(value).__name__ == "Node":
        return {"tensor": value.name}
    return str(value)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [each for part in value for each in _flat(part)]
    if isinstance(value, dict) and "tensor" not in value:
        return [each for part in value.values() for each in _flat(part)]
    return [value]


# -------------------------------------------------------------------------------------------- calls of ATen's operators

CALL = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_][\w.]*)")
NO_OPS = ("c10d", "nccl", "autograd", "profiler", "cuda", "cudart", "record_function", "torch")  # only start others
TYPES = {"float": "float32", "c10::Half": "float16", "c10::BFloat16": "bfloat16", "half": "float16", "bfloat16": "bfloat16",
         "float16": "float16", "float32": "float32", "c10::Float8_e4m3fn": "float8_e4m3fn",
         "c10::Float8_e5m2": "float8_e5m2"}  # fmt: skip
WHOLE = ("int", "long", "short", "bool", "char", "uint8", "int64", "int32")  # beginnings of names of types
# operators -> the places of their arguments that are learned values
LEARNED = {
    "embedding": (0,), "addmm": (0, 2), "t": (0,), "expand": (0,), "embedding_bag": (0,),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
                     "linear", "prelu"), (1, 2)),
    **dict.fromkeys(("batch_norm", "native_batch_norm", "instance_norm"), (1, 2, 3, 4)),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "group_norm", "rms_norm"), (1, 2, 3)), "lstm": (2,), "gru": (2,),
    "rnn_tanh": (2,), "rnn_relu": (2,),
}  # fmt: skip
NOT_RECORDED = ...  # in the place of an argument that is no tensor


def operator_of(name: str) -> tuple[str, str]:
    """Namespace and operator of a call, without the mark of one that works in place; empty for what is no call.

    >>> operator_of("aten::add_"), operator_of("autograd::engine::evaluate_function: AddmmBackward0")
    (('aten', 'add'), ('', ''))
    """
    found = CALL.fullmatch(name)
    return (found[1], found[2].partition(".")[0].rstrip("_") or found[2]) if found else ("", "")


def counted(parents: Sequence[int], able: Sequence[bool], known: Sequence[bool]) -> tuple[list[int], dict[int, int]]:
    """Of nested calls the outermost one that is known, or of unknown ones the outermost; and for each call within one, that one.

    parents: the call that each ran within, which stands before it; -1 for none
    able: whether a call can count at all
    """
    above = [False] * len(parents)  # whether a known call runs inside
    for i in range(len(parents) - 1, -1, -1):
        if parents[i] >= 0 and (known[i] or above[i]):
            above[parents[i]] = True
    chosen: list[int] = []
    within: dict[int, int] = {}
    for i, parent in enumerate(parents):
        if parent in within:
            within[i] = within[parent]
        elif able[i] and (known[i] or not above[i]):
            chosen.append(i)
            within[i] = i
    return chosen, within


class AtenProgram:
    """The nodes of a program while its calls are read one by one."""

    def __init__(self, record: Mapping[str, Any], path: str) -> None:
        if record.get("schema") != SCHEMA:
            raise InputError(path, f"is no program of {SCHEMA}")
        self.path, self.record = path, record
        self.held = {name: StoredTensor(shape=tuple(shape)) for name, shape in record["held"].items()}
        self.shapes: dict[str, tuple[int, ...]] = {
            name: tuple(shape) for group in ("held", "inputs") for name, shape in record[group].items()
        }
        self.nodes: list[ModelNode] = []
        self.parts: dict[str, list[str]] = {}  # calls with several results -> their tensors
        self.same: dict[str, str] = {}

    def tensor(self, name: str) -> str:
        """The tensor that a name of the program stands for."""
        while name in self.same:
            name = self.same[name]
        return name

    def constant(self, name: str, value: Array) -> str:
        """A tensor of the program's own text."""
        free, number = name, 1
        while free in self.held or free in self.shapes:
            number += 1
            free = f"{name}.{number}"
        self.held[free] = StoredTensor(shape=value.shape, value=value)
        self.shapes[free] = value.shape
        return free


class AtenCall:
    """One call: its arguments by place or name, and the nodes that it becomes."""

    def __init__(self, program: AtenProgram, call: Mapping[str, Any]) -> None:
        self.program, self.call = program, call
        self.name: str = call["name"]
        self.operator: str = call["call"]
        aten = self.operator.startswith("aten.")
        self.kind = self.operator.split(".")[1].rstrip("_") if aten else self.operator.removesuffix(".default")
        self.args: list[Any] = call["args"]
        self.shapes: list[tuple[int, ...]] = [tuple(shape or ()) for shape in call["shapes"]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result, as it was recorded. Raises ValueError where it was not."""
        if self.call.get("guessed"):
            raise ValueError("needs the shape of its result, which was not recorded")
        return self.shapes[0] if self.shapes else ()

    def result(self, number: int = 0) -> str:
        """The tensor of a result."""
        return self.name if len(self.shapes) == 1 else f"{self.name}.{number}"

    def at(self, place: int, name: str = "", default: Any = None) -> Any:
        """An argument, or its default where there is none."""
        found = self._given(place, name)
        if found is NOT_RECORDED:
            raise ValueError(f"has an argument {place} that was not recorded: profiles of PyTorch 2.1 and later hold it")
        return default if found is None else found

    def _given(self, place: int, name: str) -> Any:
        return self.args[place] if place < len(self.args) else self.call["named"].get(name)

    def tensor(self, place: int, name: str = "") -> str:
        """A tensor among the arguments, a number as a constant; empty where there is none."""
        return self._tensor(self._given(place, name), f"{self.name}.{place}")

    def _tensor(self, value: Any, name: str) -> str:
        if isinstance(value, dict) and "tensor" in value:
            return self.program.tensor(value["tensor"])
        if isinstance(value, bool | int | float):
            return self.program.constant(name, np.array(value, np.float32 if isinstance(value, float) else np.int64))
        return ""

    def tensors(self, place: int) -> list[str]:
        """A list of tensors."""
        return [self._tensor(value, f"{self.name}.{place}.{i}") for i, value in enumerate(self.at(place, default=[]))]

    def size(self, tensor: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self.program.shapes[tensor]

    def axis(self, place: int, name: str = "dim", default: int = -1, rank: int | None = None) -> int:
        """A dimension, from the front."""
        found = int(self.at(place, name, default))
        count = len(self.size(self.tensor(0))) if rank is None else rank
        return found % max(1, count)

    def pair(self, place: int, name: str, default: Any, rank: int = 2) -> list[int]:
        """One number for each dimension of an image."""
        found = self.at(place, name, default)
        found = default if found is None or found == [] else found
        listed = [int(found)] if isinstance(found, int) else [int(each) for each in found]
        return listed * rank if len(listed) == 1 else listed

    def add(self, kind: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        """One node; its result is that of the call if no other is named."""
        made = outputs or (self.result(),)
        self.program.nodes.append(ModelNode(kind=kind, name=self.name, inputs=tuple(inputs), outputs=tuple(made),
                                            attributes=attributes, domain=domain))  # fmt: skip
        return made[0]

    def step(self, kind: str, inputs: Sequence[str], shape: Sequence[int], part: str, **attributes: Any) -> str:
        """A node on the way to the result."""
        made = f"{self.name}.{part}"
        self.program.shapes[made] = tuple(shape)
        return self.add(kind, inputs, made, **attributes)

    def whole(self, part: str, values: Sequence[int]) -> str:
        """A vector of whole numbers."""
        return self.program.constant(f"{self.name}.{part}", np.array(values, np.int64))

    def view(self, tensor: str, shape: Sequence[int], part: str = "") -> str:
        """A tensor under another shape: a part on the way, or the result."""
        wanted = self.whole("shape", shape)
        return self.step("Reshape", [tensor, wanted], shape, part) if part else self.add("Reshape", [tensor, wanted], allowzero=1)

    def alias(self, tensor: str) -> None:
        """The result is another tensor."""
        self.program.same[self.result()] = tensor

    def empty(self) -> bool:
        """Whether a call has no tensors."""
        return not self.inputs()

    def inputs(self) -> list[str]:
        """All tensors among the arguments, once each."""
        found: list[str] = []
        for value in [*self.args, *self.call["named"].values()]:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, dict) and "tensor" in each:
                    found.append(self.program.tensor(each["tensor"]))
        return [*dict.fromkeys(found)]
