"""The loop of the SM compiled by numba, which is optional (extra `fast`) and imported only here, on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from archsim.base.errors import MissingExtra
from archsim.base.machine_code import digest, njit
from archsim.cycle import layout, loop, memory_path

CALLEES_FIRST = {
    memory_path: ("access", "bulk"),
    loop: ("dependency", "structural", "occupy", "wake", "give", "enter", "meet", "leave", "issue", "account", "straight",
           "choose", "simulate"),
}  # fmt: skip
CALLED = ("bulk", "give", "enter", "meet", "leave", "simulate")  # seldom, so that one copy of each is enough


@lru_cache(maxsize=1)
def version() -> str:
    """Equal for equal code of the loop and of all that it calls."""
    return digest(layout, *CALLEES_FIRST)


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The compiled functions by name; their machine code is kept on disk between processes. Raises MissingExtra.

    Each function is compiled in a copy of its module's globals, in which its callees are compiled already.
    """
    if find_spec("numba") is None:
        raise MissingExtra("a compiled simulation of the SM", "fast")
    found: dict[str, Callable[..., Any]] = {}
    for module, functions in CALLEES_FIRST.items():
        names: dict[str, Any] = {**vars(module), **found}
        for name in functions:
            plain = getattr(module, name)
            copy = FunctionType(plain.__code__, names, name, plain.__defaults__)
            copy.__module__ = module.__name__
            found[name] = names[name] = njit(copy, inline=name not in CALLED, version=version())
    return found
