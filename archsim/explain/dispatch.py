"""What the host adds to an op: the equation of its time, read from the function that computes it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from archsim.cost.cost import Array
from archsim.cost.dispatch import host_time
from archsim.estimation.pipeline import Run
from archsim.estimation.request import Request
from archsim.explain.equation import Equation, Step, solve
from archsim.explain.kernel import needed
from archsim.explain.reader import Leaf, Reader
from archsim.explain.value import Value

MEANINGS = {"issue": "what the host spends on the op, ahead of the device", "stall": "what it spends while the device waits"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpOnHost:
    """What one op asks of the host.

    host_ops: calls of the framework for the op
    nested: calls of one op from another's
    library: calls of a library that chooses among its kernels
    stalls: times that the device waits for the host
    launches: kernels that the op launches
    time_s: time of its kernels [s]
    """

    host_ops: Array
    nested: Array
    library: Array
    stalls: Array
    launches: Array
    time_s: Array


def host_steps(request: Request, result: Run, index: int, plan: int) -> tuple[tuple[Step, ...], dict[str, Leaf]]:
    """The equations of what the host spends on the op at `index`, whose kernels are those of `plan`, and what their names are.

    Nothing for an op that launches nothing, for a stack without dispatch overhead, and for a graph that is replayed.
    """
    if plan < 0 or not request.stack.host or request.graph:
        return (), {}
    kernels, one = result.lowered.kernels, slice(plan, plan + 1)
    asked = {name: getattr(kernels, name, np.zeros(plan + 1))[one] for name in ("host_ops", "nested", "library", "stalls")}
    op = OpOnHost(**asked, launches=result.cost.launches[0, one], time_s=result.cost.time_s[0, one])
    known = {"kernels": op, "cost": op, "stack": request.stack, "device": request.device, "constants": request.calibration}
    given = [Value(value=known[name]) if name in known else Value(value=getattr(request, name), path=name)
             for name in inspect.signature(host_time).parameters]  # fmt: skip
    spent = float(result.host_s[0, index])
    reader = Reader(model=lambda name: None)
    times = reader.read(host_time, *given).value
    parts = {name: times[f"{name}_s"] for name in MEANINGS if not times[f"{name}_s"].absent}
    named = {name: reader.named(part, name) for name, part in parts.items()}
    steps = [replace(step, unit="s", meaning=MEANINGS[part]) if (part := _part(named, step)) else step
             for step in reader.steps.values()]  # fmt: skip
    if len(named) == 1 and steps and _part(named, steps[-1]):
        found, leaves = needed([*steps[:-1], replace(steps[-1], name="host", value=spent)], reader)
        return tuple(found), leaves
    both = Equation(name="host", unit="s", text=" + ".join(named.values()) or "0", meaning="what the host spends on the op")
    quantities = {**reader.quantities, **{step.name: (step.value, step.unit) for step in steps}}
    found, leaves = needed([*steps, *solve([both], quantities, {"host": spent})], reader)
    return tuple(found), leaves


def _part(named: Mapping[str, str], step: Step) -> str:
    """Which part of the host's time a step is; none for what leads to it."""
    return next((part for part, name in named.items() if name == step.name), "")
