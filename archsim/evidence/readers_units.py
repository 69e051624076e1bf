"""Rows of power by how busy the units of a GPU are: counted by a profiler, or the rates that a kernel reached."""

from __future__ import annotations

import numpy as np

from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.device.units import AWAKE, UnitClocks, unit_rates
from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family
from archsim.evidence.kernel_ops import case_of
from archsim.evidence.pattern import UnitPattern
from archsim.evidence.resolve import Refused, gpu_spec, unmodified
from archsim.evidence.sources import protocol
from archsim.evidence.table import CsvTable, Row

SHARES = {"util_fp32": "fp32", "util_int": "int", "util_fp64": "fp64", "util_sfu": "special", "util_shared": "shared",
          "util_l2": "l2", "util_dram": "dram"}  # fmt: skip
ROUNDING = 1e-6  # differences of counters come out a little below 0
FULL = 1.05  # counters of a busy unit read a little above what it can do
RATES = ("bandwidth_Bps", "flop_per_s")  # that stand beside the power of a run


def read(row: Row, file: str) -> list[Case | Skip]:
    """The one case of a row of counted shares. Refused where a share is above what the unit can do."""
    cells, spec = row.cells, gpu_spec(row.cells["hardware"])
    shares = {unit: float(cells[column] or 0.0) for column, unit in SHARES.items() if column in cells}
    wrong = [unit for unit, share in shares.items() if not -ROUNDING <= share <= FULL]
    if wrong:
        raise Refused(f"share of {wrong[0]} is not between 0 and 1: miscounted")
    usual = usual_memory(spec)
    memory, now = (float(cells[name]) * 1e6 / usual for name in ("ref_mem_mhz", "mem_mhz"))
    busy = {} if cells["kind"] == "idle" else {AWAKE: 1.0, **{unit: min(max(share, 0.0), 1.0) for unit, share in shares.items()}}
    running = protocol(cells["source"]).running.get(cells.get("power_stat", ""), 1.0)
    pattern = UnitPattern(shares=busy, core=float(cells["ref_core_mhz"]) * 1e6, memory=memory, memory_now=now, running=running)
    clock = float(cells["core_mhz"]) * 1e6
    label, power = cells["app"] or cells["kind"], float(cells["power_w"])
    return [case_of(row, file, unmodified(spec), label, "power_w", power, clock=clock, pattern=pattern)]


def runs(table: CsvTable) -> dict[str, dict[str, float]]:
    """The rates of each run of a table of microbenchmarks, by where it is printed."""
    found: dict[str, dict[str, float]] = {}
    for row in table.rows:
        if row.cells["metric"] in RATES:
            found.setdefault(row.cells["source_ref"], {})[row.cells["metric"]] = float(row.cells["value"])
    return found


def of_rates(row: Row, file: str, rates: dict[str, float]) -> list[Case | Skip]:
    """The case of the power of a run whose rates are known: multiply-adds on the lanes, and bytes through L2 and memory."""
    cells, spec = row.cells, gpu_spec(row.cells["hardware"])
    gpu, precision = spec.device, cells["kernel"].removeprefix("fma_")
    assert isinstance(gpu, Gpu)
    if precision not in ("fp32", "fp64") or not cells["clock_mhz"] or not set(RATES) <= rates.keys():
        raise Refused("a power without the rates of its run")
    clock = float(cells["clock_mhz"]) * 1e6
    most, (bandwidth, flop) = unit_rates(gpu, UnitClocks(core=clock)), (rates[name] for name in RATES)
    shares = {AWAKE: 1.0, precision: 0.5 * flop / most[precision], **{unit: bandwidth / most[unit] for unit in ("l2", "dram")}}
    pattern = UnitPattern(
        shares={name: float(np.ravel(share)[0]) for name, share in shares.items()}, core=clock,
        alike=protocol(cells["source"]).alike,
    )  # fmt: skip
    label = f"{cells['benchmark']} {cells['kernel']}"
    return [case_of(row, file, unmodified(spec), label, "power_w", float(cells["value"]), clock=clock, pattern=pattern)]


def usual_memory(spec: Spec) -> float:
    """The usual memory clock as drivers show it [Hz]."""
    assert isinstance(spec.device, Gpu)
    usual = spec.device.memory_clock
    if usual is None:
        raise Refused(f"{spec.identity.id}: the data rate of its memory is not known")
    return usual


FAMILY = Family(
    name="power by unit",
    columns=("source", "hardware", "kind", "power_w", "core_mhz", "mem_mhz", "ref_core_mhz", "ref_mem_mhz", "util_fp32",
             "util_dram"),
    words=("source", "hardware", "kind", "core_mhz", "mem_mhz", "ref_core_mhz", "ref_mem_mhz"),
    numbers=("power_w", "core_mhz", "mem_mhz", "ref_core_mhz", "ref_mem_mhz"),
    counters=tuple(SHARES),
    measured=("power_w",),
    read=read,
)
