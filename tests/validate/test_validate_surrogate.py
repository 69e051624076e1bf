"""The closed form beside the cycle model: random kernels, and the constants that follow from them."""

import json
import random
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from archsim.answers.scoreboard import KERNELS, kernels_record
from archsim.base.errors import Unsupported
from archsim.calibration.constants import default, dump, load
from archsim.calibration.derived import cores, derived, dump_derived, tables_of
from archsim.cli.main import group
from archsim.cycle.core.kernels import loop_constants
from archsim.validation import derivation, random_kernels
from archsim.validation.random_kernels import random_op
from tests import shipped

FROZEN = Path(__file__).parents[2] / "reports" / "validation" / "surrogate.json"
DERIVED = tuple(name for name, constant in default().constants.items() if constant.derived is not None)


@pytest.mark.shipped_fit
def test_every_gpu_has_its_constants() -> None:
    assert {family: set(row.devices) for family, row in derived().items()} == {
        family: set(members) for family, members in derivation.families().items()
    }
    for row in derived().values():
        assert set(row.constants) <= set(DERIVED)
        assert set(row.simulated) <= set(row.devices)
        for values in row.devices.values():
            assert set(values) == {name for name in row.constants if name.endswith("_clk")}


def test_constants_of_a_family_are_those_of_the_table() -> None:
    for family, row in derived().items():
        own = default().on(family)
        for name in DERIVED:
            assert own[name] == row.constants.get(name, default()[name])


def test_a_device_has_starts_of_its_own() -> None:
    family, device = derived()["ampere-48"], default().on(*tables_of("a2", "ampere", 48.0))
    assert device["gemm.tensor_prologue_clk"] == family.devices["a2"]["gemm.tensor_prologue_clk"]
    assert device["gemm.tensor_saturation"] == family.constants["gemm.tensor_saturation"]


def test_a_device_that_is_not_shipped_has_the_values_of_its_kind() -> None:
    for warps, family in ((64.0, "ampere-64"), (48.0, "ampere-48"), (40.0, "ampere-48")):
        assert default().on(*tables_of("mine", "ampere", warps))["gemm.kappa"] == derived()[family].constants["gemm.kappa"]
    assert tables_of("a30", "ampere", 32.0)[:2] == ("a30", "ampere-64")  # a shipped one keeps its kind
    assert default().on(*tables_of("mine", "cdna9", 32.0)) is default()


def test_a_value_that_is_given_holds_on_every_gpu() -> None:
    given = default().with_values({"gemm.saturation": 7.0})
    assert given.on("maxwell-64")["gemm.saturation"] == 7.0
    assert given.on("maxwell-64")["gemm.first_clk"] == derived()["maxwell-64"].constants["gemm.first_clk"]
    assert given.digest != default().digest


def test_a_written_calibration_has_the_table_again(tmp_path: Path) -> None:
    place = tmp_path / "constants.toml"
    place.write_text(dump(default()), "utf-8")
    assert load(place).on("kepler-64")["gemm.first_clk"] == derived()["kepler-64"].constants["gemm.first_clk"]
    assert load(place).digest == default().digest


@pytest.mark.shipped_fit
def test_the_table_is_written_as_it_is_shipped() -> None:
    written = (Path(__file__).parents[2] / "reports" / "calibration" / "derived.toml").read_text("utf-8")
    assert written.endswith(dump_derived(derived(), cores()))


@pytest.mark.shipped_fit
def test_constants_of_cores_are_the_clocks_of_their_programs() -> None:
    for name in ("i7_5930k", "raspberry_pi_3"):
        device = shipped.cpu(name)
        assert cores()[device.identity.architecture] == pytest.approx(loop_constants(device), rel=1e-3)


@pytest.mark.shipped_fit
@pytest.mark.skipif(find_spec("scipy") is None, reason="scipy is not installed")
def test_what_the_same_code_made_from_the_same_values_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def alone(hw: str, free: Any, common: Any, *more: object) -> Any:
        searched.append(hw)
        return common

    monkeypatch.setattr(derivation, "_alone", alone)
    monkeypatch.setattr(derivation, "_solved", lambda *words: searched.append("family") or derived()["maxwell-64"])
    shipped = derived()["maxwell-64"]
    first = derivation.derive("maxwell-64", DERIVED, earlier=shipped)
    searched.clear()
    assert derivation.derive("maxwell-64", DERIVED, earlier=first) == first
    assert searched == []
    joined = sorted(set(first.devices) - set(first.simulated))[0]
    without = replace(first, made_from={**first.made_from, joined: "another"})
    assert set(derivation.derive("maxwell-64", DERIVED, earlier=without).devices) == set(first.devices)
    assert searched == [joined]
    derivation.derive("maxwell-64", DERIVED, earlier=replace(first, made_from={**first.made_from, "maxwell-64": "another"}))
    assert searched == [joined, "family", *sorted(set(first.devices) - set(first.simulated))]


@pytest.mark.shipped_fit
@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba") is None or find_spec("scipy") is None, reason="numba or scipy is not installed")
@pytest.mark.parametrize("family", ["fermi-48", "rdna2-32", "hopper-64"])
def test_the_table_is_what_the_cycle_model_gives_now(family: str) -> None:
    found, shipped = derivation.derive(family, DERIVED), derived()[family]
    assert found.simulated == shipped.simulated
    assert found.constants == pytest.approx(shipped.constants, rel=0.02), "run archsim simulate kernels --derive"
    for device, values in shipped.devices.items():
        assert found.devices[device] == pytest.approx(values, rel=0.02)


def test_a_family_that_no_gpu_has_is_refused() -> None:
    with pytest.raises(Unsupported, match="no shipped GPU has it"):
        derivation.derive("haswell-2", DERIVED)


def test_rings_of_stages_are_told_by_products_that_mostly_start() -> None:
    def small(rings: bool) -> int:
        ops = [random_op(random.Random(seed), "fp16", rings) for seed in range(200)]
        return sum(op.kind.op == "linear" and max(*op.shape, *op.input_shapes[0]) <= 512 for op in ops)

    assert small(True) > 2 * small(False)


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


def test_the_constants_of_each_family_are_listed() -> None:
    result = CliRunner().invoke(group, ["show", "calibration", "gemm."])
    assert "By the cycle model, for each kind of SM" in result.output
    assert f"{derived()['volta-64'].constants['gemm.first_clk']:.4g}" in result.output
