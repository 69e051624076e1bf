"""Programs of a core: blocks of a product, copies into panels, passes; and the kernels that are put together from them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import archsim
from archsim.answers import sections_of
from archsim.cycle.core.copies import elements, rows_copied, transposed, value_by_value
from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.product import block, block_of, by_element, vector_product
from archsim.cycle.core.run import run_loop
from archsim.cycle.core.variant import Simulated
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.explain.simulated import simulate_layer
from archsim.render.text import text_of
from tests import shipped


def machine(name: str) -> CoreMachine:
    device = shipped.cpu(name)
    return core_machine(device, float(device.default_clock))


def step(on: CoreMachine, rows: int, vectors: int) -> float:
    """Clocks of one more step of k in a register block."""
    words = {"fused": "fma" in on.masks, "elements": by_element(on, on.width)}
    short, long = (run_loop(on, block(rows, vectors, steps, on.width, **words)).cycles for steps in (16, 32))
    return (long - short) / 16


@pytest.mark.parametrize(
    ("name", "rows", "clocks"),
    [("i7_3820", 6, 12.0), ("xeon_e5_2650_v3_2s", 6, 6.0), ("i7_6700k", 6, 6.0), ("xeon_platinum_8124m", 14, 14.0),
     ("tegra_x1_cpu", 14, 28.0), ("epyc_9655", 14, 14.0)],
)  # fmt: skip
def test_a_whole_block_keeps_the_multipliers_busy(name: str, rows: int, clocks: float) -> None:
    """Two registers in a row; one or two multiply-adds start per clock."""
    on = machine(name)
    assert block_of(on, on.width) == (rows, 2)
    assert step(on, rows, 2) == pytest.approx(clocks, rel=0.01)


def test_a_thin_block_waits_for_its_sums() -> None:
    """Two rows of two registers are four sums, of which one core makes two per clock, and each takes four."""
    assert step(machine("i7_6700k"), 2, 2) > 1.4 * 2.0


def test_instructions_of_an_older_set_name_fewer_registers() -> None:
    on = machine("epyc_9655")
    assert block_of(on, 512) == (14, 2)
    assert block_of(on, 256) == (6, 2)


def test_without_fused_operations_a_block_multiplies_and_adds() -> None:
    kinds = [one.kind for one in block(6, 2, 4, 256, fused=False).operations]
    assert kinds.count("fma") == 0
    assert (kinds.count("mul"), kinds.count("add")) == (12 * 4, 12 * 3 + 12)  # the first step only multiplies; C is added


PROGRAMS: dict[str, CoreLoop] = {
    "block": block(6, 2, 8, 256), "block by element": block(14, 2, 8, 128, elements=True), "vector": vector_product(256, 32, 3),
    "transposed": transposed(256, 4160, 1 << 20, 3), "rows": rows_copied(256, 2, 12544, 1 << 24, 4),
    "values": value_by_value(64, 1 << 24, 4), "pass": elements(256, 2, 3, 1, 1 << 22, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_data_farther_away_are_never_there_sooner(name: str) -> None:
    on = machine("i7_6700k")
    loop = PROGRAMS[name]
    clocks = [run_loop(on, replace(loop, streams=tuple(replace(stream, level=level) for stream in loop.streams))).cycles
              for level in (1, 2, 3, 4)]  # fmt: skip
    assert all(later >= earlier - 0.05 for earlier, later in pairwise(clocks)), clocks


def test_a_program_is_simulated_once_and_written_only_then() -> None:
    known: dict[bytes, float] = {}
    written = []

    def program(rows: int) -> CoreLoop:
        written.append(rows)
        return block(rows, 2, 4, 256)

    on = Simulated(machine("i7_6700k"), known)
    assert on.clocks(program, 6) == on.clocks(program, 6) != on.clocks(program, 4)
    assert written == [6, 4]
    slower = Simulated(replace(machine("i7_6700k"), latency={**machine("i7_6700k").latency, "fma": 8.0}), known)
    assert slower.clocks(program, 2) > on.clocks(program, 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [("core.fma_latency", "12 clk"), ("port.fma", "0"), ("pipeline.rename", "1"), ("l2.bandwidth", "2 B/clk"),
     ("pipeline.vector_registers", "24"), ("latency.load_vector", "300 clk")],
)  # fmt: skip
def test_a_worse_core_takes_longer(key: str, value: str) -> None:
    words = {"net": "alexnet", "hw": "i7_6700k", "batch": 4, "threads": 1, "fidelity": "cycle"}
    assert archsim.estimate(**words, set={key: value}).latency_s > 1.02 * archsim.estimate(**words).latency_s  # type: ignore[arg-type]


def test_a_loop_beyond_the_cache_of_operations_is_decoded() -> None:
    """One instruction a clock is too few for a block that has four in the time of a step."""
    on = machine("i7_6700k")
    long = block(6, 2, 32, 256)
    small = replace(on, pipeline=replace(on.pipeline, op_cache=64, decode=1))
    assert run_loop(small, long).cycles > 1.5 * run_loop(on, long).cycles


def test_an_explanation_names_the_loops_and_what_binds_them() -> None:
    request = make_request("alexnet", "i7_6700k", batch=2, stack="caffe-openblas", fidelity="cycle")
    found = simulate_layer(request, "conv2")
    product = next(kernel for kernel in found.kernels if kernel.name == "gemm")
    assert sum(loop.share for loop in product.loops) == pytest.approx(1.0)
    largest = max(product.loops, key=lambda loop: loop.share)
    assert (largest.name, largest.binds) == ("block of 6 x 2 registers, 32 steps", "ports P0 P1")
    assert len({loop.name for loop in product.loops}) == len(product.loops) - 1  # both operands are copied by loops of one name
    unfolding = next(kernel for kernel in found.kernels if kernel.name == "im2col").loops
    assert [(loop.name, loop.binds) for loop in unfolding][:1] == [("im2col", "front end")]
    assert "ports P0 P1 (100 %)" in text_of(sections_of(found), level=2)


def test_points_of_a_sweep_are_the_single_estimates() -> None:
    """Devices as columns give what each gives alone, also for keys that no closed form reads."""
    request = make_request("alexnet", "i7_6700k", batch=2, fidelity="cycle")
    for key, values in {"latency.load_vector": (7.0, 300.0), "l2.size": (2.0**17, 2.0**18), "core.count": (2.0, 4.0)}.items():
        spec = request.spec.with_values({key: np.array([[value] for value in values])})
        together = run(replace(request, spec=spec)).latency_s
        alone = [run(replace(request, spec=request.spec.with_values({key: value}))).latency_s[0] for value in values]
        assert together.tolist() == pytest.approx(alone, rel=1e-9), key
