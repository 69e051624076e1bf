"""Power that no operation switches: what stands, what leaks, and what clocks take.

Of a GPU these are shares of its idle power, with its clocks up. Of a CPU the idle power is that of packages with every core
asleep, cut off from power, and on top of it come

    P = uncore slices x E_uncore f V^2 + awake cores x (E_clock f V^2 + leakage E_clock f_highest V^3)

A slice of the uncore is one core's share of ring or mesh, last cache level and memory controllers; it is awake with any core of
its socket, at a clock of its own: that of the cores, up to the one of all cores in scalar code.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.switched import clock_energy, highest_clock, node_energy, operation_energy, voltage
from archsim.device.device import Cpu, Device, Gpu, Tpu, with_caches


def idle_top(device: Device) -> Array | float:
    """The clock at which the idle power of a spec is stated: the highest of this product, and no more than that of the chip
    [Hz], a float or [D, 1].

    >>> from archsim.device.catalog import find
    >>> float(idle_top(find("gtx_1080").device)) == find("gtx_1080").device.clock.boost
    True
    """
    if not isinstance(device, Gpu):
        return device.clock.boost
    own = np.maximum(device.clock.boost, device.clock.sustained)
    return own if device.clock.silicon is None else np.minimum(own, device.clock.silicon)


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


def leakage_factor(device: Device, constants: Calibration) -> Array | float:
    """Leakage at the temperature of the chip, as a share of that at the usual one [1].

    exp(growth (temperature - usual)), a float or [D, 1]; 1 where the temperature is not known

    growth: `energy.leakage_growth`, for each kelvin [1]
    temperature, usual: `power.temperature`, `energy.leakage_celsius`, in degrees Celsius [1]

    >>> from types import SimpleNamespace as some
    >>> of = {"energy.leakage_growth": 0.02, "energy.leakage_celsius": 50.0}
    >>> [round(float(leakage_factor(some(power=some(temperature=at)), of)), 3) for at in (None, 50.0, 85.0)]
    [1.0, 1.0, 2.014]
    """
    temperature = with_caches(device, "leakage").power.temperature
    if temperature is None:
        return 1.0
    return np.asarray(np.exp(constants["energy.leakage_growth"] * (temperature - constants["energy.leakage_celsius"])))


def leakage_power(device: Device, volt: Array, constants: Calibration) -> Array:
    """What leaks, at work or not; it grows with V^3, and with the temperature [W].

    idle leakage (V / V_top)^3 factor, [D, V]

    factor: `leakage_factor` [1]
    top_volt: voltage at the highest clock of this product, at which its idle power is stated
    volt: V, voltage as a share of the highest of the chip, [D, V]
    idle: `power.idle` [W]; leakage: share of it, `energy.idle_leakage` [1]

    >>> from archsim.device.catalog import find
    >>> of = {"energy.idle_leakage": 0.1, "energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> gpu = find("tesla_v100_sxm2").device
    >>> round(leakage_power(gpu, voltage(idle_top(gpu), gpu, of), of).item() / gpu.power.idle, 12)
    0.1
    """
    top_volt = voltage(idle_top(device), device, constants)
    highest = device.power.idle * constants["energy.idle_leakage"]
    return np.asarray(highest * (volt / top_volt) ** 3 * leakage_factor(device, constants))


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
    >>> gpu = find("tesla_v100_sxm2").device
    >>> volt = voltage(idle_top(gpu), gpu, of)
    >>> round(idle_clock_power(gpu, 0.5 * idle_top(gpu), volt, of).item() / gpu.power.idle, 12)
    0.1
    """
    top = idle_top(device)
    top_volt = voltage(top, device, constants)
    return np.asarray(device.power.idle * constants["energy.idle_clock"] * clock / top * (volt / top_volt) ** 2)


def idle_parts(
    device: Device, clock: Array | float, constants: Calibration, limit: Array | float | None = None
) -> dict[str, Array]:  # fmt: skip
    """What a device draws at a core clock while nothing runs [W], by the components `base`, `leakage`, `clock` of the energy.

    clock: [Hz], a float, [D, 1] or [D, V]; at the highest clock of the product they add up to its idle power
    limit: of power [W]; the TDP if not given

    The idle power of a CPU is that with every core asleep, at whatever clock; that of a TPU has no parts that are known.

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> gpu = find("gtx_1080").device
    >>> round(sum(part.item() for part in idle_parts(gpu, idle_top(gpu), default()).values()) / gpu.power.idle, 12)
    1.0
    """
    if isinstance(device, Cpu | Tpu):
        return {"idle_board": np.asarray(device.power.idle), "leakage": np.zeros(1), "clock_tree": np.zeros(1)}
    volt = voltage(clock, device, constants)
    more = {"leakage": leakage_power(device, volt, constants), "clock_tree": idle_clock_power(device, clock, volt, constants)}
    return _within(standing_power(device, constants, device.memory.clock_share), more, device, limit)


def _within(base: Array, more: Mapping[str, Array], device: Device, limit: Array | float | None) -> dict[str, Array]:
    """What stands, `base`, and `more` that a lower clock lowers until a power limit, or without one the TDP, is kept [W]."""
    left = np.maximum((device.power.tdp if limit is None else limit) - base, 0.0)
    kept = np.minimum(1.0, left / sum(more.values()))
    return {"idle_board": base, **{name: np.asarray(part * kept) for name, part in more.items()}}


def uncore_power(
    device: Cpu, awake: Array | float, clock: Array | float, operation: Array, constants: Calibration
) -> Array:  # fmt: skip
    """Power of the uncore of all sockets with a core awake, beyond what it takes in idle packages [W].

    slices operation uncore f V^2, [D, V]

    at: f, the core clock, which the uncore follows up to that of all cores, `clock.all_core` [Hz]
    volt: V, voltage at that clock as a share of the highest, [D, V]
    slices: cores of the sockets in which one is awake, `awake_slices`
    awake: cores that are not asleep, [D, V]
    clock: the core clock [Hz], a float, [D, 1] or [D, V]
    operation: `operation_energy` [J], a float or [D, 1]
    uncore: `energy.uncore` [1]

    >>> from archsim.device.catalog import find
    >>> two = find("xeon_e5_2630_v3_2s").device  # of eight cores each
    >>> of = {"energy.uncore": 10.0, "energy.core_voltage_slope": 0.0, "energy.core_voltage_floor": 0.5}
    >>> [uncore_power(two, awake, 2e9, 50e-12, of).item() for awake in (1.0, 8.0, 9.0)]
    [8.0, 8.0, 16.0]
    """
    at = np.minimum(clock, device.clock.all_core)
    volt = voltage(at, device, constants)
    return np.asarray(awake_slices(device, awake) * operation * constants["energy.uncore"] * at * volt**2)


def awake_slices(device: Cpu, awake: Array | float) -> Array:
    """Slices of the uncore that are awake: those of all sockets with a core awake, filled one after the other.

    per ceil(awake / per), [D, V]; at least one socket's

    per: cores of one socket [1], a float or [D, 1]
    awake: cores that are not asleep, [D, V]

    >>> from archsim.device.catalog import find
    >>> awake_slices(find("i7_6700k").device, 1.0).item()
    4.0
    """
    per = device.core.count / device.core.sockets
    return np.asarray(per * np.maximum(np.ceil(awake / per), 1.0))


def core_leakage(device: Cpu, volt: Array, operation: Array, constants: Calibration) -> Array:
    """What leaks in one core that is awake [W].

    leakage operation core_clock f_highest V^3 factor, [D, V]

    volt: V, voltage as a share of the highest, [D, V]
    operation: `operation_energy` [J], a float or [D, 1]
    core_clock: `energy.core_clock` [1]; leakage: `energy.core_leakage` [1]
    f_highest: `highest_clock` [Hz]
    top: f_highest times core_clock [Hz]
    factor: `leakage_factor` [1]

    >>> from archsim.device.catalog import find
    >>> of = {"energy.core_leakage": 0.25, "energy.core_clock": 40.0}
    >>> round(core_leakage(find("i7_6700k").device, 1.0, 25e-12, of).item(), 9)  # 4.2 GHz
    1.05
    """
    top = constants["energy.core_clock"] * highest_clock(device)
    return np.asarray(constants["energy.core_leakage"] * operation * top * volt**3 * leakage_factor(device, constants))


def waiting_parts(
    device: Cpu, constants: Calibration, clock: Array | float | None = None, limit: Array | float | None = None
) -> dict[str, Array]:  # fmt: skip
    """Power while one core runs the framework between kernels, and all others are asleep [W], by component.

    clock: of that core [Hz]; the turbo of one core if not given; limit: of power [W]; the TDP if not given

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> cpu = find("i7_6700k").device
    >>> cpu.power.idle < sum(waiting_parts(cpu, default()).values()).item() < 0.4 * cpu.power.tdp
    True
    """
    at = device.clock.boost if clock is None else clock
    volt, operation = voltage(at, device, constants), operation_energy(device, node_energy(device, constants))
    more = {
        "leakage": core_leakage(device, volt, operation, constants),
        "clock_tree": uncore_power(device, 1.0, at, operation, constants),
        "active_units": clock_energy(device, volt, operation, constants) * at,
    }
    return _within(np.asarray(device.power.idle), more, device, limit)
