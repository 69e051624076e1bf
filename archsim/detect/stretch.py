"""A stretch of memory that microbenchmarks visit."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

from archsim.detect.loops import LINE_B

HUGE_B, PAGE_B = 1 << 21, 4096
SLICE_B = 1 << 26  # read in a few milliseconds: less than a core is left alone for beside other work


class Stretch:
    """A stretch of memory, on large pages where they are wanted and the kernel gives them, and chains of addresses through it."""

    def __init__(self, size_B: int, large: bool = True) -> None:
        import ctypes
        import mmap

        import numpy as np

        self.size_B = size_B // HUGE_B * HUGE_B or HUGE_B
        private = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
        room = mmap.mmap(-1, self.size_B + HUGE_B, flags=private)
        advice = getattr(mmap, "MADV_HUGEPAGE" if large else "MADV_NOHUGEPAGE", None)
        if advice is not None:
            with contextlib.suppress(OSError):  # a kernel without large pages
                room.madvise(advice)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(room))
        self.address = -(-begin // HUGE_B) * HUGE_B
        first = (self.address - begin) // 8
        self.words = np.frombuffer(room, np.uint64)[first : first + self.size_B // 8]
        self.chained_B = 0
        self.slice_B = self.size_B // max(1, self.size_B // SLICE_B)
        self._slices = itertools.cycle(range(0, self.size_B // self.slice_B * self.slice_B, self.slice_B))

    def chain(self, size_B: int) -> Any:
        """Every line of the first `size_B` gets the address of another one, all in one cycle: the addresses in its order [N]."""
        import numpy as np

        lines = max(2, min(size_B, self.size_B) // LINE_B)
        self.chained_B = lines * LINE_B
        return self._linked(np.random.default_rng(0).permutation(lines))

    def pages_chain(self, pages: int) -> Any:
        """The same through one line of each of so many small pages."""
        import numpy as np

        random, lines = np.random.default_rng(0), PAGE_B // LINE_B
        self.chained_B = pages * PAGE_B
        return self._linked(random.permutation(pages) * lines + random.integers(lines, size=pages))

    def _linked(self, order: Any) -> Any:
        import numpy as np

        addresses = (self.address + order * LINE_B).astype(np.uint64)
        self.words[order * (LINE_B // 8)] = np.roll(addresses, -1)
        return addresses

    def next_slice(self) -> int:
        """The address of the next slice; all others are visited before it comes again."""
        return self.address + next(self._slices)

    @property
    def pages(self) -> str:
        """What the pages are."""
        try:
            told = Path("/proc/self/smaps_rollup").read_text()
            large = next(int(line.split()[1]) for line in told.splitlines() if line.startswith("AnonHugePages")) * 1024
        except (OSError, StopIteration, ValueError):
            large = 0
        return "large pages" if large >= self.chained_B // 2 else "small pages, page walks included"


class Lines:
    """The lines of a chain in its order, each given out once until all were."""

    def __init__(self, addresses: Any) -> None:
        self._addresses, self._next = addresses, 0

    def take(self, chains: int, turns: int) -> Any:
        """The first addresses of chains that do not overlap in so many turns."""
        import numpy as np

        begin, self._next = self._next, self._next + chains * turns
        return self._addresses[(begin + np.arange(chains) * turns) % len(self._addresses)]


def size_text(size_B: int) -> str:
    """A size for people.

    >>> size_text(225280), size_text(4 << 20)
    ('220 KiB', '4 MiB')
    """
    return f"{size_B / 2**20:.4g} MiB" if size_B >= 1 << 20 else f"{size_B / 1024:.4g} KiB"
