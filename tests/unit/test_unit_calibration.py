"""The calibration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder
from archsim.calibration import constants

TEXT = data_folder("reports/calibration").joinpath("default.toml").read_text("utf-8")
ONE = "one = { value = 1.0, low = 1.0, high = 1.0"
QUOTED = '"one" = { value = 1.0, low = 1.0, high = 1.0'
LINE = ONE if ONE in TEXT else QUOTED
assert TEXT.count(LINE) == 1


def refused(folder: Path, old: str, new: str, match: str) -> None:
    assert TEXT.count(old) >= 1
    path = folder / "mine.toml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InputError, match=match):
        constants.load(path)


def test_every_value_lies_in_the_range_that_physics_allows() -> None:
    for name, constant in constants.default().constants.items():
        assert constant.low <= constant.value <= constant.high, name
        assert constant.low <= constant.prior <= constant.high, name
        assert constant.origin, name


def test_a_value_outside_its_range_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, LINE, LINE.replace("value = 1.0", "value = 1.1"), r"constants\.one\.value: is outside \[low, high\]")
    refused(tmp_path, LINE, LINE.replace("low = 1.0", "low = 1.1"), r"constants\.one\.value: is outside")


@pytest.mark.parametrize("value", ["nan", "inf", '"1"', "true"])
def test_a_value_that_is_no_number_is_refused(tmp_path: Path, value: str) -> None:
    refused(tmp_path, LINE, LINE.replace("value = 1.0", f"value = {value}"), "constants: ")


def test_unknown_and_missing_keys_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, LINE, LINE.replace("high", "hihg"), "constants: ")
    refused(tmp_path, "schema = 1", "schema = 2", "schema")
    refused(tmp_path, "version = ", "verion = ", "version: is missing")
    refused(tmp_path, "[constants]", "[constants", "is not valid TOML")


def test_an_unknown_constant_offers_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"nearest: .*issue\.maxwell"):
        constants.default()["issue.maxwel"]


def test_replacing_a_value_leaves_the_original_alone() -> None:
    first = constants.default()
    name = "issue.maxwell"
    changed = first.with_values({name: 0.8})
    assert changed[name] == 0.8
    assert first[name] == constants.default()[name]
    assert changed.gather((name, "one")).tolist() == [0.8, 1.0]


def test_the_digest_is_of_the_constants_and_not_of_the_words(tmp_path: Path) -> None:
    shipped = constants.default()
    (tmp_path / "b.toml").write_text(TEXT + "# a remark\n")
    assert constants.load(tmp_path / "b.toml").digest == shipped.digest
    assert shipped.with_values({"gemm.kappa": 1.01 * shipped["gemm.kappa"]}).digest != shipped.digest


def test_a_stack_without_measured_rows_is_an_extrapolation() -> None:
    shipped = constants.default()
    name, known = shipped.spread_of("gpu", "inference", "caffe-cudnn4")
    assert name == "gpu inference"
    name, unknown = shipped.spread_of("gpu", "inference", "a-stack-of-mine")
    assert name == "gpu inference extrapolated"
    assert unknown.high > known.high
    assert shipped.spread_of("gpu", "no such class", "caffe-cudnn4")[0] == "gpu no such class extrapolated"


def test_what_is_dumped_reads_back(tmp_path: Path) -> None:
    first = constants.default()
    (tmp_path / "a.toml").write_text(constants.dump(first))
    again = constants.load(tmp_path / "a.toml")
    assert again.constants == first.constants
    assert (again.spreads, again.level, again.version) == (first.spreads, first.level, first.version)
