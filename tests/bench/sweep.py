"""Points per second of sweeps, estimates per second of the API, and memory: `python tests/bench/sweep.py [SECONDS] [WORKERS]`.

Beside them stand the rates that two tools in this field were measured at on one core, on their own, simpler questions:
Calculon (caa4b11) 633 and servcalc (0.1.0) 2,274 estimates of one transformer per CPU second.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from itertools import count, cycle

import archsim
from archsim.study.allocator import keep_freed_memory
from archsim.study.axis import axis_of
from archsim.study.executors import over_processes
from archsim.study.space import Space
from archsim.study.sweep import compute

PEERS = {"Calculon": 633.0, "servcalc": 2274.0}
CELLS = (("alexnet", 1, 50_000), ("alexnet", 16, 50_000), ("resnet_50", 1, 10_000), ("resnet_50", 16, 10_000))
SINGLES = (("alexnet", 1_000), ("resnet_50", 300))
VARY = ("memory.bandwidth=100GB/s:1TB/s:log", "sm.count=8:160", "l2.size=512KiB:16MiB:log", "clock=1GHz:2GHz")


def space(net: str, batch: int, points: int) -> Space:
    """Random machines around a GTX 1080: four knobs of the full analytical model."""
    axes = tuple([axis_of(text, "gpu") for text in VARY])
    return Space(bases=({"net": net, "hw": "gtx_1080"},), asked={"batch": batch}, axes=axes, sample=points)


def swept(net: str, batch: int, workers: int, seconds: float) -> float:
    """Points per second with so many processes, starting them not counted."""
    there = space(net, batch, 10**9)
    began, done = 0.0, 0
    for chunk in over_processes(there, range(there.parts), workers):
        if not began:
            began = time.perf_counter()
            continue
        done += chunk.part.stop - chunk.part.start
        if time.perf_counter() - began > seconds:
            break
    return done / (time.perf_counter() - began)


def single(net: str, seconds: float, ask: Callable[[int], object]) -> float:
    """Warm estimates per CPU second, one after the other; other work on the machine does not count."""
    for i in range(10):
        ask(i)
    began = time.process_time()
    for done in count(1):
        ask(done)
        if time.process_time() - began > seconds:
            return done / (time.process_time() - began)
    raise AssertionError


def main() -> None:
    """Print each rate, and how many times what it is meant to be."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    for net, batch, goal in CELLS:
        rate = swept(net, batch, workers, seconds)
        print(f"sweep {net}, batch {batch}, {workers} processes: {rate:,.0f} points/s, {rate / goal:.2f} of {goal:,}; "
              + ", ".join(f"{rate / workers / peer:.0f} times {name} for each core" for name, peer in PEERS.items()))  # fmt: skip
    hardware = cycle(("gtx_1080", "titan_x_maxwell", "tesla_k40"))
    for net, goal in SINGLES:
        rate = single(net, seconds, lambda i, net=net: archsim.estimate(net, next(hardware), batch=1 + i % 8))  # type: ignore[misc]
        print(f"single {net}: {rate:,.0f} estimates per CPU s, {rate / goal:.2f} of {goal:,}")
        rate = single(net, seconds, lambda i, net=net: archsim.estimate(  # type: ignore[misc]
            net, "gtx_1080", settings={"memory.bandwidth": f"{200 + i % 500} GB/s"}).memory_bytes)  # fmt: skip
        print(f"single {net}, another machine each time: {rate:,.0f} estimates per CPU s, {rate / goal:.2f} of {goal:,}")
    keep_freed_memory()
    there = space("alexnet", 1, 1_000_000)
    for number in range(there.parts if seconds >= 5 else 10):
        compute(there, number)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory for {there.count:,} points in one process: {most:.0f} MB")


if __name__ == "__main__":
    main()
