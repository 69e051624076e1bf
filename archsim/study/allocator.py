"""A setting of the C library that keeps freed memory for the next arrays."""

from __future__ import annotations

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h of the GNU C library
KEPT = 256 << 20  # B of freed memory that the process keeps


def keep_freed_memory() -> bool:
    """Let this process keep up to `KEPT` bytes that it has freed; returns whether the C library supports it.

    A sweep allocates and frees arrays of a quarter of a megabyte thousands of times a second. The GNU C library returns such
    memory to the system each time, and the page faults of getting it back take a third of the run time. Other C libraries are
    left alone.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, KEPT) and mallopt(M_MMAP_THRESHOLD, KEPT))
