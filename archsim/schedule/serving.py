"""Requests that queue for devices and are answered in batches; simpy keeps the time, the time of a batch is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.schedule.observer import Observer
from archsim.schedule.timeline import Array

if TYPE_CHECKING:
    from simpy import Environment, Event

POWER = "power [W]"  # the counter
Service = Callable[[int], float]  # number of requests in a batch -> time of the batch on one device [s]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """Dynamic batching: a free device takes up to `most` requests once that many wait, or the oldest has waited `wait_s` [s]."""

    most: int = 1
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRun:
    """When each of M requests arrived, started and was answered [s], [M], and the B batches that ran.

    `batches` are their sizes, [B], `batch_s` their times [s], [B]. `events` counts arrivals and starts and ends of batches.
    """

    arrival_s: Array
    start_s: Array
    end_s: Array
    batches: Array
    batch_s: Array
    devices: int
    events: int

    @property
    def latency_s(self) -> Array:
        """From arrival to answer [s], [M]."""
        return self.end_s - self.arrival_s

    @property
    def wait_s(self) -> Array:
        """From arrival to the start of the batch [s], [M]."""
        return self.start_s - self.arrival_s

    @property
    def span_s(self) -> float:
        """From the first arrival to the last answer [s]."""
        return float(self.end_s.max() - self.arrival_s[0])

    @property
    def utilisation(self) -> float:
        """Share of the devices' time in which they run a batch."""
        return float(self.batch_s.sum()) / (self.devices * self.span_s)


def serve(
    arrival_s: Sequence[float], service: Service, batching: Batching | None = None, devices: int = 1,
    observers: Sequence[Observer] = (), power: Service | None = None,
) -> ServingRun:  # fmt: skip
    """One queue of requests before `devices` equal devices.

    arrival_s: arrival times in order [s], [M]
    service: size of a batch -> its time [s]
    power: size of the batch on a device (0: none) -> its power [W], for observers

    Observers are told of batches, of the number of waiting requests and, with `power`, of the power of all devices.
    With one request per batch and Poisson arrivals this is the queue M/D/n.

    Two requests, of which the second waits for the first:

    >>> serve([0.0, 1.0], lambda size: 3.0).end_s.tolist()
    [3.0, 6.0]
    """
    from simpy import Environment

    env = Environment()
    desk = _Server(env, list(map(float, arrival_s)), service, batching or Batching(), devices, observers, power)
    env.process(desk.arrivals())
    env.run()
    return ServingRun(
        arrival_s=np.array(desk.arrival), start_s=np.array(desk.start), end_s=np.array(desk.end),
        batches=np.array(desk.batches, dtype=float), batch_s=np.array(desk.batch_s), devices=devices,
        events=len(desk.arrival) + 2 * len(desk.batches),
    )  # fmt: skip


class _Server:
    """The queue and its devices."""

    def __init__(
        self, env: Environment, arrival: list[float], service: Service, batching: Batching, devices: int,
        observers: Sequence[Observer], power: Service | None,
    ) -> None:  # fmt: skip
        from simpy.events import Timeout

        self._timeout: Callable[..., Event] = Timeout
        self.env, self.arrival, self.service, self.batching = env, arrival, service, batching
        self.observers, self._power = observers, power
        self._running = [0] * devices  # the size of the batch on each device
        self.start, self.end = [0.0] * len(arrival), [0.0] * len(arrival)
        self.batches: list[int] = []
        self.batch_s: list[float] = []
        self._queue: deque[int] = deque()
        self._free = list(range(devices - 1, -1, -1))
        self._deadline = -1.0  # of the alarm for the oldest request; -1: none is set

    def arrivals(self) -> Generator[Event, Any, None]:
        """The process that appends requests to the queue."""
        env, timeout, queue = self.env, self._timeout, self._queue
        for i, time in enumerate(self.arrival):
            delay = time - env.now
            if delay > 0.0:
                yield timeout(env, delay)
            queue.append(i)
            if self._free:
                self._dispatch()
            if self.observers:
                self._report()

    def _dispatch(self) -> None:
        """Start batches while a device is free and the batching rule allows it."""
        queue, batching, env = self._queue, self.batching, self.env
        while self._free and queue:
            ready = self.arrival[queue[0]] + batching.wait_s
            if len(queue) < batching.most and env.now < ready:
                if self._deadline != ready:
                    self._deadline = ready
                    self._timeout(env, ready - env.now, ready).callbacks.append(self._wait_over)
                return
            self._start_batch([queue.popleft() for _ in range(min(batching.most, len(queue)))], self._free.pop())

    def _wait_over(self, alarm: Event) -> None:
        deadline: float = alarm.value  # type: ignore[assignment]
        if deadline == self._deadline:
            self._deadline = -1.0
        queue = self._queue
        if queue and self._free and self.arrival[queue[0]] + self.batching.wait_s <= deadline:
            # rounding may put the present a little before the deadline; the batch starts all the same
            self._start_batch([queue.popleft() for _ in range(min(self.batching.most, len(queue)))], self._free.pop())
        self._dispatch()

    def _start_batch(self, mine: list[int], device: int) -> None:
        now, size = self.env.now, len(mine)
        time = self.service(size)
        for i in mine:
            self.start[i] = now
        self._running[device] = size
        self.batches.append(size)
        self.batch_s.append(time)
        self._timeout(self.env, time, (mine, device)).callbacks.append(self._end_batch)

    def _end_batch(self, event: Event) -> None:
        mine, device = event.value  # type: ignore[misc]
        now = self.env.now
        for i in mine:
            self.end[i] = now
        self._free.append(device)
        self._running[device] = 0
        for observer in self.observers:
            words = {"kind": f"batch of {len(mine)}", "requests": len(mine), "first": mine[0]}
            observer.ran(f"device {device}", f"batch of {len(mine)}", self.start[mine[0]], now, words)
        self._dispatch()
        if self.observers:
            self._report()

    def _report(self) -> None:
        for observer in self.observers:
            observer.level("waiting requests [1]", self.env.now, float(len(self._queue)))
            if self._power is not None:
                observer.level(POWER, self.env.now, sum(self._power(size) for size in self._running))


def closed_loop(
    count: int, size: int, service: Service, observers: Sequence[Observer] = (), power: Service | None = None
) -> ServingRun:
    """A closed-loop client: it sends a query of `size` samples when the one before has been answered, `count` times.

    >>> closed_loop(3, 1, lambda size: 2.0).end_s.tolist()
    [2.0, 4.0, 6.0]
    """
    time = service(size)
    start = time * np.arange(count, dtype=np.float64)
    for observer in observers:
        words = {"kind": f"batch of {size}", "requests": size}
        for number, begun in enumerate(start.tolist()):
            observer.ran("device 0", f"query {number}", begun, begun + time, words)
        if power is not None:
            observer.level(POWER, 0.0, power(size))
            observer.level(POWER, time * count, power(0))
    return ServingRun(arrival_s=start, start_s=start, end_s=start + time, batches=np.full(count, float(size)),
                  batch_s=np.full(count, time), devices=1, events=2 * count)  # fmt: skip
