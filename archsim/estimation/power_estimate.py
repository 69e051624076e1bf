"""The answer of `archsim power`, of a GPU and of a CPU, and how the clock within a power limit is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from archsim.base.answer import Answer
from archsim.calibration.constants import Spread
from archsim.estimation.boundary import WallPower
from archsim.estimation.clock import CLOCKS

HALVINGS = 50  # of the range in which the clock under a limit is sought
COUNTED = 0.02  # counters of one run that are read one after the other differ by as much. A choice.


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerEstimate(Answer):
    """Power of a GPU, or of the packages of a CPU, whose units are busy for known shares of the time.

    name: what a file of rows calls it
    clock_hz, memory_clock_hz: where it runs; the memory clock as drivers show it, half the data rate of a pin, None if unknown
    counted_clock_hz, counted_memory_clock_hz: where the shares were counted
    voltage: of the core, as a share of that at the chip's highest clock
    shares: of each unit at these clocks, `sm` first, or `core` on a CPU
    parts_w: `standing`, `leakage`, `clocks` (on a CPU `uncore`), `awake`, then each unit; they add up to `power_w`
    power_interval_w: where a measured power is to be expected, at `interval_level`, from held-out rows of `interval_class`
    idle_w: power at these clocks when nothing runs
    wall: the computer at its plug, where that was asked for; `power_w` and its interval are then the share of one device of it
    power_limit_w: the limit that was given, or the TDP; above it the board lowers its clock
    clock_within_limit_hz: the highest clock up to `clock_hz` at which the same work stays within the limit, None where none does
    assumed_values: keys of the device that nobody published and that this reads
    measured_w, error: what a row of a file says that was measured, and `power_w` over that less 1; None where it does not say
    """

    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    name: str
    clock_hz: float
    memory_clock_hz: float | None
    counted_clock_hz: float
    counted_memory_clock_hz: float | None
    voltage: float
    shares: Mapping[str, float]
    parts_w: Mapping[str, float]
    power_w: float
    power_interval_w: tuple[float, float]
    interval_level: float
    interval_class: str
    held_out: Spread
    idle_w: float
    power_limit_w: float
    power_boundary: str
    wall: WallPower | None = None
    above_limit: bool
    clock_within_limit_hz: float | None
    assumptions: tuple[str, ...]
    assumed_values: tuple[str, ...]
    warnings: tuple[str, ...]
    measured_w: float | None = None
    error: float | None = None


def clock_within(power_at: Callable[[float], float], limit: float, highest: float) -> float | None:
    """The highest clock up to `highest` at which a power that grows with it stays within a limit [Hz]; None where none does.

    power_at: the power [W] at a clock [Hz]; limit [W]

    >>> round(clock_within(lambda clock: 50.0 + clock * 1e-8, 70.0, 4e9) / 1e9, 6)
    2.0
    """
    if power_at(highest) <= limit:
        return highest
    low, high = CLOCKS[0], highest
    if low >= high or power_at(low) > limit:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if power_at(middle) <= limit else (low, middle)
    return low
