"""Predictions that somebody else makes: a file of them, or a command that reads cases and prints them.

Both are the same table: a CSV with the columns `id` and `value`, the value in the unit of the case's metric, and if wanted
`low` and `high` (an interval) and `seconds` (what this prediction took). A command gets one case a line on standard input.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from archsim.base.errors import InputError, MissingFile
from archsim.base.files import read_bytes
from archsim.base.limits import LIMITS
from archsim.cost.cost import Array
from archsim.evidence.case import Case
from archsim.evidence.columns import ID, case_line
from archsim.evidence.table import REMARK, CsvTable, positive, refuse, table_name, table_of

VALUE, LOW, HIGH, SECONDS = "value", "low", "high", "seconds"
KNOWN = (ID, VALUE, LOW, HIGH, SECONDS)
FILES = (".csv", ".csv.gz")  # endings by which a file is told from a command
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """What one predictor says, by the ids of cases.

    seconds: what one prediction takes [s]; None where nobody says
    about: whose they are and where they stand
    """

    name: str
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    seconds: float | None
    about: str = ""

    def of(self, cases: Sequence[Case]) -> Array:
        """The value of each case, NaN where there is none."""
        return np.array([self.values.get(case.fields[ID], np.nan) for case in cases])

    def intervals_of(self, cases: Sequence[Case]) -> tuple[Array, Array]:
        """The ends of the interval of each case, NaN where there is none."""
        none = (np.nan, np.nan)
        ends = [self.intervals.get(case.fields[ID], none) for case in cases]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def is_file(word: str) -> bool:
    """Whether a predictor is a file of predictions; anything else is a command.

    >>> is_file("mine.csv"), is_file("python predict.py")
    (True, False)
    """
    return word.lower().endswith(FILES) and not Path(word).name.startswith("-")


def from_file(place: str | Traversable, known: Collection[str] | None, name: str = "") -> Predictions:
    """The predictions of a file, by ids that are `known`, or by any where that is None.

    Raises MissingFile, or InputError with every problem and its line.
    """
    file = Path(place) if isinstance(place, str) else place
    data = read_bytes(file, LIMITS["measurements"].size)
    return _checked(table_of(data, str(place)), known, name or table_name(file.name), about=_remarks(data))


def from_command(command: str, cases: Sequence[Case], known: Collection[str]) -> Predictions:
    """What a command prints for these cases; `seconds` is its own time, start included, unless it prints that column.

    The command is started without a shell. Raises InputError where it cannot be started, fails, or prints something else.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(command, f"is no command line ({error})") from None
    if not words:
        raise InputError("--predictor", "names nothing; a file of predictions (.csv) or a command")
    given = "".join(f"{case_line(case)}\n" for case in cases).encode()
    begin = time.perf_counter()
    try:
        done = subprocess.run(words, input=given, stdout=subprocess.PIPE, check=False)
    except FileNotFoundError:
        raise MissingFile(f"{words[0]}: no such command; a file of predictions ends in .csv") from None
    except OSError as error:
        raise InputError(command, f"cannot be started ({error.strerror or error})") from None
    took = time.perf_counter() - begin
    if done.returncode:
        raise InputError(command, f"ended with status {done.returncode}; its predictions are not used")
    if not done.stdout.strip():
        raise InputError(command, f"printed nothing for {len(cases)} cases; it prints a CSV with the columns id,value")
    name = table_name(Path(words[-1] if len(words) > 1 and not words[-1].startswith("-") else words[0]).name)
    return _checked(table_of(done.stdout, command), known, name, took=took)


def _checked(
    table: CsvTable, known: Collection[str] | None, name: str, took: float | None = None, about: str = ""
) -> Predictions:
    """The predictions of a table. Raises InputError for wrong columns, unknown ids, ids that stand twice and bad values."""
    missing = [column for column in (ID, VALUE) if column not in table.header]
    refuse(table.path, [f"line 1: column {column!r} is missing; the columns are id,value" for column in missing])
    strange = [column for column in table.header if column not in KNOWN]
    refuse(table.path, [f"line 1: column {column!r} is not known; the columns are {', '.join(KNOWN)}" for column in strange])
    if (LOW in table.header) != (HIGH in table.header):
        raise InputError(table.path, "line 1: an interval has both ends; give both columns low and high")
    read = _Rows(known=known)
    for row in table.rows:
        read.add(row.line, {column: row.cells.get(column, "").strip() for column in KNOWN})
    refuse(table.path, read.problems)
    each = took / len(read.values) if took is not None else None
    return Predictions(name=name[:LONGEST_NAME], values=read.values, intervals=read.intervals, about=about,
                       seconds=float(np.mean(read.seconds)) if read.seconds else each)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class _Rows:
    """What has been read of a table of predictions, and what is wrong with it."""

    known: Collection[str] | None
    values: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, line: int, cells: Mapping[str, str]) -> None:
        """Take one row, or say what is wrong with it."""
        own = cells[ID]
        if own in self.lines:
            self.problems.append(f"line {line}: id {own!r} stands on line {self.lines[own]} already")
        elif self.known is not None and own not in self.known:
            shown = own[:LONGEST_NAME]
            self.problems.append(f"line {line}: no row has the id {shown!r}; `archsim validate --cases FILE` writes all ids")
        elif not cells[VALUE]:
            self.problems.append(f"line {line}: no value; leave out the rows that you do not predict")
        else:
            self.lines[own] = line
            self._take(line, own, cells)

    def _take(self, line: int, own: str, cells: Mapping[str, str]) -> None:
        found: dict[str, float] = {}
        for column in (VALUE, LOW, HIGH, SECONDS):
            try:
                found |= {column: positive(cells[column])} if cells[column] else {}
            except ValueError as error:
                self.problems.append(f"line {line}: {column} {error}")
                return
        self.values[own] = found[VALUE]
        if SECONDS in found:
            self.seconds.append(found[SECONDS])
        if LOW in found or HIGH in found:
            ends = found.get(LOW, math.inf), found.get(HIGH, -math.inf)
            if ends[0] > ends[1]:
                self.problems.append(f"line {line}: low and high are no interval")
            self.intervals[own] = ends


def _remarks(data: bytes) -> str:
    """The remarks at the top of a file, as one text."""
    lines = data.decode("utf-8-sig", "replace").splitlines() if not data.startswith(b"\x1f\x8b") else []
    found: list[str] = []
    for line in lines:
        if not line.startswith(REMARK):
            break
        found.append(line.removeprefix(REMARK).strip())
    return " ".join(found)


def read_predictors(
    words: Sequence[str], cases: Sequence[Case], known: Collection[str], tell: Callable[[str], None] = lambda text: None
) -> list[Predictions]:
    """The predictors named on a command line, each with a name of its own."""
    found: list[Predictions] = []
    for word in words:
        tell(f"predictor {word}")
        one = from_file(word, known) if is_file(word) else from_command(word, cases, known)
        found.append(one)
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError("--predictor", f"two predictors are called {twice[0]!r}; rename a file")
    return found
