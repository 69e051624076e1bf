"""Power, energy and clocks beside what others have measured: Jetson TX2, epochs under power limits, dense load."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.evidence.case import Case
from archsim.evidence.columns import quantity
from archsim.evidence.family import shipped_files
from archsim.evidence.readers import read
from archsim.validation.predict import predict

CLOCK_TOLERANCE = 0.08
# Cards whose clock the power model misses by more; they share their node with cards that pull the other way.
OPEN = {"tesla_p4", "tesla_t4"}


@cache
def rows_of(name: str) -> list[Case]:
    (file,) = (file for file in shipped_files() if file.name == name)
    return read(file)[0]


def errors(name: str, wanted: Callable[[Case], bool]) -> tuple[list[Case], np.ndarray]:
    cases = [case for case in rows_of(name) if wanted(case)]
    return cases, predict(cases, default()) / np.array([case.measured for case in cases]) - 1


@pytest.mark.parametrize("what", ["time", "energy", "power"])
@pytest.mark.parametrize("hardware", ["tesla_v100_pcie_32gb", "tesla_p100_pcie_16gb"])
def test_epochs_under_power_limits(hardware: str, what: str) -> None:
    cases, off = errors("power_caps.csv", lambda case: case.hardware == hardware and quantity(case) == what)
    assert len(cases) >= 25
    assert np.median(np.abs(off)) <= (0.10 if what == "power" else 0.06)
    assert np.percentile(np.abs(off), 90) <= 0.16


def test_power_of_a_jetson_in_its_modes() -> None:
    cases, off = errors("networks.csv", lambda case: case.source == "qutibench_tx2" and case.metric == "power_w")
    assert {case.clock for case in cases} == {1300e6, 850e6}
    assert np.median(np.abs(off)) <= 0.08
    assert np.percentile(np.abs(off), 90) <= 0.20


def test_power_of_kernels_on_a_large_card() -> None:
    """The median is wide of its goal of 8 %: about half of these rows stand at the limit, the others hold what ran before."""
    cases, off = errors("kernel_power.csv", lambda case: case.metric == "power_w" and case.fitted)
    assert len(cases) > 300
    assert 0.08 < np.median(np.abs(off)) <= 0.15
    assert abs(np.median(off)) <= 0.05


def test_clocks_under_dense_load_come_out_of_the_power_model() -> None:
    cases, off = errors("dense_clocks.csv", lambda case: True)
    missed = {case.hardware for case, error in zip(cases, off, strict=True) if abs(error) > CLOCK_TOLERANCE}
    assert missed == OPEN, "take a card that is met now off the list, and say so in the changelog"
    assert np.abs(off).max() <= 0.30
