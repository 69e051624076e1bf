"""Rounds of runs, and what is made of them: the median of those that nothing disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Protocol

from archsim.measure.meters import EnergyMeter, load_average, processor_time

LEAST_SHARE = 0.9  # of the processor time that the threads could have had
LEAST_ROUND_S = 0.02  # a shorter round is dominated by the clocks that time it
LEAST_SOUND = 3
WARM_UP = 3
METER_S = 2.0  # an energy counter moves in steps of milliseconds


class Session(Protocol):
    """A network made ready by a backend."""

    stack: str
    host: str
    software: str
    threads: int

    def timed(self, times: int) -> float:
        """Seconds for so many runs."""
        ...

    def per_op(self, rounds: int) -> tuple[dict[tuple[str, ...], float], float]:
        """Seconds of the ops that ran together, and of what belongs to no op."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Seconds of one run, and the share of the processor time that the process had of what its threads could have.

    `cpu_s` is the processor time of one run, shared out over its threads; `by_processor` makes it the time that counts.
    """

    time_s: float
    share: float
    cpu_s: float
    by_processor: bool = False

    @property
    def counted_s(self) -> float:
        """The time that counts."""
        return self.cpu_s if self.by_processor else self.time_s

    @property
    def sound(self) -> bool:
        """Whether other work left the cores alone; where processor time counts, it may have had its turns in between."""
        return self.by_processor or self.share >= LEAST_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the rounds of one cell say; times are of one run [s], `energy_j` of one run or None."""

    time_s: float
    low_s: float
    high_s: float
    least_s: float
    rounds: int
    disturbed: int
    share: float
    cpu_s: float
    load: float | None
    energy_j: float | None = None
    by_processor: bool = False

    @property
    def sound(self) -> bool:
        """Whether enough rounds were undisturbed for the time to be theirs alone."""
        return self.rounds - self.disturbed >= min(LEAST_SOUND, self.rounds)


def measure(
    session: Session, rounds: int, seconds: float, meter: EnergyMeter | None = None, by_processor: bool = False,
    tell: Callable[[int], None] = lambda done: None, share_of: Callable[[float, float, int], float] | None = None,
) -> Reading:
    """Warm up, then run until there are `rounds` sound rounds or `seconds` are over, but `LEAST_SOUND` rounds at least."""
    share_of = share_of or (cpu_share if session.host == "cpu" else unseen_share)
    session.timed(WARM_UP)
    times = max(1, int(LEAST_ROUND_S / max(session.timed(1), 1e-6)))
    limit, found = time.perf_counter() + seconds, list[Round]()
    while len(found) < LEAST_SOUND or (sum(r.sound for r in found) < rounds and time.perf_counter() < limit):
        found.append(replace(one_round(session, times, share_of), by_processor=by_processor))
        tell(sum(r.sound for r in found))
    energy = energy_of(session, meter) if meter is not None else None
    return reading(found, energy)


def one_round(session: Session, times: int, share_of: Callable[[float, float, int], float]) -> Round:
    """One timed round of `times` runs."""
    before, begin = processor_time(), time.perf_counter()
    spent = session.timed(times)
    used, wall = processor_time() - before, time.perf_counter() - begin
    return Round(time_s=spent / times, share=share_of(used, wall, session.threads), cpu_s=used / times / session.threads)


def cpu_share(used_s: float, wall_s: float, threads: int) -> float:
    """Processor time over what `threads` threads could have had."""
    return min(1.0, used_s / (wall_s * threads))


def unseen_share(used_s: float, wall_s: float, threads: int) -> float:
    """Of a GPU: the host may sleep while it works, and nothing tells whether another program had it."""
    return 1.0


def energy_of(session: Session, meter: EnergyMeter) -> float:
    """Energy of one run [J], over a stretch that is long for the meter."""
    begin, before, runs = time.perf_counter(), meter.read(), 0
    while time.perf_counter() - begin < METER_S:
        session.timed(1)
        runs += 1
    return (meter.read() - before) / runs


def reading(found: list[Round], energy: float | None = None) -> Reading:
    """The median and the middle half of the sound rounds; of all where fewer than `LEAST_SOUND` are sound."""
    sound = [r for r in found if r.sound]
    kept = sound if len(sound) >= min(LEAST_SOUND, len(found)) else found
    times = sorted(r.counted_s for r in kept)
    low, middle, high = quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    return Reading(
        time_s=middle, low_s=low, high_s=high, least_s=times[0], rounds=len(found), disturbed=len(found) - len(sound),
        share=sum(r.share for r in kept) / len(kept), cpu_s=median(r.cpu_s for r in kept), load=load_average(), energy_j=energy,
        by_processor=kept[0].by_processor,
    )  # fmt: skip
