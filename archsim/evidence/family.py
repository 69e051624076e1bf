"""A family of measurement files: the columns by which it is told, and what their cells must be (`families.toml`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from archsim.base.files import data_folder, read_text
from archsim.base.limits import LIMITS
from archsim.base.schema import LONGEST_WORD, Form, Word, rows_of
from archsim.evidence.shipped import FOLDER
from archsim.evidence.table import MOST_COUNTED, CsvTable, counted, number, positive, whole

FILE = "families.toml"


class Family(Form):
    """One kind of measurement file, as `families.toml` has it."""

    name: Word
    columns: list[Word]
    words: list[Word]
    numbers: list[Word] = []
    readings: list[Word] = []
    counters: list[Word] = []
    whole: list[Word] = []
    offsets: list[Word] = []
    measured: list[Word]
    called: dict[Word, Word] = {}
    usual: dict[Word, Word] = {}

    def cell(self, cells: Mapping[str, str], column: str) -> str:
        """A cell by the name that rules have for its column; empty where the file has none."""
        return cells.get(self.called.get(column, column)) or cells.get(column) or self.usual.get(column, "")


@cache
def families() -> tuple[Family, ...]:
    """Every kind of file, in the order in which a header is compared with them."""
    place = data_folder(FOLDER).joinpath(FILE)
    return rows_of(Family, "family", read_text(place, LIMITS["sources"].size), str(place))


@cache
def family_called(name: str) -> Family:
    """The family of a name."""
    return next(one for one in families() if one.name == name)


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
