"""Energy of kernels: what is drawn as long as time passes, and what each operation switches.

    E = P_idle t + P_leakage(V) t + units at work x E_clock f V^2 t_busy + (operations x E_op + cache bytes x E_cache) V^2
        + DRAM bytes x E_DRAM

This is the split of AccelWattch (Kandiah et al. 2021, equation 1) with one energy per process node: E(node) is that of one fp32
multiply-accumulate of a GPU that does nothing else, registers, shared memory, control and clock tree included, and what other
things take is a multiple of it. V is a share of the voltage at the highest clock of the chip. Only DRAM has energies of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from archsim.base.errors import Unsupported
from archsim.base.identity import ByIdentity
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array, Cost
from archsim.device.device import Cpu, Device, Gpu

COMPONENTS = ("base", "leakage", "clock", "compute", "cache", "dram")  # in this order in every output
TINY = float(np.finfo(float).tiny)
TENSOR_WIDTH = {"tf32": 2.0, "fp8": 0.5, "int8": 0.5}  # of an operand, in 16 bits; tf32 takes the paths of two
MEMORY_FAMILIES = {  # what the type of a memory begins with -> the family whose energy per byte it has
    "GDDR7": "GDDR6", "GDDR6": "GDDR6", "GDDR5": "GDDR5", "LPDDR": "LPDDR", "HBM": "HBM", "DDR": "DDR",
}  # fmt: skip


def node_energy(device: Device, constants: Calibration) -> Array:
    """Energy of one fp32 multiply-accumulate of a GPU at its highest voltage, clock tree included [J].

    exp of a straight line through the logarithms of the process nodes that have a constant, `energy.node.*`, continued beyond
    the last ones, a float or [D, 1]

    device: `chip.node` is the process node [m]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> round(float(node_energy(find("gtx_1080").device, default())) / default()["energy.node.16nm"], 12)
    1.0
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
    """Clock at which the chip needs its highest voltage: that of its own boost, or of its sibling with the higher one [Hz].

    `clock.silicon`, or the higher one of boost and sustained clock, a float or [D, 1]

    own: highest clock of this product [Hz]

    What a core or SM needs at a clock belongs to its design and process, not to the clock at which this product stops.

    >>> from archsim.device.catalog import find
    >>> highest_clock(find("tesla_p4").device) > find("tesla_p4").device.clock.boost
    True
    """
    own = device.clock.boost if isinstance(device, Cpu) else np.maximum(device.clock.boost, device.clock.sustained)
    return own if device.clock.silicon is None else device.clock.silicon


def voltage_line(device: Device) -> tuple[str, str]:
    """The constants of the line of voltages: its slope and its end. Processors reach clocks, and voltages, twice as far apart.

    >>> from archsim.device.catalog import find
    >>> voltage_line(find("gtx_1080").device)
    ('energy.voltage_slope', 'energy.voltage_floor')
    """
    part = "core_voltage" if isinstance(device, Cpu) else "voltage"
    return f"energy.{part}_slope", f"energy.{part}_floor"


def voltage(clock: Array | float, device: Device, constants: Calibration) -> Array:
    """Voltage, as a share of that at the highest clock of the chip.

    max(floor, 1 - slope (1 - f / f_highest)), [D, V]

    clock: f, the core clock [Hz], a float, [D, 1] or [D, V]
    slope, floor: `energy.voltage_*` of a GPU, `energy.core_voltage_*` of a CPU

    A straight line that ends at the least voltage at which the chip works: the V-f tables of Pascal and Volta cards are that.

    >>> from archsim.device.catalog import find
    >>> of = {"energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> gpu = find("gtx_1080").device
    >>> round(voltage(0.9 * gpu.clock.boost, gpu, of).item(), 9)
    0.88
    """
    slope, floor = voltage_line(device)
    return np.asarray(np.maximum(constants[floor], 1.0 - constants[slope] * (1.0 - clock / highest_clock(device))))


def mac_energy(device: Device, precision: str, volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one multiply-accumulate beyond the clocks of its unit [J].

    node (1 - clock) V^2 fp32 / pipe on a GPU; node (1 - clock) V^2 tensor width on tensor cores; node core_mac fp32 / pipe V^2 on
    a CPU, [D, V]

    lane: that of an fp32 lane of a GPU [J]
    volt: V, voltage as a share of the highest, [D, V]
    node: `node_energy` [J], a float or [D, 1]
    clock, tensor, core_mac: `energy.*` [1]; fp32, pipe: rates of single precision and of this one [FMA/clk]

    A GPU's pipe of twice the rate spends half for each; tensor cores spend `energy.tensor` times as much as an fp32 lane on
    operands of 16 bits, and in proportion to their width on others.

    >>> from archsim.device.catalog import find
    >>> mac_energy(find("gtx_1080").device, "fp32", 0.5, 40e-12, {"energy.clock": 0.2}).item()
    8e-12
    """
    if isinstance(device, Gpu):
        lane = node * (1.0 - constants["energy.clock"]) * volt**2
        if device.has_tensor("fp16" if precision == "half" else precision):
            return np.asarray(lane * constants["energy.tensor"] * TENSOR_WIDTH.get(precision, 1.0))
        return np.asarray(lane * device.rate.fp32 / device.pipe(precision))
    single, pipe = device.pipe("fp32"), device.pipe(precision)
    return np.asarray(node * constants["energy.core_mac"] * single / pipe * volt**2)


def clock_energy(device: Device, volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one clock of an SM or core at work: clock tree and front end [J].

    node clock fp32 V^2 on a GPU, node core_clock V^2 on a CPU, [D, V]

    volt: V, voltage as a share of the highest, [D, V]
    node: `node_energy` [J], a float or [D, 1]
    clock, core_clock: `energy.*` [1]; fp32: multiply-accumulates per clock and SM [FMA/clk], a float or [D, 1]

    >>> from archsim.device.catalog import find
    >>> round(clock_energy(find("gtx_1080").device, 0.5, 40e-12, {"energy.clock": 0.25}).item() * 1e12, 9)  # 128 lanes
    320.0
    """
    if isinstance(device, Gpu):
        return np.asarray(node * constants["energy.clock"] * device.rate.fp32 * volt**2)
    return np.asarray(node * constants["energy.core_clock"] * volt**2)


def cache_energy(volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one byte between the shared cache and an SM or core, wires included [J].

    node cache V^2, [D, V]

    volt: V, voltage as a share of the highest, [D, V]
    node: `node_energy` [J], a float or [D, 1]
    cache: `energy.cache` [1]

    >>> cache_energy(0.5, 40e-12, {"energy.cache": 1.5}).item()
    1.5e-11
    """
    return np.asarray(node * constants["energy.cache"] * volt**2)


def byte_energy(device: Device, constants: Calibration) -> float:
    """Energy of one byte from memory to the chip, both ends included [J]; the memory's voltage is its own.

    `energy.byte.FAMILY`; Unsupported where the memory's type has none

    >>> from archsim.device.catalog import find
    >>> byte_energy(find("gtx_1080").device, {"energy.byte.GDDR5": 160e-12})
    1.6e-10
    """
    return constants[f"energy.byte.{memory_family(device)}"]


def memory_family(device: Device) -> str:
    """The family of a device's memory; Unsupported where it has no energy per byte.

    >>> from archsim.device.catalog import find
    >>> memory_family(find("tesla_v100_sxm2").device)
    'HBM'
    """
    for begins, family in MEMORY_FAMILIES.items():
        if device.memory.type.lower().startswith(begins.lower()):
            return family
    raise Unsupported(f"{device.identity.id}: no energy per byte for memory type {device.memory.type!r}")


def leakage_power(device: Device, volt: Array, node: Array, constants: Calibration) -> Array:
    """Leakage beyond that in the idle power, which is at the least voltage [W]; it grows with V^3.

    leakage node lanes f_highest (V^3 - floor^3), [D, V]

    lanes: fp32 lanes of all SMs, or what all cores switch in a clock
    rise: how much V^3 is above that of the least voltage
    volt: V, voltage as a share of the highest, [D, V]
    node: `node_energy` [J], a float or [D, 1]
    leakage: `energy.leakage` [1]; floor: least voltage, `voltage_line` [1]; f_highest: `highest_clock` [Hz]

    It is a share of what all units would switch at the highest clock, as both grow with the transistors that there are.

    >>> from archsim.device.catalog import find
    >>> of = {"energy.leakage": 0.05, "energy.voltage_floor": 0.8}
    >>> round(leakage_power(find("gtx_1080").device, 1.0, 40e-12, of).item(), 3)  # 2560 lanes at 1.733 GHz
    4.33
    """
    lanes = device.sm.count * device.rate.fp32 if isinstance(device, Gpu) else device.core.count * constants["energy.core_clock"]
    rise = np.maximum(volt**3 - constants[voltage_line(device)[1]] ** 3, 0.0)
    return np.asarray(constants["energy.leakage"] * node * lanes * highest_clock(device) * rise)


def idle_saving(device: Device, clock: Array | float, volt: Array, constants: Calibration) -> Array:
    """What a lower clock takes off the idle power, which is stated with clocks up [W].

    idle idle_clock max(0, 1 - f V^2 / (f_top V_top^2)), [D, V]

    top: highest clock of this product [Hz]
    top_volt: voltage at that clock
    share: f V^2, as a share of that at the highest clock
    clock: f, the core clock [Hz], a float, [D, 1] or [D, V]
    volt: V, voltage as a share of the highest, [D, V]
    idle: `power.idle` [W]; idle_clock: share of it that goes with f V^2, `energy.idle_clock` [1]

    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> of = {"energy.idle_clock": 0.5, "energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> gpu = find("gtx_1080").device
    >>> idle_saving(gpu, 0.5 * gpu.clock.boost, 1.0, of).item() == 0.25 * gpu.power.idle
    True
    """
    top = np.maximum(device.clock.boost, device.clock.sustained) if isinstance(device, Gpu) else device.clock.boost
    top_volt = voltage(top, device, constants)
    share = clock / top * (volt / top_volt) ** 2
    return np.asarray(device.power.idle * constants["energy.idle_clock"] * np.maximum(0.0, 1.0 - share))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EnergyTerms:
    """One launch of some kernels, and where its energy goes, each [D, V]; computed when it is asked for.

    busy_s: time of the kernel itself [s]
    overhead_s: what comes on top of it [s]
    dram_bytes: memory traffic [B]
    llc_bytes: traffic through the last cache level, which all units share [B]
    macs: multiply-accumulates of products
    issues: other instructions
    units: SMs or cores at work, on average
    core_clock: their clock [Hz]
    limit: power limit [W]
    """

    busy_s: Array
    overhead_s: Array
    dram_bytes: Array
    llc_bytes: Array
    macs: Array
    issues: Array
    units: Array
    core_clock: Array | float
    limit: Array | float
    device: Device
    precision: str
    constants: Calibration

    @cached_property
    def volt(self) -> Array:
        """Voltage, as a share of that at the chip's highest clock."""
        return voltage(self.core_clock, self.device, self.constants)

    @cached_property
    def node(self) -> Array:
        """Energy of one fp32 multiply-accumulate of a GPU of this process [J]."""
        return node_energy(self.device, self.constants)

    @cached_property
    def took(self) -> Array:
        """Time of one launch [s]."""
        return self.busy_s + self.overhead_s

    @cached_property
    def leakage_j(self) -> Array:
        """Leakage beyond that in the idle power [J]."""
        return leakage_power(self.device, self.volt, self.node, self.constants) * self.took

    @cached_property
    def clock_j(self) -> Array:
        """Clock trees and front ends of the units at work [J]."""
        return clock_energy(self.device, self.volt, self.node, self.constants) * self.units * self.core_clock * self.busy_s

    @cached_property
    def compute_j(self) -> Array:
        """Multiply-accumulates, and other instructions [J].

        mac: energy of one multiply-accumulate of this format [J]
        issue: energy of one other instruction [J]
        """
        mac = mac_energy(self.device, self.precision, self.volt, self.node, self.constants)
        issue = mac_energy(self.device, "fp32", self.volt, self.node, self.constants)
        return self.macs * mac + self.issues * issue

    @cached_property
    def cache_j(self) -> Array:
        """Bytes between the shared cache and the units [J]."""
        return self.llc_bytes * cache_energy(self.volt, self.node, self.constants)

    @cached_property
    def dram_j(self) -> Array:
        """Bytes from and to memory [J]."""
        return self.dram_bytes * byte_energy(self.device, self.constants)

    @cached_property
    def dynamic_j(self) -> Array:
        """All that comes on top of the idle power [J]."""
        return self.leakage_j + self.clock_j + self.compute_j + self.cache_j + self.dram_j

    @cached_property
    def base_j(self) -> Array:
        """The idle power of the board, module or package meanwhile [J].

        saved: what a lower clock than the highest takes off it [W]
        """
        saved = idle_saving(self.device, self.core_clock, self.volt, self.constants)
        return self.device.power.idle * self.took - np.minimum(saved * self.took, self.dynamic_j)

    @cached_property
    def kept(self) -> Array:
        """Above the power limit the chip lowers its clock, and this share remains.

        left: what the limit leaves beside the idle power [J]
        """
        left = np.maximum(self.limit * self.took - self.base_j, 0.0)
        return np.where(self.dynamic_j > left, left / np.maximum(self.dynamic_j, TINY), 1.0)

    @cached_property
    def total_j(self) -> Array:
        """Energy of one launch [J]."""
        return self.dynamic_j * self.kept + self.base_j


def energy_terms(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> EnergyTerms:
    """The record from which the energy of one launch of every variant is computed [J].

    cost: times [s], traffic [B] and work [1] of one launch, [D, V]; clock: core clock [Hz], a float, [D, 1] or [D, V]
    limit: of power [W], a float or [D, 1]

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> one, gpu = np.ones((1, 1)), find("gtx_1080").device
    >>> cost = Cost(bounds={}, busy_s=one, overhead_s=0 * one, dram_bytes=0 * one, cache_bytes=0 * one,
    ...             work={"macs": 0 * one, "issues": 0 * one, "units": 0 * one})
    >>> terms = energy_terms(cost, gpu, "fp32", gpu.clock.boost, np.inf, default())
    >>> terms.base_j.item() == gpu.power.idle  # a second of doing nothing, with clocks up
    True
    """
    return EnergyTerms(
        busy_s=cost.busy_s, overhead_s=cost.overhead_s, dram_bytes=cost.dram_bytes, llc_bytes=cost.cache_bytes,
        macs=cost.work["macs"], issues=cost.work["issues"], units=cost.work["units"], core_clock=clock, limit=limit,
        device=device, precision=precision, constants=constants,
    )  # fmt: skip


def spent(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> dict[str, Array]:
    """Energy of one launch of every variant by component [J], [D, V]; the idle power for as long as it takes is `base`.

    E = base + kept (leakage + clock + compute + cache + dram)        (Kandiah et al. 2021, equation 1)

    cost: times [s], traffic [B] and work [1] of one launch, [D, V]; clock: core clock [Hz], a float, [D, 1] or [D, V]
    limit: of power [W], a float or [D, 1]; kept: share that it leaves [1]

    Where the clock is higher than the limit allows, the parts that a lower clock would save are cut to what is left: the
    chip lowers its clock, whatever the spec says of it.

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> one = np.ones((1, 1))
    >>> cost = Cost(bounds={}, busy_s=one, overhead_s=0 * one, dram_bytes=1e11 * one, cache_bytes=0 * one,
    ...             work={"macs": 1e13 * one, "issues": 0 * one, "units": 20 * one})
    >>> parts = spent(cost, find("gtx_1080").device, "fp32", 1.7e9, 100.0, default())
    >>> round(sum(part.item() for part in parts.values()), 6)  # a second at a limit of 100 W
    100.0
    """
    of = energy_terms(cost, device, precision, clock, limit, constants)
    with np.errstate(invalid="ignore"):
        kept = of.kept
        parts = {"leakage": of.leakage_j, "clock": of.clock_j, "compute": of.compute_j, "cache": of.cache_j, "dram": of.dram_j}
        return {"base": of.base_j, **{name: part * kept for name, part in parts.items()}}
