"""Functions as machine code, by numba: the optional extra `fast`, imported only here and where it is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from archsim.base.errors import MissingExtra

UNCOUNTED = "_nrt"  # numba's option without which it leaves out what counts the references to arrays


def digest(*modules: ModuleType) -> str:
    """A short text that changes with the source of any of some modules."""
    return hashlib.sha256(b"".join(Path(str(module.__file__)).read_bytes() for module in modules)).hexdigest()[:12]


def available() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


def compiled_modules(
    callees_first: Mapping[ModuleType, Sequence[str]], separate: Collection[str], version: str, what: str,
    instead: Mapping[str, Any] | None = None,
) -> dict[str, Callable[..., Any]]:  # fmt: skip
    """Functions of some modules by name, each compiled in a copy of its module's globals, in which its callees are compiled
    already; their machine code is kept on disk between processes. Raises MissingExtra.

    separate: those of which one copy is enough; the others become part of whatever calls them
    what: they are, for a reader without numba
    instead: of functions that are written otherwise as machine code, what takes their places, by name
    """
    if not available():
        raise MissingExtra(what, "fast")
    found: dict[str, Callable[..., Any]] = {}
    for module, functions in callees_first.items():
        names: dict[str, Any] = {**vars(module), **(instead or {}), **found}
        for name in functions:
            plain = names[name]
            copy = FunctionType(plain.__code__, names, name, plain.__defaults__)
            copy.__module__ = module.__name__
            found[name] = names[name] = njit(copy, inline=name not in separate, version=version)
    return found


def njit(function: FunctionType, *, version: str, inline: bool = False) -> Callable[..., Any]:
    """A function of numbers and of arrays that its caller keeps, and which makes none, compiled on first use.

    version: of the function and of all that it calls. Its machine code is kept on disk under that, where numba finds a folder
    that it may write; by itself numba notices changes of the function's own file only

    Arrays are passed on without counting references: each count is an atomic operation, and functions that pass on twenty arrays
    do little else.
    """
    import numba
    from numba.core.cpu import CPUTargetOptions

    function.__qualname__ = f"{function.__name__}_{version}"
    options: dict[str, Any] = {"inline": "always" if inline else "never"}
    if hasattr(CPUTargetOptions, UNCOUNTED):  # without it slower, with the same results
        options[UNCOUNTED] = False
    try:
        compiled: Callable[..., Any] = numba.njit(function, cache=True, **options)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        compiled = numba.njit(function, **options)
    return compiled
