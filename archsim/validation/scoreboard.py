"""Predictors on the same measured rows: archsim, the bare roofline, and others, each a file of predictions or a command.

A file and what a command prints are the same table: a CSV with the columns `id` and `value`, the value in the unit of the case's
metric, and if wanted `low` and `high` (an interval) and `seconds` (what this prediction took). A command gets one case a line on
standard input.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from itertools import takewhile
from pathlib import Path

import numpy as np

from archsim.base.errors import InputError, MissingFile
from archsim.base.files import LIMITS, read_bytes
from archsim.cost.cost import Array
from archsim.evidence.case import UNSIMULATED, Case, Skip
from archsim.evidence.columns import ID, case_line, column
from archsim.evidence.sources import Claim
from archsim.evidence.table import REMARK, CsvTable, positive, refuse, table_name, table_of
from archsim.validation.evaluation import GroupScore, Tell, ValidationSettings, errors, group_scores, validate

VALUE, LOW, HIGH, SECONDS = "value", "low", "high", "seconds"
KNOWN = (ID, VALUE, LOW, HIGH, SECONDS)
FILES = (".csv", ".csv.gz")  # endings by which a file is told from a command
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """What one predictor says.

    rows: by the ids of cases the value and the ends of its interval, NaN where there is none
    seconds: what one prediction takes [s]; None where nobody says
    about: whose they are and where they stand
    """

    name: str
    rows: Mapping[str, tuple[float, float, float]]
    seconds: float | None
    about: str = ""

    def of(self, cases: Sequence[Case]) -> Array:
        """Values and the ends of their intervals, [3, cases], NaN where there is none."""
        return np.array([self.rows.get(case.fields[ID], (math.nan,) * 3) for case in cases]).reshape(-1, 3).T


def is_file(word: str) -> bool:
    """Whether a predictor is a file of predictions; anything else is a command.

    >>> is_file("mine.csv"), is_file("python predict.py")
    (True, False)
    """
    return word.lower().endswith(FILES) and not Path(word).name.startswith("-")


def from_file(place: str | Traversable, known: Collection[str] | None) -> Predictions:
    """The predictions of a file, by ids that are `known`, or by any where that is None.

    Raises MissingFile, or InputError with every problem and its line.
    """
    file = Path(place) if isinstance(place, str) else place
    data = read_bytes(file, LIMITS["measurements"].size)
    return _checked(table_of(data, str(place)), known, table_name(file.name), about=_remarks(data))


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
    lines: dict[str, int] = {}
    problems: list[str] = []
    found: dict[str, dict[str, float]] = {}
    for row in table.rows:
        cells = {column: row.cells.get(column, "").strip() for column in KNOWN}
        own = cells.pop(ID)
        try:
            if own in lines:
                raise ValueError(f"id {own!r} stands on line {lines[own]} already")
            if known is not None and own not in known:
                raise ValueError(f"no row has the id {own[:LONGEST_NAME]!r}; `archsim validate --cases FILE` writes all ids")
            if not cells[VALUE]:
                raise ValueError("no value; leave out the rows that you do not predict")
            lines[own] = row.line
            found[own] = one = {column: _positive(column, cell) for column, cell in cells.items() if cell}
            if {LOW, HIGH} & one.keys() and one.get(LOW, math.inf) > one.get(HIGH, -math.inf):
                raise ValueError("low and high are no interval")
        except ValueError as error:
            problems.append(f"line {row.line}: {error}")
    refuse(table.path, problems)
    seconds = [one[SECONDS] for one in found.values() if SECONDS in one]
    return Predictions(
        name=name[:LONGEST_NAME], about=about,
        rows={own: (one[VALUE], one.get(LOW, math.nan), one.get(HIGH, math.nan)) for own, one in found.items()},
        seconds=float(np.mean(seconds)) if seconds else None if took is None else took / len(found),
    )  # fmt: skip


def _positive(column: str, cell: str) -> float:
    try:
        return positive(cell)
    except ValueError as error:
        raise ValueError(f"{column} {error}") from None


def _remarks(data: bytes) -> str:
    """The remarks at the top of a file, as one text."""
    lines = data.decode("utf-8-sig", "replace").splitlines() if not data.startswith(b"\x1f\x8b") else []
    return " ".join(line.removeprefix(REMARK).strip() for line in takewhile(lambda line: line.startswith(REMARK), lines))


def read_predictors(
    words: Sequence[str], cases: Sequence[Case], known: Collection[str], tell: Tell = lambda text: None
) -> list[Predictions]:
    """The predictors named on a command line, each with a name of its own."""
    found: dict[str, Predictions] = {}
    for word in words:
        tell(f"predictor {word}")
        one = from_file(word, known) if is_file(word) else from_command(word, cases, known)
        if one.name in found:
            raise InputError("--predictor", f"two predictors are called {one.name!r}; rename a file")
        found[one.name] = one
    return [*found.values()]


# ------------------------------------------------------------------------------------------------------------- scoreboard

OWN, ROOFLINE = "archsim", "roofline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPredictor:
    """One predictor on the rows of a scoreboard. Arrays run along all its cases, NaN where the predictor has no answer.

    overall: one score for each quantity; groups: for the columns that were asked for. Both are of the rows that it answers, and
    have the scores of archsim and of the roofline on these same rows as baselines.
    """

    predictions: Predictions
    predicted: Array
    error: Array
    low: Array
    high: Array
    overall: tuple[GroupScore, ...]
    groups: tuple[GroupScore, ...]

    @property
    def answered(self) -> int:
        """The rows that it has a value for."""
        return int(np.isfinite(self.predicted).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoreboard:
    """All predictors, on the rows that somebody besides archsim answers.

    asked: how many rows all were asked for
    common: by predictor, the scores of the rows that every one answers; empty where there are none
    data: hash of the measurement files, where it is known; claims: what other tools say of themselves
    """

    settings: ValidationSettings
    asked: int
    cases: tuple[Case, ...]
    skips: tuple[Skip, ...]
    entrants: tuple[ScoredPredictor, ...]
    common: tuple[tuple[GroupScore, ...], ...]
    data: str = ""
    claims: tuple[Claim, ...] = ()


def scoreboard(
    cases: Sequence[Case], skips: Sequence[Skip], others: Sequence[Predictions], settings: ValidationSettings,
    tell: Tell = lambda text: None,
) -> Scoreboard:  # fmt: skip
    """Score `others` beside archsim and the roofline; the cases have ids (`with_ids`).

    Rows that nobody else answers are left to `validate`: they would say nothing of a predictor.
    """
    answered = {own for one in others for own in one.rows}
    played = [case for case in cases if case.fields[ID] in answered]
    computed = [case for case in played if not isinstance(case.pattern, UNSIMULATED)]  # a roofline has no answer without ops
    own = [_own(OWN, settings.fidelity, played, settings, tell), _own(ROOFLINE, ROOFLINE, computed, settings, tell)]
    entered = [one for one in (*own, *others) if any(case.fields[ID] in one.rows for case in played)]
    values, entrants = {one.name: one.of(played) for one in entered}, []
    by_quantity, by_asked = ({name: column(played, name) for name in by} for by in (("quantity",), settings.by))
    for one in entered:
        predicted, low, high = values[one.name]
        beside = {name: values[name][0] for name in (OWN, ROOFLINE) if name in values and name != one.name}
        rows = np.flatnonzero(np.isfinite(predicted)).tolist()
        overall, groups = (group_scores(played, by, predicted, low, high, beside, rows) for by in (by_quantity, by_asked))
        entrants.append(ScoredPredictor(predictions=one, predicted=predicted, error=errors(played, predicted), low=low,
                                        high=high, overall=overall, groups=groups))  # fmt: skip
    shared = [i for i in range(len(played)) if all(np.isfinite(e.predicted[i]) for e in entrants)]
    common = [group_scores(played, by_quantity, e.predicted, e.low, e.high, {}, shared) for e in entrants] if shared else []
    return Scoreboard(settings=settings, asked=len(cases), cases=tuple(played), skips=tuple(skips), entrants=tuple(entrants),
                      common=tuple(common))  # fmt: skip


def _own(name: str, fidelity: str, cases: Sequence[Case], settings: ValidationSettings, tell: Tell) -> Predictions:
    """The predictions of a fidelity of archsim, timed."""
    asked = replace(settings, fidelity=fidelity, baselines=())
    begin = time.perf_counter()
    v = validate(cases, (), asked, tell)
    took = time.perf_counter() - begin
    low, high = (v.low, v.high) if name == OWN else np.full((2, len(v.cases)), math.nan)
    values = zip(v.predicted.tolist(), low.tolist(), high.tolist(), strict=True)
    return Predictions(
        name=name, rows=dict(zip([case.fields[ID] for case in v.cases], values, strict=True)),
        seconds=took / len(v.cases) if v.cases else None, about=f"the {fidelity} model of archsim, timed here",
    )  # fmt: skip
