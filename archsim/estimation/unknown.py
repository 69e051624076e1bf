"""Operators of a network's file that nobody here knows, of which only the memory traffic is a bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from archsim.base.units import show
from archsim.trace.kinds.general import Collective, Stated, registered
from archsim.trace.trace import BoundOp, BoundTrace

BOUNDED = ("traffic", "stated", "collective")  # op kinds of which only a bound may be known
STRICT = "--strict refuses them"  # the way to an error in place of a bound
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


def bounded(trace: BoundTrace) -> list[str]:
    """Sentences about what of a network's file is no op, and about ops of which only a bound is known: unknown operators, work of
    unknown form, communication that one device does not see."""
    found = [trace.left_out] if trace.left_out else []
    listed = [op for op in trace.ops if op.kind.op in BOUNDED]
    if unknown := unknown_operators(listed):
        found.append(said_of(unknown))
    stated = [op.kind for op in listed if isinstance(op.kind, Stated) and op.kind.flops and not op.kind.own]
    if stated:
        work = show(float(sum(kind.flops for kind in stated)), "FLOP", 3)
        said = _count(stated, "op states its", "ops state their")
        found.append(f"{said} arithmetic ({work}) and not its form; it counts as that of the vector lanes, an upper bound for "
                     "products of matrices")  # fmt: skip
    sent = [op.kind for op in listed if isinstance(op.kind, Collective)]
    if sent:
        names = ", ".join(f"{name} x {count}" for name, count in Counter(kind.function for kind in sent).most_common())
        size = show(float(sum(kind.size for kind in sent)), "B", 3)
        verb = _count(sent, "op communicates", "ops communicate")
        found.append(f"{verb} ({names}; {size}); on one device only the memory traffic counts, a lower bound: archsim simulate "
                     "allreduce has times of links")  # fmt: skip
    return found


def _count(items: list[Stated] | list[Collective], one: str, several: str) -> str:
    return f"{len(items)} {one if len(items) == 1 else several}"
