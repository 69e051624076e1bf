"""Making an estimate: from names to a request, through the pipeline, to latency, throughput, power, energy and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from archsim.base.version import __version__
from archsim.calibration.constants import EXTRAPOLATED
from archsim.cost.bounds import INPUT
from archsim.cost.energy import COMPONENTS
from archsim.cost.power import SLOWEST
from archsim.device.catalog import is_shipped
from archsim.device.device import Tpu
from archsim.device.variant import device_fields
from archsim.estimation.boundary import WALL
from archsim.estimation.clock import memory_clock_of
from archsim.estimation.fidelity import SIMULATED
from archsim.estimation.intervals import class_of, energy_interval, power_interval
from archsim.estimation.limits import limits_of
from archsim.estimation.memory import assumptions, caches_note, fits, footprint_of, largest_batch
from archsim.estimation.no_effect import read_by, without_effect
from archsim.estimation.own_rows import own_rows
from archsim.estimation.pipeline import Run, mean_clock, run
from archsim.estimation.power_curve import power_curve
from archsim.estimation.references import nearest_of, references_of
from archsim.estimation.request import Request, make_request
from archsim.estimation.result import Estimate, KernelEstimate, OpEstimate
from archsim.schedule.observer import Observer
from archsim.stack.catalog import rows_of
from archsim.trace.dims import SEQUENCE


def warnings_of(request: Request, result: Run) -> tuple[str, ...]:
    """The warnings of an estimate, one sentence each."""
    found = []
    device, memory = request.device, footprint_of(request, result)
    capacity = float(device.memory.capacity)
    if not fits(memory, capacity):
        found.append(f"does not fit: needs {memory.total / 2**30:.2f} GiB of {capacity / 2**30:.2f} GiB")
    if isinstance(request.spec.device, Tpu):
        from archsim.estimation.tpu import spilled

        found += spilled(request.spec.device, result.lowered.kernels)
    found += _unknown(request)
    for key, value in without_effect(request).items():
        why = f": it is {value} already" if value else f"; {read_by(request, key)}" if read_by(request, key) else ""
        found.append(f"{key} changes no output of this estimate{why}")
    kind, spread = class_of(request)
    if kind.endswith(EXTRAPOLATED) and not spread.rows:
        found.append(f"no measured row of a {request.spec.kind.upper()} stands behind this: the interval is the widest of other "
                     "kinds of device, not one of its own")  # fmt: skip
    elif kind.endswith(EXTRAPOLATED):
        near = spread.basis or "rows of other cells"
        found.append(f"extrapolated: the interval rests on {near} and is wider for it")
    found += _too_large(request) + _above_limit(request, result)
    found += [request.fidelity.warning] if request.fidelity.warning else []
    clock = float(np.ravel(request.clock)[0])
    if clock > 1.25 * float(device.clock.boost):
        found.append(f"clock {clock / 1e6:.0f} MHz is far above the rated boost of {float(device.clock.boost) / 1e6:.0f} MHz")
    return tuple(found)


def _unknown(request: Request) -> list[str]:
    """Warnings where of ops of the network's file only a bound is known."""
    from archsim.estimation.unknown import STRICT, bounded

    return [f"{said}, {STRICT}" for said in bounded(request.trace)]


def _too_large(request: Request) -> list[str]:
    """A warning where no mask can make the die of a changed device; a shipped one needs no model of areas."""
    if is_shipped(request.spec):
        return []
    from archsim.estimation.die import too_large

    said = too_large(request.spec)
    return [said] if said else []


def _above_limit(request: Request, result: Run) -> list[str]:
    """A warning where kernels would draw more than the power limit at the lowest clock that is modelled."""
    lowest = SLOWEST * float(np.ravel(request.clock)[0])
    clocks = result.cost.kernel_clock[result.cost.kernel_time_s > 0.0]
    if request.limit is None or not np.any(clocks <= lowest * (1.0 + 1e-9)):
        return []
    return [f"some kernels would draw more than {float(np.ravel(request.limit)[0]):g} W even at {lowest / 1e6:.0f} MHz, the "
            "lowest clock that is modelled: their power is cut to the limit"]  # fmt: skip


def estimate(
    net: str, hw: str, *, observers: Sequence[Observer] = (), energy_budget: float | None = None, **choices: object
) -> Estimate:  # fmt: skip
    """Predict a network on a device.

    `choices` are those of `archsim.estimation.request.make_request`: batch, precision, task, stack, threads, clock [Hz],
    fidelity, settings, scales, calibration, graph, seq_len, streams, traffic. `observers` are told when what runs. Under an
    `energy_budget` [J] the core clock is the highest at which a sample takes no more. Raises what `make_request` raises, and
    Unsupported for a budget that no clock keeps.
    """
    request = make_request(net, hw, **choices)  # type: ignore[arg-type]
    if energy_budget is not None:
        from archsim.estimation.budget import within_energy_budget

        request = within_energy_budget(request, energy_budget)
    return estimate_of(request, observers=observers, energy_budget=energy_budget)


def estimate_of(
    request: Request, references: bool = True, observers: Sequence[Observer] = (), energy_budget: float | None = None
) -> Estimate:  # fmt: skip
    """The estimate of a request, with `references` beside published measurements of its cell.

    `energy_budget` is the one that its clock was chosen for [J].
    """
    found = _at_device(request, references, observers, energy_budget)
    return _at_wall(found, request) if request.asked.get("boundary") == WALL else found


def _at_device(
    request: Request, references: bool, observers: Sequence[Observer], energy_budget: float | None
) -> Estimate:  # fmt: skip
    result = run(request, observers)
    # The sum of the ops' times and the end of the last op differ by rounding; the estimate has one number for both.
    latency = math.fsum(result.timeline.op_time_s[0].tolist())
    split = {name: math.fsum(result.energy[name][0].tolist()) for name in COMPONENTS}
    energy = math.fsum(split.values())
    kind, spread = class_of(request)
    device = request.device
    power = energy / latency
    return Estimate(
        network=request.network, **device_fields(request.spec), stack=request.stack.id, task=request.task,
        optimiser=request.optimiser, batch=request.batch, sample=request.trace.sample,
        seq_len=request.trace.symbols.get(SEQUENCE), precision=request.precision, threads=request.thread_count, devices=1,
        fidelity=request.fidelity.name, traffic=request.traffic, graph=request.graph, cold=request.cold,
        streams=request.streams, host_cpu=request.host_cpu.identity.id, clock_hz=float(mean_clock(request, result)[0]),
        memory_clock_hz=memory_clock_of(request.spec, request.memory), latency_s=latency,
        latency_interval_s=(latency * math.exp(-spread.high), latency * math.exp(-spread.low)),
        interval_level=request.calibration.level, interval_class=kind,
        held_out=replace(spread, basis="; ".join(filter(None, (spread.basis, own_rows(request.spec))))),
        stack_rows=rows_of(request.stack), throughput_per_s=request.batch / latency,
        power_w=power, power_interval_w=power_interval(request, power),
        energy_j=power * latency, energy_interval_j=energy_interval(request, power * latency), energy_budget_j=energy_budget,
        throughput_per_w=request.batch / latency / power, energy_breakdown_j=split,
        power_limit_w=float(np.ravel(device.power.tdp if request.limit is None else request.limit)[0]),
        power_boundary=device.power.boundary, power_over_time=lambda: power_curve(request, result),
        memory=lambda: footprint_of(request, result),
        memory_capacity_bytes=float(device.memory.capacity), max_batch=lambda: largest_batch(request, result),
        flop=lambda: float(request.trace.flop), dram_bytes=math.fsum(result.dram_bytes[0].tolist()),
        limits=lambda: limits_of(request, result), breakdown_s=lambda: _breakdown(result), ops=lambda: _ops(request, result),
        least_bytes=lambda: _least_bytes(result),
        references=(lambda: references_of(request)) if references else (),
        nearest=(lambda: nearest_of(request)) if references else None, warnings=lambda: warnings_of(request, result),
        assumptions=lambda: (*request.notes, *caches_note(request, result), assumptions(request)),
        assumed_values=lambda: assumed_values(request),
        provenance=lambda: provenance_of(request),
        spec=request.spec,
    )  # fmt: skip


def _at_wall(e: Estimate, request: Request) -> Estimate:
    """An estimate whose power and energy are those at the wall, the share of one device of the computer; ops keep their own."""
    from archsim.estimation.wall import interval_of, of_request

    found = of_request(request, e.power_w)
    low, high = interval_of(found, found.share_w)
    energy, factor = found.share_w * e.latency_s, found.share_w / e.power_w
    time = (e.latency_interval_s[0] / e.latency_s, e.latency_interval_s[1] / e.latency_s)
    reach = [math.exp(math.copysign(math.hypot(math.log(of_time), math.log(end / found.share_w)), sign))
             for of_time, end, sign in ((time[0], low, -1.0), (time[1], high, 1.0))]  # fmt: skip
    return replace(
        e, power_w=found.share_w, power_interval_w=(low, high), energy_j=energy,
        energy_interval_j=(energy * reach[0], energy * reach[1]), throughput_per_w=e.throughput_per_w / factor,
        energy_breakdown_j={**e.energy_breakdown_j, **{name: power * e.latency_s for name, power in found.added_w.items()}},
        power_boundary=WALL, wall=found,
    )  # fmt: skip


def assumed_values(request: Request) -> tuple[str, ...]:
    """The keys of the device that nobody published and this fidelity reads."""
    machine = request.spec.unpublished(cycle=True) if request.fidelity.name == SIMULATED else []
    return tuple(entry.key for entry in (*request.spec.assumed, *machine))


def provenance_of(request: Request) -> dict[str, str]:
    """What an answer was computed from: the version of the program, and digests of all that it read."""
    return {
        "version": __version__, "spec_hash": request.spec.digest, "trace_hash": request.trace_digest,
        "stack_hash": request.stack.digest, "calibration": f"{request.calibration.version}+{request.calibration.digest}",
    }  # fmt: skip


def _least_bytes(result: Run) -> dict[str, float]:
    kernels = result.lowered.kernels
    whole = (kernels.read_bytes + kernels.write_bytes).tolist()
    return {op.name: whole[plan] if plan >= 0 else 0.0
            for op, plan in zip(result.lowered.ops, result.lowered.plan_of.tolist(), strict=True)}  # fmt: skip


def _ops(request: Request, result: Run) -> tuple[OpEstimate, ...]:
    times, waits = result.timeline.op_time_s[0], result.timeline.wait_s[0]
    bounds = {name: values[0] for name, values in result.cost.bound_s.items()}
    rows = []
    for i, (op, plan) in enumerate(zip(result.lowered.ops, result.lowered.plan_of.tolist(), strict=True)):
        split = {name: float(values[plan]) for name, values in bounds.items()} if plan >= 0 else {}
        split["host"] = float(waits[i])
        if i == 0 and result.late_s is not None:
            split[INPUT] = float(result.late_s[0])
            split["host"] -= split[INPUT]
        largest = max(split, key=lambda name: split[name])
        rows.append(
            OpEstimate(
                name=op.name, kind=op.kind.op, phase=op.phase, time_s=float(times[i]),
                wait_s=float(waits[i]),
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
    times, limits, clocks, powers = (values[0, first:] for values in
                                     (cost.kernel_time_s, cost.kernel_bound, cost.kernel_clock, cost.kernel_power_w))  # fmt: skip
    return tuple(
        KernelEstimate(name=kernel.name, role=kernel.role.value, algorithm=option.algorithm, time_s=float(time),
                       bound=cost.bound_names[int(limit)], clock_hz=float(clock), power_w=float(power))
        for kernel, time, limit, clock, power in zip(option.kernels, times, limits, clocks, powers, strict=False)
        if time > 0
    )


def _breakdown(result: Run) -> dict[str, float]:
    """The latency by what limits it [s], by bound name; the values add up to it.

    Of each op the times of its bounds count; where ops overlap, times the share of it that it adds to the latency.
    """
    index = result.lowered.plan_of
    share = result.share[0, index >= 0]
    live = index[index >= 0]
    split = {name: math.fsum((values[0, live] * share).tolist()) for name, values in result.cost.bound_s.items()}
    split["host"] = math.fsum(result.timeline.wait_s[0].tolist())
    if result.late_s is not None:
        split[INPUT] = float(result.late_s[0])
        split["host"] -= split[INPUT]
    return split
