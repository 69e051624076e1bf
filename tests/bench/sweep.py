"""Sweeps: points per CPU second of one process and of the whole command, and the memory that many points take.

Beside them stand the rates that two tools in this field were measured at on one core, on their own, simpler questions: Calculon
(caa4b11) and servcalc (0.1.0), estimates of one transformer per CPU second.
"""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from .figure import Figure, Sample, child, cpu_seconds, in_child, peak_memory, rate

PEERS = {"Calculon": 633.0, "servcalc": 2274.0}
CELLS = (("alexnet", 1), ("alexnet", 16), ("resnet_50", 1), ("resnet_50", 16))
VARY = ("memory.bandwidth=100GB/s:1TB/s:log", "sm.count=8:160", "l2.size=512KiB:16MiB:log", "clock=1GHz:2GHz")
POINTS = 200_000  # of which memory is taken
WRITTEN = 32_768  # by the command


def space(net: str, batch: int, points: int) -> Any:
    """Random machines around a GTX 1080: four knobs of the full analytical model."""
    from archsim.study.axis import axis_of
    from archsim.study.executors import keep_freed_memory
    from archsim.study.space import Space

    keep_freed_memory()  # as worker processes do
    axes = tuple([axis_of(text, "gpu") for text in VARY])
    return Space(bases=({"net": net, "hw": "gtx_1080"},), asked={"batch": batch}, axes=axes, sample=points)


def swept(net: str, batch: int, small: bool) -> Sample:
    """Points per CPU second of one part after the other."""
    from archsim.study.sweep import compute

    there, numbers = space(net, batch, 8 if small else 10**9), count()

    def part() -> int:
        done = compute(there, next(numbers) % there.parts).part
        return int(done.stop - done.start)

    size = part()
    return lambda: size / cpu_seconds(part)


def written(small: bool) -> Sample:
    """Points per CPU second of the command with two workers, from its start to the last row of its file."""
    points = 64 if small else WRITTEN
    words = ["-m", "archsim", "sweep", "--net", "alexnet", "--hw", "gtx_1080", "--sample", str(points), "--workers", "2"]
    words += [word for axis in VARY for word in ("--vary", axis)]

    def sample() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return points / child(*words, "--out", str(Path(folder) / "points.csv"))[0]

    return sample


def memory(points: int) -> float:
    """The memory of this process after all parts of a sweep [MB]."""
    from archsim.study.sweep import compute

    there = space("alexnet", 1, points)
    for number in range(there.parts):
        compute(there, number)
    return peak_memory()


FIGURES = (
    *(rate(f"{net}, batch {batch}", partial(swept, net, batch), peers=PEERS) for net, batch in CELLS),
    rate(f"the command, two workers, {WRITTEN:,} points", written, most=3),
    Figure(name=f"memory for {POINTS:,} points in one process", unit="MB", most=1,
           prepare=lambda small: partial(in_child, "sweep", f"memory({64 if small else POINTS})")),
)  # fmt: skip
