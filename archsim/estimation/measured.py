"""Predictions beside measurements: the request of a published row and its value, references of an estimate, intervals.

Whatever compares predictions with measurements goes through here: an estimate's references, validation, fits, baselines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import log
from typing import Any

from archsim.base.errors import ArchsimError
from archsim.base.files import data_folder
from archsim.calibration.constants import Calibration, Spread, spread_of_product
from archsim.calibration.nearness import Question
from archsim.cost.team import dispatch_clock
from archsim.device.catalog import is_shipped, twins
from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.device.variant import first_of, values_digest
from archsim.estimation.clock import memory_clock_of
from archsim.estimation.fidelity import FITTED, find
from archsim.estimation.hardware import platform_of
from archsim.estimation.pipeline import Run, floor_s, idle_of, mean_clock, run, spread
from archsim.estimation.request import Request, following
from archsim.estimation.wall import WALL, wall_power
from archsim.evidence.case import QUANTITY, SYSTEM_METRICS, TIMERS, Anchor, Case, DeviceGroup, error_of
from archsim.evidence.network_rows import network_cases
from archsim.evidence.sources import Conditions, source_of
from archsim.stack import catalog as stacks
from archsim.stack.catalog import rows_of
from archsim.stack.stack import Stack
from archsim.trace.dims import BATCH, SEQUENCE
from archsim.trace.task import Work

NOTHING: frozenset[str] = frozenset()


def request_of(
    case: Case, calibration: Calibration, fidelity: str = FITTED, without: frozenset[str] = NOTHING
) -> Request:
    """The request whose answer was measured: all conditions of the row, defaults where it states none."""
    asked = {"clock": case.clock, "power_limit": case.limit, "threads": case.threads}
    follows = following(case.spec, case.stack, asked, without, measured=True)
    return Request(
        network=case.label, trace=case.trace, work=case.work, spec=case.spec, stack=reduced(case.stack, without), task=case.task,
        batch=case.batch, precision=case.precision, fidelity=find(fidelity), calibration=calibration,
        dispatch=float(case.timer.host), group=case.group, without=without, graph=case.timer.graph, stored=case.stored,
        **follows | ({"host_cpu": case.host_cpu} if case.host_cpu else {}),
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
        computer = wall_power(float(result.total_energy_j[0]) / latency_s, device, request.host, *case.system)
        return computer.computer_w * (1.0 if case.metric == "system_power_w" else latency_s)
    if case.metric == "power_w":
        return float(result.total_energy_j[0]) / latency_s
    known = {
        "run_s": latency_s, "wait_s": float(result.timeline.wait_s[0].sum()), "host_s": float(result.host_s[0].sum()),
        "calls": case.calls, "gap_s": calibration["graph.gap_s"],
        "launch_s": first_of(calibration["graph.launch_clk"] / dispatch_clock(request.host)),
        "latency_s": first_of(device.launch.latency) if isinstance(device, Gpu) else 0.0,
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
    found = filter(None, (_reference(case, request) for case in cases_of_cell(request)))
    return tuple(sorted(found, key=lambda reference: reference.stack != request.stack.id))


def nearest_of(request: Request) -> Reference | None:
    """The published time of the same cell and stack at the nearest other batch; None without one."""
    found = [case for case in cases_of_cell(request, other_batch=True)
             if case.stack_id == request.stack.id and case.metric in ("latency_s", "throughput_per_s")]  # fmt: skip
    found.sort(key=lambda case: abs(log(case.batch / request.batch)))
    return next(filter(None, (_reference(case, request) for case in found)), None)


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


def _reference(case: Case, request: Request) -> Reference | None:
    own = replace(request_of(case, request.calibration, request.fidelity.name), traffic=request.traffic)
    try:
        value, result = predicted(case, own)
    except ArchsimError:  # the stack cannot run it
        return None
    return Reference(
        metric=case.metric, measured=case.measured, predicted=value, error=error_of(case.metric, case.measured, value),
        source=source_of(case.source).citation, stack=case.fields["stack"], clock_hz=float(mean_clock(own, result)[0]),
        boundary=source_of(case.source).boundary if QUANTITY[case.metric] != "time" else "",
        conditions=differences(own, request),
    )  # fmt: skip


def differences(measured: Request, asked: Request) -> tuple[str, ...]:
    """What was otherwise when it was measured than is asked now, each in words: "core clock 562 MHz, not 875 MHz"."""
    said = {Conditions.model_fields[name].title or name: value for name, value in CONDITIONS.items()}
    found = [(what, value(measured), value(asked)) for what, value in (said | OF_REQUEST).items()]
    return tuple([f"{what} {was}, not {here}" for what, was, here in found if was != here and was and here])


def _clock(request: Request) -> str:
    clock = f"{first_of(request.clock) / 1e6:.0f} MHz"
    tdp = first_of(request.device.power.tdp)
    limit = tdp if request.limit is None else first_of(request.limit)
    return clock if limit == tdp else f"up to {clock} within {limit:g} W"


def _memory_clock(request: Request) -> str:
    clock = memory_clock_of(request.spec, request.memory)
    return "" if clock is None else f"{clock / 1e6:.0f} MHz"


def _input(request: Request) -> str:
    stack = request.stack
    after = f", after {stack.input_copies} copies there" if stack.input_copies > 1 else ""
    return {"device": "on the device", "decoded": stack.reader.words}.get(
        stack.inputs, f"copied from host memory within the timed loop{after}")  # fmt: skip


def _timer(request: Request) -> str:
    """How the run ends on a stopwatch; nothing on a CPU, which dispatches for itself."""
    return TIMERS["graph" if request.graph else "each_layer" if request.stack.waits else "host_sync"].words


def _of_work(said: Callable[[Work], str]) -> Callable[[Request], str]:
    """Of a request that trains a network."""
    return lambda request: said(request.work) if request.work is not None and request.training else ""


def _unless_cpu(said: Callable[[Request], str]) -> Callable[[Request], str]:
    return lambda request: "" if request.spec.kind == "cpu" else said(request)


def _of_group(said: Callable[[DeviceGroup], str]) -> Callable[[Request], str]:
    return lambda request: "" if request.group is None else said(request.group)


# What may differ between a measurement and a request of its cell, in words, empty where it does not apply: fields of
# `Conditions`, which have the names to say them by, and what a request has besides.
CONDITIONS: dict[str, Callable[[Request], str]] = {
    "stack": lambda request: request.stack.id,
    "graph": lambda request: request.trace.name,
    "task": lambda request: request.task,
    "input_gradient": _of_work(lambda work: "computed" if work.input_gradient else "left out"),
    "optimiser": _of_work(lambda work: work.optimiser),
    "clock_mhz": _clock,
    "host": _unless_cpu(lambda request: request.host_cpu.identity.id),
    "input": _unless_cpu(_input),
    "search": _unless_cpu(lambda request: "searched" if request.stack.conv.searched else "chosen by the library's rules"),
    "timer": _unless_cpu(_timer),
    "loop": lambda request: "cold" if request.cold else "warm from the run before",
    "node": _of_group(lambda group: group.node.id),
}
OF_REQUEST: dict[str, Callable[[Request], str]] = {
    "batch": lambda request: f"{request.trace.symbols[BATCH]} samples" if BATCH in request.trace.symbols else "",
    "device description": lambda request: values_digest(request.spec),
    "memory clock": _memory_clock,
    "threads": lambda request: "" if request.thread_count is None else str(request.thread_count),
    "streams": lambda request: str(request.streams),
    "gradients exchanged": _of_group(lambda group: f"{'during' if group.overlaps else 'after'} the backward pass"),
}


# ------------------------------------------------------------------------------------------------- how far predictions are off


def class_of(request: Request, result: Run) -> tuple[str, Spread]:
    """The class of predictions that a request belongs to, and the spread of their errors on held-out rows, for its `result`.

    Replayed graphs, cold caches, several streams, stacks that nobody measured, rules of fusion that were asked for, and
    fidelities without fitted constants have no rows of their own: their class is an extrapolated one, with a wider spread. Of
    the time of a fidelity that is a roofline itself, none is explained by one.
    """
    seen = rows_of(request.stack).own > 0 and request.asked.get("fusion") is None
    modelled = request.fidelity.calibrated and seen and not (request.graph or request.cold) and request.streams == 1
    what = "inference" if request.task == "inference" else "training"
    least_s = spread(floor_s(request, result.lowered.kernels), result.lowered.plan_of)[0].sum() * request.fidelity.calibrated
    question = replace(_question(request), explained=float(least_s / result.latency_s[0]))
    return request.calibration.spread_of(request.spec.kind, what, question, modelled)


def _question(request: Request) -> Question:
    return Question(platform=platform_of(request.spec, request.stack.id), precision=request.precision, batch=request.batch)


def trust(request: Request) -> str:
    """How far a time of this request may be off, in words."""
    kind, off = class_of(request, run(request))
    low, high = (100 * (math.exp(-end) - 1) for end in (off.high, off.low))
    share = f"{100 * request.calibration.level:.0f} %"
    return f"times are estimates ({kind}): in {share} of such cells the measured one lies from {low:+.0f} % to {high:+.0f} %"


def power_interval(request: Request, power: float) -> tuple[float, float]:
    """Where a measured mean power is expected around a predicted one [W], at the calibration's level.

    [P exp(-high), P exp(-low)], cut at the idle power below and at the power limit above

    low, high: quantiles of log(predicted / measured) of held-out powers (split conformal; Lei et al. 2018, section 2.2)

    >>> from archsim.estimation.request import make_request
    >>> low, high = power_interval(make_request("alexnet", "gtx_1080"), 175.0)
    >>> low < 175.0 < high <= 180.0  # the board's limit
    True
    """
    device = request.device
    most = device.power.tdp if request.limit is None else request.limit
    idle, limit = (first_of(value) for value in (idle_of(request), most))
    low, high = _power_spread(request).around(power)
    return max(min(idle, power), low), min(max(limit, power), high)


def energy_interval(request: Request, result: Run, energy: float) -> tuple[float, float]:
    """Where a measured energy is expected around a predicted one [J], at the calibration's level.

    [E exp(-high), E exp(-low)], low and high of the product of time and power (`spread_of_product`)

    >>> from archsim.estimation.request import make_request
    >>> request = make_request("alexnet", "gtx_1080")
    >>> low, high = energy_interval(request, run(request), 1.0)
    >>> low < 1.0 < high
    True
    """
    return spread_of_product(class_of(request, result)[1], _power_spread(request)).around(energy)


def _power_spread(request: Request) -> Spread:
    modelled = request.fidelity.calibrated and request.streams == 1
    return request.calibration.spread_of(request.spec.kind, "power", _question(request), modelled)[1]


def own_rows(spec: Spec) -> str:
    """What the shipped validation says of predictions for whole networks on a shipped device; empty without any such row."""
    found = _validated().get(spec.identity.id, {}) if is_shipped(spec) else {}
    if "n" not in found:
        return ""
    n, bias, covered = found["n"], f"{100 * found['bias']:+.0f}", found["coverage"]
    side = "right" if bias[1:] == "0" else f"{bias[1:]} % too {'slow' if bias[0] == '+' else 'fast'}"
    inside = "" if covered is None else f", {100 * covered:.0f} % inside their interval"
    return f"{n:,} measurements of this device: predicted {side} in the median{inside}"


@cache
def _validated() -> Mapping[str, Mapping[str, Any]]:
    file = data_folder("reports/validation").joinpath("validation.json")
    return dict(json.loads(file.read_text("utf-8"))["devices"])
