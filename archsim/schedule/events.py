"""The engine: resources that several things use at the same time, in simulated time kept by simpy.

A `Job` runs through phases, one after the other. A phase has an amount of work, the rate at which it runs alone, and what it
takes of each resource meanwhile. A `SharedServer` runs all its jobs at once at max-min fair rates, solved anew whenever a job
starts, ends or changes its phase; between such moments nothing happens that a closed form does not say. So SMs, caches,
memories, links, disks and cores are all the same thing with other names, and a kernel, a copy, a ring or a decoder is a job.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from archsim.schedule.fair_share import Demand, max_min
from archsim.schedule.observer import Observer

if TYPE_CHECKING:
    from simpy import Environment, Event

REMEMBERED = 10_000  # solutions; layers repeat, and so do the kernels that meet
SLACK = 1e-12  # phases that end within this share of the time to the next end with it; rounding parts them no more


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """Part of a job. `work` is in units of its rate times seconds, `cap` is its rate alone.

    `demand` is what it takes of resources for each unit of its rate; `slots` the share of the pool of slots that it holds
    if it can get it. A kernel's work is its time alone, its cap 1; a copy's work is its bytes, its cap the fastest it may be.
    Phases are told apart as objects: the same ones that meet again are not solved again.
    """

    work: float
    demand: Demand = ()
    cap: float = 1.0
    slots: float = 0.0
    name: str = ""


Alone = tuple[Sequence[Phase], list[float], list[float]]  # phases with their rates and times


class Job:
    """Phases under way on a server; `done` happens when the last has ended, `ends` are the ends of those so far [s]."""

    __slots__ = ("done", "ends", "left", "mark", "phases")
    mark: tuple[int, float]  # phases that had ended and work that was left when the server last looked ahead

    def __init__(self, phases: Sequence[Phase], done: Event) -> None:
        self.phases, self.done = phases, done
        self.left = phases[0].work
        self.ends: list[float] = []


class SharedServer:
    """A server with `capacity` for each resource (no entry: no end) and one pool of slots.

    Slots go to jobs in the order in which they came, as the CTAs of a kernel leave only what is left to the next one;
    whoever holds a share of the slots that it wants runs at that share of its rate at most. The rest is max-min fair.

    Only the end of a job matters to anyone else, so the server looks ahead to the first one and sets one alarm for it, however
    many phases change before; a job that starts earlier takes it back to the present.
    """

    def __init__(self, env: Environment, capacity: Mapping[str, float], observers: Sequence[Observer] = (),
                 counters: Mapping[str, tuple[str, float]] | None = None) -> None:  # fmt: skip
        """`counters` names the resources that observers hear of: resource -> (name with unit, what one unit of it is)."""
        from simpy.events import Timeout

        self._timeout: Callable[[Environment, float], Event] = Timeout
        self._env, self._capacity = env, dict(capacity)
        self._observers, self._counters = tuple(observers), dict(counters or {})
        self._active: list[Job] = []
        self._alarm: Event | None = None  # for the first end of a job; while there is one, all jobs stand as they will then
        self._since = self._until = 0.0  # when the server last looked ahead, and how far
        self._awaited = False  # whether it will look ahead at the end of this moment
        self._seen: list[tuple[float, list[tuple[Phase, float]]]] = []  # what observers will hear of the time until then
        self._solved: dict[tuple[Phase, ...], list[float]] = {}  # rates of phases that have met before
        self._alone: dict[int, Alone] = {}  # by the id of the phases
        self._over: list[Job] = []  # the jobs that end with the alarm
        self._ended: list[Sequence[Phase]] = []  # the phases of all jobs that have ended

    def run(self, phases: Sequence[Phase]) -> Job:
        """Start a job now."""
        job = Job(phases, self._env.event())
        if self._alarm is not None:
            self._return()
        self._active.append(job)
        if len(self._active) == 1:
            self._look_ahead()
        else:
            self._look_ahead_soon()
        return job

    @property
    def used(self) -> dict[str, float]:
        """What all jobs that have ended took of each resource, in its own unit times seconds."""
        taken: dict[str, float] = {}
        distinct, times = {id(phases): phases for phases in self._ended}, Counter(map(id, self._ended))
        for key, phases in distinct.items():
            for phase in phases:
                for resource, weight in phase.demand:
                    taken[resource] = taken.get(resource, 0.0) + times[key] * weight * phase.work
        return taken

    @property
    def changes(self) -> int:
        """Starts of jobs that have ended, and ends of their phases."""
        return sum(1 + len(phases) for phases in self._ended)

    def _look_ahead_soon(self) -> None:
        """Look ahead once all that happens at this moment has happened: jobs often end and start together."""
        if not self._awaited:
            self._awaited = True
            self._timeout(self._env, 0.0).callbacks.append(self._settle)

    def _settle(self, _: Event) -> None:
        self._awaited = False
        if self._active and self._alarm is None:
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Run all jobs on to the first end of one, and set the alarm for it."""
        self._since = now = self._env.now
        for job in self._active:
            job.mark = (len(job.ends), job.left)
        delay = self._walk(inf) - now
        self._until = now + delay  # as simpy reckons it, which rounding may set apart from where the walk has ended
        for job in self._over:
            job.ends[-1] = self._until
        self._alarm = self._timeout(self._env, delay)
        self._alarm.callbacks.append(self._close)

    def _return(self) -> None:
        """Bring all jobs back from the moment of the alarm to the present."""
        now = self._env.now
        if now < self._until:
            for job in self._active:
                at, job.left = job.mark
                del job.ends[at:]
            self._seen.clear()
            self._over.clear()
            self._walk(now)
        self._close(self._alarm)

    def _close(self, alarm: Event | None) -> None:
        """What was foreseen has happened: tell it, and let go of the jobs that have ended."""
        if alarm is not self._alarm:
            return  # a job has started since it was set
        self._alarm = None
        if self._counters:
            for moment, running in self._seen:
                self._tell(moment, running)
            self._seen.clear()
        for job in self._over:
            self._active.remove(job)
            self._ended.append(job.phases)
            job.done.succeed()
            if self._active and not self._awaited:
                self._awaited = True
                job.done.callbacks.append(self._settle)  # after whoever waits for the job, who may start another
        self._over.clear()
        if self._counters and not self._active:
            self._tell(self._env.now, ())

    def _walk(self, until: float) -> float:
        """Let all jobs run on until that moment [s], or until the first of them ends; the moment when they stop."""
        active, over, solved, now = self._active, self._over, self._solved, self._since
        if len(active) == 1:
            return self._walk_alone(active[0], until)
        phases, left = [job.phases[len(job.ends)] for job in active], [job.left for job in active]
        while not over and now < until:
            met = tuple(phases)
            rates = solved.get(met) or self._solve(met)
            if self._counters:
                self._seen.append((now, list(zip(phases, rates, strict=True))))
            step = inf
            for i, rate in enumerate(rates):
                if left[i] < step * rate:
                    step = left[i] / rate
            if now + step > until:
                left = [max(0.0, work - rate * (until - now)) for work, rate in zip(left, rates, strict=True)]
                now = until
                break
            now += step
            limit = step * (1.0 + SLACK)
            for i, rate in enumerate(rates):
                if left[i] > limit * rate:
                    left[i] -= rate * step
                    continue
                job = active[i]
                job.ends.append(now)
                if len(job.ends) < len(job.phases):
                    phases[i] = job.phases[len(job.ends)]
                    left[i] = phases[i].work
                else:
                    over.append(job)
        for job, work in zip(active, left, strict=True):
            job.left = work
        return now

    def _walk_alone(self, job: Job, until: float) -> float:
        """The same for a job that shares with nobody, whose rates do not depend on the moment."""
        phases, ends, at = job.phases, job.ends, len(job.ends)
        _, rates, times = self._alone.get(id(phases)) or self._solve_alone(phases)
        ends += accumulate((self._since + job.left / rates[at], *times[at + 1 :]))
        now = ends[-1]
        if now > until:
            del ends[bisect_right(ends, until, at) :]
            left, begun = (phases[len(ends)].work, ends[-1]) if len(ends) > at else (job.left, self._since)
            job.left, now = max(0.0, left - rates[len(ends)] * (until - begun)), until
        else:
            self._over.append(job)
        if self._counters:
            begins = (self._since, *ends[at:])
            self._seen += [(begin, [(phases[i], rates[i])]) for i, begin in enumerate(begins, at) if i < len(phases)]
        return now

    def _solve_alone(self, phases: Sequence[Phase]) -> Alone:
        """The rates and times of the phases of a job without others."""
        rates = []
        for phase in phases:
            rate = phase.cap
            for resource, weight in phase.demand:
                if weight * rate > self._capacity.get(resource, inf):
                    rate = self._capacity[resource] / weight
            rates.append(rate)
        found = phases, rates, [phase.work / rate for phase, rate in zip(phases, rates, strict=True)]
        self._alone[id(phases)] = found  # which keeps the phases, so that no others get their id
        return found

    def _solve(self, phases: tuple[Phase, ...]) -> list[float]:
        """The rates of phases, the first to come first: 0 for one that waits for slots."""
        if len(self._solved) >= REMEMBERED:
            self._solved.clear()
        free, rates, load = 1.0, [], dict[str, float]()
        for phase in phases:
            held = phase.slots if phase.slots < free else free
            rate = phase.cap if held == phase.slots else phase.cap * held / phase.slots
            rates.append(rate)
            free -= held
            for resource, weight in phase.demand:
                load[resource] = load.get(resource, 0.0) + weight * rate
        for resource, wanted in load.items():
            if wanted > self._capacity.get(resource, inf):
                rates = max_min([phase.demand for phase in phases], rates, self._capacity)
                break
        self._solved[phases] = rates
        return rates

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
