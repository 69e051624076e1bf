"""The calibration file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from archsim.base.errors import InputError, UnknownName
from archsim.calibration import constants
from archsim.calibration.nearness import Evidence, Platform, Question

TEXT = (Path(__file__).parents[1] / "constants.toml").read_text("utf-8")
LINE = '"cpu.pack_clk" = { value = 2.5, low = 2.5, high = 2.5'
assert TEXT.count(LINE) == 1


def refused(folder: Path, old: str, new: str, match: str) -> None:
    assert TEXT.count(old) >= 1
    path = folder / "mine.toml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InputError, match=match):
        constants.load(path)


@pytest.mark.shipped_fit
def test_every_value_lies_in_the_range_that_physics_allows() -> None:
    for name, constant in constants.default().constants.items():
        assert constant.low <= constant.value <= constant.high, name
        assert constant.low <= constant.prior <= constant.high, name
        assert constant.origin, name


def test_a_value_outside_its_range_is_refused(tmp_path: Path) -> None:
    outside = r"constants\.cpu\.pack_clk\.value: is outside \[low, high\]"
    refused(tmp_path, LINE, LINE.replace("value = 2.5", "value = 3.5"), outside)
    refused(tmp_path, LINE, LINE.replace("low = 2.5", "low = 3.5"), outside)


@pytest.mark.parametrize("value", ["nan", "inf", '"1"', "true"])
def test_a_value_that_is_no_number_is_refused(tmp_path: Path, value: str) -> None:
    refused(tmp_path, LINE, LINE.replace("value = 2.5", f"value = {value}"), "constants: ")


def test_unknown_and_missing_keys_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, LINE, LINE.replace("high", "hihg"), "constants: ")
    refused(tmp_path, "schema = 1", "schema = 2", "schema")
    refused(tmp_path, "version = ", "verion = ", "version: is missing")
    refused(tmp_path, "[constants]", "[constants", "is not valid TOML")


def test_an_unknown_constant_offers_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"nearest: .*conv\.cudnn4"):
        constants.default()["conv.cudn4"]


def test_replacing_a_value_leaves_the_original_alone() -> None:
    first = constants.default()
    name = "conv.cudnn4"
    changed = first.with_values({name: 0.8})
    assert changed[name] == 0.8
    assert first[name] == constants.default()[name]
    assert changed.gather((name, constants.FULL)).tolist() == [0.8, 1.0]


def test_the_digest_is_of_the_constants_and_not_of_the_words(tmp_path: Path) -> None:
    own = constants.default()
    (tmp_path / "b.toml").write_text(TEXT + "# a remark\n")
    assert constants.load(tmp_path / "b.toml").digest == own.digest
    assert own.with_values({"gemm.kappa": 1.01 * own["gemm.kappa"]}).digest != own.digest


def test_a_stack_without_measured_rows_is_an_extrapolation() -> None:
    own = constants.default()
    def on(stack: str, what: str = "inference", modelled: bool = True) -> tuple[str, constants.Spread]:
        platform = Platform(architecture="maxwell", device="gtx_980", stack=stack)
        return own.spread_of("gpu", what, Question(platform=platform), modelled)

    name, known = on("caffe-cudnn4")
    assert name == "gpu inference"
    assert on("a-stack-of-mine")[0] == "gpu inference extrapolated"
    assert on("caffe-cudnn4", modelled=False)[1].high > known.high
    assert on("caffe-cudnn4", "no such class")[0] == "gpu no such class extrapolated"


def test_an_interval_is_wider_where_the_nearest_rows_are_farther() -> None:
    def rows(architecture: str, device: str, source: str, count: int) -> Evidence:
        return Evidence(platform=Platform(architecture=architecture, device=device, stack="caffe"), source=source, rows=count)

    seen = (rows("pascal", "gtx_1080", "a", 9), rows("pascal", "gtx_1080", "b", 3), rows("maxwell", "gtx_980", "b", 5))
    spread = constants.Spread(rows=17, low=-0.2, high=0.2, median=0.1, p90=0.3, origin="held-out source, 17 rows")
    made = replace(constants.default(), spreads={"gpu inference": spread},
                   slopes={"gpu network": {"architecture": math.log(1.25), "elsewhere": math.log(1.6)}},
                   evidence={"gpu inference": seen})  # fmt: skip

    def found(architecture: str, device: str, without: str = "") -> tuple[str, float, str]:
        platform = Platform(architecture=architecture, device=device, stack="caffe")
        name, spread = made.spread_of("gpu", "inference", Question(platform=platform), without=without)
        return name, round(spread.high, 12), spread.basis

    assert found("pascal", "gtx_1080") == ("gpu inference", 0.2, "12 cells of gtx_1080 with caffe")
    assert found("pascal", "gtx_1080", without="a")[2] == "3 cells of gtx_1080 with caffe"
    assert found("pascal", "titan_xp") == ("gpu inference", 0.25, "12 cells of other pascal devices with caffe")
    assert found("volta", "titan_v") == ("gpu inference extrapolated", 0.4, "17 cells of other architectures")
    power = replace(made, spreads={"gpu power": spread}, evidence={"gpu power": seen})
    far = Platform(architecture="volta", device="titan_v", stack="caffe")
    assert power.spread_of("gpu", "power", Question(platform=far))[1].high == spread.high  # found for times of networks
    assert found("maxwell", "gtx_980", without="b") == ("gpu inference extrapolated", 0.4, "9 cells of other architectures")


def test_what_is_dumped_reads_back(tmp_path: Path) -> None:
    row = Evidence(platform=Platform(architecture="pascal", device="gtx_1080", stack="caffe"), source="a", rows=9)
    first = replace(constants.default(), slopes={"gpu network": {"small": 0.25}}, evidence={"gpu inference": (row,)})
    (tmp_path / "a.toml").write_text(constants.dump(first))
    again = constants.load(tmp_path / "a.toml")
    assert again.constants == first.constants
    assert (again.spreads, again.level, again.version) == (first.spreads, first.level, first.version)
    assert (again.slopes, again.evidence) == (first.slopes, first.evidence)


def test_a_family_without_a_loss_needs_no_constant() -> None:
    assert constants.FULL not in constants.default().constants
    assert constants.default().gather(("conv.cudnn4", constants.FULL)).tolist()[1] == 1.0


@pytest.mark.shipped_fit
def test_what_rows_do_not_tell_is_not_fitted() -> None:
    """A fitted constant has lost at least half of its prior's variance to the rows; none stands where it would change nothing."""
    fitted = {name: c for name, c in constants.default().constants.items() if c.fitted}
    assert [name for name, c in fitted.items() if c.identified is None or c.identified < 0.5] == []
    assert [name for name, c in fitted.items() if c.low == c.high] == []
    assert [name for name, c in constants.default().constants.items() if c.value == c.low == c.high == 1.0] == []


def test_how_well_a_constant_is_told_survives_the_file(tmp_path: Path) -> None:
    path = tmp_path / "again.toml"
    path.write_text(constants.dump(constants.default()))
    again = constants.load(path).constants
    own = constants.default().constants
    assert {name: c.identified for name, c in again.items()} == {name: c.identified for name, c in own.items()}
    assert all(c.identified is None for c in constants.default().before_fit().before_energy_fit().constants.values())
