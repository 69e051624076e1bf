"""A module of PyTorch as a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.errors import ArgumentError, MissingExtra
from archsim.trace.readers.aten import model_of_program
from archsim.trace.readers.draft import NoProduct
from archsim.trace.readers.model import checked
from archsim.trace.readers.read import trace_at_batches
from archsim.trace.trace import Trace


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
