"""Broken and hostile measurement files end in one line per problem, with line numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from archsim.base.errors import MissingFile
from archsim.evidence.readers import read
from archsim.evidence.table import number, read_table, whole

from ..each import each
from ..measurements import HEAD, ROW

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]


def changed(column: str, value: str) -> str:
    cells = dict(zip(HEAD.split(","), ROW.split(","), strict=True)) | {column: value}
    return ",".join(cells.values())


BROKEN = {
    "semicolons": (f"{HEAD}\n{ROW}\n".replace(",", ";"), "line 1: columns are separated by semicolons"),
    "tabs": (f"{HEAD}\n{ROW}\n".replace(",", "\t"), "line 1: columns are separated by tabs"),
    "decimal comma": (f"{HEAD}\n" + changed("value", '"0,01"') + "\n", "line 2: value '0,01' has a decimal comma"),
    "missing column": (f"{HEAD.replace(',value', '')}\n", "line 1: "),
    "text": (f"{HEAD}\n{ROW}\n" + changed("value", "fast") + "\n", "line 3: value 'fast' is not a number"),
    "overflow": (f"{HEAD}\n" + changed("value", "1e400") + "\n", "line 2: value '1e400' is not finite"),
    "nan": (f"{HEAD}\n" + changed("value", "nan") + "\n", "line 2: value 'nan' is not a number"),
    "negative": (f"{HEAD}\n" + changed("value", "-1") + "\n", "line 2: value '-1' is negative"),
    "zero": (f"{HEAD}\n" + changed("value", "0") + "\n", "line 2: value '0' is not above zero"),
    "underscore": (f"{HEAD}\n" + changed("value", "1_0") + "\n", "line 2: value '1_0' is not a number"),
    "half a batch": (f"{HEAD}\n" + changed("batch", "1.5") + "\n", "line 2: batch '1.5' is not a whole number from 1"),
    "huge batch": (f"{HEAD}\n" + changed("batch", "1e30") + "\n", "line 2: batch '1e30' is not a whole number"),
    "formula": (f"{HEAD}\n" + changed("source", "=cmd()") + "\n", "line 2: source begins with '='"),
    "long_source": (f"{HEAD}\n" + changed("source", "nvidia_" * 400) + "\n", "line 2: source is longer than 2000 characters"),
    "formula number": (f"{HEAD}\n" + changed("value", "=1+1") + "\n", "line 2: value '=1+1' is not a number"),
    "ragged": (f"{HEAD}\n{ROW}\n{ROW},more\n", "line 3: 14 cells, but the header has 13 columns"),
    "short": (f"{HEAD}\n{ROW.rsplit(',', 1)[0]}\n", "line 2: 12 cells, but the header has 13 columns"),
    "line break": (f"{HEAD}\n" + changed("source", '"a\nb"') + f"\n{ROW}\n", "line 2: a cell with a line break"),
    "open quote": (f'{HEAD}\n{ROW}\n"{ROW}\n', "line 3: "),
    "no value": (f"{HEAD}\n" + changed("value", "") + "\n", "line 2: no value in value"),
    "no network": (f"{HEAD}\n" + changed("network", " ") + "\n", "line 2: network is empty"),
    "twice": (f"{HEAD},value\n{ROW},1\n", "line 1: column 'value' stands twice"),
    "NUL": (f"{HEAD}\n{ROW}\n\0{ROW}\n", "line 3: a NUL byte"),
    "NULs": (f"{HEAD}\n\0\0\n{ROW}\n\0", "line 4: a NUL byte"),
    "not UTF-8": (HEAD.encode() + b"\n" + ROW.encode() + b"\n\xff\xfe\n", "line 3: is not UTF-8"),
    "no rows": (f"{HEAD}\n", "line 1: a header and no rows"),
    "empty": ("", "is empty"),
    "blank": (" \n\n", "is empty"),
    "other": ("name,colour\na,b\n", "line 1: no measurement file"),
}
ROWS = ("decimal comma", "text", "overflow", "nan", "negative", "zero", "underscore", "half a batch", "huge batch", "formula",
        "long_source", "formula number", "no value", "no network")  # of which each row stands alone; others break the file


@each("case", BROKEN)
def test_broken_file_is_refused_with_its_line(case: str, write: Write, run: Run) -> None:
    content, said = BROKEN[case]
    path = write(content, raw=True)
    code, out, err = run("validate", "--add", path)
    assert (code, out) == (65, "")
    assert said in err
    assert len(err.splitlines()) <= 3
    code, out, err = run("validate", "--measurements", path, "--baseline", "none")
    line, _, reason = said.partition(": ")
    of_a_row = case in ROWS
    assert code == (65 if not of_a_row else 0 if ROW in content else 1)
    assert (f"{reason}" in out and f"({line})" in out) if of_a_row else said in err


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(write: Write) -> None:
    cases, skips = read(write(b"\xef\xbb\xbf", f"{HEAD}\r\n{ROW}\r\n\r\n", raw=True))
    assert (len(cases), len(skips)) == (1, 0)
    assert cases[0].measured == 0.01


def test_a_large_file_is_refused_before_it_is_read(write: Write, run: Run, tmp_path: Path) -> None:
    place = tmp_path / "large.csv"
    with place.open("wb") as stream:
        stream.truncate(200 << 20)
    code, out, err = run("validate", "--measurements", str(place))
    assert (code, out) == (65, "")
    assert "is larger than" in err
    assert len(err.splitlines()) == 1


def test_absent_files_and_folders(tmp_path: Path, run: Run) -> None:
    assert run("validate", "--measurements", str(tmp_path / "none.csv"))[0] == 66
    assert run("validate", "--add", str(tmp_path))[0] == 65
    with pytest.raises(MissingFile):
        read_table(tmp_path / "none.csv")


def test_control_characters_of_a_file_do_not_reach_the_terminal(write: Write, run: Run) -> None:
    _, _, err = run("validate", "--measurements", write(changed("value", "\x1b[2J")))
    assert "\x1b" not in err


@pytest.mark.parametrize(("text", "value"), [("1", 1.0), ("0.5", 0.5), (".5", 0.5), ("+2e3", 2000.0), (" 4 ", 4.0)])
def test_numbers(text: str, value: float) -> None:
    assert number(text) == value


@each("text", ["", "-1", "1,5", "inf", "NaN", "0x10", "1e400", "1 000", "١", "1__0"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a number|is negative|is not finite|decimal comma"):
        number(text)


def test_whole_numbers() -> None:
    assert whole("128") == 128
    assert whole("0", least=0) == 0
    for text in ("0", "1.5", "1e20"):
        with pytest.raises(ValueError, match="is not a whole number"):
            whole(text)
