"""Lines on their way to a core and back: what published machines sustain, and laws of buffers, buses and clocks."""

from __future__ import annotations

from typing import Any

import pytest

from archsim.cycle.core.machine import core_machine
from archsim.cycle.core.product import block, block_of, by_element
from archsim.cycle.core.run import run_loop
from archsim.device import catalog
from archsim.device.device import Cpu
from archsim.simulate.core import core_of, kernel_loop, simulate_all
from tests.each import each

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
    faster: dict[str, Any] = {"clock__uncore": "3.6 GHz"}
    assert cycles("i9_10980xe", "chase level=3 loads=1", clock=3.6e9, **faster) == pytest.approx(50.0)
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
