"""A network to be looked at: its trace, or where its file has operators that are not read, what became of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.trace.file import canonical, load
from archsim.trace.trace import BoundTrace, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNetwork:
    """A network, None where its file has operators that are not read, and the operators of its file."""

    name: str
    trace: Trace | None
    bound: BoundTrace | None
    sizes: Mapping[str, int]
    operators: list[Any]

    def raise_refused(self) -> None:
        """Raise InputError where there is no network."""
        if self.trace is None:
            refused = [row for row in self.operators if row.status == "refused"]
            raise InputError(self.name, f"has operators that are not read: {', '.join(row.operator for row in refused)}")


def network_of(name: str, sizes: Mapping[str, int]) -> ShownNetwork:
    """The network of a name or a path, with the sizes that were given for the symbols of its file."""
    from archsim.trace.formats import format_of, is_path

    name = canonical(name)
    operators: list[Any] = []
    trace: Trace | None
    if is_path(name):
        trace, operators = format_of(Path(name)).mapping(Path(name), dict(sizes))
    else:
        trace = load(name, tuple(sizes.items()))
    if trace is None:
        return ShownNetwork(name=name, trace=None, bound=None, sizes=sizes, operators=operators)
    symbols = dict.fromkeys(trace.unsized, 1)
    symbols |= {symbol: size for key, size in sizes.items() if (symbol := trace.symbol_called(key))}
    return ShownNetwork(name=name, trace=trace, bound=trace.bind(**symbols), sizes=symbols, operators=operators)
