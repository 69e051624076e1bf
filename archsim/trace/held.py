"""Networks of a running program, under names that stand wherever the name of a network does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from archsim.base.errors import UnknownName
from archsim.trace.file import digest
from archsim.trace.formats import unknown_symbol
from archsim.trace.trace import Trace

HELD: dict[str, Trace] = {}
SUFFIX = ".held"


def hold(trace: Trace) -> str:
    """The name under which a trace is known from now on, in this process; equal traces have one name."""
    plain = "".join(c if c.isalnum() or c in "_-" else "_" for c in trace.name)[:60]
    name = f"{plain}.{digest(trace)[:8]}{SUFFIX}"
    HELD[name] = trace
    return name


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The trace of a name that `hold` gave. Raises UnknownName, or ArgumentError for a symbol that it does not have."""
    if str(path) not in HELD:
        raise UnknownName("network", str(path), [*HELD], "a network of a running program is known in its own process only")
    trace = HELD[str(path)]
    for name in sizes:
        if not trace.symbol_called(name):
            raise unknown_symbol(trace.name, name, trace.free_symbols)
    return trace
