"""Power of a workload at a lower clock, and energies of products in double precision: numbers from the equations."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace as Some

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.cost.blocking import narrow_clocks
from archsim.cost.cores import copy_clocks
from archsim.cost.switched import mac_energy
from archsim.cost.units import power_by_clock, unit_power
from archsim.device.device import Cpu, Gpu
from archsim.device.units import AWAKE, UnitClocks, unit_rates
from archsim.lower.columns import CpuRuntime
from tests import shipped
from tests.shipped import cpu as core

CONSTANTS = default()
TOP, SLOW = 1.53e9, 1.02e9


def gpu() -> Gpu:
    return shipped.gpu("tesla_v100_sxm2")


def drawn(clock: float, free: float, rate: float) -> float:
    """Power of a kernel that reads memory for the share `free` of its time and else multiplies, with `rate` of its work."""
    device, at = gpu(), UnitClocks(core=clock)
    dram = rate * free * device.memory.achievable * TOP / device.clock.boost
    rates = unit_rates(device, at)
    shares = {AWAKE: 1.0, "fp32": rate * TOP / clock * (1.0 - free), "dram": dram, "l2": dram * rates["dram"] / rates["l2"]}
    return float(np.ravel(sum(unit_power(device, shares, at, CONSTANTS).values()))[0])


def idle(clock: float) -> float:
    return float(np.ravel(sum(unit_power(gpu(), {}, UnitClocks(core=clock), CONSTANTS).values()))[0])


@pytest.mark.parametrize(("free", "rate"), [(0.0, SLOW / TOP), (1.0, 1.0), (0.4, 0.8)])
def test_what_is_above_the_idle_power_scales_with_that_of_the_mix(free: float, rate: float) -> None:
    for power in (120.0, 250.0):
        work = (power - idle(TOP)) / (drawn(TOP, free, 1.0) - idle(TOP))
        expected = idle(SLOW) + work * (drawn(SLOW, free, rate) - idle(SLOW))
        assert power_by_clock(gpu(), power, TOP, SLOW, rate, free, CONSTANTS) == pytest.approx(expected)


def test_a_product_in_double_precision_takes_as_much_more_as_an_operation_of_it() -> None:
    constants = CONSTANTS.with_values({"energy.double": 0.6, "energy.lane": 0.3})
    one = np.ones(1)
    single, double = (mac_energy(gpu(), precision, one, one, constants).item() for precision in ("fp32", "fp64"))
    assert double == pytest.approx(2.0 * single)


def test_packing_wide_values_takes_no_longer_for_each_byte_than_packing_single_ones() -> None:
    def clocks(operand: float) -> float:
        kernel = Some(copied=1000.0, matrix=1.0, channels=0.0, min_rows_per_thread=0.0, tiled=0.0, m=12.0, n=16.0,
                      count=1.0, packed=1.0, operand_a=operand, runtime=CpuRuntime())  # fmt: skip
        return float(copy_clocks(kernel, core(), 1.0, 1.0, {"cpu.pack_clk": 2.5, "cpu.pack_simd_clk": 0.5}))  # type: ignore[arg-type]

    assert clocks(8.0) == clocks(4.0) == 500.0
    assert clocks(2.0) == 250.0


def test_sums_wait_for_the_latency_of_their_tile_or_of_the_multiply_add() -> None:
    device = shipped.cpu("xeon_platinum_8480")
    late = replace(device, core=replace(device.core, fma_latency=100.0 * device.core.fma_latency))
    small = Some(m=16.0, n=16.0, k=640.0, count=1.0, packed=1.0, depthwise=0.0, runtime=CpuRuntime(),
                 operand_a=1.0, matrix=1.0)  # fmt: skip

    def clocks(core: Cpu, form: str) -> float:
        shape = core.dot_shape(form)
        assert shape is not None
        return float(narrow_clocks(small, core, shape.rows * shape.columns * shape.depth, form).item())  # type: ignore[arg-type]

    assert clocks(late, "int8_tile") == clocks(device, "int8_tile")
    assert clocks(late, "int8_dot") > 10.0 * clocks(device, "int8_dot")


def test_blocks_of_narrow_products_end_with_fewer_lines_and_with_a_single_column() -> None:
    """30 lines are two blocks of 14 and 2 more, 112 columns three pairs of registers and 1 more; two instructions a clock."""
    device = shipped.cpu("xeon_platinum_8480")
    product = Some(m=30.0, n=112.0, k=64.0, count=1.0, packed=1.0, depthwise=0.0, runtime=CpuRuntime(),
                   operand_a=1.0, matrix=1.0)  # fmt: skip
    whole, beyond = 2 * (3 * 14 + 7), 3 * 4 + 4  # clocks of a step; two lines wait four for their sums
    assert narrow_clocks(product, device, 128.0, "int8_dot").item() == (whole + beyond) * (64 / 4 + 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "times"), [("fp32", 4.0), ("tf32", 2.0), ("bf16", 1.0), ("fp8", 0.5), ("int8", 0.5)])
def test_a_tensor_core_spends_energy_in_proportion_to_the_width_of_an_operand(precision: str, times: float) -> None:
    rate = replace(gpu().rate, **{f"tensor_{precision}": 1e14})
    constants = CONSTANTS.with_values({"energy.clock": 0.2, "energy.tensor": 0.3})
    found = mac_energy(replace(gpu(), rate=rate), precision, np.ones(1), np.ones(1), constants)
    assert found.item() == pytest.approx(0.8 * 0.3 * times)
