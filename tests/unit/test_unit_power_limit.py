"""What a power limit, a power mode and a cooler mean for a request, and which clocks an estimate then says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import archsim
from archsim.base.errors import ArgumentError, UnknownName, Unsupported
from archsim.calibration.constants import default
from archsim.device.catalog import find
from archsim.estimation.measured import request_of
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.evidence.readers import read_files
from archsim.explain.layer import explain
from archsim.study.grid import evaluate
from archsim.study.whatif import beside


@pytest.mark.parametrize("hw", ["titan_x_maxwell", "rtx_3090", "i7_6700k"])
def test_a_device_keeps_to_its_own_limit_whoever_tells_its_clock(hw: str) -> None:
    """A sustained clock that somebody measured stands on the GPU as it is sold; the TDP lowers every other one."""
    request, tdp = make_request("alexnet", hw), find(hw).device.power.tdp
    measured = request.spec.kind == "gpu" and not request.spec.entries["clock.sustained"].unpublished
    assert (request.limit, request.clock) == (None if measured else tdp, request.spec.device.usual_clock)
    assert make_request("alexnet", hw, clock=1.4e9).limit == tdp  # a card with locked clocks keeps to it too
    changed = make_request("alexnet", hw, scales={"memory.bandwidth": 1.1})
    assert (changed.limit, beside(request, changed).limit, beside(request, request).limit) == (tdp, tdp, request.limit)


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


def test_a_processor_under_a_limit_is_predicted_and_explained() -> None:
    free, capped = (archsim.estimate("alexnet", "i7_6700k", batch=16, **words) for words in ({}, {"power_limit": 30.0}))
    assert capped.latency_s > free.latency_s
    assert capped.power_w <= 30.0
    told = explain(make_request("alexnet", "i7_6700k", batch=16, power_limit=30.0), "conv1")
    assert told.clock_hz < 4e9
    assert sum(kernel.steps[-1].value for kernel in told.kernels) == pytest.approx(told.device_s)


CHANGED = {"sm.count": "80", "memory.bandwidth": "1280 GB/s"}
OWN = '''schema = 1
id = "own"
name = "an own card"
inherits = "gtx_1080"
year = 2026
[sm]
count = { value = 80, source = "a plan of mine", kind = "assumed", note = "x 4" }
[memory]
bandwidth = { value = "1280 GB/s", source = "a plan of mine", kind = "assumed", note = "x 4" }
[clock]
sustained = { value = "1650 MHz", source = "a plan of mine", kind = "assumed", note = "as before" }
[power]
idle = { value = "38 W", source = "a plan of mine", kind = "assumed", note = "as before" }
'''


def test_energy_is_power_times_time_however_a_device_was_changed(tmp_path: Path) -> None:
    """A change by settings, by a file, and as a point of a sweep are one device; the sum over kernels is what the board drew."""
    (tmp_path / "own.toml").write_text(OWN, "utf-8")
    by_key = archsim.estimate("vgg_16", "gtx_1080", batch=16, set=CHANGED)
    by_file = archsim.estimate("vgg_16", str(tmp_path / "own.toml"), batch=16)
    points = evaluate(make_request("vgg_16", "gtx_1080", batch=16), {"sm.count": [20, 80], "memory.bandwidth": [320e9, 1280e9]})
    assert (by_file.latency_s, by_file.energy_j) == (by_key.latency_s, by_key.energy_j)
    assert points["latency_s"].tolist() == [archsim.estimate("vgg_16", "gtx_1080", batch=16).latency_s, by_key.latency_s]
    drawn = math.fsum(kernel.power_w * kernel.time_s for op in by_key.ops for kernel in op.kernels)
    assert drawn <= by_key.energy_j <= 180.0 * by_key.latency_s
    assert max(kernel.power_w for op in by_key.ops for kernel in op.kernels) == pytest.approx(180.0)
    fastest = max(kernel.clock_hz for op in by_key.ops for kernel in op.kernels)
    assert min(kernel.clock_hz for op in by_key.ops for kernel in op.kernels) < 0.9 * fastest == pytest.approx(0.9 * 1.65e9)


# ----------------------------------------------------------------------------------------------------------------- coolers


PASSIVE = {"power.throttle": "85", "power.air": "35"}


def cooled(resistance: float) -> dict[str, str]:
    """A card without a fan of its own, in warm air."""
    return {**PASSIVE, "power.thermal_resistance": f"{resistance}"}


def test_a_cooler_limits_as_a_power_limit_of_the_same_watts_does() -> None:
    hot = archsim.estimate("resnet_50", "tesla_t4", batch=32, set=cooled(1.0))
    limited = archsim.estimate("resnet_50", "tesla_t4", batch=32, power_limit=50.0)
    assert hot.power_limit_w == pytest.approx(50.0)
    assert hot.latency_s == pytest.approx(limited.latency_s, rel=1e-6)
    assert any("heat: in air of 35 degrees the chip reaches 85 degrees at 50 W" in said for said in hot.assumptions)


def test_worse_coolers_make_slower_cards_and_good_ones_change_nothing() -> None:
    times = [archsim.estimate("resnet_50", "tesla_t4", batch=32, set=cooled(of)).latency_s for of in (0.1, 0.8, 1.0, 1.2)]
    assert times == sorted(times)
    assert times[0] == archsim.estimate("resnet_50", "tesla_t4", batch=32).latency_s  # 500 W: the TDP is the lower limit
    assert times[1] < times[2] < times[3]


def test_the_lower_of_two_limits_holds() -> None:
    assert make_request("alexnet", "tesla_t4", power_limit=45.0, settings=cooled(1.0)).limit == 45.0
    assert make_request("alexnet", "tesla_t4", power_limit=65.0, settings=cooled(1.0)).limit == 50.0


def test_two_of_three_values_are_no_cooler() -> None:
    assert make_request("alexnet", "tesla_t4", settings=PASSIVE).limit == make_request("alexnet", "tesla_t4").limit


def test_a_cpu_has_a_cooler_too() -> None:
    alone, hot = (archsim.estimate("resnet_50", "i7_6700k", set=of) for of in (None, cooled(1.25)))
    assert hot.power_limit_w == pytest.approx(40.0)
    assert hot.latency_s > alone.latency_s


def test_units_without_a_network_are_held_to_it() -> None:
    found = archsim.power("tesla_t4", {"fp32": 0.8, "sm": 1.0}, set=cooled(1.0))
    assert found.power_limit_w == pytest.approx(50.0)
    assert any("what the cooler carries away" in said for said in found.assumptions)
    assert not any("changes no watt" in said for said in found.warnings)


def test_a_cooler_that_does_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"carries away 5 W .* no more than the idle power"):
        make_request("alexnet", "tesla_t4", settings=cooled(10.0))
    with pytest.raises(ArgumentError, match="thermal_resistance"):
        archsim.power("tesla_t4", {"fp32": 0.8}, set=cooled(10.0))
