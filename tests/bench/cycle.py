"""Cycle model: warp instructions per CPU second of the SM simulator, compiled and plain, beside Accel-Sim's rate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .figure import Figure, cpu_seconds, report

ACCEL_SIM = {"Accel-Sim": 12.5e3}  # warp instructions per second (Khairy et al., ISCA 2020, table I)


class Kernel(NamedTuple):
    """A kernel, where it runs, and how many waves and trips of loops the compiled and the plain loop simulate.

    The rate of the plain loop hardly depends on how many CTAs and trips it runs.
    """

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


def issued(kernel: Kernel, plain: bool) -> Callable[[bool], Callable[[], float]]:
    """Instructions that are issued per CPU second, with the machine code loaded before."""

    def prepare(small: bool) -> Callable[[], float]:
        from archsim.device.catalog import find
        from archsim.simulate.sm import simulate_sm

        spec = find(kernel.hardware)
        waves, depth = (1, 16) if small else (kernel.waves[plain], kernel.depth[plain])
        work = functools.partial(simulate_sm, spec, kernel.words, clock=float(spec.device.usual_clock), depth=depth, waves=waves,
                                 precision=kernel.precision, fast=not plain)  # fmt: skip
        count = work().result.issued  # compiled, or read from disk, before it is timed
        return lambda: count / cpu_seconds(work)

    return prepare


FIGURES = tuple([
    Figure(name=f"{kernel.hardware}: {kernel.words}{', plain' * plain}", unit="1/s", rate=True, prepare=issued(kernel, plain),
           peers=ACCEL_SIM)
    for plain, kernels in ((False, KERNELS), (True, KERNELS[:2])) for kernel in kernels
])  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    """One line for each kernel."""
    report(__doc__, FIGURES, words)
