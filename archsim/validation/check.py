"""Checking a measurement file before it joins the corpus: every problem in one line, with the number of its row."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path

from archsim.base.errors import ArchsimError, nearest
from archsim.base.files import data_folder
from archsim.base.record import by_key
from archsim.detect import catalog as devices
from archsim.evidence import network_rows
from archsim.evidence.case import METRICS, TEST, WATCHED
from archsim.evidence.family import FOLDER, Family, malformed, shipped_files
from archsim.evidence.readers import cases_of, family_of
from archsim.evidence.row import PRECISIONS
from archsim.evidence.sources import sources
from archsim.evidence.table import UNPREDICTED, CsvTable, Row, read_table, refuse
from archsim.stack import catalog as stacks
from archsim.trace.file import names as networks
from archsim.trace.task import prepared
from archsim.trace.training import TASKS

Problem = tuple[int, str]  # line, what is wrong there
SPLITS = ("calibrate", WATCHED, TEST)
CELL = (
    "source", "network", "hardware", "stack", "task", "batch", "precision", "threads", "devices", "clock_mhz", "source_ref"
)  # fmt: skip
ROUNDING = 0.06  # published rates are rounded to two digits; a rate further than this from batch / latency contradicts it


def check_file(path: str) -> str:
    """What to do with a file that has no problems, in words. Raises InputError with all problems of another."""
    table = read_table(path)
    family = family_of(table)
    problems = [(line, said) for line, found in malformed(table, family).items() for said in found]
    refuse(path, [f"line {line}: {said}" for line, said in problems or check(table, family)])
    cases, skips = cases_of(table, family)
    target = Path(str(data_folder(FOLDER))) / Path(path).name
    said = [f"{path}: {len(table.rows)} rows of {family.name}, {len(cases)} values that can be predicted, no problems"]
    if skips:
        said.append(f"{len(skips)} rows are kept but not predicted: {', '.join(sorted({skip.reason for skip in skips}))}")
    taken = any(file.name == target.name for file in shipped_files())
    said.append(f"copy it to {target}" + ("; a file of that name is there already, so give it another" if taken else ""))
    missing = sorted({family.cell(row.cells, "source") for row in table.rows} - set(sources()))
    if missing:
        said.append(f"and describe in {target.parent / 'sources.toml'}: {', '.join(missing)}")
    return "\n".join(said)


def check(table: CsvTable, family: Family) -> list[Problem]:
    """Problems in the content of a file whose form is right: unknown words, repeated rows, rates that contradict latencies."""
    problems = [(row.line, said) for row in table.rows for said in _words(row, family)]
    problems += _duplicates(table)
    if family.name == "networks":
        problems += _contradictions(table)
    return sorted(problems, key=lambda problem: problem[0])


def _words(row: Row, family: Family) -> list[str]:
    """Words that nothing here describes, of a row that does not say why it is kept all the same."""
    cells = row.cells
    if cells.get(UNPREDICTED):
        return []
    found, known = [_unknown("hardware", cells["hardware"])], dict[str, Collection[str]]()
    if cells["hardware"] == devices.HOST:
        found.append("hardware 'host' is whatever computer reads the row; ship a spec (`archsim detect --id NAME --out "
                     "hwspecs/NAME.toml`) and name that")  # fmt: skip
    if cells.get("split", SPLITS[0]) not in SPLITS:
        found.append(f"split {cells['split']!r} is not {' or '.join(SPLITS)}")
    if family.name == "networks":
        found += [_unknown(what, cells[what]) for what in ("network", "stack")]
        known = {"task": TASKS, "metric": METRICS, "precision": PRECISIONS}
        if cells.get("threads") and network_rows.threads(cells) is None:
            found.append(f"threads {cells['threads']!r} is not a whole number from 1")
    found += [f"{what} {cells[what]!r} is not one of {', '.join(words)}"
              for what, words in known.items() if cells[what] not in words]  # fmt: skip
    return [said for said in found if said]


# what a column names -> how it is found, and all names
FOUND: dict[str, tuple[Callable[[str], object], Callable[[], Collection[str]]]] = {
    "hardware": (devices.find, devices.names), "stack": (stacks.find, stacks.names),
    "network": (lambda name: prepared(name, "inference"), networks),
}  # fmt: skip


@cache
def _unknown(what: str, word: str) -> str:
    """What is wrong with a name of this kind of thing; empty where there is one."""
    find, names = FOUND[what]
    try:
        find(word)
    except ArchsimError:
        near = nearest(word, tuple(names()))
        return f"unknown {what} {word!r}" + (f"; nearest: {', '.join(near)}" if near else "")
    return ""


def _duplicates(table: CsvTable) -> list[Problem]:
    """Rows that are equal to an earlier one in every column."""
    first: dict[tuple[str, ...], int] = {}
    return [(row.line, f"repeats line {at}") for row in table.rows
            if (at := first.setdefault(tuple(row.cells.values()), row.line)) != row.line]  # fmt: skip


def _contradictions(table: CsvTable) -> list[Problem]:
    """Rates that are not batch / latency, where the source gives both for one cell in one place."""
    rows = [(row.line, row.cells, float(row.cells["value"]), tuple([row.cells.get(name, "") for name in CELL]))
            for row in table.rows]  # fmt: skip
    latency = by_key((key, (line, value)) for line, cells, value, key in rows if cells["metric"] == "latency_s")
    problems = []
    for line, cells, rate, key in rows:
        seen, batch = latency.get(key, []), float(cells["batch"])
        if cells["metric"] == "throughput_per_s" and seen and all(abs(rate * s / batch - 1) > ROUNDING for _, s in seen):
            other, seconds = seen[0]
            wanted = f"batch / latency is {batch / seconds:g}"
            problems.append((line, f"throughput {rate:g} contradicts line {other}, where {wanted}"))
    return problems
