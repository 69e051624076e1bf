"""Bounds, traffic and energy of one kernel: the number that its formula gives by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost import cpu, cpu_traffic, dispatch, energy, gpu, idle, roofline, sm, switched, traffic
from archsim.cost.bounds import BOUNDS, CPU, GPU
from archsim.cost.cost import Cost, choose
from archsim.cost.evaluate import gpu_cost
from archsim.cost.plan import plan_cost
from archsim.cost.switched import voltage
from archsim.cost.team import dispatch_clock
from archsim.device import catalog
from archsim.device.device import Cpu, Gpu
from archsim.lower.columns import CpuColumns, CpuRuntime, GpuColumns, Role
from archsim.lower.kernel import GpuKernels, Kernel, Option, Plan, pack_cpu, pack_gpu
from archsim.schedule.waves import phases_of
from archsim.stack.menu import Menu, Tile
from tests import shipped
from tests.shipped import cpu as processor
from tests.shipped import gpu as card

CLOCK = 1.1e9
CONSTANTS = default().with_values({"gemm.kappa": 1.0, "l2.efficiency": 0.5, "energy.clock": 0.25})


def product(m: float, n: float, k: float, **words: float) -> Kernel:
    sizes = {"a_bytes": 4 * m * k, "b_bytes": 4 * k * n, "c_bytes": 4 * m * n, "flop": 2 * m * n * k, "items": m * n}
    return Kernel(name="p", role=Role.PRODUCT, efficiency="full", menu="menu", m=m, n=n, k=k, gpu=GpuColumns(), cpu=CpuColumns(),
                  **sizes | words)  # fmt: skip


def stream(**words: float) -> Kernel:
    return Kernel(name="s", role=Role.PASS, efficiency="full", gpu=GpuColumns(), cpu=CpuColumns(), **words)


def plans(*kernels: Kernel, read_bytes: float = 0, write_bytes: float = 0) -> list[Plan]:
    return [Plan(options=(Option(algorithm="x", kernels=(kernel,)),), read_bytes=read_bytes, write_bytes=write_bytes)
            for kernel in kernels]  # fmt: skip


def tiled(*kernels: Kernel, split: tuple[int, ...] = (1,)) -> GpuKernels:
    tile = Tile(m=128, n=128, k=8, threads=256, registers=120, shared=16384)
    return pack_gpu(plans(*kernels), {"menu": Menu(tiles=(tile,), split_k=split)})


def terms(kernels: GpuKernels, clock: float = CLOCK) -> gpu.GpuTerms:
    return gpu.GpuTerms(kernels=kernels, device=card(), precision="fp32", clock=clock, constants=CONSTANTS)


def only(values: object) -> float:
    return float(np.ravel(np.asarray(values))[0])


# ------------------------------------------------------------------------------------------------------------- GPU


def test_rounds_of_bytes_in_flight_each_take_a_latency_and_the_first_one_too() -> None:
    """One CTA of 128 x 128 over k = 8, alone on the card: it reads A and writes C, and waits for one step of its tile."""
    t = terms(tiled(product(128, 128, 8)))
    moved, in_flight = 4 * 128 * 8 + 4 * 128 * 128, (128 + 128) * 4 * 8
    assert only(t.in_flight) == in_flight
    assert only(gpu.latency_bound(t)) == pytest.approx((moved / in_flight + 1) * card().memory.latency)


def test_no_more_ctas_wait_for_loads_than_are_resident() -> None:
    t = terms(tiled(product(128 * 100, 128, 8)))  # 100 CTAs, of which 2 fit on each of 16 SMs
    assert only(t.in_flight) == 32 * (128 + 128) * 4 * 8


def test_traffic_through_the_l2_is_that_of_all_ctas_and_its_bandwidth_goes_with_the_clock() -> None:
    t = terms(tiled(product(256, 128, 1024)))
    moved = 2 * (128 + 128) * 4 * 1024 + 4 * 256 * 128
    assert only(t.l2_bytes) == moved
    for clock in (CLOCK, CLOCK / 2):
        found = gpu.cache_bound(terms(tiled(product(256, 128, 1024)), clock))
        assert only(found) == pytest.approx(moved / (card().l2.bandwidth * clock * 0.5))


def test_partial_results_pass_the_l2_twice() -> None:
    kernels = tiled(product(128, 128, 4096), split=(4,))
    steps = traffic.inner_steps(kernels)
    assert only(traffic.l2_bytes(kernels, np.array([4.0]), steps)) == 4 * (128 + 128) * 4 * 1024 + (1 + 2 * 4) * 4 * 128 * 128


def test_each_part_of_a_split_is_padded_to_whole_steps_of_its_tile() -> None:
    assert only(traffic.inner_steps(tiled(product(128, 128, 1000), split=(3,)))) == 336  # 333.3 in steps of 8


def test_a_thread_of_eight_by_eight_results_loads_a_quarter_as_often_as_it_multiplies() -> None:
    """What loads take is seen where schedulers start one instruction a clock for as many lanes; others pair the two."""
    single, pairs = (catalog.find(name).device for name in ("rtx_3090", "gtx_1080"))
    kernels = tiled(product(128, 128, 8))
    assert only(sm.issue_rate(kernels, single, "fp32", CONSTANTS)) == pytest.approx(128 / 1.25)
    assert only(sm.issue_rate(kernels, pairs, "fp32", CONSTANTS)) == pytest.approx(128 * pairs.sm.issue_share)


def test_ctas_that_share_an_sm_hide_each_other_s_prologue() -> None:
    kernels = tiled(product(128, 128, 8))
    steps, one = traffic.inner_steps(kernels), np.ones(1)
    work = sm.cta_work(kernels, card(), steps, one, 2 * one, 100 * one, 60 * one, CONSTANTS)
    assert only(work) == 128 * 128 * 8 + 60 / 2 * 100


def test_the_busiest_sm_computes_its_ctas_at_the_rate_of_its_pipes() -> None:
    t = terms(tiled(product(128 * 40, 128, 8)))  # 40 CTAs: three of them on the busiest SM, two at a time
    alone = float(np.ravel(t.fill)[0])  # CTAs that saturate an SM
    turns = max(2.0, alone) + max(1.0, alone)
    assert only(t.waves) == turns
    clocks = only(t.cta_work) * turns / only(t.rate) + only(t.cold_start_clk)
    assert only(gpu.compute_bound(t)) == pytest.approx(clocks / CLOCK)


@pytest.mark.parametrize("kind", [GPU, CPU])
def test_bounds_that_are_called_clocked_are_inverse_to_the_clock_and_the_others_do_not_move(kind: str) -> None:
    """At the clock of all cores and above, where no turbo of fewer cores is left."""
    twice = replace(stream(b_bytes=1e8, c_bytes=1e8, flop=1e8, items=1e8), efficiency="stream.batch_norm")

    def bounds(clock: float) -> dict[str, np.ndarray]:
        if kind == GPU:
            constants = CONSTANTS.with_values({"stream.batch_norm": 0.5})
            kernels = tiled(product(1024, 1024, 1024), twice)
            made = gpu.GpuTerms(kernels=kernels, device=card(), precision="fp32", clock=clock, constants=constants)
        else:
            passed = stream(b_bytes=1e8, c_bytes=1e8, flop=1e8, items=1e8)
            kernels = pack_cpu(plans(product(1024, 1024, 1024), passed), CpuRuntime())
            made = cpu.CpuTerms(kernels=kernels, device=catalog.find("xeon_e5_2630_v3_2s").device, precision="fp32", clock=clock,
                                threads=16, constants=CONSTANTS)  # fmt: skip
        return {name: np.ravel(np.asarray(row.time[kind](made))) for name, row in BOUNDS.items() if kind in row.time}

    slow, fast = bounds(4e9), bounds(8e9)
    for name, times in slow.items():
        assert times.max() > 0, name
        np.testing.assert_allclose(times, (2 if BOUNDS[name].clocked else 1) * fast[name], rtol=1e-12, err_msg=name)


# ------------------------------------------------------------------------------------------------------- sums of plans


def test_full_waves_and_the_tail_hold_the_slots_of_their_ctas() -> None:
    """40 CTAs, two to each of 16 SMs: a wave of 32 holds all slots, the tail of 8 a quarter of them."""
    kernels = tiled(product(128 * 40, 128, 512))
    cost = gpu_cost(kernels, card(), "fp32", CLOCK, CONSTANTS)
    ((gap, full, tail),) = phases_of(kernels, plan_cost(cost, kernels, lambda ran: {"idle_board": ran.busy_s}), card())
    fill = only(cost.terms.fill)
    assert (full.slots, tail.slots) == (1.0, 8 / 32)
    assert full.work / tail.work == pytest.approx(max(2.0, fill) / max(1.0, fill))
    assert gap.work == card().launch.latency
    assert full.work + tail.work == pytest.approx(only(cost.busy_s))


def test_every_launch_of_a_repeated_kernel_has_its_overhead() -> None:
    kernels = tiled(replace(stream(items=1.0, b_bytes=4.0), repeat=5))
    one = np.ones((1, 1))
    cost = Cost(bounds={"dram": 2 * one}, busy_s=2 * one, overhead_s=3 * one, dram_bytes=one, cache_bytes=one, clock=CLOCK,
                work={"macs": one, "issues": one, "units": one})  # fmt: skip
    assert choose(cost, kernels).time_s.tolist() == [[25.0]]
    spent = plan_cost(cost, kernels, lambda ran: {"idle_board": ran.busy_s})
    assert {name: only(time) for name, time in spent.bound_s.items()} == {"dram": 10.0, "launch": 15.0}


# ------------------------------------------------------------------------------------------------------------- CPU


def test_a_written_line_is_read_first_and_parameters_always_come_from_memory() -> None:
    large, small = 64e6, 1e6  # the first beyond half of the last level
    passes = [stream(a_bytes=1e3, b_bytes=size, c_bytes=size, items=size / 4) for size in (large, small)]
    kernels = pack_cpu(plans(*passes), CpuRuntime())
    moved = cpu_traffic.memory_bytes(kernels, processor(), np.full(2, 4.0), np.zeros(2))
    assert np.ravel(moved).tolist() == [1e3 + 3 * large, 1e3]


# ------------------------------------------------------------------------------------------------------------ dispatch

HOST = {"dispatch.native": 7000.0, "dispatch.launch": 10000.0, "dispatch.nested": 0.5}


def host() -> Cpu:
    """A core that dispatches in 3.7e9 x 1 clocks of Haswell a second."""
    return shipped.cpu("i7_5930k")


def issued(on: Gpu | Cpu, by: Cpu, name: str = "dispatch.native") -> np.ndarray:
    """The host's time for an op of two calls, four nested ones and three kernels."""
    made = pack_gpu([Plan(options=(Option(algorithm="x", kernels=(stream(items=1.0),)),), read_bytes=0, write_bytes=0, host_ops=2,
                          nested=4)], {})  # fmt: skip
    cost = SimpleNamespace(time_s=np.zeros((1, 1)), launches=np.full((1, 1), 3.0))
    return dispatch.host_time(made, cost, SimpleNamespace(host=name), on, by, default().with_values(HOST))


def test_dispatch_takes_the_clocks_of_calls_nested_calls_and_launches() -> None:
    calls = 2 + 4 * 0.5
    for on, name, clocks in (
        (card(), "dispatch.native", calls * 7000 + 3 * 10000),
        (processor(), "dispatch.native", calls * 7000),  # a CPU launches no kernels
        (card(), "", 0),
    ):
        assert only(issued(on, host(), name)) == pytest.approx(clocks / 3.7e9)


def test_a_host_dispatches_at_its_turbo_clock_times_its_instructions_per_clock() -> None:
    fast, wide = (replace(host(), **{part: replace(getattr(host(), part), **{key: factor * getattr(getattr(host(), part), key)})})
                  for part, key, factor in (("clock", "boost", 2.0), ("core", "scalar_ipc", 1.25)))  # fmt: skip
    usual = only(issued(card(), host()))
    for other, factor in ((fast, 2.0), (wide, 1.25)):
        assert dispatch_clock(other) == pytest.approx(factor * 3.7e9)
        assert only(issued(card(), other)) == pytest.approx(usual / factor)


def test_a_graph_is_launched_at_once_or_as_fast_as_its_first_op() -> None:
    plan_of, each = np.array([-1, 1, 0, 1]), np.array([[1e-6, 9e-6], [1e-6, 3e-6]])
    host = catalog.find("i7_5930k").device  # at 3.7 GHz
    launch = dispatch.graph_launch(each, plan_of, host, default().with_values({"graph.launch_clk": 18500.0}))
    assert launch.tolist() == [[5e-6], [3e-6]]


# -------------------------------------------------------------------------------------------------------- the roofline


def test_the_roofline_counts_two_operations_for_each_multiply_accumulate() -> None:
    device = card()
    made = pack_gpu(plans(replace(stream(flop=1e9, items=1.0), repeat=2), read_bytes=5e6, write_bytes=3e6), {})
    t = roofline.RooflineTerms(kernels=made, device=device, precision="fp32", clock=CLOCK, threads=1)
    assert only(roofline.compute_bound(t)) == pytest.approx(2e9 / (2 * 16 * 128 * CLOCK))
    kept = 2 * 2**20  # of the inputs a cache-full may be there, of the results a cache-full may stay
    assert only(roofline.memory_bound(t)) == pytest.approx((5e6 - kept + 3e6 - kept) / 224e9, rel=2e-3)


# -------------------------------------------------------------------------------------------------------------- energy


@pytest.mark.parametrize("device", [card(), processor()], ids=["gpu", "cpu"])
def test_energy_of_operations_bytes_and_clocks_goes_with_the_square_of_the_voltage(device: Gpu | Cpu) -> None:
    for spent in (
        lambda volt: switched.mac_energy(device, "fp32", volt, np.ones(1), CONSTANTS),
        lambda volt: switched.clock_energy(device, volt, np.ones(1), CONSTANTS),
        lambda volt: switched.cache_energy(card(), volt, CONSTANTS),
    ):
        assert only(spent(np.full(1, 0.8))) == pytest.approx(0.64 * only(spent(np.ones(1))))


def test_a_gpu_splits_the_energy_of_its_node_between_a_clock_of_a_lane_and_a_multiplication() -> None:
    node, volt = np.full(1, 8.0), np.ones(1)
    assert only(switched.mac_energy(card(), "fp32", volt, node, CONSTANTS)) == 6.0
    assert only(switched.clock_energy(card(), volt, node, CONSTANTS)) == 2.0 * 128


def test_each_component_has_its_own_quantity() -> None:
    device, volt = card(), voltage(CLOCK, card(), CONSTANTS)
    node = switched.node_energy(device, CONSTANTS)
    one = np.ones((1, 1))
    cost = Cost(bounds={"compute": one}, busy_s=2 * one, overhead_s=one, dram_bytes=3e9 * one, cache_bytes=5e9 * one, clock=CLOCK,
                work={"macs": 7e9 * one, "issues": 11e9 * one, "units": 13.0 * one})  # fmt: skip
    found = energy.spent(cost, device, "fp16", CLOCK, np.inf, CONSTANTS)
    multiply = switched.mac_energy(device, "fp16", volt, node, CONSTANTS)
    issue = switched.issue_energy(device, volt, node, CONSTANTS)
    expected = {
        "idle_board": 3 * idle.standing_power(device, CONSTANTS, 1.0),
        "leakage": 3 * idle.leakage_power(device, volt, CONSTANTS),
        "clock_tree": 3 * idle.idle_clock_power(device, CLOCK, volt, CONSTANTS),
        "active_units": 13 * 2 * CLOCK * switched.clock_energy(device, volt, node, CONSTANTS),
        "arithmetic": 7e9 * multiply,
        "tensor": 0.0 * one,
        "instructions": 11e9 * issue,
        "cache": 5e9 * switched.cache_energy(device, volt, CONSTANTS),
        "dram": 3e9 * switched.memory_energy(device, volt, CONSTANTS),
    }
    assert {name: only(part) for name, part in found.items()} == pytest.approx({name: only(x) for name, x in expected.items()})
    assert only(expected["idle_board"]) < 3 * device.power.idle


def test_what_a_limit_leaves_is_shared_by_the_parts_that_a_lower_clock_saves() -> None:
    device, one = card(), np.ones((1, 1))
    cost = Cost(bounds={"compute": one}, busy_s=one, overhead_s=0 * one, dram_bytes=1e11 * one, cache_bytes=one, clock=CLOCK,
                work={"macs": 1e13 * one, "issues": 0 * one, "units": 16.0 * one})  # fmt: skip
    free, tight, loose = (energy.spent(cost, device, "fp32", CLOCK, limit, CONSTANTS) for limit in (np.inf, 100.0, 1e6))
    assert {name: only(part) for name, part in loose.items()} == {name: only(part) for name, part in free.items()}
    assert sum(map(only, tight.values())) == pytest.approx(100.0)
    shares = [only(tight[name]) / only(free[name]) for name in free if name != "idle_board" and only(free[name])]
    assert shares == pytest.approx([shares[0]] * 6)
    assert only(tight["idle_board"]) == only(free["idle_board"])


def test_cost_of_a_kernel_is_made_of_its_bounds() -> None:
    """The smooth maximum of the bounds, with the exponent of a product that computes and loads in turns, and a launch gap."""
    cost = gpu_cost(tiled(product(1024, 1024, 1024)), card(), "fp32", CLOCK, CONSTANTS)
    times = [only(bound) for bound in cost.bounds.values()]
    assert only(cost.busy_s) == pytest.approx(sum(time**2 for time in times) ** 0.5)
    assert only(cost.overhead_s) == card().launch.latency
