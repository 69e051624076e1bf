"""Rows of a sweep over the tile and the stages of one product: a single CTA, whose loop is long (CUTLASS on one SM)."""

from __future__ import annotations

from archsim.evidence.case import Case, Skip
from archsim.evidence.family import Family, integer
from archsim.evidence.kernel_ops import case_of
from archsim.evidence.pattern import ProductPattern
from archsim.evidence.resolve import Refused, device, unmodified
from archsim.evidence.table import Row

PRECISIONS = {"BF16": ("bf16", 2.0), "FP16": ("fp16", 2.0), "FP8_E4M3": ("fp8", 1.0)}
# Where a file does not say: the sweep is built for tcgen05, and its script takes this clock (lookup1980/microbench-blackwell,
# cutlass_gemm_mainloop/plot_results.py).
HARDWARE, CLOCK = "b200_sxm", 1.3e9


def read(row: Row, file: str) -> list[Case | Skip]:
    """The one case of a row. Refused for a product of more than one tile, and for an unknown precision."""
    cells = row.cells
    sides = {name: integer(cells, name) for name in ("M", "N", "K", "TILE_M", "TILE_N", "TILE_K", "STAGES")}
    if (sides["M"], sides["N"]) != (sides["TILE_M"], sides["TILE_N"]):
        raise Refused("the product has more than one tile")
    if cells["dtype"] not in PRECISIONS:
        raise Refused(f"no precision {cells['dtype']!r}; there are {', '.join(PRECISIONS)}")
    precision, operand = PRECISIONS[cells["dtype"]]
    spec = device(cells.get("hardware") or HARDWARE)
    clock = float(cells["clock_mhz"]) * 1e6 if cells.get("clock_mhz") else CLOCK
    pattern = ProductPattern(m=sides["M"], n=sides["N"], k=sides["K"], tile_k=sides["TILE_K"], stages=sides["STAGES"],
                             operand=operand)  # fmt: skip
    label = f"product {sides['M']}x{sides['N']}x{sides['TILE_K']}"
    return [case_of(row, file, unmodified(spec), label, "latency_s", float(cells["time_ms"]) * 1e-3,
                    source="cutlass", precision=precision, clock=clock, pattern=pattern)]  # fmt: skip


FAMILY = Family(
    name="products by tile and stages",
    columns=("M", "N", "K", "TILE_M", "TILE_N", "TILE_K", "STAGES", "dtype", "time_ms"),
    words=("M", "N", "K", "TILE_M", "TILE_N", "TILE_K", "STAGES", "dtype"),
    numbers=("time_ms", "clock_mhz"),
    whole=("M", "N", "K", "TILE_M", "TILE_N", "TILE_K"),
    offsets=("STAGES",),
    measured=("time_ms",),
    read=read,
)
