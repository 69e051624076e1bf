"""Loops over single values, functions of the C library, and vectorised ones with exponentials and sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import pytest

from archsim.base.errors import Unsupported
from archsim.cycle.core import loops, scalar
from archsim.cycle.core.bounds import bounds, restart
from archsim.cycle.core.library import called
from archsim.cycle.core.machine import CoreMachine, core_machine, shared
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.run import run_loop
from tests import shipped
from tests.each import each

CORES = ("xeon_e5_2650_v3_2s", "i7_3820", "epyc_9655", "tegra_x1_cpu", "apple_m1")
PLACE = (1 << 14, 1)  # bytes, and the level where they lie
LOOPS: dict[str, CoreLoop] = {
    "step": scalar.step(*PLACE), "im2col": scalar.unfold(*PLACE, 13), "long rows": scalar.unfold(*PLACE, 224),
    "max pool": scalar.largest(9, *PLACE, 3),
    "average pool": scalar.mean(9, *PLACE, 3), "average of all": scalar.mean(169, *PLACE),
    "divide": scalar.divided(), "gather": scalar.gathered(*PLACE),
    "exp": called("exp", 1, 1 << 14), "pow": called("pow", 1, 1 << 14),
}  # fmt: skip
VECTORISED: tuple[Callable[..., CoreLoop], ...] = (
    loops.sigmoid, loops.hyperbolic, loops.softmax, loops.local_normalisation, loops.moments,
)


@lru_cache
def machine(name: str) -> CoreMachine:
    return core_machine(shipped.cpu(name), 2.4e9)


def clocks(name: str, on: str = CORES[0]) -> float:
    return run_loop(machine(on), LOOPS[name]).cycles


@each(("name", "slots"), [("step", 5), ("im2col", 9), ("average of all", 4)])
def test_slots_are_those_that_a_compiler_makes(name: str, slots: int) -> None:
    """Of GCC at -O2 on a core that fuses a comparison with its branch."""
    assert sum(row.slots for row in run_loop(machine(CORES[0]), LOOPS[name]).rows) == slots


@each(("name", "least", "most"), [
    ("step", 1.2, 1.3), ("im2col", 2.2, 2.3), ("average of all", 3.0, 3.1), ("exp", 30.0, 60.0), ("pow", 90.0, 140.0),
])  # fmt: skip
def test_clocks_of_haswell(name: str, least: float, most: float) -> None:
    """A. Fog, Instruction tables, and published times of the functions of glibc."""
    assert least <= clocks(name) <= most


@each("core", CORES)
def test_no_bound_of_a_program_is_passed(core: str) -> None:
    on = machine(core)
    vectors = [one(on.width, fused="fma" in on.masks) for one in VECTORISED]
    for loop in (*LOOPS.values(), *vectors):
        run = run_loop(on, loop)
        largest = max(bounds(on, loop, run.rows).values())
        assert run.cycles >= 0.98 * largest, loop.name


def test_a_mispredicted_branch_costs_what_the_spec_says() -> None:
    on = machine(CORES[0])
    slower = replace(on, pipeline=replace(on.pipeline, mispredict=float(on.pipeline.mispredict or 0) + 10.0))
    share = sum(row.missed for row in run_loop(on, LOOPS["max pool"]).rows)
    before, after = (run_loop(one, LOOPS["max pool"]).cycles for one in (on, slower))
    assert after - before == pytest.approx(10.0 * share, rel=0.1)
    assert share == pytest.approx(3 * sum((1 - 0.5**k) / k for k in range(2, 10)) / 9)


def test_exits_of_long_loops_are_mispredicted() -> None:
    short, long = clocks("im2col"), clocks("long rows")
    on = machine(CORES[0])
    row = next(row for row in run_loop(on, LOOPS["long rows"]).rows if row.missed)
    assert row.missed == 1 / 224
    # Younger slots were under way as the branch was found out, so that not all of the restart is lost.
    assert 0.5 * restart(on, row) / 224 <= long - short <= 2.5 * restart(on, row) / 224
    foreseen = replace(on, pipeline=replace(on.pipeline, exit_trips=300.0))
    assert run_loop(foreseen, LOOPS["long rows"]).cycles == pytest.approx(short, rel=0.01)


def test_a_core_of_unknown_mispredictions_refuses_them() -> None:
    unknown = replace(machine(CORES[0]), pipeline=replace(machine(CORES[0]).pipeline, mispredict=None))
    with pytest.raises(Unsupported, match=r"no pipeline\.mispredict; --set"):
        run_loop(unknown, LOOPS["max pool"])
    assert run_loop(unknown, LOOPS["step"]).cycles == clocks("step")


def test_a_hyper_thread_has_half_of_the_front_end() -> None:
    on = machine(CORES[0])
    for name, loop in LOOPS.items():
        assert run_loop(shared(on), loop).cycles >= 0.98 * clocks(name), name
    assert run_loop(shared(on), LOOPS["im2col"]).cycles == pytest.approx(2 * clocks("im2col"), rel=0.01)


@each(("area", "every"), [(1, 1.0), (4, 2.0), (9, 3.0)])
def test_a_maximum_is_stored_for_every_few_values(area: int, every: float) -> None:
    assert scalar.stored_every(area) == every


@each("function", VECTORISED)
def test_a_wider_register_takes_no_longer_for_a_value(function: Callable[..., CoreLoop]) -> None:
    on = machine("epyc_9655")
    each_value = [run_loop(on, function(width)).cycles / width for width in (128, 256, 512)]
    assert each_value == sorted(each_value, reverse=True)
