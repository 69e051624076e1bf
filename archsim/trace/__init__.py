"""Networks as graphs of ops, with shapes, work and dependencies, and a symbolic batch.

`load("alexnet")` gives a `Trace`, `trace.bind(N=16)` a `BoundTrace`, and `task_trace` adds gradients and updates.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from archsim.trace.file import dumps, load, loads, names
from archsim.trace.op import KINDS, Kind
from archsim.trace.trace import BoundOp, BoundTrace, Op, Trace
from archsim.trace.training import TASKS, backward, task_trace, training_step

__all__ = [
    "KINDS", "TASKS", "BoundOp", "BoundTrace", "Kind", "Op", "Trace",
    "backward", "dumps", "load", "loads", "names", "task_trace", "training_step",
]  # fmt: skip


class TraceFunction(ModuleType):
    """This package, which is also the function `archsim.trace(model, example_inputs)`."""

    def __call__(self, model: Any, example_inputs: Any = (), *, batch: int | None = None, **named: Any) -> Trace:
        """The trace of a `torch.nn.Module`, by `torch.export`; the batch is a symbol where all shapes grow with it.

        example_inputs: one tensor or a sequence; `named` are those passed by name. Their values do not matter.
        batch: a fixed number of samples instead, which the inputs must have

        The answer is a network wherever one is named: `archsim.estimate(net=archsim.trace(model, x), hw="gtx_1080")`.
        Raises MissingExtra without torch, Unsupported for what torch cannot export or archsim cannot read.
        """
        from archsim.trace.readers.torch import trace_of_module

        return trace_of_module(model, example_inputs, named, batch)


sys.modules[__name__].__class__ = TraceFunction
