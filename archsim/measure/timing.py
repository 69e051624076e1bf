"""Timed rounds, and the median of the undisturbed ones; meters of processor time, load and energy."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Protocol

from archsim.base.errors import Unsupported
from archsim.detect.system import entries, load_average, number_in, words_of
from archsim.evidence.case import LEAST_SOUND

# --------------------------------------------------------------------------------------------------------------- meters

POWERCAP = Path("/sys/class/powercap")
MOST_W = 1000.0  # no package or its memory draws more: a counter cannot have wrapped twice in range / MOST_W
PACKAGE, MEMORY = "package", "dram"  # how the names of zones begin; others are parts of a package, or the whole platform


class RaplCounter:
    """The counter of one zone [J], which wraps around at its range and is followed across a wrap."""

    def __init__(self, zone: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._zone, self._now = zone, now
        self._range = _microjoules(zone / "max_energy_range_uj")
        self._last, self._read_at, self._wrapped = _microjoules(zone / "energy_uj"), now(), 0

    def read(self) -> float:
        """The energy so far [J]; only differences have a meaning. Unsupported where it may have wrapped more than once."""
        value, at = _microjoules(self._zone / "energy_uj"), self._now()
        if (at - self._read_at) * MOST_W >= self._range * 1e-6:
            raise Unsupported(f"no energy: {self._zone / 'energy_uj'} was not read for {at - self._read_at:.0f} s, in which it "
                              "may have wrapped more than once")  # fmt: skip
        if value < self._last:
            self._wrapped += self._range
        self._last, self._read_at = value, at
        return (value + self._wrapped) * 1e-6


def zones(folder: Path = POWERCAP) -> tuple[list[Path], list[Path]]:
    """The zones of all packages, and those of their memory modules; the second are none where one package has none.

    Raises Unsupported where there is no package.
    """
    listed = [folder / name for name in entries(folder) if name.startswith("intel-rapl:")]
    packages = [place for place in listed if words_of(place / "name").startswith(PACKAGE)]
    if not packages:
        raise Unsupported(f"no energy: {folder} lists no package (a virtual machine or container rarely shows any)")
    memory = [place for place in listed if words_of(place / "name") == MEMORY]
    return packages, memory if len(memory) == len(packages) else []


def counted(places: list[Path], now: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """The sum of the counters of some zones [J], all of which can be read; Unsupported names the one that cannot."""
    counters = [RaplCounter(place, now) for place in places]
    return lambda: sum(counter.read() for counter in counters)


def _microjoules(place: Path) -> int:
    found = number_in(place)
    if found is None:
        raise Unsupported(f"no energy: {place} cannot be read by this user (only root may, unless its mode is changed)")
    return found


MODULES = "memory modules, RAPL"  # what a row of their energy covers


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyMeter:
    """An energy counter with what it covers.

    begin: starts to follow the counter; what it returns gives the energy [J], of which only differences have a meaning
    memory: the same of the memory modules that `begin` leaves out, where they are counted
    """

    covers: str
    begin: Callable[[], Callable[[], float]]
    memory: Callable[[], Callable[[], float]] | None = None


def package_meter(folder: Path = POWERCAP) -> EnergyMeter:
    """Energy of all processor packages by RAPL, and of their memory modules where each package counts them.

    Unsupported says why the packages cannot be read.
    """
    packages, modules = zones(folder)
    counted(packages)
    memory = None
    with suppress(Unsupported):
        if modules:
            counted(modules)
            memory = partial(counted, modules)
    covers = f"{len(packages)} package{'s' * (len(packages) > 1)}, RAPL"
    return EnergyMeter(covers=covers, begin=partial(counted, packages), memory=memory)


def board_meter() -> EnergyMeter:
    """Energy of a GPU board by NVML; Unsupported where the driver or the chip (before Volta) has no counter."""
    from archsim.detect.detect import library

    nvml = library()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)

    def read() -> float:
        return float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * 1e-3

    try:
        read()
    except nvml.NVMLError as error:
        raise Unsupported(f"no energy: NVML says {error} (the counter needs Volta or newer)") from None
    return EnergyMeter(covers="board, NVML", begin=lambda: read)


def meter_for(host: str) -> EnergyMeter | str:
    """The energy meter of a `cpu` or `gpu`, or the reason why there is none."""
    try:
        return board_meter() if host == "gpu" else package_meter()
    except Unsupported as error:
        return str(error)


# --------------------------------------------------------------------------------------------------------------- rounds

LEAST_SHARE = 0.9  # of wall time x threads, as processor time; a round with less is disturbed
LEAST_ROUND_S = 0.02  # shorter rounds are dominated by the resolution of the clocks
WARM_UP = 3
READ_S = 0.2  # between two readings of an energy meter
METER_S = 2.0  # an energy counter moves in steps of milliseconds


class Session(Protocol):
    """A network prepared by a backend."""

    stack: str
    host: str
    software: str
    threads: int
    precision: str
    task: str

    def timed(self, times: int) -> float:
        """Wall time of `times` runs [s]."""

    def per_op(self, rounds: int) -> tuple[dict[tuple[str, ...], float], float]:
        """Time of each group of fused ops [s], and of nodes that belong to no op [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Wall time of one run [s], and processor time / (wall time x threads) as `share`.

    `cpu_s` is the processor time of one run per thread [s]; with `by_processor` it is the time that counts.
    """

    time_s: float
    share: float
    cpu_s: float
    by_processor: bool = False

    @property
    def counted_s(self) -> float:
        """The time that counts [s]."""
        return self.cpu_s if self.by_processor else self.time_s

    @property
    def sound(self) -> bool:
        """Whether other work left the cores alone; if processor time counts, it need not have."""
        return self.by_processor or self.share >= LEAST_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """Energy of one run [J] and mean power while runs followed each other [W], of what the meter covers."""

    covers: str
    energy_j: float
    power_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of the rounds; times are of one run [s].

    metered: what an energy meter counted, and of memory modules after it, if it could
    unmetered: why a meter that could be read before the runs gave no energy
    """

    time_s: float
    low_s: float
    high_s: float
    least_s: float
    rounds: int
    disturbed: int
    share: float
    cpu_s: float
    load: float | None
    metered: tuple[Metered, ...] = ()
    unmetered: str = ""
    by_processor: bool = False

    @property
    def sound(self) -> bool:
        """Whether enough rounds were undisturbed."""
        return self.rounds - self.disturbed >= min(LEAST_SOUND, self.rounds)


def measure(
    session: Session, rounds: int, seconds: float, meter: EnergyMeter | None = None, by_processor: bool = False,
    tell: Callable[[int], None] = lambda done: None, share_of: Callable[[float, float, int], float] | None = None,
) -> Reading:
    """Warm up, then run until there are `rounds` undisturbed rounds or `seconds` are over, at least `LEAST_SOUND` rounds."""
    share_of = share_of or (cpu_share if session.host == "cpu" else lambda *_: 1.0)  # nobody sees what else a GPU does
    session.timed(WARM_UP)
    times = max(1, int(LEAST_ROUND_S / max(session.timed(1), 1e-6)))
    limit, found = time.perf_counter() + seconds, list[Round]()
    while len(found) < LEAST_SOUND or (sum(r.sound for r in found) < rounds and time.perf_counter() < limit):
        found.append(replace(one_round(session, times, share_of), by_processor=by_processor))
        tell(sum(r.sound for r in found))
    if meter is None:
        return reading(found)
    try:
        return reading(found, energy_of(session, meter))
    except Unsupported as error:  # the times are worth having
        return reading(found, unmetered=str(error))


def one_round(session: Session, times: int, share_of: Callable[[float, float, int], float]) -> Round:
    """One timed round of `times` runs."""
    before, begin = time.process_time(), time.perf_counter()  # the former of all threads
    spent = session.timed(times)
    used, wall = time.process_time() - before, time.perf_counter() - begin
    return Round(time_s=spent / times, share=share_of(used, wall, session.threads), cpu_s=used / times / session.threads)


def cpu_share(used_s: float, wall_s: float, threads: int) -> float:
    """processor time / (wall time x threads).

    >>> cpu_share(used_s=3.0, wall_s=2.0, threads=2)
    0.75
    """
    return min(1.0, used_s / (wall_s * threads))


def energy_of(session: Session, meter: EnergyMeter) -> tuple[Metered, ...]:
    """Energy and power over a time that is long compared with the meter's resolution.

    The meter is read every `READ_S`, so that its counter cannot wrap unseen, and not after each run, since the device idles
    while it is read. Raises Unsupported where it does not move.
    """
    times = max(1, int(READ_S / max(session.timed(1), 1e-6)))
    reads = {meter.covers: meter.begin()} | ({} if meter.memory is None else {MODULES: meter.memory()})
    begin, before, runs, took = time.perf_counter(), {covers: read() for covers, read in reads.items()}, 0, 0.0
    after = before
    while took < METER_S:
        session.timed(times)
        runs += times
        after, took = {covers: read() for covers, read in reads.items()}, time.perf_counter() - begin
    if not after[meter.covers] > before[meter.covers]:
        raise Unsupported(f"no energy: the counter ({meter.covers}) did not move in {took:.3g} s")
    spent = {covers: after[covers] - before[covers] for covers in reads}
    return tuple(Metered(covers=covers, energy_j=joules / runs, power_w=joules / took)
                 for covers, joules in spent.items() if joules > 0.0)  # fmt: skip


def reading(found: list[Round], metered: tuple[Metered, ...] = (), unmetered: str = "") -> Reading:
    """Median and quartiles of the undisturbed rounds; of all rounds where fewer than `LEAST_SOUND` are undisturbed."""
    sound = [r for r in found if r.sound]
    kept = sound if len(sound) >= min(LEAST_SOUND, len(found)) else found
    times = sorted(r.counted_s for r in kept)
    low, middle, high = quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    return Reading(
        time_s=middle, low_s=low, high_s=high, least_s=times[0], rounds=len(found), disturbed=len(found) - len(sound),
        share=sum(r.share for r in kept) / len(kept), cpu_s=median(r.cpu_s for r in kept), load=load_average(), metered=metered,
        unmetered=unmetered, by_processor=kept[0].by_processor,
    )  # fmt: skip
