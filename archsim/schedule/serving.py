"""Requests that queue for devices, which answer them in batches: simpy keeps the time, service times come from outside."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archsim.schedule.observer import Observer

if TYPE_CHECKING:
    from simpy import Environment, Event

Array = NDArray[np.float64]
POWER = "power [W]"  # the counter
Service = Callable[[int], float]  # number of requests in a batch -> time that a device takes for it [s]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """Dynamic batching: a free device takes up to `most` requests once there are as many, or the oldest has waited `wait_s`."""

    most: int = 1
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRun:
    """When each request arrived, began to be worked on and was answered [s], and the batches that ran.

    `batches` has the size of each, `batch_s` how long it took. `events` counts arrivals, starts and ends.
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
        """From arrival to answer."""
        return self.end_s - self.arrival_s

    @property
    def wait_s(self) -> Array:
        """From arrival to the start of the batch."""
        return self.start_s - self.arrival_s

    @property
    def span_s(self) -> float:
        """From the first arrival to the last answer."""
        return float(self.end_s.max() - self.arrival_s[0])

    @property
    def utilisation(self) -> float:
        """Share of the devices' time in which they work."""
        return float(self.batch_s.sum()) / (self.devices * self.span_s)


def serve(
    arrival_s: Sequence[float], service: Service, batching: Batching | None = None, devices: int = 1,
    observers: Sequence[Observer] = (), power: Service | None = None,
) -> ServingRun:  # fmt: skip
    """Let requests arrive at these times, in order, and one queue feed `devices` alike.

    Observers hear of batches, waiting requests and, where `power` says what a device draws with a batch of a size (0: with
    none) [W], of that.
    """
    from simpy import Environment

    env = Environment()
    desk = _Desk(env, list(map(float, arrival_s)), service, batching or Batching(), devices, observers, power)
    env.process(desk.arrivals())
    env.run()
    return ServingRun(
        arrival_s=np.array(desk.arrival), start_s=np.array(desk.start), end_s=np.array(desk.end),
        batches=np.array(desk.batches, dtype=float), batch_s=np.array(desk.batch_s), devices=devices,
        events=len(desk.arrival) + 2 * len(desk.batches),
    )  # fmt: skip


class _Desk:
    """The queue and the devices."""

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
        self._deadline = -1.0  # of the alarm that is set for the oldest request

    def arrivals(self) -> Generator[Event, Any, None]:
        """One request after the other."""
        env, timeout, queue = self.env, self._timeout, self._queue
        for i, time in enumerate(self.arrival):
            delay = time - env.now
            if delay > 0.0:
                yield timeout(env, delay)
            queue.append(i)
            if self._free:
                self._dispatch()
            if self.observers:
                self._tell()

    def _dispatch(self) -> None:
        """Start batches while a device is free and the rule of batching lets it."""
        queue, batching, env = self._queue, self.batching, self.env
        while self._free and queue:
            ready = self.arrival[queue[0]] + batching.wait_s
            if len(queue) < batching.most and env.now < ready:
                if self._deadline != ready:
                    self._deadline = ready
                    self._timeout(env, ready - env.now, ready).callbacks.append(self._waited_enough)
                return
            self._begin([queue.popleft() for _ in range(min(batching.most, len(queue)))], self._free.pop())

    def _waited_enough(self, alarm: Event) -> None:
        deadline: float = alarm.value  # type: ignore[assignment]
        if deadline == self._deadline:
            self._deadline = -1.0
        queue = self._queue
        if queue and self._free and self.arrival[queue[0]] + self.batching.wait_s <= deadline:
            # rounding may leave the clock a hair before the deadline; the batch goes all the same
            self._begin([queue.popleft() for _ in range(min(self.batching.most, len(queue)))], self._free.pop())
        self._dispatch()

    def _begin(self, mine: list[int], device: int) -> None:
        now, size = self.env.now, len(mine)
        time = self.service(size)
        for i in mine:
            self.start[i] = now
        self._running[device] = size
        self.batches.append(size)
        self.batch_s.append(time)
        self._timeout(self.env, time, (mine, device)).callbacks.append(self._finish)

    def _finish(self, event: Event) -> None:
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
            self._tell()

    def _tell(self) -> None:
        for observer in self.observers:
            observer.level("waiting requests [1]", self.env.now, float(len(self._queue)))
            if self._power is not None:
                observer.level(POWER, self.env.now, sum(self._power(size) for size in self._running))


def in_turn(
    count: int, size: int, service: Service, observers: Sequence[Observer] = (), power: Service | None = None
) -> ServingRun:
    """A client that sends a query of `size` samples when the one before has been answered, `count` times."""
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
