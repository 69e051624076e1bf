"""Which core clock kernels run at, and which power they keep to: one rule for requests, what-ifs and measured rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from archsim.base.errors import ArgumentError, UnknownName, Unsupported
from archsim.cost.cost import Array
from archsim.device.device import Cpu, Gpu
from archsim.device.spec import Spec


def clock_and_limit(
    spec: Spec, clock: float | Array | None = None, power_limit: float | Array | None = None,
    without: frozenset[str] = frozenset(), measured: bool = False,
) -> tuple[float | Array, float | Array | None]:  # fmt: skip
    """The highest core clock that kernels may take [Hz], and the power that they keep to [W], None where no power lowers it.

    A `clock` that was `measured` while the kernels ran stands. One that is asked for is the highest that they take, as on a card
    with locked clocks, and without one they run at the device's usual clock: the all-core clock of a CPU, the sustained clock of
    a GPU. Under a `power_limit` [W] kernels run at the highest clock at which they draw no more; a GPU whose sustained clock
    nobody measured keeps to its TDP. Numbers are floats or [D, 1].

    With "clock" in `without` kernels run at the rated boost clock; with "sustained" at what the power model finds.

    >>> from archsim.device.catalog import find
    >>> clock_and_limit(find("tegra_x1"))  # its sustained clock is published
    (690000000.0, None)
    >>> clock_and_limit(find("tesla_k80"))[1]  # nobody measured it: the TDP of one of the two GPUs
    150.0
    """
    device = spec.device
    guessed = isinstance(device, Gpu) and spec.entries["clock.sustained"].unpublished
    if clock is not None:
        return clock, device.power.tdp if guessed and power_limit is None and not measured else power_limit
    if "clock" in without:
        return device.clock.boost, None
    if "sustained" in without:
        return highest_clock(device), device.power.tdp if power_limit is None else power_limit
    if power_limit is not None:
        return highest_clock(device), power_limit
    return device.usual_clock, device.power.tdp if guessed else None


def highest_clock(device: Gpu | Cpu) -> float | Array:
    """The highest core clock that a device's power management chooses under load [Hz], a float or [D, 1]."""
    return np.maximum(device.clock.boost, device.clock.sustained) if isinstance(device, Gpu) else device.default_clock


def asked_clock(spec: Spec, asked: Mapping[str, Any]) -> float | Array | None:
    """The core clock among the arguments of a request [Hz], as such or by a power mode; None where it follows the device."""
    mode, clock = asked.get("power_mode"), asked.get("clock")
    return clock if mode is None else mode_clock(spec, mode, clock)


def mode_clock(spec: Spec, mode: str, clock: float | Array | None) -> float | Array:
    """The core clock [Hz] of a power mode of a module.

    Raises Unsupported for a device without modes, UnknownName for a mode that it does not have, ArgumentError beside a `clock`.
    """
    modes = {key.removeprefix("mode."): entry.number for key, entry in spec.entries.items() if key.startswith("mode.")}
    if not modes:
        raise Unsupported(f"power mode {mode}: {spec.identity.id} has none; --clock and --power-limit set what a mode does")
    found = mode.lower().replace("-", "").replace("_", "")
    if found not in modes:
        raise UnknownName("power mode", mode, list(modes), hint=f"one of {', '.join(modes)}")
    if clock is not None:
        raise ArgumentError("a power mode sets the clock: give one of the two")
    return modes[found]
