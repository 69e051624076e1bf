"""The same functions, compiled: numba is optional (extra `fast`) and imported only here, when a simulation asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

from archsim.cache import follow, kernel
from archsim.errors import MissingExtra

CALLEES_FIRST = {
    kernel: ("bits", "widened", "touch", "victim", "serve", "place_of", "drop", "drop_above", "hand_up", "walk"),
    follow: ("find", "remember", "follow"),
}


def available() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The functions of `kernel` and `follow` as machine code, kept on disk between processes. Raises MissingExtra.

    Numba takes the functions that a function calls from its globals, so each is compiled in a copy of the module's globals
    where its callees are compiled already; the module itself stays as it is.
    """
    if not available():
        raise MissingExtra("a compiled cache simulation", "fast")
    import numba

    found: dict[str, Callable[..., Any]] = {}
    for module, functions in CALLEES_FIRST.items():
        names: dict[str, Any] = {**vars(module), "STOPS": False}
        for name in functions:
            plain = getattr(module, name)
            copy = FunctionType(plain.__code__, names, name, plain.__defaults__)
            copy.__module__ = module.__name__
            found[name] = names[name] = numba.njit(copy, cache=True)
    return found


def functions_of(module: ModuleType, fast: bool) -> Mapping[str, Callable[..., Any]]:
    """The functions of a module as they are, or compiled."""
    return compiled() if fast else vars(module)
