"""The sizes that a request gives to the symbols of a network: batch, tokens, and what its file calls by names of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from archsim.base.errors import ArgumentError
from archsim.base.units import show
from archsim.trace.dims import BATCH, SEQUENCE
from archsim.trace.formats import Sizes
from archsim.trace.kind import FORWARD
from archsim.trace.kinds.general import Collective, Stated, registered
from archsim.trace.task import Work, prepared
from archsim.trace.trace import BoundOp, BoundTrace
from archsim.trace.values import MOST

BOUNDED = ("traffic", "stated", "collective")  # op kinds of which only a bound may be known
STRICT = "--strict refuses them"  # the way to an error in place of a bound
SHOWN = 5  # operators that a sentence names


def sizes_of(bind: Mapping[str, int] | None) -> Sizes:
    """Sizes of symbols in the order of their names. Raises ArgumentError for one that is no whole number from 1 on."""
    for name, size in (bind or {}).items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
            raise ArgumentError(f"bind: {name}={size}: is not a whole number between 1 and {MOST}")
    return tuple(sorted((bind or {}).items()))


def sized(work: Work, batch: int | None, seq_len: int | None) -> tuple[int | None, int | None]:
    """Batch and tokens, where they were given by the names that the network's file has for them."""
    if not work.sizes:
        return batch, seq_len
    trace, found = prepared(*work), {BATCH: batch, SEQUENCE: seq_len}
    for name, size in work.sizes:
        symbol = trace.symbol_called(name)
        if symbol in found:
            other = found[symbol]
            if other not in (None, size):
                option = "--batch" if symbol == BATCH else "--seq-len"
                raise ArgumentError(f"bind: {name}={size}: {option} says {other}; {option} alone does as well")
            found[symbol] = size
    return found[BATCH], found[SEQUENCE]


@lru_cache(maxsize=256)
def bound(work: Work, batch: int, seq_len: int | None) -> BoundTrace:
    """The ops of a task, with all sizes known. Raises ArgumentError for a size that is missing, or that no shape has."""
    trace = prepared(*work)
    named = {trace.symbol_called(name): size for name, size in work.sizes}
    symbols = {symbol: size for symbol, size in named.items() if symbol}
    symbols |= {BATCH: batch} if BATCH in trace.free_symbols else {}
    if seq_len is not None:
        if SEQUENCE not in trace.free_symbols:
            own = next((trace.symbols.get(symbol, symbol) for symbol in trace.free_symbols if symbol != BATCH), "")
            way = f"; its file calls a size {own}: --bind {own}={seq_len}" if own else ""
            raise ArgumentError(f"seq_len: network {trace.name} takes no sequences of a length that can be set{way}")
        symbols[SEQUENCE] = seq_len
    free = [symbol for symbol in trace.unsized if symbol not in symbols]
    if free:
        said = {symbol: trace.symbols.get(symbol, symbol) for symbol in free}
        listed = ", ".join(symbol if symbol == name else f"{symbol} ({name})" for symbol, name in said.items())
        ways = " ".join(f"--bind {symbol if ' ' in name else name}=SIZE" for symbol, name in said.items())
        raise ArgumentError(f"network {trace.name} needs sizes for {listed}: {ways}")
    try:
        return trace.bind(**symbols)
    except ValueError as error:
        raise ArgumentError(str(error)) from None


def samples_of(work: Work, batch: int | None) -> int:
    """Samples of a run; without a batch 1, or what the shapes fix. Raises ArgumentError for another batch than they fix."""
    trace = prepared(*work)
    try:
        return trace.samples(batch)
    except ValueError as error:
        raise ArgumentError(f"{work.net}: {error}") from None


def unknown_operators(ops: Iterable[BoundOp]) -> Mapping[str, int]:
    """How many ops of each operator have no work but their memory traffic."""
    forward = [op.kind for op in ops if op.kind.op == "traffic" and op.phase == FORWARD]
    names = [(str(getattr(kind, "operator", "")), getattr(kind, "own", 0)) for kind in forward]
    return Counter(name for name, own in names if not own or registered(name) is None)


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
