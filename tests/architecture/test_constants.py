"""Constants: few are fitted, and tests that are not about the fit have their own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from archsim.calibration.constants import Calibration, default, load
from archsim.calibration.derived import cores, dump_derived

ROOT = Path(__file__).parents[2]
SHIPPED, OWN = ROOT / "reports" / "calibration", ROOT / "tests"

# A number of the design, not of the last fit. It only falls, and `GOAL` is where to: whoever adds a constant takes one out.
MOST_FITTED = 56
GOAL = 35


def fitted(calibration: Calibration) -> list[str]:
    return [name for name, c in calibration.constants.items() if c.fitted]


@pytest.mark.shipped_fit
def test_few_constants_are_fitted() -> None:
    count = len(fitted(default()))
    assert count <= MOST_FITTED, (
        f"{count} constants are fitted, {count - MOST_FITTED} more than the design admits ({MOST_FITTED}, to fall to {GOAL}): "
        "take one out of the model for each that is added"
    )


def test_a_test_has_the_constants_of_the_tests() -> None:
    assert default() == load(OWN / "constants.toml")
    assert default().version == "of-tests"


@pytest.mark.shipped_fit
def test_a_test_of_the_fit_has_the_shipped_constants() -> None:
    assert default() == load(SHIPPED / "default.toml")
    assert default().version != "of-tests"
    assert (SHIPPED / "derived.toml").read_text("utf-8").endswith(dump_derived(cores()))


def document(place: Path) -> dict[str, Any]:
    return tomllib.loads(place.read_text("utf-8"))


def test_the_constants_of_the_tests_are_those_of_the_model_with_values_of_their_own() -> None:
    own, shipped = (document(place)["constants"] for place in (OWN / "constants.toml", SHIPPED / "default.toml"))
    assert {name: "derived" in c for name, c in own.items()} == {name: "derived" in c for name, c in shipped.items()}, (
        "a constant that is added, taken out or renamed is so in tests/constants.toml too")  # fmt: skip
    own, shipped = (document(folder / "derived.toml")["cores"] for folder in (OWN, SHIPPED))
    for core, values in own.items():
        assert set(values) == set(shipped[core]), core
