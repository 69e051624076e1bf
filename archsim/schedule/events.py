"""The event engine: jobs that share resources in simulated time, which simpy keeps, by max-min fair shares.

A `Job` runs its phases one after the other. A `Phase` has an amount of work, the rate at which it runs alone, and its demand: how
much of each resource one unit of its rate takes. A `SharedServer` runs all its jobs at once at max-min fair rates. It solves for
the rates whenever a job starts, ends or changes its phase; between two such events all rates are constant.

SMs, caches, memories, links, disks and cores are all resources of such a server. A kernel, a copy, an all-reduce or a decoded
image is a job on it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from archsim.schedule.observer import Observer

if TYPE_CHECKING:
    from simpy import Environment, Event


# ---------------------------------------------------------------------------------------------------------- fair shares

Demand = tuple[tuple[str, float], ...]  # (resource, how much of it a flow takes for each unit of its own rate)

TINY = 1e-12  # of a capacity: what rounding leaves of a resource that is used up


def max_min(demands: Sequence[Demand], caps: Sequence[float], capacity: Mapping[str, float]) -> list[float]:
    """The max-min fair rates: no flow can get more without taking from a flow that has no more than it.

    Progressive filling (Bertsekas and Gallager 1992, Data Networks, section 6.5.2): all rates rise together; a flow stops at its
    cap, or where a resource of its demand is used up.

    demands: for each of F flows the units of each resource that one unit of its rate takes
    caps: rate of each flow alone, [F]
    capacity: units per second of each resource; a resource without an entry has no limit

    Two flows share a link of capacity 4; the first can use only 1 of it:

    >>> max_min([(("link", 1.0),), (("link", 1.0),)], [1.0, 9.0], {"link": 4.0})
    [1.0, 3.0]
    """
    rates = [0.0] * len(caps)
    left = dict(capacity)
    rising = [i for i, cap in enumerate(caps) if cap > 0]
    while rising:
        pull: dict[str, float] = {}
        for i in rising:
            for resource, weight in demands[i]:
                if weight > 0 and resource in left:
                    pull[resource] = pull.get(resource, 0.0) + weight
        step = min([caps[i] - rates[i] for i in rising])
        for resource, weight in pull.items():
            if left[resource] < step * weight:
                step = left[resource] / weight
        spent = set()
        for resource, weight in pull.items():
            left[resource] = max(0.0, left[resource] - step * weight)
            if left[resource] <= TINY * capacity[resource]:
                spent.add(resource)
        still = []
        for i in rising:
            rates[i] += step
            if rates[i] < caps[i] * (1 - TINY):
                for resource, weight in demands[i]:
                    if resource in spent and weight > 0:
                        break
                else:
                    still.append(i)
        rising = still
    return rates


# ----------------------------------------------------------------------------------------------------------- the engine

CACHED_SOLUTIONS = 10_000  # sets of phases whose rates are kept; layers repeat, and so do the kernels that run side by side
TIME_TOLERANCE = 1e-12  # relative; phases whose ends differ by less, which is rounding, end together


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """A part of a job with constant demands.

    work: amount of work, in units of the rate x seconds. A kernel's is its time alone; a copy's is its bytes
    demand: what it takes of each resource for each unit of its rate
    cap: rate at which it runs alone. A kernel's is 1; a copy's is the bandwidth of its path
    slots: share of the server's pool of slots that it holds while it runs

    Phases compare by identity, so that a set of phases that runs side by side again is not solved again.
    """

    work: float
    demand: Demand = ()
    cap: float = 1.0
    slots: float = 0.0
    name: str = ""


Alone = tuple[Sequence[Phase], list[float], list[float]]  # the phases of a job that runs alone, with their rates and times [s]


class Job:
    """A job on a server. `done` succeeds when its last phase has ended; `ends` are the ends of its phases so far [s]."""

    __slots__ = ("done", "ends", "left", "mark", "phases")
    mark: tuple[int, float]  # at the last look-ahead: how many phases had ended, and how much work of the next was left

    def __init__(self, phases: Sequence[Phase], done: Event) -> None:
        self.phases, self.done = phases, done
        self.left = phases[0].work
        self.ends: list[float] = []


class SharedServer:
    """A server that all its jobs share: a capacity for each resource, and one pool of slots.

    A resource without an entry in `capacity` has no limit. Slots go to jobs in order of arrival, as the CTAs of one kernel
    leave the next one only the SMs' free slots. A job that holds a share of the slots that it wants runs at most at that share
    of its rate. Beyond that, rates are max-min fair.

    Only the ends of jobs are visible outside. So the server computes ahead to the first end of a job and sets one alarm for it,
    whatever number of phases change before. A job that starts earlier makes it recompute from the last look-ahead.
    """

    def __init__(self, env: Environment, capacity: Mapping[str, float], observers: Sequence[Observer] = (),
                 counters: Mapping[str, tuple[str, float]] | None = None) -> None:  # fmt: skip
        """`counters` names the resources that observers are told of: resource -> (name with unit, value of one unit of it)."""
        from simpy.events import Timeout

        self._timeout: Callable[[Environment, float], Event] = Timeout
        self._env, self._capacity = env, dict(capacity)
        self._observers, self._counters = tuple(observers), dict(counters or {})
        self._active: list[Job] = []
        self._alarm: Event | None = None  # for the first end of a job; while it is set, all jobs have the state of that moment
        self._since = self._until = 0.0  # begin and end of the last look-ahead [s]
        self._awaited = False  # whether a look-ahead is scheduled for the end of the present moment
        self._seen: list[tuple[float, list[tuple[Phase, float]]]] = []  # rates of the look-ahead, to be reported at its end
        self._solved: dict[tuple[Phase, ...], list[float]] = {}  # rates of sets of phases
        self._alone: dict[int, Alone] = {}  # by the id of the phases
        self._over: list[Job] = []  # jobs that end with the alarm
        self._ended: list[Sequence[Phase]] = []  # phases of all jobs that have ended

    def run(self, phases: Sequence[Phase]) -> Job:
        """Start a job now."""
        job = Job(phases, self._env.event())
        if self._alarm is not None:
            self._rewind()
        self._active.append(job)
        if len(self._active) == 1:
            self._look_ahead()
        else:
            self._schedule_look_ahead()
        return job

    @property
    def used(self) -> dict[str, float]:
        """Amount of each resource that all ended jobs took, in the resource's unit x seconds."""
        taken: dict[str, float] = {}
        distinct, times = {id(phases): phases for phases in self._ended}, Counter(map(id, self._ended))
        for key, phases in distinct.items():
            for phase in phases:
                for resource, weight in phase.demand:
                    taken[resource] = taken.get(resource, 0.0) + times[key] * weight * phase.work
        return taken

    @property
    def changes(self) -> int:
        """Number of events of all ended jobs: their starts and the ends of their phases."""
        return sum(1 + len(phases) for phases in self._ended)

    def _schedule_look_ahead(self) -> None:
        """Look ahead after all other events of the present moment: jobs often end and start at the same time."""
        if not self._awaited:
            self._awaited = True
            self._timeout(self._env, 0.0).callbacks.append(self._look_ahead_if_due)

    def _look_ahead_if_due(self, _: Event) -> None:
        self._awaited = False
        if self._active and self._alarm is None:
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Compute the state of all jobs at the first end of one of them, and set the alarm for it."""
        self._since = now = self._env.now
        for job in self._active:
            job.mark = (len(job.ends), job.left)
        delay = self._advance(inf) - now
        self._until = now + delay  # the alarm's time in simpy's arithmetic, which may differ by rounding
        for job in self._over:
            job.ends[-1] = self._until
        self._alarm = self._timeout(self._env, delay)
        self._alarm.callbacks.append(self._finish_jobs)

    def _rewind(self) -> None:
        """Bring all jobs from the state at the alarm back to the present, because another job starts."""
        now = self._env.now
        if now < self._until:
            for job in self._active:
                at, job.left = job.mark
                del job.ends[at:]
            self._seen.clear()
            self._over.clear()
            self._advance(now)
        self._finish_jobs(self._alarm)

    def _finish_jobs(self, alarm: Event | None) -> None:
        """The look-ahead has been reached: report it and remove the jobs that have ended."""
        if alarm is not self._alarm:
            return  # a job has started since it was set
        self._alarm = None
        if self._counters:
            for moment, running in self._seen:
                self._report(moment, running)
            self._seen.clear()
        for job in self._over:
            self._active.remove(job)
            self._ended.append(job.phases)
            job.done.succeed()
            if self._active and not self._awaited:
                self._awaited = True
                job.done.callbacks.append(self._look_ahead_if_due)  # after the processes that wait for it and may start another
        self._over.clear()
        if self._counters and not self._active:
            self._report(self._env.now, ())

    def _advance(self, until: float) -> float:
        """Advance all jobs from `_since` to `until` [s], or to the first end of one of them; returns the moment reached [s]."""
        active, over, solved, now = self._active, self._over, self._solved, self._since
        if len(active) == 1:
            return self._advance_alone(active[0], until)
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
            limit = step * (1.0 + TIME_TOLERANCE)
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

    def _advance_alone(self, job: Job, until: float) -> float:
        """The same for a job that runs alone, whose rates do not depend on the time."""
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
        """Rates and times of the phases of a job that runs alone."""
        rates = []
        for phase in phases:
            rate = phase.cap
            for resource, weight in phase.demand:
                if weight * rate > self._capacity.get(resource, inf):
                    rate = self._capacity[resource] / weight
            rates.append(rate)
        found = phases, rates, [phase.work / rate for phase, rate in zip(phases, rates, strict=True)]
        self._alone[id(phases)] = found  # keeps a reference to the phases, so that their id stays theirs
        return found

    def _solve(self, phases: tuple[Phase, ...]) -> list[float]:
        """Rates of phases that run side by side, in order of arrival; 0 for one that waits for slots."""
        if len(self._solved) >= CACHED_SOLUTIONS:
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

    def _report(self, now: float, running: Iterable[tuple[Phase, float]]) -> None:
        """Report to observers how much all running phases take of the resources that have counters."""
        load = dict.fromkeys(self._counters, 0.0)
        for phase, rate in running:
            for resource, weight in phase.demand:
                if resource in load:
                    load[resource] += weight * rate
        for resource, (name, unit) in self._counters.items():
            for observer in self._observers:
                observer.level(name, now, load[resource] * unit)
