"""Kernels that go through a window for each result: counts that a reader can check."""

from dataclasses import replace

import pytest

from archsim.cycle.machine import Machine, machine_of
from archsim.cycle.passes import PLACED, Window, per_value, windows
from archsim.cycle.program import Source
from archsim.cycle.run import SmRun, prepared, run
from tests import shipped

CHECKED = Window(values=9, inputs=Source(past_l1=0.25))
TAPS = Window(values=9, checked=False, weights=True)


def machine() -> Machine:
    device = shipped.gpu("gtx_1080")
    return replace(machine_of(device, 1.6e9), cta_start=0.0, fetch=0.0)


def ran(window: Window, ctas: int = 1, fast: bool | None = None) -> SmRun:
    on = machine()
    return run(prepared(on, windows(on, window)), ctas, fast=fast)


@pytest.mark.parametrize("window", [CHECKED, TAPS, replace(TAPS, weights=False, combine=2)])
def test_each_value_takes_its_instructions(window: Window) -> None:
    assert ran(window).issued == 8 * (PLACED + 9 * per_value(window) + 2)  # a store and the end, in eight warps


def test_each_value_is_loaded_and_a_quarter_of_them_past_the_l1() -> None:
    found = ran(CHECKED)
    assert found.l1 == 256 * 4 * (9 + 1)
    assert found.l2 == pytest.approx(256 * 4 * (9 / 4 + 1), rel=0.1)
    assert found.stored == 256 * 4


def test_a_window_whose_bounds_are_checked_takes_longer() -> None:
    unrolled = replace(CHECKED, checked=False)
    assert ran(CHECKED, 32).clocks > ran(unrolled, 32).clocks


def test_windows_that_lie_apart_take_more_of_the_l1() -> None:
    far = replace(TAPS, step=4.0, inputs=Source(past_l1=0.0))
    assert ran(far, 32).clocks > ran(replace(far, step=1.0), 32).clocks
