"""Power of packages: idle, uncore, cores that are awake, their lanes, bytes from memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost import energy, idle, switched
from archsim.cost.cost import Cost
from archsim.cost.switched import voltage
from archsim.device.device import Cpu
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import make_request
from tests import shipped
from tests.each import each

CONSTANTS = default()
ONE = np.ones((1, 1))
CLOCK = 3e9


def processor(name: str = "i7_6700k", **parts: dict[str, Any]) -> Cpu:
    return shipped.cpu(name, **parts)


def spent(device: Cpu, units: float = 2.0, held: float = 1.0, clock: float = CLOCK, **work: float) -> dict[str, float]:
    """Energy of two seconds of a kernel and one before it, by component [J]."""
    done = {"macs": 0.0, "issues": 0.0, "dram": 0.0, "llc": 0.0} | work
    cost = Cost(bounds={"compute": ONE}, busy_s=2 * ONE, overhead_s=ONE, dram_bytes=done["dram"] * ONE,
                cache_bytes=done["llc"] * ONE, clock=clock,
                work={"macs": done["macs"] * ONE, "issues": done["issues"] * ONE, "units": units * ONE,
                      "held": held * ONE})  # fmt: skip
    return {name: part.item() for name, part in energy.spent(cost, device, "fp32", clock, np.inf, CONSTANTS).items()}


def test_each_part_of_a_package_has_its_own_quantity() -> None:
    device = processor()
    volt = voltage(CLOCK, device, CONSTANTS).item()
    node = switched.node_energy(device, CONSTANTS).item()
    found = spent(device, units=3.0, held=1.0, macs=7e9, issues=11e9, dram=3e9, llc=5e9)
    mac = CONSTANTS["energy.core_mac"] + CONSTANTS["energy.core_vector"] / 8  # lanes of 256 bit
    core, share = CONSTANTS["energy.core_clock"], CONSTANTS["energy.core_leakage"]
    cache = node * CONSTANTS["energy.cache"] * volt**2
    assert found == pytest.approx({
        "idle_board": 3 * device.power.idle,
        "leakage": (3 * 2 + 1) * share * node * core * 4.2e9 * volt**3,
        "clock_tree": 3 * 4 * node * CONSTANTS["energy.uncore"] * CLOCK * volt**2,
        "active_units": (3 * 2 + 1) * node * core * CLOCK * volt**2,
        "arithmetic": 7e9 * node * mac * volt**2,
        "tensor": 0.0,
        "instructions": 11e9 * node * mac * volt**2,
        "cache": 5e9 * cache,
        "dram": 3e9 * (CONSTANTS["energy.byte.DDR"] * CONSTANTS["energy.controller"] + cache),
    })  # fmt: skip


def test_memory_modules_are_inside_a_board_and_a_module_alone() -> None:
    for device, family in ((processor(power={"boundary": "board"}), "DDR"), (processor("apple_m1"), "LPDDR")):
        part = spent(device, dram=1e9, llc=1e9)
        assert part["dram"] - part["cache"] == pytest.approx(1e9 * CONSTANTS[f"energy.byte.{family}"]), family


def test_a_core_that_is_asleep_draws_nothing_of_its_own() -> None:
    small, large = (processor("xeon_e5_2698_v3", core={"count": count}) for count in (8.0, 16.0))
    one, other = spent(small), spent(large)
    assert {name for name in one if one[name] != other[name]} == {"clock_tree"}  # slices of the uncore stay awake
    assert other["clock_tree"] == pytest.approx(2 * one["clock_tree"])


def test_the_second_socket_wakes_with_its_first_core() -> None:
    two = processor("xeon_e5_2630_v3_2s")
    found = [spent(two, units=units)["clock_tree"] for units in (1.0, 8.0, 9.0, 16.0)]
    assert found == pytest.approx([found[0], found[0], 2 * found[0], 2 * found[0]])


def test_wider_vectors_draw_more_at_the_same_clock_but_less_for_the_same_work() -> None:
    cores = [processor("xeon_platinum_8280", core={"simd": bits}) for bits in (128.0, 256.0, 512.0)]
    for work in (1e9, 5e11):
        same = [spent(core, macs=work)["arithmetic"] for core in cores]
        assert same == sorted(same, reverse=True)
    full = [spent(core, macs=2.0 * 2.0 * CLOCK * float(np.ravel(core.pipe("fp32"))[0]))["arithmetic"] for core in cores]
    assert full == sorted(full)
    assert full[2] < 4 * full[0]  # instructions have a part that is the same at each width


def test_cores_of_another_design_take_their_share() -> None:
    device = processor()
    small = processor(power={"operation": 0.25})
    large, little = spent(device, macs=1e9, issues=1e9, dram=1e9), spent(small, macs=1e9, issues=1e9, dram=1e9)
    own = ("leakage", "clock_tree", "active_units", "arithmetic", "instructions")
    assert little == pytest.approx(large | {name: 0.25 * large[name] for name in own})


def test_a_warm_package_leaks_more_and_a_cold_one_less() -> None:
    at = [spent(processor(power={"temperature": celsius})) for celsius in (None, 20.0, 50.0, 90.0)]
    assert at[2]["leakage"] == pytest.approx(at[0]["leakage"])  # the usual one
    assert [found["leakage"] for found in at[1:]] == sorted(found["leakage"] for found in at[1:])
    assert all(found | {"leakage": 0.0} == at[0] | {"leakage": 0.0} for found in at)


def test_while_the_framework_runs_one_core_is_awake() -> None:
    """The host of a CPU is the CPU: what is drawn between kernels is more than the idle power."""
    device = processor()
    def waited(device: Cpu = device, clock: float | None = None, limit: float | None = None) -> float:
        return float(sum(part.item() for part in idle.waiting_parts(device, CONSTANTS, clock, limit).values()))

    assert waited() == pytest.approx(sum(spent(device, units=1.0, clock=4.2e9).values()) / 3)
    assert spent(device, clock=4.2e9)["clock_tree"] == spent(device, clock=4.0e9)["clock_tree"]  # the uncore has no turbo
    assert device.power.idle < waited(clock=2e9) < waited()
    assert waited(processor(power={"tdp": 9.0})) == pytest.approx(9.0)
    assert waited(limit=12.0) == pytest.approx(12.0)


def power_of(hw: str, **choices: Any) -> float:
    return estimate_of(make_request("alexnet", hw, **choices), references=False).power_w


@each("name", ["i7_6700k", "xeon_e5_2698_v3", "epyc_7742", "raspberry_pi_4"])
def test_threads_raise_the_power_at_a_stated_clock_up_to_the_limit(name: str) -> None:
    device = processor(name)
    counts = sorted({1, 2, int(device.core.count)})
    found = [power_of(name, batch=8, threads=threads, clock=1.2e9) for threads in counts]
    assert found == sorted(found)
    assert device.power.idle < found[0] < found[-1] <= device.power.tdp * (1 + 1e-9)
