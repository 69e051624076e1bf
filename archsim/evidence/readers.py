"""Measurement files as cases; the header says of which family a file is, and rows that cannot be predicted become skips."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from archsim.base.errors import InputError
from archsim.evidence import (
    readers_clock,
    readers_deepbench,
    readers_dvfs,
    readers_kernel,
    readers_layer,
    readers_microbench,
    readers_network,
    readers_power,
    readers_product,
    readers_serving,
    readers_tile,
    readers_units,
)
from archsim.evidence.case import DOUBTED, Case, Skip
from archsim.evidence.family import Family, malformed
from archsim.evidence.resolve import Refused
from archsim.evidence.shipped import shipped_files
from archsim.evidence.sources import protocol
from archsim.evidence.spelling import TEMPLATE_HINT, as_written
from archsim.evidence.table import UNPREDICTED, CsvTable, read_table

FAMILIES: tuple[Family, ...] = (
    readers_network.FAMILY, readers_kernel.POWER, readers_kernel.FAMILY, readers_deepbench.FAMILY, readers_layer.FAMILY,
    readers_power.FAMILY, readers_clock.FAMILY, readers_microbench.FAMILY,
    readers_tile.FAMILY, readers_product.FAMILY, readers_serving.FAMILY, readers_units.FAMILY,
    readers_dvfs.WORKLOADS, readers_dvfs.VOLTAGES,
)  # fmt: skip


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
    wrong, read_row = malformed(table, family), family.reading(table)
    for row in table.rows:
        try:
            if row.line in wrong:
                raise Refused("; ".join(wrong[row.line]))
            if row.cells.get(UNPREDICTED):
                raise Refused(row.cells[UNPREDICTED])
            found = read_row(row, table.name)
        except Refused as refused:
            skips.append(Skip(line=row.line, reason=str(refused), file=table.name, fields=row.cells))
            continue
        cases += [_standing(case) for case in found if isinstance(case, Case)]
        skips += [skip for skip in found if isinstance(skip, Skip)]
    return cases, skips


def _standing(case: Case) -> Case:
    """The case, doubted where its source contradicts the conditions that it states."""
    doubted = case.fields.get("source_ref", "").startswith(tuple(protocol(case.source).contradicted))
    return replace(case, split=DOUBTED) if doubted else case


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
