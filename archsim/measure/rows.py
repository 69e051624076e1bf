"""Measurements as rows of a measurement file, each written as soon as it is complete."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from archsim.base.errors import InputError
from archsim.device.spec import Spec
from archsim.evidence.readers_network import TOGETHER
from archsim.measure.timing import Reading

SOURCE, OPS_SOURCE = "measured_here", "measured_here_ops"
COLUMNS = (
    "source", "network", "hardware", "stack", "task", "batch", "precision", "threads", "devices", "metric", "value", "split",
    "op", "spec_hash", "software", "low", "high", "least", "timed_by", "rounds", "disturbed", "cpu_share", "cpu_s", "load",
    "covers",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What was run: network, batch, threads and device."""

    network: str
    batch: int
    threads: int
    stack: str
    software: str
    spec: Spec
    shipped: bool
    split: str


def rows_of(cell: Cell, reading: Reading, covers: str = "") -> list[dict[str, str]]:
    """The rows of a whole network: its time, and its energy where there is a meter."""
    timed_by = "events" if cell.spec.kind == "gpu" else "processor" if reading.by_processor else "wall"
    spread = {"low": _figure(reading.low_s), "high": _figure(reading.high_s), "least": _figure(reading.least_s)}
    noted = {
        "timed_by": timed_by, "rounds": str(reading.rounds), "disturbed": str(reading.disturbed),
        "cpu_share": f"{reading.share:.3f}", "cpu_s": _figure(reading.cpu_s),
        "load": "" if reading.load is None else f"{reading.load:.2f}",
    }  # fmt: skip
    found = [_row(cell, SOURCE, "latency_s", reading.time_s) | spread | noted]
    if reading.energy_j:
        found.append(_row(cell, SOURCE, "energy_j", reading.energy_j) | noted | {"covers": covers})
    return found


def op_rows(cell: Cell, times: Mapping[tuple[str, ...], float]) -> list[dict[str, str]]:
    """One row for each group of fused ops."""
    return [_row(cell, OPS_SOURCE, "latency_s", seconds) | {"op": TOGETHER.join(group)} for group, seconds in times.items()]


def _row(cell: Cell, source: str, metric: str, value: float) -> dict[str, str]:
    return {
        "source": source, "network": cell.network, "hardware": cell.spec.identity.id, "stack": cell.stack, "task": "inference",
        "batch": str(cell.batch), "precision": "fp32", "threads": "" if cell.spec.kind == "gpu" else str(cell.threads),
        "devices": "1", "metric": metric, "value": _figure(value), "split": cell.split,
        "spec_hash": "" if cell.shipped else cell.spec.digest, "software": cell.software,
    }  # fmt: skip


def _figure(value: float) -> str:
    return f"{value:.6g}"


class Writer:
    """A CSV file that grows row by row, so that an interrupt keeps the rows so far; standard output without a path.

    The file is created, or replaced, with the first row.
    """

    def __init__(self, path: str | None, output: TextIO) -> None:
        if path is not None:
            _check(path)
        self._path, self._stream, self._begun = path, output, False
        self._files = ExitStack()
        self.rows = 0

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *failure: object) -> None:
        self._files.close()

    def write(self, rows: list[dict[str, str]]) -> None:
        """Write complete rows and sync them to the disk."""
        if not rows:
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
        if not self._begun:
            self._begin()
            writer.writeheader()
        writer.writerows(rows)
        self._stream.write(text.getvalue())
        self._stream.flush()
        if self._path is not None:
            os.fsync(self._stream.fileno())
        self.rows += len(rows)

    def _begin(self) -> None:
        if self._path is not None:
            try:
                self._stream = self._files.enter_context(Path(self._path).open("w", encoding="utf-8", newline=""))  # noqa: SIM115
            except OSError as error:
                raise InputError(self._path, f"cannot be written ({error.strerror or error})") from None
        self._begun = True


def _check(path: str) -> None:
    place = Path(path)
    if place.is_dir():
        raise InputError(path, "is a folder; name a file")
    if not place.parent.is_dir():
        raise InputError(path, f"cannot be written: no folder {place.parent}")
