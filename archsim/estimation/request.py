"""`Request`: what is asked, with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from archsim.base.arguments import ARGUMENTS, given_of
from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.naming import plain, resolve
from archsim.calibration.constants import Calibration, default
from archsim.cost.cost import Array
from archsim.detect.catalog import power_notes, threads_of
from archsim.device.device import PRECISION_ALIASES, PRECISION_BYTES, Cpu, Device, Gpu, Tpu
from archsim.device.spec import Spec, follow_notes
from archsim.device.variant import device_fields
from archsim.estimation import clock as clocks
from archsim.estimation import hardware
from archsim.estimation.fidelity import CLOSED, FITTED, Fidelity, RunSetting, asked_traffic, check_graph, check_streams
from archsim.estimation.fidelity import find as find_fidelity
from archsim.estimation.network import bound, bounded, samples_of, sized, sizes_of
from archsim.estimation.wall import check_boundary
from archsim.evidence.case import DeviceGroup
from archsim.lower.context import AS_MULTIPLIED, Stored
from archsim.stack import catalog as stacks
from archsim.stack import choose as stack_choice
from archsim.stack.stack import Stack
from archsim.trace import file as networks
from archsim.trace.dims import BATCH
from archsim.trace.file import digest
from archsim.trace.kind import UPDATE
from archsim.trace.task import Work, prepared, task_of, updated_by
from archsim.trace.trace import BoundTrace, Trace

WIDE, NARROWED = "fp32", "tf32"  # the precision of products, and what some frameworks take in its place


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(RunSetting):
    """What is asked: this network as this task on this device with this stack, every default filled in.

    network, batch: as the user or the source calls and counts them; `trace` has the graph and the samples that run
    memory: memory clock, as a share of the usual one [1], a float or [D, 1]
    work: what the ops are made of; None for single ops that somebody timed
    graph: whether the run is replayed as one CUDA graph
    cold: whether nothing that a run before has used is in the L2; else a run is one of many equal ones
    streams: CUDA streams on which ops that do not wait for each other may overlap
    host_cpu: the CPU that dispatches ops and launches kernels; a CPU dispatches for itself
    narrowed: the op kinds whose products run in `precision`, those of others in fp32; None: all
    stored: formats of weights and of cached values in memory, where they are narrower
    dispatch: how much of the host CPU's time for calls and launches counts; 0 for kernels that were timed alone
    group: devices that share a training step; the trace is then that of one of them
    asked: the arguments of `make_request`; what was not given there follows the device
    """

    network: str
    trace: BoundTrace
    work: Work | None
    spec: Spec
    stack: Stack
    task: str
    batch: int
    precision: str
    memory: float | Array = 1.0
    fidelity: Fidelity
    graph: bool = False
    cold: bool = False
    streams: int = 1
    host_cpu: Spec
    narrowed: frozenset[str] | None = None
    stored: Stored = AS_MULTIPLIED
    dispatch: float = 1.0
    group: DeviceGroup | None = None
    notes: tuple[str, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, Any]:
        """What answers say of what was asked: network, device with its changes, stack and precision."""
        return {"network": self.network, **device_fields(self.spec), "stack": self.stack.id, "precision": self.precision}

    @property
    def thread_count(self) -> int | None:
        """The threads of a request for one device; None on a GPU."""
        return None if self.threads is None else int(self.threads)

    @property
    def device(self) -> Device:
        """The device with its memory at the clock of the request."""
        return clocks.at_memory_clock(self.spec.device, self.memory)

    @property
    def host(self) -> Cpu:
        """The CPU that dispatches ops and launches kernels."""
        device = self.host_cpu.device
        assert isinstance(device, Cpu)  # as `host_of` has made sure
        return device

    @property
    def training(self) -> bool:
        """Whether the ops run as in training."""
        return self.task != "inference"

    @property
    def optimiser(self) -> str | None:
        """What updates the weights; None for a task without updates."""
        return next((getattr(op.kind, "optimiser", None) for op in self.trace.ops if op.phase == UPDATE), None)

    @property
    def value_bytes(self) -> int:
        """A weight, an activation or a gradient, in memory and on the links between devices [B]."""
        return PRECISION_BYTES[self.precision]

    @property
    def template(self) -> Trace:
        """The ops of the task, the batch not yet bound. Raises Unsupported for single ops."""
        if self.work is None:
            raise Unsupported(f"{self.network}: single ops have no other batch")
        return prepared(*self.work)

    @property
    def trace_digest(self) -> str:
        """Sixteen hexadecimal digits that stand for the ops of the task; empty for single ops."""
        return "" if self.work is None else _digest(self.work)


def make_request(
    net: str, hw: str, *, batch: int | None = None, precision: str | None = None, task: str = "inference",
    stack: str | None = None, threads: int | None = None, devices: int = 1, clock: float | None = None, fidelity: str = FITTED,
    settings: Mapping[str, str] | None = None, calibration: Calibration | None = None, input_gradient: bool = False,
    graph: bool = False, seq_len: int | None = None, power_limit: float | None = None, power_mode: str | None = None,
    optimiser: str | None = None, streams: int = 1, scales: Mapping[str, float] | None = None, host_cpu: str | None = None,
    traffic: str = CLOSED, inputs: str | None = None, bind: Mapping[str, int] | None = None, memory_clock: float | None = None,
    boundary: str | None = None, system: str | None = None, strict: bool = False, fusion: str | None = None,
    cold: bool = False, search: bool = False, composed: Stack | None = None,
) -> Request:  # fmt: skip
    """A request from names and numbers, which `ARGUMENTS` describes; what is not given takes its default, and `notes` say which.

    settings, scales: spec keys with written values, and with factors
    input_gradient: training also computes the gradient of the network's input
    composed: a stack between two that are compared, in place of the named one

    Raises UnknownName, ArgumentError, Unsupported, or InputError for a file that a name leads to.
    """
    asked = given_of(locals())
    check_boundary(boundary, system)
    spec, model = hardware.find_device(hw, settings, scales), find_fidelity(fidelity)
    hardware.check_names(spec, stack, host_cpu)
    net, task, usual = networks.canonical(net), task_of(task), spec.identity.default_stack
    precision = precision if precision is None else precision_of(precision)
    wanted = None if stack is None else stack_choice.chosen(stack, spec.kind, usual)
    asked |= given_of({"net": net, "precision": precision, "task": task, "stack": wanted})
    clock = clocks.asked_clock(spec, asked)  # type: ignore[assignment]  # one number
    chosen = composed or stack_choice.fused(wanted or usual, spec.identity.kernels_of, fusion)
    if inputs is not None:
        chosen = stack_choice.with_inputs(chosen, inputs, spec.identity.id, spec.kind)
    if search:
        chosen = stack_choice.searching(chosen, spec.kind)
    variant = chosen.variants.get(net, net)
    notes = [*_stack_notes(stack, wanted, chosen, spec), *stack_choice.of_today(chosen, fusion)]
    if variant != net:
        notes.append(f"network {net}: the graph {variant}, which {chosen.framework} builds under this name")
    if threads is None:
        threads = threads_of(spec, chosen) or None  # those that a change of the device keeps
        asked |= given_of({"threads": threads})
    spec = hardware.find_device(hw, settings, scales, threads or 0)
    device = spec.device
    trains_with, said = updated_by(optimiser, task, variant, chosen.optimiser, chosen.framework)
    work = Work(variant, task, trains_with, input_gradient, chosen.attention.fused, sizes=sizes_of(bind)).now
    batch, seq_len = sized(work, batch, seq_len)
    for argument, number in (("batch", batch), ("threads", threads)):
        if number is not None:
            ARGUMENTS[argument].check(number)
    if devices != 1:
        raise Unsupported(f"devices {devices}: an estimate is of one; `archsim simulate train` has several share a step, "
                          "and `archsim simulate serve` has several answer requests")  # fmt: skip
    clocks.check_core_clock(spec, clock)
    samples = samples_of(work, batch)
    notes += said
    if batch is None and samples != 1:
        notes.append(f"batch {samples}: as the shapes of the network's file fix it; 'N' in place of it leaves it to --batch")
    trace = bound(work, samples, seq_len)
    if told := work.stamp and prepared(*work).notes:
        notes.append(f"network {net}: {told}")
    if strict and (unknown := bounded(trace)):
        raise Unsupported(f"network {trace.name}: strict: {'; '.join(unknown)}")
    if threads is not None and not isinstance(device, Cpu):
        raise ArgumentError(f"threads belong to a CPU; a {device.kind.upper()} has none to set")
    if isinstance(device, Tpu):
        hardware.check_tpu(device, task, trace, power_limit)
        if precision is None:
            precision = device.precisions[0]
            notes.append(f"precision {precision}: what the cells of {device.identity.id} multiply; --precision sets another")
    precision, narrowed, said = _products(precision, device, chosen, trace)
    if isinstance(device, Gpu):
        if chosen.inputs == stack_choice.DECODED:
            notes.append(f"input {chosen.reader.words}; --inputs decoded,workers=8 sets a key of the stack's reader")
        if host_cpu is None and chosen.host:
            notes.append(f"host CPU {device.launch.host_cpu}: the usual one beside {spec.identity.id}; --host-cpu names another")
    if clock is None and power_limit is None and not isinstance(device, Tpu):
        notes.append(clocks.clock_note(spec, device))
    follows = following(spec, chosen, asked)
    notes += power_notes(spec) + clocks.limit_notes(device, power_limit)
    notes += [] if memory_clock is None else [clocks.memory_clock_note(spec, follows["memory"])]
    notes += said + hardware.precision_notes(device, precision, chosen)
    notes += hardware.architecture_notes(spec) + follow_notes(spec.entries)
    graph = graph or (chosen.replays and isinstance(device, Gpu) and model.calibrated)
    if graph:
        check_graph(device, chosen, model)
        notes.append("graph: recorded beforehand, which takes time of its own; the host issues it at once")
    if streams != 1:
        check_streams(device, chosen, model, streams)
        notes.append(f"streams {streams}: ops that do not wait for each other overlap; {chosen.id} itself runs them one by one")
    if search:
        spared = spec.identity.kernels_of in chosen.conv.uncopied and chosen.conv.layout_copies != "none"
        notes.append("search: of kernels, beforehand, which takes time of its own" if spared else
                     f"search: changes nothing, since {chosen.id} makes no copies here that other kernels would spare")
    if cold:
        again = isinstance(device, Gpu) and task == "inference"
        notes.append("cold: a single run, which finds no weights in the L2" if again else
                     "cold: changes nothing, since only inference on a GPU is taken to find weights of the run before in a cache")
    traffic, said = asked_traffic(traffic, model)
    hardware.check_vendor(spec, chosen)
    return Request(
        network=net, trace=trace, work=work, spec=spec, stack=chosen, task=task, batch=samples, precision=precision,
        narrowed=narrowed, fidelity=model, calibration=calibration or default(), graph=graph, cold=cold,
        streams=streams, traffic=traffic, notes=(*notes, *said), asked=asked, **follows,
    )  # fmt: skip


def following(
    spec: Spec, stack: Stack, asked: Mapping[str, Any], without: frozenset[str] = frozenset(), measured: bool = False
) -> dict[str, Any]:  # fmt: skip
    """What of a request follows the device where nobody asks: clock, limit, memory clock, threads and the host CPU.

    asked: arguments of `make_request`; without, measured: as of `clock_and_limit`
    """
    named, threads = clocks.asked_clock(spec, asked), None
    clock, limit = clocks.clock_and_limit(spec, named, asked.get("power_limit"), without, measured)
    if isinstance(spec.device, Cpu):
        usual = stack.usual_threads(spec.device.core.count, spec.device.core.threads)
        threads = usual if asked.get("threads") is None else asked["threads"]
    return {"threads": threads, "clock": clock, "turbo": named is None, "limit": limit,
            "memory": clocks.memory_clock_share(spec, asked.get("memory_clock")),
            "host_cpu": hardware.host_of(spec, asked.get("host_cpu"))}  # fmt: skip


def with_spec(request: Request, spec: Spec, **asked: Any) -> Request:
    """The same request with other numbers of the device; clock, limit and threads that were not asked for follow them.

    `asked` replaces arguments of `make_request` among clock, memory_clock, power_limit and threads, floats or [D, 1].
    """
    given = {**request.asked, **asked}
    return replace(request, spec=spec, asked=given, **following(spec, request.stack, given))


def with_batch(request: Request, batch: int) -> Request:
    """The same request for another batch. Raises ValueError for one that is too large, or that the shapes do not have."""
    if BATCH not in request.trace.symbols:
        raise ArgumentError(f"batch {batch}: network {request.network} fixes its batch, {request.batch}")
    return replace(request, batch=batch, trace=request.template.bind(**{**request.trace.symbols, BATCH: batch}))


@lru_cache(maxsize=256)
def _digest(work: Work) -> str:
    return digest(prepared(*work))[:16]


def precision_of(name: str) -> str:
    """The precision that a name stands for. Raises UnknownName.

    >>> precision_of("FP16"), precision_of("float32")
    ('fp16', 'fp32')
    """
    return resolve("precision", name, tuple(PRECISION_BYTES), lambda: PRECISION_ALIASES, f"one of {', '.join(PRECISION_BYTES)}")


def _stack_notes(given: str | None, wanted: str | None, stack: Stack, spec: Spec) -> list[str]:
    """What is said of the stack: whose choice it is, and parts that are newer than their names on this architecture."""
    found = [f"stack {stack.id}: the default for {spec.identity.id}; --stack names another"] if not given else []
    if given and wanted != given and plain(given) != plain(str(wanted)):
        found.append(f"stack {stack.id}: what {given} means on {spec.identity.id}; --stack {wanted} says it exactly")
    name = wanted or spec.identity.default_stack
    named, runs = (stacks.composition(name, on).parts for on in ("", spec.identity.kernels_of))
    return found + [f"{runs[axis]} in place of {part}: the first that has kernels for {spec.identity.architecture}"
                    for axis, part in named.items() if runs[axis] != part]  # fmt: skip


def _products(asked: str | None, device: Device, stack: Stack, trace: BoundTrace) -> tuple[str, frozenset[str] | None, list[str]]:
    """The precision of products, the op kinds that have it where others stay in fp32, and what is said of it.

    A framework may compute fp32 products of some op kinds in tf32 where the chip can; who does not ask gets that.
    """
    able = isinstance(device, Gpu) and device.has_tensor(NARROWED)
    present = {op.kind.op for op in trace.ops}
    usual = sorted(present & set(stack.tf32)) if able else []
    if asked is None and usual and trace.dtype == WIDE:
        others = "" if "linear" in stack.tf32 else ", fp32 in other products"
        note = f"precision tf32 in {', '.join(usual)}{others}: what {stack.id} does unless told otherwise"
        return NARROWED, frozenset(stack.tf32), [f"{note}; --precision fp32 or tf32 sets one for all"]
    if asked == WIDE and usual:
        note = f"precision fp32: unless its users turn that off, {stack.id} computes {', '.join(usual)} in tf32"
        return WIDE, None, [f"{note}; leave --precision out for that"]
    if asked is None and trace.dtype != WIDE:
        return trace.dtype, None, [f"precision {trace.dtype}: that of the network's file; --precision sets another"]
    return asked or WIDE, None, []
