"""From a published row to a request, and from what the pipeline makes of it to the value that was measured.

Whatever compares predictions with measurements goes through here: an estimate's references, validation, fits, baselines.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.team import dispatch_clock
from archsim.device.device import Cpu, Gpu
from archsim.estimation.clock import clock_and_limit
from archsim.estimation.fidelity import FITTED, find
from archsim.estimation.pipeline import Run, mean_clock, run
from archsim.estimation.request import Request, host_of
from archsim.evidence.case import Anchor, Case
from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack

NOTHING: frozenset[str] = frozenset()


def request_of(
    case: Case, calibration: Calibration, fidelity: str = FITTED, without: frozenset[str] = NOTHING
) -> Request:
    """The request whose answer was measured: all conditions of the row, defaults where it states none."""
    device = case.spec.device
    clock, limit = clock_and_limit(case.spec, case.clock, case.limit, without, measured=True)
    threads = case.threads
    if not isinstance(device, Cpu):
        threads = None
    elif threads is None:
        threads = int(case.stack.usual_threads(device.core.count, device.core.threads))
    return Request(
        network=case.label, trace=case.trace, work=case.work, spec=case.spec, stack=reduced(case.stack, without), task=case.task,
        batch=case.batch, precision=case.precision, threads=threads, clock=clock, turbo=case.clock is None, limit=limit,
        fidelity=find(fidelity), calibration=calibration, host_cpu=case.host_cpu or host_of(case.spec),
        dispatch=case.dispatch, group=case.group, without=without,
        graph=case.replayed, stored=case.stored,
    )  # fmt: skip


def anchored(request: Request, anchor: Anchor) -> Request:
    """The request of the run that another one is compared with: the same under the anchor's power limit."""
    return replace(request, limit=anchor.limit)


def predicted(case: Case, request: Request) -> tuple[float, Run]:
    """The prediction of one measured value, in the unit of its metric, and the run that it comes from."""
    result = run(request)
    value = value_of(case, request, result)
    if case.anchor is not None:
        other = anchored(request, case.anchor)
        value = relative(case.anchor, value, value_of(case, other, run(other)))
    return value, result


def relative(anchor: Anchor, value: float, there: float) -> float:
    """The value that a predicted ratio stands for, in the unit of the metric: value / there x what was measured there.

    >>> relative(Anchor(limit=300.0, measured=10.0), 1.2, 1.0)
    12.0
    """
    return value / there * anchor.measured


def value_of(case: Case, request: Request, result: Run) -> float:
    """What was measured, as the run of its request gives it [s, 1/s, W, J or Hz]. The batch of a rate is the source's own."""
    if case.metric == "clock_hz":
        return float(mean_clock(request, result)[0])
    if case.metric == "energy_j":
        return float(result.total_energy_j[0])
    latency_s = float(result.latency_s[0])
    if case.system is not None:
        from archsim.estimation.wall import of_case

        return of_case(case, request, float(result.total_energy_j[0]) / latency_s, latency_s)
    if case.metric == "power_w":
        return float(result.total_energy_j[0]) / latency_s
    device, calibration = case.spec.device, request.calibration
    known = {
        "run_s": latency_s, "wait_s": float(result.timeline.wait_s[0].sum()), "host_s": float(result.host_s[0].sum()),
        "calls": case.calls, "gap_s": calibration["graph.gap_s"],
        "launch_s": float(np.ravel(calibration["graph.launch_clk"] / dispatch_clock(request.host))[0]),
        "latency_s": float(np.ravel(device.launch.latency)[0]) if isinstance(device, Gpu) else 0.0,
    }  # fmt: skip
    latency_s = case.timer.time(*(known[name] for name in case.timer.arguments))
    return latency_s if case.metric == "latency_s" else case.batch / latency_s


PARTS = ("waves", "l2", "latency", "algorithms", "clock", "sustained", "launch", "host", "passes")


def reduced(stack: Stack, without: frozenset[str]) -> Stack:
    """The stack without its other algorithms, or without passes beyond the first, where these parts are left out.

    algorithms: convolutions take the first algorithm of each phase, which always applies
    passes: ops read and write each tensor as often as those of the stack `ideal`
    """
    if "passes" in without:
        base = stacks.find("ideal")
        stack = replace(stack, passes=base.passes, optimiser_passes=base.optimiser_passes)
    if "algorithms" in without:
        menu = {phase: dict([next(iter(rows.items()))]) for phase, rows in stack.conv.algorithms.items()}
        stack = replace(stack, conv=replace(stack.conv, algorithms=menu))
    return stack
