"""The loops that a probe times: what each of them does, and who has them.

Either LLVM compiles them (`llvm_loops`, the extra `fast`), for every processor, or some of them are there as machine code of
x86-64 (`byte_loops`). A loop that neither has is None, and what it would measure stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

LINE_B = 64  # the distance of what a chase visits: a line of most processors, half of one on some ARM cores
CHAINS = 12  # independent multiply-adds in a turn: more than latency x ports of any core, fewer than its registers


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop in machine code.

    run: runs it, with the arguments that its maker names
    per_turn: what a turn does: clocks of the chain, multiply-adds, loads of each chain, or bytes read
    """

    run: Callable[..., object]
    per_turn: int


class Loops(Protocol):
    """Makers of loops; each returns None for one that it cannot make here."""

    how: str

    def chain(self) -> Loop | None:
        """Dependent integer operations whose clocks are known: run(turns)."""

    def fma(self, bits: int, chains: int, fused: bool) -> Loop | None:
        """Independent chains of single-precision multiply-adds of `bits`: run(turns).

        fused: one instruction along the accumulator; otherwise a multiply and an add that depend on each other
        """

    def chase(self, chains: int) -> Loop | None:
        """Independent chains of loads, each of which has the address of the next: run(array of first addresses, turns)."""

    def read(self, bits: int) -> Loop | None:
        """Loads of `bits` one after the other: run(address, turns of a pass, passes)."""

    def barrier(self) -> Loop | None:
        """A barrier of threads over one counter: run(address of the counter, threads, times) -> times that it was passed."""
