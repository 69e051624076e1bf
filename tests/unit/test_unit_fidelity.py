"""A fidelity is one row of a table: one that is added from outside is found wherever a fidelity is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from archsim.base.errors import UnknownName
from archsim.calibration.constants import default
from archsim.cli.main import group
from archsim.cli.vocabulary import FIDELITY
from archsim.estimation.estimate import estimate
from archsim.estimation.fidelity import FIDELITIES, FITTED, ExecutionSetting, Fidelity
from archsim.estimation.measured import references_of
from archsim.estimation.request import make_request
from archsim.evidence.network_rows import network_cases
from archsim.validation.predict import predict

CELL = ("--net", "alexnet", "--hw", "tegra_x1")
WARNING = "sixfold is six times what the analytical model says"


def cost(kernels: Any, at: ExecutionSetting) -> Any:
    """That of the analytical model, six times as long."""
    found = FIDELITIES[FITTED].cost(kernels, at)
    return replace(found, time_s=6.0 * found.time_s)


@pytest.fixture
def sixfold(monkeypatch: pytest.MonkeyPatch) -> Fidelity:
    row = Fidelity(name="sixfold", meaning="six times as long", cost=cost, calibrated=False, warning=WARNING)
    monkeypatch.setitem(FIDELITIES, row.name, row)
    return row


@pytest.fixture
def run() -> Callable[..., Result]:
    return lambda *words: CliRunner().invoke(group, words, catch_exceptions=False)


def test_an_estimate_takes_it(sixfold: Fidelity) -> None:
    plain = sum(op.time_s for op in estimate("alexnet", "tegra_x1").ops)
    waits = estimate("alexnet", "tegra_x1").breakdown_s["host"]
    e = estimate("alexnet", "tegra_x1", fidelity="sixfold")
    assert e.fidelity == "sixfold"
    assert e.latency_s == pytest.approx(6.0 * (plain - waits))
    assert WARNING in e.warnings
    assert e.interval_class.endswith("extrapolated")


def test_its_references_are_predicted_by_it(sixfold: Fidelity) -> None:
    own, fitted = (references_of(make_request("alexnet", "tegra_x1", fidelity=name)) for name in ("sixfold", FITTED))
    assert own
    assert all(a.predicted < 0.3 * b.predicted for a, b in zip(own, fitted, strict=True) if a.metric == "throughput_per_s")


def test_commands_and_their_help_name_it(sixfold: Fidelity, run: Callable[..., Result]) -> None:
    assert "sixfold model" in run("estimate", *CELL, "--fidelity", "sixfold").stdout
    assert "sixfold model" in run("compare", "--net", "alexnet", "--hw", "tegra_x1,gtx_1080", "--fidelity", "sixfold").stdout
    assert "six times as long" in run("list", "fidelities").stdout
    for command in ("estimate", "compare", "sweep", "validate"):
        assert "roofline, analytical, event, cycle or sixfold" in " ".join(run(command, "--help").stdout.split())


def test_a_wrong_name_is_told_of_it(sixfold: Fidelity) -> None:
    with pytest.raises(UnknownName, match="nearest: sixfold"):
        make_request("alexnet", "tegra_x1", fidelity="sixfolds")


def test_validate_takes_it(sixfold: Fidelity, run: Callable[..., Result]) -> None:
    cases = list(network_cases("alexnet", "tegra_x1", lambda cells: cells["metric"] == "throughput_per_s"))
    assert (predict(cases, default(), "sixfold") < 0.3 * predict(cases, default())).all()


def test_the_option_stands_at_the_fitted_one_without_being_given() -> None:
    option = FIDELITY(lambda fidelity: fidelity).__click_params__[0]
    assert option.default == FITTED in FIDELITIES
