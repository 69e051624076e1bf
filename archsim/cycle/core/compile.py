"""The pipeline of a core compiled by numba, which is optional (extra `fast`) and imported only on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from archsim.base.errors import MissingExtra
from archsim.base.machine_code import compiled_modules, digest
from archsim.cycle.core import layout, timeline

CALLEES_FIRST = {
    timeline: ("advance", "release", "carried", "slot_of", "ask_far", "ask", "touch", "free_port", "take", "fetched", "branched",
               "mispredicted", "room", "retire", "operands", "simulate"),
}  # fmt: skip
SEPARATE = ("ask_far", "ask", "touch", "advance", "simulate")  # one copy of each is enough


@lru_cache(maxsize=1)
def version() -> str:
    """Equal for equal code of the pipeline."""
    return digest(layout, timeline)


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The compiled functions by name; their machine code is kept on disk between processes. Raises MissingExtra."""
    if find_spec("numba") is None:
        raise MissingExtra("a compiled simulation of a core", "fast")
    return compiled_modules(CALLEES_FIRST, SEPARATE, version())
