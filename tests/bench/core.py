"""Micro-operations per second of the simulated core, compiled and plain, on one core: `python tests/bench/core.py [ROUNDS]`.

Each rate is that of the best round, in CPU time, with the machine code loaded before; beside it the clocks per micro-operation,
since a clock in which nothing is renamed takes time, too. The last column is what a run takes before its first iteration.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable

from archsim.cycle.core.gemm_block import gemm_block
from archsim.cycle.core.loops import chase, dot_product, exponential, streamed
from archsim.cycle.core.machine import core_machine
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.run import CoreRun, run_loop
from archsim.device.catalog import find

HARDWARE, CLOCK = "epyc_9655", 4.15e9
TRIPS = (20_000, 200)  # compiled and plain
LOOPS = (
    gemm_block(6, 16, 256, unroll=4, a_level=1), gemm_block(14, 32, 512, unroll=2), dot_product(256, accumulators=1),
    exponential(256, unroll=2), streamed("triad", 256, level=1), streamed("triad", 256, level=2), streamed("read", 256, level=4),
    chase(2),
)  # fmt: skip


def seconds(run: Callable[[], CoreRun]) -> tuple[float, CoreRun]:
    """CPU time of a run [s], and the run."""
    begin = time.process_time()
    found = run()
    return time.process_time() - begin, found


def measure(loop: CoreLoop, fast: bool, rounds: int) -> tuple[float, float, float]:
    """Micro-operations per second, clocks per micro-operation, and seconds before the first iteration."""
    machine = core_machine(find(HARDWARE).device, CLOCK)
    trips = TRIPS[0 if fast else 1]
    long, short = (functools.partial(run_loop, machine, loop, trips=count, fast=fast) for count in (trips, 2))
    short()  # compiled, or read from disk, before it is timed
    start = min(seconds(short)[0] for _ in range(rounds))
    took, found = min((seconds(long) for _ in range(rounds)), key=lambda one: one[0])
    return len(found.rows) * trips / took, found.cycles / len(found.rows), start


def main() -> None:
    """One line a loop."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{'loop':<28} {'compiled':>10} {'plain':>11} {'ratio':>6} {'clk/op':>7} {'start':>8}")
    for loop in LOOPS:
        compiled, clocks, start = measure(loop, True, rounds)
        plain, _, _ = measure(loop, False, rounds)
        level = max((stream.level or 1 for stream in loop.streams), default=1)
        rates = f"{compiled / 1e6:6.1f} M/s {plain / 1e6:7.3f} M/s {compiled / plain:6.0f}"
        print(f"{f'{loop.name}, level {level}':<28} {rates} {clocks:7.2f} {start * 1e3:5.1f} ms", flush=True)


if __name__ == "__main__":
    main()
