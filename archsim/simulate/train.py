"""Data-parallel training on the devices of a node: the scaling curve, and where the time of a step goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from archsim.base.errors import Unsupported, refuse_arguments
from archsim.base.units import show
from archsim.cost.dispatch import input_stage, link_rate, worker_rate
from archsim.device.device import Gpu
from archsim.device.variant import called, first_of
from archsim.estimation.estimate import provenance_of
from archsim.estimation.measured import differences, measured_on, predicted, request_of, trust
from archsim.estimation.memory import Footprint, assumptions, fits, footprint_of
from archsim.estimation.pipeline import input_bytes, run, samples_of
from archsim.estimation.request import Request
from archsim.evidence.case import DeviceGroup
from archsim.evidence.sources import source_of
from archsim.node.node import Node
from archsim.node.spec import NodeSpec, host_cpu
from archsim.schedule.observer import Observer, Recording, TimelineSlice
from archsim.schedule.serving import POWER
from archsim.schedule.training import BUCKET_BYTES, CORES, DISK, MEMORY, SYNCS, Pipeline, TrainingRun, device_step, train

SCHEMA = "archsim-train/1"
LEAST_STEPS, MOST_STEPS = 4, 10_000
HIDDEN, LATE = 5e-4, 0.02  # of a step: an exchange that is less is hidden, inputs that are more are worth a word
INPUTS = {DISK: "the disk is", CORES: "the decode workers are", MEMORY: "the host's memory is"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """The stages that a batch passes on its way to a device: read from `disk`, `decode` workers, a copy over `pcie`."""

    disk: bool = False
    decode: int | None = None
    pcie: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """One number n of devices. Times are those of a step of the first device [s] and add up to `step_s`.

    speedup = n t_1 / t_n, efficiency = t_1 / t_n, with t_n the step on n devices, each with the same batch (weak scaling)

    `exchange_s` is the part of the gradient exchange that no computation hides. `busy` is the utilisation of each resource,
    `busiest_link` the link with the highest.
    """

    devices: int
    step_s: float
    throughput_per_s: float
    speedup: float
    efficiency: float
    input_s: float
    compute_s: float
    exchange_s: float
    update_s: float
    energy_per_sample_j: float
    busy: Mapping[str, float]
    busiest_link: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReference:
    """A published step of the same network, stack, number of devices and total batch.

    `predicted_s` is predicted under the measurement's own conditions [s]; `conditions` names those that differ from the simulated
    step.
    """

    devices: int
    measured_s: float
    predicted_s: float
    error: float  # predicted / measured - 1
    source: str
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The result: a point for each number of devices. `batch` is that of one device."""

    network: str
    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    node: str
    stack: str
    precision: str
    optimiser: str
    batch: int
    sync: str
    overlap: bool
    input: Input
    bucket_bytes: float
    buckets: int
    gradient_bytes: float
    memory: Footprint  # of each device
    memory_capacity_bytes: float
    fits: bool
    points: tuple[ScalingPoint, ...]
    references: tuple[TrainingReference, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    assumed_values: tuple[str, ...]
    provenance: Mapping[str, str]


def simulate_training(
    request: Request, spec: NodeSpec, devices: Sequence[int], *, given: Input | None = None, sync: str = "allreduce",
    overlap: bool = True, bucket_bytes: float = BUCKET_BYTES, steps: int = 16, observers: Sequence[Observer] = (),
    tell: Callable[[str], object] = str,
) -> Training:  # fmt: skip
    """Simulate training steps of a request whose task is `training_step`; its batch is that of each device.

    given: input stages; without them inputs are on the device. bucket_bytes: gradients exchanged together [B]
    steps: simulated steps, of which the later half is measured

    Observers are attached to the largest number of devices, and told the power of all of them.
    Raises ArgumentError, or Unsupported for a device that is no GPU.
    """
    given = given or Input()
    _check(request, spec, devices, given, sync, bucket_bytes, steps)
    node, asked = spec.node, replace(request, stack=replace(request.stack, inputs="device"))
    result = run(asked)
    step = device_step(result.lowered.ops, result.timeline.end_s[0].tolist(), request.value_bytes, bucket_bytes)
    pipeline = input_pipeline(asked, spec, given)
    recorded, found = Recording(), dict[int, TrainingRun]()
    counts = sorted({1, *devices})
    for number, count in enumerate(counts, 1):
        tell(f"{count} {'device' if count == 1 else 'devices'} ({number} of {len(counts)})")
        watched = [*observers, recorded] if observers and count == max(devices) else ()
        found[count] = train(node, count, step, pipeline, sync=sync, overlap=overlap, steps=steps, observers=watched)
    energy, idle = float(result.energy_j[0].sum()), sum(map(first_of, result.idle_w.values()))
    busy_w = energy / (step.compute_s + step.update_s)
    for time, power in power_levels(recorded.slices, node.gpus[: max(devices)], busy_w, idle):
        for observer in observers:
            observer.level(POWER, time, power)

    def point(count: int) -> ScalingPoint:
        """Energy is that of the kernels of a step, plus idle power while the device waits."""
        t, alone_s = found[count], found[1].step_s
        waiting = max(0.0, t.step_s - step.compute_s - step.update_s)
        links = {name: share for name, share in t.busy.items() if " > " in name}
        return ScalingPoint(
            devices=count, step_s=t.step_s, throughput_per_s=count * request.batch / t.step_s,
            speedup=count * alone_s / t.step_s, efficiency=alone_s / t.step_s, input_s=t.input_s, compute_s=t.compute_s,
            exchange_s=t.exchange_s, update_s=t.update_s, energy_per_sample_j=(energy + idle * waiting) / request.batch,
            busy=t.busy, busiest_link=max(links, key=lambda name: links[name], default=""), events=t.events,
        )  # fmt: skip

    usual, chosen = show(BUCKET_BYTES, "B", 3), show(bucket_bytes, "B", 3)
    # how the step differs from that by which published steps are predicted
    otherwise = ([] if given == Input() else ["input ready on the device, not read, decoded or copied"])
    otherwise += [] if sync == "allreduce" else ["gradients exchanged in a ring, not by a parameter server"]
    otherwise += [] if bucket_bytes == BUCKET_BYTES else [f"buckets of {usual}, not {chosen}"]
    memory, capacity = footprint_of(asked, result), first_of(request.device.memory.capacity)
    said = f"does not fit: each device needs {memory.total / 2**30:.2f} GiB of {capacity / 2**30:.2f} GiB"
    return Training(
        **request.labels, node=node.id, optimiser=str(request.optimiser), batch=request.batch, sync=sync, overlap=overlap,
        input=given, bucket_bytes=bucket_bytes, buckets=len(step.buckets), gradient_bytes=sum(size for _, size in step.buckets),
        memory=memory, memory_capacity_bytes=capacity, fits=fits(memory, capacity), points=tuple(map(point, devices)),
        references=_references(asked, DeviceGroup(node=node, devices=1, overlaps=overlap), devices, otherwise),
        warnings=() if fits(memory, capacity) else (said,), assumptions=_notes(request, spec, given),
        assumed_values=tuple(entry.key for entry in (*request.spec.assumed, *spec.assumed)),
        provenance=provenance_of(request),
    )  # fmt: skip


def input_pipeline(request: Request, spec: NodeSpec, given: Input) -> Pipeline:
    """The input stages of one batch, with the rates of `archsim.cost.dispatch`."""
    node, device = spec.node, request.device
    decode = None if given.decode is None else _decode_rate(request, node, given.decode)
    rate = first_of(link_rate(device)) if isinstance(device, Gpu) else float("inf")
    size = input_bytes(request.trace)
    return Pipeline(
        samples=request.batch, disk_bytes=request.batch * node.input.sample if given.disk else None,
        decode_rate=decode, copy_bytes=size if given.pcie else None, copy_rate=rate,
    )  # fmt: skip


def _decode_rate(request: Request, node: Node, workers: int) -> float:
    """Samples that the cores of a node prepare together [1/s]: as its file states for each, else as estimates have it."""
    if node.input.decode is not None:
        return float(worker_rate(float(workers), node.cores, node.input.decode))
    stored, pixels = ("jpeg", int(node.input.pixels or 0)) if request.trace.images else ("array", 0)
    stack = replace(request.stack, reader=replace(request.stack.reader, workers=workers, stored=stored, pixels=pixels))
    samples = samples_of(replace(request, stack=stack))
    stage = input_stage(samples, stack.reader, host_cpu(node.host_cpu.id), node.cores, request.calibration, 0.0)
    return samples.count / first_of(stage.decode_s)


def _references(
    request: Request, group: DeviceGroup, devices: Sequence[int], options: Sequence[str]
) -> tuple[TrainingReference, ...]:
    """The published steps of these numbers of devices, in their order; `options` say what the simulation does otherwise."""
    sizes = {str(count): str(count * request.batch) for count in devices}

    def wanted(cells: Mapping[str, str]) -> bool:
        own = (cells["metric"], cells["task"], cells["precision"], cells["stack"])
        asked = ("latency_s", request.task, request.precision, request.stack.id)
        return own == asked and cells["devices"] in sizes and cells["batch"] == sizes[cells["devices"]]

    found = []
    for case in measured_on(request, wanted):
        if case.group is not None:
            own = request_of(case, request.calibration, request.fidelity.name)
            step_s, _ = predicted(case, own)
            asked = replace(request, group=replace(group, devices=case.group.devices))
            found.append(TrainingReference(
                devices=case.group.devices, measured_s=case.measured, predicted_s=step_s, error=step_s / case.measured - 1,
                source=source_of(case.source).citation, conditions=(*differences(own, asked), *options),
            ))  # fmt: skip
    return tuple(sorted(found, key=lambda reference: devices.index(reference.devices)))


def _notes(request: Request, spec: NodeSpec, given: Input) -> tuple[str, ...]:
    node, notes = spec.node, list(request.notes)
    name = called(request.spec)
    if node.holds and node.holds != name:
        notes.append(f"node {node.id}: sold with {node.holds}; here with {name}")
    if given.decode is not None and given.decode > node.cores:
        notes.append(f"decode={given.decode}: the node's processors have {node.cores:g} cores, which they share")
    if given == Input():
        notes.append("input: already on the device; --input disk,decode=8,pcie adds reading, decoding and copying")
    if given.disk or given.decode is not None:
        notes.append(f"input: a sample has {show(node.input.sample, 'B', 3)} on the disk (the node's file, for photographs)")
    if given.decode is not None:
        rate, asked = _decode_rate(request, node, given.decode), "as the node's file states for each core"
        if node.input.decode is None:
            pixels = f", {node.input.pixels:g} pixels of an image" if node.input.pixels and request.trace.images else ""
            asked = f"from the clock of {node.host_cpu.id} and the reader of {request.stack.id}{pixels}"
        notes.append(f"input: all workers together decode {rate:.4g} samples per second, {asked}")
    return (*notes, trust(request), assumptions(request),
            f"gradients are exchanged as memory holds them, {request.value_bytes} B each; the exchange takes no SM time and no "
            "memory bandwidth of the devices")  # fmt: skip


def _check(
    request: Request, spec: NodeSpec, devices: Sequence[int], given: Input, sync: str, bucket_bytes: float, steps: int
) -> None:
    if not isinstance(request.device, Gpu):
        raise Unsupported(f"{request.spec.identity.id}: data-parallel training is modelled on GPUs")
    most = spec.node.devices
    refuse_arguments({
        f"task {request.task}: training is simulated with task training_step": request.task != "training_step",
        **{f"devices {count} is not between 1 and {most}, which node {spec.node.id} holds": not 1 <= count <= most
           for count in devices},
        "devices: none are named": not devices, "devices: a number is given twice": len(set(devices)) != len(devices),
        f"decode={given.decode}: give 1 worker or more, or leave decode out": given.decode is not None and given.decode < 1,
        f"sync {sync!r} is not one of {', '.join(SYNCS)}": sync not in SYNCS,
        f"bucket {bucket_bytes:g} B is not a size above 0": not 0 < bucket_bytes < 1e15,
        f"steps {steps} is not between {LEAST_STEPS} and {MOST_STEPS}": not LEAST_STEPS <= steps <= MOST_STEPS,
    })  # fmt: skip


def power_levels(
    slices: Iterable[TimelineSlice], tracks: Collection[str], work_w: float, idle_w: float
) -> list[tuple[float, float]]:
    """Moments [s] with the power of all devices from each on [W]; the last is the end, with none.

    tracks: those of the devices, each of which works while anything runs on its track

    >>> ran = [TimelineSlice("gpu0", "forward", 1.0, 3.0, {}), TimelineSlice("gpu1", "forward", 2.0, 3.0, {})]
    >>> power_levels(ran, ["gpu0", "gpu1"], 100.0, 30.0)
    [(0.0, 60.0), (1.0, 130.0), (2.0, 200.0), (3.0, 0.0)]
    """
    changes = Counter[float]()
    for piece in slices:
        if piece.track in tracks:
            changes[piece.start_s] += 1
            changes[piece.end_s] -= 1
    moments = sorted(time for time, change in changes.items() if change)
    working, found = 0, [(0.0, len(tracks) * idle_w)] if moments and moments[0] > 0.0 else []
    for time in moments:
        working += changes[time]
        found.append((time, working * work_w + (len(tracks) - working) * idle_w))
    return [*found[:-1], (found[-1][0], 0.0)] if found else []


def why_training(t: Training) -> list[str]:
    """What the exchange of gradients and the input cost a step on the largest number of devices."""
    p = max(t.points, key=lambda point: point.devices)
    way = "The all-reduce" if t.sync == "allreduce" else "The exchange with the parameter server"
    size = f"{way} of {show(t.gradient_bytes, 'B', 3)} on {p.devices} devices"
    cost = f"{show(p.exchange_s, 's', 3)} ({100 * p.exchange_s / p.step_s:.1f} % of a step)"
    if p.devices == 1:
        found = ["One device exchanges no gradients."]
    elif not t.overlap:
        found = [f"{size} comes after the backward pass and takes {cost}."]
    elif p.exchange_s < HIDDEN * p.step_s:
        found = [f"{size} hides behind the backward pass."]
    else:
        found = [f"{size} hides behind the backward pass but for {cost}."]
    if p.input_s > LATE * p.step_s:
        busiest = max((name for name in INPUTS if name in p.busy), key=lambda name: p.busy[name], default="")
        used = f": {INPUTS[busiest]} busy {100 * p.busy[busiest]:.0f} % of the time" if busiest else ""
        found.append(f"A step waits {show(p.input_s, 's', 3)} ({100 * p.input_s / p.step_s:.0f} %) for its inputs{used}.")
    return found
