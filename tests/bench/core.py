"""Core model: micro-operations per CPU second of the simulated CPU core, compiled and plain, and the start of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .figure import Figure, cpu_seconds, report, warm_rate

HARDWARE, CLOCK = "epyc_9655", 4.15e9
TRIPS = (20_000, 200)  # compiled and plain
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


def prepared(name: str, fast: bool) -> Callable[[int], Any]:
    """A loop of so many trips, with the machine code loaded before."""
    from archsim.cycle.core import gemm_block, loops
    from archsim.cycle.core.machine import core_machine
    from archsim.cycle.core.run import run_loop
    from archsim.device.catalog import find

    run = functools.partial(run_loop, core_machine(find(HARDWARE).device, CLOCK), LOOPS[name](gemm_block, loops), fast=fast)
    run(trips=2)
    return lambda trips: run(trips=trips)


def renamed(name: str, fast: bool) -> Callable[[bool], Callable[[], float]]:
    """Micro-operations per CPU second."""

    def prepare(small: bool) -> Callable[[], float]:
        run, trips = prepared(name, fast), 20 if small else TRIPS[not fast]
        return warm_rate(len(run(2).rows) * trips, lambda: run(trips))

    return prepare


def start(_: bool) -> Callable[[], float]:
    """What a run takes before its first iteration [s]."""
    run = prepared(next(iter(LOOPS)), True)
    return lambda: cpu_seconds(lambda: run(2))


FIGURES = (
    *(Figure(name=name, unit="1/s", rate=True, prepare=renamed(name, True)) for name in LOOPS),
    *(Figure(name=f"{name}, plain", unit="1/s", rate=True, prepare=renamed(name, False)) for name in list(LOOPS)[:2]),
    Figure(name=f"start of {next(iter(LOOPS))}", unit="s", prepare=start),
)


def main(words: Sequence[str] | None = None) -> None:
    """One line for each loop."""
    report(__doc__, FIGURES, words)
