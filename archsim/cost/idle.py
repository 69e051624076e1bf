"""What a GPU draws with nothing to do: what stands, what leaks, and what its clocks take."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.voltage import voltage
from archsim.device.device import Cpu, Device, Gpu


def idle_top(device: Device) -> Array | float:
    """The clock at which the idle power of a spec is stated: the highest of this product [Hz], a float or [D, 1].

    >>> from archsim.device.catalog import find
    >>> float(idle_top(find("gtx_1080").device)) == find("gtx_1080").device.clock.boost
    True
    """
    return np.maximum(device.clock.boost, device.clock.sustained) if isinstance(device, Gpu) else device.clock.boost


def idle_power(device: Device, constants: Calibration, memory: Array | float) -> Array:
    """Power with nothing to do, the core's clocks up and the memory at its clock [W].

    idle (1 - idle_memory (1 - memory)), a float or [D, 1]

    idle: `power.idle`, at the usual memory clock [W]; idle_memory: share of it that goes with it, `energy.idle_memory` [1]
    memory: memory clock, as a share of the usual one [1]

    >>> from archsim.device.catalog import find
    >>> gpu = find("gtx_1080").device
    >>> round(idle_power(gpu, {"energy.idle_memory": 0.4}, 0.5).item() / gpu.power.idle, 12)
    0.8
    """
    return np.asarray(device.power.idle * (1.0 - constants["energy.idle_memory"] * (1.0 - memory)))


def standing_power(device: Device, constants: Calibration, memory: Array | float) -> Array:
    """What of the idle power no core clock moves: regulators, fans, the memory at its clock [W].

    idle_power(memory) - idle (leakage + clock), a float or [D, 1]

    idle: `power.idle` [W]; leakage, clock: shares of it, `energy.idle_*` [1]
    core: the shares that the core takes, leakage + clock [1]
    memory: memory clock, as a share of the usual one [1]

    >>> from archsim.device.catalog import find
    >>> of = {"energy.idle_leakage": 0.1, "energy.idle_clock": 0.2, "energy.idle_memory": 0.4}
    >>> gpu = find("gtx_1080").device
    >>> round(standing_power(gpu, of, 0.5).item() / gpu.power.idle, 12)
    0.5
    """
    core = constants["energy.idle_leakage"] + constants["energy.idle_clock"]
    return np.asarray(idle_power(device, constants, memory) - device.power.idle * core)


def leakage_power(device: Device, volt: Array, constants: Calibration) -> Array:
    """What leaks, at work or not; it grows with V^3 [W].

    idle leakage (V / V_top)^3, [D, V]

    top_volt: voltage at the highest clock of this product, at which its idle power is stated
    volt: V, voltage as a share of the highest of the chip, [D, V]
    idle: `power.idle` [W]; leakage: share of it, `energy.idle_leakage` [1]

    >>> from archsim.device.catalog import find
    >>> of = {"energy.idle_leakage": 0.1, "energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> gpu = find("rtx_4090").device
    >>> round(leakage_power(gpu, voltage(idle_top(gpu), gpu, of), of).item() / gpu.power.idle, 12)
    0.1
    """
    top_volt = voltage(idle_top(device), device, constants)
    return np.asarray(device.power.idle * constants["energy.idle_leakage"] * (volt / top_volt) ** 3)


def idle_clock_power(device: Device, clock: Array | float, volt: Array, constants: Calibration) -> Array:
    """What the core's clocks take as long as they run, at work or not [W].

    idle idle_clock (f / f_top) (V / V_top)^2, [D, V]

    top: highest clock of this product, at which its idle power is stated [Hz]
    top_volt: voltage at that clock
    clock: f, the core clock [Hz], a float, [D, 1] or [D, V]
    volt: V, voltage as a share of the highest of the chip, [D, V]
    idle: `power.idle` [W]; idle_clock: share of it, `energy.idle_clock` [1]

    >>> from archsim.device.catalog import find
    >>> of = {"energy.idle_clock": 0.2, "energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> gpu = find("rtx_4090").device
    >>> volt = voltage(idle_top(gpu), gpu, of)
    >>> round(idle_clock_power(gpu, 0.5 * idle_top(gpu), volt, of).item() / gpu.power.idle, 12)
    0.1
    """
    top = idle_top(device)
    top_volt = voltage(top, device, constants)
    return np.asarray(device.power.idle * constants["energy.idle_clock"] * clock / top * (volt / top_volt) ** 2)


def idle_parts(device: Device, clock: Array | float, constants: Calibration) -> dict[str, Array]:
    """What a device draws at a core clock while nothing runs [W], by the components `base`, `leakage`, `clock` of the energy.

    clock: [Hz], a float, [D, 1] or [D, V]; at the highest clock of the product they add up to its idle power

    The idle power of a CPU is that with every core asleep, at whatever clock.

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> gpu = find("gtx_1080").device
    >>> round(sum(part.item() for part in idle_parts(gpu, idle_top(gpu), default()).values()) / gpu.power.idle, 12)
    1.0
    """
    if isinstance(device, Cpu):
        return {"base": np.asarray(device.power.idle), "leakage": np.zeros(1), "clock": np.zeros(1)}
    volt = voltage(clock, device, constants)
    return {
        "base": standing_power(device, constants, device.memory.clock_share), "leakage": leakage_power(device, volt, constants),
        "clock": idle_clock_power(device, clock, volt, constants),
    }  # fmt: skip
