"""Measurements as rows of a measurement file, each written as soon as it is complete."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from archsim.base.writer import OutputFile
from archsim.device.spec import Spec
from archsim.evidence.network_rows import TOGETHER
from archsim.measure.timing import Reading
from archsim.trace.formats import Sizes

SOURCE, OPS_SOURCE = "measured_here", "measured_here_ops"
COLUMNS = (
    "source", "network", "hardware", "stack", "task", "batch", "seq_len", "bind", "precision", "threads", "devices", "metric",
    "value", "split",
    "op", "spec_hash", "software", "low", "high", "least", "timed_by", "rounds", "disturbed", "cpu_share", "cpu_s", "load",
    "covers",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCell:
    """What was run: network, batch, tokens of a sequence (None: the network's own), other sizes, threads and device."""

    network: str
    batch: int
    threads: int
    stack: str
    software: str
    precision: str = "fp32"
    task: str = "inference"
    spec: Spec
    shipped: bool
    split: str
    seq_len: int | None = None
    sizes: Sizes = ()


def rows_of(cell: TimedCell, reading: Reading) -> list[dict[str, str]]:
    """The rows of a whole network: its time, and its energy and mean power where there is a meter."""
    timed_by = "events" if cell.spec.kind == "gpu" else "processor" if reading.by_processor else "wall"
    spread = {"low": _figure(reading.low_s), "high": _figure(reading.high_s), "least": _figure(reading.least_s)}
    noted = {
        "timed_by": timed_by, "rounds": str(reading.rounds), "disturbed": str(reading.disturbed),
        "cpu_share": f"{reading.share:.3f}", "cpu_s": _figure(reading.cpu_s),
        "load": "" if reading.load is None else f"{reading.load:.2f}",
    }  # fmt: skip
    found = [_row(cell, SOURCE, "latency_s", reading.time_s) | spread | noted]
    for of in reading.metered:
        for metric, value in (("energy_j", of.energy_j), ("power_w", of.power_w)):
            found.append(_row(cell, SOURCE, metric, value) | noted | {"covers": of.covers})
    return found


def op_rows(cell: TimedCell, times: Mapping[tuple[str, ...], float]) -> list[dict[str, str]]:
    """One row for each group of fused ops; none for one that took less than the profiler's clock can tell."""
    return [_row(cell, OPS_SOURCE, "latency_s", seconds) | {"op": TOGETHER.join(group)}
            for group, seconds in times.items() if seconds > 0]  # fmt: skip


def _row(cell: TimedCell, source: str, metric: str, value: float) -> dict[str, str]:
    return {
        "source": source, "network": cell.network, "hardware": cell.spec.identity.id, "stack": cell.stack, "task": cell.task,
        "batch": str(cell.batch), "seq_len": "" if cell.seq_len is None else str(cell.seq_len),
        "bind": " ".join(f"{name}={size}" for name, size in cell.sizes),
        "precision": cell.precision, "threads": "" if cell.spec.kind == "gpu" else str(cell.threads),
        "devices": "1", "metric": metric, "value": _figure(value), "split": cell.split,
        "spec_hash": "" if cell.shipped else cell.spec.digest, "software": cell.software,
    }  # fmt: skip


def _figure(value: float) -> str:
    return f"{value:.6g}"


class Writer:
    """A CSV file that grows by whole rows, so that an interrupt keeps the rows so far; standard output without a file.

    The file is created, or replaced, with the first rows, and then again with all rows so far.
    """

    def __init__(self, file: OutputFile | None, output: TextIO, columns: Sequence[str] = COLUMNS) -> None:
        if file is not None:
            file.check()
        self._file, self._output, self._text, self._columns = file, output, io.StringIO(), columns
        self.rows = 0

    def write(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Write complete rows and sync them to the disk."""
        if not rows:
            return
        begin = self._text.tell()
        writer = csv.DictWriter(self._text, self._columns, restval="", lineterminator="\n")
        if begin == 0:
            writer.writeheader()
        writer.writerows(rows)
        if self._file is not None:
            self._file.write(self._text.getvalue())
        else:
            self._output.write(self._text.getvalue()[begin:])
            self._output.flush()
        self.rows += len(rows)
