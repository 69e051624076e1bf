"""Loops by name: what they load, store and compute, their measured clocks, and how lines, clocks and units bound them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from archsim.base.errors import ArgumentError
from archsim.cycle.core.loops import STREAMED, chase, dot_product, exponential, max_pool, row_sum, streamed
from archsim.cycle.core.machine import core_machine
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.product import block, block_of, by_element
from archsim.cycle.core.run import run_loop
from archsim.device import catalog
from archsim.device.device import Cpu
from archsim.simulate.core import core_of, kernel_loop, simulate_all
from tests.core_loops import zen5
from tests.each import each

MEASURED: list[tuple[CoreLoop, float, float]] = [  # measured clocks, and by how much the simulation may differ
    (streamed("copy", 256, unroll=1), 0.9453, 0.06), (streamed("set", 256), 1.9983, 0.01), (streamed("relu", 512), 3.9988, 0.01),
    (streamed("add", 256), 4.0462, 0.02), (max_pool(256), 2.0951, 0.05), (streamed("divide", 256, unroll=2), 4.9958, 0.01),
    (streamed("root", 256, unroll=2), 8.9917, 0.01), (dot_product(256, accumulators=2), 3.9964, 0.01),
    (dot_product(256, 64, 4), 4.0183, 0.01), (dot_product(512, accumulators=10), 10.298, 0.04),
    (streamed("read", 256, level=2), 2.4492, 0.06), (streamed("triad", 256, level=2), 7.9933, 0.05),
    (streamed("copy", 256, level=3), 8.4536, 0.02), (chase(1), 7.8372, 0.03), (chase(2, footprint=1 << 18), 27.8142, 0.02),
    (exponential(512), 4.4913, 0.10), (exponential(256, unroll=2), 9.0549, 0.10),
]  # fmt: skip


@each(("loop", "clocks", "within"), MEASURED)
def test_a_loop_takes_about_the_clocks_that_were_measured(loop: CoreLoop, clocks: float, within: float) -> None:
    assert run_loop(zen5(), loop).cycles == pytest.approx(clocks, rel=within)


@each("name", sorted(STREAMED))
def test_a_streamed_function_loads_and_stores_what_it_says(name: str) -> None:
    reads, kind, flop = STREAMED[name]
    loop = streamed(name, 256, unroll=3)
    assert loop.bytes_loaded == 3 * 32 * reads
    assert loop.bytes_stored == (0 if name == "read" else 3 * 32)
    assert loop.flop == 3 * 8 * flop
    assert Counter(one.kind for one in loop.operations)[kind] == (3 if kind else 0)
    assert len(loop.streams) == reads + (name != "read")


def test_without_multiply_adds_a_loop_multiplies_and_adds() -> None:
    for loop in (streamed("triad", 256, fused=False), dot_product(256, fused=False), exponential(256, fused=False)):
        kinds = Counter(one.kind for one in loop.operations)
        assert not kinds["fma"]
        assert kinds["mul"] >= kinds["add"] > 0


def test_a_miss_of_the_tlb_takes_the_latency_of_the_cache_that_holds_the_page_tables() -> None:
    """8 B for each page of 4 KiB; 64 MiB have 128 KiB of them, in the L2. What the spec states, or a probe, comes before."""
    core, far = zen5(), chase(4, footprint=64 << 20)
    assert [core.translation_clocks(size << 20) for size in (16, 64, 4096)] == [4.0, 14.0, 50.0]
    assert core.translation_clocks(1 << 38) == core.near[-1][1]
    stated = replace(core, tlb=(*core.tlb[:2], 75.0))
    assert stated.translation_clocks(64 << 20) == 75.0
    loads = run_loop(core, chase(1)).cycles / core.load
    assert run_loop(stated, far).cycles - run_loop(core, far).cycles == pytest.approx((75.0 - 14.0) * round(loads), rel=0.01)


def test_more_accumulators_shorten_the_chain() -> None:
    clocks = [run_loop(zen5(), dot_product(256, accumulators=count)).cycles / count for count in (1, 2, 4)]
    assert clocks == pytest.approx([4.0, 2.0, 1.0], rel=0.02)


def test_a_sum_of_a_row_halves_it_until_one_value_is_left() -> None:
    loop = row_sum(512)
    kinds = Counter(one.kind for one in loop.operations)
    assert kinds["add"] == 4
    assert (kinds["cross"], kinds["shuffle"]) == (2, 2)
    assert loop.bytes_stored == 4


def test_another_name_is_refused() -> None:
    with pytest.raises(ArgumentError, match="not one of copy, set"):
        streamed("move", 256)


# ------------------------------------------------------------ lines, clocks and units

CHANNELS_GBPS = 34.1 * 0.8  # of an i7-6700K: two of DDR4-2133, and the share of it that long streams reach
MEMORY_CLK = 246.0  # 61.5 ns at 4 GHz


def cycles(hardware: str, kernel: str, clock: float | None = None, **settings: str) -> float:
    """Clocks of an iteration."""
    spec = catalog.find(hardware).with_settings({key.replace("__", "."): value for key, value in settings.items()})
    return simulate_all(spec, [kernel_loop(spec, kernel)], clock=clock).loops[0].result.cycles


def rate(hardware: str, kernel: str, **settings: str) -> float:
    """Bytes that a loop loads and stores per clock, as STREAM counts them [B/clk]."""
    loop = kernel_loop(catalog.find(hardware), kernel)
    return (loop.bytes_loaded + loop.bytes_stored) / cycles(hardware, kernel, **settings)


# STREAM counts no line that a store reads first, and none that goes back: of 2, 3 and 4 that cross the bus, 1, 2 and 3.
@each(("kernel", "counted"), [("set", 1 / 2), ("copy", 2 / 3), ("triad", 3 / 4)])
def test_lines_that_are_written_cross_the_bus_of_the_memory_twice(kernel: str, counted: float) -> None:
    assert rate("i7_6700k", f"{kernel} level=4") * 4.0 == pytest.approx(CHANNELS_GBPS * counted, rel=0.01)


@each(("level", "sustained"), [(2, 29.0), (3, 18.0)])
def test_dirty_victims_share_the_bus_of_a_cache(level: int, sustained: float) -> None:
    """29 and 18 B/clk (Intel's manual): a copy moves three lines for two that it counts, a loop of loads one for one."""
    assert rate("i7_6700k", f"copy level={level}") == pytest.approx(sustained * 2 / 3, rel=0.01)
    assert rate("i7_6700k", f"read level={level}") == pytest.approx(sustained, rel=0.02)


def test_dirty_victims_with_wires_of_their_own_slow_no_read() -> None:
    """A Zen 5 takes for copies in the L2 and L3 what the lines that come take (loops measured on an EPYC of that core)."""
    for level, name in ((2, "l2"), (3, "l3")):
        shared = {f"{name}__write_bandwidth": "5 B/clk"}
        read, copy = rate("epyc_9655", f"read level={level}"), rate("epyc_9655", f"copy level={level}")
        assert copy == pytest.approx(read, rel=0.03)
        assert rate("epyc_9655", f"copy level={level}", **shared) == pytest.approx(10.0, rel=0.03)


def test_one_core_reads_what_desktops_with_two_channels_measure() -> None:
    """22 to 26 GB/s with DDR4-2133 (P. Cordes on Skylake's copies; bandwidth tests of the time)."""
    assert 22.0 < rate("i7_6700k", "read level=4") * 4.0 < 26.5


@each(("buffers", "chains"), [(10, 1), (10, 10), (10, 16), (10, 24), (12, 12), (12, 24), (2, 2), (2, 10), (2, 24)])
def test_a_miss_keeps_its_fill_buffer_until_its_line_is_there(buffers: int, chains: int) -> None:
    """Little's law: k chains of misses side by side take max(1, k / buffers) latencies."""
    took = cycles("i7_6700k", f"chase level=4 loads=1 chains={chains}", core__miss_buffers=str(buffers))
    assert took == pytest.approx(MEMORY_CLK * max(1.0, chains / buffers), rel=0.01)


def test_a_skylake_has_twelve_fill_buffers() -> None:
    """ZombieLoad (CCS 2019), Figure 7: as many lines at once, of the client and of the server."""
    for hardware in ("i7_6700k", "i9_9900k", "i9_10980xe", "xeon_platinum_8124m"):
        alone, full, over = (cycles(hardware, f"chase level=4 loads=1 chains={chains}") for chains in (1, 12, 18))
        assert full == pytest.approx(alone, rel=0.01)
        assert over == pytest.approx(1.5 * alone, rel=0.01)


def test_the_mesh_of_a_skylake_x_keeps_its_time_when_cores_run_faster() -> None:
    """About 20 ns to the L3, at which the clock of the core moves only the part within it; the manual's 50 to 70 core clocks."""
    slow, fast = (cycles("i9_10980xe", "chase level=3 loads=1", clock=clock) for clock in (2.4e9, 3.8e9))
    assert (slow, fast) == pytest.approx((50.0, 71.0))
    assert 17.0 < slow / 2.4 < 22.0
    assert fast / 3.8 == pytest.approx(slow / 2.4 - 14 / 2.4 + 14 / 3.8, rel=0.01)
    assert cycles("i9_10980xe", "chase level=3 loads=1", clock=3.6e9, clock__uncore="3.6 GHz") == pytest.approx(50.0)
    assert cycles("i7_6700k", "chase level=3 loads=1", clock=3e9) == 42.0  # the ring follows the cores


@each(("kernel", "clock"), [("chase", 3.8e9), ("scalar exp", 3.8e9), ("triad avx2", 2.9e9), ("triad sse", 2.9e9),
                            ("triad", 2.3e9)])  # fmt: skip
def test_a_loop_has_the_clock_of_the_registers_that_it_uses(kernel: str, clock: float) -> None:
    spec = catalog.find("i9_10980xe")
    assert simulate_all(spec, [kernel_loop(spec, kernel)]).clock_hz == clock
    assert simulate_all(spec, [kernel_loop(spec, one) for one in ("chase", kernel)]).clock_hz <= clock


def test_a_read_of_the_l1_is_as_wide_as_its_loads() -> None:
    """Two loads of 32 B (Intel's manual), which a chain of four maxima of 4 clk would halve."""
    assert rate("i7_6700k", "read") == pytest.approx(64.0, rel=0.01)
    assert rate("i7_6700k", "read unroll=4") == pytest.approx(32.0, rel=0.01)


@each(("hardware", "settings", "share"), [
    ("i7_6700k", {"core.fma_ports": "1"}, 0.5), ("i7_6700k", {"core.simd": "128 bit"}, 0.5),
    ("i7_6700k", {"port.fma": "P0"}, 0.5), ("i7_6700k", {"core.simd": "512 bit"}, 2.0),
    ("i7_6700k", {"pipeline.datapath": "128 bit"}, 0.5),
    ("i9_10980xe", {"core.fma_ports": "1"}, 0.5), ("i9_10980xe", {"port512.fma": "P0"}, 0.5),
    ("epyc_9654", {"core.fma_ports": "2"}, 2.0), ("tegra_x1_cpu", {"hold.fma": "4 clk"}, 0.5),
    ("i9_11900k", {"core.fma_ports": "0.5"}, 0.5), ("xeon_e5_2650_v2", {"core.fma_ports": "0.5"}, 0.5),
])  # fmt: skip
def test_multiply_adds_per_clock_are_one_number_of_both_fidelities(hardware: str, settings: dict[str, str], share: float) -> None:
    """The peak of the closed form, and a block of a product on the simulated core, whatever key says it."""
    spec = catalog.find(hardware)
    before, after = (core_of(one) for one in (spec, spec.with_settings(settings)))
    assert after.pipe("fp32") == pytest.approx(share * before.pipe("fp32"))
    assert block_rate(after) == pytest.approx(share * block_rate(before), rel=0.06)


def block_rate(device: Cpu) -> float:
    """FLOP per clock of a register block as wide as the core."""
    machine, simd = core_machine(device, 3e9), int(float(device.core.simd))
    loop = block(*block_of(machine, simd), 64, simd, fused="fma" in machine.masks, elements=by_element(machine, simd))
    return loop.flop / run_loop(machine, loop).cycles


def test_no_shipped_core_has_other_ports_than_its_spec_says() -> None:
    for name in catalog.names():
        spec = catalog.find(name)
        if spec.kind == "cpu":
            ports = " ".join(str(entry.value) for key, entry in spec.entries.items() if key.startswith("port"))
            assert {*core_machine(core_of(spec), 3e9).ports} == {*ports.split()}
