"""Bytes that kernels move on CPUs and GPUs, and the work of an SM: numbers that can be multiplied by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost import cpu, cpu_traffic, gpu, occupancy, sm, traffic
from archsim.cost.cost import Cost
from archsim.cost.retention import resident_share
from archsim.device import catalog
from archsim.lower.columns import CpuRuntime

KIB = 1024.0


class Record(SimpleNamespace):
    """Kernels that can be remembered."""

    __hash__ = object.__hash__


def number(value: Any) -> float:
    return float(np.ravel(np.asarray(value))[0])


def row(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=float)


# ----------------------------------------------------------------------------------------------------------------- CPU


def processor(**words: Any) -> Any:
    """Two sockets of two cores, each with 2048 KiB of last level; blocks of 4 x 8 results."""
    core = {"count": 4.0, "threads": 8.0, "sockets": 2.0, "simd": 128.0, "registers": 12.0, "link": 8e9}
    made = {
        "core": Some(**core | words.pop("core", {})), "l1": Some(size=32 * KIB, ways=8.0), "l2": Some(size=256 * KIB, ways=4.0),
        "l3": Some(size=2048 * KIB, ways=16.0, shared_by=2.0), "clock": Some(boost=4e9, turbo=None),
    }  # fmt: skip
    return Some(**{**made, **words})


def cpu_kernel(**words: Any) -> Any:
    flags = dict.fromkeys(("packed", "matrix", "min_rows_per_thread", "channels", "both_activations", "tiled"), 0.0)
    sizes = {"m": 1.0, "n": 1.0, "k": 1.0, "count": 1.0, "operand_a": 4.0, "a_bytes": 0.0, "b_bytes": 0.0, "c_bytes": 0.0}
    return Some(**{**flags, **sizes, "runtime": CpuRuntime(), **words})


def test_the_last_level_is_there_once_even_for_a_part_of_its_cores() -> None:
    assert number(cpu_traffic.last_level(processor())) == 2 * 2048 * KIB
    assert number(cpu_traffic.last_level(processor(core={"count": 1.0}))) == 2048 * KIB
    second = Some(size=256 * KIB, ways=4.0, shared_by=4.0)
    assert number(cpu_traffic.last_level(processor(l3=None, l2=second))) == 256 * KIB


def test_one_socket_is_used_by_the_first_core_and_all_by_the_last() -> None:
    found = [number(cpu_traffic.sockets_used(processor(), workers)) for workers in (0.0, 1.0, 2.0, 3.0, 4.0)]
    assert found == [1, 1, 1, 2, 2]


def test_activations_stay_in_half_the_cache_of_the_sockets_at_work() -> None:
    """2 MiB on one socket and 4 on two, of which half holds the last results; up to the last byte they are not read again."""
    half = 1024 * KIB
    for workers, size, stays in ((2.0, half, True), (2.0, half + 1, False), (4.0, 2 * half, True), (4.0, 2 * half + 1, False)):
        kernels = cpu_kernel(a_bytes=7.0, b_bytes=size - 64, c_bytes=64.0)
        moved = number(cpu_traffic.memory_bytes(kernels, processor(), row(workers), row(5.0)))
        assert moved == (7.0 if stays else 7.0 + size - 64 + 2 * 64 + 5.0), (workers, size)


def test_a_product_of_two_results_finds_both_in_the_cache() -> None:
    """Not parameters, which nobody has written just before."""
    half = 1024 * KIB
    for size, stays in ((half, True), (half + 1, False)):
        kernels = cpu_kernel(a_bytes=7.0, b_bytes=size - 64 - 7, c_bytes=64.0, both_activations=1.0)
        moved = number(cpu_traffic.memory_bytes(kernels, processor(), row(2.0), row(5.0)))
        assert moved == (0.0 if stays else size - 64 + 2 * 64 + 5.0), size


def test_a_product_waits_for_memory() -> None:
    """9 s of memory and 3 s of the core, one after the other, beside 5 s of a cache: 13 s."""
    bounds = {"compute": row(3.0), "dram": row(9.0), "l2": row(5.0)}
    given = Cost(bounds=bounds, busy_s=row(0.0), overhead_s=row(0.0), dram_bytes=row(0.0), cache_bytes=row(0.0), in_turn=row(1.0))
    assert number(given.served(bounds).busy_s) == pytest.approx(13.0)
    assert number(replace(given, in_turn=row(0.0)).served(bounds).busy_s) == pytest.approx(115**0.5)


def test_all_that_passes_the_last_level_adds_up() -> None:
    """Tensors, further panels, the operand that three more cores read whole, what blocks read again; not what L2s hold."""
    words = {"a_bytes": 10.0, "b_bytes": 20.0, "c_bytes": 40.0, "m": 5.0, "n": 3.0, "k": 7.0, "count": 2.0}

    def moved(**more: float) -> float:
        return number(cpu_traffic.last_level_bytes(cpu_kernel(**words, **more), processor(), row(4.0), row(1000.0)))

    once = 10 + 20 + 2 * 40 + 1000
    assert (moved(), moved(matrix=1.0)) == (0.0, once)
    assert moved(matrix=1.0, min_rows_per_thread=1.0) == once + 3 * 4 * 5 * 7 * 2
    tall = cpu_kernel(**{**words, "m": 100.0}, matrix=1.0, packed=1.0)  # two blocks of at most 54 rows: B is read twice
    assert number(cpu_traffic.last_level_bytes(tall, processor(), row(4.0), row(0.0))) == 110 + 3 * 7 * 2 * 4


def test_blocks_read_the_other_operand_again_for_each_further_one() -> None:
    """Blocks of 54 rows (kc = 597 values of 4 B in two ways of 64 KiB) and of 713 columns (two cores' blocks take two ways)."""
    words = {"m": 120.0, "n": 1500.0, "k": 7.0, "count": 5.0, "packed": 1.0}
    found = number(cpu_traffic.repeat_bytes(cpu_kernel(**words), processor()))
    assert found == (2 * 1500 + 2 * 120) * 7 * 5 * 4
    assert number(cpu_traffic.repeat_bytes(cpu_kernel(**{**words, "n": 713.0}), processor())) == 2 * 713 * 7 * 5 * 4
    assert number(cpu_traffic.repeat_bytes(cpu_kernel(**{**words, "n": 714.0}), processor())) == (2 * 714 + 120) * 7 * 5 * 4
    assert number(cpu_traffic.repeat_bytes(cpu_kernel(**{**words, "packed": 0.0}), processor())) == 0
    assert number(cpu_traffic.repeat_bytes(cpu_kernel(**words), processor(l3=None))) == 2 * 1500 * 7 * 5 * 4


def test_values_of_one_byte_or_of_unknown_size_move_a_byte_each() -> None:
    """kc = 2389 steps in blocks of 54 rows; none of the 100 columns is cut."""
    for size, element in ((1.0, 1), (0.0, 1), (2.0, 2)):
        words = {"m": 60.0, "n": 100.0, "k": 7.0, "packed": 1.0, "operand_a": size}
        assert number(cpu_traffic.repeat_bytes(cpu_kernel(**words), processor())) == 100 * 7 * element


def test_what_crosses_between_sockets() -> None:
    """Of four sockets three quarters come from others, in both directions where pages lie on all of them."""
    device = processor(core={"count": 8.0, "sockets": 4.0})
    for local, seconds in ((1.0, 48e9 / 16e9), (0.0, 48e9 / 8e9)):
        kernels = cpu_kernel(runtime=CpuRuntime(local=local))
        assert number(cpu_traffic.crossing(kernels, device, row(8.0), row(64e9))) == pytest.approx(seconds)
    assert number(cpu_traffic.crossing(cpu_kernel(), device, row(2.0), row(64e9))) == 0.0
    assert cpu_traffic.crossing(cpu_kernel(), processor(core={"link": None}), row(4.0), row(64e9)).tolist() == [0.0]


def test_a_thread_that_spins_on_the_other_half_of_a_core_slows_it() -> None:
    kernels = Some(**vars(cpu_kernel()), threaded=0.0, items=1e6)
    terms = cpu.CpuTerms(kernels=kernels, device=processor(), precision="fp32", clock=3e9, threads=8.0,
                         constants=default().with_values({"cpu.sibling": 0.75}))  # fmt: skip
    assert number(terms.core_clock) == 3e9
    assert number(terms.speed) == 0.75 * 3e9


# ----------------------------------------------------------------------------------------------------------------- GPU


UNITS = {"register_unit": None, "shared_unit": None, "shared_reserved": None}


def gpu_kernels(columns: int = 1, **words: Any) -> Record:
    """Products of 512 x 512 in tiles of 128 x 128 over steps of 8; words are values of all columns or arrays."""
    usual = {
        "matrix": 1.0, "exps": 0.0, "plain": 0.0, "dense": 0.0, "m": 512.0, "n": 512.0, "k": 64.0, "count": 1.0, "work": 1.0,
        "tile_m": 128.0, "tile_n": 128.0, "tile_k": 8.0, "split": 1.0, "threads": 256.0, "registers": 32.0, "shared": 0.0,
        "cluster": 1.0, "overlapped": 0.0, "score_slots": 4.0, "longest": 1.0,
        "operand_a": 4.0, "operand_b": 4.0, "a_bytes": 0.0, "b_bytes": 0.0, "c_bytes": 0.0,
        "cache_bytes": 0.0, "items": 1.0, "flop": 0.0, "row_bytes": 0.0, "checked": 0.0, "unrolled": 0.0, "chain": 1.0,
        "row_step": 0.0, "row_in_flight": 0.0, "row_reads": 0.0, "round_bytes": np.inf, "run_bytes": np.inf,
        "short_lived": 0.0, "cold": 0.0, "persistent": 0.0, "load": 16.0, "slots": 0.0,
        "reread_bytes": np.inf, "call_bytes": np.inf, "warp_mma": 0.0,
    }  # fmt: skip
    made = {name: np.broadcast_to(np.asarray(value, dtype=float), (columns,)) for name, value in {**usual, **words}.items()}
    return Record(**made, constants=("full",), efficiency=np.zeros(columns, dtype=np.intp))


def test_an_element_wise_kernel_passes_the_l2_once_with_each_tensor() -> None:
    words = {"matrix": 0.0, "a_bytes": 10.0, "b_bytes": 3.0, "c_bytes": 100.0}
    assert number(traffic.l2_bytes(gpu_kernels(**words), row(1.0), row(8.0))) == 113
    assert number(traffic.l2_bytes(gpu_kernels(**words, cache_bytes=114.0), row(1.0), row(8.0))) == 114


def test_a_split_in_two_has_partial_results() -> None:
    assert traffic.partial_bytes(gpu_kernels(3, split=row(1.0, 2.0, 3.0), c_bytes=10.0)).tolist() == [0, 20, 30]


def test_half_the_l2_keeps_the_results_of_the_op_before() -> None:
    """And fewer and fewer of their lines as they outgrow it; a kernel timed alone has no op before it."""
    for size, reads in ((500.0, 7.0), (750.0, 7.0 + 750 * 0.5), (1e4, 7.0 + 1e4)):
        found = traffic.bytes_read(gpu_kernels(a_bytes=7.0, b_bytes=size), row(1e6), 1000.0)
        assert number(found) == pytest.approx(reads, rel=1e-3)
    alone = gpu_kernels(a_bytes=7.0, b_bytes=500.0, round_bytes=1e9)
    assert number(traffic.bytes_read(alone, row(1e6), 1000.0)) == 507.0


def test_a_short_lived_result_that_fits_half_the_l2_is_never_written_to_memory() -> None:
    """And of one of the size of the L2 nothing is spared; a result whose memory nothing else takes is written in any case."""
    for size, written in ((500.0, 0.0), (750.0, 375.0), (1000.0, 1000.0)):
        assert number(traffic.bytes_written(gpu_kernels(c_bytes=size, short_lived=1.0), 1000.0)) == pytest.approx(written)
        assert number(traffic.bytes_written(gpu_kernels(c_bytes=size), 1000.0)) == size


def test_parameters_that_the_run_before_left_in_the_l2_are_not_read_again() -> None:
    words = {"a_bytes": 7.0, "b_bytes": 500.0}
    assert number(traffic.bytes_read(gpu_kernels(**words), row(1e6), 1000.0, retained=1.0)) == 0.0
    assert number(traffic.bytes_read(gpu_kernels(**words), row(1e6), 1000.0, retained=0.5)) == 3.5


@pytest.mark.parametrize(
    ("a", "b", "again"), [(600.0, 1.0, 600 * 3), (1.0, 600.0, 600 * 3), (500.0, 500.0, 0.0), (600.0, 700.0, 3900.0),
                        (500.0, 700.0, 2100.0), (700.0, 500.0, 2100.0)]
)
def test_an_operand_that_the_l2_does_not_keep_is_read_for_every_patch(a: float, b: float, again: float) -> None:
    """4 x 4 tiles, one at a time: each operand four times, unless half the L2 holds it."""
    found = number(traffic.bytes_read(gpu_kernels(a_bytes=a, b_bytes=b), row(1.0), 1000.0))
    assert found == pytest.approx(a + b * max(b / 500.0 - 1, 0) + again)


@pytest.mark.parametrize("words", [{"exps": 1.0}, {"exps": -1.0}, {"matrix": 0.0}])
def test_patches_are_those_of_products_alone(words: dict[str, float]) -> None:
    """Attention has no patches, as its queries pass the keys of one head, nor has what multiplies nothing."""
    found = number(traffic.bytes_read(gpu_kernels(a_bytes=600.0, b_bytes=700.0, **words), row(1.0), 1000.0))
    assert found == 600.0 + 700.0 * (700 / 500 - 1)


@pytest.mark.parametrize(
    ("in_flight", "reads"),
    [(0.0, 3e6), (2.0, 1e6), (4.0, 1e6 * (1 + 2 * (1 - (0.35e5 / 68266.67) ** 2))), (1e9, 1e6 * (1 + 2 * (1 - 0.0525**2)))],
)
def test_rows_are_read_again_from_memory_where_all_in_flight_outgrow_the_l2(in_flight: float, reads: float) -> None:
    """A softmax of 1 MB, read three times by 100 CTAs of 256 threads, over an L2 of 100 KB; 0: nothing is known of its CTAs.

    Two thirds of what is in flight come in between two of the three reads.
    """
    kernels = gpu_kernels(matrix=row(0.0), b_bytes=3e6, row_reads=3.0, row_in_flight=in_flight)
    assert number(traffic.bytes_read(kernels, row(100.0), 1e5, 0.35)) == pytest.approx(reads)


def test_rows_lie_once_in_an_l2_whose_parts_keep_copies_of_what_all_read() -> None:
    kernels = gpu_kernels(matrix=row(0.0), b_bytes=2e6, row_reads=2.0, row_in_flight=2.0)  # 51.2 KB in flight
    halved, whole = (number(traffic.bytes_read(kernels, row(100.0), 1e5, 0.35, whole=size)) for size in (None, 2e5))
    assert halved == pytest.approx(1e6 * (2 - (0.35e5 / 51200) ** 2))
    assert whole == 1e6


def test_rows_of_a_tensor_that_the_l2_holds_come_from_there() -> None:
    kernels = gpu_kernels(matrix=row(0.0), b_bytes=3e4, row_reads=3.0, row_in_flight=16.0)
    assert number(traffic.bytes_read(kernels, row(100.0), 1e5)) == 0.0


@pytest.mark.parametrize(("reach", "clocks"), [(1e9, 0.0), (512e3, 0.0), (256e3, 640.0), (1.0, 1280.0)])
def test_rows_beyond_the_reach_of_an_sm_s_tlb_are_served_one_by_one(reach: float, clocks: float) -> None:
    """Four CTAs with 128 + 128 rows of 500 B each; ten steps, half a clock for each row that is lost."""
    kernels, l1 = gpu_kernels(row_step=500.0), Some(tlb_busy=0.5, tlb_reach=reach)
    assert number(traffic.translated(kernels, l1, row(80.0), row(4.0))) == pytest.approx(clocks, abs=1e-2)
    assert traffic.translated(kernels, Some(tlb_busy=None, tlb_reach=reach), row(80.0), row(4.0)) == 0.0


def test_devices_and_kernels_have_their_own_patches() -> None:
    """A product, an element-wise kernel and a product on two devices, with one and sixteen CTAs at a time."""
    kernels = gpu_kernels(3, matrix=row(1.0, 0.0, 1.0), a_bytes=row(600.0, 600.0, 60.0), b_bytes=row(0.0, 0.0, 0.0))
    slots, cache = np.array([[1.0, 1.0, 1.0], [16.0, 16.0, 2.0]]), np.array([[1000.0], [100.0]])
    assert traffic.bytes_read(kernels, slots, cache).tolist() == [[2400, 600, 60], [600, 600, 120]]  # A twice
    one = gpu_kernels(2, matrix=row(0.0, 1.0), a_bytes=600.0)
    assert np.ravel(traffic.bytes_read(one, row(1.0), 1000.0)).tolist() == [600, 2400]
    three = gpu_kernels(3, matrix=row(1.0, 0.0, 1.0), a_bytes=600.0)
    assert traffic.bytes_read(three, np.array([[1.0, 1.0, 16.0]]), 1000.0).tolist() == [[2400, 600, 600]]


def test_a_patch_has_one_tile_at_least() -> None:
    """One CTA whose tile is four times as long as it is wide, either way round; both operands from memory."""
    for tile_m, tile_n in ((256.0, 64.0), (64.0, 256.0)):
        kernels = gpu_kernels(tile_m=tile_m, tile_n=tile_n, a_bytes=600.0, b_bytes=700.0)
        across_m, across_n = 512 / tile_m, 512 / tile_n
        rows = 2 if tile_n > tile_m else 1  # the square of its area is two tiles high where tiles are flat
        assert number(traffic.bytes_read(kernels, row(1.0), 0.0)) == 600 * across_n + 700 * across_m / rows


def test_an_sm_holds_as_many_ctas_as_its_shared_memory() -> None:
    limits = Some(registers=1e9, shared_memory=8.0, warps=1e3, ctas=32.0, warp=None, schedulers=1.0, **UNITS)
    found = [number(occupancy.resident_ctas(gpu_kernels(shared=size), Some(sm=limits))) for size in (0.0, 1.0, 2.0, 3.0)]
    assert found == [32, 8, 4, 2]


def test_warps_of_64_threads_fill_as_many_slots_with_twice_the_threads() -> None:
    same = {"registers": 1e9, "shared_memory": 1e9, "warps": 16.0, "ctas": 32.0, "schedulers": 1.0, **UNITS}
    narrow, wide = (Some(warp=warp, **same) for warp in (32.0, 64.0))
    kernels = gpu_kernels(threads=256.0)
    assert [number(occupancy.resident_ctas(kernels, Some(sm=sm))) for sm in (narrow, wide)] == [2, 4]


def test_a_warp_is_begun_every_32_threads_and_a_wavefront_every_64() -> None:
    kernels = gpu_kernels(4, threads=row(1.0, 32.0, 65.0, 1024.0))
    found = {warp: occupancy.warps_of(kernels, Some(sm=Some(warp=warp))).tolist() for warp in (None, 32.0, 64.0)}
    assert found == {None: [1, 1, 3, 32], 32.0: [1, 1, 3, 32], 64.0: [1, 1, 2, 16]}


def test_a_tile_may_take_all_the_shared_memory_of_a_cta() -> None:
    kernels = gpu_kernels(3, shared=row(48.0, 49.0, 48.0))
    kernels.kernel_start, kernels.kernel_of = np.array([0]), np.zeros(3, dtype=np.intp)
    chip = Some(sm=Some(shared_memory_cta=48.0, thread_registers=None))
    assert occupancy.runnable(kernels, chip).tolist() == [[True, False, True]]


@pytest.mark.parametrize(("most", "fits"), [(None, [True] * 3), (63.0, [True, False, True]), (20.0, [False, False, True])])
def test_a_tile_may_take_all_the_registers_that_a_thread_can_name(most: float | None, fits: list[bool]) -> None:
    kernels = gpu_kernels(3, registers=row(63.0, 64.0, 32.0), shared=row(1.0, 1.0, 1.0))
    kernels.kernel_start, kernels.kernel_of = np.array([0]), np.zeros(3, dtype=np.intp)
    assert occupancy.runnable(kernels, Some(sm=Some(shared_memory_cta=48.0, thread_registers=most))).tolist() == [fits]


def chip(**words: Any) -> Any:
    made = {"sm": Some(count=10.0, issue_share=None, registers=262144.0, shared_memory=98304.0, warps=64.0, ctas=32.0,
                       warp=32.0, schedulers=4.0, fetch_interval=18.0, pairing="none", issue_width=1.0, **UNITS),
            "rate": Some(fp32=128.0, fp16=256.0, special=16.0, warp_mma=None), "pipe": {"fp32": 128.0, "fp16": 256.0}.__getitem__,
            "has_tensor": lambda precision: False, "l2": Some(size=2e6, bandwidth=1000.0, partitions=None, ways=None),
            "clock": Some(sustained=1e9),
            "l1": Some(tlb_busy=None),
            "memory": Some(bandwidth=300e9, achievable=0.8, latency=500e-9), "launch": Some(latency=3e-6)}  # fmt: skip
    return Some(**{**made, **words})


TENSOR = {"has_tensor": lambda precision: precision == "fp16"}


def test_a_plain_product_uses_neither_tensor_cores_nor_the_rate_of_its_format() -> None:
    kernels = gpu_kernels(4, matrix=row(1.0, 1.0, 0.0, 0.0), plain=row(0.0, 1.0, 0.0, 0.0), dense=row(0.0, 0.0, 1.0, 0.0))
    assert sm.is_product(kernels).tolist() == [True, False, True, False]
    assert sm.on_tensor(kernels, chip(**TENSOR), "fp16").tolist() == [True, False, True, True]


def test_the_results_of_a_thread_are_those_of_all_its_multiplications() -> None:
    """128 x 128 results in 4 products of 256 threads: 16 x 16 each, for which 32 values are loaded."""
    constants = default().with_values({"gemm.kappa": 2.0})
    found = sm.issue_rate(gpu_kernels(work=4.0), chip(), "fp32", constants)
    assert number(found) == pytest.approx(128 / (1 + 2.0 * 2 / 16))
    twice = chip()
    twice.sm.issue_width, twice.sm.pairing = 2.0, "memory"  # loads take slots that multiply-adds could not
    assert number(sm.issue_rate(gpu_kernels(work=4.0), twice, "fp32", constants)) == pytest.approx(128)


def test_mma_of_single_warps_reaches_its_share_of_the_tensor_cores() -> None:
    hopper = chip(rate=Some(fp32=128.0, fp16=256.0, special=16.0, warp_mma=0.6))
    found = sm.issue_rate(gpu_kernels(2, warp_mma=row(0.0, 1.0)), hopper, "fp32", default())
    assert found[..., 1] == pytest.approx(0.6 * found[..., 0])
    assert number(sm.issue_rate(gpu_kernels(warp_mma=1.0), chip(), "fp32", default())) == pytest.approx(found[0])


def test_only_an_attention_kernel_with_one_query_has_its_sm_alone() -> None:
    kernels = gpu_kernels(3, exps=row(0.0, 1.0, 1.0), tile_m=row(1.0, 1.0, 2.0), m=row(9.0, 9.0, 9.0), k=row(9.0, 9.0, 9.0))
    assert sm.neighbours(kernels, chip(), row(20.0, 20.0, 20.0), row(8.0, 8.0, 8.0)).tolist() == [8, 2, 8]


def test_a_softmax_between_products_takes_their_sm_and_other_kernels_have_none() -> None:
    """1024 scores of two exponentials at 16 and 4 instructions at 128 a clock: 192 clocks, at 100 multiplications each."""
    kernels = gpu_kernels(2, exps=row(2.0, 0.0))
    found = sm.softmax_work(kernels, chip(), row(8.0, 8.0), row(100.0, 100.0))
    assert found.tolist() == [128 * 8 * 2 * (1 / 16 + 4 / 128) * 100, 0.0]
    constants = default().with_values({"gemm.page_clk": 0.0})
    two = row(1.0, 1.0)
    work = sm.cta_work(kernels, chip(), 8 * two, two, 2 * two, 100 * two, 60 * two, constants)
    assert work.tolist() == pytest.approx([128 * 128 * 8 + 3000 + found[0], 128 * 128 * 8 + 3000])


def test_a_softmax_issues_an_exponential_and_four_instructions_for_each_score() -> None:
    kernels = gpu_kernels(2, exps=row(2.0, 0.0), m=5.0, k=7.0, count=3.0, flop=1000.0)
    done = sm.work_done(kernels, chip(), row(30.0, 30.0), row(0.0, 0.0), default())
    assert done["issues"].tolist() == [5 * 7 * 3 * 2 * 5, 0.0]
    assert done["macs"].tolist() == [500, 500]


def test_what_a_tile_has_beyond_the_product_switches_as_zeros() -> None:
    """30 CTAs of 128 x 128 x 8 multiply 3,932,160 times, of which the product needs half."""
    kernels = gpu_kernels(2, flop=3932160.0)
    constants = default().with_values({"energy.zeros": 0.5})
    done = sm.work_done(kernels, chip(), row(30.0, 30.0), row(8.0, 2.0), constants)
    assert done["macs"].tolist() == [1966080 + 0.5 * 1966080, 1966080]


def test_a_tile_of_one_query_is_multiplied_on_lanes() -> None:
    kernels = gpu_kernels(3, flop=2000.0, tile_m=row(128.0, 1.0, 128.0), plain=row(0.0, 0.0, 1.0))
    done = sm.work_done(kernels, chip(), row(1.0, 1.0, 1.0), row(0.0, 0.0, 0.0), default())
    assert done["macs"].tolist() == [1000, 0, 0]
    assert done["wide"].tolist() == [0, 1000, 1000]
    sides = gpu_kernels(3, flop=2000.0, tile_m=row(7.0, 8.0, 9.0))
    assert sm.work_done(sides, chip(), row(1.0, 1.0, 1.0), row(0.0, 0.0, 0.0), default())["wide"].tolist() == [1000, 0, 0]


def terms(kernels: Record, precision: str = "fp32", whole_waves: bool = True, **words: Any) -> gpu.GpuTerms:
    constants = default().with_values({"gemm.saturation": 24.0})
    return gpu.GpuTerms(kernels=kernels, device=chip(**words), precision=precision, clock=1e9, constants=constants,
                        whole_waves=whole_waves)  # fmt: skip


def test_pairs_of_halves_take_twice_the_warps_to_fill_an_sm() -> None:
    assert number(terms(gpu_kernels()).fill) == 24 / 8
    assert number(terms(gpu_kernels(), "fp16").fill) == 2 * 24 / 8


def test_how_much_of_the_l2_rows_may_fill_is_a_constant() -> None:
    kernels = gpu_kernels(matrix=row(0.0), b_bytes=3e9, c_bytes=1e9, row_reads=3.0, row_in_flight=16.0)
    held = terms(kernels).in_slots * 256 * 16
    for stay in (0.2, 0.5):
        one = replace(terms(kernels), constants=default().with_values({"l2.rows_stay": stay}))
        found = number(one.reads)
        assert found == pytest.approx(1e9 * (1 + 2 * (1 - min(1.0, stay * one.device.l2.size / number(held)) ** 2)))


def test_without_waves_ctas_spread_evenly() -> None:
    assert number(terms(gpu_kernels(), whole_waves=False).waves) == 16 / 10


def test_products_outside_tensor_cores_move_and_compute_in_turns() -> None:
    kernels = gpu_kernels(3, matrix=row(1.0, 0.0, 1.0), plain=row(0.0, 0.0, 1.0), items=1e6)
    assert terms(kernels, "fp16", **TENSOR).smooth.tolist() == [3, 3, 2]
    assert terms(kernels, "fp32", **TENSOR).smooth.tolist() == [2, 3, 2]


def test_each_kernel_of_a_launch_waits_for_the_one_before() -> None:
    assert gpu.launch_gap(terms(gpu_kernels(2, chain=row(1.0, 2.0)))).tolist() == pytest.approx([3e-6, 6e-6])


def test_the_second_of_several_launches_finds_the_code_of_the_first() -> None:
    card = catalog.find("gtx_1080").device
    found = sm.first_wave(gpu_kernels(3, repeat=row(1.0, 4.0, 16.0)), card, "fp32", default())
    once = default()["gemm.once"] * float(np.ravel(card.sm.fetch_interval)[0])
    assert found.tolist() == pytest.approx([once / n for n in (1, 4, 16)])


def test_a_loop_of_one_kernel_keeps_the_code_of_tensor_cores_in_the_instruction_cache() -> None:
    kernels, card = gpu_kernels(2, repeat=1.0, round_bytes=row(np.inf, 1e6)), catalog.find("a100_sxm4_40gb").device
    interval = float(np.ravel(card.sm.fetch_interval)[0])
    found = sm.first_wave(kernels, card, "bf16", default())
    assert found.tolist() == pytest.approx([default()["gemm.tensor_once"] * interval, 0.0])
    lanes = sm.first_wave(gpu_kernels(2, repeat=1.0, plain=1.0, round_bytes=row(np.inf, 1e6)), card, "fp32", default())
    assert lanes.tolist() == pytest.approx([default()["gemm.once"] * interval] * 2)


def test_a_real_card_has_what_these_records_have() -> None:
    """The records above stand for devices: every name that they use is one of a real card or processor."""
    card, host = catalog.find("gtx_1080").device, catalog.find("i7_6700k").device
    for made, real in ((chip(), card), (processor(), host)):
        for part, value in vars(made).items():
            assert hasattr(real, part), part
            if isinstance(value, SimpleNamespace):
                assert {name for name in vars(value) if not hasattr(getattr(real, part), name)} == set(), part


def still(size: float, partitions: float | None = None, ways: float | None = None) -> float:
    """What an L2 of 1 MB has of a round."""
    return number(resident_share(row(size), Some(l2=Some(size=1e6, partitions=partitions, ways=ways))))


def test_what_a_cache_has_from_the_round_before() -> None:
    """h solves h = exp(-(1 - h) x); two partitions halve the cache; a round that fits stays whole."""
    assert still(1e6) == 1.0
    assert still(2e6) == pytest.approx(np.exp(-(1 - still(2e6)) * 2), rel=1e-3)
    assert still(1e6, partitions=2.0) == still(2e6)
    assert still(np.inf) == pytest.approx(0.0, abs=1e-12)


def test_sets_that_hold_their_lines_of_a_round_hit() -> None:
    """Of a set of two ways the chance of at most two lines, of which it has two times x on average; all but 1/1000 is all."""
    assert still(0.5e6, ways=2.0) == pytest.approx(np.exp(-1.0) * (1 + 1 + 0.5))
    assert still(0.5e6, ways=2.0, partitions=2.0) == still(1e6, ways=2.0)
    assert still(2e6, ways=64.0) < still(2e6, ways=16.0) < still(2e6, ways=4.0)  # the more ways, the sharper the edge
    assert still(0.5e6, ways=64.0) > still(0.5e6, ways=16.0) > still(0.5e6, ways=4.0)
    assert (still(np.inf, ways=16.0), still(0.3e6, ways=16.0)) == (0.0, 1.0)  # P(N > 16) of a mean of 4.8: 1e-5
