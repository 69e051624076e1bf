"""The file of a sweep as CSV or Parquet, with its provenance."""

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
from archsim.base.writer import OutputFile, json_with
from archsim.render.text import csv_lines
from archsim.study.store import Store

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
