"""Processors in dense code on all cores at the clock that they hold there, against the power that their makers rate them for."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import default
from archsim.cost.energy import clock_energy, leakage_power, mac_energy, node_energy, voltage
from archsim.device import catalog
from archsim.device.device import Cpu

SAME_CHIP = {"xeon_e5_2630_v3_2s"}  # two of the one that is there
MODULE = {"tegra_x1_cpu", "tegra_x2_cpu"}  # rated together with a GPU


def dense_power(device: Cpu) -> float:
    """Power [W] with every SIMD lane multiplying in every clock."""
    constants, clock = default(), device.clock.simd if device.clock.simd512 is None else device.clock.simd512
    node, volt = node_energy(device, constants), voltage(clock, device, constants)
    lanes = device.pipe("fp32") * mac_energy(device, "fp32", volt, node, constants)
    core = (clock_energy(device, volt, node, constants) + lanes) * clock
    return float(device.power.idle + leakage_power(device, volt, node, constants) + device.core.count * core)


def test_one_energy_of_a_lane_explains_the_rated_powers_of_processors() -> None:
    specs = [catalog.find(name) for name in catalog.names() if name not in SAME_CHIP | MODULE]
    devices = [spec.device for spec in specs if isinstance(spec.device, Cpu)]
    ratio = np.array([dense_power(device) / float(device.power.tdp) for device in devices])
    assert ratio.size >= 25
    assert abs(np.median(ratio) - 1.0) <= 0.08
    assert np.std(np.log(ratio)) <= 0.15
    assert ratio.min() > 0.8
    assert ratio.max() < 1.4
