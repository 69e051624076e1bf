"""Devices: peaks are derived, and a unit that is not there is not invented."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archsim.base.errors import Unsupported
from tests.shipped import cpu, gpu


@pytest.mark.parametrize(
    ("name", "precision", "tflops"),
    [("tegra_x1", "fp32", 2 * 2 * 128 * 0.9984e9), ("tegra_x1", "fp16", 2 * 2 * 256 * 0.9984e9),
     ("gtx_1080", "fp32", 2 * 20 * 128 * 1.733e9), ("tesla_k40", "fp32", 2 * 15 * 192 * 0.745e9 * 875 / 745),
     ("tesla_v100_sxm2", "fp16", 2 * 80 * 512 * 1.53e9)],
)  # fmt: skip
def test_peaks_of_gpus(name: str, precision: str, tflops: float) -> None:
    assert gpu(name).peak_flops(precision) == pytest.approx(tflops, rel=2e-3)


def test_peaks_of_cpus() -> None:
    device = cpu("i7_6700k")
    assert device.pipe("fp32") == 8 * 2
    assert device.pipe("fp64") == 4 * 2
    assert device.peak_flops("fp32") == 2 * 4 * 16 * device.default_clock


def test_a_peak_at_another_clock() -> None:
    assert gpu("tegra_x1").peak_flops("fp32", 1e9) == 2 * 2 * 128 * 1e9


def test_half_precision_without_a_unit_is_storage_only() -> None:
    """GP104 has a token fp16 rate of 1/64: operands are widened and multiplied as fp32."""
    for name in ("gtx_1080", "tesla_k40", "titan_x_maxwell", "gtx_980"):
        device = gpu(name)
        assert device.pipe("fp16") == device.rate.fp32
    for name, factor in (("tegra_x1", 2), ("tesla_p100_sxm2", 2)):
        assert gpu(name).pipe("fp16") == factor * gpu(name).rate.fp32


def test_a_missing_unit_is_no_number() -> None:
    for name, precision in (("tegra_x1", "int8"), ("tegra_x1", "fp8"), ("tegra_x1", "tf32"), ("tesla_k40", "int8")):
        with pytest.raises(Unsupported, match=f"{name} has no unit for {precision}"):
            gpu(name).pipe(precision)
    for precision in ("int8", "fp8", "tf32"):
        with pytest.raises(Unsupported, match="no modelled unit"):
            cpu("i7_3820").pipe(precision)
    with pytest.raises(Unsupported, match="fp17"):
        gpu("tegra_x1").pipe("fp17")


def test_an_array_of_rates_of_the_matrix_unit_is_the_pipe() -> None:
    device = gpu("tesla_v100_sxm2")
    rates = np.array([[32.0], [512.0]])
    narrow = replace(device, rate=replace(device.rate, tensor_fp16=rates, fp16=128.0, fp32=64.0))
    np.testing.assert_array_equal(narrow.pipe("fp16"), [[32.0], [512.0]])


def test_a_what_if_is_a_replacement_and_the_original_stays() -> None:
    device = gpu("tegra_x1")
    twice = replace(device, sm=replace(device.sm, count=4))
    assert twice.peak_flops("fp32") == 2 * device.peak_flops("fp32")
    assert device.sm.count == 2
