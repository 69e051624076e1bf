"""Parts of the power that are left out, and shares of the time of which a power is the mean."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from archsim.calibration.constants import default
from archsim.device.catalog import find
from archsim.evidence.case import Case, UnitPattern
from archsim.evidence.family import family_called
from archsim.evidence.row import row_of
from archsim.evidence.table import Row
from archsim.stack import catalog as stacks
from archsim.stack.stack import STACK_KEYS, Stack
from archsim.validation import frozen
from archsim.validation.evaluation import LEFT_OUT, POWER_PARTS, left_out
from archsim.validation.predict import predict
from tests.ablation import Corpus


def case(shares: dict[str, float], hw: str = "titan_xp", mhz: float = 1404, memory: float = 1.0, **words: Any) -> Case:
    row = Row(line=2, cells={"source": "me", "hardware": hw})
    pattern = UnitPattern(shares=shares, core=1404e6, memory_now=memory, **words)
    found = row_of(family_called("microbenchmarks"), row, "x.csv")
    return found.case("kernel", "power_w", 100.0, clock=mhz * 1e6, pattern=pattern)


def power(one: Case, *without: str) -> float:
    cases, calibration = left_out([one], default(), frozenset(without))
    return float(predict(cases, calibration)[0])


@pytest.mark.parametrize(("part", "unit"), [("fp32_energy", "fp32"), ("int_energy", "int"), ("fp64_energy", "fp64"),
                                            ("special_energy", "special"), ("shared_energy", "shared"), ("l2_energy", "l2"),
                                            ("dram_energy l2_energy", "dram")])  # fmt: skip
def test_a_unit_without_energy_draws_what_an_idle_one_does(part: str, unit: str) -> None:
    """A byte of memory fills the L2."""
    busy, idle, parts = case({"sm": 1.0, unit: 0.5}), case({"sm": 1.0}), part.split()
    assert power(busy) > power(idle)
    assert power(busy, *parts) == pytest.approx(power(idle))
    assert power(idle, *parts) == pytest.approx(power(idle))


def test_without_voltage_every_clock_has_the_highest() -> None:
    slow, fast = (case({"sm": 1.0, "fp32": 0.9}, mhz=mhz) for mhz in (700, 1404))
    assert power(slow, "voltage") > power(slow)
    moving = "voltage", "leakage", "idle_clock"
    idle = power(case({}), *moving)  # what is above it goes with the clock alone
    assert (power(slow, *moving) - idle) / (power(fast, *moving) - idle) == pytest.approx(700 / 1404)


def test_without_its_clock_the_memory_stands() -> None:
    slow, usual = case({}, memory=0.5), case({})
    assert power(slow) < power(usual)
    assert power(slow, "memory_clock") == pytest.approx(power(usual))


def test_every_part_names_constants_that_there_are() -> None:
    names = default().constants
    for part in POWER_PARTS:
        assert all(any(name.startswith(begins) for name in names) for begins in LEFT_OUT[part]), part


def test_parts_of_time_leave_the_power_alone() -> None:
    cases = [case({"fp32": 0.5})]
    assert left_out(cases, default(), frozenset({"waves"})) == (cases, default())


def test_what_a_part_is_worth_is_the_error_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    off = {"a": np.array([-0.2, 0.4]), "b": np.zeros(3)}
    monkeypatch.setattr(frozen, "validate", lambda cases, skips, settings: SimpleNamespace(error=off[min(settings.without)]))
    found = frozen.ablation([case({})], default(), ("a", "b"), lambda text: None)
    assert found == {"a": {"n": 2, "mape": pytest.approx(0.3), "median": pytest.approx(0.3)},
                     "b": {"n": 3, "mape": 0.0, "median": 0.0}}  # fmt: skip


def test_a_mean_over_pauses_lies_between_idle_and_busy() -> None:
    shares = {"sm": 1.0, "fp32": 0.9}
    idle, busy, mean = power(case({})), power(case(shares)), power(case(shares, running=0.9))
    assert mean == pytest.approx(0.9 * busy + 0.1 * idle)


def test_voltages_of_an_architecture_are_dropped_once() -> None:
    one = case({"fp32": 0.5})
    flat, _ = left_out([one, replace(one, spec=find("tesla_v100_sxm2"))], default(), frozenset({"voltage"}))
    assert not any(key.startswith("power.voltage") for each in flat for key in each.spec.entries)
    assert flat[1].spec is find("tesla_v100_sxm2")  # of Volta nothing was known


def test_bytes_of_values_that_are_alike_switch_as_those_of_zeros() -> None:
    stream, lanes = {"sm": 1.0, "dram": 0.8}, {"sm": 1.0, "fp32": 0.9}
    awake, busy, alike = power(case({"sm": 1.0})), power(case(stream)), power(case(stream, alike=True))
    assert alike - awake == pytest.approx(default()["energy.zeros"] * (busy - awake))
    assert power(case(lanes, alike=True)) == power(case(lanes))


def stack(key: str, name: str = "caffe-cudnn5.1") -> Stack:
    """A stack with the default of a key."""
    return stacks.find(name).without([key])


def test_a_stack_without_a_key_has_its_default_in_every_entry_of_a_table() -> None:
    own = stacks.find("caffe-cudnn5.1")
    assert own.conv.tile_pixels > 0
    assert stack("conv.tile_pixels") == replace(own, conv=replace(own.conv, tile_pixels=0))
    assert {menu.least_results for menu in own.menus.values()} != {1}
    assert {menu.least_results for menu in stack("menus.least_results").menus.values()} == {1}
    assert stack("attention.fused") is own  # which it does not set


def test_keys_that_may_be_left_out_are_those_with_a_default() -> None:
    assert {"conv.bias", "passes.row_threads", "menus.split_k", "serving.block"} <= {*STACK_KEYS}
    assert not {"kind", "conv", "passes", "passes.inputs"} & {*STACK_KEYS}


def test_only_rows_whose_stack_sets_a_key_are_predicted_anew() -> None:
    one = case({}, "gtx_1080")
    cases, _ = left_out([one], default(), frozenset({"conv.tile_pixels", "attention.fused"}))
    assert cases[0] is one or cases[0].stack == stack("conv.tile_pixels", one.stack.id)
    corpus = Corpus(cases=[one], predicted=np.array([2.0]))
    assert corpus.without("attention.fused") == [np.array([2.0])]
    assert corpus.line("attention.fused")["verdict"] == "fails"
