"""Rows of a GPU by its core clock: the power of a workload, core voltages, and the power of a GPU that idles with clocks up."""

from __future__ import annotations

import math
from collections.abc import Mapping

from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family, Reader
from archsim.evidence.kernel_ops import case_of
from archsim.evidence.pattern import ClockPattern, UnitPattern, VoltagePattern
from archsim.evidence.readers_units import usual_memory
from archsim.evidence.resolve import Refused, gpu_spec, unmodified
from archsim.evidence.table import CsvTable, Row

VOLTAGE, IDLE = "core_voltage_v", "idle_power_w"


def curves(table: CsvTable, *names: str) -> dict[tuple[str, ...], dict[float, Mapping[str, str]]]:
    """The rows of a table by the values of some columns, and then by core clock [Hz]."""
    found: dict[tuple[str, ...], dict[float, Mapping[str, str]]] = {}
    for row in table.rows:
        if row.cells["core_mhz"]:
            found.setdefault(tuple(row.cells[name] for name in names), {})[_clock(row)] = row.cells
    return found


def workload_reader(table: CsvTable) -> Reader:
    """The reader of powers of workloads, each compared with that at the highest clock of its curve."""
    known = curves(table, "hardware", "workload")

    def read(row: Row, file: str) -> list[Case | Skip]:
        cells, clock = row.cells, _clock(row)
        curve = known[cells["hardware"], cells["workload"]]
        top, least = max(curve), min(curve)
        if clock == top:
            raise Refused("the run to which those at a lower clock are compared")
        rates = {at: float(of["relative_performance"]) / float(curve[top]["relative_performance"]) for at, of in curve.items()}
        free = 1.0 - math.log(rates[least]) / math.log(least / top)
        pattern = ClockPattern(top=top, power=float(curve[top]["power_w"]), rate=rates[clock], free=min(1.0, max(0.0, free)))
        return [case_of(row, file, unmodified(gpu_spec(cells["hardware"])), cells["workload"], "power_w",
                        float(cells["power_w"]), clock=clock, pattern=pattern)]  # fmt: skip

    return read


def voltage_reader(table: CsvTable) -> Reader:
    """The reader of voltages and idle powers that a driver told; those that somebody fitted to powers are no measurements."""
    known = curves(table, "hardware", "quantity", "kind")

    def read(row: Row, file: str) -> list[Case | Skip]:
        cells, spec = row.cells, gpu_spec(row.cells["hardware"])
        if cells["kind"] != "read":
            raise Refused("fitted to powers, not read")
        value = float(cells["value"])
        if cells["quantity"] == IDLE:
            memory = float(cells["mem_mhz"]) * 1e6 / usual_memory(spec) if cells["mem_mhz"] else 1.0
            pattern = UnitPattern(shares={}, core=_clock(row), memory=memory, memory_now=memory)
            return [case_of(row, file, unmodified(spec), "idle", "power_w", value, clock=_clock(row), pattern=pattern)]
        if cells["quantity"] != VOLTAGE:
            raise Refused(f"quantity {cells['quantity']!r} is not predicted")
        curve = known[cells["hardware"], cells["quantity"], cells["kind"]]
        top = max(curve)
        if _clock(row) == top:
            raise Refused("the voltage to which those at lower clocks are compared")
        volts = VoltagePattern(top=top, volts=float(curve[top]["value"]))
        return [case_of(row, file, unmodified(spec), "core voltage", "voltage_v", value, clock=_clock(row),
                        pattern=volts)]  # fmt: skip

    return read


def _clock(row: Row) -> float:
    """The core clock of a row [Hz]."""
    if not row.cells["core_mhz"]:
        raise Refused("no core clock")
    return float(row.cells["core_mhz"]) * 1e6


WORKLOADS = Family(
    name="power by clock",
    columns=("source", "hardware", "workload", "core_mhz", "power_w", "relative_performance"),
    words=("source", "hardware", "workload", "core_mhz", "relative_performance"),
    numbers=("core_mhz", "power_w", "relative_performance"),
    measured=("power_w",),
    reader=workload_reader,
)
VOLTAGES = Family(
    name="voltages",
    columns=("source", "hardware", "quantity", "core_mhz", "mem_mhz", "value", "kind"),
    words=("source", "hardware", "quantity", "kind"),
    numbers=("core_mhz", "mem_mhz", "value"),
    measured=("value",),
    reader=voltage_reader,
)
