"""The explanation of one op: where its time comes from, down to spec keys and constants."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archsim.base.errors import ArgumentError, UnknownName, one_of
from archsim.cost.cost import Array
from archsim.cost.dispatch import host_time
from archsim.device.variant import called, first_of
from archsim.estimation.clock import memory_clock_of
from archsim.estimation.fidelity import FITTED, ExecutionSetting, on_device
from archsim.estimation.fidelity import find as find_fidelity
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request
from archsim.explain.algorithms import Candidate, candidates
from archsim.explain.equation import Step, constant_unit
from archsim.explain.kernel import ExplainedRun, KernelExplanation, explain_kernel, needed
from archsim.explain.reader import CONSTANT, SPEC, Leaf, Reader
from archsim.explain.value import Value
from archsim.trace.dims import SEQUENCE
from archsim.trace.kind import PHASES
from archsim.trace.trace import BoundOp
from archsim.trace.values import written

SCHEMA = "archsim-explanation/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrigin:
    """A number of the equations that is no result of them: a spec value or a constant. `kind` says how well it is known."""

    name: str
    value: float
    unit: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedOp:
    """An op of a request and what it takes. `time_s` = `device_s` + `wait_s` is what it adds to the latency of the network."""

    network: str
    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    stack: str
    task: str
    batch: int
    seq_len: int | None
    precision: str
    threads: int | None
    clock_hz: float
    memory_clock_hz: float | None
    layer: str
    kind: str
    phase: str
    attributes: Mapping[str, Any]
    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    flop: float
    least_bytes: float
    roofline_s: float
    roofline_bound: str
    time_s: float
    device_s: float
    wait_s: float
    input_s: Mapping[str, float]  # of the wait before the first op, for samples that the host decodes: itself, and what they take
    latency_s: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(ExplainedOp):
    """Why one op takes its time, by the equations of the closed form."""

    energy_j: float
    energy_breakdown_j: Mapping[str, float]
    algorithms: tuple[Candidate, ...]
    kernels: tuple[KernelExplanation, ...]
    host: tuple[Step, ...]
    spec: tuple[ValueOrigin, ...]
    constants: tuple[ValueOrigin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """One op of the list from which a layer is chosen."""

    layer: str
    kind: str
    phase: str
    time_s: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowest:
    """The ops of a network that add most to its latency, the longest first."""

    network: str
    hardware: str
    hardware_name: str
    ops: tuple[Slow, ...]


def slowest(request: Request, count: int = 10) -> Slowest:
    """The ops that add most to the latency."""
    result = run(request)
    times = result.timeline.op_time_s[0]
    order = np.argsort(-times, kind="stable")[:count].tolist()
    ops = tuple([
        Slow(layer=op.name, kind=op.kind.op, phase=op.phase, time_s=float(times[i]), share=float(times[i] / result.latency_s[0]))
        for i in order for op in (request.trace.ops[i],)
    ])  # fmt: skip
    return Slowest(network=request.network, hardware=request.spec.identity.id, hardware_name=called(request.spec), ops=ops)


def explain(request: Request, layer: str, phase: str | None = None) -> Explanation:
    """The explanation of `layer` in `phase` (the forward pass, or the only one that it has).

    Raises UnknownName for a layer that is not there, ArgumentError for a phase that it does not have or a request of another
    fidelity than the analytical one.
    """
    if request.fidelity.name != FITTED:
        raise ArgumentError(f"fidelity {request.fidelity.name}: only the analytical and the cycle model are explained")
    index = position(request, layer, phase)
    result = run(request)
    plan = int(result.lowered.plan_of[index])
    explained = ExplainedRun(request=request, result=result)
    kernels_explained = tuple([explain_kernel(explained, kernel) for kernel in chosen(result, plan)]) if plan >= 0 else ()
    host, of_host = host_steps(request, result, index, plan)
    return Explanation(
        **asked(request, result, index), energy_j=float(result.energy_j[0, index]),
        energy_breakdown_j={name: float(part[0, index]) for name, part in result.energy.items()},
        algorithms=candidates(request, result, index), kernels=kernels_explained, host=host,
        spec=_spec(request, kernels_explained), constants=_constants(request, kernels_explained, of_host),
    )  # fmt: skip


def asked(request: Request, result: Run, index: int) -> dict[str, Any]:
    """The fields of `ExplainedOp` for the op at `index`."""
    op, plan = request.trace.ops[index], int(result.lowered.plan_of[index])
    kernels, timeline = result.lowered.kernels, result.timeline
    at = ExecutionSetting(device=request.device, precision=request.precision, request=replace(request, limit=None))
    least = find_fidelity("roofline").cost(kernels, at) if plan >= 0 else None
    return {
        **request.labels, "task": request.task, "batch": request.batch, "seq_len": request.trace.symbols.get(SEQUENCE),
        "threads": request.thread_count, "clock_hz": _clock(request, result, plan),
        "memory_clock_hz": memory_clock_of(request.spec, request.memory), "layer": op.name, "kind": op.kind.op,
        "phase": op.phase, "attributes": written(op.kind), "inputs": op.input_shapes, "output": op.shape,
        "flop": _flop(request, result, op),
        "least_bytes": float(kernels.read_bytes[plan] + kernels.write_bytes[plan]) if plan >= 0 else 0.0,
        "roofline_s": float(least.time_s[0, plan]) if least else 0.0,
        "roofline_bound": max(least.bound_s, key=lambda name: float(least.bound_s[name][0, plan])) if least else "none",
        "time_s": float(timeline.op_time_s[0, index]), "device_s": float(result.cost.time_s[0, plan]) if plan >= 0 else 0.0,
        "wait_s": float(timeline.wait_s[0, index]), "input_s": _input(result) if index == 0 else {},
        "latency_s": float(result.latency_s[0]), "notes": (*request.notes, *_shared(request, result, op.name)),
    }  # fmt: skip


def _flop(request: Request, result: Run, op: BoundOp) -> float:
    """Arithmetic of an op, and of the products that its kernel computes too [FLOP]."""
    into = result.lowered.into
    others = [other for other in request.trace.ops if into.get(other.name) == op.name and other.name != op.name]
    return float(op.flop + sum(other.flop for other in others if other.kind.op in ("conv2d", "linear")))


def _shared(request: Request, result: Run, name: str) -> list[str]:
    """Which ops share a kernel with this one, by the rule of the stack."""
    into = result.lowered.into
    rule = request.stack.fusion.rule if request.stack.fusion.rule != "own" else f"that of {request.stack.id}"
    others = [fused for fused, anchor in into.items() if anchor == name and fused != name]
    said = [f"fusion: its kernel also computes {', '.join(others)}; rule {rule}"] if others else []
    return [f"fusion: part of the kernel of {into[name]}; rule {rule}", *said] if into.get(name, name) != name else said


def _input(result: Run) -> dict[str, float]:
    """The wait for samples that the host decodes, and what those of a batch take of each resource [s]; empty without them."""
    if result.stage is None or result.late_s is None:
        return {}
    parts = {"decoding": result.stage.decode_s, "copy": result.stage.copy_s}
    return {"wait": float(result.late_s[0])} | {name: first_of(part) for name, part in parts.items()}


def _clock(request: Request, result: Run, plan: int) -> float:
    """The clock of the op's kernels [Hz]: under a power limit the mean over their time."""
    if plan < 0 or request.limit is None:
        return first_of(request.clock)
    return float(result.cost.clocks[0, plan] / result.cost.time_s[0, plan])


def position(request: Request, layer: str, phase: str | None) -> int:
    """The op that `layer` names: its own name, or that of the forward op that it belongs to, in the phase asked for."""
    ops = request.trace.ops
    if phase is not None:
        one_of("phase", phase, PHASES)
    mine = [i for i, op in enumerate(ops) if layer and layer in (op.name, op.parent)]
    if not mine:
        known = list(dict.fromkeys(op.parent or op.name for op in ops))
        raise UnknownName("layer", layer, known, hint="without --layer the slowest are listed")
    exact = [i for i in mine if ops[i].name == layer and phase in (None, ops[i].phase)]
    found = exact or [i for i in mine if phase in (None, ops[i].phase)]
    if not found or (len(found) > 1 and not exact):
        has = ", ".join(dict.fromkeys(ops[i].phase for i in mine))
        more = "; --task training_step has its gradients" if request.task == "inference" else ""
        raise ArgumentError(f"{layer} has no single op of phase {phase or 'forward'} in task {request.task}; it has {has}{more}")
    return found[0]


def chosen(result: Run, plan: int) -> range:
    """Positions of the kernels of the algorithm that was chosen for a plan."""
    return result.lowered.kernels.places(int(result.cost.option[0, plan]))


def _behind(kernels_explained: Iterable[KernelExplanation], kind: str) -> dict[str, Leaf]:
    """The numbers of one kind that the equations name, each once, in order."""
    return {name: leaf for one in kernels_explained for name, leaf in one.stands_for.items() if leaf.kind == kind}


def _spec(request: Request, kernels_explained: tuple[KernelExplanation, ...]) -> tuple[ValueOrigin, ...]:
    entries = request.spec.entries
    return tuple([
        ValueOrigin(name=name, value=float(entries[name].value), unit=leaf.unit, kind=entries[name].kind,
                    source="; ".join(filter(None, (entries[name].source, entries[name].note))))
        for name, leaf in _behind(kernels_explained, SPEC).items()
    ])  # fmt: skip


def _constants(
    request: Request, kernels_explained: tuple[KernelExplanation, ...], host: Mapping[str, Leaf]
) -> tuple[ValueOrigin, ...]:
    constants = on_device(request.calibration, request.spec.device).constants
    named = [*_behind(kernels_explained, CONSTANT), *[name for name, leaf in host.items() if leaf.kind == CONSTANT]]
    return tuple([
        ValueOrigin(name=name, value=constants[name].value, unit=constant_unit(name),
                    kind=_kind(constants[name].fitted, constants[name].origin), source=constants[name].origin)
        for name in dict.fromkeys(named) if name in constants
    ])  # fmt: skip


def _kind(fitted: bool, origin: str) -> str:
    """How a constant came to its value: fitted, or as the first word of its origin says."""
    word = origin.partition(":")[0]
    return "fitted" if fitted else word if word in ("prior", "fact", "choice", "derived") else "fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpOnHost:
    """What one op asks of the host.

    host_ops: calls of the framework for the op
    nested: calls of one op from another's
    launches: kernels that the op launches
    time_s: time of its kernels [s]
    """

    host_ops: Array
    nested: Array
    launches: Array
    time_s: Array


def host_steps(request: Request, result: Run, index: int, plan: int) -> tuple[tuple[Step, ...], dict[str, Leaf]]:
    """The equations of what the host spends on the op at `index`, whose kernels are those of `plan`, and what their names are.

    Nothing for an op that launches nothing, for a stack without dispatch overhead, and for a graph that is replayed.
    """
    if plan < 0 or not request.stack.host or request.graph:
        return (), {}
    kernels, one = result.lowered.kernels, slice(plan, plan + 1)
    asked = {name: getattr(kernels, name, np.zeros(plan + 1))[one] for name in ("host_ops", "nested")}
    op = OpOnHost(**asked, launches=result.cost.launches[0, one], time_s=result.cost.time_s[0, one])
    known = {"kernels": op, "cost": op, "stack": request.stack, "device": request.device, "constants": request.calibration}
    given = [Value(value=known[name]) if name in known else Value(value=getattr(request, name), path=name)
             for name in inspect.signature(host_time).parameters]  # fmt: skip
    reader = Reader(model=lambda name: None)
    reader.named(reader.read(host_time, *given), "host")
    *before, last = reader.steps.values()
    meaning = f"what the host spends on the op{', while the device stands still' * bool(kernels.synchronous[plan])}"
    found, leaves = needed([*before, replace(last, value=float(result.host_s[0, index]), unit="s", meaning=meaning)], reader)
    return tuple(found), leaves
