"""Each quantity on the way to a bound of a TPU, by hand on a small machine: two arrays of 4 x 8 cells."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost import tpu
from archsim.cost.cost import ASYNCHRONOUS
from archsim.cost.tpu import TpuTerms
from archsim.device.catalog import find
from archsim.device.device import Accumulators, SystolicArray, Tpu, UnifiedBuffer, VectorUnit, WeightFifo

SIZES = {"m": 20.0, "n": 30.0, "k": 10.0, "count": 3.0, "work": 1.0, "flop": 36000.0, "matrix": 1.0, "dense": 0.0, "exps": 0.0,
         "a_bytes": 600.0, "b_bytes": 900.0, "c_bytes": 1800.0, "operand_a": 2.0, "repeat": 1.0}  # fmt: skip
ATTENTION = {"m": 6.0, "n": 9.0, "k": 17.0, "exps": 1.0}
ELEMENTS = {"matrix": 0.0, "flop": 640.0}


def machine(**parts: Any) -> Tpu:
    found = find("tpu_v1").device
    assert isinstance(found, Tpu)
    small: dict[str, Any] = {
        "array": SystolicArray(count=2.0, rows=4.0, columns=8.0, weight_sets=2.0), "vector": VectorUnit(rate=16.0),
        "accumulator": Accumulators(rows=24.0, buffers=2.0), "buffer": UnifiedBuffer(size=1024.0, bandwidth=64.0, resident=1.0),
    }  # fmt: skip
    return replace(found, **{**small, **parts})


def terms(device: Tpu | None = None, **sizes: float) -> TpuTerms:
    kernels: Any = SimpleNamespace(**{name: np.array([size]) for name, size in {**SIZES, **sizes}.items()})
    return TpuTerms(kernels=kernels, device=device or machine(), precision="int8", clock=1e9, constants=default())


def found(quantity: str, device: Tpu | None = None, **sizes: float) -> float:
    return float(getattr(terms(device, **sizes), quantity).item())


def test_tiles_of_a_product_are_counted_with_their_last_ones() -> None:
    assert found("tiles") == 3 * 3 * 3  # 10 over 4 rows, 20 over 8 columns, 3 products


def test_tiles_of_attention_are_those_of_scores_and_of_sums() -> None:
    assert found("tiles", **ATTENTION) == (3 * 3 + 5 * 2) * 3  # scores keep 9 x 17, sums 17 x 9


def test_rows_pass_in_as_many_parts_as_the_accumulators_ask() -> None:
    assert found("passes") == 3  # 30 rows, 12 at once
    assert found("streamed") == 10
    assert found("passes", **ATTENTION) == 1
    assert found("streamed", **ATTENTION) == 6
    assert found("passes", machine(accumulator=Accumulators(rows=25.0, buffers=2.0)), n=25.0) == 3  # half a row holds nothing
    assert found("passes", machine(accumulator=None)) == 1
    assert found("passes", n=1.0) == 1


def test_work_that_a_mask_leaves_out_is_not_loaded() -> None:
    assert found("work_share") == 1.0
    assert found("work_share", work=0.25) == 0.25
    assert found("work_share", **ATTENTION, work=2.0) == 1.0  # both products
    assert found("work_share", **ATTENTION, work=1.0) == 0.5


def test_the_busiest_array_loads_the_odd_tile() -> None:
    assert found("loads") == 41  # 27 tiles three times, over two arrays
    assert found("loads", work=0.5) == 20.5


def test_clocks_of_an_array_are_those_of_its_tiles_and_of_one_filling() -> None:
    assert found("array_clk") == 41 * 10 + 2 * 4 + 8 - 2
    alone = SystolicArray(count=2.0, rows=4.0, columns=8.0, weight_sets=1.0)
    assert found("array_clk", machine(array=alone)) == 41 * (2 * 4 + 8 - 2 + 10)
    deep = SystolicArray(count=2.0, rows=16.0, columns=8.0, weight_sets=2.0)
    assert found("array_clk", machine(array=deep)) == 14 * 16 + 2 * 16 + 8 - 2  # 9 tiles three times; a tile takes 16 to load


def test_the_vector_unit_runs_what_is_no_product_and_exponentials() -> None:
    assert found("vector_clk") == 0
    assert found("vector_clk", **ELEMENTS) == 640 / 16
    assert found("vector_clk", **{**ELEMENTS, "dense": 1.0}) == 0
    assert found("vector_clk", **ATTENTION) == 10 * 6 * 17 * 3 / 16
    assert found("vector_clk", **{**ATTENTION, "exps": 2.0}) == 2 * 10 * 6 * 17 * 3 / 16


def test_arithmetic_without_losses_takes_all_cells() -> None:
    assert found("dense_clk", **{**ELEMENTS, "dense": 1.0}) == 320 / 64
    assert found("dense_clk", **ELEMENTS) == 0
    assert found("dense_clk", dense=1.0) == 0  # a product


def test_activations_that_stay_in_the_buffer_cost_no_traffic() -> None:
    assert found("dram_bytes") == 27 * 3 * 32 * 2 + (900 + 1800 - 1024)
    assert found("dram_bytes", b_bytes=10.0, c_bytes=20.0) == 27 * 3 * 32 * 2
    assert found("dram_bytes", **ELEMENTS, b_bytes=10.0, c_bytes=20.0) == 600


def test_operands_come_once_where_the_smaller_one_fits_and_again_for_each_block_otherwise() -> None:
    def through(size: float, **sizes: float) -> float:
        return found("dram_bytes", machine(buffer=UnifiedBuffer(size=size, bandwidth=None, resident=0.0)), **sizes)

    assert through(1200.0) == 600 + 900 + 1800  # 600 of 1200 B
    assert through(1198.0) == 600 * 3 + 900 * 2 + 1800  # blocks of 12.24 on a side
    assert through(1120.0) == 600 * 3 + 900 * 2 + 1800  # of 11.8, where the sums had fewer bytes of 13, with more of 10
    assert through(760.0, a_bytes=600.0, n=19.0) == 600 * 2 + 900 * 3 + 1800  # of 9.75
    assert through(1198.0, **ELEMENTS) == 600 + 900 + 1800
    assert through(1198.0, **ATTENTION) == 600 + 900 + 1800
    assert through(1198.0, a_bytes=2000.0, b_bytes=599.0) == 2000 + 599 + 1800


def test_rows_are_read_from_the_buffer_for_each_column_of_tiles() -> None:
    assert found("buffer_bytes") == 30 * 10 * 3 * 2 * 3 + 1800
    assert found("buffer_bytes", **ATTENTION) == 900 + 1800
    assert found("buffer_bytes", **ELEMENTS) == 900 + 1800


def test_a_fifo_hides_what_is_not_the_longest_bound() -> None:
    assert found("smooth", machine(fifo=WeightFifo(tiles=4.0))) == np.inf
    assert found("smooth", machine(fifo=None)) == ASYNCHRONOUS


def test_energy_is_of_multiply_adds_and_arrays() -> None:
    work = {name: value.item() for name, value in terms().work.items()}
    assert work == {"macs": 18000.0, "issues": 0.0, "units": 2.0}


def test_bounds_are_these_quantities_over_their_rates() -> None:
    ours = terms()
    assert tpu.compute_bound(ours).item() == pytest.approx((41 * 10 + 14) / 1e9)
    assert tpu.compute_bound(terms(**ELEMENTS)).item() == pytest.approx(640 / 16 / 1e9)
    assert tpu.compute_bound(terms(**{**ELEMENTS, "dense": 1.0})).item() == pytest.approx(5e-9)
    memory = ours.device.memory
    assert tpu.memory_bound(ours).item() == pytest.approx((5184 + 1676) / (memory.bandwidth * memory.achievable))
    assert found("buffer_bytes") / 64e9 == pytest.approx(tpu.buffer_bound(ours).item())  # type: ignore[union-attr]
    assert tpu.buffer_bound(terms(machine(buffer=UnifiedBuffer(size=1024.0, bandwidth=None, resident=1.0)))) is None
    assert tpu.start_gap(ours).item() == ours.device.launch.latency
