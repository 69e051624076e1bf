"""What a CPU draws besides its operations: the uncore, and the clocks and leakage of the cores that are awake.

    P = P_idle + uncore slices x E_uncore f V^2 + awake cores x (E_clock f V^2 + leakage E_clock f_highest V^3)

Cores that are asleep are cut off from power: what they draw is in the idle power of the package. A slice of the uncore is one
core's share of ring or mesh, last cache level and memory controllers; it is awake with any core of its socket, at a clock of
its own: that of the cores, up to the one of all cores in scalar code.
"""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.switched import clock_energy, memory_family, node_energy, operation_energy
from archsim.cost.voltage import highest_clock, voltage
from archsim.device.device import Cpu


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

    leakage operation core_clock f_highest V^3, [D, V]

    volt: V, voltage as a share of the highest, [D, V]
    operation: `operation_energy` [J], a float or [D, 1]
    core_clock: `energy.core_clock` [1]; leakage: `energy.core_leakage` [1]
    f_highest: `highest_clock` [Hz]

    >>> from archsim.device.catalog import find
    >>> of = {"energy.core_leakage": 0.25, "energy.core_clock": 40.0}
    >>> round(core_leakage(find("i7_6700k").device, 1.0, 25e-12, of).item(), 9)  # 4.2 GHz
    1.05
    """
    top = constants["energy.core_clock"] * highest_clock(device)
    return np.asarray(constants["energy.core_leakage"] * operation * top * volt**3)


def inside(device: Cpu, constants: Calibration) -> float:
    """Share of the energy of a byte from memory that the boundary of a CPU's power covers [1].

    `energy.controller`, the controller and the pins, where memory modules stand outside a package; else 1

    >>> from archsim.device.catalog import find
    >>> [inside(find(name).device, {"energy.controller": 0.3}) for name in ("i7_6700k", "raspberry_pi_4")]
    [0.3, 1.0]
    """
    apart = device.power.boundary == "package" and memory_family(device) == "DDR"
    return constants["energy.controller"] if apart else 1.0


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
        "clock": uncore_power(device, 1.0, at, operation, constants),
        "awake": clock_energy(device, volt, operation, constants) * at,
    }
    left = np.maximum((device.power.tdp if limit is None else limit) - device.power.idle, 0.0)
    kept = np.minimum(1.0, left / sum(more.values()))
    return {"base": np.asarray(device.power.idle), **{name: np.asarray(part * kept) for name, part in more.items()}}
