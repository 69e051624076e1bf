"""A measurement file as a table of words: comma-separated, UTF-8, one row a line; every other form is a problem with its line."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from archsim.base.errors import InputError
from archsim.base.files import LIMITS, InputLimit, read_bytes

MOST_TOLD = 20
REMARK = "# "
UNPREDICTED = "unpredicted"  # column: why a row is kept and not predicted, such as what its source does not state
MOST_COUNTED = 100_000  # problems after which a file is not checked further
MOST_COLUMNS = 500
LEAST, MOST = 1e-30, 1e30  # in any unit; errors of values beyond could not be counted

_NUMBER = re.compile(r"\+?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the number of its line in the file, and its cells by column."""

    line: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTable:
    """A whole file. `name` is that of the file without folder and endings."""

    path: str
    name: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(place: str | Path | Traversable, limit: InputLimit = LIMITS["measurements"]) -> CsvTable:
    """Read a CSV file within its limits (`.gz` allowed). A line that begins with "# " is a remark.

    Raises MissingFile, or InputError with up to 20 problems, each with its line.
    """
    place = Path(place) if isinstance(place, str) else place
    return table_of(read_bytes(place, limit.size), str(place), limit)


def table_of(data: bytes, path: str, limit: InputLimit = LIMITS["measurements"]) -> CsvTable:
    """The same from what a file, or the output of a command, holds; errors name it `path`."""
    text = _decoded(data, path)
    lines = ["\n" if line.startswith(REMARK) else line for line in io.StringIO(text, newline="")]
    reader = csv.reader(lines, strict=True)
    problems: list[str] = []
    rows: list[Row] = []
    header: tuple[str, ...] = ()
    try:
        header = tuple(name.strip() for name in next(filter(None, reader), []))
        refuse(path, _header_problems(header))
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if line != before:
                problems.append(f"line {line}: a cell with a line break; write every row on one line")
            elif len(cells) == len(header):
                rows.append(Row(line, dict(zip(header, cells, strict=True))))
            elif cells:
                problems.append(f"line {line}: {len(cells)} cells, but the header has {len(header)} columns")
            if len(rows) > limit.entries:
                problems.append(f"has more than {limit.entries:,} rows")
            if len(problems) >= MOST_COUNTED or len(rows) > limit.entries:
                break
    except csv.Error as error:
        problems.append(f"line {max(1, reader.line_num)}: {error}")
    if not problems and not rows:
        problems.append("line 1: a header and no rows")
    refuse(path, problems)
    return CsvTable(path=path, name=table_name(Path(path).name), header=header, rows=tuple(rows))


def table_name(file: str) -> str:
    """What the rows of a file are called: its name without endings.

    >>> table_name("kernels.csv.gz")
    'kernels'
    """
    return file.removesuffix(".gz").removesuffix(".csv")


def refuse(path: str, problems: Sequence[str]) -> None:
    """Raise InputError if there are problems; it tells the first twenty, and how many there are."""
    if problems:
        error = InputError(path, problems)
        error.most_shown = MOST_TOLD
        raise error


def _decoded(data: bytes, path: str) -> str:
    if not data.strip():
        raise InputError(path, "is empty")
    lines = enumerate(data.split(b"\n"), start=1)
    refuse(path, [f"line {number}: a NUL byte; the file is not text" for number, line in lines if b"\0" in line])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path, f"line {data.count(10, 0, error.start) + 1}: is not UTF-8 text") from None


def _header_problems(header: Sequence[str]) -> list[str]:
    if len(header) == 1:
        for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in header[0]:
                return [f"line 1: columns are separated by {name}; use commas, and a point in numbers"]
    if len(header) > MOST_COLUMNS:
        return [f"line 1: {len(header)} columns, more than {MOST_COLUMNS}"]
    twice = sorted({name for name in header if header.count(name) > 1})
    return [f"line 1: column {name!r} stands twice" for name in twice]


def number(text: str, counter: bool = False) -> float:
    """A positive or zero finite number in plain notation, or of either sign as counters of a profiler give it; ValueError says
    what is wrong.

    >>> number("1.5e-3"), number("-1.4e-11", counter=True)
    (0.0015, -1.4e-11)
    """
    plain = text.strip()
    unsigned = plain.removeprefix("-")
    if not _NUMBER.match(unsigned):
        comma = _DECIMAL_COMMA.match(plain)
        raise ValueError(f"{_short(text)} {'has a decimal comma; write a point' if comma else 'is not a number'}")
    if unsigned != plain and not counter:
        raise ValueError(f"{_short(text)} is negative")
    value = float(plain)
    if not math.isfinite(value):
        raise ValueError(f"{_short(text)} is not finite")
    if value and not counter and not LEAST <= value <= MOST:
        raise ValueError(f"{_short(text)} is not between {LEAST:g} and {MOST:g}, as every measured value is")
    return value


def positive(text: str) -> float:
    """A finite number above zero; ValueError otherwise."""
    value = number(text)
    if value <= 0:
        raise ValueError(f"{_short(text)} is not above zero")
    return value


def whole(text: str, least: int = 1) -> int:
    """A whole number from `least` to 2^40; ValueError otherwise.

    >>> whole("128")
    128
    """
    value = number(text)
    if value != int(value) or not least <= value <= 2**40:
        raise ValueError(f"{_short(text)} is not a whole number from {least}")
    return int(value)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
