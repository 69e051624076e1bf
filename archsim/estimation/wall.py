"""Where a power is measured, at the device itself or at the plug of its computer, and what a meter in the plug shows.

All devices of the computer run the same work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import ArgumentError
from archsim.calibration.constants import Spread
from archsim.calibration.wall import DESCRIBED, GENERIC, wall_constants
from archsim.cost.power import at_the_wall, host_power
from archsim.device.device import Cpu, Device
from archsim.device.spec import Spec
from archsim.device.variant import first_of

if TYPE_CHECKING:
    from archsim.node.system import PoweredSystem

WALL = "wall"  # the plug of the computer, in place of the board, module or package that `power_boundary` of the device names
# what a computer has besides its devices -> what it covers; keys of energies and powers at the wall
OF_COMPUTER = {
    "host": "processors of the computer beside the devices", "memory": "its memory modules",
    "other": "its main board, drives, network cards and switches", "fans": "its fans, and converters on its boards",
    "supply": "what its power supplies lose",
}  # fmt: skip
GB = 1e9
BUSY = 1.0  # cores of the host that wait for each device and feed it. A choice.


@dataclass(frozen=True, slots=True, kw_only=True)
class WallPower:
    """A computer at its plug.

    devices: in it, all with the same work; device_w: power of each at its own boundary, `device_boundary`
    computer_w: what a meter shows; parts_w: of it, `devices host memory other fans supply`; they add up to it
    share_w: what falls to one device
    load, efficiency: of the power supplies
    held_out: errors on systems that were held out, of the class `interval_class`
    assumed_values: keys of the system's file that nobody published
    """

    system: str
    system_name: str
    devices: int
    device_w: float
    device_boundary: str
    computer_w: float
    parts_w: Mapping[str, float]
    share_w: float
    load: float
    efficiency: float
    interval_class: str
    held_out: Spread
    assumed_values: tuple[str, ...]

    @property
    def added_w(self) -> Mapping[str, float]:
        """What falls to one device of all that the computer has besides its devices [W], by part."""
        return {name: power / self.devices for name, power in self.parts_w.items() if name != "devices"}


def check_boundary(boundary: str | None, system: str | None) -> None:
    """Raise ArgumentError for a boundary that there is not, and for a system that nothing is asked of."""
    known = ARGUMENTS["boundary"].choices
    if boundary is not None and boundary not in known:
        raise ArgumentError(f"boundary {str(boundary)[:40]!r}: one of {', '.join(known)}")
    if system is not None and boundary != WALL:
        raise ArgumentError(f"system {system}: moves power at the wall alone; add boundary wall")


def usual_wall_power(device_w: float, device: Device, host_cpu: Spec, name: str | None) -> WallPower:
    """The computer that a device is in, as `name` says or the usual one, while each device draws `device_w` [W].

    host_cpu: the CPU that dispatches for a GPU; the device itself where that is the processor
    """
    from archsim.node import system as systems

    host = host_cpu.device
    assert isinstance(host, Cpu)  # as `host_of` has made sure
    usual = systems.usual(device, host, host_cpu.identity.id)
    return wall_power(device_w, device, host, *((usual, usual.devices) if name is None else systems.asked(name)))


def wall_power(
    device_w: float, device: Device, host: Cpu, system: PoweredSystem, devices: int, fans: float | None = None
) -> WallPower:  # fmt: skip
    """The computer at its plug, while each of its `devices` draws `device_w` [W].

    host: the CPU that dispatches for a GPU, or the device itself where that is the processor
    fans: in place of the share that is fitted
    """
    constants, kind = wall_constants(), GENERIC if system.generic else DESCRIBED
    share = (constants.fans if fans is None else fans) if system.parts.fans is None else system.parts.fans
    parts = {"devices": devices * device_w, "host": _host(device, host, system, devices),
             "memory": (system.host.memory or 0.0) / GB * (system.parts.per_gb or 0.0), "other": system.parts.base}  # fmt: skip
    supply = system.supply
    found = at_the_wall(parts, share, supply.rating, (supply.at_10, supply.at_20, supply.at_50, supply.at_100))
    total = math.fsum(found.values())
    delivered = total - found["supply"]
    return WallPower(
        system=system.id, system_name=system.name, devices=devices, device_w=device_w, device_boundary=device.power.boundary,
        computer_w=total, parts_w=found, share_w=total / devices, load=delivered / supply.rating, efficiency=delivered / total,
        interval_class=f"wall, {kind} systems", held_out=constants.spreads[kind],
        assumed_values=tuple(entry.key for entry in system.assumed),
    )  # fmt: skip


def _host(device: Device, host: Cpu, system: PoweredSystem, devices: int) -> float:
    """Power of the processors beside the devices [W]; none where the device is the processor, or holds it as modules do."""
    of = system.host
    if isinstance(device, Cpu) or device.power.boundary == "module":
        return 0.0
    if of.idle is not None and of.tdp is not None and of.cores is not None:
        return host_power(of.idle, of.tdp, of.sockets, BUSY * devices, of.sockets * of.cores)
    if of.cpu is not None:
        from archsim.node.spec import host_cpu

        host = host_cpu(of.cpu)
    idle, tdp, cores, packages = (first_of(value) for value in
                                  (host.power.idle, host.power.tdp, host.core.count, host.core.sockets))  # fmt: skip
    return host_power(idle / packages, tdp / packages, of.sockets, BUSY * devices, of.sockets * cores / packages)
