"""What a power limit and a power mode mean for a request, and which clocks an estimate then says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import archsim
from archsim.base.errors import ArgumentError, UnknownName, Unsupported
from archsim.calibration.constants import default
from archsim.estimation.measured import request_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.evidence.readers import read_files
from archsim.explain.layer import explain


def test_a_card_with_a_measured_clock_runs_at_it_without_a_limit() -> None:
    request = make_request("alexnet", "titan_x_maxwell")
    assert request.limit is None
    assert request.clock == request.spec.device.clock.sustained


def test_a_card_with_an_assumed_clock_keeps_to_its_own_limit() -> None:
    request = make_request("alexnet", "rtx_3090")
    assert request.spec.entries["clock.sustained"].kind == "assumed"
    assert request.limit == request.spec.device.power.tdp
    assert any("nobody has measured" in note for note in request.notes)
    assert make_request("alexnet", "rtx_3090", clock=1.4e9).limit == request.limit  # a card with locked clocks keeps to it too
    assert make_request("alexnet", "rtx_3090", settings={"clock.sustained": "1500 MHz"}).limit is None


def test_a_limit_takes_the_clock_from_the_highest_of_the_card() -> None:
    request = make_request("alexnet", "tesla_t4", power_limit=60.0)
    assert (request.limit, request.clock) == (60.0, request.spec.device.clock.boost)
    both = make_request("alexnet", "tesla_t4", power_limit=60.0, clock=7e8)
    assert (both.limit, both.clock) == (60.0, 7e8)


def test_every_kernel_has_its_own_clock() -> None:
    found = archsim.estimate("vgg_16", "tesla_v100_pcie_32gb", batch=32, power_limit=130.0)
    clocks = [kernel.clock_hz for op in found.ops for kernel in op.kernels]
    assert min(clocks) < 0.9 * found.clock_hz < found.clock_hz < max(clocks)
    assert found.power_limit_w == 130.0
    assert found.power_boundary == "board"


def test_energy_against_the_limit_has_a_knee() -> None:
    """Less power takes longer and, until the voltage is at its floor, less energy."""
    found = [archsim.estimate("resnet_50", "tesla_v100_pcie_32gb", batch=64, power_limit=limit) for limit in range(75, 251, 25)]
    times, energies = [e.latency_s for e in found], [e.energy_j for e in found]
    assert np.all(np.diff(times) <= 0)
    best = int(np.argmin(energies))
    assert 0 < best < len(energies) - 1
    assert energies[best] < 0.9 * energies[-1]


def test_a_clock_that_is_named_is_that_of_every_core_the_usual_one_too() -> None:
    """One thread of a CPU has the turbo of the cores that rest, unless somebody names a clock."""
    cell = {"net": "alexnet", "hw": "xeon_e5_2630_v3_2s", "stack": "caffe-openblas", "threads": 1}
    usual = float(np.ravel(make_request(**cell).clock)[0])
    named, beside = (archsim.estimate(**cell, clock=clock).latency_s for clock in (usual, usual * (1 + 1e-9)))
    assert named == pytest.approx(beside, rel=1e-6)
    assert archsim.estimate(**cell).latency_s < 0.95 * named


def test_a_measured_row_that_names_the_usual_clock_has_no_turbo() -> None:
    case = next(c for c in read_files()[0] if c.hardware == "xeon_e5_2630_v3_2s" and c.threads == 1)
    usual = float(np.ravel(case.spec.device.usual_clock)[0])
    free, named = (float(run(request_of(one, default())).latency_s[0]) for one in (case, replace(case, clock=usual)))
    assert free < 0.95 * named


@pytest.mark.parametrize(
    ("hw", "words", "error", "said"),
    [
        ("tesla_t4", {"power_limit": 10.0}, ArgumentError, "idle power, 28 W"),
        ("tesla_t4", {"power_limit": 1e9}, ArgumentError, "power limit"),
        ("tesla_t4", {"power_mode": "maxq"}, Unsupported, "has none"),
        ("tegra_x2", {"power_mode": "turbo"}, UnknownName, "maxn, maxp, maxq"),
        ("tegra_x2", {"power_mode": "maxq", "clock": 1e9}, ArgumentError, "one of the two"),
    ],
)
def test_what_cannot_be_set_is_refused(hw: str, words: dict[str, float | str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make_request("alexnet", hw, **words)  # type: ignore[arg-type]


def test_a_processor_under_a_limit_is_predicted_and_not_explained() -> None:
    free, capped = (archsim.estimate("alexnet", "i7_6700k", batch=16, **words) for words in ({}, {"power_limit": 30.0}))
    assert capped.latency_s > free.latency_s
    assert capped.power_w <= 30.0
    with pytest.raises(ArgumentError, match="not explained"):
        explain(make_request("alexnet", "i7_6700k", power_limit=30.0), "conv1")
