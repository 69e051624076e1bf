"""Rows of what microbenchmarks do to a device: memory and caches, one tile, units and their power, clocks and voltages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from archsim.device.device import Gpu
from archsim.device.units import AWAKE, UnitClocks, unit_rates
from archsim.device.variant import first_of
from archsim.evidence.case import AccessPattern, Case, ClockPattern, ProductPattern, UnitPattern, VoltagePattern
from archsim.evidence.row import PublishedRow, Refused, integers

# ------------------------------------------------------------------------------------------------------- memory and caches

METRICS = {"bandwidth_Bps": "bandwidth_bps", "latency_clk": "latency_clk", "clk_per_warp_load": "clk_per_warp_load"}
CENTRAL = ("median", "trimmed_mean", "best", "mean", "single")  # of one run; the other statistics say how it varies
BESIDE = (("gpu-latency", "median"), ("gpu-l2-stream", "best_of_11"))  # stand there by another statistic too
SIMULATED = ("gpu-stream", "gpu-latency", "gpu-cache", "gpu-l2-cache", "gpu-strides", "gpu-l2-stream", "gpu-roofline",
             "gpu-small-kernels", "mixbench_ro", "babelstream")  # fmt: skip
RATES = ("bandwidth_Bps", "flop_per_s")  # that stand beside the power of a run


def read_access(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row. Refused for a benchmark without a program, and for a metric or statistic that is not predicted."""
    cells = row.cells
    if cells["metric"] == "power_w":
        yield of_rates(row)
        return
    if cells["benchmark"] not in SIMULATED:
        raise Refused(f"benchmark {cells['benchmark']!r} has no access pattern here")
    if cells["metric"] not in METRICS:
        raise Refused(f"metric {cells['metric']!r} is not predicted")
    if not cells["stat"].startswith(CENTRAL) or (cells["benchmark"], cells["stat"]) in BESIDE:
        raise Refused(f"statistic {cells['stat']!r} says how a run varies")
    if float(cells["value"]) == 0.0:
        raise Refused("the value is below what the benchmark prints")
    gpu_of(row)
    words = dict(part.split("=", 1) for part in cells["param"].split(";") if "=" in part)
    words |= {"fused": "1"} if "no fusion" in cells["note"] else {}
    pattern = AccessPattern(
        benchmark=cells["benchmark"], kernel=cells["kernel"], variant=cells["variant"], element=int(cells["elem_bytes"] or 4),
        threads=int(cells["block_threads"] or 1), blocks=int(cells["blocks_per_sm"] or 0),
        size=float(cells["working_set_bytes"] or 0), stride=float(cells["stride"] or 0), words=words,
    )  # fmt: skip
    yield row.case(f"{pattern.benchmark} {pattern.kernel}", METRICS[cells["metric"]], float(cells["value"]), pattern=pattern)


def of_rates(row: PublishedRow) -> Case:
    """The case of the power of a run whose rates are known: multiply-adds on the lanes, and bytes through L2 and memory."""
    cells, gpu = row.cells, gpu_of(row)
    rates = {one["metric"]: float(one["value"]) for one in row.beside if one["metric"] in RATES}
    precision = cells["kernel"].removeprefix("fma_")
    if precision not in ("fp32", "fp64") or not cells["clock_mhz"] or not set(RATES) <= rates.keys():
        raise Refused("a power without the rates of its run")
    clock = float(cells["clock_mhz"]) * 1e6
    most, (bandwidth, flop) = unit_rates(gpu, UnitClocks(core=clock)), (rates[name] for name in RATES)
    shares = {AWAKE: 1.0, precision: 0.5 * flop / most[precision], **{unit: bandwidth / most[unit] for unit in ("l2", "dram")}}
    pattern = UnitPattern(
        shares={name: first_of(share) for name, share in shares.items()}, core=clock,
        alike=row.conditions("power_w").operands == "constant",
    )  # fmt: skip
    return row.case(f"{cells['benchmark']} {cells['kernel']}", "power_w", float(cells["value"]), pattern=pattern)


# ------------------------------------------------------------------------------------------------------- one tile

PRECISIONS = {"BF16": ("bf16", 2.0), "FP16": ("fp16", 2.0), "FP8_E4M3": ("fp8", 1.0)}


def read_tile(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row of a sweep over the tile and the stages of one product: a single CTA, whose loop is long.

    Refused for a product of more than one tile, and for an unknown precision.
    """
    cells = row.cells
    m, n, k, tile_m, tile_n, tile_k, stages = integers(cells, "M N K TILE_M TILE_N TILE_K STAGES")
    if (m, n) != (tile_m, tile_n):
        raise Refused("the product has more than one tile")
    if cells["dtype"] not in PRECISIONS:
        raise Refused(f"no precision {cells['dtype']!r}; there are {', '.join(PRECISIONS)}")
    precision, operand = PRECISIONS[cells["dtype"]]
    yield row.case(f"product {m}x{n}x{tile_k}", "latency_s", float(cells["time_ms"]) * 1e-3, precision=precision,
                   pattern=ProductPattern(m=m, n=n, k=k, tile_k=tile_k, stages=stages, operand=operand))  # fmt: skip


# ------------------------------------------------------------------------------------------------------- units

SHARES = {"util_fp32": "fp32", "util_int": "int", "util_fp64": "fp64", "util_sfu": "special", "util_shared": "shared",
          "util_l2": "l2", "util_dram": "dram"}  # fmt: skip
ROUNDING = 1e-6  # differences of counters come out a little below 0
FULL = 1.05  # counters of a busy unit read a little above what it can do


def read_units(row: PublishedRow) -> Iterator[Case]:
    """The one case of a row of counted shares. Refused where a share is above what the unit can do."""
    cells = row.cells
    gpu_of(row)
    shares = {unit: float(cells[column] or 0.0) for column, unit in SHARES.items() if column in cells}
    wrong = [unit for unit, share in shares.items() if not -ROUNDING <= share <= FULL]
    if wrong:
        raise Refused(f"share of {wrong[0]} is not between 0 and 1: miscounted")
    memory, now = (float(cells[name]) * 1e6 / usual_memory(row) for name in ("ref_mem_mhz", "mem_mhz"))
    busy = {} if cells["kind"] == "idle" else {AWAKE: 1.0, **{unit: min(max(share, 0.0), 1.0) for unit, share in shares.items()}}
    pattern = UnitPattern(shares=busy, core=float(cells["ref_core_mhz"]) * 1e6, memory=memory, memory_now=now,
                          running=row.conditions("power_w").meter.running)  # fmt: skip
    yield row.case(cells["app"] or cells["kind"], "power_w", float(cells["power_w"]), clock=clock_of(row), pattern=pattern)


# ------------------------------------------------------------------------------------------------------- clocks and voltages

VOLTAGE, IDLE = "core_voltage_v", "idle_power_w"


def curve_of(row: PublishedRow) -> dict[float, Mapping[str, str]]:
    """The rows that a row is compared with, by core clock [Hz]."""
    return {float(one["core_mhz"]) * 1e6: one for one in row.beside if one["core_mhz"]}


def read_workload(row: PublishedRow) -> Iterator[Case]:
    """The power of a workload, compared with that at the highest clock of its curve."""
    cells, clock, curve = row.cells, clock_of(row), curve_of(row)
    top, least = max(curve), min(curve)
    if clock == top:
        raise Refused("the run to which those at a lower clock are compared")
    gpu_of(row)
    rates = {at: float(of["relative_performance"]) / float(curve[top]["relative_performance"]) for at, of in curve.items()}
    free = 1.0 - math.log(rates[least]) / math.log(least / top)
    pattern = ClockPattern(top=top, power=float(curve[top]["power_w"]), rate=rates[clock], free=min(1.0, max(0.0, free)))
    yield row.case(cells["workload"], "power_w", float(cells["power_w"]), clock=clock, pattern=pattern)


def read_voltage(row: PublishedRow) -> Iterator[Case]:
    """A voltage or idle power that a driver told; one that somebody fitted to powers is no measurement."""
    cells = row.cells
    gpu_of(row)
    if cells["kind"] != "read":
        raise Refused("fitted to powers, not read")
    value = float(cells["value"])
    if cells["quantity"] == IDLE:
        memory = float(cells["mem_mhz"]) * 1e6 / usual_memory(row) if cells["mem_mhz"] else 1.0
        pattern = UnitPattern(shares={}, core=clock_of(row), memory=memory, memory_now=memory)
        yield row.case("idle", "power_w", value, clock=clock_of(row), pattern=pattern)
        return
    if cells["quantity"] != VOLTAGE:
        raise Refused(f"quantity {cells['quantity']!r} is not predicted")
    curve = curve_of(row)
    top = max(curve)
    if clock_of(row) == top:
        raise Refused("the voltage to which those at lower clocks are compared")
    yield row.case("core voltage", "voltage_v", value, clock=clock_of(row),
                   pattern=VoltagePattern(top=top, volts=float(curve[top]["value"])))  # fmt: skip


def clock_of(row: PublishedRow) -> float:
    """The core clock of a row [Hz]."""
    if not row.cells["core_mhz"]:
        raise Refused("no core clock")
    return float(row.cells["core_mhz"]) * 1e6


def gpu_of(row: PublishedRow) -> Gpu:
    """The GPU of a row; Refused for any other device."""
    if not isinstance(row.spec.device, Gpu):
        raise Refused(f"{row.spec.identity.id} is no GPU")
    return row.spec.device


def usual_memory(row: PublishedRow) -> float:
    """The usual memory clock as drivers show it [Hz]."""
    usual = gpu_of(row).memory_clock
    if usual is None:
        raise Refused(f"{row.spec.identity.id}: the data rate of its memory is not known")
    return usual
