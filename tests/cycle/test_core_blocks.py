"""Inner blocks of products on a simulated core: their operations, their spills, and their measured clocks."""

from __future__ import annotations

from collections import Counter

import pytest

from archsim.base.errors import ArgumentError
from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.product import gemm_block
from archsim.cycle.core.run import run_loop
from archsim.device.catalog import find
from tests.each import each

MEASURED = {  # clocks of an iteration on a Zen 5 core: rows, columns, width, element, unroll, broadcast
    (6, 16, 256, 32, 1, "register"): 5.9964, (6, 16, 256, 32, 4, "register"): 23.9938, (8, 8, 256, 32, 1, "register"): 4.5255,
    (4, 24, 256, 32, 2, "register"): 11.9957, (1, 32, 256, 32, 1, "register"): 3.9977, (6, 8, 256, 64, 1, "register"): 5.9976,
    (6, 32, 512, 32, 1, "embedded"): 7.0396, (14, 32, 512, 32, 2, "register"): 27.7797, (31, 16, 512, 32, 1, "embedded"): 16.0278,
    (8, 24, 512, 64, 1, "register"): 11.9984,
}  # fmt: skip


@pytest.fixture(scope="module")
def zen5() -> CoreMachine:
    return core_machine(find("epyc_9655").device, 4.15e9)


@each(("block", "clocks"), list(MEASURED.items()))
def test_a_block_takes_the_clocks_that_were_measured(zen5: CoreMachine, block: tuple, clocks: float) -> None:
    loop = gemm_block(*block, a_level=1, b_level=1)
    assert run_loop(zen5, loop).cycles == pytest.approx(clocks, rel=0.012)


def test_a_block_multiplies_each_row_by_each_column_in_each_step() -> None:
    loop = gemm_block(6, 16, 256, unroll=2)
    kinds = Counter(one.kind for one in loop.operations)
    assert kinds == {"fma": 24, "broadcast": 12, "load": 4, "int": 3, "branch": 1}
    assert loop.flop == 2 * 6 * 16 * 2
    assert loop.bytes_loaded == 2 * (6 * 4 + 16 * 4)
    assert loop.trips == 128


def test_each_accumulator_is_made_by_the_step_before() -> None:
    loop = gemm_block(2, 8, 256, unroll=2)
    products = [at for at, one in enumerate(loop.operations) if one.kind == "fma"]
    first, second = products[:2], products[2:]
    assert [loop.operations[at].sources[-1] for at in first] == [(at, 1) for at in second]
    assert [loop.operations[at].sources[-1] for at in second] == [(at, 0) for at in first]


def test_accumulators_without_a_register_are_loaded_and_stored_in_each_step(zen5: CoreMachine) -> None:
    fits, spills = gemm_block(6, 16, 256, b_level=1, a_level=1), gemm_block(8, 16, 256, a_level=1, b_level=1)
    assert not any(one.kind == "store" for one in fits.operations)
    stored = [one for one in spills.operations if one.kind == "store"]
    assert len(stored) == 16 - (16 - 2 - 1 - 1)
    assert gemm_block(8, 16, 256, registers=32).bytes_stored == 0
    per_flop = [run_loop(zen5, one).cycles / one.flop for one in (fits, spills)]
    assert per_flop[1] > 1.3 * per_flop[0]


def test_a_spilled_accumulator_of_an_unrolled_block_waits_for_the_step_before(zen5: CoreMachine) -> None:
    loops = [gemm_block(1, 16, 256, unroll=unroll, registers=3, a_level=1, b_level=1) for unroll in (1, 2)]
    one, two = (run_loop(zen5, loop).cycles for loop in loops)
    assert two == pytest.approx(2 * one, rel=0.02)


def test_products_of_small_operands_take_several_values_in_a_step() -> None:
    loop = gemm_block(12, 32, 512, 8, product="dot", depth=256)
    assert loop.flop == 2 * 12 * 32 * 4
    assert loop.trips == 64
    assert Counter(one.kind for one in loop.operations)["dot"] == 24


@each(("words", "problem"), [
    ({"rows": 0, "columns": 16, "width": 256}, "rows = 0"),
    ({"rows": 6, "columns": 16, "width": 100}, "width = 100"),
    ({"rows": 6, "columns": 16, "width": 256, "broadcast": "lane"}, "not one of register, embedded, element"),
    ({"rows": 6, "columns": 16, "width": 256, "element": 8}, "16, 32, 64 bit"),
    ({"rows": 6, "columns": 16, "width": 256, "element": 32, "product": "dot"}, "8, 16 bit"),
    ({"rows": 6, "columns": 16, "width": 256, "product": "add"}, "fma, muladd, dot"),
])  # fmt: skip
def test_a_block_that_is_none_is_refused(words: dict, problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        gemm_block(**words)
