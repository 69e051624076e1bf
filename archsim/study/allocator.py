"""Freed memory kept for the next arrays."""

from __future__ import annotations

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h of the GNU C library
KEPT = 256 << 20  # B


def keep_freed_memory() -> bool:
    """Let this process keep up to `KEPT` bytes that it has freed; whether its C library can.

    A sweep makes and drops arrays of a quarter of a megabyte thousands of times a second. The GNU C library gives such memory
    back to the system each time, and getting its pages anew takes a third of the whole time. Elsewhere nothing changes.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, KEPT) and mallopt(M_MMAP_THRESHOLD, KEPT))
