"""Commands that change the machine or compare machines, by the cycle model: each point has its own SM."""

import csv
import io
import json
import re

import numpy as np
import pytest

from archsim.device.catalog import find
from archsim.device.rows import at_row, rows_of
from archsim.estimation.request import make_request, with_spec
from archsim.study.grid import evaluate
from archsim.study.sensitivity import sensitivity
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]
CELL = ("--net", "fcn_5", "--hw", "gtx_1080", "--fidelity", "cycle")
POINTS = {"sm.alu_latency": [6.0, 24.0], "sm.count": [4.0, 20.0], "l2.latency": [200.0, 800.0], "clock": [1e9, 1.6e9]}


def test_a_row_of_columns_is_a_device_of_numbers() -> None:
    many = find("gtx_1080").with_values({"sm.count": np.array([[10.0], [20.0]]), "l2.size": np.array([[1e6], [2e6]])}).device
    assert rows_of(many) == 2
    one = at_row(many, 1)
    assert (one.sm.count, one.l2.size, rows_of(one)) == (20.0, 2e6, 1)
    assert one == find("gtx_1080").with_values({"sm.count": 20.0, "l2.size": 2e6}).device


@pytest.mark.parametrize("key", POINTS)
def test_points_together_are_the_points_alone(key: str) -> None:
    request = make_request("fcn_5", "gtx_1080", fidelity="cycle")
    together = evaluate(request, {key: POINTS[key]})
    alone = [evaluate(request, {key: [value]}) for value in POINTS[key]]
    assert together["latency_s"].tolist() == [one["latency_s"][0] for one in alone]
    assert together["energy_j"].tolist() == pytest.approx([one["energy_j"][0] for one in alone], rel=1e-12)
    assert together["latency_s"][0] != together["latency_s"][1]


def test_a_key_that_moves_no_closed_form_has_an_elasticity() -> None:
    request = make_request("fcn_5", "gtx_1080", fidelity="cycle")
    slower = with_spec(request, request.spec.with_settings({"sm.count": "4"}))
    found = {one.key: one for one in sensitivity(slower, ["sm.alu_latency", "sm.warp", "sm.count"])}
    assert found["sm.alu_latency"].local["latency_s"] > 0
    assert found["sm.count"].local["latency_s"] < 0
    assert "power of two" in found["sm.warp"].why


def test_every_key_of_a_spec_can_be_asked_for(cli: Cli) -> None:
    result = cli("sensitivity", *CELL, "--json")
    assert result.code == 0, result.err
    rows = {row["key"]: row for row in json.loads(result.out)["values"]}
    assert rows["sm.fetch_interval"]["elasticity"]["latency_s"] > 0


def test_a_sweep_and_a_what_if_say_the_same(cli: Cli) -> None:
    swept = cli("sweep", *CELL, "--vary", "sm.cta_start=325clk,650clk")
    assert (swept.code, swept.err.count("changes no output")) == (0, 0)
    first, second = (float(row["latency_s"]) for row in csv.DictReader(io.StringIO(swept.out)))
    changed = json.loads(cli("whatif", *CELL, "--scale", "sm.cta_start=2", "--json").out)
    assert changed["before"]["latency_s"] == pytest.approx(first, rel=1e-12)
    assert changed["after"]["latency_s"] == pytest.approx(second, rel=1e-12)
    assert second > first


def test_a_search_finds_the_shorter_latency(cli: Cli) -> None:
    found = cli("search", *CELL, "--minimise", "latency", "--vary", "sm.cta_start=325clk,650clk", "--json")
    assert found.code == 0, found.err
    assert "325" in found.out


def test_a_what_if_without_an_effect_names_the_model(cli: Cli) -> None:
    found = cli("whatif", *CELL, "--set", "market.price=1USD")
    assert "by the cycle model no output" in found.out


def test_devices_are_compared(cli: Cli) -> None:
    found = cli("compare", "--net", "fcn_5", "--hw", "gtx_1080,tesla_v100_sxm2,i7_6700k", "--fidelity", "cycle")
    assert found.code == 0, found.err
    assert "cycle model" in found.out
    for name in ("GTX 1080", "Tesla V100 SXM2", "Core i7-6700K"):
        assert len(re.findall(rf"^  {name} +[\w.-]+ .* [mu]?s ", found.out, re.M)) == 1, name  # a row of each
