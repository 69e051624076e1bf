"""The files of the shipped corpus and their kinds: the columns by which a kind is told, and what its cells must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from importlib.resources.abc import Traversable

from archsim.base.files import LIMITS, data_folder, read_text
from archsim.base.schema import LONGEST_WORD, F, Form, Word, rows_of
from archsim.evidence.table import MOST_COUNTED, CsvTable, number, positive, whole

FOLDER = "reports/published"
PEERS = f"{FOLDER}/peers"  # rows to which nothing is fitted, and the published predictions of other tools for them
PEER_SERVED = "served.csv"
PEER_ROWS = ("transformers.csv", PEER_SERVED)
SERVING = f"{FOLDER}/serving"  # runs of language models that engines served; no constant is fitted to them


def _tables(folder: str) -> list[Traversable]:
    """The measurement files in a folder, by name."""
    return sorted((f for f in data_folder(folder).iterdir() if f.name.endswith((".csv", ".csv.gz"))), key=lambda f: f.name)


def shipped_files(*, with_peers: bool = False) -> list[Traversable]:
    """The measurement files, by name; the rows of other tools' predictions come last."""
    return [*_tables(FOLDER), *(data_folder(PEERS).joinpath(name) for name in PEER_ROWS if with_peers)]


def serving_files() -> list[Traversable]:
    """The files of served language models, by name; the rows of other tools' predictions come last."""
    return [*_tables(SERVING), data_folder(PEERS).joinpath(PEER_SERVED)]


def peer_files() -> list[Traversable]:
    """The files of other tools' predictions, by name: one a tool, by the ids of the rows."""
    return [file for file in _tables(PEERS) if file.name not in PEER_ROWS]



def toml_rows(form: type[F], name: str, folder: str, file: str) -> tuple[F, ...]:
    """The tables `[[name]]` of a shipped file, in its order."""
    place = data_folder(folder).joinpath(file)
    return rows_of(form, name, read_text(place, LIMITS["sources"].size), str(place))


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
    usual: dict[Word, str] = {}
    other: dict[Word, list[Word]] = {}
    values: dict[Word, dict[Word, float]] = {}
    template: str = ""

    def cell(self, cells: Mapping[str, str], column: str) -> str:
        """A cell by the name that rules have for its column; empty where the file has none."""
        return cells.get(self.called.get(column, column)) or cells.get(column) or self.usual.get(column, "")


@cache
def families() -> tuple[Family, ...]:
    """Every kind of file, in the order in which a header is compared with them."""
    return toml_rows(Family, "family", FOLDER, "families.toml")


@cache
def family_called(name: str) -> Family:
    """The family of a name."""
    return next(one for one in families() if one.name == name)


counted, offset = partial(number, counter=True), partial(whole, least=0)


def malformed(table: CsvTable, family: Family) -> dict[int, list[str]]:
    """What is wrong in the form of the cells of each row, by its line; rows without fault are not among them."""
    rules = ((family.numbers, positive), (family.readings, number), (family.counters, counted), (family.whole, whole),
             (family.offsets, offset))  # fmt: skip
    checks = [(name, rule) for names, rule in rules for name in names if name in table.header]
    found: dict[int, list[str]] = {}
    for row in table.rows:
        cells = row.cells
        problems = [f"{name} is empty" for name in family.words if not cells[name].strip()]
        if not any(cells.get(name) for name in family.measured):
            problems.append(f"no value in {' or '.join(family.measured)}")
        problems += [f"{name} {said}" for name, rule in checks if cells[name] and (said := _problem(rule, cells[name]))]
        problems += [f"{name} begins with '{text[0]}', as a formula does"
                     for name, text in cells.items() if text[:1] in ("=", "@")]  # fmt: skip
        problems += [f"{name} is longer than {LONGEST_WORD} characters"
                     for name in family.words if len(cells[name]) > LONGEST_WORD]  # fmt: skip
        if problems:
            found[row.line] = problems
        if len(found) > MOST_COUNTED:
            break
    return found


@lru_cache(maxsize=1 << 18)
def _problem(rule: Callable[[str], float], text: str) -> str:
    try:
        rule(text)
    except ValueError as error:
        return str(error)
    return ""
