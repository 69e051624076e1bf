"""Energy of kernels: what is drawn as long as time passes, and what each operation switches.

    E = (P_standing + P_leakage V^3 + P_clocks f V^2) t + units at work x E_clock f V^2 t_busy
        + (operations x E_op + cache bytes x E_cache) V^2 + DRAM bytes x E_DRAM

This is the split of AccelWattch (Kandiah et al. 2021, equation 1) with one energy per process node: E(node) is that of one fp32
multiply-accumulate of a matrix product, registers, shared memory, control and clock tree included, and what other things take is
a multiple of it. The idle power of a device, stated with clocks up, is what stands, what leaks and what its clocks take. V is a
share of the voltage at the highest clock of the chip. Only DRAM has energies of its own.
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
NODE = "energy.node."  # how the names of the constants of process nodes begin
TINY = float(np.finfo(float).tiny)
TENSOR_WIDTH = {"tf32": 2.0, "fp8": 0.5, "int8": 0.5}  # of an operand, in 16 bits; tf32 takes the paths of two
MEMORY_FAMILIES = {  # what the type of a memory begins with -> the family whose energy per byte it has
    "GDDR7": "GDDR6", "GDDR6": "GDDR6",
    "GDDR5X": "GDDR5X", "GDDR5": "GDDR5", "LPDDR": "LPDDR", "HBM": "HBM", "DDR": "DDR",
}  # fmt: skip


def node_energy(device: Device, constants: Calibration) -> Array:
    """Energy of one fp32 multiply-accumulate of a GPU at its highest voltage, clock tree included [J].

    exp of a straight line through the logarithms of the process nodes that have a constant, `energy.node.*`, continued beyond
    the last ones, a float or [D, 1]

    device: `chip.node` is the process node [m]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> round(float(node_energy(find("gtx_1080").device, default())) / default()["energy.node.12to16nm"], 12)
    1.0
    """
    nodes, values = _nodes(ByIdentity(constants))
    at = np.log(np.asarray(device.chip.node, dtype=float))
    right = np.minimum(np.maximum(nodes.searchsorted(at), 1), nodes.size - 1)
    slope = (values[right] - values[right - 1]) / (nodes[right] - nodes[right - 1])
    return np.asarray(np.exp(values[right - 1] + slope * (at - nodes[right - 1])))


def operation_energy(device: Device, node: Array) -> Array:
    """The energy of one fp32 multiply-accumulate on this architecture [J]: that of the node, times what sets the design apart.

    node own, a float or [D, 1]

    node: `node_energy` [J]; own: `power.operation`, 1 where nothing is known [1]

    >>> from archsim.device.catalog import find
    >>> operation_energy(find("gtx_1080").device, 40e-12).item()
    4e-11
    """
    own = device.power.operation
    return np.asarray(node if own is None else node * own)


@lru_cache(maxsize=64)
def _nodes(constants: ByIdentity[Calibration]) -> tuple[Array, Array]:
    """The logarithms of the process nodes that have a constant, and of these constants."""
    known = sorted((node * 1e-9, name) for name in constants.it.constants if name.startswith(NODE) for node in nodes_of(name))
    return np.log([node for node, _ in known]), np.log([constants.it[name] for _, name in known])


def nodes_of(name: str) -> tuple[float, ...]:
    """The process nodes that a constant of energy stands for [nm]: one, or the ends of a generation of the same transistors.

    >>> nodes_of("energy.node.28nm"), nodes_of("energy.node.12to16nm")
    ((28.0,), (12.0, 16.0))
    """
    return tuple(float(size) for size in name.removeprefix(NODE).removesuffix("nm").split("to"))


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


def voltage_line(device: Device, constants: Calibration) -> tuple[Array | float, Array | float]:
    """The line of voltages: its slope and its end, as shares [1]. Processors reach clocks, and voltages, twice as far apart.

    slope, floor: `power.voltage_slope` and `power.voltage_floor` of an architecture whose voltages were read or fitted, otherwise
    `energy.voltage_*` of a GPU, `energy.core_voltage_*` of a CPU

    >>> from archsim.device.catalog import find
    >>> of = {"energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> voltage_line(find("rtx_4090").device, of)  # of Ada nothing is known
    (1.2, 0.7)
    """
    part = "core_voltage" if isinstance(device, Cpu) else "voltage"
    slope, floor = device.power.voltage_slope, device.power.voltage_floor
    return (constants[f"energy.{part}_slope"] if slope is None else slope,
            constants[f"energy.{part}_floor"] if floor is None else floor)  # fmt: skip


def voltage(clock: Array | float, device: Device, constants: Calibration) -> Array:
    """Voltage, as a share of that at the highest clock of the chip.

    max(floor, 1 - slope (1 - f / f_highest)), [D, V]

    clock: f, the core clock [Hz], a float, [D, 1] or [D, V]
    slope, floor: of the architecture or the kind of device, `voltage_line` [1]

    A straight line that ends at the least voltage at which the chip works: voltages read from A100s lie within 3 % of one.

    >>> from archsim.device.catalog import find
    >>> of = {"energy.voltage_slope": 1.2, "energy.voltage_floor": 0.7}
    >>> gpu = find("rtx_4090").device
    >>> round(voltage(0.9 * highest_clock(gpu), gpu, of).item(), 9)
    0.88
    """
    slope, floor = voltage_line(device, constants)
    return np.asarray(np.maximum(floor, 1.0 - slope * (1.0 - clock / highest_clock(device))))


def mac_energy(device: Device, precision: str, volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one multiply-accumulate of a product beyond the clocks of its unit [J].

    node (1 - clock) V^2 min(fp32 / pipe, 1) on a GPU; node (1 - clock) V^2 tensor width on tensor cores;
    node core_mac fp32 / pipe V^2 on a CPU, [D, V]

    lane: that of an fp32 lane of a GPU [J]
    volt: V, voltage as a share of the highest, [D, V]
    node: `operation_energy` [J], a float or [D, 1]
    clock, tensor, core_mac: `energy.*` [1]; fp32, pipe: rates of single precision and of this one [FMA/clk]

    A GPU's pipe of twice the rate spends half for each; tensor cores spend `energy.tensor` times as much as an fp32 lane on
    operands of 16 bits, and in proportion to their width on others. Products in double precision take `energy.double` over
    `energy.lane` times as much as in single.

    >>> from archsim.device.catalog import find
    >>> mac_energy(find("gtx_1080").device, "fp32", 0.5, 40e-12, {"energy.clock": 0.2}).item()
    8e-12
    """
    if isinstance(device, Gpu):
        lane = node * (1.0 - constants["energy.clock"]) * volt**2
        if device.has_tensor("fp16" if precision == "half" else precision):
            return np.asarray(lane * constants["energy.tensor"] * TENSOR_WIDTH.get(precision, 1.0))
        if precision == "fp64":
            return np.asarray(lane * constants["energy.double"] / constants["energy.lane"])
        return np.asarray(lane * np.minimum(device.rate.fp32 / device.pipe(precision), 1.0))
    single, pipe = device.pipe("fp32"), device.pipe(precision)
    return np.asarray(node * constants["energy.core_mac"] * single / pipe * volt**2)


def issue_energy(device: Device, volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one instruction of a lane on values in registers, beyond the clocks of its unit [J].

    node lane V^2 on a GPU, as of a multiply-accumulate in fp32 on a CPU, [D, V]

    volt: V, voltage as a share of the highest, [D, V]
    node: `operation_energy` [J], a float or [D, 1]
    lane: `energy.lane` [1]

    >>> from archsim.device.catalog import find
    >>> issue_energy(find("gtx_1080").device, 0.5, 40e-12, {"energy.lane": 0.2}).item()
    2e-12
    """
    if isinstance(device, Gpu):
        return np.asarray(node * constants["energy.lane"] * volt**2)
    return mac_energy(device, "fp32", volt, node, constants)


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


def idle_top(device: Device) -> Array | float:
    """The clock at which the idle power of a spec is stated: the highest of this product [Hz], a float or [D, 1].

    >>> from archsim.device.catalog import find
    >>> idle_top(find("gtx_1080").device) == find("gtx_1080").device.clock.sustained
    True
    """
    return np.maximum(device.clock.boost, device.clock.sustained) if isinstance(device, Gpu) else device.clock.boost


def standing_power(device: Device, constants: Calibration, memory: Array | float = 1.0) -> Array:
    """What of the idle power no core clock moves: regulators, fans, the memory at its clock [W].

    idle (1 - leakage - clock - memory (1 - share)), a float or [D, 1]

    idle: `power.idle` [W]; leakage, clock, memory: shares of it, `energy.idle_*` [1]
    share: memory clock, as a share of the usual one [1]

    >>> from archsim.device.catalog import find
    >>> of = {"energy.idle_leakage": 0.1, "energy.idle_clock": 0.2, "energy.idle_memory": 0.4}
    >>> gpu = find("gtx_1080").device
    >>> round(standing_power(gpu, of, 0.5).item() / gpu.power.idle, 12)
    0.5
    """
    taken = constants["energy.idle_leakage"] + constants["energy.idle_clock"] + constants["energy.idle_memory"] * (1.0 - memory)
    return np.asarray(device.power.idle * (1.0 - taken))


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
    def operation(self) -> Array:
        """The same of this architecture, where its design is known to take more or less than others of the node [J]."""
        return operation_energy(self.device, self.node)

    @cached_property
    def took(self) -> Array:
        """Time of one launch [s]."""
        return self.busy_s + self.overhead_s

    @cached_property
    def leakage_j(self) -> Array:
        """What leaks meanwhile [J]."""
        return leakage_power(self.device, self.volt, self.constants) * self.took

    @cached_property
    def clock_j(self) -> Array:
        """Clock trees: those that always run, and those of the units at work with their front ends [J].

        awake: clocks of all units at work [1]
        """
        awake = self.units * self.core_clock * self.busy_s
        always = idle_clock_power(self.device, self.core_clock, self.volt, self.constants) * self.took
        return always + clock_energy(self.device, self.volt, self.node, self.constants) * awake

    @cached_property
    def compute_j(self) -> Array:
        """Multiply-accumulates, and other instructions [J].

        mac: energy of one multiply-accumulate of this format [J]
        issue: energy of one other instruction [J]
        """
        mac = mac_energy(self.device, self.precision, self.volt, self.operation, self.constants)
        issue = issue_energy(self.device, self.volt, self.operation, self.constants)
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
        """All that a lower clock lowers, or less work [J]."""
        return self.leakage_j + self.clock_j + self.compute_j + self.cache_j + self.dram_j

    @cached_property
    def base_j(self) -> Array:
        """What stands meanwhile of the idle power of the board, module or package [J]."""
        return standing_power(self.device, self.constants) * self.took

    @cached_property
    def kept(self) -> Array:
        """Above the power limit the chip lowers its clock, and this share remains.

        left: what the limit leaves beside what stands [J]
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
    >>> terms = energy_terms(cost, gpu, "fp32", idle_top(gpu), np.inf, default())
    >>> round(terms.total_j.item() / gpu.power.idle, 9)  # a second of doing nothing, with clocks up
    1.0
    """
    return EnergyTerms(
        busy_s=cost.busy_s, overhead_s=cost.overhead_s, dram_bytes=cost.dram_bytes, llc_bytes=cost.cache_bytes,
        macs=cost.work["macs"], issues=cost.work["issues"], units=cost.work["units"], core_clock=clock, limit=limit,
        device=device, precision=precision, constants=constants,
    )  # fmt: skip


def spent(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> dict[str, Array]:
    """Energy of one launch of every variant by component [J], [D, V]; `base` is what stands of the idle power.

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
