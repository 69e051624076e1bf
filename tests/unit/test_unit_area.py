"""Die areas and prices, part by part, from numbers that can be multiplied by hand."""

from __future__ import annotations

from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest

from archsim.cost.area import die_area, die_cost, die_parts, dies_per_wafer, near_storage, pins
from archsim.device.device import Gpu
from archsim.device.silicon import ProcessNode, Silicon, silicon
from tests import shipped

# Four-ninths of the density of the reference node: logic takes 2.25 times its area there, drivers of pins 1.5 times.
OLD = ProcessNode(name="16nm", density=4.0, cell=0.125, wafer=5000.0, defects=0.0)
NEW = ProcessNode(name="7nm", density=9.0, cell=0.03, wafer=9000.0, defects=0.1)
SILICON = Silicon(reference="7nm", fp32=0.01, control=0.2, fp64=0.03, tensor=0.005, sm_storage=2.0, l2_storage=3.0, gddr=0.1,
                  hbm=0.02, rest=8.0, diameter=300.0, cluster=2.0, field=858.0, nodes={"16nm": OLD, "7nm": NEW},
                  memory=silicon().memory, dies=(), turnaround={})  # fmt: skip
CELL = 8 * 0.125e-6  # mm2 of a byte


def card(**parts: dict[str, Any]) -> Gpu:
    return shipped.gpu("gtx_1080", **parts)


SIMPLE = {"sm": {"count": 10.0, "schedulers": 5.0, "registers": 2e5, "shared_memory": 1e5}, "l1": {"size": 5e4},
          "l2": {"size": 2e6}, "memory": {"bandwidth": 320e9, "data_rate": 10e9, "type": "GDDR5X"}}  # fmt: skip


def sms(rate: dict[str, float | None]) -> float:
    """The area of one SM, without its storage."""
    parts = die_parts(card(**SIMPLE, rate=rate), SILICON)
    near = 1e5 if rate.get("tensor_fp16") is not None else 1.5e5
    return float(parts["SMs"]) / 10 - CELL * 2.0 * (2e5 + near)


def test_the_parts_of_a_die_are_lanes_storage_pins_and_the_rest() -> None:
    parts = die_parts(card(**SIMPLE, rate={"fp32": 100.0, "fp64": 4.0, "tensor_fp16": None}), SILICON)
    assert {name: float(area) for name, area in parts.items()} == pytest.approx({
        "SMs": 10 * (2.25 * (0.01 * (80 + 32) + 0.03 * 4) + CELL * 2.0 * (2e5 + 1e5 + 5e4)),
        "L2": CELL * 3.0 * 2e6,
        "memory interface": 1.5 * 0.1 * 256,
        "rest": 2.25 * 8.0,
    })  # fmt: skip


def test_every_kind_of_lane_adds_its_area_and_one_that_is_not_there_adds_none() -> None:
    assert sms({"fp32": 100.0, "fp64": None, "tensor_fp16": None}) == pytest.approx(2.25 * 1.12)
    assert sms({"fp32": 100.0, "fp64": 50.0, "tensor_fp16": None}) == pytest.approx(2.25 * 2.62)
    assert sms({"fp32": 100.0, "fp64": None, "tensor_fp16": 512.0}) == pytest.approx(2.25 * 3.68)
    assert sms({"fp32": 100.0, "fp64": 50.0, "tensor_fp16": 512.0}) == pytest.approx(2.25 * 5.18)


def test_stacked_memory_has_pins_of_its_own() -> None:
    words = {**SIMPLE, "memory": {"bandwidth": 320e9, "data_rate": 10e9, "type": "HBM2"}}
    assert float(die_parts(card(**words), SILICON)["memory interface"]) == pytest.approx(1.5 * 0.02 * 256)


def test_shared_memory_and_l1_are_one_array_beside_tensor_cores() -> None:
    def storage(tensor: float | None, shared: float, first: float) -> float:
        return float(near_storage(Some(sm=Some(shared_memory=shared), l1=Some(size=first), rate=Some(tensor_fp16=tensor))))

    assert storage(None, 96.0, 48.0) == 144.0
    assert storage(512.0, 96.0, 128.0) == storage(512.0, 128.0, 96.0) == 128.0


def test_pins_without_a_data_rate_are_those_of_the_bus_or_none_at_all() -> None:
    assert [pins(Some(memory=Some(data_rate=None, bus=bus))) for bus in (384.0, None)] == [384.0, 0.0]


def test_the_die_is_the_sum_of_its_parts() -> None:
    device = card(**SIMPLE)
    assert float(die_area(device, SILICON)) == pytest.approx(sum(map(float, die_parts(device, SILICON).values())))


def test_a_wafer_holds_one_die_at_least() -> None:
    assert float(dies_per_wafer(1e5, 300.0)) == 1.0
    assert float(dies_per_wafer(25000.0, 300.0)) == 1.0
    assert float(dies_per_wafer(8000.0, 300.0)) == pytest.approx(np.pi * (22500 / 8000 - 300 / 16000**0.5))
    assert 1.3 < float(dies_per_wafer(8000.0, 300.0)) < 1.5


def test_the_price_of_a_die_is_that_of_the_wafer_over_its_good_dies() -> None:
    """640 dies of 100 mm2; of these 1 / (1 + 0.1 / 2)^2 are good."""
    dies = float(dies_per_wafer(100.0, 300.0))
    assert round(dies) == 640
    assert float(die_cost(100.0, NEW, SILICON)) == pytest.approx(9000 / dies * 1.05**2)
