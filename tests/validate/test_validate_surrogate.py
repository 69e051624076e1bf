"""The closed form beside the cycle model: random kernels, and the constants that follow from them."""

import json
import random
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from archsim.base.errors import Unsupported
from archsim.calibration.constants import default, dump, load
from archsim.calibration.derived import derived, dump_derived
from archsim.cli.main import group
from archsim.device.catalog import find
from archsim.report.surrogate import SCHEMA, surrogate_json, surrogate_page
from archsim.validation import surrogate

FROZEN = Path(__file__).parents[2] / "reports" / "validation" / "surrogate.json"
DERIVED = tuple(name for name, constant in default().constants.items() if constant.derived is not None)


def test_every_gpu_architecture_has_its_constants() -> None:
    assert set(derived()) == set(surrogate.architectures())
    for row in derived().values():
        assert set(row.constants) <= set(DERIVED)
        assert all(find(name).kind == "gpu" for name in row.devices)


def test_constants_of_an_architecture_are_those_of_the_table() -> None:
    for architecture, row in derived().items():
        own = default().on(architecture)
        for name in DERIVED:
            assert own[name] == row.constants.get(name, default()[name])


def test_an_architecture_without_a_table_has_the_common_value() -> None:
    assert default().on("cdna9") is default()


def test_a_value_that_is_given_holds_on_every_architecture() -> None:
    given = default().with_values({"gemm.saturation": 7.0})
    assert given.on("maxwell")["gemm.saturation"] == 7.0
    assert given.on("maxwell")["gemm.first_clk"] == derived()["maxwell"].constants["gemm.first_clk"]
    assert given.digest != default().digest


def test_the_calibration_of_an_architecture_is_made_once() -> None:
    assert default().on("volta") is default().on("volta")


def test_a_written_calibration_has_the_table_again(tmp_path: Path) -> None:
    place = tmp_path / "constants.toml"
    place.write_text(dump(default()), "utf-8")
    assert load(place).on("kepler")["gemm.first_clk"] == derived()["kepler"].constants["gemm.first_clk"]
    assert load(place).digest == default().digest


def test_the_table_is_written_as_it_is_shipped() -> None:
    shipped = (Path(__file__).parents[2] / "reports" / "calibration" / "derived.toml").read_text("utf-8")
    assert shipped.endswith(dump_derived(derived()))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba") is None or find_spec("scipy") is None, reason="numba or scipy is not installed")
@pytest.mark.parametrize("architecture", ["fermi", "maxwell", "hopper"])
def test_the_table_is_what_the_cycle_model_gives_now(architecture: str) -> None:
    found, shipped = surrogate.derive(architecture, DERIVED), derived()[architecture]
    assert found.devices == shipped.devices
    assert found.constants == pytest.approx(shipped.constants, rel=0.02), "run archsim simulate kernels --derive"


def test_an_architecture_that_no_gpu_has_is_refused() -> None:
    with pytest.raises(Unsupported, match="no shipped GPU has it"):
        surrogate.derive("haswell", DERIVED)


def test_rings_of_stages_are_told_by_products_that_mostly_start() -> None:
    def small(rings: bool) -> int:
        ops = [surrogate.random_op(random.Random(seed), "fp16", rings) for seed in range(200)]
        return sum(op.kind.op == "linear" and max(*op.shape, *op.input_shapes[0]) <= 512 for op in ops)

    assert small(True) > 2 * small(False)


def test_the_same_seed_gives_the_same_ops() -> None:
    one, other = ([surrogate.random_op(random.Random(3), "fp16").shape for _ in range(5)] for _ in range(2))
    assert one == other


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_the_frozen_distance_is_that_of_a_sample_now() -> None:
    rows = surrogate.compare(250, seed=23)
    body, frozen = json.loads(surrogate_json(rows, [], 23)), json.loads(FROZEN.read_text("utf-8"))
    assert body["schema"] == frozen["schema"] == SCHEMA
    assert frozen["kernels"] >= 1900
    assert abs(body["median"] - frozen["median"]) < 0.05
    assert {row.scaled for row in rows} == {False, True}
    assert "<svg" in surrogate_page(rows, [], 23)


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
def test_the_command_prints_distances() -> None:
    result = CliRunner().invoke(group, ["simulate", "kernels", "--kernels", "25"])
    assert result.exit_code == 0, result.output
    assert "Distance of the closed form from the cycle model" in result.output


def test_a_folder_without_a_name_is_refused() -> None:
    result = CliRunner().invoke(group, ["simulate", "kernels", "--check", ""])
    assert result.exit_code == 2
    assert "names no folder" in result.output


def test_the_constants_of_each_architecture_are_listed() -> None:
    result = CliRunner().invoke(group, ["show", "calibration", "gemm."])
    assert "By the cycle model, for each architecture:" in result.output
    assert f"{derived()['volta'].constants['gemm.first_clk']:.4g}" in result.output


def test_what_a_derivation_does_not_read_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["simulate", "kernels", "--derive", str(tmp_path / "d.toml"), "--seed", "3"])
    assert result.exit_code == 2
    assert "--seed: no effect with --derive" in result.output
    assert not (tmp_path / "d.toml").exists()
