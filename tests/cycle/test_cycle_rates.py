"""What an SM does in a clock: lanes of loads and shuffles, multiply-adds by warps and by independent chains."""

from dataclasses import replace
from itertools import pairwise

import pytest

from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.program import FP32, Assembler, Source
from archsim.cycle.run import prepared, run
from tests import shipped

MANY = 64  # instructions of the loop
WARPS = 32


def of(hw: str) -> Machine:
    device = shipped.gpu(hw)
    return replace(machine_of(device, float(device.usual_clock)), fetch=0.0)


def lanes(on: Machine, what: str) -> float:
    """Lanes that a loop of one instruction serves in a clock, all of it in shared memory or in the L1."""
    a = Assembler(warp=on.warp)
    place = a.set_up()
    values = [a.register() for _ in range(MANY)]
    top = a.here
    for value in values:
        {"SHFL": lambda to=value: a.shuffle(to, place), "LDS": lambda to=value: a.load_shared(to, place, 4, 1.0),
         "LDG": lambda to=value: a.load(to, place, 4)}[what]()  # fmt: skip
    a.back(top)
    a.end()
    program = a.program(threads=WARPS * on.warp, registers=32, shared=0.0, trips=1, streams=(Source(past_l1=0.0),))
    few, more = (run(prepared(on, program), 1, trips=trips).clocks for trips in (4, 12))
    return 8 * MANY * WARPS * on.warp / (more - few)


def chains(on: Machine, warps: int, ilp: int, trips: int = 64) -> float:
    """Multiply-adds per clock of warps that have `ilp` dependent chains each, from start to end."""
    a = Assembler(warp=on.warp)
    sums = [a.register() for _ in range(ilp)]
    top = a.here
    for _ in range(MANY // ilp):
        for value in sums:
            a.arithmetic("FFMA", value, (value,), pipe=FP32, reads=1)
    a.back(top)
    a.end()
    program = a.program(threads=on.warp, registers=32, shared=0.0, trips=trips, streams=())
    on = replace(on, ctas=64, cta_start=0.0, cta_interval=0.0, warp_interval=0.0)
    return MANY // ilp * ilp * trips * warps * on.warp / run(prepared(on, program), warps).clocks


@pytest.mark.parametrize("hw", ["tesla_k40", "gtx_980", "gtx_1080", "tesla_p100_sxm2", "tesla_v100_sxm2", "tesla_t4", "rtx_3090",
                                "a100_sxm4_40gb", "rtx_4090", "h100_sxm5_80gb"])  # fmt: skip
def test_shuffles_take_32_lanes_a_clock(hw: str) -> None:
    """CUDA programming guide, throughput of instructions: 32 results per clock and SM, compute capability 3.x to 9.0."""
    assert lanes(of(hw), "SHFL") == pytest.approx(32, rel=0.02)


@pytest.mark.parametrize(("hw", "bytes_clk"), [
    ("gtx_980", 128 * 0.84),  # Mei and Chu 2017 (recalled); 32 banks of 4 bytes
    ("tesla_v100_sxm2", 126.5),  # Accel-Sim's tuner, TITAN V
    ("rtx_3060", 62.8),  # YKTian-x2b, AmpereArchViaMicroBenchMark; 126.1 with words of 8 bytes
])  # fmt: skip
def test_words_of_4_bytes_from_shared_memory(hw: str, bytes_clk: float) -> None:
    assert 4 * lanes(of(hw), "LDS") == pytest.approx(bytes_clk, rel=0.2)


@pytest.mark.parametrize(("hw", "bytes_clk"), [
    ("tesla_t4", 58.8),  # Jia et al. 2019
    ("rtx_3060", 63.6),  # YKTian-x2b, AmpereArchViaMicroBenchMark
    ("a40", 64),  # RRZE-HPC gpu-benches, gpu-cache and gpu-strides
    ("a100_sxm4_40gb", 126),  # the same
    ("h100_sxm5_80gb", 126),  # Luo et al. 2024 (recalled)
])  # fmt: skip
def test_words_of_4_bytes_from_the_l1(hw: str, bytes_clk: float) -> None:
    assert 4 * lanes(of(hw), "LDG") == pytest.approx(bytes_clk, rel=0.1)


def test_kepler_issues_two_instructions_of_the_same_warp() -> None:
    """Each of four schedulers selects one warp a clock, so 128 lanes without a second instruction of it; 192 are there."""
    on = of("tesla_k40")
    assert 0.97 * 128 < chains(on, 48, 1) <= 128
    assert 0.97 * 192 < chains(on, 48, 2) <= 192
    assert chains(replace(on, issue_width=1.0), 48, 2) <= 128


@pytest.mark.parametrize(("hw", "ilp", "warps", "peak"), [
    ("gtx_1080", 1, 24, 128), ("gtx_1080", 2, 12, 128), ("tesla_v100_sxm2", 1, 8, 64), ("h100_sxm5_80gb", 1, 16, 128),
    ("tesla_k40", 1, 36, 128),
])  # fmt: skip
def test_warps_that_hide_the_latency_of_the_alu(hw: str, ilp: int, warps: int, peak: float) -> None:
    """Little's law: latency x rate instructions under way, 6 clk on Pascal, 4 from Volta on, 9 on Kepler."""
    on = of(hw)
    assert chains(on, warps, ilp) == pytest.approx(peak, rel=0.05)
    assert chains(on, warps // 2, ilp) == pytest.approx(peak / 2, rel=0.05)


@pytest.mark.parametrize("hw", ["tesla_k40", "gtx_1080", "tesla_v100_sxm2"])
@pytest.mark.parametrize("ilp", [1, 2, 4])
def test_more_warps_of_independent_work_are_never_slower(hw: str, ilp: int) -> None:
    """Throughput rises with the warps until the latency is hidden, and stays there (Volkov 2016, chapter 4)."""
    rates = [chains(of(hw), warps, ilp) for warps in (4, 8, 12, 16, 24, 28, 36, 40, 48, 52, 60, 64)]
    assert all(more > 0.97 * fewer for fewer, more in pairwise(rates))
