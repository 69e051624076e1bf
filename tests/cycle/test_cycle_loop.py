"""The loop of the SM: worked cases that a reader can count, and the same counts however it runs."""

from dataclasses import replace

import pytest

from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.passes import element_wise
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import FP32, INT, Assembler, Program, Source
from archsim.cycle.run import REASON_NAMES, SmRun, prepared, run
from tests import shipped


def machine(hw: str = "gtx_1080", clock: float = 1.6e9, **changed: object) -> Machine:
    device = shipped.gpu(hw)
    return replace(machine_of(device, clock), **{"cta_start": 0.0, "fetch": 0.0, **changed})


def ran(on: Machine, program: Program, ctas: int = 1, **options: object) -> SmRun:
    return run(prepared(on, program), ctas, **{"fast": False, **options})  # type: ignore[arg-type]


def adds(on: Machine, count: int, chains: int, threads: int = 32, pipe: int = FP32) -> Program:
    """`count` multiply-adds of a warp in `chains` independent chains."""
    a = Assembler(warp=on.warp)
    first = a.register(chains)
    for i in range(count):
        a.arithmetic("FFMA", first + i % chains, (first + i % chains,), pipe=pipe, reads=2)
    a.end()
    return a.program(threads=threads, registers=16)


def test_a_chain_of_dependent_operations_takes_the_latency_of_each() -> None:
    on = machine()
    assert ran(on, adds(on, 101, 1)).clocks - ran(on, adds(on, 1, 1)).clocks == 100 * on.alu


def test_half_as_many_lanes_take_twice_as_long() -> None:
    on = machine("tesla_v100_sxm2")  # 16 lanes a scheduler
    assert ran(on, adds(on, 164, 8)).clocks - ran(on, adds(on, 64, 8)).clocks == 200


def rate(on: Machine, warps: int, chains: int) -> float:
    """Multiply-adds per clock of single warps that have some dependent chains each, from start to end."""
    on = replace(on, ctas=64, cta_interval=0.0)
    return 1024 * warps * on.warp / ran(on, adds(on, 1024, chains), warps, fast=None).clocks


@pytest.mark.parametrize(("hw", "chains", "warps", "peak"), [
    ("gtx_1080", 1, 24, 128), ("gtx_1080", 2, 12, 128), ("tesla_v100_sxm2", 1, 8, 64), ("h100_sxm5_80gb", 1, 16, 128),
    ("tesla_k40", 1, 36, 128),
])  # fmt: skip
def test_warps_hide_the_latency_of_each_other(hw: str, chains: int, warps: int, peak: float) -> None:
    """Little's law, with 6 clk on Pascal, 4 from Volta on, 9 on Kepler; more warps are never slower (Volkov 2016)."""
    on = machine(hw)
    assert rate(on, warps // 2, chains) == pytest.approx(peak / 2, rel=0.05)
    assert [rate(on, many, chains) for many in (warps, 40, 48, 52, 60, 64)] == pytest.approx([peak] * 6, rel=0.05)


def test_kepler_issues_two_instructions_of_the_same_warp() -> None:
    """Each of four schedulers selects one warp a clock: 128 lanes without a second instruction of it, 192 with."""
    on = machine("tesla_k40")
    assert 0.97 * 128 < rate(on, 48, 1) <= 128
    assert 0.97 * 192 < rate(on, 48, 4) <= 192
    assert rate(replace(on, issue_width=1.0), 48, 4) <= 128


def lanes(on: Machine, what: str) -> float:
    """Lanes that a loop of one instruction serves in a clock, all of it in shared memory or in the L1."""
    a = Assembler(warp=on.warp)
    place, first = a.set_up(), a.register(64)
    top = a.here
    for value in range(first, first + 64):
        if what == "LDG":
            a.load(value, place, 4)
        else:
            a.shuffle(value, place) if what == "SHFL" else a.load_shared(value, place, 4, 1.0)
    a.back(top)
    a.end()
    program = a.program(threads=1024, registers=32, streams=(Source(past_l1=0.0),))
    few, more = (ran(on, program, trips=trips, fast=None).clocks for trips in (4, 12))
    return 8 * 64 * 1024 / (more - few)


@pytest.mark.parametrize(("what", "hw", "wanted"), [
    *[("SHFL", hw, 32) for hw in ("tesla_k40", "gtx_980", "gtx_1080", "tesla_p100_sxm2", "tesla_v100_sxm2", "tesla_t4",
                                  "rtx_3090", "a100_sxm4_40gb", "rtx_4090", "h100_sxm5_80gb")],  # CUDA programming guide
    ("LDS", "tesla_k40", 32), ("LDS", "gtx_980", 32),  # Chips and Cheese 2024: 128 B/clk with words of 4 bytes
    ("LDS", "tesla_v100_sxm2", 126.5 / 4),  # Accel-Sim's tuner, TITAN V
    ("LDS", "rtx_3060", 62.8 / 4), ("LDG", "rtx_3060", 63.6 / 4),  # YKTian-x2b, AmpereArchViaMicroBenchMark
    ("LDG", "tesla_t4", 58.8 / 4),  # Jia et al. 2019
    ("LDG", "a40", 16), ("LDG", "a100_sxm4_40gb", 126 / 4),  # RRZE-HPC gpu-benches, gpu-cache
    ("LDG", "h100_sxm5_80gb", 126 / 4),  # Luo et al. 2024 (recalled)
])  # fmt: skip
def test_lanes_of_words_of_4_bytes(what: str, hw: str, wanted: float) -> None:
    assert lanes(machine(hw), what) == pytest.approx(wanted, rel=0.1)


def test_a_load_returns_after_the_latency_of_the_level_that_has_it() -> None:
    on = machine()
    for source, latency in ((Source(past_l1=0.0), on.l1), (Source(past_l2=0.0), on.l2), (Source(), on.dram)):
        a = Assembler(warp=on.warp)
        pointer = a.register()
        for _ in range(8):
            a.load(pointer, pointer, 4, size=32)
        a.arithmetic("MOV", pointer, (pointer,), pipe=INT)
        a.end()
        found = ran(on, a.program(threads=1, registers=16, streams=(source,)))
        assert found.clocks == pytest.approx(8 * latency, rel=0.05)


def test_a_barrier_waits_for_the_last_warp() -> None:
    on = machine()
    a = Assembler(warp=on.warp)
    value = a.register()
    a.load(value, value, 4)
    a.arithmetic("MOV", value, (value,), pipe=INT)
    a.barrier()
    a.end()
    found = ran(on, a.program(threads=256, registers=16))
    assert found.clocks >= on.dram + on.barrier
    assert found.stalls["barrier"] > 0


def test_copies_past_the_registers_are_awaited_by_group() -> None:
    on = machine("a100_sxm4_40gb", 1.41e9)
    for waits, least, most in ((0, on.dram, 1.2 * on.dram), (1, 0.0, 0.5 * on.dram)):
        a = Assembler(warp=on.warp)
        a.copy(16)
        a.commit()
        a.await_copies(waits)
        a.arithmetic("MOV", a.register(), (), pipe=INT)
        a.end()
        program = a.program(threads=32, registers=16)
        last = ran(on, program, record=16).record[-1][0]
        assert least <= last <= most


def test_the_next_cta_enters_when_one_leaves() -> None:
    on = machine()
    program = element_wise(on, threads=256)
    whole = prepared(on, program).held
    first, second = ran(on, program, whole), ran(on, program, 2 * whole)
    assert second.ctas == 2 * first.ctas
    assert first.clocks < second.clocks < 2.2 * first.clocks


def test_code_is_fetched_once() -> None:
    """Straight code takes as long as it takes to fetch, the first time; what comes later finds it there."""
    on = machine(fetch=20.0)
    straight = adds(on, 64, 8)
    one = ran(on, straight).clocks
    assert one == pytest.approx(64 * 20.0, rel=0.02)
    assert ran(on, straight, 4).clocks == pytest.approx(one, abs=8)
    after = ran(on, straight, 2, slots=1).clocks - one  # the next CTA
    assert after <= 64 * 8


def test_every_clock_of_a_warp_has_a_reason() -> None:
    on = machine()
    found = ran(on, element_wise(on, threads=256), 16)
    assert min(found.stalls.values()) >= 0
    assert found.stalls["selected"] > 0
    assert found.stalls["long scoreboard"] > 0.5 * sum(found.stalls.values())


def test_a_warp_that_waits_for_its_code_has_no_instruction() -> None:
    slow, there = (ran(machine(fetch=fetch), adds(machine(), 64, 8)).stalls for fetch in (20.0, 0.0))
    assert slow["no instruction"] == pytest.approx(64 * 20.0, rel=0.1)
    assert there["no instruction"] == 0.0


def test_a_warp_that_comes_last_to_a_barrier_waits_for_the_barrier() -> None:
    on = machine()
    a = Assembler(warp=on.warp)
    a.barrier()
    a.end()
    found = ran(on, a.program(threads=64, registers=16))
    assert found.stalls["barrier"] == pytest.approx(2 * on.barrier, abs=4)
    assert found.stalls["no instruction"] == found.stalls["wait"] == 0.0


def test_after_a_barrier_a_warp_still_waits_for_its_registers() -> None:
    on = machine()
    a = Assembler(warp=on.warp)
    value = a.register()
    a.load(value, a.register(), 4)
    a.barrier()
    a.arithmetic("FFMA", value, (value,), pipe=FP32)
    a.end()
    found = ran(on, a.program(threads=128, registers=16), record=100)
    assert min(clock for clock, _, _, at in found.record if at == 2) >= on.dram - 1


def test_the_wait_is_that_of_the_instruction_that_needs_the_data() -> None:
    on = machine()
    a = Assembler(warp=on.warp)
    loaded, other = a.register(), a.register()
    a.load(loaded, other, 4)
    a.arithmetic("MOV", other, (), pipe=INT)
    a.arithmetic("FFMA", loaded, (loaded,), pipe=FP32)
    a.end()
    found = ran(on, a.program(threads=32, registers=16))
    of_each = [row[REASON_NAMES.index("long scoreboard")] for row in found.waiting]
    assert of_each == [0.0, 0.0, found.stalls["long scoreboard"], 0.0]
    assert of_each[2] > 0.9 * on.dram
    assert sum(map(sum, found.waiting)) == sum(found.stalls.values())


def test_counts_are_those_of_the_program() -> None:
    on = machine()
    found = ran(on, element_wise(on, reads=2, writes=1, lane_bytes=8, threads=128), 3)
    assert found.l1 == 3 * 3 * 8 * 128
    assert found.issued == 3 * 4 * len(element_wise(on, reads=2, writes=1, lane_bytes=8, threads=128).instructions)


def test_a_scheduler_that_runs_ahead_counts_what_it_counts_in_step() -> None:
    """Where all instructions are recorded, they are issued in the order of time."""
    tile = TiledProduct(m=32, n=32, k=8, threads=64, registers=120, shared=4096, depth=512)
    for hw in ("gtx_1080", "tesla_k40", "a100_sxm4_40gb"):
        on = machine(hw, fetch=4.0)
        for program in (on_lanes(on, tile), element_wise(on, reads=2, arithmetic=8), adds(on, 24, 3, threads=256)):
            ahead, in_step = (ran(on, program, 3, trips=3, record=record) for record in (0, 1_000_000))
            assert replace(in_step, record=()) == ahead
            assert len(in_step.record) == ahead.issued


@pytest.mark.parametrize("greedy", [True, False])
def test_the_same_run_twice_is_the_same(greedy: bool) -> None:
    on = machine()
    program = element_wise(on, threads=192)
    assert ran(on, program, 12, greedy=greedy) == ran(on, program, 12, greedy=greedy)
