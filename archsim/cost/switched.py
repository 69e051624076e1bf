"""The voltage that a clock needs, and the energy of one operation, byte or clock at it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from archsim.base.errors import Unsupported
from archsim.base.record import ByIdentity
from archsim.base.units import show
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.occupancy import WARP
from archsim.device.device import Cpu, CpuPower, Device, Gpu, Tpu, with_caches
from archsim.device.silicon import silicon
from archsim.device.variant import first_of


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


# ----------------------------------------------------------------------------------------------- energy of an operation

TENSOR_WIDTH = {"fp32": 4.0, "tf32": 2.0, "fp8": 0.5, "int8": 0.5}  # of an operand, in 16 bits; tf32 is two, fp32 four
NODE = "energy.node."  # how the names of the constants of process nodes begin: those of GPUs
CORE_NODE = "energy.core_node."  # the same of CPUs, whose powers are not among those that the energies of GPUs are fitted to


def process_energy(device: Device, constants: Calibration) -> Array:
    """Energy of one fp32 multiply-accumulate by the law of process nodes, at the highest voltage, clock tree included [J].

    exp of a straight line through the logarithms of the process nodes that have a constant, continued beyond the last ones, a
    float or [D, 1]

    device: `chip.node` is the process node [m]; the constants are `energy.node.*`, those of a CPU `energy.core_node.*`

    The ranges of the constants do not overlap, so that a smaller node never takes more, whatever they are fitted to.

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> round(float(process_energy(find("gtx_1080").device, default())) / default()["energy.node.12to16nm"], 12)
    1.0
    """
    nodes, values = _nodes(ByIdentity(constants), CORE_NODE if isinstance(device, Cpu) else NODE)
    at = np.log(np.asarray(device.chip.node, dtype=float))
    right = np.minimum(np.maximum(nodes.searchsorted(at), 1), nodes.size - 1)
    slope = (values[right] - values[right - 1]) / (nodes[right] - nodes[right - 1])
    return np.asarray(np.exp(values[right - 1] + slope * (at - nodes[right - 1])))


def unmeasured_node(device: Device, constants: Calibration) -> str:
    """What is to be said of a process node smaller than any whose energy is fitted to measured powers; empty for any other.

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> unmeasured_node(find("gtx_1080").with_settings({"chip.node": "3 nm"}).device, default())
    'chip.node 3 nm: no power was measured below 4 nm; 9.38 pJ a multiply-accumulate is what foundries state of their processes'
    """
    size = first_of(device.chip.node)
    known = {1e-9 * node: constants.constants[name].fitted for name in constants.constants if name.startswith(NODE)
             for node in nodes_of(name)}  # fmt: skip
    least = min((node for node, fitted in known.items() if fitted), default=0.0)
    if size >= least * (1.0 - 1e-9):
        return ""
    beyond = f", continued beyond {show(min(known), 'm')}" if size < min(known) else ""
    energy = show(first_of(process_energy(device, constants)), "J", 3)
    return (f"chip.node {show(size, 'm')}: no power was measured below {show(least, 'm')}; {energy} a multiply-accumulate is "
            f"what foundries state of their processes{beyond}")  # fmt: skip


def node_energy(device: Device, constants: Calibration) -> Array:
    """The same of this design [J]: how it is laid out, and the voltage that its highest clock needs.

    process design, a float or [D, 1]

    process: `process_energy` [J]; design: `power.design` of a GPU, 1 where nothing is known [1]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> hopper = find("h100_sxm5_80gb").device
    >>> node_energy(hopper, default()).item() > 2.0 * process_energy(hopper, default()).item()
    True
    """
    design = device.power.design if isinstance(device, Gpu) else None
    return process_energy(device, constants) * (1.0 if design is None else design)


def operation_energy(device: Device, node: Array, precision: str = "fp32") -> Array:
    """The energy of one fp32 multiply-accumulate on this architecture [J]: that of the node, times what sets the design apart.

    node own, a float or [D, 1]

    node: `node_energy` [J]; own: `power.operation`, 1 where nothing is known and in double precision [1]

    What sets a design apart is how its schedulers and registers feed the lanes of single precision: a Tesla K40 takes twice
    what a GTX Titan X of the same process does for those, and the same in double precision and for shared memory.

    >>> from archsim.device.catalog import find
    >>> operation_energy(find("gtx_1080").device, 40e-12).item()
    4e-11
    """
    own = None if precision == "fp64" else with_caches(device, "energy of an operation").power.operation
    return np.asarray(node if own is None else node * own)


@lru_cache(maxsize=64)
def _nodes(constants: ByIdentity[Calibration], family: str) -> tuple[Array, Array]:
    """The logarithms of the process nodes that have a constant whose name begins with `family`, and of these constants."""
    named = [name for name in constants.it.constants if name.startswith(family)]
    known = sorted((node * 1e-9, name) for name in named for node in nodes_of(name))
    return np.log([node for node, _ in known]), np.log([constants.it[name] for _, name in known])


def nodes_of(name: str) -> tuple[float, ...]:
    """The process nodes in nanometres that a constant of this `name` stands for: one, or the ends of a generation.

    >>> nodes_of("energy.node.28nm"), nodes_of("energy.node.12to16nm")
    ((28.0,), (12.0, 16.0))
    """
    return tuple(float(size) for size in name.rpartition(".")[2].removesuffix("nm").split("to"))


def mac_energy(device: Device, precision: str, volt: Array, node: Array, constants: Calibration) -> Array:
    """Energy of one multiply-accumulate of a product beyond the clocks of its unit [J].

    node (1 - clock) V^2 min(fp32 / pipe, 1) on a GPU; node (1 - clock) V^2 tensor width on tensor cores;
    node (vector / lanes + core_mac) fp32 / pipe V^2 on a CPU, [D, V]

    lane: that of an fp32 lane of a GPU [J]
    volt: V, voltage as a share of the highest, [D, V]
    node: `operation_energy` [J], a float or [D, 1]
    clock, tensor, core_mac: `energy.*` [1]; fp32, pipe: rates of single precision and of this one [FMA/clk]
    vector: of a vector instruction with its loads, whatever its width, `energy.core_vector` [1]
    lanes: values of 32 bit in the widest register, fp32 / `core.fma_ports` [1]

    A GPU's pipe of twice the rate spends half for each; tensor cores spend `energy.tensor` times as much as an fp32 lane on
    operands of 16 bits, and in proportion to their width on others. Products in double precision take `energy.double` over
    `energy.lane` times as much as in single.

    >>> from archsim.device.catalog import find
    >>> mac_energy(find("gtx_1080").device, "fp32", 0.5, 40e-12, {"energy.clock": 0.2}).item()
    8e-12
    """
    if isinstance(device, Gpu):
        lane = node * (1.0 - constants["energy.clock"]) * volt**2
        if tensor_share(device, precision):
            return np.asarray(lane * constants["energy.tensor"] * TENSOR_WIDTH.get(precision, 1.0))
        if precision == "fp64":
            return np.asarray(lane * constants["energy.double"] / constants["energy.lane"])
        return np.asarray(lane * np.minimum(device.rate.fp32 / device.pipe(precision), 1.0))
    single, pipe = device.pipe("fp32"), device.pipe(precision)
    assert not isinstance(device, Tpu)  # whose powers have no parts
    whole = constants["energy.core_mac"] + constants["energy.core_vector"] * device.core.fma_ports / single
    return np.asarray(node * whole * single / pipe * volt**2)


def tensor_share(device: Device, precision: str) -> float:
    """The share of the multiply-accumulates of products that tensor cores do: all of them where the chip has any for this format.

    >>> from archsim.device.catalog import find
    >>> tensor_share(find("tesla_v100_sxm2").device, "fp16"), tensor_share(find("tesla_v100_sxm2").device, "fp32")
    (1.0, 0.0)
    """
    return float(isinstance(device, Gpu) and device.has_tensor("fp16" if precision == "half" else precision))


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

    node clock (fp32 + warp schedulers) / 2 V^2 on a GPU, node core_clock V^2 on a CPU, [D, V]

    volt: V, voltage as a share of the highest, [D, V]
    node: `node_energy` [J], a float or [D, 1]
    clock, core_clock: `energy.*` [1]; fp32: multiply-accumulates per clock and SM [FMA/clk], a float or [D, 1]
    schedulers: of warps of one SM; warp: the lanes that each can feed, 32 [1]

    One half goes with the lanes, the other with schedulers, instruction buffers and registers, of which an SM has the same for 64
    lanes (Volta, A100) as for 128 (Maxwell, other Ampere). How they share is not published: halves are a choice.

    >>> from archsim.device.catalog import find
    >>> round(clock_energy(find("gtx_1080").device, 0.5, 40e-12, {"energy.clock": 0.25}).item() * 1e12, 9)  # 128 lanes
    320.0
    """
    if isinstance(device, Gpu):
        lanes = 0.5 * (device.rate.fp32 + WARP * device.sm.schedulers)
        return np.asarray(node * constants["energy.clock"] * lanes * volt**2)
    return np.asarray(node * constants["energy.core_clock"] * volt**2)


def cache_energy(device: Device, volt: Array, constants: Calibration) -> Array:
    """Energy of one byte between the shared cache and an SM or core, wires included [J].

    process cache V^2, [D, V]

    volt: V, voltage as a share of the highest, [D, V]
    process: `process_energy` [J]; what sets the design of an SM apart is not in its wires
    cache: `energy.cache` [1]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> of = default().with_values({"energy.node.12to16nm": 40e-12, "energy.cache": 1.5})
    >>> round(cache_energy(find("gtx_1080").device, 0.5, of).item() * 1e12, 9)
    15.0
    """
    return np.asarray(process_energy(device, constants) * constants["energy.cache"] * volt**2)


def memory_energy(device: Device, volt: Array, constants: Calibration) -> Array:
    """Energy of one byte between memory and the shared cache, which it fills at what one takes that leaves it [J].

    byte inside + cache, [D, V]; so that DRAM is dearer than the cache at any process node

    volt: V, voltage as a share of the highest, [D, V]
    byte: `energy.byte.FAMILY`, of DRAM and its link, whose voltage is their own [J]; Unsupported where the memory's type has none
    inside: share of it that the boundary of the power covers, `inside` [1]; cache: `cache_energy` [J]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> gpu, of = find("gtx_1080").device, default()
    >>> round((memory_energy(gpu, 1.0, of) - cache_energy(gpu, 1.0, of)).item() / of["energy.byte.GDDR5X"], 9)
    1.0
    """
    byte = constants[f"energy.byte.{memory_family(device)}"] * inside(device, constants)
    return byte + cache_energy(device, volt, constants)


def inside(device: Device, constants: Calibration) -> float:
    """Share of the energy of a byte of DRAM and its link that the boundary of a device's power covers [1].

    `energy.controller`, the controller and the pins, where memory modules stand outside a package; else 1

    >>> from archsim.device.catalog import find
    >>> [inside(find(name).device, {"energy.controller": 0.3}) for name in ("i7_6700k", "raspberry_pi_4")]
    [0.3, 1.0]
    """
    apart = isinstance(device, Cpu) and device.power.boundary == "package" and memory_family(device) == "DDR"
    return constants["energy.controller"] if apart else 1.0


def memory_family(device: Device) -> str:
    """The family of a device's memory whose energy per byte it has; Unsupported where its own is unknown.

    >>> from archsim.device.catalog import find
    >>> memory_family(find("tesla_v100_sxm2").device)
    'HBM'
    """
    family = silicon().family(device.memory.type)
    if family is None:
        raise Unsupported(f"{device.identity.id}: memory type {device.memory.type!r} is not one of {', '.join(silicon().memory)}")
    return family.energy
