"""Ops of a network on several CUDA streams of a GPU, fed by one host thread through a launch queue: the event fidelity."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.base.record import by_key
from archsim.cost.bounds import DRAM
from archsim.cost.plan import PlanCost
from archsim.device.device import Device, Gpu
from archsim.device.variant import first_of
from archsim.lower.lower import Lowered
from archsim.schedule.events import Job, Phase, SharedServer
from archsim.schedule.observer import Observer
from archsim.schedule.timeline import Array, Timeline
from archsim.schedule.waves import POWER, capacity, device_row, phases_of
from archsim.trace.trace import BoundOp

if TYPE_CHECKING:
    from simpy import Environment, Event

# Places of the launch queue: with so many launches pending the host blocks. The CUDA driver documents no number; reports of
# users name this order of magnitude. A choice.
QUEUE = 1024
HOST, STALLS = "host", "host, device waits"  # tracks


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedOp:
    """One op: the host takes `issue_s` [s] to issue it to `stream`, where its phases run after the ops in `after` have ended.

    `launches` is the number of places that it takes in the launch queue; one must be free when it is issued. `stall_s` is host
    work on it during which the device has to wait [s].
    """

    name: str
    issue_s: float
    phases: Sequence[Phase]
    stall_s: float = 0.0
    after: tuple[int, ...] = ()
    stream: int = 0
    launches: float = 1.0
    words: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRun:
    """When each op ran [s], in order of issue; what was used of each resource; the number of events."""

    start_s: list[float]
    end_s: list[float]
    used: Mapping[str, float]
    events: int


def assign(after: Sequence[Sequence[int]], time_s: Sequence[float], streams: int) -> list[int]:
    """A stream for each op: that of a predecessor which no other op has followed yet, else the stream that is free first.

    after: for each op, in order of issue, the positions of the ops that it depends on
    time_s: time of each op alone [s]; it only decides which stream is free first

    Two branches behind one op, on two streams:

    >>> assign([(), (0,), (0,), (1, 2)], [1.0, 2.0, 3.0, 1.0], 2)
    [0, 0, 1, 1]
    """
    last, free = [-1] * streams, [0.0] * streams
    end, chosen = [0.0] * len(time_s), []
    for op, before in enumerate(after):
        behind = [s for s in range(streams) if last[s] in before]
        stream = max(behind, key=lambda s: free[s]) if behind else min(range(streams), key=lambda s: free[s])
        ready = max((end[i] for i in before), default=0.0)
        end[op] = free[stream] = max(free[stream], ready) + time_s[op]
        last[stream] = op
        chosen.append(stream)
    return chosen


def run_streams(
    launches: Sequence[IssuedOp], capacity: Mapping[str, float], *, waits: bool = False, queue: float = QUEUE,
    observers: Sequence[Observer] = (), counters: Mapping[str, tuple[str, float]] | None = None,
) -> StreamRun:  # fmt: skip
    """Simulate one host thread, a launch queue of `queue` places, and the streams that the launches name.

    capacity: what all streams share, units per second of each resource
    waits: whether the host waits for each op to end before it issues the next (a synchronous framework)

    >>> alone = run_streams([IssuedOp(name="a", issue_s=0.5, phases=(Phase(2.0),))], {})
    >>> alone.end_s
    [2.5]
    """
    from simpy import Environment

    env = Environment()
    stage = _StreamSimulation(env, launches, SharedServer(env, capacity, observers, counters), waits, queue, observers)
    env.process(stage.host())
    for _, mine in sorted(by_key((launch.stream, i) for i, launch in enumerate(launches)).items()):
        env.process(stage.stream(mine))
    env.run()
    issues = sum(launch.issue_s > 0.0 for launch in launches)
    events = issues + 2 * len(launches) + stage.device.changes
    return StreamRun(start_s=stage.start, end_s=stage.end, used=stage.device.used, events=events)


class _StreamSimulation:
    """The state of one simulation, shared by its processes."""

    def __init__(
        self, env: Environment, launches: Sequence[IssuedOp], device: SharedServer, waits: bool, queue: float,
        observers: Sequence[Observer],
    ) -> None:  # fmt: skip
        self.env, self.launches, self.device, self.waits, self.queue = env, launches, device, waits, queue
        self.observers = observers
        self.start = [0.0] * len(launches)
        self.end = [0.0] * len(launches)
        self._issued, self._ended = _Milestones(env, len(launches)), _Milestones(env, len(launches))
        self._queued = 0.0
        self._room: Event | None = None

    def host(self) -> Generator[Event, Any, None]:
        """The process of the host: issue op after op."""
        env, issued, ended = self.env, self._issued, self._ended
        for i, launch in enumerate(self.launches):
            if self._queued >= self.queue:
                self._room = env.event()
                yield self._room
            if launch.issue_s > 0.0:
                begun = env.now
                yield env.timeout(launch.issue_s)
                for observer in self.observers:
                    observer.ran(HOST, f"issue {launch.name}", begun, env.now, {})
            self._queued += launch.launches
            issued.mark(i)
            if self.waits and not ended.has[i]:
                yield ended.event(i)

    def stream(self, mine: Sequence[int]) -> Generator[Event, Any, None]:
        """The process of one stream: run its ops in order."""
        env, issued, ended = self.env, self._issued, self._ended
        for i in mine:
            launch = self.launches[i]
            if not issued.has[i]:
                yield issued.event(i)
            for before in launch.after:
                if not ended.has[before]:
                    yield ended.event(before)
            self._queued -= launch.launches
            if self._room is not None and self._queued < self.queue:
                self._room.succeed()
                self._room = None
            now = begun = env.now
            if launch.stall_s > 0.0:
                yield env.timeout(launch.stall_s)
                now = env.now
            self.start[i] = self.end[i] = now
            if launch.phases:
                job = self.device.run(launch.phases)
                yield job.done
                self.end[i] = env.now
                if self.observers:
                    self._report(i, job, begun)
            ended.mark(i)

    def _report(self, op: int, job: Job, begun: float) -> None:
        """Report the op, its kernels inside it, and its dependencies on other streams."""
        launch = self.launches[op]
        track = track_of(launch.stream)
        for observer in self.observers:
            if self.start[op] > begun:
                observer.ran(STALLS, launch.name, begun, self.start[op], {"does": "update for which the device waits"})
            observer.ran(track, launch.name, self.start[op], self.end[op], launch.words or {})
            before = self.start[op]
            for phase, end in zip(job.phases, job.ends, strict=True):
                observer.ran(track, phase.name, before, end, {})
                before = end
            for source in launch.after:
                observer.followed((track_of(self.launches[source].stream), self.end[source]), (track, self.start[op]))


class _Milestones:
    """Which ops have reached a point (issued, ended), with an event for each op that another process waits for."""

    __slots__ = ("_awaited", "_env", "has")

    def __init__(self, env: Environment, ops: int) -> None:
        self.has = [False] * ops
        self._env = env
        self._awaited: dict[int, Event] = {}

    def mark(self, op: int) -> None:
        """The op has reached the point."""
        self.has[op] = True
        if op in self._awaited:
            self._awaited.pop(op).succeed()

    def event(self, op: int) -> Event:
        """The event that succeeds when the op reaches the point."""
        if op not in self._awaited:
            self._awaited[op] = self._env.event()
        return self._awaited[op]


def track_of(stream: int) -> str:
    """The track on which a stream reports."""
    return f"stream {stream}"


# ------------------------------------------------------------------------------------------------------------ a network

Plans = Sequence[tuple[Phase, ...]]
BEYOND_IDLE = "power beyond idle [W]"  # counter


def simulated(
    lowered: Lowered, cost: PlanCost, device: Device, issue_s: Array, *, waits: bool = False, streams: int = 1,
    observers: Sequence[Observer] = (), plans: Sequence[Plans] | None = None,
) -> Timeline:  # fmt: skip
    """Run the ops on `streams` CUDA streams of a GPU, or one after the other on a CPU, on each of D devices separately.

    issue_s: host time of each op [s], [D, N]
    plans: what `phases_of` returns for each device, where the caller has it already

    Observers are told of the first device only. On one stream the result equals `serial.asynchronous` to 1e-9.
    """
    waits = waits or not isinstance(device, Gpu)
    devices = max(len(cost.time_s), len(issue_s))
    start, end = np.zeros((devices, len(lowered.ops))), np.zeros((devices, len(lowered.ops)))
    for device_index in range(devices):
        watched = observers if device_index == 0 else ()
        launches = issued_ops(lowered, cost, device, issue_s, waits=waits, streams=streams, power=bool(watched),
                              device_index=device_index,
                              plans=None if plans is None or watched else plans[device_index])  # fmt: skip
        counters = _counters(device) if watched else None
        ran = run_streams(launches, capacity(), waits=waits, observers=watched, counters=counters)
        start[device_index], end[device_index] = ran.start_s, ran.end_s
    timeline = Timeline(start_s=start, end_s=end, wait_s=np.zeros_like(end))
    wait = np.maximum(0.0, timeline.op_time_s - (end - start))
    return Timeline(start_s=start, end_s=end, wait_s=wait)


def issued_ops(
    lowered: Lowered, cost: PlanCost, device: Device, issue_s: Array, *, waits: bool = False, streams: int = 1,
    power: bool = False, device_index: int = 0, plans: Plans | None = None,
) -> list[IssuedOp]:  # fmt: skip
    """The ops in order of issue, each on one of `streams` streams; with `power` their phases carry power beyond idle [W]."""
    plans = plans or phases_of(lowered.kernels, cost, device, power, device_index)
    index = lowered.plan_of.tolist()
    phases: list[tuple[Phase, ...]] = [plans[plan] if plan >= 0 else () for plan in index]
    after = dependencies(lowered.ops)
    chosen = assign(after, [sum(phase.work for phase in each) for each in phases], streams)
    stall_s = 0.0 * issue_s if waits else issue_s * lowered.kernels.synchronous[lowered.plan_of]
    launched, issue, stall = (device_row(values, device_index).tolist() for values in (cost.launches, issue_s - stall_s, stall_s))
    return [
        IssuedOp(
            name=op.name, issue_s=issue[i], phases=phases[i], stall_s=stall[i], stream=chosen[i],
            after=tuple([before for before in after[i] if chosen[before] != chosen[i]]),
            launches=launched[index[i]] if index[i] >= 0 else 0.0, words={"kind": op.kind.op, "phase": op.phase},
        )
        for i, op in enumerate(lowered.ops)
    ]  # fmt: skip


def dependencies(ops: Sequence[BoundOp]) -> list[tuple[int, ...]]:
    """For each of N ops the positions of the ops whose outputs it reads, [N].

    >>> from archsim.trace.file import load
    >>> dependencies(load("alexnet").bind(N=1).ops)[:3]
    [(), (0,), (1,)]
    """
    position: dict[str, int] = {}
    found = []
    for i, op in enumerate(ops):
        found.append(tuple(sorted({position[name] for name in op.inputs if name in position})))
        position[op.name] = i
    return found


def _counters(device: Device) -> Mapping[str, tuple[str, float]]:
    if not isinstance(device, Gpu):
        return {}
    bandwidth = first_of(device.memory.bandwidth * device.memory.achievable)
    shares = {resource: (f"{resource} [%]", 100.0) for resource in capacity()}
    return {**shares, DRAM: ("memory [GB/s]", bandwidth / 1e9), POWER: (BEYOND_IDLE, 1.0)}
