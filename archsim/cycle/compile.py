"""The loop of the SM compiled by numba, which is optional (extra `fast`) and imported only here, on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from archsim.base.errors import MissingExtra
from archsim.base.machine_code import compiled_modules, digest
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
    """The compiled functions by name; their machine code is kept on disk between processes. Raises MissingExtra."""
    if find_spec("numba") is None:
        raise MissingExtra("a compiled simulation of the SM", "fast")
    return compiled_modules(CALLEES_FIRST, CALLED, version())
