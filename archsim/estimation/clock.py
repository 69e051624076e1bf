"""Which core clock kernels run at, and which power they keep to: one rule for requests, what-ifs and measured rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from archsim.base.arguments import ARGUMENTS, MOST_POWER
from archsim.base.errors import ArgumentError, UnknownName, Unsupported
from archsim.base.units import show
from archsim.cost.cost import Array
from archsim.cost.power import thermal_limit, within_heat
from archsim.device.device import Cpu, Device, Gpu, with_caches
from archsim.device.spec import Spec
from archsim.device.variant import first_of

FARTHEST = 2.0  # times the boost clock: the highest core clock that can be asked for. A choice: the line of voltages ends there
ROUNDED = 1.01  # drivers round clocks: a memory clock that is higher by less is the usual one


def clock_and_limit(
    spec: Spec, clock: float | Array | None = None, power_limit: float | Array | None = None,
    without: frozenset[str] = frozenset(), measured: bool = False,
) -> tuple[float | Array, float | Array | None]:  # fmt: skip
    """The highest core clock that kernels may take [Hz], and the power that they keep to [W], None where no power lowers it.

    A board or package keeps to its power limit: kernels that would draw more than `power_limit`, or than the TDP without one, run
    at a lower clock, as do those that heat the chip beyond what its cooler carries away (`thermal_limit`). Without a `clock` they
    take at most the device's usual one: the all-core clock of a CPU, the sustained clock of a GPU; under a `power_limit` [W] the
    highest that the device has. A `clock` that is asked for is the highest that they take, as on a card with locked clocks; one
    that was `measured` while the kernels ran stands, whatever they draw by the power model, and so does the sustained clock of a
    GPU as it is sold, where somebody measured that; of a changed one nobody has measured any. Numbers are floats or [D, 1].

    With "clock" in `without` kernels run at the rated boost clock; with "sustained" at what the power model finds.

    >>> from archsim.device.catalog import find
    >>> clock_and_limit(find("tegra_x1")), clock_and_limit(find("tegra_x1").with_settings({"sm.count": "4"}))
    ((690000000.0, None), (690000000.0, 10.0))
    """
    device = spec.device
    if clock is None:
        if "clock" in without:
            return device.clock.boost, None
        clock = device.usual_clock if power_limit is None and "sustained" not in without else highest_clock(device)
        if power_limit is None and "sustained" not in without and stands(spec):
            return clock, within_heat(device, None)
    elif measured:
        return clock, power_limit
    return clock, within_heat(device, device.power.tdp if power_limit is None else power_limit)


def stands(spec: Spec) -> bool:
    """Whether the sustained clock of a GPU was measured, on this very device."""
    return isinstance(spec.device, Gpu) and spec.base is None and not spec.entries["clock.sustained"].unpublished


def highest_clock(device: Device) -> float | Array:
    """The highest core clock that a device's power management chooses under load [Hz], a float or [D, 1]."""
    return np.maximum(device.clock.boost, device.clock.sustained) if isinstance(device, Gpu) else device.default_clock


def asked_clock(spec: Spec, asked: Mapping[str, Any]) -> float | Array | None:
    """The core clock among the arguments of a request [Hz], as such or by a power mode; None where it follows the device.

    Raises Unsupported for a device without modes, UnknownName for an unknown one, ArgumentError for a mode and a clock.
    """
    mode, clock = asked.get("power_mode"), asked.get("clock")
    if mode is None:
        return clock
    modes = {key.removeprefix("mode."): entry.number for key, entry in spec.entries.items() if key.startswith("mode.")}
    if not modes:
        raise Unsupported(f"power mode {mode}: {spec.identity.id} has none; --clock and --power-limit set what a mode does")
    found = mode.lower().replace("-", "").replace("_", "")
    if found not in modes:
        raise UnknownName("power mode", mode, list(modes), hint=f"one of {', '.join(modes)}")
    if clock is not None:
        raise ArgumentError("a power mode sets the clock: give one of the two")
    return modes[found]


def clock_note(spec: Spec, device: Gpu | Cpu) -> str:
    """What is said of a clock that nobody asked for."""
    if stands(spec):
        return f"clock {float(device.usual_clock) / 1e6:.0f} MHz: the measured sustained clock of the spec; --clock sets another"
    of = "all cores in SIMD code" if isinstance(device, Cpu) else "the sustained clock of the spec"
    if isinstance(device, Gpu) and spec.entries["clock.sustained"].unpublished:
        of += ", which nobody has measured"
    return (f"clock up to {float(device.usual_clock) / 1e6:.0f} MHz: {of}; less for kernels that would draw more than "
            f"{first_of(device.power.tdp):g} W; --clock sets another")  # fmt: skip


def limit_notes(device: Device, power_limit: float | None) -> list[str]:
    """What is said of a power limit and of a cooler that a device is given.

    Raises ArgumentError for a limit that `check_limit` refuses, and for a cooler that does not carry away the idle power.
    """
    clocks = "each kernel runs at the highest clock at which it draws no more"
    found = []
    if power_limit is not None:
        check_limit(device, power_limit)
        found.append(f"power limit {power_limit:g} W: {clocks}")
    carried = thermal_limit(device)
    if carried is not None:
        most, idle = first_of(carried), first_of(device.power.idle)
        throttle, air = (first_of(getattr(device.power, name)) for name in ("throttle", "air"))
        if most <= idle:
            raise ArgumentError(f"the cooler carries away {most:.4g} W at {throttle:g} degrees, no more than the idle power, "
                                f"{idle:g} W; power.thermal_resistance, power.air and power.throttle set it")  # fmt: skip
        found.append(f"heat: in air of {air:g} degrees the chip reaches {throttle:g} degrees at {most:.4g} W; {clocks}")
    return found


def limit_note(device: Device, limit: float) -> str:
    """What is said of a power limit that nobody asked for [W]."""
    of = "the TDP of the spec" if limit >= first_of(device.power.tdp) else "what the cooler carries away"
    return f"power limit {limit:.4g} W: {of}"


def check_limit(device: Device, power_limit: float) -> None:
    """Raise ArgumentError for a power limit [W] at or below the idle power, or beyond any board."""
    idle = first_of(device.power.idle)
    if not idle < power_limit <= MOST_POWER:
        raise ArgumentError(f"power limit {power_limit:g} W is not between the idle power, {idle:g} W, and {MOST_POWER:g} W")


def check_core_clock(spec: Spec, clock: float | None) -> None:
    """Raise ArgumentError for a core clock [Hz] that no chip has, and for one too far above the boost clock of this one."""
    if clock is None:
        return
    ARGUMENTS["clock"].check(clock)
    boost = first_of(spec.device.clock.boost)
    if clock > FARTHEST * boost:
        raise ArgumentError(far_clock(spec, clock, boost))


def far_clock(spec: Spec, clock: float, boost: float) -> str:
    """Why a core clock cannot be asked for beside a boost clock [Hz]."""
    return (f"clock {show(clock, 'Hz')} is more than {FARTHEST:g} times the boost clock of {spec.identity.id}, "
            f"{show(boost, 'Hz')}: no voltage is known so far from it; --set clock.boost=... describes a chip made for it")


# ---------------------------------------------------------------------------------------------- of the memory


def memory_clock_share(spec: Spec, clock: float | Array | None) -> float | Array:
    """A memory clock that is asked for, as a share of the usual one [1], a float or [D, 1]; 1 for none.

    clock: as drivers show it, half the data rate of a pin [Hz]

    Raises Unsupported for a device whose memory clock is not known, ArgumentError for one above it.

    >>> from archsim.device.catalog import find
    >>> round(memory_clock_share(find("titan_x_maxwell"), 810e6), 3)
    0.231
    """
    if clock is None:
        return 1.0
    highest = float(np.max(clock))
    for one in (float(np.min(clock)), highest):
        ARGUMENTS["memory_clock"].check(one)
    top = memory_clock_top(spec, highest)
    if highest > ROUNDED * top:
        raise ArgumentError(f"memory clock {show(highest, 'Hz')} is above {show(top, 'Hz')}, the clock of the memory of "
                            f"{spec.identity.id}, which is half the data rate of a pin; --set memory.data_rate and "
                            "memory.bandwidth make it faster")  # fmt: skip
    share = np.minimum(clock / (0.5 * spec.entries["memory.data_rate"].number), 1.0)
    return float(share) if np.ndim(share) == 0 else share


def memory_clock_problems(spec: Spec, clocks: Array) -> list[str]:
    """Why the memory of a device cannot have each of these clocks [Hz], [D]; "" where it can."""
    said: dict[float, str] = {}
    for clock in np.unique(clocks).tolist():
        try:
            memory_clock_share(spec, clock)
        except (ArgumentError, Unsupported) as error:
            said[clock] = str(error)
    return [said.get(clock, "") for clock in clocks.tolist()]


def memory_clock_top(spec: Spec, asked: float) -> float:
    """The usual memory clock of a device, which none is above [Hz].

    Raises Unsupported where it is not known, naming the clock that was asked for.
    """
    device = spec.device
    if not isinstance(device, Gpu):
        raise Unsupported(f"memory clock {show(asked, 'Hz')}: {spec.identity.id} is a {spec.kind.upper()}, and only the memory "
                          "of GPUs has a clock to set; --set memory.bandwidth changes what it delivers")  # fmt: skip
    usual = device.memory_clock
    if usual is None:
        raise Unsupported(f"{spec.identity.id}: the data rate of its memory is not known, so that {show(asked, 'Hz')} cannot be "
                          "compared with its usual clock; --set memory.data_rate=8Gbit/s states it")  # fmt: skip
    return usual


def memory_clock_of(spec: Spec, share: float | Array) -> float | None:
    """The memory clock at a share of the usual one [Hz]; None where it is not known."""
    usual = spec.device.memory_clock if isinstance(spec.device, Gpu) else None
    return None if usual is None else usual * first_of(share)


def memory_clock_note(spec: Spec, share: float | Array) -> str:
    """What is said of a memory clock that somebody asked for."""
    clock, usual = (show(memory_clock_of(spec, one) or 0.0, "Hz") for one in (share, 1.0))
    return (f"memory clock {clock} of {usual}: bandwidth and the memory's part of the idle power follow it; its "
            "latency stays")  # fmt: skip


def bandwidth_at(device: Device, share: float | Array) -> Array | float:
    """Peak bandwidth of the memory at its clock [B/s]: the bytes of a clock stay.

    bandwidth share, a float or [D, 1]

    bandwidth: `memory.bandwidth`, at the usual clock [B/s]; share: memory clock over the usual one [1]

    >>> from archsim.device.catalog import find
    >>> bandwidth_at(find("gtx_1080").device, 0.5) / 1e9
    160.0
    """
    return device.memory.bandwidth * share


def at_memory_clock(device: Device, share: float | Array) -> Device:
    """The device with its memory at another clock, `share` of the usual one [1], a float or [D, 1].

    The latency stays: timings of DRAM arrays are set in nanoseconds, and what the clock moves, the burst of a sector, is a
    few of them. So does the share of the peak that a stream reaches.

    >>> from archsim.device.catalog import find
    >>> gpu = find("gtx_1080").device
    >>> at_memory_clock(gpu, 0.5).memory.bandwidth / gpu.memory.bandwidth
    0.5
    """
    if np.ndim(share) == 0 and share == 1.0:
        return device
    device = with_caches(device, "memory clock")
    return replace(device, memory=replace(device.memory, bandwidth=bandwidth_at(device, share), clock_share=share))
