"""`archsim simulate sm` and the cycle fidelity on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Outcome

GEMM = "gemm 64x64x8 threads=64"


def sm(cli: Cli, *more: str) -> Outcome:
    return cli("simulate", "sm", "--hw", "gtx_1080", "--kernel", GEMM, "--k", "16", "--plain", *more)


def test_it_says_what_issues_and_what_stalls(cli: Cli) -> None:
    text = sm(cli, "--all").out
    for word in ("Waiting limits it: ", "of what the pipe that multiplies could", "Where warps wait",
                 "STS.128 after LDG.128, instruction", "on average", "instructions/clk", "long scoreboard", "selected", "dram "):
        assert word in text


def test_json_has_the_same(cli: Cli) -> None:
    found = sm(cli, "--json").json
    assert found["schema"] == "archsim-sm/1"
    assert 0 < found["peak_share"] < 1
    assert sum(found["stalls"].values()) == pytest.approx(1.0)
    assert found["stalled"][0]["share"] >= found["stalled"][-1]["share"] > 0
    assert {"name", "number", "place", "reason", "after", "share"} == {*found["stalled"][0]}
    assert found["instructions_per_clock"] == pytest.approx(found["instructions"] / found["clocks"])


def test_a_timeline_is_written(cli: Cli, tmp_path: Path) -> None:
    timeline = tmp_path / "sm.json"
    sm(cli, "--timeline", str(timeline))
    events = json.loads(timeline.read_text("utf-8"))["traceEvents"]
    assert {"FFMA", "LDS.128", "BAR.SYNC"} <= {event["name"] for event in events}


@pytest.mark.parametrize(("kernel", "name"), [("attention 64x64 d=64 registers=168 bytes=4", "MUFU"), ("norm row=4096", "SHFL")])
def test_other_kernels_run(cli: Cli, kernel: str, name: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    found = cli("simulate", "sm", "--hw", "gtx_1080", "--kernel", kernel, "--k", "64", "--json", "--timeline", str(trace))
    assert found.code == 0, found.err
    share = found.json["peak_share"]
    assert share is None if kernel.startswith("norm") else 0 < share <= 1
    assert f'"{name}"' in trace.read_text("utf-8")


@pytest.mark.slow
def test_an_estimate_by_the_cycle_model_is_near_the_closed_form(cli: Cli) -> None:
    argv = ("estimate", "--net", "alexnet", "--hw", "gtx_1080", "--batch", "4", "--json", "--fidelity")
    cycle, closed = (cli(*argv, fidelity).json["latency_s"] for fidelity in ("cycle", "analytical"))
    assert cycle == pytest.approx(closed, rel=0.3)
    assert cycle != closed
