"""Cycle model, compiled and plain: warp instructions of an SM, micro-operations of a CPU core, per CPU second."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .figure import Figure, Sample, cpu_seconds, rate, warm_rate

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


KERNELS = (
    Kernel("gtx_1080", "gemm 128x128x8 threads=256"),
    Kernel("a100_sxm4_40gb", "gemm 128x128x32 threads=256 bytes=2 stages=3", "fp16", (8, 1), (4096, 512)),
    Kernel("gtx_1080", "stream read=1 write=1 bytes=16", waves=(200, 20)),
    Kernel("a100_sxm4_40gb", "attention 128x64 d=128", "fp16", (4, 1), (4096, 512)),
    Kernel("gtx_1080", "norm row=4096", waves=(40, 2)),
)
LOOPS: dict[str, Callable[[Any, Any], Any]] = {  # of the modules of products and of loops
    "product 6 x 16, operands in the L1": lambda product, _: product.gemm_block(6, 16, 256, unroll=4, a_level=1),
    "product 14 x 32": lambda product, _: product.gemm_block(14, 32, 512, unroll=2),
    "dot product": lambda _, loops: loops.dot_product(256, accumulators=1),
    "exponential": lambda _, loops: loops.exponential(256, unroll=2),
    "triad in the L1": lambda _, loops: loops.streamed("triad", 256, level=1),
    "triad in the L2": lambda _, loops: loops.streamed("triad", 256, level=2),
    "read from memory": lambda _, loops: loops.streamed("read", 256, level=4),
    "chase in the L2": lambda _, loops: loops.chase(2),
}
PRODUCT = next(iter(LOOPS))
TRIPS = (20_000, 200)  # compiled and plain


def issued(kernel: Kernel, plain: bool, small: bool) -> Sample:
    """Warp instructions that an SM issues per CPU second."""
    from archsim.device.catalog import find
    from archsim.simulate.sm import simulate_sm

    spec = find(kernel.hardware)
    waves, depth = (1, 16) if small else (kernel.waves[plain], kernel.depth[plain])
    work = partial(simulate_sm, spec, kernel.words, clock=float(spec.device.usual_clock), depth=depth, waves=waves,
                   precision=kernel.precision, fast=not plain)  # fmt: skip
    return warm_rate(work().result.issued, work)


def prepared(loop: str, plain: bool) -> Callable[[int], Any]:
    """A loop of so many trips on a core of Zen 5."""
    from archsim.cycle.core import loops, product
    from archsim.cycle.core.machine import core_machine
    from archsim.cycle.core.run import run_loop
    from archsim.device.catalog import find

    core: Any = find("epyc_9655").device
    run = partial(run_loop, core_machine(core, 4.15e9), LOOPS[loop](product, loops), fast=not plain)
    run(trips=2)
    return lambda trips: run(trips=trips)


def renamed(loop: str, plain: bool, small: bool) -> Sample:
    """Micro-operations that a core renames per CPU second."""
    run, trips = prepared(loop, plain), 20 if small else TRIPS[plain]
    return warm_rate(len(run(2).rows) * trips, partial(run, trips))


def start(small: bool) -> Sample:
    """What a run takes before its first iteration [s]."""
    return partial(cpu_seconds, partial(prepared(PRODUCT, False), 2))


FIGURES = (
    *(rate(f"{k.hardware}: {k.words}{', plain' * (i >= len(KERNELS))}", partial(issued, k, i >= len(KERNELS)), peers=ACCEL_SIM)
      for i, k in enumerate((*KERNELS, *KERNELS[:2]))),
    *(rate(f"core: {loop}", partial(renamed, loop, False)) for loop in LOOPS),
    rate(f"core: {PRODUCT}, plain", partial(renamed, PRODUCT, True)),
    Figure(name=f"core: start of {PRODUCT}", unit="s", prepare=start),
)  # fmt: skip
