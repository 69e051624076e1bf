"""Simulated cores beside llvm-mca and OSACA: `python -m tests.bench core_loops LOOPS.json [CORE...]`.

For each core: the distance of a simulated loop to what each tool predicts, and the distance of the tools to each other, over the
loops whose data fit an L1 (median and 90th percentile of |a / b - 1|); then the loops that lie outside what the two say by more
than they differ. LOOPS.json has, beside each loop, `llvm_mca` and `osaca` with a prediction for each core.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archsim.cycle.core.machine import core_machine
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.run import run_loop
from archsim.device.catalog import find
from archsim.device.device import Cpu
from archsim.validation.loops import read_loops

from ..core_loops import LOOP
from .figure import arguments

CLOCK = 3e9  # of no effect on what stays in the L1
PREDICTED = {  # of the loop that `--smoke` takes
    "l1_resident": True, "llvm_mca": {"haswell": {"simulated_cycles": 5.0}}, "osaca": {"HSW": {"prediction": 5.0}},
}  # fmt: skip
LEAST = 0.02  # share of a prediction below which a difference is none


class Core(NamedTuple):
    """A shipped device and the names that the tools have for its core; None where a tool has another core's model or none."""

    device: str
    mca: str | None
    osaca: str | None


CORES = (
    Core("i7_3820", "sandybridge", "SNB"), Core("i7_5930k", "haswell", "HSW"), Core("xeon_e5_2690_v4", "broadwell", "BDW"),
    Core("i7_6700k", "skylake", None), Core("xeon_gold_6148", "skylake-avx512", "SKX"),
    Core("xeon_platinum_8280", "cascadelake", "CSX"), Core("xeon_platinum_8380", "icelake-server", "ICX"),
    Core("xeon_platinum_8480", "sapphirerapids", "SPR"), Core("epyc_7601", "znver1", "ZEN1"), Core("epyc_7742", "znver2", "ZEN2"),
    Core("epyc_7763", "znver3", "ZEN3"), Core("epyc_9654", "znver4", "ZEN4"), Core("raspberry_pi_3", "cortex-a53", None),
    Core("tegra_x1_cpu", "cortex-a57", None), Core("raspberry_pi_4", None, "A72"), Core("graviton2", "neoverse-n1", "N1"),
)  # fmt: skip


class Row(NamedTuple):
    """A loop: cycles that are simulated, and those that the tools predict."""

    loop: str
    ours: float
    mca: float | None
    osaca: float | None


def spread(pairs: Sequence[tuple[float, float]]) -> str:
    """Median and 90th percentile of |a / b - 1| [%], and the number of pairs."""
    if not pairs:
        return f"{'-':>18}"
    far = np.abs([a / b - 1.0 for a, b in pairs])
    return f"{100 * np.median(far):6.1f} {100 * np.quantile(far, 0.9):6.1f} {len(pairs):4d}"


def rows_of(core: Core, loops: Sequence[CoreLoop], predicted: dict[str, Any]) -> list[Row]:
    """The loops that a tool predicts for a core."""
    device = find(core.device).device
    assert isinstance(device, Cpu)
    machine = core_machine(device, CLOCK)
    found = []
    for loop in loops:
        words = predicted[loop.name]
        mca = (words["llvm_mca"].get(core.mca) or {}).get("simulated_cycles")
        osaca = (words["osaca"].get(core.osaca) or {}).get("prediction")
        if mca is not None or osaca is not None:
            found.append(Row(loop.name, run_loop(machine, loop).cycles, mca, osaca))
    return found


def outside(row: Row) -> bool:
    """Whether a simulated loop is farther from both tools than they are from each other."""
    known = [value for value in (row.mca, row.osaca) if value is not None]
    low, high = min(known), max(known)
    room = max(high - low, LEAST * low)
    return not low - room <= row.ours <= high + room


def main(words: Sequence[str]) -> None:
    """A line for each core, and the loops outside."""
    parser = arguments(__doc__, loops={"nargs": "?"}, cores={"nargs": "*"})
    asked = parser.parse_args(words)
    if asked.smoke:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "loops.json"
            file.write_text(json.dumps({"loops": [LOOP | PREDICTED]}), "utf-8")
            compare(str(file), ["i7_5930k"])
    elif asked.loops is None:
        parser.error("LOOPS.json")
    else:
        compare(asked.loops, asked.cores)


def compare(path: str, names: Sequence[str]) -> None:
    """The cores of some names, with their loops outside; all without a name."""
    predicted = {words["name"]: words for words in json.loads(Path(path).read_text(encoding="utf-8"))["loops"]}
    near = [replace(loop, streams=tuple(replace(stream, level=1) for stream in loop.streams))
            for loop in read_loops(path) if predicted[loop.name]["l1_resident"]]  # fmt: skip
    print(f"{'core':<20} {'to llvm-mca':>18} {'to OSACA':>18} {'between them':>18}  median, 90th percentile [%], loops")
    for core in CORES:
        if names and core.device not in names:
            continue
        rows = rows_of(core, near, predicted)
        print(f"{core.device:<20} {spread([(row.ours, row.mca) for row in rows if row.mca])} "
              f"{spread([(row.ours, row.osaca) for row in rows if row.osaca])} "
              f"{spread([(row.mca, row.osaca) for row in rows if row.mca and row.osaca])}")  # fmt: skip
        for row in rows:
            if names and outside(row):
                said = "  ".join(f"{name} {value:7.2f}" if value is not None else f"{name} {'-':>7}"
                                 for name, value in (("llvm-mca", row.mca), ("OSACA", row.osaca)))  # fmt: skip
                print(f"    {row.loop:<34} {row.ours:7.2f}  {said}")
