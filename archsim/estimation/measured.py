"""From a published row to a request, and from what the pipeline makes of it to the value that was measured.

Whatever compares predictions with measurements goes through here: an estimate's references, validation, fits, baselines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.calibration.constants import Calibration
from archsim.cost.team import dispatch_clock
from archsim.device.catalog import twins
from archsim.device.device import Cpu, Gpu
from archsim.device.variant import values_digest
from archsim.estimation.clock import clock_and_limit, memory_clock_of
from archsim.estimation.fidelity import FITTED, find
from archsim.estimation.hardware import host_of
from archsim.estimation.pipeline import Run, mean_clock, run
from archsim.estimation.request import Request
from archsim.estimation.wall import WALL, wall_power
from archsim.evidence.case import QUANTITY, SYSTEM_METRICS, Anchor, Case, error_of
from archsim.evidence.conditions import Conditions
from archsim.evidence.network_rows import network_cases
from archsim.evidence.sources import citation, source_of
from archsim.evidence.timer import TIMERS
from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack
from archsim.trace.dims import BATCH, SEQUENCE

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
    latency_s, device, calibration = float(result.latency_s[0]), case.spec.device, request.calibration
    if case.system is not None:
        host = None if isinstance(device, Cpu) else request.host
        computer = wall_power(float(result.total_energy_j[0]) / latency_s, device, host, *case.system)
        return computer.computer_w * (1.0 if case.metric == "system_power_w" else latency_s)
    if case.metric == "power_w":
        return float(result.total_energy_j[0]) / latency_s
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A published measurement of the same cell, with the prediction for exactly its conditions.

    `conditions` say in words what differs from the request of the estimate; without any, both predict the same.
    `stack` is what the source calls the software, `boundary` what its power covers, where it measured one.
    """

    metric: str
    measured: float
    predicted: float
    error: float  # predicted / measured - 1; of a rate, that of the time that it stands for
    source: str
    stack: str
    clock_hz: float
    boundary: str = ""
    conditions: tuple[str, ...] = ()


def references_of(request: Request) -> tuple[Reference, ...]:
    """The published rows of the same network, device, task, batch and precision.

    A device is the same where all values that the models read are, whatever its id; so a changed one has none. Those of the
    request's own stack come first. Rows that state other threads are of another cell.
    """
    found = [reference for case in cases_of_cell(request) for reference in _reference(case, request)]
    return tuple(sorted(found, key=lambda reference: reference.stack != request.stack.id))


def nearest_of(request: Request) -> Reference | None:
    """The published time of the same cell and stack at the nearest other batch; None without one."""
    found = [case for case in cases_of_cell(request, other_batch=True)
             if case.stack_id == request.stack.id and case.metric in ("latency_s", "throughput_per_s")]  # fmt: skip
    found.sort(key=lambda case: abs(log(case.batch / request.batch)))
    return next((reference for case in found for reference in _reference(case, request)), None)


def cases_of_cell(request: Request, other_batch: bool = False) -> Iterator[Case]:
    """The published rows of devices with the request's values that say of themselves what it asks, or all but its batch."""

    def wanted(cells: Mapping[str, str]) -> bool:
        alike = (cells["task"], cells.get("devices") or "1") == (request.task, "1")
        alike &= cells["metric"] not in SYSTEM_METRICS or request.asked.get("boundary") == WALL  # of a whole computer
        return alike and (cells["batch"] == str(request.batch)) != other_batch

    for case in measured_on(request, wanted):
        lengths = {trace.symbols.get(SEQUENCE) for trace in (case.trace, request.trace)} - {None}
        if case.precision == request.precision and case.threads in (None, request.threads) and len(lengths) < 2:
            yield case


def measured_on(request: Request, wanted: Callable[[Mapping[str, str]], bool]) -> Iterator[Case]:
    """The `wanted` published rows of the request's network on shipped devices with the values of its own."""
    for hardware in twins(request.spec):
        yield from network_cases(request.network, hardware, wanted)


def _reference(case: Case, request: Request) -> list[Reference]:
    own = replace(request_of(case, request.calibration, request.fidelity.name), traffic=request.traffic)
    try:
        value, result = predicted(case, own)
    except ArchsimError:  # the stack cannot run it
        return []
    return [
        Reference(
            metric=case.metric, measured=case.measured, predicted=value, error=error_of(case.metric, case.measured, value),
            source=citation(case.source), stack=case.fields["stack"], clock_hz=float(mean_clock(own, result)[0]),
            boundary=source_of(case.source).boundary if QUANTITY[case.metric] != "time" else "",
            conditions=differences(own, request),
        )
    ]  # fmt: skip


def differences(measured: Request, asked: Request) -> tuple[str, ...]:
    """What was otherwise when it was measured than is asked now, each in words: "core clock 562 MHz, not 875 MHz"."""
    said = {Conditions.model_fields[name].title or name: value for name, value in CONDITIONS.items()}
    found = [(what, value(measured), value(asked)) for what, value in (said | OF_REQUEST).items()]
    return tuple([f"{what} {was}, not {here}" for what, was, here in found if was != here and was and here])


def _samples(request: Request) -> str:
    samples = request.trace.symbols.get(BATCH)
    return "" if samples is None else f"{samples} samples"


def _input_gradient(request: Request) -> str:
    if request.work is None or not request.training:
        return ""
    return "computed" if request.work.input_gradient else "left out"


def _optimiser(request: Request) -> str:
    return "" if request.work is None or not request.training else request.work.optimiser


def _clock(request: Request) -> str:
    clock = f"{float(np.ravel(request.clock)[0]) / 1e6:.0f} MHz"
    tdp = float(np.ravel(request.device.power.tdp)[0])
    limit = tdp if request.limit is None else float(np.ravel(request.limit)[0])
    return clock if limit == tdp else f"up to {clock} within {limit:g} W"


def _memory_clock(request: Request) -> str:
    clock = memory_clock_of(request.spec, request.memory)
    return "" if clock is None else f"{clock / 1e6:.0f} MHz"


def _threads(request: Request) -> str:
    return "" if request.thread_count is None else str(request.thread_count)


def _input(request: Request) -> str:
    if request.spec.kind == "cpu":
        return ""
    if request.stack.inputs == "device":
        return "on the device"
    if request.stack.inputs == "decoded":
        return request.stack.reader.words
    copies = request.stack.input_copies
    before = f", after {copies} copies there" if copies > 1 else ""
    return f"copied from host memory within the timed loop{before}"


def _timer(request: Request) -> str:
    """How the run ends on a stopwatch; nothing on a CPU, which dispatches for itself."""
    name = "graph" if request.graph else "each_layer" if request.stack.waits else "host_sync"
    return "" if request.spec.kind == "cpu" else TIMERS[name].words


def _exchange(request: Request) -> str:
    if request.group is None:
        return ""
    return "during the backward pass" if request.group.overlaps else "after the backward pass"


# What may differ between a measurement and a request of its cell, in words, empty where it does not apply: fields of
# `Conditions`, which have the names to say them by, and what a request has besides.
CONDITIONS: dict[str, Callable[[Request], str]] = {
    "stack": lambda request: request.stack.id,
    "graph": lambda request: request.trace.name,
    "task": lambda request: request.task,
    "input_gradient": _input_gradient,
    "optimiser": _optimiser,
    "clock_mhz": _clock,
    "host": lambda request: "" if request.spec.kind == "cpu" else request.host_cpu.identity.id,
    "input": _input,
    "timer": _timer,
    "loop": lambda request: "cold" if request.cold else "warm from the run before",
    "node": lambda request: "" if request.group is None else request.group.node.id,
}
OF_REQUEST: dict[str, Callable[[Request], str]] = {
    "batch": _samples,
    "device description": lambda request: values_digest(request.spec),
    "memory clock": _memory_clock,
    "threads": _threads,
    "streams": lambda request: str(request.streams),
    "gradients exchanged": _exchange,
}
