"""Meters: processor time, load average, and energy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from archsim.base.errors import Unsupported
from archsim.detect.system import words_of

POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyMeter:
    """An energy counter [J] with what it covers; only differences of `read()` have a meaning."""

    covers: str
    read: Callable[[], float]


def load_average() -> float | None:
    """Mean number of runnable programs over the last minute; None where the system does not report it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def package_meter(folder: Path = POWERCAP) -> EnergyMeter:
    """Energy of all processor packages by RAPL; Unsupported says why it cannot be read.

    The counters wrap around: whenever a reading falls, the range of that package's counter is added.
    """
    packages = sorted(place for place in _listed(folder) if place.name.startswith("intel-rapl:") and place.name.count(":") == 1)
    if not packages:
        raise Unsupported(f"no energy: {folder} lists no package (a virtual machine or container rarely shows any)")
    last, wrapped = dict.fromkeys(packages, 0), dict.fromkeys(packages, 0)

    def read() -> float:
        for place in packages:
            now = _microjoules(place / "energy_uj")
            if now < last[place]:
                wrapped[place] += _microjoules(place / "max_energy_range_uj")
            last[place] = now
        return (sum(last.values()) + sum(wrapped.values())) * 1e-6

    read()
    return EnergyMeter(covers=f"{len(packages)} packages, RAPL", read=read)


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _microjoules(place: Path) -> int:
    text = words_of(place)
    if not text.isdecimal():
        raise Unsupported(f"no energy: {place} cannot be read by this user (only root may, unless its mode is changed)")
    return int(text)


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
    return EnergyMeter(covers="board, NVML", read=read)


def meter_for(host: str) -> EnergyMeter | str:
    """The energy meter of a `cpu` or `gpu`, or the reason why there is none."""
    try:
        return board_meter() if host == "gpu" else package_meter()
    except Unsupported as error:
        return str(error)


def processor_time() -> float:
    """Processor time of all threads of this process [s]."""
    return time.process_time()
