"""Networks as graphs of ops, with shapes, work and dependencies, and a symbolic batch.

`load("alexnet")` gives a `Trace`, `trace.bind(N=16)` a `BoundTrace`, and `task_trace` adds gradients and updates.
"""

from __future__ import annotations

from archsim.trace.file import dumps, load, loads, names
from archsim.trace.op import KINDS, Kind
from archsim.trace.trace import BoundOp, BoundTrace, Op, Trace
from archsim.trace.training import TASKS, backward, task_trace, training_step

__all__ = [
    "KINDS", "TASKS", "BoundOp", "BoundTrace", "Kind", "Op", "Trace",
    "backward", "dumps", "load", "loads", "names", "task_trace", "training_step",
]  # fmt: skip
