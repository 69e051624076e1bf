"""Equations of the cost layer on cases that can be worked out by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import ceil
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.errors import Unsupported
from archsim.calibration.constants import FULL, default
from archsim.cost.blocking import block_columns, block_rows, micro_tile, panel_depth, panels_of
from archsim.cost.cores import active_clock, busiest_clocks, core_clocks, loop_clocks
from archsim.cost.cost import ASYNCHRONOUS, SMOOTH, Cost, choose, smooth_maximum
from archsim.cost.cpu_traffic import crossing, last_level, last_level_bytes, memory_bandwidth, refill_bytes, repeat_bytes
from archsim.cost.energy import COMPONENTS, spent
from archsim.cost.evaluate import cpu_cost, gpu_cost
from archsim.cost.gpu import GpuTerms, memory_bound
from archsim.cost.occupancy import issue_slots, resident_ctas, runnable, window_slots
from archsim.cost.power import SKIPPED, SLOWEST, power_at, sustained_share
from archsim.cost.sm import burst, cta_work, first_wave, issue_rate, neighbours, packing, prologue, softmax_work, work_done
from archsim.cost.switched import cache_energy, mac_energy, memory_energy, node_energy, voltage
from archsim.cost.team import active_cores, busiest_share, undisturbed
from archsim.cost.traffic import (
    awaited_bytes,
    bytes_read,
    bytes_written,
    ctas_of,
    inner_steps,
    loaded_bytes,
    pages,
    partial_bytes,
)
from archsim.device import catalog
from archsim.lower.columns import CpuColumns, CpuRuntime, GpuColumns, Role, columns_of
from archsim.lower.kernel import CpuKernels, GpuKernels, Kernel, Option, Plan, pack_cpu, pack_gpu
from archsim.stack.loop import LOOP, ScalarLoop
from archsim.stack.menu import Menu, Tile
from tests.shipped import cpu
from tests.shipped import gpu as gpu_named

from ..each import each


def alone(*kernels: Kernel) -> list[Plan]:
    """Each kernel as the only one of its own plan."""
    return [Plan(options=(Option(algorithm="x", kernels=(kernel,)),), read_bytes=0, write_bytes=0) for kernel in kernels]


def columns(*kernels: Kernel, tiles: tuple[Tile, ...] = (), split: tuple[int, ...] = (1,)) -> GpuKernels:
    return pack_gpu(alone(*kernels), {"menu": Menu(tiles=tiles, split_k=split)} if tiles else {})


def on_cpu(*kernels: Kernel, **runtime: float) -> CpuKernels:
    return pack_cpu(alone(*kernels), CpuRuntime(**runtime))


def element_wise(name: str = "s", efficiency: str = FULL, **words: float) -> Kernel:
    """A kernel without a menu; words that are columns of one kind of device go to its part."""
    gpu, cpu = ({name: words.pop(name) for name in columns_of(part) if name in words} for part in (GpuColumns, CpuColumns))
    return Kernel(name=name, role=Role.PASS, efficiency=efficiency, gpu=GpuColumns(**gpu), cpu=CpuColumns(**cpu), **words)


def looping(kernel: Kernel, **counts: float) -> Kernel:
    """The kernel with a scalar loop that does so much in one launch."""
    assert kernel.cpu is not None
    return replace(kernel, loop=ScalarLoop(**counts), cpu=replace(kernel.cpu, values=1.0))


def tile(m: int = 128, n: int = 128, k: int = 8, threads: int = 256, registers: int = 120, shared: int = 16384) -> Tile:
    return Tile(m=m, n=n, k=k, threads=threads, registers=registers, shared=shared)


def product(m: float, n: float, k: float, efficiency: str = FULL, **words: float) -> Kernel:
    sizes = {"a_bytes": 4 * m * k, "b_bytes": 4 * k * n, "c_bytes": 4 * m * n, "flop": 2 * m * n * k}
    made = element_wise("p", efficiency, **{"m": m, "n": n, "k": k, "items": m * n} | sizes | words)
    return replace(made, role=Role.PRODUCT, menu="menu")


# ---------------------------------------------------------------------------------------------- occupancy


@each(
    ("device", "threads", "registers", "shared", "ctas"),
    [
        # compute capability 5.2: 65536 registers, 96 KiB, 64 warps, 32 CTAs
        ("gtx_980", 256, 120, 16384, 2),  # registers: 65536 / 30720
        ("gtx_980", 64, 64, 4096, 16),  # registers: 65536 / 4096
        ("gtx_980", 256, 16, 0, 8),  # warps: 64 / 8
        ("gtx_980", 1024, 32, 0, 2),  # warps: 64 / 32
        ("gtx_980", 32, 16, 0, 32),  # CTAs
        ("gtx_980", 128, 32, 40 * 1024, 2),  # shared memory: 96 / 40
        ("gtx_980", 1024, 255, 0, 1),  # does not fit at all: counts as one
        # compute capability 5.3: 64 KiB of shared memory
        ("tegra_x1", 128, 32, 40 * 1024, 1),
        # compute capability 3.5: 16 CTAs
        ("tesla_k40", 32, 16, 0, 16),
        ("tesla_k40", 256, 64, 0, 4),  # registers: 65536 / 16384
        # compute capability 2.0: 32768 registers, 48 warps, 8 CTAs
        ("gtx_480", 192, 20, 0, 8),
        ("gtx_480", 256, 32, 0, 4),  # registers: 32768 / 8192
    ],
)  # fmt: skip
def test_ctas_per_multiprocessor(device: str, threads: int, registers: int, shared: int, ctas: int) -> None:
    gpu = gpu_named(device)
    kernels = columns(product(512, 512, 512), tiles=(tile(threads=threads, registers=registers, shared=shared),))
    assert resident_ctas(kernels, gpu).tolist() == [ctas]


@each(
    ("ctas", "resident", "sms", "fill", "slots"),
    [
        (10, 1, 10, 1, 1),  # one full wave
        (11, 1, 10, 1, 2),  # one CTA more: a second wave
        (20, 2, 10, 1, 2),  # two at a time take twice as long as one
        (21, 2, 10, 1, 3),  # full wave of two, tail of one
        (1, 4, 10, 1, 1),  # a single CTA
        (1, 4, 10, 4, 4),  # ... that cannot fill the pipes takes as long as four
        (40, 4, 10, 4, 4),  # four that fill the pipes together
        (50, 4, 10, 4, 8),  # the tail of one runs as slowly as four
        (20, 2, 10, 4, 4),  # two at a time do not fill the pipes
        (30, 4, 10, 1, 3),  # fewer than fit
    ],
)
def test_waves(ctas: int, resident: int, sms: int, fill: float, slots: float) -> None:
    one = np.ones(1)
    assert issue_slots(ctas * one, resident * one, sms, fill * one, one).tolist() == [slots]


@given(ctas=st.integers(1, 500), resident=st.integers(1, 8), sms=st.integers(1, 80), fill=st.floats(0.1, 8),
       warps=st.integers(1, 16))  # fmt: skip
def test_waves_against_a_loop(ctas: int, resident: int, sms: int, fill: float, warps: int) -> None:
    """Deal the CTAs of the busiest multiprocessor out in waves, and the warps of a wave to four schedulers.

    Where another CTA follows at once in the place of one that ends, no scheduler waits for the one that has most warps.
    """
    left, time = ceil(ctas / sms), 0.0
    while left:
        wave = min(left, resident)
        waits = resident == 1 or wave == left
        time += max(-(-wave * warps // 4) * 4 / warps if waits else wave, fill)
        left -= wave
    one = np.ones(1)
    found = issue_slots(ctas * one, resident * one, sms, fill * one, warps / 4 * one)
    assert found[0] == pytest.approx(time, rel=1e-12)


# ---------------------------------------------------------------------------------------------- bounds, choices


def test_the_smooth_maximum() -> None:
    def of(*values: float) -> float:
        return float(smooth_maximum({str(i): np.array([[value]]) for i, value in enumerate(values)}).item())

    assert of(3.0, 0.0) == 3.0
    assert of(1.0, 1.0) == pytest.approx(2 ** (1 / SMOOTH))
    assert 1e-30 <= of(1e-30, 1e-31) < 1.1e-30
    assert of(0.0, 0.0) < 1e-300
    sharp = smooth_maximum({"a": np.ones((1, 2)), "b": np.ones((1, 2))}, np.array([SMOOTH, ASYNCHRONOUS]))
    assert sharp[0].tolist() == pytest.approx([2 ** (1 / SMOOTH), 2 ** (1 / ASYNCHRONOUS)])


@given(st.lists(st.floats(1e-12, 1e3), min_size=1, max_size=6))
def test_the_smooth_maximum_lies_between_maximum_and_sum(values: list[float]) -> None:
    found = float(smooth_maximum({str(i): np.array([[value]]) for i, value in enumerate(values)}).item())
    assert max(values) * (1 - 1e-12) <= found <= sum(values) * (1 + 1e-12)


def test_the_fastest_variant_and_option_are_chosen() -> None:
    """Two plans: one with two options of two and one kernels, one with a single option."""
    tiles = (tile(), tile(m=64), tile(m=32))
    a, b, c, d = (product(64, 64, 64) for _ in range(4))
    plans = [
        Plan(
            options=(Option(algorithm="two", kernels=(a, b)), Option(algorithm="one", kernels=(c,))), read_bytes=0, write_bytes=0
        ),
        Plan(options=(Option(algorithm="only", kernels=(d,)),), read_bytes=0, write_bytes=0),
    ]
    kernels = pack_gpu(plans, {"menu": Menu(tiles=tiles)})
    times = np.array([[3, 1, 2, 5, 4, 6, 9, 5.5, 7, 8, 8, 8.5], [1, 9, 9, 9, 9, 1, 9, 9, 9, 1, 2, 3.0]])
    cost = Cost(bounds={"x": times}, busy_s=times, overhead_s=0 * times, dram_bytes=times, cache_bytes=times)
    choice = choose(cost, kernels)
    assert choice.kernel_time_s.tolist() == [[1, 4, 5.5, 8], [1, 1, 9, 1]]
    assert choice.variant.tolist() == [[1, 4, 7, 9], [0, 5, 6, 9]]
    assert choice.option_time_s.tolist() == [[5, 5.5, 8], [2, 9, 1]]
    assert choice.option.tolist() == [[0, 2], [0, 2]]
    assert choice.plan_time_s.tolist() == [[5, 8], [2, 1]]


# ---------------------------------------------------------------------------------------------- traffic


def patches(across_m: int, across_n: int, slots: int, tile_m: int, tile_n: int) -> tuple[int, int]:
    """How often A and B are read if CTAs in flight share what they read, patch by patch, counted tile by tile."""
    patch_m = min(max(1, int((slots * tile_n / tile_m) ** 0.5)), across_m)
    patch_n = min(max(1, slots // patch_m), across_n)
    reads_a, reads_b = 0, 0
    for top, left in itertools.product(range(0, across_m, patch_m), range(0, across_n, patch_n)):
        rows = range(top, min(top + patch_m, across_m))
        cols = range(left, min(left + patch_n, across_n))
        reads_a += len(rows)
        reads_b += len(cols)
    return reads_a, reads_b


@given(across_m=st.integers(1, 12), across_n=st.integers(1, 12), slots=st.integers(1, 40),
       tile_m=st.sampled_from((32, 64, 128)), tile_n=st.sampled_from((32, 64, 128)))  # fmt: skip
def test_patches_against_counting_tiles(across_m: int, across_n: int, slots: int, tile_m: int, tile_n: int) -> None:
    m, n, k = across_m * tile_m, across_n * tile_n, 64
    kernels = columns(product(m, n, k), tiles=(tile(m=tile_m, n=tile_n),))
    reads, writes = bytes_read(kernels, np.array([float(slots)]), 0.0), bytes_written(kernels, 0.0)
    times_a, times_b = patches(across_m, across_n, slots, tile_m, tile_n)
    assert reads[0] == pytest.approx(4 * k * (times_a * tile_m + times_b * tile_n))
    assert writes[0] == 4 * m * n


def test_operands_that_stay_in_the_cache_are_read_once_or_not_at_all() -> None:
    kernels = columns(product(1024, 1024, 64), tiles=(tile(),))
    size = 4 * 1024 * 64
    assert bytes_read(kernels, np.array([1.0]), 0.0).tolist() == [size * 8 + size * 8]
    assert bytes_read(kernels, np.array([1.0]), 2.0 * size).tolist() == [size]  # A once, B is still there


def test_splitting_writes_and_reads_partial_results() -> None:
    kernels = columns(product(128, 128, 4096), tiles=(tile(),), split=(1, 4))
    reads, writes = bytes_read(kernels, np.array([100.0, 100.0]), 0.0), bytes_written(kernels, 0.0)
    result = 4 * 128 * 128
    assert (reads[1] - reads[0], writes[1] - writes[0]) == (4 * result, 4 * result)


def test_a_step_visits_the_pages_of_all_rows_of_its_tile() -> None:
    """128 + 64 rows of 1 MiB: 96 pages of 2 MiB in each of the 512 steps; none where operands are not rows along k."""
    k = 2**18
    kernels = columns(product(256, 64, k, row_bytes=4 * k), product(256, 64, k), tiles=(tile(n=128),), split=(64,))
    assert pages(kernels, inner_steps(kernels)).tolist() == [96 * 512, 0]


def test_address_translation_adds_clocks_for_each_page() -> None:
    device, constants = gpu_named("tesla_v100_sxm2"), default()
    near, far = (
        gpu_cost(columns(product(128, 128, 8192, row_bytes=row), tiles=(tile(),)), device, "fp32", 1e9, constants)
        for row in (0.0, 4.0 * 8192)
    )
    visited = 8192 / 8 * 256 * 4 * 8192 / 2**21
    busy = (far.bounds["compute"] - near.bounds["compute"]).item()
    slots = constants["gemm.saturation"] / 8  # one CTA of 8 warps alone on its SM
    assert busy == pytest.approx(visited * constants["gemm.page_clk"] / 1e9 * max(1.0, slots))


def test_partial_results_that_fit_the_cache_stay_there() -> None:
    kernels = columns(product(128, 128, 4096), tiles=(tile(),), split=(1, 4))
    partial = 4 * 4 * 128 * 128
    assert partial_bytes(kernels).tolist() == [0, partial]
    for cache, moved in ((2.0 * partial, 0), (2.0 * partial - 1, partial)):
        writes = bytes_written(kernels, cache)
        assert (writes[1] - writes[0]).item() == moved


def test_a_cluster_loads_the_longer_side_of_its_tiles_once() -> None:
    alone, pair = tile(m=128, n=256), replace(tile(m=128, n=256), cluster=2)
    kernels = columns(product(512, 512, 64), tiles=(alone, pair))
    assert loaded_bytes(kernels, inner_steps(kernels)).tolist() == [4 * 64 * (128 + 256), 4 * 64 * (128 + 128)]


def test_the_keys_of_a_head_are_read_once() -> None:
    kernels = columns(product(4096, 128, 4096, exps=1.0), tiles=(tile(),))
    reads = bytes_read(kernels, np.array([4.0]), 0.0)
    assert reads[0] == 4 * (4096 * 4096 + 4096 * 128)


# ---------------------------------------------------------------------------------------------- GPU


def test_a_tile_that_needs_more_shared_memory_than_a_cta_may_take_does_not_run() -> None:
    large = tile(shared=200 * 1024)
    kernels = columns(product(512, 512, 512), tiles=(large, tile()))
    assert runnable(kernels, gpu_named("a100_sxm4_80gb")).tolist() == [[False, True]]
    assert runnable(kernels, gpu_named("h100_sxm5_80gb")).tolist() == [[True, True]]
    assert runnable(columns(product(512, 512, 512), tiles=(large,)), gpu_named("gtx_980")).tolist() == [[True]]


def test_a_second_kernel_adds_up_the_parts_of_a_split() -> None:
    device = gpu_named("h100_sxm5_80gb")
    kernels = pack_gpu(alone(product(64, 64, 4096)), {"menu": Menu(tiles=(tile(),), split_k=(1, 4), split_launches=2)})
    overhead = gpu_cost(kernels, device, "fp32", 1e9, default()).overhead_s
    assert np.ravel(overhead).tolist() == [device.launch.latency, 2 * device.launch.latency]


def test_a_normalisation_reaches_its_share_of_the_bandwidth() -> None:
    device, constants = gpu_named("titan_x_maxwell"), default().with_values({"stream.batch_norm": 0.5})
    once = element_wise(b_bytes=1e9)
    kernels = columns(once, replace(once, efficiency="stream.batch_norm"))
    t = GpuTerms(kernels=kernels, device=device, precision="fp32", clock=1e9, constants=constants)
    whole = 1e9 / (device.memory.bandwidth * device.memory.achievable)
    assert np.ravel(memory_bound(t)).tolist() == pytest.approx([whole, 2 * whole])


def test_streams_compute_in_single_precision_whatever_they_store() -> None:
    kernels = columns(element_wise(flop=1e9, items=1e6),
                      element_wise("d", flop=1e9, items=1e6, dense=1))  # fmt: skip
    single, half = (np.ravel(gpu_cost(kernels, gpu_named("tesla_v100_sxm2"), name, 1e9, default()).terms.rate)
                    for name in ("fp32", "fp16"))  # fmt: skip
    assert half[0] == single[0]
    assert half[1] > 7 * single[1]  # tensor cores


def test_the_lanes_that_a_card_can_feed_are_those_of_its_spec() -> None:
    kernels, constants = columns(product(128, 128, 8), element_wise(flop=1e9, items=1e6), tiles=(tile(),)), default()
    device = gpu_named("gtx_1080")

    def rates(share: float | None) -> np.ndarray:
        return issue_rate(kernels, replace(device, sm=replace(device.sm, issue_share=share)), "fp32", constants)

    np.testing.assert_allclose(rates(0.5), 0.5 * rates(1.0), rtol=1e-15)
    np.testing.assert_array_equal(rates(None), rates(1.0))
    assert device.sm.issue_share is not None
    np.testing.assert_allclose(issue_rate(kernels, device, "fp32", constants), rates(1.0) * device.sm.issue_share, rtol=1e-15)


def test_a_family_without_losses_runs_at_the_rate_of_the_pipes() -> None:
    constants, device = default().with_values({"conv.fft": 0.5, "gemm.kappa": 0.0}), gpu_named("gtx_1080")
    device = replace(device, sm=replace(device.sm, issue_share=None))
    kernels = columns(product(128, 128, 8), product(128, 128, 8, efficiency="conv.fft"), tiles=(tile(),))
    assert issue_rate(kernels, device, "fp32", constants).tolist() == [128.0, 64.0]


def test_windows_take_issue_slots_by_the_loop_of_their_kernel_and_arithmetic_what_is_more() -> None:
    """Neither counts as arithmetic of a product, and the longer of the two keeps the SM."""
    constants = default().with_values({"window.checked_slots": 40.0, "window.unrolled_slots": 10.0})
    kernels = columns(*[element_wise(flop=1000, items=1e3, **words)
                        for words in ({}, {"checked": 100.0}, {"unrolled": 100.0}, {"unrolled": 10.0})])  # fmt: skip
    assert window_slots(kernels, constants).tolist() == [0, 4000, 1000, 100]
    one, device = np.ones(4), gpu_named("gtx_1080")
    assert cta_work(kernels, device, one, 2 * one, one, one, one, constants).tolist() == [250, 2000, 500, 250]
    done = work_done(kernels, device, one, one, constants)
    assert done["issues"].tolist() == [500, 4000, 1000, 500]
    assert done["macs"].tolist() == [0, 0, 0, 0]


def test_a_double_buffer_waits_for_one_step_of_its_tile_and_a_thread_for_one_load() -> None:
    kernels = columns(product(512, 512, 512), element_wise(items=1e6, operand_b=16), tiles=(tile(),))
    assert awaited_bytes(kernels).tolist() == [(128 + 128) * 8 * 4, 256 * 16]


def test_a_softmax_comes_after_the_products_or_beside_them() -> None:
    device = gpu_named("h100_sxm5_80gb")  # 16 exponentials and 128 fp32 instructions a clock
    beside = replace(tile(), overlapped=True)
    kernels = columns(product(128, 128, 8, exps=1.0, work=2.0), tiles=(tile(), beside))
    after, hidden = softmax_work(kernels, device, inner_steps(kernels), np.array([100.0, 100.0]))
    products = 128 * 128 * 2 * 8
    assert after == pytest.approx(100 * 128 * 8 * (1 / 16 + 4 / 128))
    assert hidden == pytest.approx((products**2 + after**2) ** 0.5 - products)
    assert 0 < hidden < after
    plain = columns(product(128, 128, 8), tiles=(tile(),))
    assert softmax_work(plain, device, inner_steps(plain), np.array([100.0])).tolist() == [0.0]


def test_a_query_alone_in_its_cta_shares_its_prologue_with_ctas_that_are_there() -> None:
    device, resident = gpu_named("h100_sxm5_80gb"), np.array([8.0, 8.0, 8.0])
    kernels = columns(product(1, 64, 64, exps=1.0), tiles=(tile(m=1), tile(m=64), tile(m=1)))
    ctas = np.array([2.0, 2.0, 3.0 * device.sm.count])
    assert neighbours(kernels, device, ctas, resident).tolist() == [1.0, 1.0, 3.0]


@pytest.mark.parametrize(("queries", "beside"), [(8, 1.0), (63, 1.0), (64, 8.0), (512, 8.0)])
def test_no_cta_fills_the_prologue_of_one_that_loads_more_keys_than_it_has_queries(queries: int, beside: float) -> None:
    kernels = columns(product(queries, 64, 64, exps=1.0), tiles=(tile(m=64),))
    found = neighbours(kernels, gpu_named("h100_sxm5_80gb"), np.array([1e4]), np.array([8.0]))
    assert found.tolist() == [beside]


def test_a_burst_passes_the_queries_of_every_part_and_no_more_keys_than_there_are() -> None:
    """Queries and results of 32 x 128 halves a head; a step of 64 keys, of which a short head has 16."""
    device = gpu_named("h100_sxm5_80gb")
    share = device.l2.bandwidth / device.sm.count
    for keys, parts, block in ((1024, 1, 64), (1024, 4, 64), (16, 1, 16)):
        head = product(32, 128, keys, exps=1.0, operand_b=4.0, b_bytes=32 * 128 * 2, c_bytes=32 * 128 * 2)
        kernels = columns(head, tiles=(tile(m=32, n=128, k=64),), split=(parts,))
        found = burst(kernels, device, ctas_of(kernels), default().with_values({"l2.burst": 0.5}))
        assert found == pytest.approx((2 * 32 * 128 * 2 + block * 128 * 4) / (0.5 * share)), (keys, parts)


def test_products_on_tensor_cores_and_around_a_softmax_have_prologues_of_their_own() -> None:
    constants = default().with_values({"gemm.prologue": 1.0, "gemm.tensor_prologue": 2.0, "attention.prologue": 3.0})
    kernels = columns(product(8, 8, 8), product(8, 8, 8, exps=1.0), tiles=(tile(),))
    device, ctas = gpu_named("h100_sxm5_80gb"), np.array([1.0, 1.0])
    latency = float(device.memory.latency * device.clock.sustained)
    around = 3.0 * latency + burst(kernels, device, ctas, constants)[1]
    assert around > 3.0 * latency
    for steps, share in ((9, 1.0), (3, 1.0), (1, 0.5)):
        depth = steps * kernels.tile_k
        assert prologue(kernels, device, "fp32", depth, ctas, constants).tolist() == pytest.approx([latency, around])
        tensor = prologue(kernels, device, "bf16", depth, ctas, constants)
        assert tensor.tolist() == pytest.approx([2.0 * latency * share, around])


# ---------------------------------------------------------------------------------------------- CPU


def test_the_register_block_of_each_instruction_set() -> None:
    """Rows of two registers in all that are named but four: 16 of AVX and AVX2, 32 of AVX-512 and of NEON."""
    blocks = {"i7_3820": [6.0, 16.0], "i7_6700k": [6.0, 16.0], "xeon_platinum_8124m": [14.0, 32.0], "tegra_x1_cpu": [14.0, 8.0]}
    for name, block in blocks.items():
        assert [value.item() for value in micro_tile(cpu(name))] == block, name


def test_the_blocks_of_a_product_fill_the_ways_of_each_level() -> None:
    """Haswell: 7 of 8 ways of 4 KiB under (6 + 16) x 4 B; 6 of 8 ways of 32 KiB under 325 x 4 B."""
    device = cpu("i7_5930k")
    assert panel_depth(device, 4.0) == 7 * 4096 // (22 * 4) == 325
    assert block_rows(device, 4.0) == 6 * 32768 // (325 * 4) == 151
    shared = ceil(325 * 151 * 4 * 6 / (15 * 2**20 / 20))
    assert block_columns(device, 4.0) == (19 - shared) * 15 * 2**20 // 20 // (325 * 4)
    assert block_columns(cpu("tegra_x1_cpu"), 4.0) == np.inf


def test_deeper_panels_read_the_results_again_and_more_rows_the_other_operand() -> None:
    """On Skylake a panel takes 325 steps of k and a core 100 rows: two of four ways of 64 KiB."""
    kernels = on_cpu(product(100, 64, 325, packed=1), product(100, 64, 326, packed=1), product(101, 64, 325, packed=1),
                      product(100, 64, 326))  # fmt: skip
    assert panels_of(kernels, cpu()).tolist() == [1, 2, 1, 1]
    assert repeat_bytes(kernels, cpu()).tolist() == [0, 0, 64 * 325 * 4, 0]


def test_panels_of_the_first_operand_pass_once_for_each_column_of_blocks() -> None:
    """Eight rows are two blocks of six, and 32 columns two of them."""
    kernels = on_cpu(product(8, 32, 50, packed=1), element_wise(items=1e6, packed=1))
    assert refill_bytes(kernels, cpu(), 1.0).tolist() == [2 * 6 * 2 * 50 * 4, 0]


def test_pixels_of_a_direct_convolution_pass_once_for_each_block_of_channels() -> None:
    """60 pixels are ten blocks of six; 24 channels are two blocks of two registers."""
    kernels = on_cpu(product(16, 60, 256), product(24, 60, 256))
    assert refill_bytes(kernels, cpu(), 1.0).tolist() == [10 * 6 * 256 * 4, 2 * 10 * 6 * 256 * 4]


def test_one_core_draws_what_its_miss_buffers_allow() -> None:
    """Lines on their way into the second level, or the twelve of the first where nobody has told those of the second."""
    for buffers, lines in ((16.0, 16), (None, 12)):
        device = replace(cpu(), l2=replace(cpu().l2, miss_buffers=buffers))
        assert memory_bandwidth(device, np.array([1.0]), 1.0)[0] == pytest.approx(lines * 64 / 61.5e-9)
        assert memory_bandwidth(device, np.array([4.0]), 1.0)[0] == pytest.approx(34.1e9 * device.memory.achievable)


def test_the_clock_falls_from_the_turbo_of_one_core_to_that_of_a_full_socket() -> None:
    device = cpu("xeon_e5_2630_v3_2s")  # 3.2 GHz with one core, 2.6 GHz with eight of a socket
    device = replace(device, clock=replace(device.clock, turbo=None))
    assert active_clock(device, np.array([1.0, 8.0, 16.0]), 2.6e9).tolist() == [3.2e9, 2.6e9, 2.6e9]
    assert active_clock(device, np.array([4.5]), 2.6e9)[0] == pytest.approx(2.9e9)
    assert active_clock(device, np.array([1.0]), 4e9)[0] == 4e9


def test_a_serial_loop_shares_its_core_with_a_thread_that_spins() -> None:
    words = {"items": 1e6}
    kernels = element_wise(**words, threaded=0), element_wise(**words)
    constants = default().with_values({"cpu.sibling": 0.6})
    for threads, spin, expected in ((4, 1, [1, 1]), (8, 1, [0.6, 1]), (8, 0, [1, 1])):
        own = on_cpu(*kernels, spin=spin)
        workers = active_cores(own, cpu(), threads)
        assert undisturbed(own, cpu(), workers, threads, constants).tolist() == expected


def test_the_busiest_core_gets_whole_blocks_or_strips() -> None:
    """14 x 49 in blocks of 6 x 16: 12 blocks; in strips of 49 / threads in whole registers of 8; in 16 blocks of channels."""
    kernels = on_cpu(*[product(14, 49, 50, packed=1, **words) for words in ({}, {"min_rows_per_thread": 1}, {"channels": 128})],
                     block_registers=1)  # fmt: skip

    def shares(workers: float, threads: float) -> list[float]:
        return [float(share) for share in busiest_share(kernels, cpu(), np.full((1, 3), workers), threads)[0]]

    assert shares(4, 4) == [3 / 12, 16 / 49, 4 / 16]
    assert shares(4, 8) == [3 / 12, 2 * 8 / 49, 4 / 16]
    assert shares(1, 1) == [1, 1, 1]


def test_strips_read_the_other_operand_whole() -> None:
    kernels = on_cpu(product(64, 64, 64), product(64, 64, 64, min_rows_per_thread=1))
    cached = last_level_bytes(kernels, cpu(), np.array([4.0, 4.0]), np.zeros(2))
    assert cached[1] - cached[0] == 3 * 64 * 64 * 4


def test_panels_are_copied_value_by_value_or_by_simd_instructions_or_ahead_of_the_run() -> None:
    constants = default().with_values({"cpu.pack_clk": 2.0, "cpu.pack_simd_clk": 0.25})
    for scalar, copied, copies in ((1, 1200, 2400 / 4), (0, 1200, 300 / 4), (0, 0, 0)):
        kernels = on_cpu(product(8, 16, 50, packed=1, copied=copied), scalar_copies=scalar)
        assert busiest_clocks(kernels, cpu(), "fp32", np.array([4.0]), 4, constants).tolist() == pytest.approx([510 / 2 + copies])


def test_a_loop_costs_its_clocks_or_its_arithmetic() -> None:
    """Of a loop of which nothing is known each operation takes one step, or a share of a SIMD instruction."""
    constants = default().with_values({"loop.steps_clk": 2.0, "cpu.vector_flop": 4.0})
    alone = element_wise(flop=100)
    short, loops = looping(alone, steps=10), (alone, looping(alone, steps=70))
    assert core_clocks(on_cpu(*loops), cpu(), "fp32", 1.0, constants).tolist() == [200, 200]
    assert core_clocks(on_cpu(alone, short, vectorised=1), cpu(), "fp32", 1.0, constants).tolist() == [25, 25]


def test_whatever_a_loop_does_takes_the_clocks_of_its_own_constant() -> None:
    own = {"steps": 3.0, "divisions": 25.0, "exps": 60.0, "pows": 100.0, "gathers": 20.0,
           "elements": 1.25, "operations": 0.25, "adds": 1.5, "compares": 9.5}  # fmt: skip
    constants = default().with_values({f"loop.{name}_clk": value for name, value in own.items()})
    clocks = {**own, "tests": own["steps"], "vectors": 0.0}  # SIMD instructions have the rate of the core's pipes
    loops = on_cpu(*[looping(element_wise(items=10), **{name: 10}) for name in LOOP],
                   looping(element_wise(items=10), steps=10, pows=2))  # fmt: skip
    assert loop_clocks(loops, constants).tolist() == [*[10 * clocks[name] for name in LOOP], 230]


def test_memory_of_a_further_socket_counts_where_it_holds_pages() -> None:
    device = cpu("xeon_e5_2630_v3_2s")
    socket = device.memory.bandwidth * device.memory.achievable / 2
    for workers, local, sockets in ((8.0, 1.0, 1), (16.0, 1.0, 2), (16.0, 0.0, 1)):
        assert memory_bandwidth(device, np.array([workers]), local)[0] == pytest.approx(sockets * socket)


def test_half_of_what_two_sockets_read_crosses_their_link() -> None:
    device = cpu("xeon_e5_2630_v3_2s")  # 32 GB/s each way
    words = {"items": 1e6}
    for local, seconds in ((1, 0.5), (0, 1.0)):
        kernels = on_cpu(element_wise(**words), local=local)
        found = [crossing(kernels, one, np.array([cores]), np.array([64e9])).item()
                 for one, cores in ((device, 16.0), (device, 8.0), (cpu(), 8.0))]  # fmt: skip
        assert found == [seconds, 0, 0]


def test_the_last_cache_level_is_that_of_all_sockets() -> None:
    assert last_level(cpu()) == 8 * 2**20
    device = cpu()
    two = replace(device, core=replace(device.core, count=8, sockets=2))
    assert last_level(two) == 2 * 8 * 2**20


# ---------------------------------------------------------------------------------------------- energy


def test_voltage_falls_with_the_clock_to_a_floor() -> None:
    device, constants = catalog.find("tegra_x1").device, default()
    clocks = np.array([1e6, 998.4e6 / 2, 900e6, 998.4e6])
    volts = voltage(clocks, device, constants)
    assert volts[-1] == 1.0
    assert volts[0] == device.power.voltage_floor
    assert np.all(np.diff(volts) >= 0)


def test_a_processor_has_its_own_line_of_voltages_up_to_the_highest_clock_of_its_core() -> None:
    device, constants = catalog.find("xeon_e5_2698_v3").device, default()
    assert device.clock.silicon is not None
    top, slow = device.clock.silicon, device.clock.simd
    volts = voltage(np.array([1e6, slow, top]), device, constants)
    slope = constants["energy.core_voltage_slope"]
    assert volts.tolist() == pytest.approx([constants["energy.core_voltage_floor"], 1 - slope * (1 - slow / top), 1.0])
    alone = replace(device, clock=replace(device.clock, silicon=None))
    assert voltage(slow, alone, constants) > volts[1]


def test_threads_that_wait_spinning_take_the_energy_of_their_clocks() -> None:
    for spin, units, clock in ((0, 1, cpu().clock.boost), (1, 4, 4e9)):  # with all cores awake there is no turbo for one
        cost = cpu_cost(on_cpu(element_wise(items=1e6, threaded=0), spin=spin), cpu(), "fp32", 4e9, 4, default())
        assert (cost.work["units"].item(), np.ravel(cost.clock).item()) == (units, clock)


def test_a_card_with_a_slower_clock_than_its_sibling_needs_less_voltage() -> None:
    device, constants = catalog.find("tesla_p4").device, default()
    assert voltage(1063e6, device, constants) < 1.0
    alone = replace(device, clock=replace(device.clock, silicon=None))
    assert voltage(device.clock.boost, alone, constants) == 1.0


def test_energies_of_cpus_and_of_gpus_of_a_node_are_apart() -> None:
    """A fit to powers of GPUs leaves those of CPUs as they are."""
    constants, both = default(), ("xeon_platinum_8124m", "gtx_1080")
    names = [name for name in constants.constants if name.startswith("energy.node.")]
    raised = constants.with_values({name: 2.0 * constants[name] for name in names})
    before, after = ([node_energy(catalog.find(name).device, of).item() for name in both] for of in (constants, raised))
    assert after == pytest.approx([before[0], 2.0 * before[1]], rel=1e-12, abs=0)


def launched(flop: float, dram: float) -> Cost:
    """One launch of a second on all SMs, three-quarters of it arithmetic."""
    one = np.ones((1, 1))
    return Cost(bounds={"compute": 0.75 * one, "dram": 0.25 * one}, busy_s=one, overhead_s=0 * one, dram_bytes=dram * one,
                cache_bytes=dram * one, work={"macs": 0.5 * flop * one, "issues": 0 * one, "units": 20 * one})  # fmt: skip


def test_energy_grows_with_work_and_stops_at_the_limit() -> None:
    device, constants = catalog.find("gtx_1080").device, default()
    found = [spent(launched(flop, dram), device, "fp32", 1.6e9, device.power.tdp, constants)
             for flop, dram in ((0.0, 0.0), (1e12, 1e9), (1e15, 1e12))]  # fmt: skip
    assert all(tuple(parts) == tuple(COMPONENTS) for parts in found)
    idle, some, most = (sum(part.item() for part in parts.values()) for parts in found)
    assert device.power.idle <= idle < some < most
    assert most == pytest.approx(device.power.tdp)


def test_a_limit_lowers_the_clock_until_the_power_is_met() -> None:
    device, constants = catalog.find("gtx_1080").device, default()
    cost = launched(8e12, 1e10)
    free = power_at(np.ones((1, 1)), cost, device, "fp32", 1.733e9, constants).item()
    for limit in (0.9 * free, 0.7 * free):
        share = sustained_share(cost, device, "fp32", 1.733e9, limit, constants)
        assert SLOWEST < share.item() < 1.0
        assert power_at(share, cost, device, "fp32", 1.733e9, constants).item() == pytest.approx(limit, rel=1e-9)
    assert sustained_share(cost, device, "fp32", 1.733e9, 1.1 * free, constants).item() == 1.0
    assert sustained_share(cost, device, "fp32", 1.733e9, 1.0, constants).item() == pytest.approx(SLOWEST * SKIPPED)


def test_every_kernel_and_device_finds_its_own_clock() -> None:
    """The search runs over all of them at once and gives what it gives for one alone."""
    device, constants = catalog.find("gtx_1080").device, default()
    one = launched(8e12, 1e10)
    both = Cost(bounds={"compute": np.array([[0.75, 0.1]]), "dram": np.array([[0.25, 1.0]])}, busy_s=np.ones((1, 2)),
                overhead_s=np.zeros((1, 2)), dram_bytes=np.array([[1e10, 3e11]]), cache_bytes=np.array([[1e10, 3e11]]),
                work={"macs": np.array([[4e12, 1e10]]), "issues": np.zeros((1, 2)), "units": np.full((1, 2), 20.0)})  # fmt: skip
    limits = np.array([[90.0], [120.0]])
    shares = sustained_share(both, device, "fp32", 1.733e9, limits, constants)
    assert shares.shape == (2, 2)
    assert shares[1, 0] == sustained_share(one, device, "fp32", 1.733e9, 120.0, constants).item()
    assert np.all(shares[0] <= shares[1])
    assert shares[1, 1] > shares[1, 0]  # what waits for memory draws less at the same clock


def test_a_narrow_pipe_spends_half_per_operation() -> None:
    device, constants = catalog.find("tegra_x1").device, default()
    volt = voltage(690e6, device, constants)
    node = node_energy(device, constants)
    wide, narrow = (mac_energy(device, precision, volt, node, constants) for precision in ("fp32", "fp16"))
    assert wide == pytest.approx(2 * narrow, rel=1e-9, abs=0)


def test_operands_of_tensor_cores_cost_as_they_are_wide() -> None:
    device, constants = catalog.find("h100_sxm5_80gb").device, default()
    node = node_energy(device, constants)
    wide, usual, narrow, bytes_ = (mac_energy(device, precision, np.ones(1), node, constants)
                                   for precision in ("tf32", "fp16", "fp8", "int8"))  # fmt: skip
    assert wide == pytest.approx(2 * usual, rel=1e-9, abs=0)  # picojoules are below the absolute tolerance
    assert usual == pytest.approx(2 * narrow, rel=1e-9, abs=0)
    assert usual == pytest.approx(2 * bytes_, rel=1e-9, abs=0)


def test_tensor_cores_spend_less_per_operation_and_about_as_much_per_clock() -> None:
    device, constants = catalog.find("h100_sxm5_80gb").device, default()
    node = node_energy(device, constants)
    wide, tensor = (mac_energy(device, precision, np.ones(1), node, constants) for precision in ("fp32", "bf16"))
    assert 4.0 * tensor < 0.5 * wide < tensor * device.rate.tensor_bf16 / device.rate.fp32 < 2.0 * wide


def test_a_memory_without_an_energy_per_byte_is_refused() -> None:
    device = catalog.find("tegra_x1").with_settings({"memory.type": "core rope"}).device
    with pytest.raises(Unsupported, match="core rope"):
        memory_energy(device, np.ones(1), default())


def test_the_right_family_of_memory_is_taken() -> None:
    constants = default()
    device = catalog.find("tegra_x1").device
    for written, family in (("GDDR5X 8 GB", "GDDR5X"), ("GDDR5", "GDDR5"), ("GDDR6X", "GDDR6"), ("GDDR7", "GDDR7"),
                            ("HBM2e", "HBM"), ("HBM3e", "HBM3"), ("HBM4", "HBM4"), ("DDR4-2133", "DDR"),
                            ("lpddr4 (shared)", "LPDDR"), ("LPDDR5X-8533", "LPDDR5"), ("LPDDR6", "LPDDR6")):  # fmt: skip
        changed = replace(device, memory=replace(device.memory, type=written))
        byte = (memory_energy(changed, np.ones(1), constants) - cache_energy(changed, np.ones(1), constants)).item()
        assert byte == pytest.approx(constants[f"energy.byte.{family}"], rel=1e-9, abs=0), written


@pytest.mark.parametrize(
    ("name", "precision", "results"),
    [("tesla_p100_pcie_16gb", "fp16", 2.0), ("tesla_p100_pcie_16gb", "fp32", 1.0), ("tesla_t4", "fp16", 1.0),
     ("gtx_1080", "half", 1.0)],
)  # fmt: skip
def test_results_of_an_instruction(name: str, precision: str, results: float) -> None:
    """Pairs of halves outside tensor cores, where they are not a slow path."""
    assert packing(catalog.find(name).device, precision) == results


@pytest.mark.parametrize(("matrix", "exps", "clocks"), [(1.0, 0.0, 10800), (2.0, 0.0, 10800), (1.0, 1.0, 0), (0.0, 0.0, 0)])
def test_the_first_wave_of_a_product_waits_for_its_code(matrix: float, exps: float, clocks: float) -> None:
    """Attention on lanes has it in its prologue, and an element-wise kernel is short."""
    kernel: Any = Some(exps=np.array([exps]), plain=np.zeros(1), matrix=np.array([matrix]), repeat=np.ones(1), round_bytes=np.inf)
    gpu: Any = Some(has_tensor=lambda precision: False, sm=Some(fetch_interval=18.0))
    constants: Any = {"gemm.tensor_once": 150.0, "gemm.once": 600.0}
    assert first_wave(kernel, gpu, "fp32", constants).item() == clocks


@pytest.mark.parametrize(("round_bytes", "clocks"), [(np.inf, [2700.0, 2700.0]), (1e6, [0.0, 2700.0])])
def test_the_code_of_attention_on_tensor_cores_comes_anew_also_in_a_loop_of_it(round_bytes: float, clocks: list[float]) -> None:
    kernel: Any = Some(exps=np.array([0.0, 1.0]), plain=np.zeros(2), matrix=np.ones(2), repeat=np.ones(2),
                       round_bytes=round_bytes)  # fmt: skip
    gpu: Any = Some(has_tensor=lambda precision: True, sm=Some(fetch_interval=18.0))
    constants: Any = {"gemm.tensor_once": 150.0, "gemm.once": 600.0}
    assert first_wave(kernel, gpu, "bf16", constants).tolist() == clocks
