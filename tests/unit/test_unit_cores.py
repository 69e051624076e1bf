"""What the cores of a CPU do with a kernel, how a product is cut for their caches: numbers that can be multiplied by hand."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest

from archsim.base.errors import Unsupported
from archsim.calibration.constants import default
from archsim.cost import blocking, cores, cpu_traffic, team
from archsim.lower.columns import CpuRuntime
from archsim.stack.loop import LOOP

KIB = 1024.0
RUNTIME = tuple(field.name for field in fields(CpuRuntime))


def machine(**words: Any) -> Any:
    """Four cores of two registers of four lanes each clock: blocks of 4 x 8 results; caches of 32, 256 and 2048 KiB."""
    core = {"count": 4.0, "threads": 8.0, "sockets": 1.0, "simd": 128.0, "registers": 12.0, "fma_latency": 4.0, "fma_ports": 2.0,
            "assist": 160.0, "scalar_ipc": 0.5}  # fmt: skip
    made = {
        "core": Some(**core | words.pop("core", {})), "clock": Some(boost=4e9, turbo=None), "pipe": lambda precision: 8.0,
        "l1": Some(size=32 * KIB, ways=8.0), "l2": Some(size=256 * KIB, ways=4.0),
        "l3": Some(size=2048 * KIB, ways=16.0, shared_by=4.0, latency=40.0), "memory": Some(latency=100e-9), "pipeline": None,
    }  # fmt: skip
    return Some(**{**made, **words})


def kernel(**words: Any) -> Any:
    """A kernel of which nothing is known but what is said."""
    cut = ("channels", "min_rows_per_thread", "tiled")
    flags = dict.fromkeys((*cut, "subnormal", "copied", "dense", "matrix", "packed", "rewritten"), 0.0)
    sizes = {"m": 1.0, "n": 1.0, "k": 1.0, "count": 1.0, "work": 1.0, "flop": 0.0, "items": 1.0, "operand_a": 4.0}
    usual = {"threaded": 1.0, "constants": ("full",), "efficiency": np.array([0])}
    runtime = CpuRuntime(**{word: words.pop(word) for word in RUNTIME if word in words})
    counts = {name: words.pop(name, 0.0) for name in LOOP}
    return Some(**{**flags, **sizes, **usual, "runtime": runtime, "counts": counts, **words})


def number(value: Any) -> float:
    return float(np.ravel(np.asarray(value))[0])


# ------------------------------------------------------------------------------------------------------------ blocking


@pytest.mark.parametrize(("registers", "rows"), [(32.0, 14.0), (16.0, 6.0), (13.0, 4.0), (12.0, 4.0), (5.0, 1.0), (2.0, 1.0)])
def test_a_register_block_takes_all_registers_but_four(registers: float, rows: float) -> None:
    """Whole rows of two registers each, of four lanes; one row in any case."""
    block = blocking.micro_tile(machine(core={"registers": registers}))
    assert tuple(number(side) for side in block) == (rows, 8.0)


@pytest.mark.parametrize(
    ("simd", "fused", "ports", "rate"),
    [(np.inf, 1.0, 2.0, 8.0), (512.0, 1.0, 2.0, 8.0), (64.0, 1.0, 2.0, 4.0), (128.0, 0.0, 2.0, 4.0), (64.0, 0.0, 2.0, 2.0),
     (128.0, 0.0, 1.0, 8.0)],
)  # fmt: skip
def test_instructions_start_as_many_multiply_adds_as_they_name(simd: float, fused: float, ports: float, rate: float) -> None:
    """Of eight in each clock: narrower registers, a multiplication and an addition on two ports; one port has both anyway."""
    found = blocking.library_rate(kernel(simd=simd, fused=fused), machine(core={"fma_ports": ports}), "fp32")
    assert number(found) == rate


@pytest.mark.parametrize(
    ("words", "latency", "rate", "clocks"),
    [
        ({"m": 8.0, "n": 16.0}, 1.0, 8.0, 4 * 4),  # four whole blocks of eight registers, two a clock
        ({"m": 8.0, "n": 16.0}, 7.0, 8.0, 4 * 7),  # each sum waits for the one before it
        ({"m": 9.0, "n": 17.0}, 1.0, 8.0, 2 * (2 * 4 + 2) + (2 * 1 + 1)),  # a single register, a single row, and both
        ({"m": 9.0, "n": 17.0}, 4.0, 8.0, 2 * (2 * 4 + 4) + (2 * 4 + 4)),
        ({"m": 9.0, "n": 17.0}, 4.0, 4.0, 2 * (2 * 8 + 4) + (2 * 4 + 4)),
        ({"m": 9.0, "n": 17.0, "packed": 0.0}, 1.0, 8.0, 4 * (1 * 4 + 2) + (1 * 1 + 1)),  # 17 pixels in rows, 9 channels in lanes
        ({"m": 9.0, "n": 17.0, "count": 5.0}, 1.0, 8.0, 5 * 23),
        ({"m": 3.0, "n": 4.0}, 1.0, 8.0, 1.5),
    ],
)
def test_a_step_of_k_takes_each_block_its_multiply_adds_or_their_latency(
    words: dict[str, float], latency: float, rate: float, clocks: float
) -> None:  # fmt: skip
    product = kernel(**{"matrix": 1.0, "packed": 1.0, **words})
    assert number(blocking.block_step(product, machine(core={"fma_latency": latency}), np.array([rate]))) == clocks


def test_a_panel_of_the_first_level_leaves_a_way_and_takes_one_step_at_least() -> None:
    """7 ways of 4 KiB for (4 + 8) values of 4 B, and a cache that does not hold two steps."""
    assert number(blocking.panel_depth(machine(), 4.0)) == 7 * 4096 // 48
    assert number(blocking.panel_depth(machine(l1=Some(size=100.0, ways=4.0)), 4.0)) == 1.0
    assert number(blocking.panel_depth(machine(l1=Some(size=8.0, ways=4.0)), 4.0)) == 1.0


def test_a_block_of_the_second_level_leaves_the_ways_of_a_panel_and_of_the_results() -> None:
    """kc = 597 steps of 8 columns are 19104 B, one way of 64 KiB; the two ways that are left hold 54 rows.

    Values of 8 B have kc = 298, and still one way; of ways of 16 KiB a panel takes two.
    """
    assert number(blocking.block_rows(machine(), 4.0)) == 2 * 65536 // (597 * 4)
    assert number(blocking.block_rows(machine(), 8.0)) == 2 * 65536 // (298 * 8)
    assert number(blocking.block_rows(machine(l2=Some(size=128 * KIB, ways=8.0)), 4.0)) == 5 * 16384 // (597 * 4)
    for small in (2 * KIB, 24 * KIB):  # the panel takes all ways, or more than there are: one row in any case
        assert number(blocking.block_rows(machine(l2=Some(size=small, ways=4.0)), 4.0)) == 1.0


def test_a_block_of_the_last_level_leaves_the_blocks_of_all_cores_and_one_way() -> None:
    """4 cores with 54 rows of 597 steps: 515,808 B in ways of 128 KiB are 4; 11 ways hold 603 columns."""
    assert number(blocking.block_columns(machine(), 4.0)) == 11 * 131072 // (597 * 4)
    crowded = machine(l3=Some(size=512 * KIB, ways=16.0, shared_by=4.0))  # ways of 32 KiB, of which the blocks take 16
    assert number(blocking.block_columns(crowded, 4.0)) == 32768 // (597 * 4)  # one way is left in any case
    assert number(blocking.block_columns(machine(l3=Some(size=KIB, ways=16.0, shared_by=4.0)), 4.0)) == 1.0
    two = machine(l3=Some(size=16 * 4000.0, ways=16.0, shared_by=4.0))
    assert number(blocking.block_columns(two, 4.0)) == 1.0  # 4000 B hold one column of 2388 B


def test_panels_of_halves_are_twice_as_deep_and_a_value_has_a_byte_at_least() -> None:
    """kc = 1194 for values of 2 B and 2389 for bytes, as for a kernel that says nothing of its values."""
    for size, panels in ((4.0, 5), (2.0, 3), (1.0, 2), (0.0, 2)):
        assert number(blocking.panels_of(kernel(packed=1.0, k=2400.0, operand_a=size), machine())) == panels
    assert number(blocking.panels_of(kernel(k=2400.0), machine())) == 1.0


# --------------------------------------------------------------------------------------------------------------- cores


def test_a_loop_over_one_block_of_channels_has_work_for_one_core() -> None:
    for blocks, items, busy in ((1.0, 1e6, 1.0), (2.0, 1e6, 2.0), (9.0, 1.0, 4.0), (0.0, 1e6, 4.0), (0.0, 1.0, 1.0),
                               (0.0, 0.0, 1.0)):  # fmt: skip
        found = team.active_cores(kernel(channels=4 * blocks, block_registers=1.0, items=items), machine(), 8.0)
        assert number(found) == busy, (blocks, items)


def test_only_a_product_is_too_narrow_for_its_threads() -> None:
    narrow = {"m": 100.0, "n": 7.0, "min_rows_per_thread": 2.0, "items": 700.0}
    assert number(team.active_cores(kernel(**narrow, matrix=0.0), machine(), 4.0)) == 4.0
    assert number(team.active_cores(kernel(**narrow, matrix=1.0), machine(), 4.0)) == 1.0
    assert number(team.active_cores(kernel(**narrow, matrix=1.0), machine(), 3.0)) == 3.0


def test_threads_that_spin_keep_the_whole_team_awake_and_no_more() -> None:
    for spin, threads, workers, awake in ((1.0, 3.0, 1.0, 3.0), (1.0, 8.0, 1.0, 4.0), (0.0, 8.0, 1.0, 1.0), (1.0, 1.0, 2.0, 2.0)):
        assert number(team.awake_cores(kernel(spin=spin), machine(), np.array([workers]), threads)) == awake


def test_a_single_block_occupies_no_more_than_one_core() -> None:
    for blocks, workers, expected in ((1.0, 4.0, True), (4.0, 4.0, True), (5.0, 4.0, False), (0.0, 4.0, False), (0.0, 3.0, True)):
        one = kernel(channels=4 * blocks, block_registers=1.0)
        assert bool(team.unoccupied(one, machine(), np.array([workers]))) is expected, (blocks, workers)


def test_register_blocks_are_those_of_all_products() -> None:
    """Nine rows in blocks of four, 17 columns in blocks of eight; 17 pixels are the rows of a direct convolution."""
    assert number(team.register_blocks(kernel(m=9.0, n=17.0, count=5.0, packed=1.0), machine())) == 3 * 3 * 5
    assert number(team.register_blocks(kernel(m=9.0, n=17.0, count=5.0, packed=0.0), machine())) == 5 * 2 * 5


def test_copying_is_divided_as_the_work_is() -> None:
    """Panels of one block are copied by the core that computes it; without blocks by all cores alike."""
    constants = default().with_values({"cpu.pack_clk": 2.0})
    for blocks, expected in ((1.0, 1.0), (2.0, 0.5), (0.0, 0.25)):
        one = kernel(channels=4 * blocks, block_registers=1.0, copied=1000.0, flop=0.0, scalar_copies=1.0)
        assert number(cores.busiest_clocks(one, machine(), "fp32", np.array([4.0]), 4.0, constants)) == 2000 * expected


FAMILY = default().with_values({"conv.fft": 0.5, "loop.steps_clk": 3.0})


def test_a_product_issues_its_blocks_at_the_rate_that_its_family_reaches() -> None:
    """Six blocks of 32 results, k = 50 and a step for the result, three multiplications for each, at half of 8 a clock."""
    words = {"matrix": 1.0, "m": 8.0, "n": 8.0, "k": 50.0, "count": 3.0, "work": 3.0, "constants": ("conv.fft",)}
    assert number(cores.core_clocks(kernel(**words), machine(), "fp32", 1.0, FAMILY)) == 6 * 32 * 51 * 3 / 4
    assert number(cores.core_clocks(kernel(**words, steps=7.0), machine(), "fp32", 1.0, FAMILY)) == 6 * 32 * 51 * 3 / 4 + 21
    assert number(cores.core_clocks(kernel(**words, fused=0.0), machine(), "fp32", 1.0, FAMILY)) == 6 * 32 * 51 * 3 / 2


def test_an_element_wise_kernel_that_multiplies_as_a_product_does_has_its_rate() -> None:
    """960 FLOP at two for each of 8 multiplications a clock, of which the family reaches half: 120 clocks."""
    words = {"flop": 960.0, "constants": ("conv.fft",)}
    assert number(cores.core_clocks(kernel(**words, dense=1.0), machine(), "fp32", 1.0, FAMILY)) == 120
    assert number(cores.core_clocks(kernel(**words), machine(), "fp32", 1.0, FAMILY)) == 2880  # else three clocks for each


@pytest.mark.parametrize(
    ("words", "workers", "threads", "share"),
    [
        ({"matrix": 1.0, "m": 9.0, "n": 17.0, "packed": 1.0}, 4.0, 4.0, 3 / 9),  # nine blocks
        ({"matrix": 1.0, "m": 9.0, "n": 17.0}, 4.0, 4.0, 3 / 10),  # ten, of pixels and channels
        ({"matrix": 1.0, "m": 4.0, "n": 8.0, "packed": 1.0}, 4.0, 4.0, 1.0),  # one block
        ({"matrix": 1.0, "channels": 4.0, "m": 9.0, "n": 17.0}, 4.0, 4.0, 1.0),  # one block
        ({"channels": 24.0}, 4.0, 4.0, 2 / 6),
        ({"channels": 68.0}, 4.0, 4.0, 5 / 17),
        ({}, 4.0, 4.0, 1 / 4),
        ({}, 1.0, 4.0, 1.0),
        ({"min_rows_per_thread": 1.0, "n": 100.0}, 4.0, 4.0, 28 / 100),  # strips of 25, seven registers
        ({"min_rows_per_thread": 1.0, "n": 98.0}, 4.0, 4.0, 28 / 98),  # of 24.5, cut as 25
        ({"min_rows_per_thread": 1.0, "n": 97.0}, 4.0, 3.0, 36 / 97),  # of 33: nine registers; a core has no more than one thread
        ({"min_rows_per_thread": 1.0, "n": 100.0}, 4.0, 8.0, 2 * 16 / 100),  # two strips of 13 for each core
        ({"min_rows_per_thread": 1.0, "n": 2.0}, 2.0, 2.0, 1.0),  # a register holds more than all columns
        ({"min_rows_per_thread": 1.0, "n": 100.0}, 2.0, 2.0, 52 / 100),
        ({"min_rows_per_thread": 1.0, "n": 100.0}, 1.0, 4.0, 1.0),  # one core does not cut
    ],
)
def test_the_share_of_the_busiest_core(words: dict[str, float], workers: float, threads: float, share: float) -> None:
    found = team.busiest_share(kernel(**words, block_registers=1.0), machine(), np.array([workers]), threads)
    assert number(found) == pytest.approx(share, rel=1e-15)


NEAR, FAR = 20.0, 100.0  # ns: two latencies of 40 clocks at 4 GHz, and that of memory


def forked(workers: float, threads: float, device: Any = None, **words: float) -> float:
    """Time of a fork and join [ns] of a product with three panels."""
    of = default().with_values({"cpu.wake_s": 1e-6, "cpu.rouse_clk": 6e3, "cpu.call_clk": 2e3})
    found = team.fork_join(kernel(**words), device or machine(), np.array([workers]), threads, np.array([3.0]), of)
    return number(found) * 1e9


def test_a_fork_that_writes_lines_of_each_thread_takes_a_call_and_a_line_for_each() -> None:
    assert forked(4.0, 4.0, fork_cache_lines=8.0) - forked(4.0, 4.0) == pytest.approx(1000 + 8 * 3 * NEAR)


def test_all_threads_of_openmp_join_a_loop_of_fewer_pieces_and_none_a_serial_one() -> None:
    assert forked(1.0, 4.0, fork_cache_lines=8.0) == forked(4.0, 4.0, fork_cache_lines=8.0) > 0
    assert forked(1.0, 4.0, fork_cache_lines=8.0, threaded=0.0) == forked(1.0, 4.0) == 0


def test_the_last_of_many_threads_is_late() -> None:
    of = default().with_values({"cpu.straggle": 0.05})
    late = team.last_of(kernel(fork_cache_lines=8.0), np.array([1.0, 2.0, 16.0]), of)
    assert late.tolist() == pytest.approx([1.0, 1.05, 1.2])
    assert team.last_of(kernel(), np.array([16.0]), of).tolist() == [1.0]


def test_images_are_unfolded_in_tiles_as_large_as_a_second_level() -> None:
    """Four of 256 KiB: on two threads two each, on three the first has two; product and copy alike."""
    whole = 1024 * KIB
    assert number(team.active_cores(kernel(tiled=whole, items=1e6), machine(), 8.0)) == 4
    assert number(team.active_cores(kernel(tiled=1.0, items=1e6), machine(), 8.0)) == 1
    one = kernel(tiled=whole, matrix=1.0, items=1e6)
    assert [number(cores.copy_share(one, machine(), np.array([n]), n)) for n in (1.0, 2.0, 3.0, 8.0)] == [1, 0.5, 0.5, 0.25]
    assert number(team.active_cores(one, machine(), 8.0)) == 4  # the product itself divides freely


def test_further_sweeps_read_from_memory_what_the_cache_does_not_hold() -> None:
    """Eight blocks of channels: two threads go through B four times each, side by side; 1 MiB of it is beyond the third level."""
    one = kernel(packed=1.0, channels=64.0, block_registers=2.0, b_bytes=3 * 1024 * KIB, a_bytes=0.0, c_bytes=0.0,
                 both_activations=0.0)  # fmt: skip
    read = [number(cpu_traffic.memory_bytes(one, machine(), np.array([n]), 0.0)) for n in (1.0, 2.0)]
    assert read == [(3 + 7 * 1) * 1024 * KIB, (3 + 3 * 1) * 1024 * KIB]
    assert number(cpu_traffic.sweeps_of(kernel(channels=64.0, block_registers=2.0), machine(), np.array([1.0]))) == 1


def test_threads_that_sleep_are_woken_one_by_one() -> None:
    """6,000 clocks of a core of 4 GHz, half a Haswell at one clock, for each."""
    asleep = [forked(n, 4.0, fork_cache_lines=8.0, spin=0.0) - forked(n, 4.0) for n in (1.0, 2.0, 4.0)]
    assert asleep == pytest.approx([0, 3000 + 8 * NEAR, 3 * (3000 + 8 * NEAR)])


def test_two_threads_wait_once_for_each_panel_and_one_never() -> None:
    """A join and a fork are a line each; a BLAS starts each further thread, and each of three panels takes four lines of it."""
    assert forked(2.0, 2.0) == pytest.approx(2 * NEAR)
    assert forked(2.0, 2.0, min_rows_per_thread=1.0) == pytest.approx(2 * NEAR + 1000 + 3 * 4 * NEAR)
    assert forked(1.0, 1.0, min_rows_per_thread=1.0) == forked(1.0, 4.0, min_rows_per_thread=1.0) == forked(0.5, 1.0) == 0.0


def test_a_counter_serves_its_threads_one_after_the_other() -> None:
    assert [forked(n, n) for n in (2.0, 3.0, 4.0)] == pytest.approx([2 * NEAR, 4 * NEAR, 6 * NEAR])


def test_lines_between_instances_of_the_last_level_take_as_long_as_memory() -> None:
    """Two pairs of cores: half of all lines come from afar."""
    pairs = machine(l3=Some(shared_by=2.0, latency=40.0))
    assert [number(team.instances_used(pairs, n)) for n in (0.0, 1.0, 2.0, 3.0, 4.0)] == [1, 1, 1, 2, 2]
    assert forked(2.0, 2.0, pairs) == pytest.approx(2 * NEAR)
    assert forked(4.0, 4.0, pairs) == pytest.approx(2 * 3 * (NEAR + FAR) / 2)
    assert forked(4.0, 4.0, machine(l3=None, l2=Some(shared_by=4.0, latency=20.0))) == pytest.approx(6 * NEAR / 2)


@pytest.mark.parametrize(
    ("threads", "words", "busy"),
    [(4.0, {}, 1.0), (5.0, {}, 1.25), (8.0, {}, 2.0), (99.0, {}, 2.0), (8.0, {"channels": 24.0}, 1.5),
     (8.0, {"channels": 12.0}, 1.0), (8.0, {"threaded": 0.0}, 1.0)],
)  # fmt: skip
def test_hyper_threads_are_taken_once_every_core_has_a_thread(threads: float, words: dict[str, float], busy: float) -> None:
    found = kernel(items=1e6, block_registers=1.0, **words)
    workers = team.active_cores(found, machine(), threads)
    assert number(team.siblings(found, machine(), workers, threads)) == busy


def test_hyper_threads_hide_waiting_and_issue_no_faster() -> None:
    """Scalar code gains up to the share of clocks in which it issues, a product and a vectorised loop nothing."""
    of = default().with_values({"cpu.issue": 0.75, "loop.steps_clk": 4.0, "cpu.vector_flop": 4.0})

    def clocks(threads: float, **words: Any) -> float:
        return number(cores.busiest_clocks(kernel(items=1e6, **words), machine(), "fp32", np.array([4.0]), threads, of))

    for words in ({"steps": 1600.0}, {"flop": 1600.0}):  # loops that are known, and one of which nothing is
        assert [clocks(threads, **words) for threads in (4.0, 5.0, 8.0)] == [1600, 1280, 1200]
    for words in ({"flop": 1600.0, "vectorised": 1.0}, {"matrix": 1.0, "m": 16.0, "n": 8.0}, {"copied": 1600.0}):
        assert clocks(8.0, **words) == clocks(4.0, **words)


def test_channels_of_a_row_are_cut_into_blocks_of_registers() -> None:
    """33 channels in blocks of two registers of four lanes are five: two for one core."""
    rows = kernel(matrix=1.0, channels=33.0, block_registers=2.0, items=1e6)
    assert number(team.pieces_of(rows, machine())) == 5
    assert number(team.busiest_share(rows, machine(), np.array([4.0]), 4.0)) == 2 / 5
    assert number(team.active_cores(kernel(channels=17.0, block_registers=2.0), machine(), 8.0)) == 3


@pytest.mark.parametrize(("words", "macs", "issues"), [
    ({"matrix": 1.0}, 1e6, 0.0), ({"dense": 1.0}, 1e6, 0.0), ({"matrix": 1.0, "dense": 1.0}, 1e6, 0.0), ({}, 0.0, 1e6),
    ({"matrix": 1.0, "copied": 5e5}, 1e6, 5e5),  # values that go into panels
])  # fmt: skip
def test_arithmetic_takes_the_energy_of_multiplications_or_of_instructions(
    words: dict[str, float], macs: float, issues: float
) -> None:
    done = cores.work_done(kernel(flop=2e6, **words), np.array([3.0]))
    assert (number(done["macs"]), number(done["issues"]), number(done["units"])) == (macs, issues, 3.0)


def test_a_second_loop_over_the_result_takes_the_time_of_its_arithmetic() -> None:
    def clocks(**words: Any) -> float:
        return number(cores.core_clocks(kernel(**words), machine(), "fp32", 1.0, default()))

    for matrix in (0.0, 1.0):
        assert clocks(matrix=matrix, rewritten=800.0) - clocks(matrix=matrix) == pytest.approx(200.0)


def test_instructions_with_a_subnormal_operand_go_to_microcode_one_by_one() -> None:
    """Of four lanes with one value in ten subnormal each, 1 - 0.9^4 of the instructions have at least one."""
    product = {"matrix": 1.0, "packed": 1.0, "m": 40.0, "n": 80.0, "k": 50.0}
    plain, some = (kernel(**product, subnormal=share) for share in (0.0, 0.1))
    assert cores.assist_clocks(plain, machine()) == 0.0
    instructions = 40 * 80 * 50 / 4
    assert number(cores.assist_clocks(some, machine())) == pytest.approx(instructions * (1 - 0.9**4) * 160)
    narrow = kernel(**product, subnormal=0.1, simd=32.0)
    assert number(cores.assist_clocks(narrow, machine())) == pytest.approx(40 * 80 * 50 * 0.1 * 160)
    took = [number(cores.core_clocks(one, machine(), "fp32", 1.0, default())) for one in (plain, some)]
    assert took[1] - took[0] == pytest.approx(instructions * (1 - 0.9**4) * 160)


def test_a_core_of_which_no_assist_is_known_multiplies_no_subnormal_numbers() -> None:
    with pytest.raises(Unsupported, match=r"core\.assist; --set core\.assist"):
        cores.assist_clocks(kernel(matrix=1.0, subnormal=0.1), machine(core={"assist": None}))


def test_simd_instructions_of_a_loop_start_as_multiply_adds_do() -> None:
    cpu = machine()
    loop = kernel(vectors=800.0, vectorised=1.0)
    assert number(cores.core_clocks(loop, cpu, "fp32", 1.0, FAMILY)) == 800 / 8
    assert number(cores.core_clocks(loop, cpu, "fp32", 0.5, FAMILY)) == 800 / 8  # hyper-threads share the pipes
