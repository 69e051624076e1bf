"""Programs of `torch.export` as a `ModelFile`, a call of ATen's operators as nodes of ONNX's vocabulary; modules as traces.

A call that the tables lack keeps its recorded shape, and is an operator that nobody knows: its memory traffic bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.errors import ArgumentError, InputError, MissingExtra, Unsupported
from archsim.trace.dims import short
from archsim.trace.readers.aten_rules import RULES
from archsim.trace.readers.draft import NoProduct
from archsim.trace.readers.model import ModelFile, StoredTensor, checked
from archsim.trace.readers.read import trace_at_batches
from archsim.trace.readers.torch_program import PRECISIONS, AtenCall, AtenProgram
from archsim.trace.trace import Trace

OPSET = 20
CONTROL = ("cond", "while_loop", "scan", "map", "map_impl")


def model_of_program(record: Mapping[str, Any], path: str) -> ModelFile:
    """The whole program. Raises Unsupported for control flow."""
    program = AtenProgram(record, path)
    for each in record["calls"]:
        call = AtenCall(program, each)
        try:
            _read(call)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            said = str(error) if str(error).startswith(("has ", "needs ")) else "has arguments that do not fit it"
            raise InputError(path, f"call {short(call.name)} ({call.operator}) {said}") from None
    dtypes = {PRECISIONS.get(name, ""): count for name, count in record["dtypes"].items()}
    known = {name: count for name, count in dtypes.items() if name}
    return ModelFile(
        path=path, name=record["name"], source=f"PyTorch {record['torch']}, torch.export",
        inputs={name: tuple(shape) for name, shape in record["inputs"].items()}, constants=program.held,
        nodes=tuple(program.nodes), outputs=tuple(dict.fromkeys(program.tensor(name) for name in record["outputs"])),
        hints=program.shapes, indices=frozenset(record["integers"]), opset=OPSET,
        dtype=max(known, key=lambda name: known[name]) if known else "fp32",
    )  # fmt: skip


def _read(c: AtenCall) -> None:
    """The nodes of one call."""
    if c.kind in CONTROL:
        said = "control flow: which of its graphs run depends on values"
        raise Unsupported(f"{c.program.path}: has {c.operator}, {said}")
    if not c.call["shapes"] or c.call["shapes"][0] is None:
        return
    for number, shape in enumerate(c.call["shapes"]):
        if shape is not None:
            c.program.shapes[c.result(number)] = tuple(shape)
    c.program.parts[c.name] = [c.result(number) for number in range(len(c.shapes))]
    RULES.get(c.kind, _unknown)(c)


def _unknown(c: AtenCall) -> None:
    """A call without a rule: fixed where it has no tensors, a function of each value where the shapes say so, else unknown."""
    tensors = c.inputs()
    if not tensors:
        c.program.held[c.result()] = StoredTensor(shape=c.shape)
        return
    outputs = [c.result(number) for number, shape in enumerate(c.call["shapes"]) if shape is not None]
    c.add(c.operator.removeprefix("aten."), tensors, *outputs, domain="aten" if c.operator.startswith("aten.") else "torch")


# -------------------------------------------------------------------------------------------------------------- modules


def trace_of_module(model: Any, inputs: Any, named: Mapping[str, Any] | None = None, batch: int | None = None) -> Trace:
    """What a module computes from inputs like these, with the batch as a symbol where all shapes grow with it.

    inputs: one tensor, or the sequence of positional ones; `named` those passed by name. Their values do not matter.
    batch: instead, a fixed number of samples, which the inputs must have
    Raises MissingExtra without torch, Unsupported for what torch cannot export or archsim cannot read.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("tracing a torch.nn.Module", "", "torch") from None
    from archsim.trace.readers.torch_program import PROBES, programs

    positional: Sequence[Any] = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs or ())
    tensors = [value for value in (*positional, *(named or {}).values()) if isinstance(value, torch.Tensor)]
    first = {value.shape[0] for value in tensors if value.dim()}
    if batch is not None and first != {batch}:
        raise ArgumentError(f"trace: batch {batch}: the first sizes of example_inputs are {sorted(first)}")
    found = programs(model, positional, named or {}, batch is None)
    try:
        return trace_of_programs(found, PROBES)
    except NoProduct:
        return trace_of_programs(programs(model, positional, named or {}, False), ())


def trace_of_programs(records: Sequence[Mapping[str, Any]], batches: Sequence[int]) -> Trace:
    """The trace of a recorded program, or of one at two batches. Raises NoProduct where they differ by more than the batch."""
    models = [checked(model_of_program(record, str(record.get("name", "program")))) for record in records]
    return trace_at_batches(models, batches)
