"""The replay: what it calls the same, what it calls moved, and that its lines of commands still run."""

from __future__ import annotations

import math

import pytest

from archsim.cli.main import COMMANDS
from tests.replay.moved import moves, table
from tests.replay.record import FILE, HEAD, as_text, lines_of, read
from tests.replay.values import Values, answered, command_lines, rows_of

ROWS: Values = {
    "rows paper | gtx_1080 | caffe": {"a": [0.1, 1.1, 1.0, 1.2], "b": [-0.2, 0.8, 0.7, 0.9]},
    "command list hw": {"[0].id": [math.nan, "gtx_1080"], "[0].year": [math.nan, 2016.0]},
}


def copy(values: Values) -> Values:
    return {group: {key: list(own) for key, own in keys.items()} for group, keys in values.items()}


def test_the_same_values_have_not_moved() -> None:
    again = copy(ROWS)
    again["rows paper | gtx_1080 | caffe"]["a"][1] *= 1 + 1e-12  # type: ignore[operator]
    assert moves(ROWS, again) == []
    assert table(ROWS, again) == "no prediction moved"
    assert lines_of(again) == lines_of(ROWS)


@pytest.mark.parametrize(("group", "key", "at", "value"), [
    ("rows paper | gtx_1080 | caffe", "a", 1, 1.1 * (1 + 1e-8)),
    ("rows paper | gtx_1080 | caffe", "b", 3, 0.91),
    ("rows paper | gtx_1080 | caffe", "b", 2, math.nan),
    ("command list hw", "[0].id", 1, "gtx_980"),
])  # fmt: skip
def test_one_value_that_moves_is_found_and_its_group_with_it(group: str, key: str, at: int, value: float | str) -> None:
    other = copy(ROWS)
    other[group][key][at] = value
    assert [(move.group, move.key) for move in moves(ROWS, other)] == [(group, key)]
    assert {name for name, line in lines_of(other).items() if line != lines_of(ROWS)[name]} == {group}


def test_rows_that_come_and_go_are_moves() -> None:
    other = copy(ROWS)
    other["rows paper | gtx_1080 | caffe"]["c"] = other["rows paper | gtx_1080 | caffe"].pop("a")
    assert [move.key for move in moves(ROWS, other)] == ["a", "c"]
    assert "a: only before" in table(ROWS, other)


def test_the_table_says_errors_before_and_after_by_source_and_device() -> None:
    other = copy(ROWS)
    other["rows paper | gtx_1080 | caffe"]["a"] = [0.3, 1.3, 1.2, 1.4]
    lines = table(ROWS, other).splitlines()
    assert lines[0] == "1 values moved, in 1 groups"
    assert [line.split() for line in lines if line.startswith("paper | gtx_1080")] == [
        ["paper", "|", "gtx_1080", "2", "1", "15.00", "->", "25.00", "19.00", "->", "29.00"]
    ]
    assert lines[-1] == "  paper | gtx_1080 | caffe a: 1.1 -> 1.3 (+18.2 %)"


def test_the_shipped_file_is_in_the_form_that_accept_writes() -> None:
    recorded = read(FILE.read_text("utf-8"))
    assert len(recorded) > 300
    assert FILE.read_text("utf-8") == HEAD + "".join(f"{group}: {line}\n" for group, line in sorted(recorded.items()))
    assert read(as_text(ROWS)) == lines_of(ROWS)
    assert {f"command {line}" for line in command_lines()} == {group for group in recorded if group.startswith("command ")}


def test_every_command_that_predicts_is_replayed() -> None:
    silent = {"ui", "calibrate", "detect", "measure", "study", "manual", "new", "completion", "doctor"}  # of here, or words
    assert {line.split()[0] for line in command_lines()} == set(COMMANDS) - silent


def test_a_line_gives_the_numbers_and_words_of_its_json_but_not_what_the_record_says_of_itself() -> None:
    found = answered("estimate --net alexnet --hw tegra_x1")
    assert found["batch"][1] == 1.0
    assert found["stack"][1] == "caffe-cudnn4"
    assert not [place for place in found if "provenance" in place]
    assert answered("estimate --net no_such --hw tegra_x1")["exit"][0] == 2.0


def test_rows_are_grouped_by_source_device_and_stack(write: object) -> None:
    from archsim.evidence.columns import with_ids
    from archsim.evidence.readers import read as read_rows

    from ..measurements import ROW

    cases, _ = read_rows(write(ROW))  # type: ignore[operator]
    (group, values), = rows_of(with_ids(cases)).items()
    assert group.startswith("rows ")
    assert group.count(" | ") == 2
    assert [len(own) for own in values.values()] == [4]
