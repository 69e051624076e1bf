"""Meters: processor time, load average, and energy, that of processors by the counters of RAPL."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from archsim.base.errors import Unsupported
from archsim.detect.system import entries, number_in, words_of

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


def load_average() -> float | None:
    """Mean number of runnable programs over the last minute; None where the system does not report it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


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


def board_meter(index: int = 0) -> EnergyMeter:
    """Energy of a GPU board by NVML; Unsupported where the driver or the chip (before Volta) has no counter."""
    from archsim.detect.gpus import library

    nvml = library()
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

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
