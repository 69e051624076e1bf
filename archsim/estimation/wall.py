"""Power at the wall: a computer whose devices all run the same work, seen by a meter in its plug."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from archsim.calibration.wall import DESCRIBED, GENERIC, wall_constants
from archsim.cost.supply import at_the_wall, host_power
from archsim.device.device import Cpu, Device
from archsim.estimation.boundary import WallPower
from archsim.node import system as systems

if TYPE_CHECKING:
    from archsim.estimation.request import Request
    from archsim.evidence.case import Case

GB = 1e9
BUSY = 1.0  # cores of the host that wait for each device and feed it. A choice.


def system_of(device: Device, host: Cpu | None, host_id: str, name: str | None) -> tuple[systems.PoweredSystem, int]:
    """The system that a device is in and the devices in it: as `name` says, otherwise the usual one."""
    if name is not None:
        return systems.asked(name)
    found = systems.usual(device, host, host_id)
    return found, found.devices


def wall_power(
    device_w: float, device: Device, host: Cpu | None, system: systems.PoweredSystem, devices: int, fans: float | None = None
) -> WallPower:  # fmt: skip
    """The computer at its plug, while each of its `devices` draws `device_w` [W].

    host: the CPU beside a GPU, None where the device is the processor; fans: in place of the share that is fitted
    """
    constants, kind = wall_constants(), GENERIC if system.generic else DESCRIBED
    share = (constants.fans if fans is None else fans) if system.parts.fans is None else system.parts.fans
    parts = {"devices": devices * device_w, "host": _host(device, host, system, devices),
             "memory": (system.host.memory or 0.0) / GB * (system.parts.per_gb or 0.0), "other": system.parts.base}  # fmt: skip
    supply = system.supply
    found = at_the_wall(parts, share, supply.rating, (supply.at_10, supply.at_20, supply.at_50, supply.at_100))
    total = math.fsum(found.values())
    fed = total - found["supply"]
    return WallPower(
        system=system.id, system_name=system.name, devices=devices, device_w=device_w, device_boundary=device.power.boundary,
        computer_w=total, parts_w=found, share_w=total / devices, load=fed / supply.rating, efficiency=fed / total,
        interval_class=f"wall, {kind} systems", held_out=constants.spreads[kind],
        assumed_values=tuple(entry.key for entry in system.assumed),
    )  # fmt: skip


def _host(device: Device, host: Cpu | None, system: systems.PoweredSystem, devices: int) -> float:
    """Power of the processors beside the devices [W]; none where the device is the processor, or holds it as modules do."""
    of = system.host
    if host is None or device.power.boundary == "module":
        return 0.0
    if of.idle is not None and of.tdp is not None and of.cores is not None:
        return host_power(of.idle, of.tdp, of.sockets, BUSY * devices, of.sockets * of.cores)
    if of.cpu is not None:
        from archsim.node.spec import host_cpu

        host = host_cpu(of.cpu)
    idle, tdp, cores, packages = (float(np.ravel(value)[0]) for value in
                                  (host.power.idle, host.power.tdp, host.core.count, host.core.sockets))  # fmt: skip
    return host_power(idle / packages, tdp / packages, of.sockets, BUSY * devices, of.sockets * cores / packages)


def of_request(request: Request, device_w: float) -> WallPower:
    """The computer of a request at its plug, while each device draws `device_w` [W]."""
    device = request.spec.device
    host = None if isinstance(device, Cpu) else request.host
    system, devices = system_of(device, host, request.host_cpu.identity.id, request.asked.get("system"))
    return wall_power(device_w, device, host, system, devices)


def of_case(case: Case, request: Request, device_w: float, latency_s: float) -> float:
    """What a meter in the plug of a row's system shows [W], or the energy of one query of a stream [J].

    device_w: power of each device [W]; latency_s: of one query [s]
    """
    assert case.system is not None
    device = request.spec.device
    found = wall_power(device_w, device, None if isinstance(device, Cpu) else request.host, *case.system)
    return found.computer_w if case.metric == "system_power_w" else found.computer_w * latency_s


def interval_of(found: WallPower, value: float) -> tuple[float, float]:
    """Where a measured value at the wall is expected around a predicted one: quantiles of held-out systems."""
    return value * math.exp(-found.held_out.high), value * math.exp(-found.held_out.low)
