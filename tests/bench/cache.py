"""Accesses per second of the cache simulator, and of pycachesim's bulk load where it is installed, on the same streams in one
process: `python tests/bench/cache.py [ROUNDS]`. pycachesim 0.3.1 is no dependency: `pip install pycachesim==0.3.1`.

Rates are those of the best round. The two take turns, and the ratio is the median of those of each round, so that what else a
machine does at the time is shared by both."""

from __future__ import annotations

import functools
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from archsim.cache.access import Accesses
from archsim.cache.compile import available
from archsim.cache.hierarchy import Hierarchy, Level
from archsim.cache.simulate import simulate

LEVELS = (("L1", 64, 8), ("L2", 1024, 4), ("L3", 8192, 16))  # name, sets, ways; lines of 64 B, as in the reference counts
LINE = 64


def streams() -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Addresses of loads: sequential, random, and a blocked product of matrices of 128 x 128 doubles."""
    yield "sequential, 4 MiB x 4", np.tile(np.arange(0, 4 << 20, 8), 4)
    random = np.random.RandomState(42)
    for size in (16 << 10, 128 << 10, 1 << 20, 32 << 20):
        yield f"random in {size >> 10} KiB", 8 * random.randint(0, size // 8, size=2_000_000)
    n, block = 128, 16
    i0, j0, k0, i, j, k = np.meshgrid(*[np.arange(n // block)] * 3, *[np.arange(block)] * 3, indexing="ij")
    i, j, k = ((outer * block + inner).ravel() for outer, inner in ((i0, i), (j0, j), (k0, k)))
    yield "blocked product", 8 * np.stack([i * n + k, n * n + k * n + j, 2 * n * n + i * n + j], axis=1).ravel()


def seconds(work: Callable[[], object]) -> float:
    """How long it takes once."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def ours(levels: int) -> Hierarchy:
    """The first so many levels."""
    return Hierarchy(levels=tuple(Level(name=name, size=sets * ways * LINE, ways=ways) for name, sets, ways in LEVELS[:levels]))


def theirs(addresses: list[int]) -> Callable[[], object] | None:
    """pycachesim's bulk load through three levels, or None without it."""
    try:
        from cachesim import Cache, CacheSimulator, MainMemory
    except ImportError:
        return None

    def work() -> None:
        memory, below = MainMemory(), None
        for name, sets, ways in reversed(LEVELS):
            below = Cache(name, sets, ways, LINE, "LRU", store_to=below, load_from=below)
            if name == LEVELS[-1][0]:
                memory.load_to(below)
                memory.store_from(below)
        CacheSimulator(below, memory).load(addresses)

    return work


def main() -> None:
    """One line a stream."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, addresses in streams():
        accesses, count = [Accesses(address=addresses)], len(addresses)
        plain = min(seconds(lambda accesses=accesses: simulate(ours(1), accesses, fast=False)) for _ in range(2))
        line = f"{name:24} plain, one level {count / plain / 1e6:6.2f} M/s"
        if available():
            work = functools.partial(simulate, ours(3), accesses, fast=True)
            work()  # compiled, or read from disk, before it is timed
            line += compared(work, theirs(addresses.tolist()), count, rounds)
        print(line, flush=True)


def compared(work: Callable[[], object], other: Callable[[], object] | None, count: int, rounds: int) -> str:
    """The rate of one, and of both in turns where there is another."""
    times = [(seconds(work), seconds(other) if other else math.nan) for _ in range(rounds)]
    text = f"; fast, three levels {count / min(a for a, _ in times) / 1e6:6.1f} M/s"
    if other is None:
        return text
    ratio = statistics.median(b / a for a, b in times)
    return f"{text}, pycachesim {count / min(b for _, b in times) / 1e6:6.1f} M/s, ratio {ratio:.2f}"


if __name__ == "__main__":
    main()
