"""Commands that change the machine or compare machines, by the cycle model: each point has its own SM."""


import numpy as np
import pytest

from archsim.device.catalog import find
from archsim.device.variant import at_row, rows_of
from archsim.estimation.request import make_request, with_spec
from archsim.study.grid import evaluate
from archsim.study.sensitivity import sensitivity
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]
CELL = ("--net", "fcn_5", "--hw", "gtx_1080", "--fidelity", "cycle")
POINTS = {"sm.alu_latency": [6.0, 24.0], "sm.count": [1.0, 20.0], "l2.latency": [200.0, 800.0], "clock": [1e9, 1.6e9]}


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
    slower = with_spec(request, request.spec.with_settings({"sm.count": "1"}))
    found = {one.key: one for one in sensitivity(slower, ["sm.alu_latency", "sm.warp", "sm.count"])}
    assert found["sm.alu_latency"].local["latency_s"] > 0
    assert found["sm.count"].local["latency_s"] < 0
    assert "power of two" in found["sm.warp"].why


def test_a_sweep_and_a_what_if_say_the_same(cli: Cli) -> None:
    swept = cli("sweep", *CELL, "--vary", "sm.cta_start=325clk,650clk")
    assert (swept.code, swept.err.count("changes no output")) == (0, 0)
    first, second = (float(row["latency_s"]) for row in swept.rows)
    changed = cli("whatif", *CELL, "--scale", "sm.cta_start=2", "--json").json
    assert changed["before"]["latency_s"] == pytest.approx(first, rel=1e-12)
    assert changed["after"]["latency_s"] == pytest.approx(second, rel=1e-12)
    assert second > first
