"""The voltage of a core at a clock, as a share of that at the highest clock of its chip."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.device.device import Cpu, CpuPower, Device, with_caches


def highest_clock(device: Device) -> Array | float:
    """Clock at which the chip needs its highest voltage: that of its own boost, or of its sibling with the higher one [Hz].

    `clock.silicon`, or the higher one of boost and sustained clock, a float or [D, 1]

    own: highest clock of this product [Hz]

    What a core or SM needs at a clock belongs to its design and process, not to the clock at which this product stops.

    >>> from archsim.device.catalog import find
    >>> highest_clock(find("tesla_p4").device) > find("tesla_p4").device.clock.boost
    True
    """
    device = with_caches(device, "voltage")
    own = device.clock.boost if isinstance(device, Cpu) else np.maximum(device.clock.boost, device.clock.sustained)
    return own if device.clock.silicon is None else device.clock.silicon


def voltage_line(device: Device, constants: Calibration) -> tuple[Array | float, Array | float]:
    """The line of voltages: its slope and its end, as shares [1]. Processors reach clocks, and voltages, twice as far apart.

    slope, floor: `power.voltage_slope` and `power.voltage_floor` of an architecture whose voltages were read or fitted, otherwise
    `energy.voltage_*` of a GPU, `energy.core_voltage_*` of a CPU

    >>> from archsim.device.catalog import find
    >>> of = {"energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> voltage_line(find("tesla_v100_sxm2").device, of)  # of Volta nothing is known
    (1.2, 0.7)
    """
    if isinstance(device, Cpu):
        return constants["energy.core_voltage_slope"], constants["energy.core_voltage_floor"]
    power = with_caches(device, "voltage").power
    assert not isinstance(power, CpuPower)
    slope, floor = power.voltage_slope, power.voltage_floor
    return (constants["energy.voltage_slope"] if slope is None else slope,
            constants["energy.voltage_floor"] if floor is None else floor)  # fmt: skip


def voltage(clock: Array | float, device: Device, constants: Calibration) -> Array:
    """Voltage, as a share of that at the highest clock of the chip.

    max(floor, 1 - slope (1 - f / f_highest)), [D, V]

    clock: f, the core clock [Hz], a float, [D, 1] or [D, V]
    slope, floor: of the architecture or the kind of device, `voltage_line` [1]

    A straight line that ends at the least voltage at which the chip works: voltages read from A100s lie within 3 % of one.

    >>> from archsim.device.catalog import find
    >>> of = {"energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> gpu = find("tesla_v100_sxm2").device
    >>> round(voltage(0.9 * highest_clock(gpu), gpu, of).item(), 9)
    0.88
    """
    slope, floor = voltage_line(device, constants)
    return np.asarray(np.maximum(floor, 1.0 - slope * (1.0 - clock / highest_clock(device))))
