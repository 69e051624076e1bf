"""Cache simulator: accesses per CPU second, and those of pycachesim's bulk load where it is installed, on the same streams.

pycachesim 0.3.1 is no dependency: `pip install pycachesim==0.3.1`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .figure import Absent, Sample, rate, warm_rate

LEVELS = (("L1", 64, 8), ("L2", 1024, 4), ("L3", 8192, 16))  # name, sets, ways; lines of 64 B, as in the reference counts
LINE = 64
PLAIN = 200_000  # accesses of a stream that are simulated without machine code
RANDOM = tuple([f"random in {size} KiB" for size in (16, 128, 1024, 32768)])
STREAMS = ("sequential, 4 MiB x 4", *RANDOM, "blocked product")


def addresses(name: str, most: int | None) -> Any:
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


def ours(stream: str, levels: int, fast: bool, small: bool) -> Sample:
    """Accesses per CPU second through the first so many levels."""
    from archsim.cache.access import Accesses
    from archsim.cache.hierarchy import Hierarchy, Level
    from archsim.cache.simulate import simulate

    loads = addresses(stream, 1000 if small else None if fast else PLAIN)
    made = [Level(name=name, size=sets * ways * LINE, ways=ways) for name, sets, ways in LEVELS[:levels]]
    return warm_rate(len(loads), partial(simulate, Hierarchy(levels=tuple(made)), [Accesses(address=loads)], fast=fast))


def theirs(stream: str, small: bool) -> Sample:
    """Accesses per CPU second of pycachesim through three levels."""
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


FIGURES = (
    *(rate(f"{stream}, three levels", partial(ours, stream, 3, True)) for stream in STREAMS),
    *(rate(f"{stream}, three levels, pycachesim", partial(theirs, stream)) for stream in STREAMS),
    *(rate(f"{stream}, one level, plain", partial(ours, stream, 1, False)) for stream in (STREAMS[0], STREAMS[3])),
)
