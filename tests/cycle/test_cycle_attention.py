"""Programs of attention: instructions that a reader can count, and the peaks that they stay below."""

from dataclasses import replace

import pytest

from archsim.cycle.attention import AttentionTile, attend
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.program import SPECIAL, TENSOR, Program, Source
from archsim.cycle.run import SmRun, prepared, run
from tests import shipped

HITS = Source(past_l2=0.1)
# FlashAttention-2 on an A100, and FlashAttention-3 on an H100, for heads of 128
SECOND = AttentionTile(m=128, n=128, k=64, threads=128, registers=255, shared=65536, blocks=8, keys=HITS)
THIRD = AttentionTile(m=128, n=128, k=128, threads=384, registers=168, shared=212992, blocks=8, keys=HITS, overlapped=True,
                      direct=True)  # fmt: skip
SINGLE = AttentionTile(m=1, n=128, k=64, threads=256, registers=40, shared=8192, blocks=16)
PLAIN = AttentionTile(m=64, n=64, k=64, threads=128, registers=168, shared=49152, blocks=4, operand=4.0, copies=False)


def on(hw: str, tensor: bool = True) -> tuple[Machine, float]:
    device = shipped.gpu(hw)
    rate = float(device.pipe("bf16")) if tensor else 0.0
    return machine_of(device, 1.4e9, tensor_rate=rate), rate


def program(hw: str, tile: AttentionTile) -> Program:
    machine, rate = on(hw)
    return attend(machine, tile, rate)


def loop_of(found: Program) -> list[str]:
    """Names of the instructions of the loop."""
    end = next(i for i, each in enumerate(found.instructions) if each.target >= 0)
    return [each.name for each in found.instructions[found.instructions[end].target : end]]


def ran(hw: str, tile: AttentionTile, ctas: int = 1, fast: bool | None = None, tensor: bool = True) -> SmRun:
    machine, rate = on(hw, tensor)
    return run(prepared(machine, attend(machine, tile, rate)), ctas, fast=fast)


def test_two_products_and_an_exponential_for_each_score() -> None:
    body = loop_of(program("a100_sxm4_40gb", SECOND))
    # 32 rows of a warp: 2 x 8 instructions of 16 x 8 scores in 8 steps of 16 features, 2 x 16 of results in 4 steps of 16 keys
    assert body.count("MMA") == 2 * 8 * 8 + 2 * 16 * 4
    scores = 128 * 64 // 128  # of a thread
    assert body.count("MUFU") == scores + 2 * 2  # and what the results of each of its four rows are scaled by
    assert body.count("FADD") == body.count("F2F") == body.count("FFMA") == scores  # with the maximum, the 4 of the closed form
    assert body.count("FMNMX") == scores + 2 * 2 * 2  # and those after each shuffle
    assert body.count("SHFL") == 2 * 2 * 2  # four threads hold a row
    assert body.count("BAR.SYNC") == 2  # before keys, and before values


def test_overlapped_tiles_do_not_wait_for_each_other() -> None:
    found = program("h100_sxm5_80gb", THIRD)
    assert "BAR.SYNC" not in loop_of(found)
    assert found.threads == 256  # a third of the threads only copies


def test_keys_and_values_are_loaded_once_for_a_tile() -> None:
    few, more = (ran("a100_sxm4_40gb", replace(SECOND, blocks=blocks)).l1 for blocks in (4, 8))
    assert more - few == 4 * 2 * SECOND.n * SECOND.k * 2
    single = [ran("a100_sxm4_40gb", replace(SINGLE, blocks=blocks)).l1 for blocks in (4, 8)]
    assert single[1] - single[0] == 4 * 2 * SINGLE.n * SINGLE.k * 2


@pytest.mark.parametrize(("hw", "tile"), [("a100_sxm4_40gb", SECOND), ("h100_sxm5_80gb", THIRD)])
def test_it_stays_below_the_peaks_of_its_pipes(hw: str, tile: AttentionTile) -> None:
    machine, rate = on(hw)
    held = prepared(machine, attend(machine, tile, rate)).held
    few, more = (ran(hw, replace(tile, blocks=blocks), held).clocks for blocks in (4, 12))
    clocks = (more - few) / 8
    products = held * 2 * tile.m * tile.n * tile.k
    exponentials = held * tile.m * tile.k
    assert products / clocks <= rate
    assert exponentials / clocks <= machine.lanes[SPECIAL] * machine.schedulers
    assert products / clocks > 0.4 * rate  # FlashAttention-2 reaches 0.5 to 0.73 of an A100's peak (Dao 2023, section 1)
    assert machine.lanes[TENSOR] * machine.schedulers == pytest.approx(rate)


def test_warps_that_take_turns_hide_the_softmax() -> None:
    """The same tile with a barrier before keys and values takes longer."""
    hw = "h100_sxm5_80gb"
    apart = replace(THIRD, overlapped=False, threads=256)
    assert ran(hw, THIRD).clocks < ran(hw, apart).clocks


def test_a_lone_query_waits_for_its_keys() -> None:
    found = ran("a100_sxm4_40gb", SINGLE)
    assert max(found.stalls, key=lambda name: found.stalls[name]) == "long scoreboard"


def test_a_product_on_lanes_stays_below_their_peak() -> None:
    machine, _ = on("gtx_1080", tensor=False)
    few, more = (ran("gtx_1080", replace(PLAIN, blocks=blocks), tensor=False).clocks for blocks in (2, 6))
    share = 4 * 2 * 64 * 64 * 64 / (more - few) / (machine.lanes[0] * machine.schedulers)
    assert 0.2 < share <= 1.0
