"""Rows of microbenchmarks of a GPU: bandwidth by occupancy and working set, latency, strides, and power by the rates reached."""

from __future__ import annotations

from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family, Reader
from archsim.evidence.kernel_ops import case_of
from archsim.evidence.pattern import AccessPattern
from archsim.evidence.readers_units import of_rates, runs
from archsim.evidence.resolve import Refused, gpu_spec, unmodified
from archsim.evidence.table import CsvTable, Row

METRICS = {"bandwidth_Bps": "bandwidth_bps", "latency_clk": "latency_clk", "clk_per_warp_load": "clk_per_warp_load"}
CENTRAL = ("median", "trimmed_mean", "best", "mean", "single")  # of one run; the other statistics say how it varies
BESIDE = (("gpu-latency", "median"), ("gpu-l2-stream", "best_of_11"))  # stand there by another statistic too
SIMULATED = ("gpu-stream", "gpu-latency", "gpu-cache", "gpu-l2-cache", "gpu-strides", "gpu-l2-stream", "gpu-roofline",
             "gpu-small-kernels", "mixbench_ro", "babelstream")


def read(row: Row, file: str) -> list[Case | Skip]:
    """The one case of a row. Refused for a benchmark without a program, and for a metric or statistic that is not predicted."""
    cells = row.cells
    if cells["benchmark"] not in SIMULATED:
        raise Refused(f"benchmark {cells['benchmark']!r} has no access pattern here")
    if cells["metric"] not in METRICS:
        raise Refused(f"metric {cells['metric']!r} is not predicted")
    if not cells["stat"].startswith(CENTRAL) or (cells["benchmark"], cells["stat"]) in BESIDE:
        raise Refused(f"statistic {cells['stat']!r} says how a run varies")
    if float(cells["value"]) == 0.0:
        raise Refused("the value is below what the benchmark prints")
    spec = gpu_spec(cells["hardware"])
    clock = float(cells["clock_mhz"]) * 1e6 if cells["clock_mhz"] else None
    words = dict(part.split("=", 1) for part in cells["param"].split(";") if "=" in part)
    words |= {"fused": "1"} if "no fusion" in cells["note"] else {}
    pattern = AccessPattern(
        benchmark=cells["benchmark"], kernel=cells["kernel"], variant=cells["variant"], element=int(cells["elem_bytes"] or 4),
        threads=int(cells["block_threads"] or 1), blocks=int(cells["blocks_per_sm"] or 0),
        size=float(cells["working_set_bytes"] or 0), stride=float(cells["stride"] or 0), words=words,
    )  # fmt: skip
    return [case_of(row, file, unmodified(spec), f"{pattern.benchmark} {pattern.kernel}", METRICS[cells["metric"]],
                    float(cells["value"]), clock=clock, pattern=pattern)]  # fmt: skip


def reader(table: CsvTable) -> Reader:
    """The reader of a table's rows, which gives the power of a run the rates that stand beside it."""
    known = runs(table)

    def one(row: Row, file: str) -> list[Case | Skip]:
        if row.cells["metric"] == "power_w":
            return of_rates(row, file, known.get(row.cells["source_ref"], {}))
        return read(row, file)

    return one


FAMILY = Family(
    name="microbenchmarks",
    columns=("benchmark", "kernel", "variant", "elem_bytes", "block_threads", "working_set_bytes", "metric", "value", "hardware"),
    words=("benchmark", "metric", "hardware"),
    numbers=("clock_mhz", "working_set_bytes"),
    readings=("value",),
    whole=("elem_bytes", "block_threads"),
    measured=("value",),
    reader=reader,
)
