"""Operators of a network's file that nobody here knows, of which only the memory traffic is a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from archsim.trace.registry import registered
from archsim.trace.trace import BoundOp

SHOWN = 5  # operators that a sentence names


def unknown_operators(ops: Iterable[BoundOp]) -> Mapping[str, int]:
    """How many ops of each operator have no work but their memory traffic."""
    forward = [op.kind for op in ops if op.kind.op == "traffic" and op.phase == "forward"]
    names = [str(getattr(kind, "operator", "")) for kind in forward if not getattr(kind, "own", 0)]
    return Counter(names + [name for kind in forward if getattr(kind, "own", 0)
                            and registered(name := str(getattr(kind, "operator", ""))) is None])  # fmt: skip


def said_of(unknown: Mapping[str, int]) -> str:
    """A sentence about them, with the way out.

    >>> said_of({"my.Op": 2})
    '2 ops are not known here and count as their memory traffic: my.Op x 2; archsim.register_op says what one costs'
    """
    listed = [f"{name} x {count}" for name, count in sorted(unknown.items(), key=lambda each: (-each[1], each[0]))]
    more = f" and {len(listed) - SHOWN} more operators" if len(listed) > SHOWN else ""
    count = sum(unknown.values())
    what = "op is not known here and counts as its" if count == 1 else "ops are not known here and count as their"
    return f"{count} {what} memory traffic: {', '.join(listed[:SHOWN])}{more}; archsim.register_op says what one costs"
