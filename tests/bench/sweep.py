"""Sweeps: points per CPU second of one process and of the whole command, and the memory that many points take.

Beside them stand the rates that two tools in this field were measured at on one core, on their own, simpler questions: Calculon
(caa4b11) and servcalc (0.1.0), estimates of one transformer per CPU second.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from .figure import Absent, Figure, child, cpu_seconds, report

PEERS = {"Calculon": 633.0, "servcalc": 2274.0}
CELLS = (("alexnet", 1), ("alexnet", 16), ("resnet_50", 1), ("resnet_50", 16))
VARY = ("memory.bandwidth=100GB/s:1TB/s:log", "sm.count=8:160", "l2.size=512KiB:16MiB:log", "clock=1GHz:2GHz")
POINTS = 1_000_000  # of which memory is taken
WRITTEN = 32_768  # by the command
CODE = "from tests.bench.sweep import largest; print(largest({points}))"


def space(net: str, batch: int, points: int) -> Any:
    """Random machines around a GTX 1080: four knobs of the full analytical model."""
    from archsim.study.axis import axis_of
    from archsim.study.space import Space

    axes = tuple([axis_of(text, "gpu") for text in VARY])
    return Space(bases=({"net": net, "hw": "gtx_1080"},), asked={"batch": batch}, axes=axes, sample=points)


def swept(net: str, batch: int) -> Callable[[bool], Callable[[], float]]:
    """Points of a part per CPU second, of what a worker process does."""

    def prepare(small: bool) -> Callable[[], float]:
        from archsim.study.allocator import keep_freed_memory
        from archsim.study.sweep import compute

        keep_freed_memory()
        there, numbers = space(net, batch, 8 if small else 10**9), count()

        def part() -> int:
            done = compute(there, next(numbers) % there.parts).part
            return int(done.stop - done.start)

        size = part()
        return lambda: size / cpu_seconds(part)

    return prepare


def written(small: bool) -> Callable[[], float]:
    """Points per CPU second of the command with two workers, from its start to the last row of its file."""
    points = 64 if small else WRITTEN
    words = ["-m", "archsim", "sweep", "--net", "alexnet", "--hw", "gtx_1080", "--sample", str(points), "--workers", "2"]
    words += [word for axis in VARY for word in ("--vary", axis)]

    def sample() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return points / child(*words, "--out", str(Path(folder) / "points.csv"))[0]

    return sample


def largest(points: int) -> float:
    """The most memory that this process has had, after all parts of a sweep [MB]."""
    from archsim.study.allocator import keep_freed_memory
    from archsim.study.sweep import compute

    keep_freed_memory()
    there = space("alexnet", 1, points)
    for number in range(there.parts):
        compute(there, number)
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def memory(small: bool) -> Callable[[], float]:
    """The memory of a process of its own [MB]."""
    if sys.platform != "linux":
        raise Absent("a system that tells the most memory that a process had")
    code = CODE.format(points=64 if small else POINTS)
    return lambda: float(child("-c", code)[1])


FIGURES = (
    *(Figure(name=f"{net}, batch {n}", unit="1/s", rate=True, prepare=swept(net, n), peers=PEERS) for net, n in CELLS),
    Figure(name=f"the command, two workers, {WRITTEN:,} points", unit="1/s", rate=True, prepare=written, most=3),
    Figure(name=f"memory for {POINTS:,} points in one process", unit="MB", prepare=memory, most=1),
)


def main(words: Sequence[str] | None = None) -> None:
    """One line for each sweep."""
    report(__doc__, FIGURES, words)
