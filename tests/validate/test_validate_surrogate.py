"""The closed form beside the cycle model: random kernels, and the constants that follow from them."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from archsim.answers.scoreboard import KERNELS, kernels_record
from archsim.calibration.constants import default, dump, load
from archsim.calibration.derived import cores
from archsim.cli.main import group
from archsim.cycle.core.kernels import loop_constants
from archsim.validation import random_kernels
from tests import shipped

FROZEN = Path(__file__).parents[2] / "reports" / "validation" / "surrogate.json"


def test_constants_of_a_core_are_those_of_the_table() -> None:
    for core, values in cores().items():
        own = default().on(core)
        assert {name: own[name] for name in values} == values
    assert default().on("pascal") is default()


def test_a_value_that_is_given_holds_on_every_core() -> None:
    given = default().with_values({"loop.adds_clk": 7.0})
    assert given.on("haswell")["loop.adds_clk"] == 7.0
    assert given.on("haswell")["loop.exps_clk"] == cores()["haswell"]["loop.exps_clk"]
    assert given.digest != default().digest


def test_a_written_calibration_has_the_table_again(tmp_path: Path) -> None:
    place = tmp_path / "constants.toml"
    place.write_text(dump(default()), "utf-8")
    assert load(place).on("haswell")["loop.exps_clk"] == cores()["haswell"]["loop.exps_clk"]
    assert load(place).digest == default().digest


@pytest.mark.shipped_fit
def test_constants_of_cores_are_the_clocks_of_their_programs() -> None:
    for name in ("i7_5930k", "raspberry_pi_3"):
        device = shipped.cpu(name)
        assert cores()[device.identity.architecture] == pytest.approx(loop_constants(device), rel=1e-3)


@pytest.mark.shipped_fit
@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_the_frozen_distance_is_that_of_a_sample_now() -> None:
    rows = random_kernels.compare(250, seed=23)
    body, frozen = kernels_record(rows, [], 23), json.loads(FROZEN.read_text("utf-8"))
    assert body["schema"] == frozen["schema"] == KERNELS
    assert frozen["kernels"] >= 1900
    assert abs(body["median"] - frozen["median"]) < 0.05
    assert {row.scaled for row in rows} == {False, True}


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_the_command_prints_distances() -> None:
    result = CliRunner().invoke(group, ["simulate", "kernels", "--kernels", "25"])
    assert result.exit_code == 0, result.output
    assert "of the cycle model for half of the kernels" in result.output
    assert "By architecture" in result.output


def test_the_constants_of_each_core_are_listed() -> None:
    result = CliRunner().invoke(group, ["show", "calibration", "loop."])
    assert "By the cycle model, for each core" in result.output
    assert f"{cores()['haswell']['loop.exps_clk']:.4g}" in result.output
