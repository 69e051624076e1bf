"""Kernels that sum rows before they write them, or go through a window for each result: counts a reader can check, and limits."""

from dataclasses import replace

import pytest

from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.passes import ADDRESS, BOUNDS, PLACED, Rows, Window, row_sums, rows_of_cta, spread, windows
from archsim.cycle.program import FP32, INT, Assembler, Source
from archsim.cycle.run import SmRun, prepared, run
from tests import shipped

CHANNEL = Rows(row=64 * 1024, piece=1024, passes=2)  # of 64 images of 32 x 32
SHORT = Rows(row=1024, piece=1024, lane=16, passes=1)


def machine(hw: str = "tesla_v100_sxm2") -> Machine:
    device = shipped.gpu(hw)
    return replace(machine_of(device, 1.5e9), cta_start=0.0, fetch=0.0)


def ran(rows: Rows, ctas: int = 1, on: Machine | None = None, fast: bool | None = None) -> SmRun:
    on = on or machine()
    return run(prepared(on, row_sums(on, rows)), ctas, fast=fast)


def test_every_loop_of_a_program_runs_as_often() -> None:
    on = machine()
    a = Assembler(warp=on.warp)
    value = a.register()
    for _ in range(3):
        top = a.here
        a.arithmetic("FADD", value, (value,), pipe=FP32)
        a.back(top)
    a.arithmetic("MOV", value, (value,), pipe=INT)
    a.end()
    program = a.program(threads=32, registers=16, trips=5)
    assert run(prepared(on, program), 1, fast=False).issued == 3 * 5 * 2 + 2


def test_a_channel_is_read_in_each_pass_and_written_once() -> None:
    assert (CHANNEL.threads, CHANNEL.loads) == (512, 128)
    found = ran(CHANNEL)
    assert found.l1 == (CHANNEL.passes + 1) * 4 * CHANNEL.row
    assert found.stored == 4 * CHANNEL.row
    assert found.stalls["barrier"] > 0


def test_a_short_row_stays_in_the_registers_of_one_warp() -> None:
    assert (SHORT.threads, SHORT.loads, SHORT.kept, rows_of_cta(SHORT)) == (64, 4, True, 1)
    one = replace(SHORT, row=512)
    assert (one.threads, one.loads, rows_of_cta(one)) == (32, 4, 4)
    found = ran(one)
    assert found.l1 == 2 * 4 * one.row * 4  # read and written once, by each of four warps
    assert found.stalls["barrier"] == 0  # no warp waits for another
    shuffles = sum(i.name == "SHFL" for i in row_sums(machine(), one).instructions)
    assert shuffles == 2 * 5  # two sums over 32 threads


def test_what_a_pass_finds_again_does_not_come_from_memory() -> None:
    hit = replace(CHANNEL, again=Source(past_l1=1.0, past_l2=0.0))
    missed = replace(CHANNEL, again=Source())
    assert ran(missed).dram - ran(hit).dram == 4 * CHANNEL.row
    assert ran(hit).clocks < ran(missed).clocks


def test_pieces_that_share_sectors_move_more() -> None:
    small = replace(CHANNEL, row=49 * 1024, piece=49)  # 196 B lie in 7 sectors of 32 B on average
    assert spread(small) == pytest.approx(224 / 196)
    whole = replace(small, piece=small.row)
    assert ran(small).l2 > ran(whole).l2
    names = [[i.name for i in row_sums(machine(), rows).instructions].count("IMAD") for rows in (small, whole)]
    assert names[0] > names[1]  # and each place costs a division


@pytest.mark.parametrize("hw", ["gtx_1080", "tesla_v100_sxm2", "a100_sxm4_40gb"])
def test_it_stays_below_the_bandwidth_of_the_memory(hw: str) -> None:
    on = machine(hw)
    few, more = (ran(SHORT, ctas, on) for ctas in (64, 192))
    assert (more.dram - few.dram) / (more.clocks - few.clocks) <= on.dram_rate * 1.005  # ticks are whole


def test_one_cta_alone_does_not_fill_the_memory() -> None:
    """A channel is one CTA, so few channels leave most of the bandwidth unused: Little's law of what one CTA has in flight."""
    on = machine()
    alone = ran(CHANNEL, 1, on)
    in_flight = CHANNEL.threads * 4 * 4  # four loads of 4 B of each thread
    assert alone.dram / alone.clocks <= in_flight / on.dram * 1.5 + on.dram_rate * 0.1
    assert alone.dram / alone.clocks < ran(CHANNEL, 4, on).dram / ran(CHANNEL, 4, on).clocks


# ----------------------------------------------------------------------------------------------------------------- windows


CHECKED = Window(values=9, inputs=Source(past_l1=0.25))
TAPS = Window(values=9, checked=False, weights=True)


def per_value(window: Window) -> int:
    """Instructions of a value: with checks a branch around it, and the next column or the end of the row; else its address."""
    return (BOUNDS + ADDRESS + 2 + 2 if window.checked else 1) + 1 + window.weights + window.combine


def passed(window: Window, ctas: int = 1) -> SmRun:
    on = machine("gtx_1080")
    return run(prepared(on, windows(on, window)), ctas)


@pytest.mark.parametrize("window", [CHECKED, TAPS, replace(TAPS, weights=False, combine=2)])
def test_each_value_takes_its_instructions(window: Window) -> None:
    assert passed(window).issued == 8 * (PLACED + 9 * per_value(window) + 2)  # a store and the end, in eight warps


def test_each_value_is_loaded_and_a_quarter_of_them_past_the_l1() -> None:
    found = passed(CHECKED)
    assert found.l1 == 256 * 4 * (9 + 1)
    assert found.l2 == pytest.approx(256 * 4 * (9 / 4 + 1), rel=0.1)
    assert found.stored == 256 * 4


def test_a_window_whose_bounds_are_checked_takes_longer() -> None:
    unrolled = replace(CHECKED, checked=False)
    assert passed(CHECKED, 32).clocks > passed(unrolled, 32).clocks


def test_windows_that_lie_apart_take_more_of_the_l1() -> None:
    far = replace(TAPS, step=4.0, inputs=Source(past_l1=0.0))
    assert passed(far, 32).clocks > passed(replace(far, step=1.0), 32).clocks
