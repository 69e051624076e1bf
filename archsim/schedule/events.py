"""The engine: resources that several things use at the same time, in simulated time kept by simpy.

A `Job` runs through phases, one after the other. A phase has an amount of work, the rate at which it runs alone, and what it
takes of each resource meanwhile. A `Shared` server runs all its jobs at once at max-min fair rates, solved anew whenever a job
starts, ends or changes its phase; between such moments nothing happens that a closed form does not say. So SMs, caches,
memories, links, disks and cores are all the same thing with other names, and a kernel, a copy, a ring or a decoder is a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from archsim.schedule.fair import Demand, max_min
from archsim.schedule.observer import Observer

if TYPE_CHECKING:
    from simpy import Environment, Event

REMEMBERED = 10_000  # solutions; layers repeat, and so do the kernels that meet
SLACK = 1e-12  # phases that end within this share of the time to the next event end with it; rounding parts them no more


class Phase(NamedTuple):
    """Part of a job. `work` is in units of its rate times seconds, `cap` is its rate alone.

    `demand` is what it takes of resources for each unit of its rate; `slots` the share of the pool of slots that it holds
    if it can get it. A kernel's work is its time alone, its cap 1; a copy's work is its bytes, its cap the fastest it may be.
    """

    work: float
    demand: Demand = ()
    cap: float = 1.0
    slots: float = 0.0
    name: str = ""


class Job:
    """Phases under way on a server; `done` happens when the last has ended, `ends` are the ends of those so far [s]."""

    __slots__ = ("at", "done", "ends", "left", "phases", "rate")

    def __init__(self, phases: Sequence[Phase], done: Event) -> None:
        self.phases, self.done = phases, done
        self.at, self.left, self.rate = 0, phases[0].work, 0.0
        self.ends: list[float] = []


class Shared:
    """A server with `capacity` for each resource (no entry: no end) and one pool of slots.

    Slots go to jobs in the order in which they came, as the CTAs of a kernel leave only what is left to the next one;
    whoever holds a share of the slots that it wants runs at that share of its rate at most. The rest is max-min fair.
    """

    def __init__(self, env: Environment, capacity: Mapping[str, float], observers: Sequence[Observer] = (),
                 counters: Mapping[str, tuple[str, float]] | None = None) -> None:  # fmt: skip
        """`counters` names the resources that observers hear of: resource -> (name with unit, what one unit of it is)."""
        from simpy.events import Timeout

        self._timeout: Callable[[Environment, float], Event] = Timeout
        self._env, self._capacity = env, dict(capacity)
        self._observers, self._counters = tuple(observers), dict(counters or {})
        self._active: list[Job] = []
        self._timer: Event | None = None
        self._since = 0.0
        self._due: list[Job] = []  # what ends a phase, or if alone all of them, when the timer does
        self._alone = self._unsolved = False
        self._solved: dict[tuple[int, ...], tuple[list[float], Sequence[Phase]]] = {}  # rates of phases that have met before
        self._ended: dict[int, tuple[Sequence[Phase], int]] = {}  # the phases of jobs that have ended, and of how many jobs
        self.changes = 0  # starts and ends of jobs and phases

    def run(self, phases: Sequence[Phase]) -> Job:
        """Start a job now."""
        job = Job(phases, self._env.event())
        self._progress()
        self._active.append(job)
        self.changes += 1
        if len(self._active) == 1:
            self._solve()
        else:
            self._solve_soon()
        return job

    def _solve_soon(self) -> None:
        """Solve once all that happens at this moment has happened: jobs often end and start together."""
        if not self._unsolved:
            self._unsolved = True
            self._timeout(self._env, 0.0).callbacks.append(self._settle)

    def _settle(self, _: Event) -> None:
        self._unsolved = False
        if self._active:
            self._progress()
            self._solve()

    @property
    def used(self) -> dict[str, float]:
        """What all jobs that have ended took of each resource, in its own unit times seconds."""
        taken: dict[str, float] = {}
        for phases, times in self._ended.values():
            for phase in phases:
                for resource, weight in phase.demand:
                    taken[resource] = taken.get(resource, 0.0) + times * weight * phase.work
        return taken

    def _progress(self) -> None:
        """Bring all jobs to the present."""
        now = self._env.now
        elapsed, self._since = now - self._since, now
        if elapsed <= 0.0:
            return
        if len(self._active) == 1:
            self._walk(self._active[0], elapsed, now)
            return
        for job in self._active:
            job.left = max(0.0, job.left - job.rate * elapsed)

    def _walk(self, job: Job, elapsed: float, now: float) -> None:
        """Let a job that is alone run on through its phases."""
        while elapsed > 0.0:
            rate = self._rate_alone(job.phases[job.at])
            needed = job.left / rate
            if needed > elapsed or job.at + 1 == len(job.phases):
                job.left = max(0.0, job.left - rate * elapsed)
                return
            elapsed -= needed
            self._next_phase(job, now - elapsed)

    def _next_phase(self, job: Job, now: float) -> bool:
        """End the phase of a job; whether there is another."""
        job.ends.append(now)
        self.changes += 1
        job.at += 1
        if job.at == len(job.phases):
            phases, times = self._ended.get(id(job.phases), (job.phases, 0))
            self._ended[id(job.phases)] = (phases, times + 1)  # which keeps them, so that no others get their id
            return False
        phase = job.phases[job.at]
        job.left = phase.work
        if self._counters and len(self._active) == 1:
            self._tell(now, ((phase, self._rate_alone(phase)),))
        return True

    def _rate_alone(self, phase: Phase) -> float:
        rate = phase.cap
        for resource, weight in phase.demand:
            if weight * rate > self._capacity.get(resource, inf):
                rate = self._capacity[resource] / weight
        return rate

    def _solve(self) -> None:
        """New rates for all, and an alarm for the next moment at which they change."""
        active = self._active
        self._alone = len(active) == 1
        if self._alone:
            job = active[0]
            phase = job.phases[job.at]
            job.rate = self._rate_alone(phase)
            horizon = job.left / job.rate
            for later in job.phases[job.at + 1 :]:
                horizon += later.work / self._rate_alone(later)
            self._due = active[:]
        else:
            horizon = self._fair_rates(active)
        if self._counters:
            self._tell(self._env.now, [(job.phases[job.at], job.rate) for job in active])
        self._timer = self._timeout(self._env, horizon)
        self._timer.callbacks.append(self._alarm)

    def _fair_rates(self, active: list[Job]) -> float:
        """Set the rates of several jobs; the time until the first of their phases ends [s]."""
        key = tuple([id(job.phases[job.at]) for job in active])
        if key not in self._solved:
            if len(self._solved) >= REMEMBERED:
                self._solved.clear()
            phases = [job.phases[job.at] for job in active]
            self._solved[key] = (self._shares(phases), phases)  # which keeps the phases, so that no others get their ids
        horizon = inf
        for job, rate in zip(active, self._solved[key][0], strict=True):
            job.rate = rate
            if job.left < horizon * rate:
                horizon = job.left / rate
        limit = horizon * (1.0 + SLACK)
        self._due = [job for job in active if job.rate > 0.0 and job.left <= limit * job.rate]
        return horizon

    def _shares(self, phases: Sequence[Phase]) -> list[float]:
        """The rates of phases, the first to come first: 0 for one that waits for slots."""
        free, rates, running = 1.0, [0.0] * len(phases), []
        for i, phase in enumerate(phases):
            held = min(phase.slots, free)
            if held > 0.0 or phase.slots <= 0.0:
                rates[i] = phase.cap if held >= phase.slots else phase.cap * held / phase.slots
                running.append(i)
            free -= held
        shared = max_min([phases[i].demand for i in running], [rates[i] for i in running], self._capacity)
        for i, rate in zip(running, shared, strict=True):
            rates[i] = rate
        return rates

    def _alarm(self, event: Event) -> None:
        if event is not self._timer:
            return  # rates have changed since this alarm was set
        self._progress()
        now, before = self._env.now, len(self._active)
        for job in self._due:
            going = self._next_phase(job, now)
            while self._alone and going:  # the sum of its phases is over, whatever rounding has left of the last
                going = self._next_phase(job, now)
            if not going:
                self._active.remove(job)
                job.done.succeed()
        if len(self._active) == before:
            self._solve()
        elif self._active:
            self._solve_soon()
        else:
            self._timer = None
            if self._counters:
                self._tell(now, ())

    def _tell(self, now: float, running: Iterable[tuple[Phase, float]]) -> None:
        """What all jobs take of the resources that have counters."""
        load = dict.fromkeys(self._counters, 0.0)
        for phase, rate in running:
            for resource, weight in phase.demand:
                if resource in load:
                    load[resource] += weight * rate
        for resource, (name, unit) in self._counters.items():
            for observer in self._observers:
                observer.level(name, now, load[resource] * unit)
