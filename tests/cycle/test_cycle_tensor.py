"""Products on tensor cores: the structure of each generation, and the channels by which its warps hand stages to each other."""

from dataclasses import replace
from itertools import pairwise

import pytest

from archsim.base.errors import Unsupported
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import Source
from archsim.cycle.run import SmRun, prepared, run
from archsim.cycle.tensor import matrix_clocks, on_tensor_cores
from archsim.device.catalog import find
from archsim.device.device import Gpu
from tests.each import each

GENERATIONS = ("tesla_v100_sxm2", "tesla_t4", "a100_sxm4_40gb", "rtx_4090", "rtx_5090", "h100_sxm5_80gb", "b200_sxm")
HITS = Source(past_l2=0.1)
TILE = TiledProduct(m=128, n=128, k=64, threads=256, registers=128, shared=98304, depth=1024, operand=2.0, stages=3, a=HITS,
                    b=HITS)  # fmt: skip
# Clocks of an MMA in a long chain, BF16, operands in shared memory (lookup1980/microbench-blackwell, umma_throughput).
MEASURED = [(64, 64, 32.6), (64, 128, 64.6), (64, 256, 128.6), (128, 64, 48.6), (128, 80, 52.6), (128, 96, 56.6),
            (128, 112, 60.6), (128, 128, 64.6), (128, 256, 128.6)]  # fmt: skip
# Copies of all stages go out before the first is multiplied: a few stages more may cost a little.
ORDER = 1.04


def of(hw: str, precision: str = "fp16", **settings: str) -> Machine:
    device = find(hw).with_settings({key.replace("__", "."): value for key, value in settings.items()}).device
    assert isinstance(device, Gpu)
    return machine_of(device, 1.5e9, tensor_rate=float(device.pipe(precision)))


def ran(on: Machine, tile: TiledProduct = TILE, ctas: int = 2, trips: int = 12, fast: bool | None = None) -> SmRun:
    return run(prepared(on, on_tensor_cores(on, tile)), ctas, trips=trips, fast=fast)


@each("hw", GENERATIONS)
def test_each_generation_ends_and_stays_below_the_peak(hw: str) -> None:
    on = of(hw)
    found = ran(on)
    assert found.ctas == 2
    assert 0.2 < 2 * 128 * 128 * 64 * 12 / (found.clocks * on.tensor_rate) <= 1.0


@each(("hw", "trips"), [(hw, trips) for hw in GENERATIONS for trips in (1, 2, 3, 9)])
def test_a_tile_is_loaded_once_whatever_its_depth(hw: str, trips: int) -> None:
    """Nothing is fetched beyond the end of the loop."""
    on = of(hw)
    found = run(prepared(on, on_tensor_cores(on, replace(TILE, depth=64 * trips))), 1)
    assert found.l2 - found.stored == pytest.approx(trips * (128 + 128) * 64 * 2, rel=1e-3)


@each("trips", (1, 2, 5))
def test_a_product_on_lanes_is_loaded_once_too(trips: int) -> None:
    on = of("gtx_1080", "fp32")
    tile = replace(TILE, k=8, depth=8 * trips, operand=4.0, shared=16384)
    found = run(prepared(on, on_lanes(on, tile)), 1)
    assert found.l2 - found.stored == trips * (128 + 128) * 8 * 4


@each("hw", GENERATIONS)
def test_rows_beyond_the_matrix_are_not_loaded(hw: str) -> None:
    on = of(hw)
    found = run(prepared(on, on_tensor_cores(on, replace(TILE, asked=(0.25, 0.5)))), 1)
    assert found.l2 - found.stored == pytest.approx(16 * (32 + 64) * 64 * 2, rel=1e-3)


def test_each_warp_runs_its_own_part() -> None:
    program = on_tensor_cores(of("b200_sxm"), TILE)
    names = {i.name for i in program.instructions}
    assert {"UTMALDG", "UTCMMA"} <= names
    assert program.threads == 6 * 32
    on = of("b200_sxm")
    found = run(prepared(on, program), 1, trips=4, record=5000)
    by_warp = {w: {program.instructions[i].name for _, _, warp, i in found.record if warp == w} for w in range(6)}
    assert "UTMALDG" in by_warp[0]
    assert "UTCMMA" in by_warp[1]
    assert all(by_warp[w] == by_warp[2] and "STG.128" in by_warp[w] for w in range(2, 6))


@each("hw", GENERATIONS)
def test_more_stages_are_never_slower(hw: str) -> None:
    on = of(hw)
    tile = replace(TILE, k=32, depth=768)
    times = [run(prepared(on, on_tensor_cores(on, replace(tile, stages=n))), 1).clocks for n in (2, 3, 4, 6)]
    assert all(after <= before * ORDER for before, after in pairwise(times))
    if on.needed().issue != "warp":
        assert times[-1] < times[0] * 0.95


def test_a_ring_takes_a_round_trip_over_its_stages() -> None:
    """Two stages: copy, product and copy again follow each other, so the time of a trip is half of a round."""
    on = replace(of("b200_sxm"), dram=0.0)
    tile = replace(TILE, a=Source(past_l2=0.0), b=Source(past_l2=0.0), m=64, n=64, k=16, stages=2)
    few, more = (ran(on, tile, ctas=1, trips=trips).clocks for trips in (20, 40))
    latency = on.l2 + on.copy + 128  # the rows of both operands, one each clock
    product = matrix_clocks(on, on.needed(), tile, 64, 64) + on.tensor
    assert (more - few) / 20 == pytest.approx((latency + product) / 2, rel=0.05)


@each(("m", "n", "clocks"), MEASURED)
def test_clocks_of_an_instruction_are_those_that_were_measured(m: int, n: int, clocks: float) -> None:
    on = of("b200_sxm", "bf16")
    assert matrix_clocks(on, on.needed(), TILE, m, n) == pytest.approx(clocks, abs=1.0)


def test_wgmma_takes_what_was_measured() -> None:
    """Luo et al. 2024: m64nNk16 takes 32, 64 and 128 clocks for N of 64, 128 and 256."""
    on = of("h100_sxm5_80gb")
    assert [matrix_clocks(on, on.needed(), TILE, 64, n) for n in (64, 128, 256)] == [32.0, 64.0, 128.0]


def test_an_unknown_word_of_the_machine_is_named() -> None:
    with pytest.raises(Unsupported, match=r"sm\.mma_issue is 'wrap'; the cycle model knows warp, group, thread"):
        of("a100_sxm4_40gb", sm__mma_issue="wrap")


def test_a_machine_without_an_instruction_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"sm\.mma_m"):
        on_tensor_cores(replace(of("a100_sxm4_40gb"), mma=None), TILE)
