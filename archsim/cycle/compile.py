"""The loop of the SM compiled by numba, which is optional (extra `fast`) and imported only here, on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from archsim.base.errors import MissingExtra
from archsim.base.machine_code import njit
from archsim.cycle import loop

CALLEES_FIRST = ("dependency", "structural", "occupy", "access", "bulk", "give", "enter", "meet", "leave", "issue", "account",
                 "choose", "simulate")  # fmt: skip


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The compiled functions by name; their machine code is kept on disk between processes. Raises MissingExtra.

    Each function is compiled in a copy of its module's globals, in which its callees are compiled already.
    """
    if find_spec("numba") is None:
        raise MissingExtra("a compiled simulation of the SM", "fast")
    names: dict[str, Any] = dict(vars(loop))
    for name in CALLEES_FIRST:
        plain = getattr(loop, name)
        copy = FunctionType(plain.__code__, names, name, plain.__defaults__)
        copy.__module__ = loop.__name__
        names[name] = njit(copy, inline=name != "simulate")
    return {name: names[name] for name in CALLEES_FIRST}
