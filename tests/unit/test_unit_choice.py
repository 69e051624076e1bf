"""What is chosen among variants and options, and the sums over what runs, on two devices that choose differently."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost import evaluate, roofline
from archsim.cost.bounds import BOUNDS
from archsim.cost.cost import ASYNCHRONOUS, Cost, choose, first_of_each, smooth_maximum
from archsim.cost.plan import PlanCost, plan_cost
from archsim.cost.power import sustained_share
from archsim.cost.switched import mac_energy, node_energy, voltage
from archsim.device import catalog
from archsim.lower.columns import CpuColumns, CpuRuntime, Role
from archsim.lower.kernel import GpuKernels, Kernel, Option, Plan, pack_cpu, pack_gpu
from archsim.stack.menu import Menu, Tile
from tests import shipped
from tests.shipped import gpu as card

CONSTANTS = default()


def kernel(repeat: float = 1, flop: float = 0.0, menu: str = "", **words: float) -> Kernel:
    return Kernel(name="k", role=Role.PASS, efficiency="full", repeat=repeat, flop=flop, menu=menu, cpu=CpuColumns(), **words)


def option(*kernels: Kernel, workspace: float = 0) -> Option:
    return Option(algorithm="a", kernels=kernels, workspace=workspace)


def plan(*options: Option, read_bytes: float = 0, write_bytes: float = 0) -> Plan:
    return Plan(options=options, read_bytes=read_bytes, write_bytes=write_bytes)


TILE = Tile(m=128, n=128, k=8, threads=256, registers=120, shared=16384)

# Two plans. The first has an option of two kernels (one of them in two variants) and one of a single kernel that is launched
# three times; the second has one option. The devices choose different variants and options.
PLANS = [
    plan(option(kernel(flop=10.0, menu="menu"), kernel(flop=20.0), workspace=7.0),
         option(kernel(repeat=3, flop=40.0), workspace=9.0)),
    plan(option(kernel(repeat=2, flop=80.0), workspace=11.0)),
]  # fmt: skip
COMPUTE = np.array([[4.0, 2.0, 1.0, 0.5, 6.0], [3.0, 5.0, 9.0, 1.0, 2.0]])  # [D, V]
DRAM = np.array([[1.0, 3.0, 2.0, 0.25, 1.0], [1.0, 2.0, 3.0, 0.5, 7.0]])
BUSY = COMPUTE + DRAM  # any times will do
GAP = np.array([[0.5, 0.5, 0.5, 1.0, 1.0], [0.25, 0.25, 0.25, 1.0, 1.0]])
CLOCK = np.array([[10.0], [100.0]])


def kernels() -> GpuKernels:
    return pack_gpu(PLANS, {"menu": Menu(tiles=(TILE, replace(TILE, m=64)))})


def costs(**words: Any) -> Cost:
    usual = {"bounds": {"compute": COMPUTE, "dram": DRAM}, "busy_s": BUSY, "overhead_s": GAP, "dram_bytes": 100 * BUSY,
             "cache_bytes": BUSY, "clock": CLOCK, "work": {"macs": 2 * BUSY}}  # fmt: skip
    return Cost(**usual | words)


def found() -> PlanCost:
    def ease(ran: Cost) -> dict[str, Cost]:
        return {"dram": replace(ran, busy_s=0.5 * ran.busy_s)}

    return plan_cost(costs(), kernels(), lambda ran: {"base": ran.busy_s, "dram": 10 * ran.dram_bytes}, ease)


# Device 0: variants take 5.5 and 5.5 (the first one on a tie), 3.5; 3 (0.75 + 1) = 5.25 < 9: its second option runs. The second
# plan takes 2 (7 + 1) = 16. Device 1: 4.25 and 7.25, 12.25 (together 16.5), against 3 (1.5 + 1) = 7.5; and 2 (9 + 1) = 20.


def test_the_fastest_option_runs() -> None:
    result = found()
    assert result.time_s.tolist() == [[5.25, 16.0], [7.5, 20.0]]
    assert result.option.tolist() == [[1, 2], [1, 2]]
    assert result.workspace.tolist() == [[9.0, 11.0], [9.0, 11.0]]


def test_sums_are_over_all_launches_of_what_runs() -> None:
    result = found()
    assert result.launches.tolist() == [[3, 2], [3, 2]]
    assert result.flop.tolist() == [[120, 160], [120, 160]]
    assert result.dram_bytes.tolist() == [[225, 1400], [450, 1800]]
    assert result.clocks.tolist() == [[10 * 5.25, 160], [100 * 7.5, 2000]]
    assert {name: part.tolist() for name, part in result.energy_j.items()} == {
        "base": [[2.25, 14], [4.5, 18]], "dram": [[2250, 14000], [4500, 18000]],
    }  # fmt: skip
    assert result.total_energy_j.tolist() == [[2252.25, 14014], [4504.5, 18018]]
    assert result.if_faster_s["dram"].tolist() == [[3 * (0.375 + 1), 2 * (3.5 + 1)], [3 * (0.75 + 1), 2 * (4.5 + 1)]]
    assert {name: part.tolist() for name, part in result.bound_s.items()} == {
        "compute": [[2.25, 14], [4.5, 0]], "dram": [[0, 0], [0, 18]], "launch": [[3, 2], [3, 2]],
    }  # fmt: skip


def test_kernels_that_do_not_run_take_no_time() -> None:
    result = found()
    assert result.kernel_time_s.tolist() == [[0, 0, 5.25, 16], [0, 0, 7.5, 20]]
    assert result.kernel_clock.tolist() == [[10] * 4, [100] * 4]
    assert result.kernel_bound.tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]


def mixed() -> Cost:
    """The same, but device 0 takes the first option of the first plan, with the first of two equal variants."""
    return costs(busy_s=np.where([[False] * 3 + [True, False], [False] * 5], 8.0, BUSY))


def test_devices_that_choose_differently_are_summed_apart() -> None:
    made = kernels()
    choice = choose(mixed(), made)
    columns, runs = choice.ran
    assert choice.variant.tolist() == [[0, 2, 3, 4], [0, 2, 3, 4]]
    assert choice.option.tolist() == [[0, 2], [1, 2]]
    assert columns.tolist() == [0, 2, 3, 4]
    assert runs.tolist() == [[True, True, False, True], [False, False, True, True]]
    result = plan_cost(mixed(), made, lambda ran: {"base": ran.busy_s})
    assert result.launches.tolist() == [[2, 2], [3, 2]]
    assert result.flop.tolist() == [[30, 160], [120, 160]]
    assert result.kernel_time_s.tolist() == [[5.5, 3.5, 0, 16], [0, 0, 7.5, 20]]
    assert result.bound_s["compute"].tolist() == [[5, 14], [4.5, 0]]
    assert result.bound_s["dram"].tolist() == [[3, 0], [0, 18]]


def test_a_later_variant_runs_where_it_is_faster() -> None:
    cheap = BUSY.copy()
    cheap[0, 1], cheap[0, 3] = 1.0, 8.0
    choice = choose(costs(busy_s=cheap), kernels())
    assert choice.variant[:, 0].tolist() == [1, 0]
    assert choice.ran[0].tolist() == [1, 2, 3, 4]
    assert choice.ran[1].tolist() == [[True, True, False, True], [False, False, True, True]]


def test_one_device_at_many_clocks_chooses_once() -> None:
    """Clocks of each device, [D, 1], beside a choice that all of them share, and times of one device only."""
    one = costs(**{name: getattr(costs(), name)[:1] for name in ("busy_s", "overhead_s", "dram_bytes", "cache_bytes")},
                bounds={"compute": COMPUTE[:1], "dram": DRAM[:1]}, work={"macs": BUSY[:1]})  # fmt: skip
    result = plan_cost(one, kernels(), lambda ran: {"base": ran.busy_s})
    assert result.time_s.tolist() == [[5.25, 16.0]]
    assert result.kernel_clock.tolist() == [[10] * 4, [100] * 4]
    assert result.kernel_time_s.tolist() == [[0, 0, 5.25, 16]]


def test_what_is_one_number_for_all_variants_stays_so_when_some_are_picked() -> None:
    some = costs(smooth=np.array([2.0, 2.0, 3.0, 3.0, 2.0]), share=0.5).at(np.array([4, 2]))
    assert some.busy_s.tolist() == BUSY[:, [4, 2]].tolist()
    assert some.bounds["dram"].tolist() == DRAM[:, [4, 2]].tolist()
    assert some.work["macs"].tolist() == (2 * BUSY)[:, [4, 2]].tolist()
    assert np.asarray(some.clock).tolist() == CLOCK.tolist()
    assert np.asarray(some.smooth).tolist() == [2, 3]
    assert float(some.share) == 0.5


def test_the_smooth_maximum_of_the_third_order_and_of_several_devices() -> None:
    bounds = {"a": np.array([[3.0, 3.0], [1.0, 1.0]]), "b": np.array([[4.0, 4.0], [1.0, 2.0]])}
    both = smooth_maximum(bounds, np.array([2.0, ASYNCHRONOUS]))
    assert both.tolist() == [pytest.approx([5.0, 91 ** (1 / 3)]), pytest.approx([2**0.5, 9 ** (1 / 3)])]
    assert smooth_maximum(bounds, ASYNCHRONOUS).tolist() == [pytest.approx([91 ** (1 / 3)] * 2),
                                                              pytest.approx([2 ** (1 / 3), 9 ** (1 / 3)])]  # fmt: skip


def test_groups_begin_where_they_change() -> None:
    assert first_of_each(np.array([3, 5, 5, 6])).tolist() == [0, 1, 3]
    assert first_of_each(np.array([2])).tolist() == [0]


# --------------------------------------------------------------------------------------------------------- table, relief


def test_what_the_rows_of_the_table_say() -> None:
    """Overheads come on top of every launch or are none of a kernel's; what lies inside the core goes with its clock."""
    assert {name for name, row in BOUNDS.items() if row.overhead} == {"launch", "host", "input", "power", "none"}
    assert {name for name, row in BOUNDS.items() if row.clocked} == {"compute", "l1", "l2", "buffer"}
    assert {row.resource for row in BOUNDS.values()} == {"SM pipes", "L2", "DRAM", None}


def limited() -> Cost:
    """A kernel limited by arithmetic, at 0.8 of its highest clock, where it takes 5 s and draws a lot."""
    one = np.ones((1, 1))
    return Cost(bounds={"compute": 5 * one, "dram": one}, busy_s=26**0.5 * one, overhead_s=0.5 * one, dram_bytes=1e11 * one,
                cache_bytes=1e11 * one, work={"macs": 1.5e13 * one, "issues": 0 * one, "units": 20 * one}, clock=1.3864e9,
                share=0.8)  # fmt: skip


def test_under_a_power_limit_a_faster_resource_settles_at_a_clock_of_its_own() -> None:
    card = catalog.find("gtx_1080").device
    full = replace(limited(), bounds={"compute": 0.8 * limited().bounds["compute"], "dram": limited().bounds["dram"]},
                   busy_s=np.full((1, 1), 17**0.5), clock=1.733e9, share=1.0)  # fmt: skip
    limit = 120.0
    after = evaluate.faster_costs(limited(), card, "fp32", limit, CONSTANTS, 1.25)
    assert set(after) == {"compute", "dram", "launch", "power"}
    for name, one in after.items():
        served = full if name == "power" else evaluate.faster(full, name, 1.25)
        raised = limit * 1.25 if name == "power" else limit
        share = sustained_share(served, card, "fp32", 1.733e9, raised, CONSTANTS).item()
        assert 0.1 < share <= 1.0
        assert np.asarray(one.share).item() == pytest.approx(share)
        assert np.asarray(one.clock).item() == pytest.approx(1.733e9 * share)
        assert one.bounds["compute"].item() == pytest.approx(served.bounds["compute"].item() / share)
    assert np.asarray(after["power"].share).item() > np.asarray(after["dram"].share).item()
    assert np.asarray(after["compute"].share).item() < 1.0
    free = evaluate.faster_costs(limited(), card, "fp32", 1e6, CONSTANTS, 1.25)
    assert {name: np.asarray(one.share).item() for name, one in free.items()} == pytest.approx(dict.fromkeys(after, 1.0))
    assert free["dram"].bounds["compute"].item() == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["compute", "dram", "l1", "l2", "link", "latency"])
def test_a_bound_that_is_eased_takes_less_and_the_gaps_stay(name: str) -> None:
    one = np.ones((1, 1))
    cost = replace(limited(), bounds={"other": 3 * one, name: 8 * one}, overhead_s=0.5 * one)
    after = evaluate.faster(cost, name, 2.0)
    assert {key: bound.item() for key, bound in after.bounds.items()} == {"other": 3.0, name: 4.0}
    assert (after.busy_s.item(), after.overhead_s.item()) == (5.0, 0.5)


# -------------------------------------------------------------------------------------------------------------- roofline


ROOFS = [  # FLOP of options: 30 + 2 x 20, 2 x 25, 50 (the first on a tie); then one option of two kernels
    plan(option(kernel(flop=30e9), kernel(repeat=2, flop=20e9)), option(kernel(repeat=2, flop=25e9)), option(kernel(flop=50e9)),
         read_bytes=1e9, write_bytes=2e9),
    plan(option(kernel(flop=1e6), kernel(flop=2e6)), read_bytes=4e9, write_bytes=0.0),
    plan(option(kernel(flop=7e9)), option(kernel(flop=5e9)), read_bytes=0.0, write_bytes=0.0),
]  # fmt: skip


def roof(clock: Any = 1e9, **words: Any) -> PlanCost:
    return evaluate.roofline_cost(pack_gpu(ROOFS, {}), card(), "fp32", clock, 1, CONSTANTS, **words)


def test_the_roofline_takes_the_option_of_the_fewest_multiplications() -> None:
    t = roofline.RooflineTerms(kernels=pack_gpu(ROOFS, {}), device=card(), precision="fp32", clock=1e9, threads=1)
    assert t.flop.tolist() == [50e9, 3e6, 5e9]
    assert t.option.tolist() == [1, 3, 5]
    size = card().l2.size
    assert t.dram_bytes.tolist() == [3e9 - 2 * size, 4e9 - size, 0.0]


def test_the_roofline_is_the_larger_of_arithmetic_and_traffic() -> None:
    result = roof()
    peak, bandwidth, size = 2 * 16 * 128 * 1e9, card().memory.bandwidth, card().l2.size
    compute, dram = [50e9 / peak, 3e6 / peak, 5e9 / peak], [(3e9 - 2 * size) / bandwidth, (4e9 - size) / bandwidth, 0.0]
    expected = [max(pair) for pair in zip(compute, dram, strict=True)]
    assert result.time_s[0].tolist() == pytest.approx(expected)
    assert result.bound_names == ("compute", "dram")
    assert result.bound_s["compute"][0].tolist() == pytest.approx([0.0, 0.0, compute[2]])
    assert result.bound_s["dram"][0].tolist() == pytest.approx([dram[0], dram[1], 0.0])
    assert result.if_faster_s["compute"][0].tolist() == pytest.approx([dram[0], dram[1], compute[2] / 1.2])
    assert result.if_faster_s["dram"][0].tolist() == pytest.approx([max(compute[0], dram[0] / 1.2), dram[1] / 1.2, compute[2]])
    assert result.clocks[0].tolist() == pytest.approx([1e9 * time for time in expected])
    assert result.launches.tolist() == result.workspace.tolist() == [[0, 0, 0]]
    assert result.option.tolist() == [[1, 3, 5]]


def test_the_roofline_of_several_clocks() -> None:
    result = roof(np.array([[1e9], [1e6]]))
    peak = 2 * 16 * 128 * 1e6
    assert result.time_s.shape == (2, 3)
    assert result.time_s[1].tolist() == pytest.approx([50e9 / peak, (4e9 - card().l2.size) / card().memory.bandwidth, 5e9 / peak])
    assert result.kernel_time_s.shape == result.kernel_bound.shape == result.kernel_clock.shape == (2, 8)
    expected = np.zeros((2, 8))
    expected[:, [2, 4, 7]] = result.time_s  # all of a plan counts for the first kernel of its option
    assert result.kernel_time_s.tolist() == expected.tolist()
    assert result.kernel_bound.tolist() == [[0, 0, 1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0]]
    assert result.kernel_clock[:, 0].tolist() == [1e9, 1e6]


def test_the_roofline_counts_multiplications_and_no_other_instructions() -> None:
    """Without a limit the energy of arithmetic is that of half the FLOP; nothing comes on top of kernels."""
    one = roof(limit=np.inf)
    bare = pack_gpu([replace(each, read_bytes=0.0, write_bytes=0.0) for each in ROOFS], {})
    free = evaluate.roofline_cost(bare, card(), "fp32", 1e9, 1, CONSTANTS, limit=np.inf)
    per_flop = free.energy_j["arithmetic"][0] / free.flop[0]
    assert per_flop.tolist() == pytest.approx([per_flop[0]] * 3, rel=1e-9, abs=0)
    assert one.energy_j["arithmetic"][0].tolist() == pytest.approx((per_flop * one.flop[0]).tolist())
    parts = np.sum([part[0] for part in one.energy_j.values()], axis=0)
    assert one.total_energy_j[0].tolist() == pytest.approx(parts.tolist())
    mac = mac_energy(card(), "fp32", voltage(1e9, card(), CONSTANTS), node_energy(card(), CONSTANTS), CONSTANTS)
    assert per_flop[0] == pytest.approx(0.5 * float(mac), rel=1e-9, abs=0)
    assert one.energy_j["cache"].tolist() == [[0, 0, 0]]


def test_overheads_of_a_processor_are_those_of_its_team() -> None:
    processor = shipped.cpu("i7_6700k")
    made = pack_cpu([plan(option(kernel(b_bytes=1e8, c_bytes=1e8, items=1e7))), plan(option(kernel(items=1.0)))], CpuRuntime())
    cost = evaluate.cpu_cost(made, processor, "fp32", 4e9, 4, CONSTANTS)
    assert np.ravel(cost.overhead_s).tolist() == pytest.approx([2 * 3 * 2 * 42 / 4.2e9, 0.0])  # three cores' lines
    assert np.ravel(cost.cache_bytes).tolist() == np.ravel(cost.terms.llc_bytes).tolist() == [3e8, 0.0]
    assert Some(**cost.bounds).dram.shape == cost.overhead_s.shape
