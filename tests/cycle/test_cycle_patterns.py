"""Access patterns and curves of microbenchmarks: what their programs show of the machine."""

from importlib.util import find_spec

import pytest

from archsim.base.errors import Unsupported
from archsim.cycle.machine import machine_of, memory_shares, translation
from archsim.cycle.patterns import pattern_value
from archsim.device.catalog import find
from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.evidence.case import AccessPattern
from archsim.simulate.curves import LAW, SimulatedCurve, core_curve, sm_curve
from archsim.simulate.sm import SimulatedSm, simulate_sm
from tests.each import each


def changed(hw: str, **settings: str) -> Spec:
    return find(hw).with_settings({key.replace("__", "."): value for key, value in settings.items()})


def gpu(hw: str, **settings: str) -> Gpu:
    device = changed(hw, **settings).device
    assert isinstance(device, Gpu)
    return device


def value(device: Gpu, benchmark: str, kernel: str, *, element: int = 8, threads: int = 256, blocks: int = 2, size: float = 0.0,
          variant: str = "", **words: str) -> float:  # fmt: skip
    p = AccessPattern(benchmark=benchmark, kernel=kernel, variant=variant, element=element, threads=threads, blocks=blocks,
                      size=size, stride=0.0, words=words)  # fmt: skip
    return pattern_value(device, float(device.clock.boost), p, "fp32")


def test_a_set_that_each_half_of_a_split_l2_can_keep_is_faster() -> None:
    a100, a40 = gpu("a100_sxm4_80gb"), gpu("a40")
    first, between, beyond = (value(a100, "gpu-l2-stream", "read", size=size) for size in (15e6, 26e6, 60e6))
    assert first > between > beyond
    first, between = (value(a40, "gpu-l2-stream", "read", size=size) for size in (3.2e6, 6.2e6))
    assert first == between  # its L2 is one


def test_stores_leave_an_sm_more_slowly_than_loads_come() -> None:
    """gpu-l2-stream of an A100: 2.4 to 2.6 TB/s of stores into the L2, where a chip without that limit would take 5."""
    a100 = gpu("a100_sxm4_80gb")
    written = value(a100, "gpu-l2-stream", "write", threads=1024, size=8e6)
    assert written == pytest.approx(2.5e12, rel=0.1)
    assert value(gpu("a100_sxm4_80gb", l1__write_bandwidth="64 B/clk"), "gpu-l2-stream", "write", threads=1024, size=8e6) > 4e12


@pytest.mark.parametrize(("hw", "copies", "sums", "reads"), [
    ("tesla_v100_sxm2", 807, 846, 892), ("tesla_p100_pcie_16gb", 543, 559, 605), ("a100_sxm4_40gb", 1388, 1399, 1435),
    ("rtx_2080_ti", 546, 556, 574), ("titan_xp", 433, 436, 436),
])  # fmt: skip
def test_memory_turns_between_reads_and_writes(hw: str, copies: float, sums: float, reads: float) -> None:
    """BabelStream, GB/s: copies write one half, sums of two arrays a third, dot nothing."""
    device = gpu(hw)
    n = str(1 << 25)
    assert value(device, "babelstream", "copy", n=n) / 1e9 == pytest.approx(copies, rel=0.03)
    assert value(device, "babelstream", "add", n=n) / 1e9 == pytest.approx(sums, rel=0.03)
    assert float(device.memory.bandwidth) * memory_shares(device)[1] / 1e9 == pytest.approx(reads, rel=0.08)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_three_operands_take_the_register_ports_of_a_chip_that_issues_each_clock() -> None:
    """gpu-roofline, 512 multiply-adds: an A40 reaches 0.63 of its peak, an A100, which issues every other clock, 0.98.

    Two ports give the three operands of two instructions in three clocks: 0.67 at most.
    """
    for hw, blocks, share in (("a40", 6, 0.63), ("a100_sxm4_40gb", 8, 0.98)):
        device = gpu(hw)
        flop = value(device, "gpu-roofline", "fma_fp32", element=4, blocks=blocks, its="256") * 514 / 8
        assert flop / float(device.peak_flops("fp32", float(device.clock.boost))) == pytest.approx(share, rel=0.05)


def test_the_chip_starts_small_ctas_one_after_the_other() -> None:
    a100 = gpu("a100_sxm4_80gb", launch__latency="1 ns")
    n, threads = 400_000, 8
    time = 16 * n / value(a100, "gpu-small-kernels", "scale", threads=threads, size=16 * n, variant="plain", n=str(n))
    assert n / threads / (time * float(a100.clock.boost)) == pytest.approx(0.95, rel=0.03)
    with pytest.raises(Unsupported, match="graph"):
        value(a100, "gpu-small-kernels", "scale", size=16 * n, variant="graph", n=str(n))


def test_a_kernel_takes_the_gap_of_the_device_besides_its_work() -> None:
    short, long = (16 * 4096 / value(gpu("a40", launch__latency=gap), "gpu-small-kernels", "scale", size=16 * 4096,
                                     variant="plain", n="4096") for gap in ("1 us", "3 us"))  # fmt: skip
    assert long - short == pytest.approx(2e-6)


def strided(hw: str, stride: float, element: int = 4) -> float:
    p = AccessPattern(benchmark="gpu-strides", kernel="stride", variant="", element=element, threads=1024, blocks=1, size=0.0,
                      stride=stride)  # fmt: skip
    device = gpu(hw)
    return pattern_value(device, float(device.clock.boost), p, "fp32")


def test_a_stride_takes_turns_of_data_banks_or_of_tags() -> None:
    """gpu-strides of an A40, clocks of a load of 4 B: counters say that tags take them, unless the stride is even by 8."""
    measured = {1: 2.0, 4: 4.0, 7: 2.67, 9: 3.03, 16: 16.0, 17: 5.1, 31: 8.5, 32: 32.0, 47: 10.1, 57: 9.2, 64: 32.0}
    for stride, clocks in measured.items():
        assert strided("a40", stride) == pytest.approx(clocks, rel=0.07), stride
    assert strided("a40", 1, element=8) == pytest.approx(8.0)  # of two fp64 multiply-adds a clock
    assert strided("a100_sxm4_80gb", 1, element=8) == pytest.approx(2.0)


def test_warps_of_a_cta_begin_one_after_the_other() -> None:
    """gpu-stream `init`, one block on each SM of a V100: 362 clocks of a warp, 383 of five."""
    v100 = gpu("tesla_v100_pcie_16gb")
    one, five = (value(v100, "gpu-stream", "init", threads=threads, blocks=1) / threads for threads in (32, 160))
    assert one / five == pytest.approx(383 / 362, rel=0.01)


def test_a_scheduler_that_waits_for_its_own_turn_does_not_hold_the_port_of_the_others() -> None:
    """gpu-cache, a buffer in the L1 of an A40: 64 B a clock for 512 threads, whenever their warps began."""
    for gap in ("0.1 clk", "5 clk", "8 clk"):
        device = gpu("a40", sm__warp_interval=gap)
        found = value(device, "gpu-cache", "sum2", element=4, threads=512, size=65536.0)
        assert found / (84 * float(device.clock.boost)) == pytest.approx(64.0, rel=0.02)


def test_powers_read_once_until_arithmetic_takes_longer() -> None:
    device = gpu("titan_x_maxwell")
    few, many = (value(device, "mixbench_ro", "fp32", element=4, size=2.0**27, its=its, fused="1") for its in ("0", "96"))
    assert few == pytest.approx(float(device.memory.bandwidth) * memory_shares(device)[1], rel=0.05)
    assert many < few / 2
    others = (("mixbench_ro", "fp64"), ("gpu-roofline", "fma_fp64"), ("babelstream", "dot"), ("shmembench", "swap"))
    for benchmark, kernel in others:
        with pytest.raises(Unsupported, match="has no program"):
            value(device, benchmark, kernel, its="1", n="1000")


def test_a_stream_of_blocks_gets_what_memory_gives() -> None:
    device = gpu("tesla_p100_pcie_16gb")
    assert value(device, "babelstream", "copy", size=5e8, n="33554432") == pytest.approx(5.4e11, rel=0.03)


def test_a_page_is_found_with_the_probability_that_the_tlb_reaches_it() -> None:
    """gpu-latency of a V100: 426 clocks in 32 MiB, 430 in 64 MiB, 434 far beyond."""
    v100 = gpu("tesla_v100_pcie_16gb")
    near, double, far = (value(v100, "gpu-latency", "pchase", size=size) for size in (2.0**25, 2.0**26, 2.0**31))
    assert double - near == pytest.approx(4.0, abs=0.1)
    assert far - near == pytest.approx(8.0, abs=0.3)
    deep = value(v100, "gpu-latency", "pchase", size=2.0**36) - near
    assert deep == pytest.approx(8.0 + 650 * (1 - 1 / 8), abs=1.0)


def test_in_order_an_sm_meets_a_page_once() -> None:
    v100 = gpu("tesla_v100_pcie_16gb", l1__tlb_miss="1000 clk")
    assert translation(v100, 1e6, 80.0) == 0.0
    assert translation(v100, 1e9, 80.0) == pytest.approx(1000 * 80 * 128 / 2**21)
    assert translation(gpu("gtx_1080"), 1e9, 20.0, wandering=True) == 0.0  # nobody has published its TLB
    on = machine_of(v100, 1e9, covered=1e9)
    assert on.dram == pytest.approx(machine_of(v100, 1e9).dram + translation(v100, 1e9, 80.0))


def test_ctas_enter_an_sm_as_the_whole_chip_starts_them() -> None:
    a100 = gpu("a100_sxm4_40gb")
    assert machine_of(a100, 1e9).cta_interval == pytest.approx(108 / 0.95)
    assert machine_of(a100, 1e9, sharing=1).cta_interval == pytest.approx(1 / 0.95)
    assert machine_of(gpu("gtx_1080"), 1e9).cta_interval == 1.0


# -------------------------------------------------------------------------------------------------------------------- curves


def curve_of(hw: str, words: str, **settings: str) -> SimulatedCurve:
    return (core_curve if words.startswith("chains") else sm_curve)(changed(hw, **settings), words)


def enough(curve: SimulatedCurve, name: str) -> float:
    line = curve.lines[name]
    return next(at for at, value in zip(curve.at, line, strict=True) if value >= 0.98 * max(line))


# Jia et al. 2018 and 2019, Abdelkhalik et al. 2022: 6, 4 and 4 clk of latency; lanes as in the CUDA programming guide
@each(("hw", "alone", "both", "rate"), [("gtx_1080", 24, 12, 128), ("tesla_v100_sxm2", 8, 4, 64), ("h100_sxm5_80gb", 16, 8, 128)])
def test_warps_that_hide_the_latency_of_a_multiply_add(hw: str, alone: int, both: int, rate: int) -> None:
    curve = curve_of(hw, "warps")
    assert enough(curve, "ILP 1") == alone
    assert enough(curve, "ILP 2") == both
    assert max(curve.lines["ILP 1"]) == pytest.approx(rate, rel=0.02)


def test_twice_the_latency_takes_twice_the_warps() -> None:
    assert enough(curve_of("gtx_1080", "warps", sm__alu_latency="12clk"), "ILP 1") == 2 * 24


@each("hw", ["tesla_k40", "gtx_1080", "tesla_v100_sxm2", "a100_sxm4_40gb", "rtx_4090"])
def test_a_copy_stays_below_the_bandwidth_and_littles_law_and_comes_near_both(hw: str) -> None:
    curve, device = curve_of(hw, "bytes-in-flight"), gpu(hw)
    for name, line in curve.lines.items():
        shares = [value / law for value, law in zip(line, curve.lines[LAW], strict=True) if value is not None]
        assert shares[0] > 0.7, name  # nothing else is under way
        assert max(shares) < 1.01, name  # the first and the last trip are not whole
        assert 0.6 < [value for value in line if value is not None][-1] / float(device.memory.bandwidth) < 1


def test_strides_touch_sectors_and_banks_as_the_programming_guide_has_them() -> None:
    curve = curve_of("gtx_1080", "strides")
    found = {at: [curve.lines[name][i] for name in ("sectors", "bank turns")] for i, at in enumerate(curve.at)}
    assert [found[at] for at in (1, 2, 4, 8, 16, 32, 33)] == [[4, 1], [8, 2], [16, 4], [32, 8], [32, 16], [32, 32], [32, 1]]


def test_the_table_of_occupancy_names_what_limits() -> None:
    curve = curve_of("gtx_1080", "occupancy")  # compute capability 6.1: 64 K registers, 64 warps, 32 CTAs
    held = {(name, at): (curve.lines[name][i], curve.limits[name][i]) for name in curve.lines for i, at in enumerate(curve.at)}
    assert held["64 threads", 16] == (32, "sm.ctas")
    assert held["256 threads", 24] == (8, "sm.warps")
    assert held["256 threads", 40] == (6, "sm.registers")
    assert held["1024 threads", 64] == (1, "sm.registers")
    assert held["1024 threads", 128][0] == 0
    shared = curve_of("gtx_1080", "occupancy threads=256")  # 96 KiB of shared memory, of which a CTA may have 48
    assert (shared.lines["48 KiB"][0], shared.limits["48 KiB"][0]) == (2, "sm.shared_memory")


def run_of(words: str, **settings: str) -> SimulatedSm:
    return simulate_sm(changed("gtx_1080", **settings), words, clock=1.6e9)


@each(("size", "settings", "hits"), [
    ("8KiB", {}, (1, 1)), ("256KiB", {}, (0, 1)), ("4MiB", {}, (0, 0)), ("256KiB", {"l2__size": "128KiB"}, (0, 0)),
    ("256KiB", {"l1__size": "256KiB"}, (1, 1)), ("3MiB", {"l2__ways": "1"}, (0, 1 / 3)),
])  # fmt: skip
def test_a_set_that_is_walked_again_is_where_it_fits(size: str, settings: dict[str, str], hits: tuple[float, float]) -> None:
    """Replacement of the line used least recently leaves nothing of a larger set (Smith 1978); of 3 lines that share one place of
    a cache of one way, none stays, and of 2 MiB in 3 MiB a third has its place alone."""
    found = run_of(f"stream set={size}", **settings)
    assert tuple(found.hits.values()) == pytest.approx(hits, abs=0.01)
    assert not found.unread


def test_a_stride_takes_more_sectors_and_turns() -> None:
    near, far = (run_of(f"stream write=0 set=1MiB stride={stride}") for stride in (1, 4))
    assert far.result.l2 == 4 * near.result.l2  # B: 16 sectors of a warp, of which a quarter is used
    conflict, padded = (run_of(f"stream write=0 loads=8 set=8KiB stride={stride}").result.clocks for stride in (32, 33))
    assert conflict > 2 * padded


def test_rows_that_stay_in_a_cache_are_read_from_it_again() -> None:
    small, large = run_of("norm row=4096 passes=3"), run_of("norm row=4096 passes=3", l1__size="1MiB")
    assert (small.hits["L1"], large.hits["L1"]) == (0, 1)
    assert large.result.l2 < small.result.l2


def test_the_tiles_of_a_product_find_in_the_l2_what_others_have_read() -> None:
    """Of 16 x 16 tiles each operand is read 16 times; an L2 for all of them misses once, and not what was written before (B)."""
    whole, usual, small = (run_of("gemm 128x128x8 m=2048 n=2048", l2__size=size) for size in ("64MiB", "2MiB", "64KiB"))
    assert whole.hits["L2"] == pytest.approx(1 - 1 / 32, abs=0.002)
    assert whole.hits["L2"] > usual.hits["L2"] > small.hits["L2"]
    assert whole.time_s < small.time_s
    assert not whole.unread


def test_it_says_that_nothing_reads_a_cache_where_hits_are_given() -> None:
    assert run_of("stream l1=0.5 l2=1", l2__size="128KiB", l1__ways="2").unread == ("l1.ways", "l2.size")
    assert run_of("gemm 64x64x8", l2__size="1MiB").unread == ("l2.size",)
    assert run_of("stream set=1MiB l2=1", l1__size="16KiB", l2__size="4MiB").unread == ("l2.size",)


@each("level", [1, 2, 3])
def test_chains_of_pointers_overlap(level: int) -> None:
    curve = curve_of("i7_6700k", f"chains level={level}")  # Intel's optimisation manual: 4, 12 and 42 clk
    one, two, four = curve.lines["simulated"][:3]
    assert 1 / one == pytest.approx((4, 12, 42)[level - 1])
    assert (two / one, four / one) == (pytest.approx(2, rel=0.01), pytest.approx(4, rel=0.01))
    assert max(curve.lines["simulated"]) <= 2.0  # two ports load
