"""Functions as machine code, by numba: the optional extra `fast`, imported only here and where it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def njit(function: Callable[..., Any], *, inline: bool = False) -> Any:
    """A function compiled on first use; its machine code is kept on disk where numba finds a folder that it may write."""
    import numba

    options = {"inline": "always" if inline else "never"}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return numba.njit(function, **options)
