"""`archsim simulate core`: kernels in words, loops of a file, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Outcome
from tests.core_loops import LOOP
from tests.each import each

BLOCK = "gemm 6x16 avx2"


def core(cli: Cli, *more: str, kernel: str = BLOCK) -> Outcome:
    return cli("simulate", "core", "--hw", "i7_6700k", "--kernel", kernel, "--plain", *more)


def test_it_says_what_binds(cli: Cli) -> None:
    text = core(cli).out
    for word in ("6.00 clocks per iteration", "100.0 % of the peak of 32", "front end", "rename waits",
                 "bound by ports P0 P1, which takes 100 % of the clocks"):  # fmt: skip
        assert word in text


def test_json_and_csv_have_the_same(cli: Cli) -> None:
    found = core(cli, "--json").json
    one = found["loops"][0]
    assert found["schema"] == "archsim-core/1"
    assert one["cycles"] == pytest.approx(6.0, rel=0.01)
    assert one["bounds"]["chain"] == 4.0
    assert one["flop_per_clock"] == pytest.approx(one["flop"] / one["cycles"])
    assert [each["renamed"] <= each["started"] <= each["ended"] <= each["retired"] for each in one["trace"]].count(False) == 0
    row = core(cli, "--csv").rows[0]
    assert float(row["cycles"]) == pytest.approx(one["cycles"])
    assert row["hardware"] == "i7_6700k"


def test_a_changed_port_changes_the_answer(cli: Cli) -> None:
    usual, three, one = (core(cli, "--json", *more).json["loops"][0]["cycles"] for more in (
        (), ("--set", "port.fma=P0 P1 P5"), ("--set", "port.fma=P0")))  # fmt: skip
    assert three < usual < one
    share = core(cli, "--json", "--set", "port.fma=P0 P1 P5").json["loops"][0]["peak_share"]
    assert share < 0.8  # of three ports
    assert one == pytest.approx(12.0, rel=0.01)


def test_the_clock_moves_times_and_memory_but_not_cycles_of_the_l1(cli: Cli) -> None:
    slow, fast = (core(cli, "--json", "--clock", clock, kernel="relu").json["loops"][0]["cycles"]
                  for clock in ("1GHz", "4GHz"))  # fmt: skip
    assert slow == fast


def test_some_trips_may_be_asked_for(cli: Cli) -> None:
    found = core(cli, "--json", "--trips", "2").json
    assert len({one["iteration"] for one in found["loops"][0]["trace"]}) == 2


@pytest.fixture
def loops(tmp_path: Path) -> str:
    """A file of two loops, one of which this core has no port for."""
    other = {**LOOP, "name": "tiles", "measured": None, "ops": [{**LOOP["ops"][0], "kind": "tile"}, *LOOP["ops"][1:]]}
    path = tmp_path / "loops.json"
    path.write_text(json.dumps({"loops": [LOOP, {**LOOP, "name": "again", "measured": None}, other]}), "utf-8")
    return str(path)


def test_a_file_of_loops_is_a_table(cli: Cli, loops: str) -> None:
    found = cli("simulate", "core", "--hw", "i7_6700k", "--loop", loops, "--plain")
    assert found.code == 0
    assert "chain    4.00       4.1  -2.4 %" in found.out
    assert "again" in found.out


def test_one_loop_of_a_file_is_told_beside_its_measurement(cli: Cli, loops: str) -> None:
    found = cli("simulate", "core", "--hw", "i7_6700k", "--loop", loops, "--name", "chain", "--plain")
    assert "measured 4.10 clocks, -2.4 %" in found.out
    assert "bound by chain, which takes 100 % of the clocks" in found.out


def test_what_a_core_cannot_run_is_counted(cli: Cli, loops: str) -> None:
    words = ("simulate", "core", "--hw", "xeon_e5_2670", "--loop", loops, "--plain")
    found = cli(*words, "--json").json
    assert [one["name"] for one in found["skipped"]] == ["chain", "again"]
    assert "no port takes operations of kind fma" in found["skipped"][0]["reason"]
    assert "2 left out, the first chain: " in cli(*words).out
    alone = cli(*words, "--name", "chain")
    assert alone.code != 0
    assert "no port takes operations of kind fma" in alone.err


def test_a_gpu_and_a_loop_that_is_not_there_are_refused(cli: Cli, loops: str) -> None:
    assert "simulate sm" in cli("simulate", "core", "--hw", "gtx_1080", "--kernel", "relu").err
    assert "nearest: chain" in cli("simulate", "core", "--hw", "i7_6700k", "--loop", loops, "--name", "chains").err


def other(op: int, **change: Any) -> dict[str, Any]:
    """The loop with another operation."""
    return {**LOOP, "ops": [{**one, **change} if at == op else one for at, one in enumerate(LOOP["ops"])]}


LOAD = {"id": 0, "kind": "load", "width_bits": 256, "elem": "f32", "out": "a", "in": [], "address_in": []}


def test_a_file_that_is_no_json_is_one_error(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "loop.json"
    path.write_text("{", "utf-8")
    assert "is no JSON" in cli("simulate", "core", "--hw", "i7_6700k", "--loop", str(path)).err


@each(("kernel", "cycles"), [("scalar im2col", 2.25), ("scalar im2col trips=9", 2.25), ("scalar max pool window=1", 25.0),
                             ("moments", 4.0), ("scalar divide", 4.8)])  # fmt: skip
def test_loops_over_single_values_and_their_vectorised_kin_have_names(cli: Cli, kernel: str, cycles: float) -> None:
    found = core(cli, "--json", kernel=kernel).json["loops"][0]["cycles"]
    assert found == pytest.approx(cycles, rel=0.05)


def test_a_later_exit_takes_longer(cli: Cli) -> None:
    short, long = (core(cli, "--json", kernel=f"scalar im2col trips={trips}").json["loops"][0]["cycles"]
                   for trips in (30, 100))  # fmt: skip
    assert long > 1.02 * short
    assert "no word 'trip'" in core(cli, kernel="scalar im2col trip=3").err
