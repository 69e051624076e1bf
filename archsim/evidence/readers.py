"""Measurement files as cases; the header says of which family a file is, and rows that cannot be predicted become skips."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from archsim.base.errors import InputError
from archsim.evidence import network_rows, op_rows, unit_rows
from archsim.evidence.case import TEST, WATCHED, Case, Skip
from archsim.evidence.family import Family, families, malformed, shipped_files
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
# column -> what people call it; spaces, units in brackets and case do not matter
COLUMNS = {
    "hardware": ("gpu", "cpu", "device", "hw", "card", "accelerator"), "network": ("model", "net"),
    "stack": ("framework", "software", "library", "backend"), "precision": ("dtype", "data_type"),
    "batch": ("batch_size", "bs"), "seq_len": ("sequence_length", "tokens"), "source": ("source_id",),
}  # fmt: skip
RATES = ("throughput_per_s", "throughput", "throughput_img_s", "images_per_s", "img_s", "samples_per_s", "samples_s", "fps")
# column of values -> its metric, and how much of the metric's unit one is
VALUES: dict[str, tuple[str, float]] = {
    **{f"{word}_{unit}": ("latency_s", scale) for word in ("latency", "time")
       for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))},
    **dict.fromkeys(RATES, ("throughput_per_s", 1.0)),
    "power_w": ("power_w", 1.0), "energy_j": ("energy_j", 1.0), "energy_mj": ("energy_j", 1e-3),
}  # fmt: skip
NEEDED = ("hardware", "network")  # by which a table of whole networks is told
USUAL = {"task": "inference", "precision": "fp32", "stack": ""}  # of a file that has no such column; no stack: the device's own

TEMPLATE_HINT = "`archsim validate --template` prints a file to start from"
TEMPLATE = f"""\
# One measured value a row. Lines that begin with "# " are remarks. Optional columns: threads, seq_len, clock_mhz, source_ref.
# metric: latency_s (of a batch), throughput_per_s, power_w or energy_j (of a batch). stack: empty for the device's usual one.
# A table such as `gpu,model,batch,precision,latency_ms` is read, too: {", ".join(VALUES)}.
source,network,hardware,stack,task,batch,precision,metric,value
mine,resnet_50,gtx_1080,torch7-cudnn5.1,inference,16,fp32,latency_s,0.043
mine,resnet_50,gtx_1080,torch7-cudnn5.1,inference,16,fp32,power_w,110
"""


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
    table = as_written(read_table(place))
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
    wrong, (reader, key) = malformed(table, family), READERS[family.name]
    alike: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    for row in table.rows if key else ():
        alike[tuple([row.cells.get(name, "") for name in key])].append(row.cells)
    for row in table.rows:
        try:
            if row.line in wrong:
                raise Refused("; ".join(wrong[row.line]))
            beside = alike[tuple([row.cells.get(name, "") for name in key])]
            found = list(reader(row_of(family, row, table.name, beside)))
        except Refused as refused:
            skips.append(Skip(line=row.line, reason=str(refused), file=table.name, fields=row.cells))
            continue
        cases += [case for case in found if isinstance(case, Case)]
        skips += [skip for skip in found if isinstance(skip, Skip)]
    return cases, skips


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
    known = {other: name for name, others in COLUMNS.items() for other in others}
    spelled = {name: known.get(plain, plain) for name in table.header for plain in [_plain(name)]}
    values = {name: VALUES[column] for name, column in spelled.items() if column in VALUES}
    long = {"metric", "value"} <= {*spelled.values()}
    if not {*NEEDED} <= {*spelled.values()} or not (values or long) or len({*spelled.values()}) < len(spelled):
        return table
    usual = USUAL | {"source": table.name}
    rows = []
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
