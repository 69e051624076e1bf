"""Energy of kernels: what is drawn as long as time passes, and what each operation switches.

    E = (P_standing + P_leakage V^3 + P_clocks f V^2) t + units at work x E_clock f V^2 t_busy
        + (operations x E_op + cache bytes x E_cache) V^2 + DRAM bytes x (E_DRAM + E_cache V^2)

This is the split of AccelWattch (Kandiah et al. 2021, equation 1) with one energy per process node: E(node) is that of one fp32
multiply-accumulate of a matrix product, registers, shared memory, control and clock tree included, and what other things take is
a multiple of it. It never grows as the node shrinks; what a design takes beside it is a factor of its architecture. The idle
power of a device, stated with clocks up, is what stands, what leaks and what its clocks take; that of a CPU is with every core
asleep, and cores and uncore that are awake come on top of it (`archsim.cost.idle`). V is a share of the voltage at the highest
clock of the chip. DRAM and its links have energies of their own; a byte of them fills the shared cache too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array, Cost
from archsim.cost.idle import core_leakage, idle_clock_power, leakage_power, standing_power, uncore_power
from archsim.cost.switched import (
    cache_energy,
    clock_energy,
    issue_energy,
    mac_energy,
    memory_energy,
    node_energy,
    operation_energy,
    tensor_share,
    voltage,
)
from archsim.device.device import Cpu, Device, Tpu

COMPONENTS = {  # in this order in every output -> what it covers
    "idle_board": "what stands of the idle power: regulators, fans, memory that holds its data; of a CPU all of it, cores asleep",
    "leakage": "leakage of the chip, at work or not; of a CPU that of the cores awake",
    "clock_tree": "clock tree of the chip that always runs; of a CPU the uncore, with any core awake",
    "active_units": "clock tree and front end of the SMs or cores at work",
    "arithmetic": "multiply-accumulates on lanes, with their registers and shared memory or L1",
    "tensor": "multiply-accumulates on tensor cores, with their registers and shared memory",
    "instructions": "other instructions: fp32, integer and special functions, addresses, loads and stores",
    "cache": "bytes between the shared cache (L2, or L3 of a CPU) and the SMs or cores",
    "dram": "bytes from and to memory, and the shared cache that they fill",
}
IDLE = ("idle_board", "leakage", "clock_tree")  # drawn as long as time passes, whatever runs
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EnergyTerms:
    """One launch of some kernels on a GPU, and where its energy goes, each [D, V]; computed when it is asked for.

    busy_s: time of the kernel itself [s]
    overhead_s: what comes on top of it [s]
    dram_bytes: memory traffic [B]
    llc_bytes: traffic through the last cache level, which all units share [B]
    macs: multiply-accumulates of products
    wide: those of products in fp32, where the others are narrower
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
    wide: Array | float
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
        return operation_energy(self.device, self.node, self.precision)

    @cached_property
    def took(self) -> Array:
        """Time of one launch [s]."""
        return self.busy_s + self.overhead_s

    @cached_property
    def leakage_j(self) -> Array:
        """What leaks meanwhile [J]."""
        return leakage_power(self.device, self.volt, self.constants) * self.took

    @cached_property
    def clock_tree_j(self) -> Array:
        """Clock trees that always run [J]."""
        return idle_clock_power(self.device, self.core_clock, self.volt, self.constants) * self.took

    @cached_property
    def active_units_j(self) -> Array:
        """Clock trees of the units at work, with their front ends [J].

        clocks: of all units at work [1]
        """
        clocks = self.units * self.core_clock * self.busy_s
        return clock_energy(self.device, self.volt, self.node, self.constants) * clocks

    @cached_property
    def product_j(self) -> Array:
        """Multiply-accumulates of products [J].

        mac: energy of one multiply-accumulate of this format [J]
        """
        mac = mac_energy(self.device, self.precision, self.volt, self.operation, self.constants)
        return self.macs * mac

    @cached_property
    def wide_j(self) -> Array:
        """Multiply-accumulates in fp32 beside tensor cores that idle [J]."""
        return self.wide * mac_energy(self.device, "fp32", self.volt, operation_energy(self.device, self.node), self.constants)

    @cached_property
    def arithmetic_j(self) -> Array:
        """Multiply-accumulates on lanes [J]."""
        return self.product_j * (1.0 - tensor_share(self.device, self.precision)) + self.wide_j

    @cached_property
    def tensor_j(self) -> Array:
        """Multiply-accumulates on tensor cores [J]."""
        return self.product_j * tensor_share(self.device, self.precision)

    @cached_property
    def instructions_j(self) -> Array:
        """Other instructions [J].

        issue: energy of one of them [J]
        """
        issue = issue_energy(self.device, self.volt, operation_energy(self.device, self.node), self.constants)
        return self.issues * issue

    @cached_property
    def cache_j(self) -> Array:
        """Bytes between the shared cache and the units [J]."""
        return self.llc_bytes * cache_energy(self.device, self.volt, self.constants)

    @cached_property
    def dram_j(self) -> Array:
        """Bytes from and to memory, without what modules outside a package take [J]."""
        return self.dram_bytes * memory_energy(self.device, self.volt, self.constants)

    @cached_property
    def dynamic_j(self) -> Array:
        """All that a lower clock lowers, or less work [J]."""
        switched = self.product_j + self.wide_j + self.instructions_j
        return self.leakage_j + self.clock_tree_j + self.active_units_j + switched + self.cache_j + self.dram_j

    @cached_property
    def idle_board_j(self) -> Array:
        """What stands meanwhile of the idle power of the board, module or package [J]."""
        return standing_power(self.device, self.constants, self.device.memory.clock_share) * self.took

    @cached_property
    def kept(self) -> Array:
        """Above the power limit the chip lowers its clock, and this share remains.

        left: what the limit leaves beside what stands [J]
        """
        left = np.maximum(self.limit * self.took - self.idle_board_j, 0.0)
        return np.where(self.dynamic_j > left, left / np.maximum(self.dynamic_j, TINY), 1.0)

    @cached_property
    def total_j(self) -> Array:
        """Energy of one launch [J]."""
        return self.dynamic_j * self.kept + self.idle_board_j


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PackageTerms(EnergyTerms):
    """The same on a CPU, whose idle power is that of packages with every core asleep.

    busy_s: time of the kernel itself [s]
    overhead_s: what comes on top of it [s]
    dram_bytes: memory traffic [B]
    llc_bytes: traffic through the last cache level [B]
    macs: multiply-accumulates of products
    issues: other instructions
    units: cores awake while the kernel runs
    held: cores awake in what comes on top of it
    core_clock: their clock [Hz]
    limit: power limit [W]
    """

    device: Cpu
    held: Array

    @cached_property
    def awake_s(self) -> Array:
        """Time of all cores that are awake, added [s]."""
        return self.units * self.busy_s + self.held * self.overhead_s

    @cached_property
    def leakage_j(self) -> Array:
        """What leaks in the cores that are awake [J]."""
        return core_leakage(self.device, self.volt, self.operation, self.constants) * self.awake_s

    @cached_property
    def clock_tree_j(self) -> Array:
        """The uncore: ring or mesh, last cache level and memory controllers, whose clocks run with any core [J]."""
        return uncore_power(self.device, self.units, self.core_clock, self.operation, self.constants) * self.took

    @cached_property
    def active_units_j(self) -> Array:
        """Clock trees and front ends of the cores that are awake [J]."""
        return clock_energy(self.device, self.volt, self.operation, self.constants) * self.core_clock * self.awake_s

    @cached_property
    def idle_board_j(self) -> Array:
        """The idle power meanwhile [J]."""
        return np.asarray(self.device.power.idle * self.took)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TpuEnergyTerms(EnergyTerms):
    """The same on a TPU, of whose powers no split is published: E = P_idle t + (P_busy - P_idle) t_busy.

    Published powers are of whole chips that run networks, and that of the first TPU hardly follows its load (Jouppi et al. 2017,
    section 6), so that all that it draws above its idle power is one part, `awake`.
    """

    device: Tpu

    @cached_property
    def idle_board_j(self) -> Array:
        """The idle power meanwhile [J]."""
        return np.asarray(self.device.power.idle * self.took)

    @cached_property
    def active_units_j(self) -> Array:
        """What the chip draws at work beside its idle power [J]."""
        return np.asarray((self.device.power.busy - self.device.power.idle) * self.busy_s)

    @cached_property
    def dynamic_j(self) -> Array:
        """All but the idle power [J]."""
        return self.active_units_j

    @property
    def _untold(self) -> Array:
        """Parts of the energy of a GPU that are not told apart [J]."""
        return np.zeros_like(self.took)

    leakage_j = clock_tree_j = arithmetic_j = tensor_j = instructions_j = cache_j = dram_j = _untold


def energy_terms(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> EnergyTerms:
    """The record from which the energy of one launch of every variant is computed [J].

    cost: times [s], traffic [B] and work [1] of one launch, [D, V]; clock: core clock [Hz], a float, [D, 1] or [D, V]
    limit: of power [W], a float or [D, 1]

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.cost.idle import idle_top
    >>> from archsim.device.catalog import find
    >>> one, gpu = np.ones((1, 1)), find("gtx_1080").device
    >>> cost = Cost(bounds={}, busy_s=one, overhead_s=0 * one, dram_bytes=0 * one, cache_bytes=0 * one,
    ...             work={"macs": 0 * one, "issues": 0 * one, "units": 0 * one})
    >>> terms = energy_terms(cost, gpu, "fp32", idle_top(gpu), np.inf, default())
    >>> round(terms.total_j.item() / gpu.power.idle, 9)  # a second of doing nothing, with clocks up
    1.0
    """
    work = cost.work
    record: Callable[..., EnergyTerms] = EnergyTerms
    if isinstance(device, Cpu):
        record = partial(PackageTerms, held=work.get("held", work["units"]))
    elif isinstance(device, Tpu):
        record = TpuEnergyTerms
    return record(
        busy_s=cost.busy_s, overhead_s=cost.overhead_s, dram_bytes=cost.dram_bytes, llc_bytes=cost.cache_bytes,
        macs=work["macs"], wide=work.get("wide", 0.0), issues=work["issues"], units=work["units"], core_clock=clock, limit=limit,
        device=device, precision=precision, constants=constants,
    )  # fmt: skip


def spent(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> dict[str, Array]:
    """Energy of one launch of every variant by component [J], [D, V]; `base` is what stands of the idle power.

    E = base + kept (leakage + clock + awake + lanes + tensor + instructions + cache + dram)    (Kandiah et al. 2021, eq. 1)

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
        return {name: of.idle_board_j if name == "idle_board" else getattr(of, f"{name}_j") * kept for name in COMPONENTS}
