"""A module of PyTorch as a record of its program, by `torch.export`; the only module that needs torch, which the user has.

The record is plain data: calls of ATen's operators with the shapes of all tensors, without any values. `aten` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.errors import ArgumentError, Unsupported

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
