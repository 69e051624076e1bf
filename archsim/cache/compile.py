"""The same functions, compiled: numba is optional (extra `fast`) and imported only here, when a simulation asks for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from archsim.cache import kernel
from archsim.errors import MissingExtra

CALLEES_FIRST = (
    "bits", "widened", "touch", "victim", "serve", "place_of", "drop", "drop_above", "hand_up", "walk", "find", "remember",
    "follow",
)  # fmt: skip


def available() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The functions of `archsim.cache.kernel` as machine code, kept on disk between processes. Raises MissingExtra.

    Numba takes the functions that a function calls from its globals, so each is compiled in a copy of the module's globals
    where its callees are compiled already; the module itself stays as it is.
    """
    if not available():
        raise MissingExtra("a compiled cache simulation", "fast")
    import numba

    names: dict[str, Any] = dict(vars(kernel))
    for name in CALLEES_FIRST:
        plain = getattr(kernel, name)
        copy = FunctionType(plain.__code__, names, name, plain.__defaults__)
        copy.__module__ = kernel.__name__
        names[name] = numba.njit(copy, cache=True)
    return {name: names[name] for name in CALLEES_FIRST}
