"""Meters: processor time, load average, and energy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from archsim.base.errors import Unsupported
from archsim.measure.rapl import POWERCAP, counted, zones

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


def processor_time() -> float:
    """Processor time of all threads of this process [s]."""
    return time.process_time()
