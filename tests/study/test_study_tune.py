"""The best setting of a device: what is tried, what is best, what it saves, and clocks for a budget of energy."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import archsim
from archsim.base.errors import ArchsimError, ArgumentError, UnknownName, Unsupported
from archsim.cost.power import SLOWEST
from archsim.device.catalog import find, names
from archsim.estimation.request import make_request
from archsim.study.axis import BadAxis
from archsim.study.certainty import BATCHES, LIMITED, PARTS, savings
from archsim.study.grid import evaluate
from archsim.study.tune import OperatingPoint, Tuning, core_clocks, memory_clocks, power_limits, tune

from ..each import each

CLOCKS = "clock=300MHz:1530MHz:30MHz"
SMALL: dict[str, Any] = {"net": "alexnet", "hw": "tesla_v100_sxm2", "batch": 8}
VARY = (CLOCKS, "power_limit=150W,200W,300W")


def tuned(**words: Any) -> Tuning:
    return archsim.tune(**{**SMALL, "vary": VARY, **words})


def best_of(found: Tuning) -> OperatingPoint:
    assert found.best is not None
    return found.best


# ---------------------------------------------------------------------------------------------- the best setting


def test_the_best_setting_is_that_of_all_single_estimates() -> None:
    clocks, limits = np.meshgrid(np.arange(300e6, 1530e6 + 1, 30e6), [150.0, 200.0, 300.0])
    values = evaluate(make_request("alexnet", "tesla_v100_sxm2", batch=8),
                      {"clock": clocks.ravel(), "power_limit": limits.ravel()})  # fmt: skip
    deadline = float(np.median(values["latency_s"]))
    found, allowed = tuned(where=f"latency_s < {deadline}"), values["latency_s"] < deadline
    assert 0 < allowed.sum() < allowed.size
    least = float(values["energy_j"][allowed].min()) / 8
    assert best_of(found).energy_per_sample_j == pytest.approx(least, rel=1e-12)
    assert best_of(found).latency_s < deadline
    assert (found.points, found.feasible) == (allowed.size, allowed.sum())


def test_the_default_and_the_best_are_what_estimates_of_them_say() -> None:
    found = tuned()
    for point, words in ((found.default, {}), (best_of(found), {"clock": best_of(found).clock_hz,
                                                               "power_limit": best_of(found).power_limit_w})):  # fmt: skip
        one = archsim.estimate(**SMALL, **words)
        assert point.latency_s == pytest.approx(one.latency_s, rel=1e-12)
        assert point.energy_per_sample_j == pytest.approx(one.energy_j / 8, rel=1e-12)
        assert point.power_w == pytest.approx(one.power_w, rel=1e-12)
        assert point.mean_clock_hz == pytest.approx(one.clock_hz, rel=1e-12)
        assert point.memory_clock_hz == one.memory_clock_hz
    assert best_of(found).energy_per_sample_j < found.default.energy_per_sample_j


def test_the_front_has_no_setting_that_another_beats() -> None:
    front = tuned().front
    assert len(front) > 3
    for one, after in pairwise(front):
        assert one.latency_s < after.latency_s
        assert one.energy_per_sample_j > after.energy_per_sample_j


@each(("minimise", "output", "sign"), [("energy", "energy_per_sample_j", 1), ("energy_delay", "energy_delay_js", 1),
                                       ("latency", "latency_s", 1), ("power", "power_w", 1),
                                       ("throughput", "throughput_per_s", -1),
                                       ("efficiency", "throughput_per_w", -1)])  # fmt: skip
def test_each_aim_is_the_least_or_of_rates_the_most(minimise: str, output: str, sign: int) -> None:
    found = tuned(minimise=minimise)
    assert found.minimise == output
    best = sign * getattr(best_of(found), output)
    assert best <= min(sign * getattr(point, output) for point in (found.default, *found.front)) * (1 + sign * 1e-9)


def test_energies_of_batches_are_compared_by_sample() -> None:
    found = archsim.tune("alexnet", "tesla_v100_sxm2", vary={"batch": [1, 4, 16]}, where="power < 250W")
    best = best_of(found)
    assert best.batch == 16
    one = archsim.estimate("alexnet", "tesla_v100_sxm2", batch=16, clock=best.clock_hz, power_limit=best.power_limit_w)
    assert best.energy_per_sample_j == pytest.approx(one.energy_j / 16, rel=1e-12)
    assert best.energy_delay_js == pytest.approx(one.energy_j / 16 * one.latency_s, rel=1e-12)
    assert found.default.batch == 1


def test_a_lower_memory_clock_is_chosen_where_the_memory_hardly_works() -> None:
    found = archsim.tune("vgg_16", "titan_x_maxwell", batch=8, minimise="power", vary=["clock=800MHz", "power_limit=250W"])
    assert best_of(found).memory_clock_hz == 810e6


# ---------------------------------------------------------------------------------------------- conditions


def test_a_deadline_that_nothing_meets_has_a_nearest_setting() -> None:
    found = tuned(where="latency < 10us")
    assert (found.best, found.front, found.saved, found.feasible) == (None, (), {}, 0)
    assert found.nearest is not None
    assert found.nearest.latency_s == pytest.approx(best_of(tuned(minimise="latency")).latency_s, rel=1e-12)


def test_a_budget_of_energy_is_a_condition_on_a_sample() -> None:
    least, default = best_of(tuned()).energy_per_sample_j, tuned().default.energy_per_sample_j
    budget = 0.5 * (least + default)
    found = tuned(minimise="latency", energy_budget=budget)
    assert best_of(found).energy_per_sample_j <= budget
    assert best_of(found).latency_s > best_of(tuned(minimise="latency")).latency_s
    assert tuned(energy_budget=0.9 * least).best is None


def test_a_setting_that_is_given_stays() -> None:
    found = archsim.tune(**SMALL, clock="1.2GHz", vary="power_limit=200W,300W")
    assert {point.clock_hz for point in (found.default, best_of(found), *found.front)} == {1.2e9}
    assert found.ranges[-1] == "clock as asked"


REFUSED: tuple[tuple[dict[str, Any], type[ArchsimError], str], ...] = (
    ({"vary": "sm.count=8,16"}, UnknownName, "setting 'sm.count'.*archsim search"),
    ({"vary": ("clock=1GHz", "clock=1.1GHz")}, ArgumentError, "clock is given twice"),
    ({"clock": "1GHz", "vary": CLOCKS}, BadAxis, "clock: is set and varied"),
    ({"clock": "1GHz", "memory_clock": "876MHz", "power_limit": "200W", "vary": ()}, ArgumentError, "nothing varies"),
    ({"minimise": "area"}, ArgumentError, "no setting changes it"), ({"minimise": "speed"}, UnknownName, "output 'speed'"),
    ({"where": "batch < 4"}, ArgumentError, "batch does not vary"), ({"where": "latency < 5"}, ArchsimError, "unit"),
    ({"energy_budget": 0.0}, ArgumentError, "energy budget 0 J"), ({"energy_budget": "1W"}, ArgumentError, "energy_budget"),
    ({"energy_budget": float("nan")}, ArgumentError, "energy_budget"),
)  # fmt: skip


@each(("words", "error", "said"), REFUSED)
def test_what_cannot_be_tuned_is_refused(words: dict[str, Any], error: type[ArchsimError], said: str) -> None:
    with pytest.raises(error, match=said):
        tuned(**words)


# ---------------------------------------------------------------------------------------------- what is tried


@each("hw", names)
def test_usual_settings_are_those_of_the_device(hw: str) -> None:
    spec = find(hw)
    clocks, limits = core_clocks(spec), power_limits(spec)
    if spec.kind == "tpu":  # nobody sets its clock or its limit
        assert (clocks, limits, memory_clocks(spec)) == ((), (), ())
        return
    top = float(np.ravel(np.maximum(spec.device.clock.boost, spec.device.usual_clock))[0])
    assert SLOWEST * clocks[0] < clocks[-1] < clocks[0] <= top
    assert limits[0] == float(np.ravel(spec.device.power.tdp)[0])
    assert min(limits) > float(np.ravel(spec.device.power.idle)[0])
    memory = memory_clocks(spec)
    assert (not memory) == (spec.kind == "cpu")
    assert list(memory) == sorted(memory, reverse=True)


def test_memory_clocks_are_those_at_which_a_card_was_measured() -> None:
    assert memory_clocks(find("tesla_v100_sxm2")) == (876e6,)
    assert {810e6, 3505e6} <= set(memory_clocks(find("titan_x_maxwell")))  # above 3505 MHz it is another card


# ---------------------------------------------------------------------------------------------- what it saves


def test_a_saving_within_its_interval_is_uncertain() -> None:
    request = make_request("alexnet", "tesla_v100_sxm2")
    before = dict.fromkeys(PARTS, 1.0)
    for ratio, uncertain in ((0.5, False), (0.97, True), (1.0, False)):
        found = savings(request, before, dict.fromkeys(PARTS, ratio), clocks=True, batches=False)
        assert {one.uncertain for one in found.values()} == {uncertain}
        assert all(one.interval[0] <= ratio <= one.interval[1] for one in found.values())
    less = savings(request, before, dict.fromkeys(PARTS, 0.9), clocks=True, batches=False)
    assert less["latency_s"].probability == pytest.approx(1 - less["throughput_per_s"].probability)
    assert less["latency_s"].probability > 0.9


def test_intervals_of_savings_are_as_measured() -> None:
    request = make_request("alexnet", "tesla_v100_sxm2")

    def widths(clocks: bool, batches: bool) -> dict[str, float]:
        found = savings(request, dict.fromkeys(PARTS, 1.0), dict.fromkeys(PARTS, 0.5), clocks, batches)
        return {part: 0.5 * math.log(found[name].interval[1] / found[name].interval[0]) for name, part in PARTS.items()}

    assert widths(clocks=False, batches=False) == pytest.approx(LIMITED)
    by_clock = request.calibration.spreads["gpu by clock"].high
    assert widths(clocks=True, batches=False)["power"] == pytest.approx(by_clock)
    assert widths(clocks=True, batches=False)["energy"] == pytest.approx(math.hypot(by_clock, LIMITED["time"]))
    assert widths(clocks=False, batches=True)["time"] == pytest.approx(math.hypot(BATCHES, LIMITED["time"]))


# ---------------------------------------------------------------------------------------------- a budget of an estimate


@given(st.sampled_from(("tesla_v100_sxm2", "titan_xp", "gtx_1080", "i7_6700k")), st.floats(0.75, 0.99))
def test_within_a_budget_the_clock_is_the_highest(hw: str, share: float) -> None:
    plain = archsim.estimate("alexnet", hw, batch=4)
    budget = share * plain.energy_j / 4
    try:
        found = archsim.estimate("alexnet", hw, batch=4, energy_budget=budget)
    except Unsupported:  # below the least energy at any clock
        return
    assert found.energy_j / 4 <= budget * (1 + 1e-12)
    assert found.energy_budget_j == budget
    assert found.clock_hz < plain.clock_hz
    higher = archsim.estimate("alexnet", hw, batch=4, clock=1.002 * found.clock_hz)
    assert higher.energy_j / 4 > budget


def test_a_budget_that_is_kept_changes_nothing() -> None:
    plain = archsim.estimate("alexnet", "gtx_1080")
    found = archsim.estimate("alexnet", "gtx_1080", energy_budget=1.01 * plain.energy_j)
    assert (found.latency_s, found.energy_j, found.clock_hz) == (plain.latency_s, plain.energy_j, plain.clock_hz)


def test_a_budget_holds_beside_a_power_limit() -> None:
    words: dict[str, Any] = {**SMALL, "net": "resnet_50", "power_limit": "180W"}
    plain = archsim.estimate(**words)
    found = archsim.estimate(**words, energy_budget=0.95 * plain.energy_j / 8)
    assert found.energy_j <= 0.95 * plain.energy_j
    assert found.power_w <= 180.0
    assert found.power_limit_w == 180.0


def test_a_budget_is_one_of_the_device() -> None:
    with pytest.raises(ArgumentError, match="energy budget: is one of the device"):
        archsim.estimate("resnet_50", "tesla_v100_sxm2", energy_budget="1J", boundary="wall")


def test_the_least_energy_is_named_where_no_clock_keeps_a_budget() -> None:
    with pytest.raises(Unsupported, match=r"takes .* mJ at least, at a core clock of .*Hz; `archsim tune`"):
        archsim.estimate("resnet_50", "tesla_v100_sxm2", energy_budget="1mJ")
    for budget in (0.0, -1.0, 1e13):
        with pytest.raises(ArgumentError, match="energy budget"):
            archsim.estimate("alexnet", "gtx_1080", energy_budget=budget)


def test_the_least_energy_that_is_named_can_be_kept() -> None:
    with pytest.raises(Unsupported) as refused:
        archsim.estimate("alexnet", "titan_xp", batch=4, energy_budget="1mJ")
    least = float(str(refused.value).partition("takes ")[2].split()[0]) * 1e-3
    found = archsim.estimate("alexnet", "titan_xp", batch=4, energy_budget=1.001 * least)
    assert found.energy_j / 4 == pytest.approx(least, rel=2e-3)


def test_answers_show_themselves() -> None:
    found = tuned()
    assert callable(archsim.sweep)  # not the module of that name
    assert found.to_dict()["schema"] == "archsim-tune/1"
    assert "core clock" in str(found._repr_html_())
    assert "Pareto front" in found.to_page()
    assert tune("alexnet", "tesla_v100_sxm2", {"batch": 8}, vary=VARY).best == found.best


def test_batches_are_tried_where_nobody_gives_one() -> None:
    found = archsim.tune("alexnet", "tesla_v100_sxm2", vary=["clock=1530MHz", "power_limit=300W"])
    assert found.points == 7
    assert found.default.batch == 1
    assert found.best is not None
    assert found.best.batch == 64
    held = archsim.tune("alexnet", "tesla_v100_sxm2", batch=2, vary=["clock=1530MHz,1200MHz", "power_limit=300W"])
    assert held.best is not None
    assert (held.points, held.best.batch) == (2, 2)
