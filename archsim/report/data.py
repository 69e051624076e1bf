"""An estimate as JSON and CSV, in the documented, versioned form."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from archsim.cost.energy import COMPONENTS
from archsim.estimation.result import SCHEMA, Estimate

SCALARS = (
    "network", "hardware", "hardware_name", "changes", "stack", "task", "optimiser", "batch", "seq_len", "precision",
    "threads", "devices", "fidelity", "traffic", "graph", "cold", "streams", "host_cpu",
    "clock_hz", "memory_clock_hz", "latency_s", "latency_interval_s", "interval_level", "interval_class", "throughput_per_s",
    "power_w", "power_interval_w", "power_peak_w", "power_sensed_peak_w", "power_window_s",
    "energy_j", "energy_interval_j", "energy_budget_j",
    "throughput_per_w", "power_limit_w", "power_boundary", "memory_bytes", "fits", "max_batch", "flop", "dram_bytes",
    "limited_by", "device_s", "host_wait_s", "host_floor_s",
)  # fmt: skip
OP_COLUMNS = ("name", "kind", "phase", "time_s", "wait_s", "bound", "flop", "dram_bytes", "energy_j")


def record(estimate: Estimate) -> dict[str, Any]:
    """The estimate as plain values, keys in the documented order."""
    scalars = {name: getattr(estimate, name) for name in SCALARS}
    scalars = {name: list(value) if isinstance(value, tuple) else value for name, value in scalars.items()}
    scalars["changes"] = dict(estimate.changes)
    return {
        "schema": SCHEMA,
        **scalars,
        "held_out": asdict(estimate.held_out),
        "memory": asdict(estimate.memory),
        "relief_s": dict(estimate.relief_s),
        "breakdown_s": dict(estimate.breakdown_s),
        "energy_breakdown_j": dict(estimate.energy_breakdown_j),
        "wall": None if estimate.wall is None else asdict(estimate.wall),
        "power_over_time": asdict(estimate.power_over_time),
        "ops": [asdict(op) for op in estimate.ops],
        "references": [asdict(reference) for reference in estimate.references],
        "assumptions": list(estimate.assumptions),
        "assumed_values": list(estimate.assumed_values),
        "warnings": list(estimate.warnings),
        "provenance": dict(estimate.provenance),
    }


def csv_text(*estimates: Estimate) -> str:
    """One row per op, with its energy by component."""
    parts = tuple(COMPONENTS)  # of the device, also where power and energy of the estimate are those at the wall
    of_all = ("network", "hardware", "hardware_name", "batch")
    rows = [[*(getattr(e, name) for name in of_all), *(getattr(op, name) for name in OP_COLUMNS),
             *(op.energy_breakdown_j[part] for part in parts)] for e in estimates for op in e.ops]  # fmt: skip
    return rows_as_csv((*of_all, *OP_COLUMNS, *(f"energy_breakdown_j.{part}" for part in parts)), rows)


def rows_as_csv(head: tuple[str, ...], rows: Iterable[Sequence[Any]]) -> str:
    """CSV of a head and rows."""
    return csv_lines((head, *rows))


def records_csv(records: Iterable[Mapping[str, Any]], every: Mapping[str, Any] | None = None) -> str:
    """CSV of the numbers and texts of records, one row each, behind those that `every` row has; "" without records.

    Tables in a record are columns NAME.KEY, lists are left out.
    """
    rows = [_flat({**(every or {}), **record}) for record in records]
    head = tuple(dict.fromkeys(name for row in rows for name in row))
    return rows_as_csv(head, [[row.get(name) for name in head] for row in rows]) if rows else ""


def _flat(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif not isinstance(value, list | tuple):
            found[f"{before}{name}"] = value
    return found


def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    r"""CSV with `\n` line ends; text that a spreadsheet would run as a formula is escaped."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return buffer.getvalue()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
