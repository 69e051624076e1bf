"""The sizes that a request gives to the symbols of a network: batch, tokens, and what its file calls by names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from archsim.base.errors import ArgumentError
from archsim.trace.dims import BATCH, SEQUENCE
from archsim.trace.formats import Sizes
from archsim.trace.task import Work, prepared
from archsim.trace.trace import BoundTrace
from archsim.trace.values import MOST


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
