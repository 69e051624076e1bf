"""A core beside what others measured of it, with nothing fitted to these figures."""

from pathlib import Path

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.estimation.measured import predicted, request_of
from archsim.evidence.readers import read_files

MACHINES = Path(__file__).resolve().parents[2] / "reports" / "published" / "machines"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "medians"),
    [("onnxruntime-cpu", (0.04, 0.04)), ("onnxruntime-im2col", (0.12, 0.12)), ("numpy-openblas-avx2", (0.05, 0.095)),
     ("numpy-openblas", (0.05, 0.09))],
)  # fmt: skip
@pytest.mark.parametrize("fidelity", ["analytical", "cycle"])
def test_products_and_convolutions_of_a_zen_5(stack: str, medians: tuple[float, float], fidelity: str) -> None:
    """Every other row of those that one and two of its cores ran, by closed form and cycle model; the goal is a median of 8 %."""
    median = medians[fidelity == "cycle"]
    cases, _ = read_files([MACHINES / "zen5_products.csv.gz"])
    errors = []
    for case in [one for one in cases if one.stack_id == stack][::2]:
        value, _ = predicted(case, request_of(case, default(), fidelity))
        errors.append(abs(value / case.measured - 1.0))
    assert np.median(errors) < median
