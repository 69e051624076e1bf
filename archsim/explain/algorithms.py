"""Why one algorithm runs an op and others do not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from archsim.base.errors import Unsupported
from archsim.device.device import PRECISION_BYTES
from archsim.estimation.hardware import on_tensor_cores
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request
from archsim.lower.context import Context
from archsim.lower.fusion import STAGE
from archsim.lower.layer import untransposed
from archsim.trace.trace import BoundOp

# What a convolution would have to be like for an algorithm to run it; tried one by one, then together.
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "stride 1": {"stride": (1, 1)},
    "no dilation": {"dilation": (1, 1)},
    "filters larger than 1 x 1": {"kernel": (5, 5)},
    "3 x 3 filters": {"kernel": (3, 3)},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One algorithm of the stack for an op. `time_s` and `workspace` are None where it cannot run at all."""

    algorithm: str
    kernels: tuple[str, ...]
    time_s: float | None
    workspace: float | None
    verdict: str  # "chosen", "slower", "workspace" (more than the limit), "geometry" (cannot run this layer)
    reason: str


def candidates(request: Request, result: Run, index: int) -> tuple[Candidate, ...]:
    """What the stack could run the op with, the fastest first, then what it could not."""
    plan = int(result.lowered.plan_of[index])
    if plan < 0:
        return ()
    op = request.trace.ops[index]
    found = _options(result, plan)
    names = {row.algorithm for row in found}
    if STAGE in names:
        into = result.lowered.into
        count = 1 + sum(into.get(other.name) == op.name and other.kind.op == "conv2d" for other in request.trace.ops)
        return tuple([replace(row, reason=f"one kernel for {count} convolutions") for row in found])
    listed = [name for name in _listed(request, op) if name not in names]
    large = [row for row in _unlimited(request, op) if row.algorithm in listed] if listed else []
    rest = [name for name in listed if name not in {row.algorithm for row in large}]
    return (*found, *large, *[_impossible(request, op, name) for name in rest])


def _options(result: Run, plan: int, over: bool = False) -> list[Candidate]:
    """The options of a plan; those `over` the workspace limit are none that could be chosen."""
    kernels, choice = result.lowered.kernels, result.cost.choice
    assert choice is not None
    ends = [*kernels.plan_start.tolist(), len(kernels.options)]
    chosen = int(result.cost.option[0, plan])
    best = float(choice.option_time_s[0, chosen])
    rows = []
    for i in range(ends[plan], ends[plan + 1]):
        option, time = kernels.options[i], float(choice.option_time_s[0, i])
        longer = f"{time / best:.3g} times as long" if time > best else "it takes as long, and the library lists it later"
        verdict, reason = ("chosen", "the fastest") if i == chosen else ("slower", longer)
        if over:
            verdict, reason = "workspace", "its workspace is over the limit of the stack"
        rows.append(Candidate(algorithm=option.algorithm, kernels=tuple([kernel.name for kernel in option.kernels]), time_s=time,
                              workspace=option.workspace, verdict=verdict, reason=reason))  # fmt: skip
    return sorted(rows, key=lambda row: (row.verdict != "chosen", row.time_s))


def _listed(request: Request, op: BoundOp) -> list[str]:
    """The algorithms that the stack has for a convolution."""
    plain = untransposed(op)
    if plain.kind.op != "conv2d":
        return []
    device = request.device
    context = Context(stack=request.stack, device_kind=device.kind, element=PRECISION_BYTES[request.precision], training=False,
                      tensor=on_tensor_cores(device, request.precision),
                      architecture=device.identity.kernels_of)  # fmt: skip
    return list(context.algorithms(plain.phase))


def _unlimited(request: Request, op: BoundOp) -> list[Candidate]:
    """All options of the op if the workspace had no limit."""
    conv = replace(request.stack.conv, workspace_limit=math.inf)
    stack = replace(request.stack, conv=conv)
    alone = replace(request, stack=stack, trace=replace(request.trace, ops=(op,)))
    try:
        return _options(run(alone), 0, over=True)
    except Unsupported:
        return []


def _impossible(request: Request, op: BoundOp, algorithm: str) -> Candidate:
    """Why an algorithm cannot run a layer: the least change to the layer after which it could."""
    plain, reason = untransposed(op), "it cannot run this layer"
    for goal in [goal for size in (1, 2, 3) for goal in combinations(CHANGES, size)]:
        changes = {key: value for name in goal for key, value in CHANGES[name].items()}
        changed = replace(plain, kind=replace(plain.kind, **changes))
        if changed.kind != plain.kind and algorithm in {row.algorithm for row in _unlimited(request, changed)}:
            reason = f"it needs {' and '.join(goal)}"
            break
    return Candidate(algorithm=algorithm, kernels=(), time_s=None, workspace=None, verdict="geometry", reason=reason)
