"""What the units of a GPU can do, what profilers call them, and what each of them draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archsim.base.errors import ArchsimError, ArgumentError, UnknownName
from archsim.calibration.constants import default
from archsim.cost.cost import ASYNCHRONOUS
from archsim.cost.switched import clock_energy, node_energy, operation_energy, voltage
from archsim.cost.units import at_other_clocks, unit_energies, unit_power
from archsim.device.catalog import find
from archsim.device.device import Gpu
from archsim.device.units import AWAKE, DCGM, KNOWN, NSIGHT, UNITS, UnitClocks, shares_of, unit_named, unit_rates
from tests.each import each

GHZ = UnitClocks(core=1e9)
SLOWER = ((2.0**ASYNCHRONOUS + 1.0) / 2.0) ** (1.0 / ASYNCHRONOUS)  # where two bounds were equal and one doubled
LEFT = (2.0**ASYNCHRONOUS * (1.0 - 0.6**ASYNCHRONOUS) + 0.6**ASYNCHRONOUS) ** (1.0 / ASYNCHRONOUS)  # 0.6 and the rest, twice


def gpu(name: str, **changed: str) -> Gpu:
    spec = find(name)
    device = (spec.with_settings({key.replace("_", ".", 1): value for key, value in changed.items()}) if changed else spec).device
    assert isinstance(device, Gpu)
    return device


def one(value: Any) -> float:
    return float(np.ravel(value)[0])


def total(parts: dict[str, Any]) -> float:
    return sum(map(one, parts.values()))


# rates


def test_rates_follow_the_clock_of_their_own() -> None:
    device = gpu("titan_xp")
    slow, fast, memory = (unit_rates(device, at) for at in (GHZ, UnitClocks(core=2e9), UnitClocks(core=1e9, memory=0.5)))
    for unit in UNITS:
        core, own = (1.0, 0.5) if unit == "dram" else (2.0, 1.0)
        assert one(fast[unit]) == pytest.approx(core * one(slow[unit]))
        assert one(memory[unit]) == pytest.approx(own * one(slow[unit]))


def test_a_rate_is_that_of_the_spec() -> None:
    rates = unit_rates(gpu("titan_xp"), GHZ)  # 30 SMs of 128 lanes, 4 in double precision, 32 special
    assert [one(rates[unit]) / 30e9 for unit in ("fp32", "int", "fp64", "special")] == [128, 128, 4, 32]
    assert one(rates["dram"]) == one(gpu("titan_xp").memory.bandwidth)


def test_what_a_chip_has_not_does_nothing() -> None:
    assert unit_rates(gpu("titan_xp"), GHZ)["tensor"] == 0.0
    assert one(unit_rates(gpu("tesla_v100_sxm2"), GHZ)["tensor"]) > 0.0


def test_rates_take_arrays_of_clocks() -> None:
    rates = unit_rates(gpu("titan_xp"), UnitClocks(core=np.array([1e9, 2e9]), memory=np.array([1.0, 0.5])))
    assert [np.shape(rates[unit]) for unit in ("fp32", "dram")] == [(2,), (2,)]


@each(("name", "megahertz"), [("gtx_980", 3505), ("gtx_1080", 5005), ("titan_xp", 5705), ("a100_sxm4_40gb", 1215),
                              ("tesla_t4", 5001), ("rtx_4090", 10501)])  # fmt: skip  # as nvidia-smi shows them
def test_memory_clocks_are_those_of_drivers(name: str, megahertz: float) -> None:
    assert gpu(name).memory_clock == pytest.approx(megahertz * 1e6, rel=0.005)


# counters


def test_every_unit_has_its_own_name_in_any_case() -> None:
    assert [unit_named(name) for name in (AWAKE, *UNITS)] == [AWAKE, *UNITS]
    assert unit_named(" FP32 ") == "fp32"


@each("name", [*DCGM, *NSIGHT])
def test_names_of_profilers_are_of_units(name: str) -> None:
    assert unit_named(name) in (AWAKE, *UNITS)


@each(("name", "unit"), [
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor"), ("DCGM_FI_PROF_DRAM_ACTIVE", "dram"), ("pipe_fp64_active", "fp64"),
    ("sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "sm"), ("lts__t_sectors.sum.pct_of_peak_sustained_elapsed", "l2"),
])  # fmt: skip
def test_names_are_taken_as_profilers_write_them(name: str, unit: str) -> None:
    assert unit_named(name) == unit


@each(("name", "near"), [
    ("fp23", "fp32"), ("drams", "dram"), ("fp16_active", "fp"), ("tensor_activ", "tensor_active"), ("fp32.avg", "fp32"),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", "the units are sm"), ("", "the units are sm"),
])  # fmt: skip
def test_an_unknown_unit_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownName, match=near):
        unit_named(name)


def test_a_share_of_the_time_in_which_sms_work_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"sm__pipe_fma_cycles_active\.avg\.pct_of_peak_sustained_elapsed"):
        unit_named("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active")


def test_shares_come_as_numbers_and_texts() -> None:
    assert shares_of({"fp32": 0.8, "dram_active": "30%", "sm": "1", "l2": 0, "shared": np.float64(0.5)}) == {
        "fp32": 0.8, "dram": 0.3, "sm": 1.0, "l2": 0.0, "shared": 0.5}  # fmt: skip


@each(("value", "said"), [
    (1.1, "1.1 is not between 0 and 1; per cent are written 1.1%"), (80, "80%"), (-0.1, "-0.1 is not between"),
    (101, "101 is not"), (float("nan"), "nan"), (float("inf"), "inf"),
    ("nan", "not a number"), ("120%", "120% is not between"), (True, "True"),
    (None, "None"), ([1], r"\[1\]"), ("", "not a number"), ("8W", "unit"),
])  # fmt: skip
def test_what_is_no_share_is_refused_by_its_name(value: object, said: str) -> None:
    with pytest.raises(ArgumentError, match=f"share of fp32: .*{said}"):
        shares_of({"fp32": value})


def test_a_unit_under_two_names_is_refused() -> None:
    with pytest.raises(ArgumentError, match="share of fp32_active: fp32 is given twice"):
        shares_of({"fp32": 0.5, "fp32_active": 0.5})


def test_known_names_are_what_may_be_written() -> None:
    assert {unit_named(name) for name in KNOWN} == {AWAKE, *UNITS}


# power


def test_awake_sms_take_their_clock_trees() -> None:
    device, constants = gpu("titan_xp"), default()
    tree = one(clock_energy(device, voltage(1e9, device, constants), node_energy(device, constants), constants))
    assert one(unit_power(device, {AWAKE: 0.5}, GHZ, constants)["active_units"]) == pytest.approx(0.5 * 30 * 1e9 * tree)


def test_units_at_work_wake_their_sms_unless_somebody_says_how_many() -> None:
    device = gpu("titan_xp")
    awake = [one(unit_power(device, shares, GHZ, default())["active_units"])
             for shares in ({"fp32": 0.1}, {"fp32": 0.1, AWAKE: 0.5}, {AWAKE: 1.0}, {"fp32": 0.0})]  # fmt: skip
    assert awake[1] == pytest.approx(0.5 * awake[0])
    assert awake[2] == awake[0] > awake[3] == 0.0


def test_what_a_unit_draws_is_rate_times_share_times_energy() -> None:
    device, constants = gpu("tesla_v100_sxm2"), default()
    at = UnitClocks(core=1.2e9, memory=0.8)
    energies = unit_energies(device, voltage(1.2e9, device, constants), node_energy(device, constants), constants)
    parts, rates = unit_power(device, dict.fromkeys(UNITS, 0.4), at, constants), unit_rates(device, at)
    for unit in UNITS:
        assert one(parts[unit]) == pytest.approx(0.4 * one(rates[unit]) * one(energies[unit]))
        assert one(parts[unit]) > 0.0


def test_energies_go_with_the_square_of_the_voltage_but_for_the_memory() -> None:
    device, constants = gpu("tesla_v100_sxm2"), default()
    node = node_energy(device, constants)
    full, half = (unit_energies(device, np.array([volt]), node, constants) for volt in (1.0, 0.5))
    own = constants["energy.byte.HBM"]  # of DRAM and its link, whose voltage is their own
    for unit in UNITS:
        stays = own if unit == "dram" else 0.0
        assert one(half[unit]) - stays == pytest.approx(0.25 * (one(full[unit]) - stays), rel=1e-9, abs=0), unit


def test_energies_are_their_constants_times_that_of_the_node() -> None:
    """One operation of the oldest nodes: no share of its own of the architecture."""
    device = gpu("gtx_1080")
    constants = default().with_values({"energy.double": 5.0, "energy.special": 3.0, "energy.shared": 0.5, "energy.int": 0.25})
    node = np.array([2e-12])
    lane, found = one(operation_energy(device, node)), unit_energies(device, np.ones(1), node, constants)
    by_unit = {unit: one(found[unit]) for unit in ("fp64", "special", "shared", "int")}
    assert by_unit == pytest.approx({"fp64": 1e-11, "special": 3 * lane, "shared": 1e-12, "int": lane / 4})
    assert one(found["tensor"]) == 0.0  # it has none


def test_a_slower_memory_stands_for_less_and_draws_less() -> None:
    usual, slow = (unit_power(gpu("titan_xp"), {"dram": 0.5}, UnitClocks(core=1e9, memory=m), default()) for m in (1.0, 0.5))
    assert one(slow["dram"]) == pytest.approx(0.5 * one(usual["dram"]))
    assert one(slow["standing"]) < one(usual["standing"])
    assert one(slow["clocks"]) == one(usual["clocks"])


def test_powers_of_many_rows_are_those_of_each() -> None:
    device, shares, clocks = gpu("titan_xp"), np.array([0.0, 0.3, 0.9]), np.array([0.8e9, 1e9, 1.5e9])
    together = unit_power(device, {"fp32": shares, "dram": shares}, UnitClocks(core=clocks), default())
    for i in range(3):
        alone = unit_power(device, {"fp32": shares[i], "dram": shares[i]}, UnitClocks(core=clocks[i]), default())
        for part, value in alone.items():
            assert np.broadcast_to(together[part], 3)[i] == pytest.approx(one(value))


def test_an_energy_of_a_memory_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ArchsimError, match=r"memory type .XYZ. is not one of DDR3"):
        unit_power(gpu("titan_xp", memory_type="XYZ"), {"dram": 0.1}, GHZ, default())


# other clocks


def test_work_is_kept_at_other_clocks() -> None:
    """Operations and bytes are in the proportion that they had: shares times clocks have one factor, that of the time."""
    shares = {"fp32": np.array([0.5]), "l2": np.array([0.2]), "dram": np.array([0.6])}
    was, now = UnitClocks(core=1.5e9, memory=1.0), UnitClocks(core=1e9, memory=0.7)
    moved = at_other_clocks(shares, was, now, 0.85)
    speeds = {name: one(moved[name]) * (0.7 if name == "dram" else 1e9 / 1.5e9) / one(shares[name]) for name in shares}
    assert max(speeds.values()) == pytest.approx(min(speeds.values()))
    assert 0.5 < speeds["fp32"] < 1.0


@each(("shares", "core", "memory", "expected"), [
    ({"fp32": 0.7, "dram": 0.4, AWAKE: 0.9}, 1e9, 1.0, {"fp32": 0.7, "dram": 0.4, AWAKE: 0.9}),  # the same clocks
    # of the memory alone: all of its time, and the core hides
    ({"dram": 0.8, "fp32": 0.0}, 1e9, 0.5, {"dram": 0.8, "fp32": 0.0}),
    # both all of the time, and q = ASYNCHRONOUS: half the core clock takes ((2^q + 1) / 2)^(1/q)
    ({"dram": 0.8, "fp32": 1.0}, 0.5e9, 1.0, {"dram": 0.8 / SLOWER, "fp32": 2.0 / SLOWER}),
    ({"dram": 0.8, "fp32": 1.0, AWAKE: 0.7}, 1e9, 0.5, {"dram": 1.6 / SLOWER, "fp32": 1.0 / SLOWER, AWAKE: 0.7}),
    # counted above what is possible: no more than all of the time
    ({"dram": 0.95, "fp32": 1.3}, 0.5e9, 1.0, {"dram": 0.95 / SLOWER, "fp32": 2.6 / SLOWER}),
    # a cache has the core's clock
    ({"dram": 0.8, "l2": 1.0}, 0.5e9, 1.0, {"dram": 0.8 / SLOWER, "l2": 2.0 / SLOWER}),
    # 0.6 of the time is the memory's, and what it leaves the core's
    ({"dram": 0.48, "fp32": 0.2}, 0.5e9, 1.0, {"dram": 0.48 / LEFT, "fp32": 0.4 / LEFT}),
])  # fmt: skip
def test_times_at_other_clocks_are_those_of_the_smooth_maximum(
    shares: dict[str, float], core: float, memory: float, expected: dict[str, float]
) -> None:
    given = {name: np.array([share]) for name, share in shares.items()}
    moved = at_other_clocks(given, GHZ, UnitClocks(core=core, memory=memory), 0.8)
    assert {name: one(value) for name, value in moved.items()} == pytest.approx(expected)


def test_only_bytes_take_less_where_values_are_alike() -> None:
    shares = dict.fromkeys(UNITS, 0.4)
    usual, alike = (unit_power(gpu("a100_sxm4_40gb"), shares, GHZ, default(), toggling) for toggling in (1.0, 0.6))
    beside = {name: one(alike[name]) / one(usual[name]) for name in usual}
    assert beside == pytest.approx({name: 0.6 if name in ("l2", "dram") else 1.0 for name in usual}, rel=1e-12, abs=0)


def test_half_of_the_clock_tree_goes_with_the_schedulers() -> None:
    """SMs of 64, 128 and 192 lanes with four schedulers each, and one of 64 lanes with two."""
    names = ("tesla_v100_sxm2", "titan_x_maxwell", "tesla_k40", "tesla_p100_sxm2")
    full, wide, wider, small = (clock_energy(gpu(name), np.ones(1), np.full(1, 40e-12), default()).item() for name in names)
    assert [full / wide, wider / wide, small / wide] == pytest.approx([0.75, 1.25, 0.5])
