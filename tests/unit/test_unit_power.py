"""Energy and power of one launch, the search for a clock under a limit, and the host: numbers that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost import dispatch, energy, idle, power, switched
from archsim.cost.cost import Cost
from archsim.cost.cpu_traffic import core_bandwidth
from archsim.cost.moved import MovedBytes, MovedCpuTerms, MovedGpuTerms
from archsim.cost.power import LOADS, supply_loss
from archsim.cost.switched import voltage
from archsim.device.device import Cpu, Gpu
from tests import shipped

CONSTANTS = default()
ONE = np.ones((1, 1))


def card(name: str = "gtx_1080", **parts: dict[str, Any]) -> Gpu:
    return shipped.gpu(name, **parts)


def processor(**parts: dict[str, Any]) -> Cpu:
    return shipped.cpu("i7_5930k", **parts)


def number(value: Any) -> float:
    return float(np.ravel(np.asarray(value))[0])


# -------------------------------------------------------------------------------------------------------------- energy


def test_the_line_through_the_nodes_goes_on_beyond_the_last_ones() -> None:
    """In logarithms, between any two neighbours, and from the first two and the last two on."""
    named = [(size, name) for name in CONSTANTS.constants if name.startswith(switched.NODE) for size in switched.nodes_of(name)]
    sizes = [size * 1e-9 for size, _ in sorted(named)]
    values = [CONSTANTS[name] for _, name in sorted(named)]
    assert len(sizes) == len(set(sizes)) > 4

    def at(size: float) -> float:
        return number(switched.node_energy(card(chip={"node": size}), CONSTANTS))

    def line(i: int, size: float) -> float:
        share = np.log(size / sizes[i]) / np.log(sizes[i + 1] / sizes[i])
        return float(values[i] * (values[i + 1] / values[i]) ** share)

    for i in range(len(sizes) - 1):
        middle = (sizes[i] * sizes[i + 1]) ** 0.5
        assert at(middle) == pytest.approx(line(i, middle), rel=1e-9, abs=0), middle
    assert at(0.7 * sizes[0]) == pytest.approx(line(0, 0.7 * sizes[0]), rel=1e-9, abs=0)
    assert at(2.0 * sizes[-1]) == pytest.approx(line(len(sizes) - 2, 2.0 * sizes[-1]), rel=1e-9, abs=0)


CORES = CONSTANTS.with_values({"energy.core_mac": 3.0, "energy.core_vector": 8.0, "energy.core_clock": 5.0,
                               "energy.idle_leakage": 0.1})  # fmt: skip


def test_a_core_spends_by_the_share_of_its_pipe_and_for_each_clock() -> None:
    device = processor()
    half = Some(pipe={"fp32": 16.0, "fp16": 32.0}.__getitem__, core=Some(fma_ports=2.0))
    assert number(switched.mac_energy(device, "fp32", np.array([0.5]), np.array([3.0]), CORES)) == 3 * (3 + 8 / 8) * 0.25
    assert number(switched.mac_energy(half, "fp16", np.array([0.5]), np.array([3.0]), CORES)) == 3 * 4 * 16 / 32 * 0.25  # type: ignore[arg-type]
    assert number(switched.clock_energy(device, np.array([0.5]), np.array([3.0]), CORES)) == 3 * 5 * 0.25


def test_leakage_is_a_share_of_the_idle_power_that_grows_with_the_cube_of_the_voltage() -> None:
    device = card()
    top = number(voltage(idle.idle_top(device), device, CORES))
    found = idle.leakage_power(device, np.array([top, 0.9 * top, 0.5 * top]), CORES)
    assert found.tolist() == pytest.approx([0.1 * device.power.idle * share for share in (1.0, 0.729, 0.125)])


def test_clocks_take_their_share_of_the_idle_power_at_the_highest_clock_of_the_product() -> None:
    """A card whose sustained clock lies above its boost, and one whose chip reaches a higher clock than the product does."""
    fast = card(clock={"boost": 1e9, "sustained": 1.25e9, "silicon": 2e9}, power={"voltage_slope": 0.8, "voltage_floor": 0.5})
    constants = CONSTANTS.with_values({"energy.idle_clock": 0.5})
    top = 1 - 0.8 * (1 - 1.25 / 2)
    for clock, volt in ((1.25e9, top), (1e9, 0.6), (0.5e9, 0.5), (2.5e9, 1.0)):
        expected = fast.power.idle * 0.5 * clock / 1.25e9 * (volt / top) ** 2
        assert number(idle.idle_clock_power(fast, clock, np.array([volt]), constants)) == pytest.approx(expected, abs=1e-12)
    slow = card(clock={"boost": 2e9, "sustained": 1e9})
    volt = number(voltage(2e9, slow, constants))
    assert number(idle.idle_clock_power(slow, 1e9, np.array([volt]), constants)) == pytest.approx(slow.power.idle * 0.5 * 0.5)


def test_a_slower_memory_takes_its_share_off_what_stands() -> None:
    constants = CONSTANTS.with_values({"energy.idle_leakage": 0.1, "energy.idle_clock": 0.2, "energy.idle_memory": 0.4})
    found = idle.standing_power(card(), constants, np.array([1.0, 0.5, 0.0]))
    assert found.tolist() == pytest.approx([share * card().power.idle for share in (0.7, 0.5, 0.3)])


def test_a_warm_chip_leaks_more_and_nothing_else_changes() -> None:
    devices = [card(power={"temperature": at}) for at in (None, 20.0, 50.0, 85.0)]
    parts = [energy.spent(launch(), device, "fp32", 1.7e9, np.inf, CONSTANTS) for device in devices]
    unknown, cool, usual, warm = (number(of["leakage"]) for of in parts)
    assert unknown == usual
    assert cool == pytest.approx(np.exp(-30 * CONSTANTS["energy.leakage_growth"]) * usual)
    assert warm == pytest.approx(np.exp(35 * CONSTANTS["energy.leakage_growth"]) * usual)
    for name in parts[0].keys() - {"leakage"}:
        assert len({number(of[name]) for of in parts}) == 1, name


def test_the_voltage_is_that_of_the_architecture_where_it_is_known() -> None:
    volta, pascal = card("tesla_v100_sxm2"), card("titan_xp")
    constants = CONSTANTS.with_values({"energy.voltage_slope": 1.4, "energy.voltage_floor": 0.6})
    assert number(voltage(0.9 * pascal.clock.silicon, pascal, constants)) == pytest.approx(1 - 0.111)
    assert number(voltage(0.1e9, pascal, constants)) == 0.69
    assert number(voltage(0.1e9, volta, constants)) == 0.6


def test_an_architecture_that_is_known_to_take_more_does_so_in_its_operations_only() -> None:
    kepler, other = card("tesla_k40"), card("tesla_k40", power={"operation": None})
    cost = launch()
    more, less = (energy.energy_terms(cost, device, "fp32", 0.8e9, np.inf, CONSTANTS) for device in (kepler, other))
    assert number(more.product_j) == pytest.approx(2.0 * number(less.product_j))
    assert (number(more.active_units_j), number(more.cache_j)) == (number(less.active_units_j), number(less.cache_j))


def launch(took: float = 1.0, macs: float = 1e13, gap: float = 0.0, dram: float = 1e11) -> Cost:
    return Cost(bounds={"compute": took * ONE, "dram": 0.1 * took * ONE}, busy_s=took * ONE, overhead_s=gap * ONE,
                dram_bytes=dram * ONE, cache_bytes=1e10 * ONE, work={"macs": macs * ONE, "issues": 0 * ONE, "units": 20 * ONE},
                clock=1.7e9)  # fmt: skip


@pytest.mark.parametrize("took", [0.25, 1.0, 3.0])
def test_a_limit_is_one_of_power_whatever_the_time(took: float) -> None:
    cost = launch(took, macs=took * 1e13)
    for limit in (100.0, 130.0):
        terms = energy.energy_terms(cost, card(), "fp32", 1.7e9, limit, CONSTANTS)
        assert number(terms.total_j) == pytest.approx(limit * took)
        assert number(terms.total_j) == pytest.approx(sum(map(number, energy.spent(cost, card(), "fp32", 1.7e9, limit,
                                                                                    CONSTANTS).values())))  # fmt: skip
    free = energy.energy_terms(cost, card(), "fp32", 1.7e9, np.inf, CONSTANTS)
    assert number(free.total_j) == pytest.approx(number(free.dynamic_j) + number(free.idle_board_j))


def test_below_what_stands_a_limit_leaves_nothing() -> None:
    terms = energy.energy_terms(launch(), card(), "fp32", 1.7e9, 0.3 * card().power.idle, CONSTANTS)
    assert number(terms.kept) == 0.0
    assert number(terms.total_j) == number(terms.idle_board_j)


# --------------------------------------------------------------------------------------------------------------- power


def test_power_is_energy_over_the_time_with_its_gaps() -> None:
    for took, gap in ((1.0, 0.0), (1.0, 0.5), (2.0, 3.0)):
        cost = launch(took, gap=gap)
        parts = energy.spent(power.slowed(cost, 1.0), card(), "fp32", 1.7e9, np.inf, CONSTANTS)
        busy = took * 1.01**0.5  # a tenth of the time is the other bound
        expected = sum(map(number, parts.values())) / (busy + gap)
        assert number(power.power_at(ONE, cost, card(), "fp32", 1.7e9, CONSTANTS)) == pytest.approx(expected)


def test_what_never_runs_draws_nothing_and_stays_so() -> None:
    cost = replace(launch(), busy_s=np.inf * ONE)
    assert number(power.power_at(ONE, cost, card(), "fp32", 1.7e9, CONSTANTS)) == 0.0
    assert number(power.slowed(cost, 0.5).busy_s) == np.inf
    assert number(power.sustained_share(cost, card(), "fp32", 1.7e9, 100.0, CONSTANTS)) == 1.0


def test_a_clock_that_was_lowered_before_is_lowered_from_there() -> None:
    again = power.slowed(power.slowed(launch(), 0.5), 0.5)
    assert (number(again.clock), number(again.share)) == (0.25 * 1.7e9, 0.25)
    assert number(again.bounds["compute"]) == 4.0


def test_a_limit_that_is_just_met_lowers_nothing() -> None:
    """And one that is just missed lowers the clock by as little."""
    draws = number(power.power_at(ONE, launch(), card(), "fp32", 1.7e9, CONSTANTS))
    shares = [number(power.sustained_share(launch(), card(), "fp32", 1.7e9, limit * draws, CONSTANTS))
              for limit in (1.0 + 1e-12, 1.0 - 1e-9, 0.9)]  # fmt: skip
    assert shares[0] == 1.0
    assert 1.0 - 1e-8 < shares[1] < 1.0
    assert shares[2] < 0.99
    two = replace(launch(), bounds={name: np.repeat(bound, 2, axis=-1) for name, bound in launch().bounds.items()},
                  busy_s=np.ones((1, 2)), overhead_s=np.zeros((1, 2)))  # fmt: skip
    beside = power.sustained_share(two, card(), "fp32", 1.7e9, draws * np.array([[1.0, 0.9]]), CONSTANTS)
    assert beside[0].tolist() == [1.0, pytest.approx(shares[2])]


def test_a_limit_below_a_watt_is_met_too() -> None:
    small = card(power={"idle": 0.01})
    cost = launch(macs=1e10, dram=1e8)
    cost = replace(cost, cache_bytes=1e7 * ONE, work={"macs": 1e10 * ONE, "issues": 0 * ONE, "units": 1e-3 * ONE})
    constants = CONSTANTS.with_values({"energy.idle_leakage": 1e-6})
    draws = number(power.power_at(ONE, cost, small, "fp32", 1.7e9, constants))
    assert 0.05 < draws < 1.0
    share = power.sustained_share(cost, small, "fp32", 1.7e9, 0.8 * draws, constants)
    assert 0.1 < number(share) < 1.0
    assert number(power.power_at(share, cost, small, "fp32", 1.7e9, constants)) == pytest.approx(0.8 * draws)


class Counted:
    """A function of the share of the clock that counts how often it is asked."""

    def __init__(self, over: Callable[[np.ndarray[Any, Any]], Any]) -> None:
        self.over, self.calls = over, 0

    def __call__(self, share: np.ndarray[Any, Any]) -> Any:
        self.calls += 1
        return self.over(share)


def crossing(over: Callable[[np.ndarray[Any, Any]], Any], count: int = 1) -> tuple[np.ndarray[Any, Any], int]:
    counted, low, high = Counted(over), np.full((1, count), 0.1), np.ones((1, count))
    found = power._crossing(counted, low, high, np.asarray(over(low)), np.asarray(over(high)))
    return np.ravel(found), counted.calls


def test_a_power_of_the_clock_is_found_at_once() -> None:
    found, calls = crossing(lambda share: 3.0 * np.log(share / 0.4))
    assert found[0] == pytest.approx(0.4, rel=1e-12)
    assert calls <= 3


@pytest.mark.parametrize(
    ("idle", "limit"), [(0.2, 0.5), (0.5, 0.8), (0.9, 0.95), (0.01, 0.05), (0.0, 0.3), (0.3, 0.9999)]
)
def test_power_with_an_idle_part_takes_few_steps_and_lies_just_below_the_limit(idle: float, limit: float) -> None:
    """P = idle + (1 - idle) r^3: the root in closed form; a bisection to the same tolerance takes forty steps."""
    found, calls = crossing(lambda share: np.log((idle + (1 - idle) * share**3) / limit))
    assert found[0] == pytest.approx(((limit - idle) / (1 - idle)) ** (1 / 3), rel=2e-12)
    assert idle + (1 - idle) * found[0] ** 3 <= limit * (1 + 1e-15)
    assert calls <= 12


def test_a_steep_rise_at_either_end_takes_few_steps_too() -> None:
    """Where one end would stay for long its value is halved each time."""
    for over in (lambda share: np.expm1(30 * (share - 0.9)), lambda share: -np.expm1(-30 * (share - 0.2))):
        found, calls = crossing(over)
        assert abs(over(found[0])) < 1e-9
        assert calls <= 25


def test_roots_side_by_side_are_those_of_each_alone() -> None:
    limits = np.array([[0.05, 0.3, 0.9999, 0.001, 2.0, 0.7, 0.02]])  # the fourth and last are met nowhere
    together, _ = crossing(lambda share: np.log((0.02 + 0.98 * share**3) / limits), 7)
    for i, limit in enumerate(limits[0]):
        if limit < 1:
            alone, _ = crossing(lambda share, limit=limit: np.log((0.02 + 0.98 * share**3) / limit))  # type: ignore[misc]
            assert together[i] == pytest.approx(alone[0], rel=1e-12), limit
    assert together[3] == together[6] == 0.1


# ---------------------------------------------------------------------------------------------------------------- host


def test_inputs_are_copied_and_cross_the_link_where_there_is_one() -> None:
    host, stack = processor(), Some(inputs="host", input_copies=2.0)
    copied = 2 * 3 / number(core_bandwidth(host))
    linked, module = card(link={"bandwidth": 10e9, "achievable": 0.8}), replace(card(), link=None)

    def seconds(stack: Any, device: Gpu | Cpu) -> float:
        return number(dispatch.host_transfer_time(1e9, stack, device, host))

    assert seconds(stack, linked) == pytest.approx(1e9 * copied + 1 / 8)
    assert seconds(stack, module) == pytest.approx(1e9 * copied)
    assert seconds(stack, host) == seconds(Some(inputs="device", input_copies=2.0), linked) == 0.0


def test_weights_of_a_parameter_store_cross_the_link_twice_and_are_copied_by_one_core_of_a_cpu() -> None:
    linked, host = card(link={"bandwidth": 10e9, "achievable": 0.8}), processor()
    assert number(dispatch.store_time(1e9, Some(parameter_store="host"), linked, host)) == pytest.approx(2 / 8)
    on_cpu = number(dispatch.store_time(1e9, Some(parameter_store="host"), host, host))
    assert on_cpu == pytest.approx(3e9 / number(core_bandwidth(host)))
    assert dispatch.store_time(1e9, Some(parameter_store="none"), linked, host) == 0.0


# --------------------------------------------------------------------------- supplies, and bytes that a simulation counted


GOLD = (0.83, 0.87, 0.9, 0.87)


def test_a_supply_loses_at_the_loads_of_its_class_what_the_class_says() -> None:
    assert LOADS == (0.1, 0.2, 0.5, 1.0)
    for load, efficiency in zip((0.1, 0.2, 0.5, 1.0), GOLD, strict=True):
        assert supply_loss(1000.0 * load, 1000.0, GOLD) == pytest.approx(1000.0 * load * (1 / efficiency - 1))


def test_a_supply_with_nothing_to_feed_loses_what_it_does_at_a_tenth() -> None:
    assert supply_loss(0.0, 1000.0, GOLD) == pytest.approx(100.0 * (1 / 0.83 - 1))


@pytest.mark.parametrize("terms", [MovedGpuTerms, MovedCpuTerms])
def test_memory_traffic_is_what_was_read_and_written(terms: type[MovedGpuTerms] | type[MovedCpuTerms]) -> None:
    moved = MovedBytes(dram_read=np.array([5.0]), dram_written=np.array([3.0]), shared=np.array([7.0]), core=np.array([11.0]))
    one = object.__new__(terms)
    object.__setattr__(one, "moved", moved)
    assert one.dram_bytes.tolist() == [8.0]
