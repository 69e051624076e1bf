"""Making an estimate: from names to a request, through the pipeline, to latency, throughput, power, energy and memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.units import show
from archsim.base.version import __version__
from archsim.calibration.constants import EXTRAPOLATED
from archsim.cost.bounds import INPUT
from archsim.cost.energy import COMPONENTS
from archsim.cost.power import SLOWEST
from archsim.cost.switched import unmeasured_node
from archsim.device.catalog import is_shipped
from archsim.device.device import Tpu
from archsim.device.spec import unit_of
from archsim.device.variant import first_of
from archsim.estimation.clock import memory_clock_of
from archsim.estimation.die import moves_area, too_large
from archsim.estimation.fidelity import CLOSED, FITTED, SIMULATED
from archsim.estimation.hardware import find_device, unneeded_keys
from archsim.estimation.measured import class_of, energy_interval, nearest_of, own_rows, power_interval, references_of
from archsim.estimation.memory import assumptions, caches_note, fits, footprint_of, largest_batch, needed_bytes
from archsim.estimation.network import STRICT, bounded
from archsim.estimation.pipeline import Run, mean_clock, run
from archsim.estimation.power_curve import power_curve
from archsim.estimation.request import Request, make_request, with_spec
from archsim.estimation.result import HOST, Estimate, KernelEstimate, OpEstimate, host_floor_of, saved_of
from archsim.estimation.wall import WALL, usual_wall_power
from archsim.lower.kernel import Kernels
from archsim.schedule.observer import Observer
from archsim.stack.catalog import rows_of
from archsim.trace.dims import SEQUENCE

MOST_BUDGET = 1e12  # J
CLOCKS = 33  # tried at a time
ROUNDS = 3  # of ever finer clocks: the last are 0.003 % apart


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
        request = within_energy_budget(request, energy_budget)
    return estimate_of(request, observers=observers, energy_budget=energy_budget)


def estimate_of(
    request: Request, references: bool = True, observers: Sequence[Observer] = (), energy_budget: float | None = None
) -> Estimate:  # fmt: skip
    """The estimate of a request, with `references` beside published measurements of its cell.

    `energy_budget` is the one that its clock was chosen for [J].
    """
    result = run(request, observers)
    # The sum of the ops' times and the end of the last op differ by rounding; the estimate has one number for both.
    latency = math.fsum(result.timeline.op_time_s[0].tolist())
    split = {name: math.fsum(result.energy[name][0].tolist()) for name in COMPONENTS}
    energy = math.fsum(split.values())
    kind, spread = class_of(request, result)
    device, power = request.device, energy / latency
    found = Estimate(
        **request.labels, task=request.task, optimiser=request.optimiser, batch=request.batch, sample=request.trace.sample,
        seq_len=request.trace.symbols.get(SEQUENCE), threads=request.thread_count, devices=1, fidelity=request.fidelity.name,
        traffic=request.traffic, graph=request.graph, cold=request.cold, streams=request.streams,
        host_cpu=request.host_cpu.identity.id, clock_hz=float(mean_clock(request, result)[0]),
        memory_clock_hz=memory_clock_of(request.spec, request.memory), latency_s=latency,
        latency_interval_s=spread.around(latency), interval_level=request.calibration.level, interval_class=kind,
        held_out=replace(spread, basis="; ".join(filter(None, (spread.basis, own_rows(request.spec))))),
        stack_rows=rows_of(request.stack), throughput_per_s=request.batch / latency,
        power_w=power, power_interval_w=power_interval(request, power),
        energy_j=power * latency, energy_interval_j=energy_interval(request, result, power * latency),
        energy_budget_j=energy_budget,
        throughput_per_w=request.batch / latency / power, energy_breakdown_j=split,
        power_limit_w=first_of(device.power.tdp if request.limit is None else request.limit),
        power_boundary=device.power.boundary, power_over_time=lambda: power_curve(request, result),
        memory=lambda: footprint_of(request, result),
        memory_capacity_bytes=float(device.memory.capacity), max_batch=lambda: largest_batch(request, result),
        flop=lambda: float(request.trace.flop), dram_bytes=math.fsum(result.dram_bytes[0].tolist()),
        saved_s=lambda: saved_of(result), host_wait_s=float(result.timeline.wait_s[0].sum()),
        host_floor_s=lambda: host_floor_of(result), graph_helps=request.stack.records and not request.graph,
        breakdown_s=lambda: _breakdown(result), ops=lambda: _ops(result),
        least_bytes=lambda: _least_bytes(result),
        references=(lambda: references_of(request)) if references else (),
        nearest=(lambda: nearest_of(request)) if references else None, warnings=lambda: warnings_of(request, result),
        assumptions=lambda: (*request.notes, *caches_note(request, result), assumptions(request)),
        assumed_values=lambda: assumed_values(request),
        provenance=lambda: provenance_of(request), spec=request.spec,
    )  # fmt: skip
    return _at_wall(found, request) if request.asked.get("boundary") == WALL else found


def _at_wall(e: Estimate, request: Request) -> Estimate:
    """An estimate whose power and energy are those at the wall, the share of one device of the computer; ops keep their own."""
    found = usual_wall_power(e.power_w, request.spec.device, request.host_cpu, request.asked.get("system"))
    power = found.share_w
    ends = found.held_out.around(power)
    # The errors of time and power are independent, so that those of the energy add in quadrature.
    reach = (math.hypot(math.log(of_time / e.latency_s), math.log(of_power / power))
             for of_time, of_power in zip(e.latency_interval_s, ends, strict=True))  # fmt: skip
    low, high = (math.exp(sign * far) for sign, far in zip((-1.0, 1.0), reach, strict=True))
    energy = power * e.latency_s
    return replace(
        e, power_w=power, power_interval_w=ends, energy_j=energy, energy_interval_j=(energy * low, energy * high),
        throughput_per_w=e.throughput_per_w / (power / e.power_w), power_boundary=WALL, wall=found,
        energy_breakdown_j={**e.energy_breakdown_j, **{name: added * e.latency_s for name, added in found.added_w.items()}},
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
    lowered, whole = result.lowered, (result.lowered.kernels.read_bytes + result.lowered.kernels.write_bytes).tolist()
    return {op.name: whole[plan] if plan >= 0 else 0.0 for op, plan in zip(lowered.ops, lowered.plan_of.tolist(), strict=True)}


def _ops(result: Run) -> tuple[OpEstimate, ...]:
    times, waits = result.timeline.op_time_s[0].tolist(), result.timeline.wait_s[0].tolist()
    rows = []
    for i, (op, plan) in enumerate(zip(result.lowered.ops, result.lowered.plan_of.tolist(), strict=True)):
        split = {name: float(values[0, plan]) for name, values in result.cost.bound_s.items()} if plan >= 0 else {}
        split |= _waits(waits[i], result, i == 0)
        largest = max(split, key=lambda name: split[name])
        energy = {name: float(result.energy[name][0, i]) for name in COMPONENTS}
        rows.append(OpEstimate(
            name=op.name, kind=op.kind.op, phase=op.phase, time_s=times[i], wait_s=waits[i],
            bound=largest if split[largest] > 0 else "none", flop=float(op.flop), dram_bytes=float(result.dram_bytes[0, i]),
            energy_j=math.fsum(energy.values()), energy_breakdown_j=energy, kernels=_kernels(result, plan) if plan >= 0 else (),
        ))  # fmt: skip
    return tuple(rows)


def _waits(waited_s: float, result: Run, first: bool) -> dict[str, float]:
    """The wait for the host CPU, of which that for samples comes before the `first` op [s]."""
    if not first or result.late_s is None:
        return {HOST: waited_s}
    late = float(result.late_s[0])
    return {HOST: waited_s - late, INPUT: late}


def _kernels(result: Run, plan: int) -> tuple[KernelEstimate, ...]:
    columns, cost = result.lowered.kernels, result.cost
    chosen = int(cost.option[0, plan])
    option, those = columns.options[chosen], columns.places(chosen)
    values = (cost.kernel_time_s, cost.kernel_bound, cost.kernel_clock, cost.kernel_power_w)
    rows = zip(option.kernels, *(value[0, those].tolist() for value in values), strict=True)
    return tuple(
        KernelEstimate(name=kernel.name, role=kernel.role.value, algorithm=option.algorithm, time_s=time,
                       bound=cost.bound_names[bound], clock_hz=clock, power_w=power)
        for kernel, time, bound, clock, power in rows if time > 0
    )  # fmt: skip


def _breakdown(result: Run) -> dict[str, float]:
    """The latency by what limits it [s], by bound name; the values add up to it.

    Of each op the times of its bounds count; where ops overlap, times the share of it that it adds to the latency.
    """
    index = result.lowered.plan_of
    share = result.share[0, index >= 0]
    live = index[index >= 0]
    split = {name: math.fsum((values[0, live] * share).tolist()) for name, values in result.cost.bound_s.items()}
    return split | _waits(math.fsum(result.timeline.wait_s[0].tolist()), result, True)


# ------------------------------------------------------------------------------------- a clock that keeps an energy budget


def check_budget(budget: float) -> None:
    """Raise ArgumentError for an energy that nothing can keep to [J]."""
    if not 0.0 < budget <= MOST_BUDGET:
        raise ArgumentError(f"energy budget {budget:g} J is not above 0 and up to {MOST_BUDGET:g} J")


def within_energy_budget(request: Request, budget: float) -> Request:
    """The request at the highest core clock, up to its own, at which a sample takes no more than a budget [J].

    A lower clock saves energy down to some clock, below which what is drawn all the time takes more than what the lower voltage
    saves. A power limit holds as well. Unchanged where the energy is within the budget already.

    Raises ArgumentError for a budget that is no energy, Unsupported for one below the least energy at any clock.

    >>> from archsim.estimation.request import make_request
    >>> slow = within_energy_budget(make_request("resnet_50", "tesla_v100_sxm2", batch=16), 0.22)
    >>> bool(slow.clock < 1.5e9), bool(run(slow).total_energy_j[0] / 16 <= 0.22)
    (True, True)
    """
    check_budget(budget)
    if request.asked.get("boundary") == WALL:
        raise ArgumentError("energy budget: is one of the device, which its clock decides; leave --boundary wall out")
    usual, top = float(run(request).total_energy_j[0]) / request.batch, first_of(request.clock)
    asked, said = f"energy budget {show(budget, 'J')} per sample", f"{show(usual, 'J')} without it"
    if usual > budget:
        clock = _highest(request, budget, top)
        request = with_spec(request, request.spec, clock=clock, power_mode=None)
        said = f"core clock {show(clock, 'Hz')}, the highest at which it is kept; {show(usual, 'J')} at up to {show(top, 'Hz')}"
    return replace(request, notes=(*request.notes, f"{asked}: {said}"))


def _highest(request: Request, budget: float, top: float) -> float:
    """The highest clock at which the energy is within the budget [Hz], found on ever finer clocks."""
    low, high, least = SLOWEST * top, top, (float("inf"), top)
    for _ in range(ROUNDS):
        clocks = np.linspace(low, high, CLOCKS)
        result = run(with_spec(request, request.spec, clock=clocks[:, None], power_mode=None))
        energies = np.broadcast_to(result.total_energy_j, clocks.shape) / request.batch
        place = int(np.argmin(energies))
        least = min(least, (float(energies[place]), float(clocks[place])))
        within = np.flatnonzero(energies <= budget)
        # where none is within the budget the least energy may lie between two clocks
        here = int(within[-1]) if within.size else place
        low, high = float(clocks[here if within.size else max(here - 1, 0)]), float(clocks[min(here + 1, CLOCKS - 1)])
    if least[0] > budget:
        raise Unsupported(f"energy budget {show(budget, 'J')} per sample: {request.network} on {request.spec.identity.id} takes "
                          f"{show(least[0], 'J')} at least, at a core clock of {show(least[1], 'Hz')}; `archsim tune` also tries "
                          "memory clocks, power limits and batches")  # fmt: skip
    return low


def warnings_of(request: Request, result: Run) -> tuple[str, ...]:
    """The warnings of an estimate, one sentence each."""
    device, memory = request.device, footprint_of(request, result)
    capacity, clock, boost = (first_of(value) for value in (device.memory.capacity, request.clock, device.clock.boost))
    found = []
    if not fits(memory, capacity):
        found.append(f"does not fit: needs {memory.total / 2**30:.2f} GiB of {capacity / 2**30:.2f} GiB")
    if isinstance(request.spec.device, Tpu):
        found.append(spilled(request.spec.device, result.lowered.kernels))
    found += [f"{said}, {STRICT}" for said in bounded(request.trace)]
    for key, value in without_effect(request).items():
        why = f": it is {value} already" if value else f"; {read_by(request, key)}" if read_by(request, key) else ""
        found.append(f"{key} changes no output of this estimate{why}")
    kind, spread = class_of(request, result)
    if kind.endswith(EXTRAPOLATED) and not spread.rows:
        found.append(f"no measured row of a {request.spec.kind.upper()} stands behind this: the interval is the widest of other "
                     "kinds of device, not one of its own")  # fmt: skip
    elif kind.endswith(EXTRAPOLATED):
        near = spread.basis or "rows of other cells"
        found.append(f"extrapolated: the interval rests on {near} and is wider for it")
    if not is_shipped(request.spec):  # a shipped device needs no model of areas
        found += [too_large(request.spec), unmeasured_node(request.spec.device, request.calibration)]
    lowest, clocks = SLOWEST * clock, result.cost.kernel_clock[result.cost.kernel_time_s > 0.0]
    if request.limit is not None and np.any(clocks < lowest * (1.0 - 1e-9)):
        found.append(f"some kernels would draw more than {first_of(request.limit):g} W even at {lowest / 1e6:.0f} MHz, "
                     "where clock tables end: they skip clocks, down to a tenth of these")  # fmt: skip
    found.append(request.fidelity.warning)
    if clock > 1.25 * boost:
        found.append(f"clock {clock / 1e6:.0f} MHz is far above the rated boost of {boost / 1e6:.0f} MHz")
    return tuple(filter(None, found))


def without_effect(request: Request) -> dict[str, str]:
    """The spec keys that were set or scaled without an effect on time, energy, traffic or memory of the request.

    A key's value is what the spec has for it, where it was set to just that; empty for a key that no model reads here.
    """
    settings, scales = (request.asked.get(name) or {} for name in ("settings", "scales"))
    if not settings and not scales:
        return {}
    hw, threads, here = request.asked["hw"], request.thread_count or 0, _outcome(request)

    def same(others: Mapping[str, str], scaled: Mapping[str, float]) -> bool:
        return _outcome(with_spec(request, find_device(hw, others, scaled, threads))) == here

    before, after = find_device(hw, None, threads=threads).entries, request.spec.entries
    return {key: before[key].written if key in before and before[key].value == after[key].value else ""
            for key in unneeded_keys(settings, scales, same)}  # fmt: skip


def read_by(request: Request, key: str) -> str:
    """What reads a key that the request does not, in words: simulated traffic, the cycle model, the area of the die; or nothing.

    >>> from archsim.estimation.request import make_request
    >>> read_by(make_request("alexnet", "gtx_1080"), "sm.alu_latency")
    '--fidelity cycle reads it'
    """
    unit = unit_of(request.spec.kind, key)
    if unit.cache and request.traffic == CLOSED and request.fidelity.calibrated:
        return "--traffic simulated reads it"
    if unit.cycle and request.fidelity.name != SIMULATED:
        return f"--fidelity {SIMULATED} reads it"
    if unit.closed and request.fidelity.name == SIMULATED:
        return f"--fidelity {FITTED} reads it; this one simulates what it says"
    return "the area of the die follows it (`archsim whatif --area`)" if moves_area(request.spec, key) else ""


def _outcome(request: Request) -> tuple[float, ...]:
    result = run(request)
    outputs = (result.latency_s, result.energy_j.sum(axis=-1), result.dram_bytes.sum(axis=-1), needed_bytes(request, result))
    return (*(float(output[0]) for output in outputs), float(request.device.memory.capacity))


def spilled(device: Tpu, kernels: Kernels) -> str:
    """A warning where activations stay in the buffer from op to op and those of an op do not fit into it; else empty."""
    needed, size = kernels.b_bytes + kernels.c_bytes, first_of(device.buffer.size)
    over = int(np.count_nonzero(needed > size))
    if not over or not np.all(np.asarray(device.buffer.resident) > 0):
        return ""
    return (f"{over} of {needed.size} kernels have more activations than the buffer holds, {needed.max() / 2**20:.3g} MiB of "
            f"{size / 2**20:.3g} MiB at most: what is over goes through memory, of which no measurement is known")  # fmt: skip
