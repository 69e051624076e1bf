"""Checking a measurement file before it joins the corpus: every problem in one line, with the number of its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from archsim.base.errors import ArchsimError, nearest
from archsim.base.files import data_folder
from archsim.detect import catalog as devices
from archsim.evidence import network_rows
from archsim.evidence.case import METRICS, TEST, WATCHED
from archsim.evidence.family import FOLDER, Family, malformed, shipped_files
from archsim.evidence.readers import cases_of, family_of
from archsim.evidence.row import PRECISIONS
from archsim.evidence.sources import sources
from archsim.evidence.table import UNPREDICTED, CsvTable, Row, read_table, refuse
from archsim.stack import catalog as stacks
from archsim.trace.task import prepared
from archsim.trace.training import TASKS

SPLITS = ("calibrate", WATCHED, TEST)
CELL = (
    "source", "network", "hardware", "stack", "task", "batch", "precision", "threads", "devices", "clock_mhz", "source_ref"
)  # fmt: skip
ROUNDING = 0.06  # published rates are rounded to two digits; a rate further than this from batch / latency contradicts it


def check_file(path: str) -> str:
    """What to do with a file that has no problems, in words. Raises InputError with all problems of another."""
    table = read_table(path)
    family = family_of(table)
    problems = [f"line {line}: {said}" for line, found in malformed(table, family).items() for said in found]
    if not problems:
        problems = sorted(check(table, family), key=_line)
    refuse(path, problems)
    cases, skips = cases_of(table, family)
    target = Path(str(data_folder(FOLDER))) / Path(path).name
    said = [f"{path}: {len(table.rows)} rows of {family.name}, {len(cases)} values that can be predicted, no problems"]
    if skips:
        said.append(f"{len(skips)} rows are kept but not predicted: {', '.join(sorted({skip.reason for skip in skips}))}")
    taken = any(file.name == target.name for file in shipped_files())
    said.append(f"copy it to {target}" + ("; a file of that name is there already, so give it another" if taken else ""))
    missing = sorted({_source(row) for row in table.rows} - set(sources()))
    if missing:
        said.append(f"and describe in {target.parent / 'sources.toml'}: {', '.join(missing)}")
    return "\n".join(said)


def check(table: CsvTable, family: Family) -> list[str]:
    """Problems in the content of a file whose form is right: unknown words, repeated rows, rates that contradict latencies."""
    problems = [f"line {row.line}: {said}" for row in table.rows for said in _words(row, family)]
    problems += _duplicates(table)
    if family.name == "networks":
        problems += _contradictions(table)
    return problems


def _line(problem: str) -> int:
    return int(problem.removeprefix("line ").split(":")[0])


def _source(row: Row) -> str:
    return row.cells.get("source") or row.cells.get("source_id", "")


def _words(row: Row, family: Family) -> list[str]:
    cells = row.cells
    if cells.get(UNPREDICTED):  # with words that nothing here describes
        return []
    found = [_unknown(cells["hardware"], "hardware", devices.find, devices.names)]
    if cells["hardware"] == devices.HOST:
        found.append("hardware 'host' is whatever computer reads the row; ship a spec (`archsim detect --id NAME --out "
                     "hwspecs/NAME.toml`) and name that")  # fmt: skip
    if cells.get("split", SPLITS[0]) not in SPLITS:
        found.append(f"split {cells['split']!r} is not {' or '.join(SPLITS)}")
    written = cells.get("precision") or cells.get("dtype", "")
    if family.name == "networks":
        found.append(_unknown(cells["network"], "network", _network, _networks))
        found.append(_unknown(cells["stack"], "stack", stacks.find, stacks.names))
        found.append(_not_one_of(cells["task"], "task", TASKS))
        found.append(_not_one_of(cells["metric"], "metric", METRICS))
        if cells.get("threads") and network_rows.threads(cells) is None:
            found.append(f"threads {cells['threads']!r} is not a whole number from 1")
        if written not in PRECISIONS:
            found.append(_not_one_of(written, "precision", tuple(PRECISIONS)))
    return [said for said in found if said]


def _not_one_of(word: str, what: str, known: Sequence[str]) -> str:
    return "" if word in known else f"{what} {word!r} is not one of {', '.join(known)}"


def _unknown(word: str, what: str, find: Callable[[str], object], names: Callable[[], Sequence[str]]) -> str:
    return "" if _found(find, word) else _unknown_said(word, what, tuple(names()))


@cache
def _unknown_said(word: str, what: str, known: Sequence[str]) -> str:
    near = nearest(word, known)
    return f"unknown {what} {word!r}" + (f"; nearest: {', '.join(near)}" if near else "")


def _network(name: str) -> object:
    return prepared(name, "inference")


def _networks() -> Sequence[str]:
    from archsim.trace.file import names

    return names()


@cache
def _found(find: Callable[[str], object], name: str) -> bool:
    try:
        find(name)
    except ArchsimError:
        return False
    return True


def _duplicates(table: CsvTable) -> list[str]:
    """Rows that are equal to an earlier one in every column."""
    first: dict[tuple[str, ...], int] = {}
    problems = []
    for row in table.rows:
        content = tuple(row.cells.values())
        if content in first:
            problems.append(f"line {row.line}: repeats line {first[content]}")
        first.setdefault(content, row.line)
    return problems


def _contradictions(table: CsvTable) -> list[str]:
    """Rates that are not batch / latency, where the source gives both for one cell in one place."""
    latency: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    rates: list[tuple[tuple[str, ...], int, float, float]] = []
    for row in table.rows:
        key, value = tuple(row.cells.get(name, "") for name in CELL), float(row.cells["value"])
        if row.cells["metric"] == "latency_s":
            latency.setdefault(key, []).append((row.line, value))
        elif row.cells["metric"] == "throughput_per_s":
            rates.append((key, row.line, value, float(row.cells["batch"])))
    problems = []
    for key, line, rate, batch in rates:
        seen = latency.get(key, [])
        if seen and all(abs(rate * seconds / batch - 1) > ROUNDING for _, seconds in seen):
            other, seconds = seen[0]
            wanted = f"batch / latency is {batch / seconds:g}"
            problems.append(f"line {line}: throughput {rate:g} contradicts line {other}, where {wanted}")
    return problems
