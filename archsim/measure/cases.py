"""Rows of a measurement file, measured here: each names what is to run, and gets its value.

A file of networks (`network, stack, task, batch, precision, metric, value`) or of single kernels (`op, m, n, k, dtype, software,
latency_us`); what stands in the column of values is replaced. So the rows of other people can be measured again, and rows can be
predicted, and the predictions kept, before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from archsim.base.errors import ArchsimError, InputError, Unsupported
from archsim.base.record import by_key
from archsim.evidence.family import family_called
from archsim.evidence.op_rows import kernel_op
from archsim.evidence.row import Refused, parameters, row_of
from archsim.evidence.table import CsvTable, Row
from archsim.measure.run import bound, refusal
from archsim.measure.timing import EnergyMeter, Reading, Session, measure, meter_for
from archsim.measure.torch_kernels import KernelBench, KernelReading
from archsim.measure.torch_session import mode_of, runtime, session_class
from archsim.stack import catalog as stacks
from archsim.trace.trace import BoundOp

Tell = Callable[[str], None]
METERED = ("energy_j", "power_w")
NETWORK_COLUMNS = ("network", "stack", "task", "batch", "precision", "metric")
KERNEL_COLUMNS = ("op", "sub_op", "dtype", "software", "hardware")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One row of the file with its value, or, refused, why it has none."""

    label: str
    cells: Mapping[str, str]
    said: str
    refused: bool = False


def added(table: CsvTable) -> tuple[str, ...]:
    """The columns that stand beside the value: its quartiles, and what ran."""
    return ("low", "high", "rounds", "software") if "network" in table.header else ("latency_us", "low_us", "high_us", "kernel")


def measured_rows(table: CsvTable, *, rounds: int, seconds: float, tell: Tell = lambda text: None) -> Iterator[MeasuredRow]:
    """Measure row by row; rows of one run that differ in their metric share it. InputError for a file of another form."""
    header = set(table.header)
    if header.issuperset(NETWORK_COLUMNS):
        return _networks(table, rounds, seconds, tell)
    if header.issuperset(KERNEL_COLUMNS):
        return _kernels(table, tell)
    missing = sorted(set(NETWORK_COLUMNS) - header)
    raise InputError(table.path, f"is neither a file of networks (it has no {', '.join(missing)}) nor one of kernels (no "
                                 f"{', '.join(sorted(set(KERNEL_COLUMNS) - header))})")  # fmt: skip


def _networks(table: CsvTable, rounds: int, seconds: float, tell: Tell) -> Iterator[MeasuredRow]:
    settings = (*NETWORK_COLUMNS[:-1], "seq_len", "threads")
    runs = by_key((tuple(row.cells.get(name, "") for name in settings), row) for row in table.rows)
    for (net, stack, task, batch, precision, seq_len, threads), rows in runs.items():
        label = f"{net}, {stack}, {task}, batch {batch}, {precision}"
        tell(label)
        try:
            found = stacks.find(stack)
            trace = bound(found.variants.get(net, net), int(batch), int(seq_len) if seq_len else None)
            device = "cpu" if found.kind == "cpu" else "cuda"
            session = session_class(device, stack, precision, task)(trace, int(threads or 1))
            reading = measure(session, rounds, seconds, _meter(session, rows))
        except (ArchsimError, MemoryError, RuntimeError) as error:  # runtimes raise the last
            yield from (_refused(row, label, error) for row in rows)
            continue
        yield from (_with_value(row, label, reading, session) for row in rows)
        del session


def _meter(session: Session, rows: list[Row]) -> EnergyMeter | None:
    if not any(row.cells["metric"] in METERED for row in rows):
        return None
    found = meter_for(session.host)
    if isinstance(found, str):
        raise Unsupported(found)
    return found


def _with_value(row: Row, label: str, reading: Reading, session: Session) -> MeasuredRow:
    metric = row.cells["metric"]
    values = {"latency_s": reading.time_s, "throughput_per_s": int(row.cells["batch"]) / reading.time_s}
    if reading.metered:
        values |= {"energy_j": reading.metered[0].energy_j, "power_w": reading.metered[0].power_w}
    if metric not in values:
        return _refused(row, label, Unsupported(f"{metric} is not measured"))
    spread = {"low": f"{reading.low_s:.6g}", "high": f"{reading.high_s:.6g}", "rounds": str(reading.rounds)}
    cells = dict(row.cells) | {"value": f"{values[metric]:.6g}", "software": session.software} | spread
    return MeasuredRow(label=label, cells=cells, said=f"{label}: {metric} {values[metric]:.4g}")


def _kernels(table: CsvTable, tell: Tell) -> Iterator[MeasuredRow]:
    benches: dict[tuple[str, str], KernelBench] = {}
    for row in table.rows:
        cells = row.cells
        label = f"line {row.line}: {cells['op']} {cells['sub_op']} {cells['dtype']}"
        tell(label)
        try:
            op, stack = kernel_of(cells)
            key = (stack, cells["dtype"])
            if key not in benches:
                benches[key] = KernelBench(runtime(), mode_of(stack, "cuda"), cells["dtype"])
            found = benches[key].measure(op)
        except (ArchsimError, Refused, MemoryError, RuntimeError) as error:
            yield _refused(row, label, error)
            continue
        yield MeasuredRow(label=label, cells=_timed(cells, found), said=f"{label}: {1e6 * found.time_s:.4g} us")


def kernel_of(cells: Mapping[str, str]) -> tuple[BoundOp, str]:
    """The op of a row of kernels, as validation builds it, and the id of the stack that its software stands for."""
    row = row_of(family_called("kernels"), Row(0, cells), "")
    return kernel_op(cells), row.ran(row.conditions("latency_s", kernel=str(parameters(cells).get("kernel", "")))).stack.id


def _timed(cells: Mapping[str, str], found: KernelReading) -> dict[str, str]:
    """The row with its time, and the kernels of one call: name, grid, block, registers, shared memory and time."""
    ran: list[dict[str, Any]] = [
        {"name": one.name[:200], "grid": list(one.grid), "block": list(one.block), "registers": one.registers,
         "shared": one.shared_B, "us": round(1e6 * one.time_s, 3)} for one in found.launches]  # fmt: skip
    more = {**parameters(cells), "ran": ran}
    return dict(cells) | {"latency_us": f"{1e6 * found.time_s:.6g}", "low_us": f"{1e6 * found.low_s:.6g}",
                          "high_us": f"{1e6 * found.high_s:.6g}", "kernel": json.dumps(more, separators=(",", ":"))}  # fmt: skip


def _refused(row: Row, label: str, error: BaseException) -> MeasuredRow:
    return MeasuredRow(label=label, cells=row.cells, said=refusal(label, error), refused=True)
