"""Processors in dense code on all cores at the clock that they hold there, against the power that their makers rate them for."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import default
from archsim.cost.idle import core_leakage, uncore_power
from archsim.cost.switched import clock_energy, mac_energy, node_energy, operation_energy, voltage
from archsim.device import catalog
from archsim.device.device import Cpu
from tests.shipped import cpu as processor

SAME_CHIP = {"xeon_e5_2630_v3_2s", "xeon_e5_2698_v3_2s", "xeon_e5_2670_2s", "epyc_7742_2s"}  # two of the one that is there
PART = {name for name in catalog.names() if name.endswith("xlarge")}  # some cores of a socket that is rated as a whole
X86 = {"Intel", "AMD"}  # chips of other makers are rated together with a GPU, or by nobody
# What the constants do not know: ratings that the socket exceeds, and clocks in dense code that nobody published.
# The ratio is far above one, and this test says when it no longer is.
UNKNOWN = {"ryzen_9_5950x", "ryzen_9_9950x", "epyc_9655", "epyc_9755", "epyc_9965", "epyc_9v45", "xeon_phi_7250"}
# Sockets added after the constants were set, at a clock in dense code that their specs guess: they all stand apart, those
# within the bounds too, for lowering a guess until the power fits would only test the constants against themselves.
GUESSED = {"epyc_7702", "epyc_7713", "epyc_9554", "i9_13900k", "i9_14900k", "ryzen_7_2700x", "ryzen_7_3700x", "ryzen_7_5800x"}
GUESSED |= {"ryzen_7_7700x", "ryzen_9_3950x", "xeon_6972p", "xeon_6980p"}
GUESSED |= {"ryzen_v1605b", "xeon_8573c", "xeon_platinum_8358", "xeon_platinum_8490h", "xeon_platinum_8592"}
# Cores of Arm and Apple: their energies are measured on a Raspberry Pi and a Tegra, for others taken over.
SMALL = {"graviton2", "graviton3", "graviton4", "grace", "apple_m1"}


def power(device: Cpu, clock: float, instructions: float, multiplied: float) -> float:
    """Power [W] with all cores awake that do so many instructions, and multiply so many values, in each clock."""
    constants = default()
    operation, volt = operation_energy(device, node_energy(device, constants)), voltage(clock, device, constants)
    switched = multiplied * mac_energy(device, "fp32", volt, operation, constants)
    switched = switched + instructions * constants["energy.core_vector"] * operation * volt**2
    core = (clock_energy(device, volt, operation, constants) + switched) * clock
    core = core + core_leakage(device, volt, operation, constants)
    cores = device.core.count
    return float(np.ravel(device.power.idle + uncore_power(device, cores, clock, operation, constants) + cores * core)[0])


def dense_power(device: Cpu) -> float:
    """Power [W] with every SIMD lane multiplying in every clock."""
    return power(device, float(device.default_clock), 0.0, float(device.pipe("fp32")))


def ratios(names: set[str]) -> np.ndarray:
    """Dense power over rated power of the CPUs among some devices."""
    devices = [catalog.find(name).device for name in sorted(names)]
    return np.array([dense_power(device) / float(device.power.tdp) for device in devices if isinstance(device, Cpu)])


def test_dense_code_takes_four_fifths_of_the_rated_power() -> None:
    """A rating holds for the worst sample, and for more than multiplications."""
    chips = {name for name in catalog.names() if catalog.find(name).identity.vendor in X86}
    ratio = ratios(chips - SAME_CHIP - PART - UNKNOWN - GUESSED)
    assert ratio.size >= 30
    assert abs(np.median(ratio) - 0.8) <= 0.08
    assert np.std(np.log(ratio)) <= 0.2
    assert ratio.min() > 0.6
    assert ratio.max() < 1.15


def test_at_guessed_clocks_sockets_are_predicted_above_their_rating() -> None:
    """A gap: the middle lies at the rating itself (1.03), not at four fifths of it; two Ryzens and Granite Rapids exceed it."""
    ratio = ratios(GUESSED)
    assert abs(np.median(ratio) - 1.03) <= 0.08
    assert ratio.min() > 0.6
    assert ratio.max() < 1.4


def test_cores_of_arm_and_apple_are_not_far_above_their_rating() -> None:
    ratio = ratios(SMALL)
    assert ratio.min() > 0.6
    assert ratio.max() < 1.35


def test_of_sockets_beyond_their_rating_too_much_is_predicted_still() -> None:
    assert ratios(UNKNOWN).min() > 1.25


IPC = 3.0  # instructions a clock of a core with two threads in general code


def test_a_ryzen_9_9950x_under_power_limits() -> None:
    """Cinebench on all cores: clock and power under limits of the package (github.com/cisen/blog issue 1206)."""
    device = processor("ryzen_9_9950x")
    rows = {2.6878: 60, 3.3401: 80, 3.8218: 100, 4.1901: 120, 5.2272: 199, 5.4775: 229}
    error = np.array([power(device, clock * 1e9, IPC, 0.0) / watts - 1.0 for clock, watts in rows.items()])
    assert np.abs(error).max() <= 0.085
    assert power(device, 1.4017e9, IPC, 0.0) / 40 > 1.08  # a gap: below, the least voltage is lower still


def test_servers_under_stress() -> None:
    """`stress-ng --cpu`, all threads, RAPL (github.com/github-benjamin-davy/turbostressreports; MangoHud issue 1390)."""
    rows = {("xeon_platinum_8124m", 3.4): 412.7, ("xeon_e5_2686_v4", 2.7): 272.3 / 2, ("ryzen_9_7950x", 4.547): 152.6}
    for (name, clock), watts in rows.items():
        assert abs(power(processor(name), clock * 1e9, IPC, 0.0) / watts - 1.0) <= 0.22, name
