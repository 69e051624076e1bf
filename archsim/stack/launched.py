"""Rows of `traces/kernels` from what a profiler records of each launch: name, block, registers and shared memory.

The names of kernels for products say the tile: `nvjet_sm90_hsh_128x256_64x4_2x1_...`, `sm80_xmma_fprop_implicit_gemm_...
tilesize128x32x16_stage1_...`, `cutlass_80_tensorop_s16816gemm_bf16_256x64_64x3_tn_align2`, `ampere_sgemm_128x64_tn`.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.stack.menu import COLUMNS, TENSOR
from archsim.trace.profiles.record import events

# How a name says rows, columns and depth of a tile, the most telling form first; a short one leaves the depth to its unit.
SIZES = (
    re.compile(r"nvjet_\w*?_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x\d+_(?P<across>\d+)x(?P<along>\d+)"),
    re.compile(r"tilesize(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"),
    re.compile(r"cutlass\w*?_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x\d+"),
    re.compile(r"(?:gemm|cudnn)\w*?_(?P<m>\d+)x(?P<n>\d+)(?!\d)"),
)
ROLES = {  # a part of a name -> the role; the first that is in it
    "sdpa": "", "fmha": "", "indexed_wo_smem": "", "fprop": "conv_forward", "dgrad": "conv_backward_data",
    "wgrad": "conv_backward_filter", "scudnn": "conv_forward", "align1": "gemm_narrow", "align2": "gemm_narrow",
}  # fmt: skip
BY_PIXELS = "fprop", "dgrad"  # names say columns and rows
ON_LANES = ("ffma", "simt", "sgemm_", "scudnn", "dgemm_")
GROUPS_OF_WARPS = ("nvjet_sm90", "sm90_")  # begin names of kernels whose CTAs go from tile to tile
DEPTH = {True: 32, False: 8}  # of a tile on tensor cores, or on lanes, of names that say none


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLaunch:
    """What a profiler records of one kernel: threads of a CTA, registers of a thread, shared memory of a CTA [B]."""

    name: str
    threads: int
    registers: int
    shared: int


def row_of(launch: RecordedLaunch, architecture: str, source: str) -> dict[str, str] | None:
    """The row of a product or convolution, by the columns of the files; None for another kernel, or one whose name says no tile.

    Names of products say columns first, as the libraries count them and `archsim.lower.gemm` does; those of convolutions say
    pixels and filters, which are columns and rows.
    """
    said = next(filter(None, (form.search(launch.name) for form in SIZES)), None)
    if said is None:
        return None
    sizes = said.groupdict()
    tensor = not any(word in launch.name for word in ON_LANES)
    role = next((found for word, found in ROLES.items() if word in launch.name), "gemm")
    if not role:
        return None
    if role == "gemm_narrow" and not tensor:  # lanes load value by value anyway
        role = "gemm"
    m, n = (sizes["n"], sizes["m"]) if any(word in launch.name for word in BY_PIXELS) else (sizes["m"], sizes["n"])
    grouped = launch.name.startswith(GROUPS_OF_WARPS)
    cluster = int(sizes.get("across") or 1) * int(sizes.get("along") or 1)
    loop = "persistent" if grouped else "warp_mma" if tensor and architecture == "hopper" else ""
    cells = {
        "role": f"{role}_{TENSOR}" if tensor else role, "architectures": architecture, "m": m, "n": n,
        "k": sizes.get("k") or str(DEPTH[tensor]), "threads": str(launch.threads), "registers": str(launch.registers),
        "shared": str(launch.shared), "cluster": str(cluster) if cluster > 1 else "", "loop": loop, "source": source,
    }  # fmt: skip
    return {column: cells.get(column, "") for column in COLUMNS}


def rows_of(launches: Iterable[RecordedLaunch], architecture: str, source: str, least: int = 1) -> list[Mapping[str, str]]:
    """The rows of all products among these, each tile once, as what was launched most often has it; the largest first.

    least: launches below which a tile is left out
    """
    found: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}
    for row in filter(None, (row_of(launch, architecture, source) for launch in launches)):
        found.setdefault((row["role"], row["m"], row["n"], row["k"]), Counter())[tuple(row.values())] += 1
    often = {tile: seen.most_common(1)[0][0] for tile, seen in found.items() if seen.total() >= least}
    order = sorted(often, key=lambda tile: (tile[0], -int(tile[1]) * int(tile[2]), tile))
    return [dict(zip(COLUMNS, often[tile], strict=True)) for tile in order]


def launches_of(path: Path) -> Iterator[RecordedLaunch]:
    """The launches in a Chrome trace of PyTorch's profiler. Raises MissingFile or InputError, also where it has none."""
    found = False
    for event in events(path, "traceEvents"):
        args: Mapping[str, Any] = event["args"] if isinstance(event.get("args"), dict) else {}
        block, registers, shared = (args.get(name) for name in ("block", "registers per thread", "shared memory"))
        if isinstance(block, list) and isinstance(registers, int) and isinstance(shared, int):
            x, y, z = (*[int(side) for side in block if isinstance(side, int)], 1, 1, 1)[:3]
            found = True
            yield RecordedLaunch(name=str(event.get("name", "")), threads=x * y * z, registers=registers, shared=shared)
    if not found:
        raise InputError(str(path), "has no kernels with block, registers and shared memory, as PyTorch's profiler writes them")


def table_of(rows: Iterable[Mapping[str, str]]) -> str:
    """The text of a file of `traces/kernels`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
