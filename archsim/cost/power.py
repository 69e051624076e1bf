"""Power of kernels: what flows while time passes, what each operation switches, and the clock that a limit leaves.

    P = idle + leakage(V) + units at work x E_clock f V^2 + (operations x E_op + cache bytes x E_cache) V^2 / t
        + DRAM bytes x E_DRAM / t

This is the split of AccelWattch (Kandiah et al. 2021, equation 1) with one energy per process node: E(node) is that of one fp32
multiply-accumulate of a GPU that does nothing else, registers, shared memory, control and clock tree included, and what other
things take is a multiple of it. V is a share of the voltage at the highest clock of the chip. Only DRAM has energies of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, reduce

import numpy as np

from archsim.base.errors import Unsupported
from archsim.base.identity import ByIdentity
from archsim.calibration.constants import Calibration
from archsim.cost.bounds import clocked
from archsim.cost.cost import Array, Cost, smooth_maximum
from archsim.device.device import Cpu, Device, Gpu

COMPONENTS = ("base", "leakage", "clock", "compute", "cache", "dram")  # in this order in every output
STEPS = 60  # of a search for a clock; it ends after about ten
TOLERANCE = 1e-12  # of the logarithm of a clock
SLOWEST = 0.1  # of the highest clock: where clock tables end. A choice.
TENSOR_WIDTH = {"tf32": 2.0, "fp8": 0.5, "int8": 0.5}  # of an operand, in 16 bits; tf32 takes the paths of two
MEMORY_FAMILIES = {  # what the type of a memory begins with -> the family whose energy per byte it has
    "GDDR7": "GDDR6", "GDDR6": "GDDR6", "GDDR5": "GDDR5", "LPDDR": "LPDDR", "HBM": "HBM", "DDR": "DDR",
}  # fmt: skip


def node_energy(device: Device, constants: Calibration) -> Array:
    """Energy of one fp32 multiply-accumulate of a GPU at its highest voltage, clock tree included [J].

    A straight line through the logarithms of the process nodes that have a constant, continued beyond the last ones.
    """
    nodes, values = _nodes(ByIdentity(constants))
    at = np.log(np.asarray(device.chip.node, dtype=float))
    right = np.minimum(np.maximum(nodes.searchsorted(at), 1), nodes.size - 1)
    slope = (values[right] - values[right - 1]) / (nodes[right] - nodes[right - 1])
    return np.asarray(np.exp(values[right - 1] + slope * (at - nodes[right - 1])))


@lru_cache(maxsize=64)
def _nodes(constants: ByIdentity[Calibration]) -> tuple[Array, Array]:
    """The logarithms of the process nodes that have a constant, and of these constants."""
    known = sorted((float(name.removeprefix("energy.node.")[:-2]) * 1e-9, name) for name in constants.it.constants
                   if name.startswith("energy.node."))  # fmt: skip
    return np.log([node for node, _ in known]), np.log([constants.it[name] for _, name in known])


def highest_clock(device: Device) -> Array | float:
    """Clock [Hz] at which the chip needs its highest voltage: that of its own boost, or of its sibling with the higher one.

    What a core or SM needs at a clock belongs to its design and process, not to the clock at which this product stops.
    """
    own = device.clock.boost if isinstance(device, Cpu) else np.maximum(device.clock.boost, device.clock.sustained)
    return own if device.clock.silicon is None else device.clock.silicon


def voltage_line(device: Device) -> tuple[str, str]:
    """The constants of the line of voltages: its slope and its end. Processors reach clocks, and voltages, twice as far apart."""
    part = "core_voltage" if isinstance(device, Cpu) else "voltage"
    return f"energy.{part}_slope", f"energy.{part}_floor"


def voltage(clock: Array | float, device: Device, constants: Calibration) -> Array:
    """V / V(highest clock): a straight line that ends at the least voltage at which the chip works."""
    slope, floor = (constants[name] for name in voltage_line(device))
    return np.asarray(np.maximum(floor, 1.0 - slope * (1.0 - clock / highest_clock(device))))


def mac_energy(device: Device, precision: str, volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one multiply-accumulate beyond the clocks of its unit [J]; `node` is `node_energy`.

    A GPU's pipe of twice the rate spends half for each; tensor cores spend `energy.tensor` times as much as an fp32 lane on
    operands of 16 bits, and in proportion to their width on others. A CPU spends `energy.core_mac` nodes' worth on a lane of
    fp32.
    """
    if isinstance(device, Gpu):
        lane = node * (1.0 - constants["energy.clock"]) * volt**2
        if device.has_tensor("fp16" if precision == "half" else precision):
            return np.asarray(lane * constants["energy.tensor"] * TENSOR_WIDTH.get(precision, 1.0))
        return np.asarray(lane * device.rate.fp32 / device.pipe(precision))
    return np.asarray(node * constants["energy.core_mac"] * device.pipe("fp32") / device.pipe(precision) * volt**2)


def clock_energy(device: Device, volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one clock of an SM or core at work: clock tree and front end [J]."""
    if isinstance(device, Gpu):
        return np.asarray(node * constants["energy.clock"] * device.rate.fp32 * volt**2)
    return np.asarray(node * constants["energy.core_clock"] * volt**2)


def cache_energy(volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one byte between the shared cache and an SM or core, wires included [J]."""
    return np.asarray(node * constants["energy.cache"] * volt**2)


def byte_energy(device: Device, constants: Calibration) -> float:
    """Energy of one byte from memory to the chip, both ends included [J]; the memory's voltage is its own."""
    return constants[f"energy.byte.{memory_family(device)}"]


def memory_family(device: Device) -> str:
    """The family of a device's memory; Unsupported where it has no energy per byte."""
    for begins, family in MEMORY_FAMILIES.items():
        if device.memory.type.lower().startswith(begins.lower()):
            return family
    raise Unsupported(f"{device.identity.id}: no energy per byte for memory type {device.memory.type!r}")


def leakage_power(device: Device, volt: Array, node: Array, constants: Calibration) -> Array:
    """Leakage beyond that in the idle power, which is at the least voltage [W]; grows with V^3.

    It is a share of what all units would switch at the highest clock, as both grow with the transistors that there are.
    """
    units = device.sm.count * device.rate.fp32 if isinstance(device, Gpu) else device.core.count * constants["energy.core_clock"]
    rise = volt**3 - constants[voltage_line(device)[1]] ** 3
    return np.asarray(constants["energy.leakage"] * node * units * highest_clock(device) * rise)


def idle_saving(device: Device, clock: Array | float, volt: Array, constants: Calibration) -> Array:
    """What a lower clock takes off the idle power, which is stated with clocks up [W]: a share of it goes with f V^2."""
    top = np.maximum(device.clock.boost, device.clock.sustained) if isinstance(device, Gpu) else device.clock.boost
    share = clock / top * (volt / voltage(top, device, constants)) ** 2
    return np.asarray(device.power.idle * constants["energy.idle_clock"] * np.maximum(0.0, 1.0 - share))


def spent(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> dict[str, Array]:
    """Energy of one launch of every variant by component [J], [D, V]; the idle power for as long as it takes is `base`.

    Where the clock is higher than the limit allows, the parts that a lower clock would save are cut to what is left: the
    chip lowers its clock, whatever the spec says of it.
    """
    volt, node = voltage(clock, device, constants), node_energy(device, constants)
    time = cost.busy_s + cost.overhead_s
    with np.errstate(invalid="ignore"):
        parts = {
            "leakage": leakage_power(device, volt, node, constants) * time,
            "clock": clock_energy(device, volt, node, constants) * cost.work["units"] * clock * cost.busy_s,
            "compute": cost.work["macs"] * mac_energy(device, precision, volt, node, constants)
            + cost.work["issues"] * mac_energy(device, "fp32", volt, node, constants),
            "cache": cost.cache_bytes * cache_energy(volt, node, constants),
            "dram": cost.dram_bytes * byte_energy(device, constants),
        }
        dynamic = reduce(np.add, parts.values())
        base = device.power.idle * time - np.minimum(idle_saving(device, clock, volt, constants) * time, dynamic)
        left = np.maximum(limit * time - base, 0.0)
        kept = np.where(dynamic > left, left / np.maximum(dynamic, np.finfo(float).tiny), 1.0)
    return {"base": base, **{name: part * kept for name, part in parts.items()}}


def power_at(
    ratio: Array, cost: Cost, device: Device, precision: str, clock: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Power of every variant [W], [D, V], at `ratio` of the core clock `clock` at which it was costed."""
    slower = {name: bound / ratio if clocked(name) else bound for name, bound in cost.bounds.items()}
    busy = np.where(np.isfinite(cost.busy_s), smooth_maximum(slower, cost.smooth), cost.busy_s)
    at = replace(cost, bounds=slower, busy_s=busy)
    energy = spent(at, device, precision, clock * ratio, np.inf, constants)
    with np.errstate(invalid="ignore"):
        power = reduce(np.add, energy.values()) / (busy + cost.overhead_s)
    return np.where(np.isfinite(power), power, 0.0)


def sustained_share(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> Array:
    """The highest share of `clock` at which each variant alone draws no more than `limit` [W], [D, V].

    A kernel that would draw more even at the lowest clock runs there.
    """

    def over(share: Array) -> Array:
        return np.log(np.maximum(power_at(share, cost, device, precision, clock, constants), 1e-3) / limit)

    high = np.ones(np.broadcast_shapes(cost.busy_s.shape, np.shape(clock)))
    at_high = over(high)
    if np.all(at_high <= 0.0):
        return high
    low = np.full_like(high, SLOWEST)
    return np.where(at_high <= 0.0, high, _crossing(over, low, high, over(low), at_high))


def _crossing(over: Callable[[Array], Array], low: Array, high: Array, at_low: Array, at_high: Array) -> Array:
    """Where the rising `over` passes 0 between `low` and `high`, or `low` where it is above 0 already; not above the crossing.

    False position in the logarithms, the kept end's value halved each time that it stays (the Illinois rule; Dowell & Jarratt
    1971): power is nearly a power of the clock, so few steps do what a bisection takes forty for.
    """
    left, right = np.log(low), np.log(high)
    lowest = at_low >= 0.0
    settled = lowest | (at_high <= 0.0)
    side = np.zeros_like(left)
    for _ in range(STEPS):
        open_ = ~settled & (right - left > TOLERANCE)
        if not open_.any():
            break
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = np.where(open_, right - at_high * (right - left) / (at_high - at_low), left)
        guess = np.clip(guess, left + 0.25 * TOLERANCE, right - 0.25 * TOLERANCE)
        value = over(np.exp(guess))
        below = open_ & (value <= 0.0)
        above = open_ & (value > 0.0)
        at_high = np.where(below & (side < 0), 0.5 * at_high, at_high)
        at_low = np.where(above & (side > 0), 0.5 * at_low, at_low)
        left, at_low = np.where(below, guess, left), np.where(below, value, at_low)
        right, at_high = np.where(above, guess, right), np.where(above, value, at_high)
        side = np.where(below, -1.0, np.where(above, 1.0, side))
    return np.where(lowest, low, np.exp(left))
