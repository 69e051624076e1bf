"""A family of measurement files: the columns by which it is recognised, what their cells must be, how a row becomes cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from archsim.base.schema import LONGEST_WORD
from archsim.evidence.case import Case, Skip
from archsim.evidence.resolve import Refused
from archsim.evidence.table import MOST_COUNTED, CsvTable, Row, counted, number, positive, whole

Reader = Callable[[Row, str], "list[Case | Skip]"]  # a row with several values may have some that cannot be predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One kind of measurement file. Of its columns, by name:

    columns: a file that has them all belongs to the family
    words: must not be empty
    numbers: finite and above 0, where given
    readings: the same, or 0: below the resolution of the timer
    counters: finite, where given, of either sign
    whole: counts from 1, where given; `offsets`: whole numbers from 0
    measured: at least one of them must be given
    """

    name: str
    columns: tuple[str, ...]
    words: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    offsets: tuple[str, ...] = ()
    measured: tuple[str, ...]
    read: Reader | None = None
    reader: Callable[[CsvTable], Reader] | None = None  # instead of `read`, where a row is compared with others of its table

    def reading(self, table: CsvTable) -> Reader:
        """The function that reads the rows of a table."""
        found = self.reader(table) if self.reader is not None else self.read
        assert found is not None
        return found


def malformed(table: CsvTable, family: Family) -> dict[int, list[str]]:
    """What is wrong in the form of the cells of each row, by its line; rows without fault are not among them."""
    checks = [(name, positive) for name in family.numbers if name in table.header]
    checks += [(name, number) for name in family.readings if name in table.header]
    checks += [(name, counted) for name in family.counters if name in table.header]
    checks += [(name, whole) for name in family.whole if name in table.header]
    checks += [(name, offset) for name in family.offsets if name in table.header]
    cached = [(name, lru_cache(maxsize=65536)(_problem(rule))) for name, rule in checks]
    found: dict[int, list[str]] = {}
    for row in table.rows:
        cells = row.cells
        problems = [f"{name} is empty" for name in family.words if not cells[name].strip()]
        if not any(cells.get(name) for name in family.measured):
            problems.append(f"no value in {' or '.join(family.measured)}")
        problems += [f"{name} {said}" for name, problem in cached if cells[name] and (said := problem(cells[name]))]
        problems += [f"{name} begins with '{text[0]}', as a formula does"
                     for name, text in cells.items() if text[:1] in ("=", "@")]  # fmt: skip
        problems += [f"{name} is longer than {LONGEST_WORD} characters"
                     for name in family.words if len(cells[name]) > LONGEST_WORD]  # fmt: skip
        if problems:
            found[row.line] = problems
        if len(found) > MOST_COUNTED:
            break
    return found


def offset(text: str) -> int:
    """A whole number from 0."""
    return whole(text, least=0)


def _problem(rule: Callable[[str], float]) -> Callable[[str], str]:
    def problem(text: str) -> str:
        try:
            rule(text)
        except ValueError as error:
            return str(error)
        return ""

    return problem


def integer(cells: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A whole number of a checked row; the default where the cell is empty."""
    text = cells.get(name, "")
    if text:
        return int(float(text))
    if default is None:
        raise Refused(f"{name} is not given")
    return default
