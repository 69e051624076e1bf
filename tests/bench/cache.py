"""Cache simulator: accesses per CPU second, and those of pycachesim's bulk load where it is installed, on the same streams.

pycachesim 0.3.1 is no dependency: `pip install pycachesim==0.3.1`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .figure import Absent, Figure, report, warm_rate

LEVELS = (("L1", 64, 8), ("L2", 1024, 4), ("L3", 8192, 16))  # name, sets, ways; lines of 64 B, as in the reference counts
LINE = 64
PLAIN = 200_000  # accesses of a stream that are simulated without machine code
RANDOM = tuple([f"random in {size} KiB" for size in (16, 128, 1024, 32768)])
STREAMS = ("sequential, 4 MiB x 4", *RANDOM, "blocked product")


def addresses(name: str, most: int | None) -> NDArray[np.int64]:
    """Addresses of loads: sequential, random, or a blocked product of matrices of 128 x 128 doubles."""
    if name in RANDOM:
        size = int(name.split()[2]) << 10
        return 8 * np.random.RandomState(42).randint(0, size // 8, size=2_000_000)[:most]
    if name == STREAMS[0]:
        return np.tile(np.arange(0, 4 << 20, 8), 4)[:most]
    n, block = 128, 16
    i0, j0, k0, i, j, k = np.meshgrid(*[np.arange(n // block)] * 3, *[np.arange(block)] * 3, indexing="ij")
    i, j, k = ((outer * block + inner).ravel() for outer, inner in ((i0, i), (j0, j), (k0, k)))
    return 8 * np.stack([i * n + k, n * n + k * n + j, 2 * n * n + i * n + j], axis=1).ravel()[:most]


def ours(stream: str, levels: int, fast: bool) -> Callable[[bool], Callable[[], float]]:
    """Accesses per CPU second through the first so many levels."""

    def prepare(small: bool) -> Callable[[], float]:
        from archsim.cache.access import Accesses
        from archsim.cache.hierarchy import Hierarchy, Level
        from archsim.cache.simulate import simulate

        loads = addresses(stream, 1000 if small else None if fast else PLAIN)
        made = [Level(name=name, size=sets * ways * LINE, ways=ways) for name, sets, ways in LEVELS[:levels]]
        work = functools.partial(simulate, Hierarchy(levels=tuple(made)), [Accesses(address=loads)], fast=fast)
        return warm_rate(len(loads), work)

    return prepare


def theirs(stream: str) -> Callable[[bool], Callable[[], float]]:
    """Accesses per CPU second of pycachesim through three levels."""

    def prepare(small: bool) -> Callable[[], float]:
        try:
            from cachesim import Cache, CacheSimulator, MainMemory
        except ImportError:
            raise Absent("pycachesim") from None
        loads = addresses(stream, 1000 if small else None).tolist()

        def work() -> None:
            memory, below = MainMemory(), None
            for name, sets, ways in reversed(LEVELS):
                below = Cache(name, sets, ways, LINE, "LRU", store_to=below, load_from=below)
                if name == LEVELS[-1][0]:
                    memory.load_to(below)
                    memory.store_from(below)
            CacheSimulator(below, memory).load(loads)

        return warm_rate(len(loads), work)

    return prepare


def figure(name: str, prepare: Any) -> Figure:
    """Accesses per CPU second."""
    return Figure(name=name, unit="1/s", rate=True, prepare=prepare)


FIGURES = (
    *(figure(f"{stream}, three levels", ours(stream, 3, True)) for stream in STREAMS),
    *(figure(f"{stream}, one level, plain", ours(stream, 1, False)) for stream in (STREAMS[0], STREAMS[3])),
)
OTHERS = tuple([figure(f"{stream}, three levels, pycachesim", theirs(stream)) for stream in STREAMS])


def main(words: Sequence[str] | None = None) -> None:
    """One line for each stream."""
    report(__doc__, FIGURES + OTHERS, words)
