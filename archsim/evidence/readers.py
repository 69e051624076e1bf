"""Measurement files as cases; the header says of which family a file is, and rows that cannot be predicted become skips."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from archsim.base.errors import InputError
from archsim.base.record import by_key
from archsim.evidence import network_rows, op_rows, unit_rows
from archsim.evidence.case import TEST, WATCHED, Case, Skip
from archsim.evidence.family import Family, families, family_called, malformed, shipped_files
from archsim.evidence.row import PublishedRow, Refused, row_of
from archsim.evidence.table import CsvTable, Row, read_table

Reader = Callable[[PublishedRow], Iterable[Case | Skip]]
# family -> the cases of a row of it, and the columns in which rows that it is compared with agree
READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "networks": (network_rows.read_network, ()), "serving": (network_rows.read_served, ()),
    "power limits": (network_rows.read_epoch, ("hardware", "model", "batch")),
    "kernels with power": (op_rows.read_kernel, ()), "kernels": (op_rows.read_kernel, ()), "clocks": (op_rows.read_clock, ()),
    "DeepBench": (op_rows.read_deepbench, ()), "layers": (op_rows.read_layer, ()),
    "products and convolutions": (op_rows.read_product, ()), "products by tile and stages": (unit_rows.read_tile, ()),
    "microbenchmarks": (unit_rows.read_access, ("source_ref",)), "power by unit": (unit_rows.read_units, ()),
    "power by clock": (unit_rows.read_workload, ("hardware", "workload")),
    "voltages": (unit_rows.read_voltage, ("hardware", "quantity", "kind")),
}  # fmt: skip
OTHERS, NEEDED = "networks", {"hardware", "network"}  # the kind of other people's tables, and by which of its columns one is told
TEMPLATE_HINT = "`archsim validate --template` prints a file to start from"


def template() -> str:
    """A file of measurements to start from, with what its columns are."""
    family = family_called(OTHERS)
    return family.template.format(values=", ".join(name for columns in family.values.values() for name in columns))


def read_files(
    files: Iterable[str | Path | Traversable] = (), specs: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[Case], list[Skip]]:
    """The cases and skips of several files, of the shipped corpus if none are named.

    `specs` are paths of spec files by the id that rows name them with; they go before shipped devices.
    Raises MissingFile, and InputError for a file whose form is broken; a row whose words are not known is a skip.
    """
    found = [read(place, specs) for place in list(files) or shipped_files()]
    return [case for cases, _ in found for case in cases], [skip for _, skips in found for skip in skips]


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
    table = as_written(read_table(place))
    if specs and "hardware" in table.header:
        rows = [Row(row.line, {**row.cells, "hardware": specs.get(row.cells["hardware"], row.cells["hardware"])})
                for row in table.rows]  # fmt: skip
        table = replace(table, rows=tuple(rows))
    return cases_of(table, family_of(table))


def cases_of(table: CsvTable, family: Family) -> tuple[list[Case], list[Skip]]:
    """The cases and skips of a table; a row with a cell whose form is wrong is a skip."""
    found: list[Case | Skip] = []
    wrong, (reader, key) = malformed(table, family), READERS[family.name]
    alike = by_key((tuple([row.cells.get(name, "") for name in key]), row.cells) for row in table.rows if key)
    for row in table.rows:
        try:
            if row.line in wrong:
                raise Refused("; ".join(wrong[row.line]))
            beside = alike.get(tuple([row.cells.get(name, "") for name in key]), ())
            found += [*reader(row_of(family, row, table.name, beside))]
        except Refused as refused:
            found.append(Skip(line=row.line, reason=str(refused), file=table.name, fields=row.cells))
    return [case for case in found if isinstance(case, Case)], [skip for skip in found if isinstance(skip, Skip)]


def family_of(table: CsvTable) -> Family:
    """The family whose columns the header has; InputError names what the nearest one still lacks."""
    header = set(table.header)
    for family in families():
        if header.issuperset(family.columns):
            return family
    nearest = max(families(), key=lambda family: len(header & set(family.columns)) / len(family.columns))
    if not header & set(nearest.columns):
        raise InputError(table.path, f"line 1: no measurement file; {TEMPLATE_HINT}")
    missing = ", ".join(name for name in nearest.columns if name not in header)
    raise InputError(table.path, f"line 1: a file of {nearest.name}, the nearest kind, has also the columns {missing}; "
                     f"{TEMPLATE_HINT}")  # fmt: skip


def as_written(table: CsvTable) -> CsvTable:
    """The table with the columns of whole networks, where its header has them in other words; any other table as it is."""
    rows = [Row(row.line, {**row.cells, "split": WATCHED}) if row.cells.get("split") == TEST else row for row in table.rows]
    table = replace(table, rows=tuple(rows))
    if any(set(table.header).issuperset(family.columns) for family in families()):
        return table
    family = family_called(OTHERS)
    known = {other: name for name, others in family.other.items() for other in others}
    spelled = {name: known.get(plain, plain) for name in table.header for plain in [_plain(name)]}
    scales = {column: (metric, scale) for metric, columns in family.values.items() for column, scale in columns.items()}
    values = {name: scales[column] for name, column in spelled.items() if column in scales}
    found, long = {*spelled.values()}, {"metric", "value"} <= {*spelled.values()}
    if not found >= NEEDED or not (values or long) or len(found) < len(spelled):
        return table
    rows, usual = [], family.usual | {"source": table.name}
    for row in table.rows:
        cells = usual | {spelled[name]: text for name, text in row.cells.items() if name not in values}
        given = {} if long else {name: row.cells[name] for name in values if row.cells[name].strip()}
        rows += [Row(row.line, cells | _measured(text, *values[name])) for name, text in given.items()]
        rows += [] if given else [Row(row.line, {"metric": "", "value": ""} | cells)]
    return replace(table, header=tuple(rows[0].cells), rows=tuple(rows))


def _plain(name: str) -> str:
    """`Latency (ms)` as `latency_ms`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _measured(text: str, metric: str, scale: float) -> dict[str, str]:
    """The cells of a value; what is no number stays as it is, for the check of its form."""
    try:
        return {"metric": metric, "value": text if scale == 1.0 else repr(float(text) * scale)}
    except ValueError:
        return {"metric": metric, "value": text}
