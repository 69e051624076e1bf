"""Power of each unit of a GPU and of the packages of a CPU, from the share of time in which each works.

    P = P_standing(f_mem) + P_leakage V^3 + P_clocks f V^2 + units at work x E_clock f V^2 + V^2 sum of rate x share x E_op
        + L2 bytes/s x E_cache V^2 + DRAM bytes/s x (E_DRAM + E_cache V^2)

A share is what profilers call the utilisation of a pipe or of a memory: of what the unit could do in that time at its clock.

    P = P_idle + awake (P_leakage V^3 + E_clock f V^2) + P_uncore(f) + V^2 rate x share x E_op + LLC bytes/s x E_LLC V^2
        + DRAM bytes/s x (E_DRAM + E_LLC V^2)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import ASYNCHRONOUS, Array
from archsim.cost.energy import TINY
from archsim.cost.idle import core_leakage, idle_clock_power, leakage_power, standing_power, uncore_power
from archsim.cost.switched import (
    cache_energy,
    clock_energy,
    issue_energy,
    mac_energy,
    memory_energy,
    node_energy,
    operation_energy,
    voltage,
)
from archsim.device.device import Cpu, Gpu
from archsim.device.units import AWAKE, CORE, MEMORY, PACKAGE_UNITS, UNITS, UnitClocks, package_rates, unit_rates
from archsim.device.variant import first_of

STANDING = ("standing", "leakage", "clocks", "active_units")  # what is drawn beside what the units switch
BUSES = ("l2", "dram")  # units whose energy is in long wires, which take it where a bit differs from the one before


def unit_power(
    device: Gpu, shares: Mapping[str, Array | float], at: UnitClocks, constants: Calibration, toggling: Array | float = 1.0
) -> dict[str, Array]:  # fmt: skip
    """Power of each unit [W], by its name, after `STANDING`; the sum is what the board, module or package draws.

    shares: of `UNITS`, and of `AWAKE`, which is 1 where it is not given and any unit works, each a float or [N]
    at: the clocks at which they are measured
    toggling: what a byte of `BUSES` takes beside one of random values, `energy.zeros` where values are alike [1], a float or [N]

    A unit that the chip does not have takes nothing.

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.cost.idle import idle_top
    >>> from archsim.device.catalog import find
    >>> gpu = find("gtx_1080").device
    >>> idle = unit_power(gpu, {}, UnitClocks(core=idle_top(gpu)), default())
    >>> round(sum(value.item() for value in idle.values()) / gpu.power.idle, 9)
    1.0
    >>> busy = unit_power(gpu, {"fp32": 0.9, "dram": 0.1}, UnitClocks(core=idle_top(gpu)), default())
    >>> busy["fp32"].item() > busy["dram"].item() > 0.0
    True
    """
    volt, node = voltage(at.core, device, constants), node_energy(device, constants)
    given = {name: np.asarray(shares.get(name, 0.0), dtype=float) for name in UNITS}
    works = np.asarray(sum(given.values()) > 0.0, dtype=float)
    awake = np.asarray(shares.get(AWAKE, works), dtype=float)
    parts = {
        "standing": standing_power(device, constants, at.memory),
        "leakage": leakage_power(device, volt, constants),
        "clocks": idle_clock_power(device, at.core, volt, constants),
        "active_units": awake * device.sm.count * at.core * clock_energy(device, volt, node, constants),
    }
    rates = unit_rates(device, at)
    energies = unit_energies(device, volt, node, constants)
    taken = {name: toggling if name in BUSES else 1.0 for name in UNITS}
    return parts | {name: np.asarray(given[name] * rates[name] * energies[name] * taken[name]) for name in UNITS}


def unit_energies(device: Gpu, volt: Array, node: Array, constants: Calibration) -> dict[str, Array | float]:
    """Energy of one operation, or of one byte, of each unit beyond the clock tree of its SM [J].

    volt: voltage as a share of the highest, a float or [N]; node: `node_energy` [J]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> found = unit_energies(find("gtx_1080").device, np.ones(1), np.full(1, 40e-12), default())
    >>> found["special"].item() > found["fp32"].item() > found["int"].item()
    True
    """
    operation = operation_energy(device, node)
    lane, other = operation * volt**2, node * volt**2
    return {
        "fp32": issue_energy(device, volt, operation, constants), "int": lane * constants["energy.int"],
        "fp64": other * constants["energy.double"], "special": lane * constants["energy.special"],
        "tensor": mac_energy(device, "fp16", volt, operation, constants) if device.has_tensor("fp16") else 0.0,
        "shared": other * constants["energy.shared"], "l2": cache_energy(device, volt, constants),
        "dram": memory_energy(device, volt, constants),
    }  # fmt: skip


def at_other_clocks(shares: Mapping[str, Array], was: UnitClocks, now: UnitClocks, achievable: Array | float) -> dict[str, Array]:
    """How busy the units are when the same kernel runs at other clocks.

    share now = share f_was / (f_now T), with f of the core or of the memory
    T = ((core f_was / f_now)^q + (dram f_mem,was / f_mem,now)^q)^(1/q)

    shares: of `UNITS` as they were measured, [N]; was, now: clocks; T: time of the kernel beside what it took
    achievable: share of the memory's peak bandwidth that a stream reaches: there `dram` is all of the time
    core: share of the time that goes with the core clock, what the memory leaves, and at least that of the busiest unit

    >>> import numpy as np
    >>> slow = at_other_clocks({"fp32": np.array([0.9])}, UnitClocks(core=2e9), UnitClocks(core=1e9), 0.8)
    >>> slow["fp32"].item()  # a kernel of the core alone is as busy at any clock
    0.9
    >>> copy = {"dram": np.array([0.8]), "fp32": np.array([0.1])}
    >>> half = at_other_clocks(copy, UnitClocks(core=1e9), UnitClocks(core=1e9, memory=0.5), 0.8)
    >>> 0.04 < half["fp32"].item() < 0.06
    True
    """
    dram = np.minimum(np.asarray(shares.get("dram", 0.0)) / achievable, 1.0)
    busiest = np.zeros_like(dram)
    for name, value in shares.items():
        busiest = np.maximum(busiest, value if name not in (*MEMORY, AWAKE) else 0.0)
    busiest = np.minimum(busiest, 1.0)
    core = np.maximum((1.0 - dram**ASYNCHRONOUS) ** (1.0 / ASYNCHRONOUS), busiest)
    slower = {False: np.asarray(was.core) / now.core, True: np.asarray(was.memory) / now.memory}
    took = ((core * slower[False]) ** ASYNCHRONOUS + (dram * slower[True]) ** ASYNCHRONOUS) ** (1.0 / ASYNCHRONOUS)
    took = took / (core**ASYNCHRONOUS + dram**ASYNCHRONOUS) ** (1.0 / ASYNCHRONOUS)
    return {name: np.asarray(value * slower[name in MEMORY] / took) for name, value in shares.items() if name != AWAKE} | (
        {AWAKE: np.asarray(shares[AWAKE])} if AWAKE in shares else {}
    )


def power_by_clock(
    device: Gpu, power: float, top: float, clock: float, rate: float, free: float, constants: Calibration
) -> float:
    """Power of a workload at a clock [W], when it is known at a higher one.

    idle(f) + awake(f) s + (compute(f) (1 - free) + memory(f) free) s, s such that it is `power` at the top clock

    power: at the clock `top` [W] [Hz]; clock: f [Hz]; rate: work in a second beside that at the top clock [1]
    free: share of its time that does not go with the core clock: the memory works then, and the lanes do at all other times [1]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> gpu = find("tesla_v100_sxm2").device
    >>> round(power_by_clock(gpu, 250.0, 1.53e9, 1.53e9, 1.0, 0.2, default()), 6)
    250.0
    >>> 120.0 < power_by_clock(gpu, 250.0, 1.53e9, 1.0e9, 0.7, 0.2, default()) < 180.0
    True
    """
    first, idle_first = (_drawn(device, top, 1.0, free if busy else None, constants) for busy in (True, False))
    now, idle_now = (_drawn(device, clock, rate * top / clock, free if busy else None, constants) for busy in (True, False))
    work = (power - idle_first) / np.maximum(first - idle_first, TINY)
    return first_of(idle_now + np.maximum(work, 0.0) * (now - idle_now))


def _drawn(device: Gpu, clock: float, busy: float, free: float | None, constants: Calibration) -> Array:
    """Power when lanes are busy for a share (1 - free) of what they could be and the memory for `free`, idle without [W]."""
    at = UnitClocks(core=clock)
    if free is None:
        return np.asarray(sum(unit_power(device, {}, at, constants).values()))
    rates = unit_rates(device, at)
    memory = busy * free * device.memory.achievable * clock / device.clock.boost
    shares = {AWAKE: 1.0, "fp32": busy * (1.0 - free), "dram": memory, "l2": memory * rates["dram"] / rates["l2"]}
    return np.asarray(sum(unit_power(device, shares, at, constants).values()))


# ---------------------------------------------------------------------------------------------------- packages of a CPU

def package_power(device: Cpu, shares: Mapping[str, Array | float], clock: float, constants: Calibration) -> dict[str, Array]:
    """Power of each unit of all packages [W], by its name, after `STANDING`; the sum is what the packages draw.

    shares: of `PACKAGE_UNITS`, and of `CORE`, the cores that are awake, which is 1 where it is not given and any unit works
    clock: of the cores [Hz]

    `standing` is the idle power with every core asleep; the uncore's clocks run while any core of its socket is awake. Bytes
    of memory that lies outside the package take there what its controller does.

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> cpu = find("i7_6700k").device
    >>> idle, half, busy = (sum(value.item() for value in package_power(cpu, shares, 4e9, default()).values())
    ...                     for shares in ({}, {"core": 0.5, "simd": 0.4}, {"simd": 0.8}))
    >>> idle == cpu.power.idle and idle < half < busy
    True
    """
    volt, node = voltage(clock, device, constants), node_energy(device, constants)
    operation = operation_energy(device, node, "fp32")
    given = {name: np.asarray(shares.get(name, 0.0), dtype=float) for name in PACKAGE_UNITS}
    works = np.asarray(sum(given.values()) > 0.0, dtype=float)
    awake = np.asarray(shares.get(CORE, works), dtype=float) * device.core.count
    rates = package_rates(device, clock)
    energies = {
        "simd": mac_energy(device, "fp32", volt, operation, constants),
        "llc": cache_energy(device, volt, constants),
        "dram": memory_energy(device, volt, constants),
    }
    parts = {
        "standing": np.asarray(device.power.idle, dtype=float),
        "uncore": np.where(awake > 0.0, uncore_power(device, awake, clock, operation, constants), 0.0),
        "leakage": core_leakage(device, volt, operation, constants) * awake,
        "active_units": clock_energy(device, volt, operation, constants) * clock * awake,
    }
    return parts | {name: np.asarray(given[name] * rates[name] * energies[name]) for name in PACKAGE_UNITS}
