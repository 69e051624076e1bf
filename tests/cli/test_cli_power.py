"""`archsim power`: forms of the answer, rows of a file, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.cli.main import group
from archsim.device.units import AWAKE, UNITS

BUSY = ("power", "--hw", "titan_xp", "--use", "fp32=0.8,dram=30%", "--clock", "1404MHz")
ROWS = "name,clock,fp32,dram\nslow,1GHz,0.8,30%\nfast,,0.8,30%\n"


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.csv"
    file.write_text(ROWS, "utf-8")
    return str(file)


def test_text_has_clocks_parts_power_and_assumptions(cli: Any) -> None:
    found = cli(*BUSY)
    assert found.code == 0
    assert "titan_xp · 1.404 GHz · memory 5.7 GHz · voltage 0." in found.out
    lines = {line.split()[0]: line for line in found.out.splitlines() if line.strip()}
    assert lines["fp32"].split()[1:3] == ["80.0", "%"]
    assert lines["active"].split()[2:4] == ["100.0", "%"]
    assert "117 W of 250 W (board)" in lines["117"]
    assert "tensor" not in lines
    assert "% of it is drawn when nothing runs; of the units fp32 draws most, " in found.out
    assert "held-out measurements" in found.out
    assert "not counted and taken to be idle: int, fp64, special, shared, l2" in cli(*BUSY, "--all").out


def test_shares_counted_elsewhere_are_named(cli: Any) -> None:
    found = cli(*BUSY[:-1], "911MHz", "--memory-clock", "810MHz", "--counted-at", "1404MHz,5705MHz").out
    assert " · 911 MHz · memory 810 MHz" in found
    assert " · shares counted at 1.404 GHz, memory 5.705 GHz" in found


def test_json_is_what_python_answers(cli: Any) -> None:
    found = cli(*BUSY, "--power-limit", "200W", "--counted-at", "1GHz", "--set", "sm.count=20", "--json").json
    answer = archsim.power("Titan Xp", {"fp32": 0.8, "dram": "30%"}, clock="1404MHz", power_limit=200, counted_at=1e9,
                           set={"sm.count": 20})  # fmt: skip
    assert found == json.loads(json.dumps(answer.to_dict()))
    assert found["schema"] == "archsim-power/1"
    assert found["changes"] == {"sm.count": "20"}
    assert tuple(found["shares"]) == (AWAKE, *UNITS)


def test_csv_is_one_row_of_shares_and_watts(cli: Any) -> None:
    (row,) = cli(*BUSY, "--csv").rows
    data = cli(*BUSY, "--json").json
    assert float(row["power_w"]) == data["power_w"]
    assert [float(row[key]) for key in ("power_low_w", "power_high_w")] == data["power_interval_w"]
    assert {part: float(row[f"power_w.{part}"]) for part in data["parts_w"]} == data["parts_w"]
    assert {unit: float(row[f"share.{unit}"]) for unit in data["shares"]} == data["shares"]


def test_a_file_gives_a_power_for_each_row(cli: Any, rows: str) -> None:
    words = ("power", "--hw", "titan_xp", "--use", rows, "--clock", "1404MHz")
    slow, fast = cli(*words, "--json").json
    assert (slow["name"], slow["clock_hz"], fast["clock_hz"]) == ("slow", 1e9, 1.404e9)
    assert fast["power_w"] == cli(*BUSY, "--json").json["power_w"] > slow["power_w"]
    listed = cli(*words, "--csv").rows
    assert [float(row["power_w"]) for row in listed] == [slow["power_w"], fast["power_w"]]
    text = cli(*words, "--power-limit", "110W", "--all").out
    assert text.count(" sm 1: every SM") == 1
    assert [line.split()[0] for line in text.splitlines() if line.startswith(("  slow", "  fast"))] == ["slow", "fast"]
    assert "Above the limit: 1 of 2 rows." in text
    assert "above the limit" in text
    assert "warning: fast: " in text


def test_a_bad_row_is_refused_with_its_line_before_anything_is_printed(cli: Any, rows: str) -> None:
    Path(rows).write_text(ROWS + "bad,,2,0\n", "utf-8")
    found = cli("power", "--hw", "titan_xp", "--use", rows)
    assert (found.code, found.out) == (65, "")
    assert "line 4: share of fp32: 2 is not between" in found.err


def test_its_examples_run(cli: Any, rows: str) -> None:
    command = group.get_command(None, "power")  # type: ignore[arg-type]
    assert command is not None
    lines = [line.split() for line in (command.help or "").splitlines() if line.strip().startswith("archsim ")]
    assert len(lines) == 5
    for words in lines:
        found = cli(*(rows if word == "rows.csv" else word for word in words[1:]))
        assert found.code == 0, found.err


def test_a_shell_completes_units(cli: Any) -> None:
    from archsim.cli.vocabulary import Keyed

    command = group.get_command(None, "power")  # type: ignore[arg-type]
    assert command is not None
    (option,) = [parameter for parameter in command.params if parameter.name == "use"]
    assert isinstance(option.type, Keyed)
    assert [item.value for item in option.type.shell_complete(None, option, "fp")] == ["fp32=", "fp64="]  # type: ignore[arg-type]
