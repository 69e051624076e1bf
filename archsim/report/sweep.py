"""A sweep as CSV or Parquet with its provenance, and its summary as text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from archsim.base.errors import ArchsimError, InputError, MissingExtra
from archsim.base.files import read_text
from archsim.base.units import show
from archsim.base.writer import OutputFile, json_with
from archsim.report.data import csv_lines
from archsim.report.text import clean, table
from archsim.study.knob import SIZES, WORDS
from archsim.study.store import Store

NETWORKS = 4  # whose best points the summary lists
ORDERS = (
    ("fastest", "latency_s"), ("most per second", "throughput_per_s DESC"), ("least energy", "energy_j"),
    ("most per watt", "throughput_per_w DESC"),
)  # fmt: skip
BATCH = 1 << 16  # rows in memory at once
LARGEST = 1 << 24  # bytes of what a CSV says of itself in the file beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format that a sweep can be written in."""

    write: Callable[[Store, IO[bytes]], None]
    extra: str = ""
    module: str = ""

    def check(self, file: OutputFile) -> None:
        """Raises MissingExtra where its package is absent, InputError where the file is there already."""
        import importlib.util

        if self.module and importlib.util.find_spec(self.module) is None:
            raise MissingExtra(f"a {Path(file.path).suffix} file", self.extra)
        if Path(file.path).exists() and not file.force:
            raise InputError(file.path, "is there already; name another file, or add --force")


def _csv(store: Store, stream: IO[bytes]) -> None:
    stream.write(csv_lines([tuple(store.columns)]).encode())
    rows = store.read(rest="ORDER BY point")
    while block := list(islice(rows, BATCH)):
        stream.write(csv_lines(block).encode())


def _parquet(store: Store, stream: IO[bytes]) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    types = {name: arrow.string() if unit == "text" else arrow.int64() if name in store.whole else arrow.float64()
             for name, unit in store.columns.items()}  # fmt: skip
    about = {"archsim": json.dumps(store.about())}
    schema = arrow.schema(list(types.items()), metadata=about)
    rows = store.read(rest="ORDER BY point")
    with parquet.ParquetWriter(stream, schema) as writer:
        while block := list(islice(rows, BATCH)):
            columns = zip(zip(*block, strict=True), types.values(), strict=True)
            arrays = [arrow.array(column, type=kind) for column, kind in columns]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


FORMATS = {".csv": Format(write=_csv), ".parquet": Format(write=_parquet, extra="data", module="pyarrow")}


def beside(file: OutputFile) -> OutputFile:
    """The file of provenance beside a CSV."""
    return replace(file, path=f"{file.path}.json", kind=json_with("archsim-sweep/"))


def finished(file: OutputFile, about: Mapping[str, Any]) -> bool:
    """Whether a file is that of a sweep which is complete, as it was written."""
    wanted = json.loads(json.dumps(about))
    try:
        if file.path.endswith(".parquet"):
            import pyarrow.parquet as parquet

            return bool(json.loads(parquet.read_schema(file.path).metadata[b"archsim"]) == wanted)
        return bool(json.loads(read_text(beside(file).path, LARGEST)) == {**wanted, "sha256": _digest(file)})
    except (ArchsimError, ImportError, KeyError, OSError, TypeError, ValueError):
        return False


def _digest(file: OutputFile) -> str:
    with open(file.path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def export(store: Store, file: OutputFile) -> None:
    """Write a finished sweep in the format of the ending of its path; a CSV has its provenance beside it, in `PATH.json`.

    Raises InputError where it cannot be written; then no file is left.
    """
    suffix = Path(file.path).suffix
    with file.stream() as stream:
        FORMATS[suffix].write(store, stream)
    if suffix == ".csv":
        beside(file).write(json.dumps({**store.about(), "sha256": _digest(file)}, indent=2) + "\n")


def summary(store: Store) -> str:
    """The number of points, of impossible ones, and the best points."""
    knobs = [name for name in store.columns if name in store.space.knobs]
    wanted = ("network", "hardware", *knobs, "latency_s", "throughput_per_s", "power_w", "energy_j")
    chosen = ", ".join(f'"{name}"' for name in wanted)
    rows = []
    networks = [name for (name,) in store.read("DISTINCT network")][:NETWORKS]
    for network in networks:
        name = network.replace("'", "''")
        for title, order in ORDERS:
            for row in store.read(chosen, f"WHERE fits = 1 AND network = '{name}' ORDER BY {order}, point LIMIT 1"):
                rows.append((title, *_shown(row, knobs, store)))
    ((wrong,),) = store.read("count(*)", "WHERE problem IS NOT NULL")
    ((beyond,),) = store.read("count(*)", "WHERE fits = 0")
    text = f"{store.count:,} points" + (f", {wrong:,} of them impossible or not modelled" if wrong else "")
    text += f", {beyond:,} of them beyond the memory" if beyond else ""
    for problem, times in store.read("problem, count(*)", "WHERE problem IS NOT NULL GROUP BY problem ORDER BY 2 DESC LIMIT 3"):
        text += f"\n  {times:,} x {clean(problem)}"
    head = ("best", "network", "device", *knobs, "latency", "per second", "power", "energy")
    return f"{text}\n\n{table(head, rows, left=3)}" if rows else text


def _shown(row: tuple[Any, ...], knobs: list[str], store: Store) -> tuple[str, ...]:
    network, hardware, *rest = row
    values, (latency, rate, power, energy) = rest[: len(knobs)], rest[len(knobs) :]
    shown = [clean(str(value)) if knob in WORDS else f"{value:g}" if knob in SIZES else show(value, store.columns[knob])
             for knob, value in zip(knobs, values, strict=True)]  # fmt: skip
    return (clean(network), clean(hardware), *shown, show(latency, "s"), f"{rate:,.4g}", show(power, "W"), show(energy, "J"))
