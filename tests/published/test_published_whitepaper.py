"""NVIDIA's own measurements of the Jetson TX1 and of a desktop CPU beside it (whitepaper, November 2015)."""

from __future__ import annotations

import pytest

import archsim

TOLERANCE = 0.28
CPU_TOLERANCE = 0.12
POWER_TOLERANCE = 0.35

# (device, stack, precision, batch, clock [Hz], images per second, watts)
CELLS = [
    ("tegra_x1", "caffe-cudnn4", "fp32", 1, 690e6, 47.0, 5.5),
    ("tegra_x1", "caffe-cudnn4", "fp16", 1, 690e6, 67.0, 5.1),
    ("tegra_x1", "caffe-cudnn4", "fp32", 128, 690e6, 155.0, 6.0),
    ("tegra_x1", "caffe-cudnn4", "fp16", 128, 690e6, 258.0, 5.7),
    ("i7_6700k", "intel-mkl", "fp32", 1, None, 62.0, 49.7),
    ("i7_6700k", "intel-mkl", "fp32", 48, None, 242.0, 62.5),
]
IDS = [f"{cell[0]}-{cell[2]}-batch{cell[3]}" for cell in CELLS]
Cell = tuple[str, str, str, int, float | None, float, float]


def predicted(cell: Cell) -> archsim.Estimate:
    hw, stack, precision, batch, clock = cell[:5]
    return archsim.estimate(net="alexnet", hw=hw, stack=stack, precision=precision, batch=batch, clock=clock)


@pytest.mark.parametrize("cell", CELLS, ids=IDS)
def test_throughput(cell: Cell) -> None:
    found = predicted(cell).throughput_per_s
    tolerance = CPU_TOLERANCE if cell[0] == "i7_6700k" else TOLERANCE
    assert abs(found / cell[5] - 1) <= tolerance, f"{found:.1f} img/s, measured {cell[5]:g}"


@pytest.mark.parametrize("cell", CELLS[:4], ids=IDS[:4])
def test_power_of_the_module(cell: Cell) -> None:
    found = predicted(cell).power_w
    assert abs(found / cell[6] - 1) <= POWER_TOLERANCE, f"{found:.2f} W, measured {cell[6]:g}"


@pytest.mark.parametrize("cell", CELLS, ids=IDS)
def test_the_roofline_is_faster_than_what_was_measured(cell: Cell) -> None:
    hw, stack, precision, batch, clock = cell[:5]
    bound = archsim.estimate(
        net="alexnet", hw=hw, stack=stack, precision=precision, batch=batch, clock=clock, fidelity="roofline"
    )
    assert bound.throughput_per_s >= cell[5]


def test_what_the_whitepaper_concludes() -> None:
    """Half precision is faster, a large batch is more efficient, the module does more per watt than the desktop CPU."""
    one, half, large, large_half, cpu, cpu_large = (predicted(cell) for cell in CELLS)
    assert half.throughput_per_s > one.throughput_per_s
    assert large_half.throughput_per_s > 1.3 * large.throughput_per_s
    assert large.throughput_per_w > 2 * one.throughput_per_w
    assert one.throughput_per_w > 3.5 * cpu.throughput_per_w  # the paper: 6.8
    assert large_half.throughput_per_w > 4 * cpu_large.throughput_per_w


def test_the_cells_are_the_published_rows() -> None:
    """The table above says what the shipped corpus says."""
    from archsim.evidence.network_rows import network_cases

    rows = {
        (case.hardware, case.fields["stack"], case.precision, case.batch, case.clock, case.metric): case.measured
        for hw in ("tegra_x1", "i7_6700k") for case in network_cases("alexnet", hw, lambda cells: True)
        if case.source == "nvidia_tx1_wp"
    }  # fmt: skip
    for hw, stack, precision, batch, clock, rate, power in CELLS:
        assert rows[hw, stack, precision, batch, clock, "throughput_per_s"] == rate
        assert rows[hw, stack, precision, batch, clock, "power_w"] == power
