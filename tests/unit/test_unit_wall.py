"""Power at the wall: the file of a system, what its supply loses, estimates, comparisons and measured rows at the plug."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.answers.estimate import csv, record, sections
from archsim.base.errors import ArgumentError, InputError, UnknownName
from archsim.base.files import data_folder
from archsim.calibration.constants import default
from archsim.calibration.wall import wall_constants
from archsim.cost.power import LOADS, supply_loss
from archsim.detect import catalog
from archsim.device.device import Cpu
from archsim.evidence.readers import read
from archsim.node import system
from archsim.render.html import page
from archsim.render.text import text_of
from archsim.validation.predict import predict
from tests.each import each

PLATINUM = (0.83, 0.90, 0.94, 0.91)
HEAD = "source,network,hardware,stack,task,batch,precision,metric,value,split,source_ref"
RESULT = "r: closed/X/results/{name}/resnet50/{scenario}"
ROW = "mlperf,resnet_50,{hw},tensorrt-8,inference,{batch},int8,{metric},{value},{split}," + RESULT


def rows(tmp_path: Path, *given: dict[str, Any]) -> Path:
    usual = {"hw": "a100_pcie_80gb", "batch": 2048, "metric": "system_power_w", "value": 2068.3, "split": "calibrate",
             "name": "A100-PCIe-80GBx8_TRT_MaxQ", "scenario": "Offline"}  # fmt: skip
    file = tmp_path / "mlperf.csv"
    file.write_text("\n".join([HEAD, *(ROW.format(**{**usual, **one}) for one in given)]) + "\n")
    return file


@each("load", LOADS)
def test_at_its_test_points_a_supply_has_the_efficiency_of_its_class(load: float) -> None:
    lost = supply_loss(1000.0 * load, 1000.0, PLATINUM)
    assert load * 1000.0 / (load * 1000.0 + lost) == pytest.approx(PLATINUM[LOADS.index(load)])


def test_a_supply_with_little_to_feed_still_loses_what_it_does_at_a_tenth() -> None:
    assert supply_loss(1.0, 1000.0, PLATINUM) == pytest.approx(supply_loss(100.0, 1000.0, PLATINUM))
    more = [supply_loss(load, 1000.0, PLATINUM) for load in range(50, 1500, 50)]
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(more))


@each("name", system.names)
def test_every_shipped_system_can_be_read_and_says_what_nobody_published(name: str) -> None:
    found = system.find(name)
    assert found.id == name
    assert found.devices >= 1
    assert found.supply.at_10 <= found.supply.at_20 <= found.supply.at_50
    assert {entry.key for entry in found.assumed} <= set(found.entries)
    if found.host.cpu is not None:
        assert isinstance(catalog.find(found.host.cpu).device, Cpu)


def test_every_processor_beside_a_desktop_is_one() -> None:
    for name in system.find("desktop").beside:
        assert catalog.find(name).kind == "cpu"


@each(("hw", "usual"), [("gtx_1080", "desktop"), ("a100_sxm4_40gb", "server"), ("tegra_x1", "carrier_board"),
                        ("raspberry_pi_4", "single_board"), ("i7_6700k", "desktop"),
                        ("xeon_platinum_8380", "server")])  # fmt: skip
def test_a_device_has_a_usual_system_by_its_boundary_and_its_host(hw: str, usual: str) -> None:
    found = archsim.estimate("alexnet", hw, boundary="wall")
    assert found.wall is not None
    assert found.wall.system == usual
    assert found.power_boundary == "wall"
    assert found.wall.device_boundary == archsim.estimate("alexnet", hw).power_boundary


def test_the_parts_at_the_wall_add_up_and_the_device_is_as_it_was() -> None:
    device = archsim.estimate("resnet_50", "a100_sxm4_80gb", batch=64)
    wall = archsim.estimate("resnet_50", "a100_sxm4_80gb", batch=64, boundary="wall", system="dgx_a100_80gb")
    found = wall.wall
    assert found is not None
    assert device.wall is None
    assert found.device_w == device.power_w
    assert math.fsum(found.parts_w.values()) == pytest.approx(found.computer_w)
    assert found.parts_w["devices"] == pytest.approx(8 * device.power_w)
    assert wall.power_w == pytest.approx(found.computer_w / 8)
    assert wall.energy_j == pytest.approx(wall.power_w * wall.latency_s)
    assert math.fsum(wall.energy_breakdown_j.values()) == pytest.approx(wall.energy_j)
    assert wall.throughput_per_w == pytest.approx(wall.throughput_per_s / wall.power_w)
    assert (wall.latency_s, wall.power_over_time) == (device.latency_s, device.power_over_time)
    assert found.efficiency == pytest.approx((found.computer_w - found.parts_w["supply"]) / found.computer_w)
    assert wall.power_interval_w[0] < wall.power_w < wall.power_interval_w[1]
    assert wall.energy_interval_j[0] / wall.energy_j < wall.power_interval_w[0] / wall.power_w
    assert found.held_out == wall_constants().spreads["described"]


def test_more_devices_in_a_computer_share_what_stands_beside_them() -> None:
    one, four = (archsim.estimate("alexnet", "gtx_1080", boundary="wall", system=f"desktop:{n}") for n in (1, 4))
    assert four.power_w < one.power_w
    assert four.wall is not None
    assert four.wall.devices == 4


def test_a_processor_is_its_own_host_and_a_module_holds_it() -> None:
    for hw in ("i7_6700k", "tegra_x1"):
        wall = archsim.estimate("alexnet", hw, boundary="wall").wall
        assert wall is not None
        assert wall.parts_w["host"] == 0.0


def test_it_is_said_at_which_boundary_a_power_is() -> None:
    wall = archsim.estimate("alexnet", "gtx_1080", boundary="wall")
    text = text_of(sections(wall), 2)
    assert "at the wall, with desktop; the device" in text
    assert "(board)" in text
    assert "rows of wall, generic systems" in text
    assert "not published of system desktop" in text
    assert record(wall)["wall"]["system"] == "desktop"
    assert csv(wall) == csv(archsim.estimate("alexnet", "gtx_1080"))  # the ops are those of the device
    assert "what its power supplies lose" in page(sections(wall))


def test_units_of_a_gpu_at_the_wall() -> None:
    shares = {"fp32": 0.8, "dram": 0.3}
    device, wall = archsim.power("titan_xp", shares), archsim.power("titan_xp", shares, boundary="wall")
    assert wall.wall is not None
    assert wall.power_w > device.power_w
    assert wall.wall.device_w == device.power_w
    assert math.fsum(wall.parts_w.values()) == pytest.approx(wall.power_w)


def test_a_comparison_at_the_wall_ranks_by_what_a_meter_shows() -> None:
    device, wall = (archsim.compare("alexnet", "tegra_x1,gtx_1080", **words) for words in ({}, {"boundary": "wall"}))
    for before, after in zip(sorted(device.contenders, key=lambda c: c.name), sorted(wall.contenders, key=lambda c: c.name),
                             strict=True):  # fmt: skip
        assert after.energy_j > before.energy_j
        assert after.latency_s == before.latency_s


@each(("words", "said"), [
    ({"boundary": "plug"}, "boundary: 'plug' is not one of device, wall"),
    ({"system": "desktop"}, "system desktop: moves power at the wall alone"),
    ({"boundary": "wall", "system": "desktop:0"}, "a system holds 1 to 64"),
    ({"boundary": "wall", "system": "desktop:65"}, "a system holds 1 to 64"),
])  # fmt: skip
def test_a_boundary_or_a_system_that_there_is_not_is_refused(words: dict[str, str], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        archsim.estimate("alexnet", "gtx_1080", **words)


def test_an_unknown_system_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="desktop"):
        archsim.estimate("alexnet", "gtx_1080", boundary="wall", system="desktob")


def test_a_broken_file_names_every_key(tmp_path: Path) -> None:
    text = data_folder(system.FOLDER).joinpath("server.toml").read_text("utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.replace('rating = { value = "4400 W"', 'rating = { value = "4400"').replace("per_gb", "per_mb")
                    + "\n[extra]\nx = 1\n")  # fmt: skip
    with pytest.raises(InputError) as caught:
        system.find(str(file))
    said = str(caught.value)
    assert all(word in said for word in ("supply.rating", "parts.per_mb", "[extra]: no such table"))
    file.write_text(text)
    assert archsim.estimate("alexnet", "a100_sxm4_40gb", boundary="wall", system=file).wall is not None


def test_rows_at_the_wall_are_read_with_their_system_their_devices_and_its_limit(tmp_path: Path) -> None:
    cases, skips = read(rows(
        tmp_path, {}, {"name": "A100-PCIe-80GBx8_TRT"}, {"name": "R750xa_A100-PCIE-80GBx4_TRT", "split": "watched"},
        {"metric": "system_energy_j", "scenario": "SingleStream", "batch": 1, "value": 0.5},
    ))  # fmt: skip
    assert not skips
    known, unlimited, other, stream = cases
    assert [(case.system[0].id, case.system[1]) for case in cases if case.system] == [
        ("gigabyte_g482_z54", 8), ("gigabyte_g482_z54", 8), ("server", 4), ("gigabyte_g482_z54", 8)]  # fmt: skip
    assert (known.limit, unlimited.limit, other.limit, stream.limit) == (195.0, None, None, None)
    power, free, less, energy = predict(cases, default())
    assert power == pytest.approx(2068.3, rel=0.05)
    assert free > power
    assert less < power
    assert 0.05 < energy < 2.0


def test_validation_scores_powers_at_the_wall_by_system_with_intervals_of_their_own(tmp_path: Path) -> None:
    file = rows(tmp_path, {}, {"name": "XE8545_A100_SXM_80GBx4_TRT_MaxQ", "hw": "a100_sxm4_80gb", "value": 1390.99})
    found = archsim.validate(measurements=[str(file)], by="system")
    assert {group.by["system"] for group in found.groups} == {"gigabyte_g482_z54", "poweredge_xe8545"}
    assert max(abs(found.error)) < 0.2
    half = wall_constants().spreads["described"].high
    assert found.low.tolist() == pytest.approx((found.predicted * math.exp(-half)).tolist())
    assert {group.by["quantity"] for group in found.overall} == {"wall power"}
