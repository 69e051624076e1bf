"""Data-parallel training in events: input pipelines, the steps of all devices, gradient exchange by buckets during backward."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from archsim.node.node import SERVER, Node
from archsim.schedule.collective import all_reduce
from archsim.schedule.events import Demand, Phase, SharedServer
from archsim.schedule.observer import Observer
from archsim.trace.kind import UPDATE
from archsim.trace.kinds.pointwise import KEPT_BYTES, OPTIMISERS
from archsim.trace.trace import BoundOp

if TYPE_CHECKING:
    from simpy import Environment, Event, Process, Store

DISK, CORES, MEMORY = "disk", "decode", "host memory"
PREFETCH = 2  # batches by which a stage of the input pipeline may run ahead of the next one (double buffering). A choice.
SYNCS = ("allreduce", "server")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStep:
    """The training step of one device without the others.

    compute_s: when all gradients are computed [s]
    update_s: time of the update after it [s]
    buckets: (when its gradients are complete [s], size [B]) of each bucket
    server_passes: what a server's update of weights and optimiser state moves in host memory, per byte of gradients
    """

    compute_s: float
    update_s: float
    buckets: tuple[tuple[float, float], ...]
    server_passes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The input of one step of one device. A stage whose bytes or rate is None is left out.

    samples: samples of the batch
    disk_bytes: read from the disk [B]
    decode_rate: samples per second that all decoding cores make together [1/s]
    copy_bytes, copy_rate: copied to the device [B], at most at this rate [B/s]
    """

    samples: int
    disk_bytes: float | None = None
    decode_rate: float | None = None
    copy_bytes: float | None = None
    copy_rate: float = float("inf")

    @property
    def empty(self) -> bool:
        """Whether all inputs are on the device from the start."""
        return (self.disk_bytes, self.decode_rate, self.copy_bytes) == (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """The steady state: the time of a step, and how the first device spends it.

    `input_s`, `compute_s`, `exchange_s` and `update_s` add up to `step_s` [s]. `exchange_s` is the part of the exchange that no
    computation hides. `busy` is the utilisation of each resource, `events` the number of events.
    """

    step_s: float
    input_s: float
    compute_s: float
    exchange_s: float
    update_s: float
    busy: Mapping[str, float]
    events: int


@dataclass(slots=True)
class _StepTimes:
    """When the first device reached each point of a step [s], step by step."""

    begun: list[float] = field(default_factory=list)
    fed: list[float] = field(default_factory=list)
    computed: list[float] = field(default_factory=list)
    summed: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)


def train(
    node: Node, devices: int, step: DeviceStep, pipeline: Pipeline, *, sync: str = "allreduce", overlap: bool = True,
    steps: int = 16, observers: Sequence[Observer] = (),
) -> TrainingRun:  # fmt: skip
    """Simulate `steps` steps of the first `devices` devices, and measure the later half, when the queues are in steady state.

    sync: `allreduce` (rings among the devices) or `server` (a parameter server in host memory)
    overlap: whether a bucket is exchanged as soon as it is complete, or all after the backward pass

    One device alone takes its computation and its update:

    >>> from archsim.node.spec import find
    >>> step = DeviceStep(compute_s=0.1, update_s=0.02, buckets=((0.1, 1e6),), server_passes=4.0)
    >>> round(train(find("dgx_1_v100").node, 1, step, Pipeline(samples=1)).step_s, 9)
    0.12
    """
    from simpy import Environment

    env = Environment()
    run = _TrainingSimulation(env, node, devices, step, pipeline, sync, overlap, steps, observers)
    working = [run.start(device) for device in range(devices)]
    env.run(run.half)
    before = dict(run.shared.used)
    env.run(env.all_of(working))
    return run.result(before)


class _TrainingSimulation:
    """The state of one simulation, shared by its processes."""

    def __init__(
        self, env: Environment, node: Node, devices: int, step: DeviceStep, pipeline: Pipeline, sync: str, overlap: bool,
        steps: int, observers: Sequence[Observer],
    ) -> None:  # fmt: skip
        from simpy import Store

        self.env, self.node, self.devices, self.step, self.pipeline = env, node, devices, step, pipeline
        self.sync, self.overlap, self.steps, self.observers = sync, overlap and devices > 1, steps, observers
        self.half = env.event()  # succeeds when the first device has done half of its steps
        self.clocks = _StepTimes()
        self.capacity = {**node.capacity(), DISK: node.disk.bandwidth, MEMORY: node.host_cpu.memory_bandwidth}
        if pipeline.decode_rate is not None:
            self.capacity[CORES] = pipeline.decode_rate
        named = {name: (f"{name} [GB/s]", 1e-9) for name in self.capacity if name != CORES} if observers else None
        up = [_hops(node.path(gpu, SERVER)) for gpu in node.gpus[:devices]]
        self.down = [_hops(node.path(SERVER, gpu)) for gpu in node.gpus[:devices]]
        sizes = [size for _, size in step.buckets]
        self.pushes, self.pulls = ([[_copy(size, path) for size in sizes] for path in paths] for paths in (up, self.down))
        self.sums = [_copy((devices + step.server_passes) * size, _hops([MEMORY])) for size in sizes]
        self.shared = SharedServer(env, self.capacity, observers, named)
        self.exchanges = len(step.buckets) if devices > 1 else 0
        self.ready = [[env.event() for _ in range(self.exchanges)] for _ in range(steps)]
        self.arrived = [[0] * self.exchanges for _ in range(steps)]
        self.summed = [[[env.event() for _ in range(self.exchanges)] for _ in range(devices)] for _ in range(steps)]
        self.reduction = [all_reduce(node, devices, size) for size in sizes if sync == "allreduce"]
        self._pushed: dict[tuple[int, int, int], Event] = {}
        self._complete = Store(env)  # buckets whose gradients have reached the server from all devices
        if self.exchanges:
            env.process(self._rings() if sync == "allreduce" else self._serve())

    def start(self, device: int) -> Process:
        """Start the processes of a device; returns the one that runs its steps."""
        from simpy import Store

        env, line = self.env, self.pipeline
        gpu = self.node.gpus[device]
        stages = [
            (DISK, line.disk_bytes, _hops([DISK]), float("inf")),
            (CORES, None if line.decode_rate is None else float(line.samples), _hops([CORES]), line.decode_rate or 0.0),
            ("copy", line.copy_bytes, self.down[device], line.copy_rate),
        ]  # fmt: skip
        source: Store | None = None
        for name, work, demand, cap in stages:
            if work:
                target = Store(env, PREFETCH)
                env.process(self._stage(gpu, name, [Phase(work, demand, cap)], source, target))
                source = target
        return env.process(self._device(device, source))

    def _stage(
        self, gpu: str, stage: str, phases: list[Phase], source: Store | None, target: Store
    ) -> Generator[Event, Any, None]:
        """The process of one input stage: batch after batch, at most `PREFETCH` ahead of the next stage."""
        for number in count():
            if source is not None:
                yield source.get()
            begun = self.env.now
            yield self.shared.run(phases).done
            self._report(f"{gpu} {stage}", f"batch {number}", begun, kind=stage)
            yield target.put(number)

    def _device(self, device: int, source: Store | None) -> Generator[Event, Any, None]:
        env, step, clocks = self.env, self.step, self.clocks if device == 0 else _StepTimes()
        gpu = self.node.gpus[device]
        served = self.sync == "server" and self.exchanges > 0
        for number in range(self.steps):
            if device == 0 and number == self.steps // 2:
                self.half.succeed()
            clocks.begun.append(env.now)
            if source is not None:
                yield source.get()
            clocks.fed.append(env.now)
            if served:
                env.process(self._push(device, number))
            done = 0.0
            for i, (time, _) in enumerate(step.buckets[: self.exchanges]):
                if self.overlap:
                    if time > done:
                        yield env.timeout(time - done)
                    self._arrive(number, i, device)
                    done = time
            if step.compute_s > done:
                yield env.timeout(step.compute_s - done)
            clocks.computed.append(env.now)
            self._report(gpu, "forward, backward", clocks.fed[-1], step=number)
            if not self.overlap:
                for i in range(self.exchanges):
                    self._arrive(number, i, device)
            for event in self.summed[number][device]:
                if not event.processed:
                    yield event
            clocks.summed.append(env.now)
            if not served and step.update_s > 0.0:
                yield env.timeout(step.update_s)
                self._report(gpu, "update", clocks.summed[-1], step=number)
            clocks.ended.append(env.now)

    def _arrive(self, step: int, bucket: int, device: int) -> None:
        """A bucket of gradients is complete on one device."""
        if self.sync == "server":
            self._gradients_ready(step, bucket, device).succeed()
            return
        self.arrived[step][bucket] += 1
        if self.arrived[step][bucket] == self.devices:
            self.ready[step][bucket].succeed((self.node.gpus[device], self.env.now))

    def _rings(self) -> Generator[Event, Any, None]:
        """The process of the rings: all-reduce bucket after bucket, in one order on all devices."""
        for number in range(self.steps):
            for i in range(self.exchanges):
                last = yield self.ready[number][i]
                begun = self.env.now
                yield self.shared.run(self.reduction[i]).done
                self._report("all-reduce", f"bucket {i}", begun, step=number)
                for observer in self.observers:
                    observer.followed(last, ("all-reduce", begun))
                for device in range(self.devices):
                    self.summed[number][device][i].succeed()

    def _gradients_ready(self, step: int, bucket: int, device: int) -> Event:
        """The event that succeeds when a device has the gradients of a bucket."""
        return self._pushed.setdefault((step, bucket, device), self.env.event())

    def _push(self, device: int, number: int) -> Generator[Event, Any, None]:
        """Send the gradients of a device to the server, bucket after bucket."""
        gpu = self.node.gpus[device]
        for i in range(self.exchanges):
            yield self._gradients_ready(number, i, device)
            begun = self.env.now
            yield self.shared.run(self.pushes[device][i]).done
            self._report(f"{gpu} push", f"bucket {i}", begun, step=number)
            self.arrived[number][i] += 1
            if self.arrived[number][i] == self.devices:
                yield self._complete.put((number, i))

    def _serve(self) -> Generator[Event, Any, None]:
        """The process of the server: sum and update bucket after bucket, then send the new values to all devices."""
        for _ in range(self.steps * self.exchanges):
            number, bucket = yield self._complete.get()
            begun = self.env.now
            yield self.shared.run(self.sums[bucket]).done
            self._report("server", f"bucket {bucket}", begun, step=number)
            for device in range(self.devices):
                self.env.process(self._pull(number, bucket, device))

    def _pull(self, number: int, bucket: int, device: int) -> Generator[Event, Any, None]:
        yield self.shared.run(self.pulls[device][bucket]).done
        self.summed[number][device][bucket].succeed()

    def _report(self, track: str, name: str, begun: float, **words: object) -> None:
        for observer in self.observers:
            observer.ran(track, name, begun, self.env.now, {"kind": name.rstrip(" 0123456789")} | words)

    def result(self, before: Mapping[str, float]) -> TrainingRun:
        """The later half of the steps, as seen by the first device."""
        c, first = self.clocks, self.steps // 2
        steps = self.steps - first
        span = c.ended[-1] - c.begun[first]

        def spent(start: list[float], end: list[float]) -> float:
            return sum(end[i] - start[i] for i in range(first, self.steps)) / steps

        compute, update = spent(c.fed, c.computed), spent(c.summed, c.ended)
        used = {name: (amount - before.get(name, 0.0)) / (self.capacity[name] * span)
                for name, amount in self.shared.used.items() if name in self.capacity}  # fmt: skip
        return TrainingRun(
            step_s=span / steps, input_s=spent(c.begun, c.fed), compute_s=compute, exchange_s=spent(c.computed, c.summed),
            update_s=update, busy={"device": (compute + update) * steps / span, **used},
            events=self.shared.changes + self.steps * self.devices * (2 * self.exchanges + 4),
        )  # fmt: skip


def _hops(names: Sequence[str]) -> Demand:
    return tuple((name, 1.0) for name in names)


def _copy(size: float, path: Demand) -> list[Phase]:
    """A copy of so many bytes over a path, at the bandwidth of the path."""
    return [Phase(size, path, float("inf"))]




# ------------------------------------------------------------------------------------------------- buckets of gradients

BUCKET_BYTES = 25e6  # B of one bucket (Li et al. 2020, PyTorch Distributed, section 4.2)


def device_step(
    ops: Sequence[BoundOp], end_s: Sequence[float], value_bytes: float, bucket_bytes: float = BUCKET_BYTES
) -> DeviceStep:  # fmt: skip
    """The training step of one device: when computation ends, and when each bucket of gradients is complete.

    Gradients fill buckets in the order in which the backward pass produces them. A bucket is closed as soon as it holds
    `bucket_bytes`; the last one may be smaller. Updates that overlap no computation come after it.

    ops: the bound ops of a training step, updates included, in execution order, [N]
    end_s: when each of them ends on an otherwise idle device [s], [N]
    value_bytes: size of a gradient, on the links as in memory [B]
    bucket_bytes: size at which a bucket is closed [B]

    >>> from archsim.trace.file import load
    >>> from archsim.trace.training import task_trace
    >>> ops = task_trace(load("alexnet"), "training_step").bind(N=1).ops
    >>> step = device_step(ops, [float(i + 1) for i in range(len(ops))], 4.0)
    >>> round(sum(size for _, size in step.buckets) / 4)  # the parameters of AlexNet
    60965224
    """
    position = {op.name: i for i, op in enumerate(ops)}
    updates = [op for op in ops if op.phase == UPDATE]
    compute_s = max(end_s[i] for i, op in enumerate(ops) if op.phase != UPDATE)
    complete_s = [max(end_s[position[name]] for name in op.inputs if name in position) for op in updates]
    ready = sorted((time, value_bytes * op.shape[0]) for time, op in zip(complete_s, updates, strict=True))
    buckets, size = [], 0.0
    for i, (time, values) in enumerate(ready):
        size += values
        if size >= bucket_bytes or i + 1 == len(ready):
            buckets.append((min(time, compute_s), size))
            size = 0.0
    kept = max((1 + OPTIMISERS[getattr(op.kind, "optimiser", "sgd")].state for op in updates), default=1)
    return DeviceStep(compute_s=compute_s, update_s=max(0.0, max(end_s) - compute_s), buckets=tuple(buckets),
                      server_passes=2.0 * kept * KEPT_BYTES / value_bytes)  # fmt: skip
