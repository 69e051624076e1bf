"""Laws of the machine: no roofline, issue slot or queue is passed."""

from dataclasses import replace
from importlib.util import find_spec

import pytest

from archsim.cycle.attention import AttentionTile, attend
from archsim.cycle.kernels import Grid, kernel_clocks
from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.passes import Rows, Window, element_wise, row_sums, windows
from archsim.cycle.product import TiledProduct, on_lanes
from archsim.cycle.program import Program, Source
from archsim.cycle.run import prepared, run
from archsim.cycle.tensor import on_tensor_cores
from archsim.device.catalog import find
from archsim.device.device import Gpu
from tests import shipped

DEVICES = ("tesla_k40", "gtx_1080", "tesla_v100_sxm2", "a100_sxm4_40gb", "rtx_4090")
HITS = Source(past_l2=0.2)
TILE = TiledProduct(m=128, n=128, k=8, threads=256, registers=120, shared=16384, depth=512, a=HITS, b=HITS)
ATTENTION = AttentionTile(m=128, n=128, k=64, threads=128, registers=255, shared=65536, blocks=2, keys=HITS)


def of(hw: str) -> Machine:
    device = shipped.gpu(hw)
    return machine_of(device, float(device.usual_clock))


def programs(on: Machine) -> list[Program]:
    return [on_lanes(on, TILE), element_wise(on, reads=2, lane_bytes=16, threads=256),
            element_wise(on, arithmetic=40, threads=128)]  # fmt: skip


def clocks(on: Machine, program: Program, ctas: int = 8, trips: int = 3) -> float:
    return run(prepared(on, program), ctas, trips=trips).clocks


@pytest.mark.parametrize("hw", DEVICES)
def test_a_product_stays_below_the_peak(hw: str) -> None:
    on, device = of(hw), find(hw).device
    assert isinstance(device, Gpu)
    found = run(prepared(on, on_lanes(on, TILE)), 4, trips=8)
    assert found.clocks * float(device.rate.fp32) >= 4 * 128 * 128 * 8 * 8


@pytest.mark.parametrize("hw", DEVICES)
def test_no_scheduler_issues_more_than_its_slots(hw: str) -> None:
    on = of(hw)
    for program in programs(on):
        assert run(prepared(on, program), 8, trips=3).ipc <= on.schedulers * max(1.0, on.issue_width)


def test_fewer_bytes_past_the_l2_are_never_slower() -> None:
    on = of("gtx_1080")
    sources = [Source(past_l2=share) for share in (1.0, 0.5, 0.0)]
    times = [clocks(on, on_lanes(on, replace(TILE, a=source, b=source))) for source in sources]
    assert times == sorted(times, reverse=True)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize(("hw", "ctas"), [("gtx_980", 8), ("tesla_t4", 11), ("h100_sxm5_80gb", 2), ("tesla_k40", 6)])
def test_a_long_loop_takes_what_all_of_its_trips_take(hw: str, ctas: int) -> None:
    machine = of(hw)
    near = Source(past_l2=0.0)
    tile = TiledProduct(m=64, n=64, k=8, threads=64, registers=120, shared=8192, depth=1600, a=near, b=near)
    on = prepared(machine, on_lanes(machine, tile))
    assert kernel_clocks(on, Grid(ctas=ctas, sms=1), {}) == pytest.approx(run(on, ctas).clocks, rel=0.04)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("hw", ["tesla_k40", "gtx_1080", "a100_sxm4_40gb", "h100_sxm5_80gb"])
def test_compiled_and_plain_count_the_same(hw: str) -> None:
    device = shipped.gpu(hw)
    rate = float(device.pipe("fp16")) if hw[0] in "ah" else 0.0
    on = machine_of(device, 1.4e9, tensor_rate=rate)
    rows, window = Rows(row=1024, piece=1024, lane=16, passes=1), Window(values=9, checked=False)
    every = [*programs(on), row_sums(on, rows), windows(on, window)]
    if rate:
        every += [on_tensor_cores(on, replace(TILE, k=32, operand=2.0, stages=3, shared=32768)), attend(on, ATTENTION, rate)]
    for program in every:
        plain, fast = (run(prepared(on, program), 2, trips=3, fast=fast, record=100) for fast in (False, True))
        assert plain == fast, program


@pytest.mark.parametrize("hw", ["tesla_v100_sxm2", "a100_sxm4_40gb", "h100_sxm5_80gb"])
def test_a_product_on_tensor_cores_stays_below_their_peak(hw: str) -> None:
    device = shipped.gpu(hw)
    rate = float(device.pipe("fp16"))
    on = machine_of(device, 1.5e9, tensor_rate=rate)
    tile = TiledProduct(m=128, n=128, k=32, threads=256, registers=128, shared=32768, depth=1024, operand=2.0, stages=4,
                        a=Source(past_l2=0.1), b=Source(past_l2=0.1))  # fmt: skip
    found = run(prepared(on, on_tensor_cores(on, tile)), 2, trips=16)
    share = 2 * 128 * 128 * 32 * 16 / (found.clocks * rate)
    assert 0.3 < share <= 1.0
