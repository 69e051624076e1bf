"""The pipe from names to an answer: latency, throughput, power, energy and memory, beside what others have measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.base.lazy import LazyField
from archsim.base.version import __version__
from archsim.calibration.constants import EXTRAPOLATED, Calibration, Spread
from archsim.cost.cost import Array
from archsim.cost.power import COMPONENTS
from archsim.estimation.memory import Footprint, assumptions, fits, footprint_of, largest_batch
from archsim.estimation.no_effect import without_effect
from archsim.estimation.pipeline import ROUNDING, Run, mean_clock, run, spread
from archsim.estimation.request import SEQUENCE, Request, make_request
from archsim.evidence.measurement import Measurement, citations, protocol, rows_of
from archsim.schedule.observer import Observer

SCHEMA = "archsim-estimate/1"
NOTABLE = 0.01  # of the latency; a board that would lose less to its power limit is not spoken of


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEstimate:
    """One kernel of the algorithm that was chosen for an op."""

    name: str
    algorithm: str
    time_s: float
    bound: str
    clock_hz: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpEstimate:
    """One op. `time_s` is what it adds to the latency, waiting for the host included; `bound` is what limits it.

    `energy_breakdown_j` has the components of `archsim.cost.power`; `energy_j` is their sum.
    """

    name: str
    kind: str
    phase: str
    time_s: float
    bound: str
    flop: float
    dram_bytes: float
    energy_j: float
    energy_breakdown_j: Mapping[str, float]
    kernels: tuple[KernelEstimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A published measurement of the same cell, with the prediction for exactly its settings."""

    metric: str
    measured: float
    predicted: float
    error: float  # predicted / measured - 1
    source: str
    stack: str
    clock_hz: float
    boundary: str = ""  # what the source's power covers, where it measured one


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The answer to one request; attributes bear the names of the JSON keys. What takes long is computed when it is asked for.

    `clock_hz` is the mean over the time of all kernels. Power and energy are those of what `power_boundary` names; no op draws
    more than `power_limit_w`.
    """

    network: str
    hardware: str
    stack: str
    task: str
    batch: int
    seq_len: int | None  # tokens of a sequence, where the network takes any number
    precision: str
    threads: int | None
    devices: int
    fidelity: str
    graph: bool
    streams: int
    clock_hz: float
    latency_s: float
    latency_interval_s: tuple[float, float]
    interval_level: float
    interval_class: str
    held_out: Spread
    throughput_per_s: float
    power_w: float
    power_interval_w: tuple[float, float]
    energy_j: float
    energy_interval_j: tuple[float, float]
    throughput_per_w: float
    energy_breakdown_j: Mapping[str, float]
    power_limit_w: float
    power_boundary: str
    memory: LazyField[Footprint] = LazyField()
    memory_capacity_bytes: float
    max_batch: LazyField[int | None] = LazyField()  # the largest that fits; None where the network fixes its batch
    flop: LazyField[float] = LazyField()
    dram_bytes: float
    breakdown_s: LazyField[Mapping[str, float]] = LazyField()
    ops: LazyField[tuple[OpEstimate, ...]] = LazyField()
    references: LazyField[tuple[Reference, ...]] = LazyField()
    warnings: LazyField[tuple[str, ...]] = LazyField()
    assumptions: LazyField[tuple[str, ...]] = LazyField()
    assumed_values: LazyField[tuple[str, ...]] = LazyField()
    provenance: LazyField[Mapping[str, str]] = LazyField()

    html: ClassVar[Callable[[Estimate], str] | None] = None  # how a notebook shows it; the package's API sets it

    @property
    def memory_bytes(self) -> float:
        """Device memory that the run takes [B]."""
        return self.memory.total

    @property
    def fits(self) -> bool:
        """Whether that is within the usable part of the device's memory."""
        return fits(self.memory, self.memory_capacity_bytes)

    def __getstate__(self) -> dict[str, object]:
        """Everything computed, as what computes it stays in this process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _repr_html_(self) -> str | None:
        return None if Estimate.html is None else Estimate.html(self)


def estimate(net: str, hw: str, *, observers: Sequence[Observer] = (), **choices: object) -> Estimate:
    """Predict a network on a device.

    `choices` are those of `archsim.estimation.request.make_request`: batch, precision, task, stack, threads, clock [Hz],
    fidelity, settings, scales, calibration, graph, seq_len, streams. `observers` are told when what runs. Raises what
    `make_request` raises.
    """
    request = make_request(net, hw, **choices)  # type: ignore[arg-type]
    known = not any(choices.get(name) for name in ("settings", "scales", "seq_len"))
    return estimate_of(request, references=known, observers=observers)


def estimate_of(request: Request, references: bool = True, observers: Sequence[Observer] = ()) -> Estimate:
    """The estimate of a request; measurements beside it, unless the device is a what-if."""
    result = run(request, observers)
    # The rounded sum of the ops and the end of the last op are the same time; the reader gets one number for both.
    latency = math.fsum(result.timeline.op_time_s[0].tolist())
    split = {name: math.fsum(result.energy[name][0].tolist()) for name in COMPONENTS}
    energy = math.fsum(split.values())
    kind, spread = class_of(request)
    device = request.spec.device
    power = energy / latency
    return Estimate(
        network=request.network, hardware=request.spec.identity.id, stack=request.stack.id, task=request.task,
        batch=request.batch, seq_len=request.trace.symbols.get(SEQUENCE),
        precision=request.precision, threads=request.team, devices=1, fidelity=request.fidelity.name,
        graph=request.graph, streams=request.streams,
        clock_hz=float(mean_clock(request, result)[0]), latency_s=latency,
        latency_interval_s=(latency * math.exp(-spread.high), latency * math.exp(-spread.low)),
        interval_level=request.calibration.level, interval_class=kind, held_out=spread,
        throughput_per_s=request.batch / latency, power_w=power, power_interval_w=power_interval(request, power),
        energy_j=power * latency, energy_interval_j=energy_interval(request, power * latency),
        throughput_per_w=request.batch / latency / power, energy_breakdown_j=split,
        power_limit_w=float(np.ravel(device.power.tdp if request.limit is None else request.limit)[0]),
        power_boundary=device.power.boundary, memory=lambda: footprint_of(request, result),
        memory_capacity_bytes=float(device.memory.capacity), max_batch=lambda: largest_batch(request, result),
        flop=lambda: float(request.trace.flop), dram_bytes=math.fsum(result.dram_bytes[0].tolist()),
        breakdown_s=lambda: _breakdown(result), ops=lambda: _ops(request, result),
        references=(lambda: _references(request)) if references else (), warnings=lambda: _warnings(request, result),
        assumptions=lambda: (*request.notes, assumptions(request.stack)),
        assumed_values=lambda: tuple(entry.key for entry in request.spec.assumed), provenance=lambda: _provenance(request),
    )  # fmt: skip


def _provenance(request: Request) -> dict[str, str]:
    return {
        "version": __version__, "spec_hash": request.spec.digest, "trace_hash": request.trace_digest,
        "stack_hash": request.stack.digest, "calibration": f"{request.calibration.version}+{request.calibration.digest}",
    }  # fmt: skip


def _ops(request: Request, result: Run) -> tuple[OpEstimate, ...]:
    times, waits = result.timeline.op_time_s[0], result.timeline.wait_s[0]
    bounds = {name: values[0] for name, values in result.cost.bound_s.items()}
    rows = []
    for i, (op, plan) in enumerate(zip(result.lowered.ops, result.lowered.plan_of.tolist(), strict=True)):
        split = {name: float(values[plan]) for name, values in bounds.items()} if plan >= 0 else {}
        split["host"] = float(waits[i])
        largest = max(split, key=lambda name: split[name])
        rows.append(
            OpEstimate(
                name=op.name, kind=op.kind.op, phase=op.phase, time_s=float(times[i]),
                bound=largest if split[largest] > 0 else "none", flop=float(op.flop),
                dram_bytes=float(result.dram_bytes[0, i]),
                energy_j=math.fsum(float(result.energy[name][0, i]) for name in COMPONENTS),
                energy_breakdown_j={name: float(result.energy[name][0, i]) for name in COMPONENTS},
                kernels=_kernels(result, plan),
            )
        )
    return tuple(rows)


def _kernels(result: Run, plan: int) -> tuple[KernelEstimate, ...]:
    if plan < 0:
        return ()
    columns, cost = result.lowered.kernels, result.cost
    chosen = int(cost.option[0, plan])
    first = int(columns.option_start[chosen])
    option = columns.options[chosen]
    times, limits, clocks = (values[0, first:] for values in (cost.kernel_time_s, cost.kernel_bound, cost.kernel_clock))
    return tuple(
        KernelEstimate(name=kernel.name, algorithm=option.algorithm, time_s=float(time), bound=cost.bound_names[int(limit)],
                       clock_hz=float(clock))
        for kernel, time, limit, clock in zip(option.kernels, times, limits, clocks, strict=False)
        if time > 0
    )


def _breakdown(result: Run) -> dict[str, float]:
    """The latency by what limits it [s]. Where ops overlap, each counts with what it adds to the latency."""
    index = result.lowered.plan_of
    share = _shares(result)[index >= 0]
    live = index[index >= 0]
    split = {name: math.fsum((values[0, live] * share).tolist()) for name, values in result.cost.bound_s.items()}
    split["host"] = math.fsum(result.timeline.wait_s[0].tolist())
    return split


def _shares(result: Run) -> Array:
    """What part of its own time each op adds to the latency, waiting for the host apart: 1 unless others run beside it."""
    own = spread(result.cost.time_s, result.lowered.plan_of)[0]
    added = result.timeline.op_time_s[0] - result.timeline.wait_s[0]
    return np.where(np.abs(added - own) <= ROUNDING * own, 1.0, added / np.maximum(own, np.finfo(float).tiny))


def class_of(request: Request) -> tuple[str, Spread]:
    """The class of predictions whose held-out errors give the interval, and these."""
    modelled = request.fidelity.overheads and not request.graph and request.streams == 1
    what = "inference" if request.task == "inference" else "training"
    return request.calibration.spread_of(request.spec.kind, what, request.stack.id, modelled)


def trust(request: Request) -> str:
    """How far a time of this request may be off, in words."""
    kind, spread = class_of(request)
    low, high = (100 * (math.exp(-end) - 1) for end in (spread.high, spread.low))
    share = f"{100 * request.calibration.level:.0f} %"
    return f"times are estimates ({kind}): in {share} of such cells the measured one lies from {low:+.0f} % to {high:+.0f} %"


def power_interval(request: Request, power: float) -> tuple[float, float]:
    """Where the mean power lies [W] at the calibration's level, never below idle or above the limit."""
    device, spread = request.spec.device, _power_spread(request)
    most = device.power.tdp if request.limit is None else request.limit
    idle, limit = (float(np.ravel(power)[0]) for power in (device.power.idle, most))
    return max(min(idle, power), power * math.exp(-spread.high)), min(max(limit, power), power * math.exp(-spread.low))


def energy_interval(request: Request, energy: float) -> tuple[float, float]:
    """Where the energy lies [J]: errors of power and of time are taken to be independent, so their logs add in quadrature."""
    (_, time), power = class_of(request), _power_spread(request)
    return (energy * math.exp(-math.hypot(time.high, power.high)), energy * math.exp(math.hypot(time.low, power.low)))


def _power_spread(request: Request) -> Spread:
    modelled = request.fidelity.overheads and request.streams == 1
    return request.calibration.spread_of(request.spec.kind, "power", request.stack.id, modelled)[1]


def _warnings(request: Request, result: Run) -> tuple[str, ...]:
    found = []
    device, memory = request.spec.device, footprint_of(request, result)
    capacity = float(device.memory.capacity)
    if not fits(memory, capacity):
        found.append(f"does not fit: needs {memory.total / 2**30:.2f} GiB of {capacity / 2**30:.2f} GiB")
    found += [f"{key} changes no output of this estimate" + (f": it is {value} already" if value else "")
              for key, value in without_effect(request).items()]  # fmt: skip
    found += _throttled(request, result)
    if class_of(request)[0].endswith(EXTRAPOLATED):
        found.append("extrapolated: no measured row is like this cell, so the interval is wide")
    if request.fidelity.name == "roofline":
        found.append("roofline is a lower bound of the time, not a prediction")
    clock = float(np.ravel(request.clock)[0])
    if clock > 1.25 * float(device.clock.boost):
        found.append(f"clock {clock / 1e6:.0f} MHz is far above the rated boost of {float(device.clock.boost) / 1e6:.0f} MHz")
    return tuple(found)


def _throttled(request: Request, result: Run) -> list[str]:
    """What a changed machine would lose to its own power limit, where the clock that it runs at here is no longer kept."""
    changed = any(request.asked.get(name) for name in ("settings", "scales", "clock"))
    if not changed or request.limit is not None or not request.fidelity.overheads:
        return []
    tdp = float(np.ravel(request.spec.device.power.tdp)[0])
    slower = float(run(replace(request, limit=tdp)).latency_s[0]) / float(result.latency_s[0])
    if slower < 1.0 + NOTABLE:
        return []
    more = f"at this clock kernels would draw more than {tdp:g} W"
    return [f"{more}; --power-limit {tdp:g}W lowers it for them: latency x {slower:.2f}"]


def _references(request: Request) -> tuple[Reference, ...]:
    """Published rows of the same network, device, task, batch and precision, each predicted with its own settings."""
    found: list[Reference] = []
    for row in rows_of(request.network, request.spec.identity.id):
        same = (row.task, row.batch, row.precision, row.devices) == (request.task, request.batch, request.precision, 1)
        if not same or (row.threads is not None and row.threads != request.threads):
            continue
        try:
            predicted = _predict(row, request.calibration)
        except ArchsimError:
            continue  # a stack that is not described yet
        found.append(predicted)
    return tuple(sorted(found, key=lambda reference: reference.stack != request.stack.id))


def _predict(row: Measurement, calibration: Calibration) -> Reference:
    script, framework = protocol(row.source), row.stack.partition("-")[0]
    request = make_request(
        script.graph(row.network, framework, row.network), row.hardware,
        batch=script.samples(row.batch, row.network, framework), precision=row.precision,
        task=script.task(row.task, row.network, framework),
        stack=script.stack(row.hardware, row.network, row.stack, row.reference),
        threads=row.threads, clock=row.clock_hz, calibration=calibration,
        input_gradient=script.of_inputs(row.network, framework),
    )  # fmt: skip
    timed = replace(request.stack, inputs=script.inputs or request.stack.inputs, waits=script.waits_for(framework),
                    input_copies=script.copies(framework, request.stack.input_copies))  # fmt: skip
    result = run(replace(request, stack=timed))
    latency = float(result.latency_s[0])
    energy = math.fsum(result.energy_j[0].tolist())
    values = {"latency_s": latency, "throughput_per_s": row.batch / latency, "power_w": energy / latency, "energy_j": energy}
    predicted = values[row.metric]
    return Reference(
        metric=row.metric, measured=row.value, predicted=predicted, error=predicted / row.value - 1,
        source=citations().get(row.source, row.source), stack=row.stack, clock_hz=float(mean_clock(request, result)[0]),
        boundary=script.boundary if row.metric in ("power_w", "energy_j") else "",
    )  # fmt: skip
