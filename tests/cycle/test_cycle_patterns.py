"""Access patterns of microbenchmarks: what their programs show of the machine."""

from importlib.util import find_spec

import pytest

from archsim.base.errors import Unsupported
from archsim.cycle.machine import machine_of, memory_shares, translation
from archsim.cycle.patterns import pattern_value
from archsim.device.catalog import find
from archsim.device.device import Gpu
from archsim.evidence.case import AccessPattern


def gpu(hw: str, **settings: str) -> Gpu:
    device = find(hw).with_settings({key.replace("__", "."): value for key, value in settings.items()}).device
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
