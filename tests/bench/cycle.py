"""Warp instructions per second of the SM simulator, compiled and plain, on one core: `python tests/bench/cycle.py [ROUNDS]`.

Each rate is that of the best round, in CPU time, with the machine code loaded before. The plain loop runs fewer CTAs and trips,
on which its rate hardly depends.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from archsim.device.catalog import find
from archsim.simulate.sm import SimulatedSm, simulate_sm

ACCEL_SIM = 12.5e3  # warp instructions per second (Khairy et al., ISCA 2020, table I)


class Kernel(NamedTuple):
    """A kernel, where it runs, and how many waves and trips of loops the compiled and the plain loop simulate."""

    hardware: str
    words: str
    precision: str = "fp32"
    waves: tuple[int, int] = (4, 1)
    depth: tuple[int, int] = (512, 128)


TENSOR = "gemm 128x128x32 threads=256 bytes=2 stages=3"
KERNELS = (
    Kernel("gtx_1080", "gemm 128x128x8 threads=256"),
    Kernel("a100_sxm4_40gb", TENSOR, "fp16", (8, 1), (4096, 512)),
    Kernel("gtx_1080", "stream read=1 write=1 bytes=16", waves=(200, 20)),
    Kernel("a100_sxm4_40gb", "attention 128x64 d=128", "fp16", (4, 1), (4096, 512)),
    Kernel("gtx_1080", "norm row=4096", waves=(40, 2)),
)


def work(kernel: Kernel, plain: bool) -> Callable[[], SimulatedSm]:
    """A run of a kernel."""
    spec = find(kernel.hardware)
    return functools.partial(simulate_sm, spec, kernel.words, clock=float(spec.device.usual_clock), depth=kernel.depth[plain],
                             waves=kernel.waves[plain], precision=kernel.precision, fast=not plain)  # fmt: skip


def rate(run: Callable[[], SimulatedSm]) -> float:
    """Warp instructions per second of CPU time."""
    begin = time.process_time()
    issued = run().result.issued
    return issued / (time.process_time() - begin)


def main() -> None:
    """One line a kernel."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{'kernel':<62} {'compiled':>11} {'plain':>11} {'ratio':>6}  over Accel-Sim's {ACCEL_SIM / 1e3:g} k/s")
    for kernel in KERNELS:
        fast, plain = (work(kernel, plain) for plain in (False, True))
        fast()  # compiled, or read from disk, before it is timed
        compiled, interpreted = (max(rate(run) for _ in range(rounds)) for run in (fast, plain))
        rates = f"{compiled / 1e6:7.1f} M/s {interpreted / 1e6:7.3f} M/s {compiled / interpreted:6.0f}"
        print(f"{kernel.hardware + ': ' + kernel.words:<62} {rates}  {compiled / ACCEL_SIM:,.0f}, {interpreted / ACCEL_SIM:.0f}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
