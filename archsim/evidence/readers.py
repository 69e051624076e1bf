"""Measurement files as cases; the header says of which family a file is, and rows that cannot be predicted become skips."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from archsim.base.errors import InputError
from archsim.evidence import layer_rows, network_rows, op_rows, unit_rows
from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family, malformed
from archsim.evidence.resolve import Refused
from archsim.evidence.shipped import shipped_files
from archsim.evidence.spelling import TEMPLATE_HINT, as_written
from archsim.evidence.table import CsvTable, Row, read_table, table_name

FAMILIES: tuple[Family, ...] = (*network_rows.FAMILIES, *op_rows.FAMILIES, *layer_rows.FAMILIES, *unit_rows.FAMILIES)
Lines = tuple[tuple[int, str], ...]  # (number in the file, text)


def read_files(
    files: Iterable[str | Path | Traversable] = (), specs: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[Case], list[Skip]]:
    """The cases and skips of several files, of the shipped corpus if none are named.

    `specs` are paths of spec files by the id that rows name them with; they go before shipped devices.
    Raises MissingFile, and InputError for a file whose form is broken; a row whose words are not known is a skip.
    """
    cases: list[Case] = []
    skips: list[Skip] = []
    for place in list(files) or shipped_files():
        found, left = read(place, specs)
        cases += found
        skips += left
    return cases, skips


def data_hash(files: Iterable[str | Path | Traversable] = ()) -> str:
    """Sixteen hexadecimal digits that stand for the names and contents of the files, or of the shipped corpus."""
    digest = hashlib.sha256()
    for place in list(files) or shipped_files():
        file = Path(place) if isinstance(place, str) else place
        digest.update(file.name.encode("utf-8", "surrogatepass") + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def read(
    place: str | Path | Traversable, specs: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[Case], list[Skip]]:
    """The cases and skips of one file."""
    table = as_written(read_table(place), FAMILIES)
    return cases_of(_resolved(table, specs) if specs else table, family_of(table))


def _resolved(table: CsvTable, specs: Mapping[str, str]) -> CsvTable:
    """The table with the paths of specs in place of their ids."""
    if "hardware" not in table.header:
        return table
    rows = [replace(row, cells={**row.cells, "hardware": specs.get(row.cells["hardware"], row.cells["hardware"])})
            for row in table.rows]  # fmt: skip
    return replace(table, rows=tuple(rows))


def cases_of(table: CsvTable, family: Family) -> tuple[list[Case], list[Skip]]:
    """The cases and skips of a table; a row with a cell whose form is wrong is a skip."""
    cases: list[Case] = []
    skips: list[Skip] = []
    wrong, beside = malformed(table, family), family.beside(table)
    for row in table.rows:
        try:
            if row.line in wrong:
                raise Refused("; ".join(wrong[row.line]))
            found = list(family.read(family.row(row, table.name, beside)))
        except Refused as refused:
            skips.append(Skip(line=row.line, reason=str(refused), file=table.name, fields=row.cells))
            continue
        cases += [case for case in found if isinstance(case, Case)]
        skips += [skip for skip in found if isinstance(skip, Skip)]
    return cases, skips


def family_of(table: CsvTable) -> Family:
    """The family whose columns the header has; InputError names what the nearest one still lacks."""
    header = set(table.header)
    for family in FAMILIES:
        if header.issuperset(family.columns):
            return family
    nearest = max(FAMILIES, key=lambda family: len(header & set(family.columns)) / len(family.columns))
    if not header & set(nearest.columns):
        raise InputError(table.path, f"line 1: no measurement file; {TEMPLATE_HINT}")
    missing = ", ".join(name for name in nearest.columns if name not in header)
    raise InputError(table.path, f"line 1: a file of {nearest.name}, the nearest kind, has also the columns {missing}; "
                     f"{TEMPLATE_HINT}")  # fmt: skip


def network_cases(network: str, hardware: str, wanted: Callable[[Mapping[str, str]], bool]) -> Iterator[Case]:
    """The cases of a whole network on a device whose columns are `wanted`; rows that cannot be predicted are left out.

    Lines are searched as text first: an estimate must not pay for reading rows that it will not show.
    """
    for name, header, lines in _network_files():
        near = [(number, line) for number, line in lines if network in line and hardware in line]
        for (number, _), cells in zip(near, csv.DictReader([header, *(line for _, line in near)]), strict=True):
            if (cells["network"], cells["hardware"]) != (network, hardware) or cells.get("op") or not wanted(cells):
                continue
            with suppress(Refused):
                yield from network_rows.read_network(network_rows.NETWORKS.row(Row(number, cells), name))


@cache
def _network_files() -> tuple[tuple[str, str, Lines], ...]:
    """Name, header and lines of every file of whole networks, told by its header; other files are read no further than that."""
    found = []
    for file in shipped_files():
        if file.name.endswith(".csv"):
            with file.open("r", encoding="utf-8-sig") as stream:
                header = stream.readline()
                if set(network_rows.NETWORKS.columns) <= set(header.strip().split(",")):
                    found.append((table_name(file.name), header, tuple(enumerate(stream, start=2))))
    return tuple(found)
