"""The microbenchmarks of a probe, run in a process of its own, which prints a line of JSON before and after each.

    python -m archsim.detect.benchmarks '{"loops": "llvm", "simd": 256, "fused": true, "memory_B": 1000000,
      "jobs": [["clock", "clock", 1]]}'

A process of its own, because a numerical library takes its number of threads from the environment when it starts, and because an
instruction that a processor refuses must not take the caller along.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from archsim.detect.loops import CHAINS, LINE_B, ByteLoops, LlvmLoops, Loop, Loops
from archsim.detect.sampling import (
    FEWEST,
    PAGE_B,
    SAMPLES,
    SHARED_S,
    Disturbed,
    Finding,
    Lines,
    Ruler,
    Stretch,
    best_rate,
    settled,
    size_text,
    together,
)
from archsim.detect.system import allowed_here, one_of_each_core

PRODUCT = 1536  # rows and columns of the matrix product: 28 MB, large enough for full speed, short enough for a sample
IN_FLIGHT = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # chains of loads
PARTS = (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1)  # of the last cache, that are read over and over
BARRIERS = 2000
ATTEMPTS, BETWEEN = 4, 0.18  # times that a latency is measured, and by how many clocks it may miss a whole one
FEW = 4096  # loads of a sample, while others take the lines out of a cache
MAKERS: dict[str, Callable[[], Loops]] = {"llvm": LlvmLoops, "bytes": ByteLoops, "none": Loops}


class Absent(Exception):
    """The loops at hand cannot measure that."""


class Bench:
    """The microbenchmarks; `at` is the number of threads or the bytes that are visited, as `JOBS` has it."""

    def __init__(
        self, loops: str = "llvm", simd: int = 128, fused: bool = True, memory_B: int = 1 << 26, streamed_B: int = 0
    ) -> None:
        self._name, self.simd, self.fused, self.memory_B = loops, simd, fused, memory_B
        self.streamed_B = max(streamed_B, memory_B)
        self._cpus = one_of_each_core(Path("/"), allowed_here())
        self._lines = Lines(())
        self._shares: tuple[int, list[Stretch]] = 0, []

    @functools.cached_property
    def loops(self) -> Loops:
        """The makers of loops; OSError, RuntimeError or ImportError, with the reason, where they cannot be had here."""
        return MAKERS[self._name]()

    @functools.cached_property
    def ruler(self) -> Ruler:
        """The chain that tells the clock."""
        ruler = Ruler(_present(self.loops.chain()))
        ruler.warm()
        return ruler

    @functools.cached_property
    def memory(self) -> Stretch:
        """Stretch for chains of loads and for reads of one core."""
        return Stretch(self.memory_B)

    def clock(self, threads: int) -> Finding:
        """Core clock while so many cores run scalar code [Hz]."""
        return self._rate(_present(self.loops.chain()), threads)

    def fma_latency(self, bits: int) -> Finding:
        """Latency of a multiply-add along its accumulator [clk]."""
        return whole(lambda: self._fma_clocks(bits, 1))

    def fma_per_clock(self, bits: int) -> Finding:
        """Multiply-adds of that width that one core starts per clock [1/clk]."""
        found = self._fma_clocks(bits, CHAINS)
        return Finding(1 / found.value, found.spread)

    def _fma_clocks(self, bits: int, chains: int) -> Finding:
        loop = _present(self.loops.fma(bits, chains, self.fused))
        turns = self.ruler.turns(loop.run, 64)
        loop.run(40 * turns)  # some cores lower their clock a while after the first wide instruction
        return self.ruler.clocks(lambda: loop.run(turns), turns * loop.per_turn).finding()

    def fma(self, bits: int, threads: int) -> Finding:
        """Multiply-adds of `bits` that each of some threads completes [1/s]."""
        return self._rate(_present(self.loops.fma(bits, CHAINS, self.fused)), threads)

    fma128 = functools.partialmethod(fma, 128)
    fma256 = functools.partialmethod(fma, 256)
    fma512 = functools.partialmethod(fma, 512)

    def _rate(self, loop: Loop, threads: int) -> Finding:
        """What each of so many cores does of a loop that all of them run at once [1/s]."""
        turns = self.ruler.turns(loop.run, 64, SHARED_S)
        rate = best_rate([lambda: loop.run(turns)] * threads, threads * turns * loop.per_turn, self._cpus, alone=False)
        return Finding(rate.best / threads, rate.spread)

    def latency(self, size_B: int) -> Finding:
        """Load-to-use latency within so many bytes [clk]: every load has the address of the next one, in random order."""
        loop, place = self._cycle(size_B)
        loop.run(place.ctypes.data, size_B // LINE_B * 2)  # all of it in the caches that hold it
        turns = self.ruler.turns(lambda n: loop.run(place.ctypes.data, n), 1000)
        found = self.ruler.clocks(lambda: loop.run(place.ctypes.data, turns), turns, 0.1)
        return found.finding(f"a chain of loads over {size_text(size_B)}, {self.memory.pages}")

    def first_latency(self, size_B: int) -> Finding:
        """The same of the first cache, whose hits take whole clocks [clk]."""
        return whole(lambda: self.latency(size_B))

    def shared_latency(self, size_B: int) -> Finding:
        """Latency of a cache that others use too [clk]: of lines that were just driven out of the caches before it.

        Each sample visits some of the lines of `size_B`, right after these and twice as many bytes were read.
        """
        loop, place = self._cycle(size_B)
        own, others = self.memory.words[: size_B // 8], self.memory.words[size_B // 8 : 3 * size_B // 8]
        others.fill(0)

        def prepare() -> None:
            own.max()
            others.max()

        found = self.ruler.clocks(lambda: loop.run(place.ctypes.data, FEW), FEW, 0.5, 2 * SAMPLES, prepare)
        how = f"a chain of loads over {size_text(size_B)} that {size_text(2 * size_B)} drove out of the cache before"
        return found.finding(f"{how}, {self.memory.pages}")

    def tlb_miss(self, pages: int) -> Finding:
        """What a load takes longer where its page is in no TLB [clk]: a line of each of so many small pages.

        Beside it stands a chain through as many lines side by side, which lie in the same cache.
        """
        near = self.latency(pages * LINE_B)
        small = Stretch(pages * PAGE_B, large=False)
        loop, place = _present(self.loops.chase(1)), np.array(small.pages_chain(pages)[:1], np.uint64)
        loop.run(place.ctypes.data, 2 * pages)
        turns = self.ruler.turns(lambda n: loop.run(place.ctypes.data, n), 1000)
        far = self.ruler.clocks(lambda: loop.run(place.ctypes.data, turns), turns, 0.3)
        return Finding(far.best - near.value, far.spread, f"{far.best:.1f} clk for loads of {pages} pages in random order, "
                     f"{near.value:.1f} clk for as many lines side by side")  # fmt: skip

    def _cycle(self, size_B: int) -> tuple[Loop, Any]:
        """A chase, and the place of the address where it goes on, in an array [1]."""
        loop = _present(self.loops.chase(1))
        return loop, np.array(self.memory.chain(size_B)[:1], np.uint64)

    def memory_latency(self, size_B: int) -> Finding:
        """Load-to-use latency of main memory [s]."""
        del size_B
        found = self.ruler.seconds(*self._chase(1), apart=0.3)
        return found.finding(f"a chain of loads over {size_text(self.memory.size_B)}, {self.memory.pages}")

    def in_flight(self, size_B: int) -> Finding:
        """Lines that one core has on their way from memory at once [1]: what more chains of loads gain (Little's law)."""
        del size_B
        rates: dict[int, float] = {}
        spread = 0.0
        for chains in IN_FLIGHT:
            try:
                found = self.ruler.seconds(*self._chase(chains), apart=0.3)
            except Disturbed:
                if not rates:  # the single chain, beside which the others stand
                    raise
                continue
            rates[chains], spread = 1 / found.best, max(spread, found.spread)
            if chains >= 4 * _knee(rates):
                break
        if len(rates) < FEWEST:
            raise Disturbed("samples of most numbers of chains disagree")
        gained = {chains: rate / rates[1] for chains, rate in rates.items()}
        most = max(gained, key=lambda chains: gained[chains])
        return Finding(gained[most], spread, f"{most} chains of loads are {gained[most]:.1f} times as fast as one")

    def _chase(self, chains: int) -> tuple[Callable[[], object], int]:
        """Chains through lines of the whole memory that no sample has visited yet, and the loads of a sample."""
        loop = _present(self.loops.chase(chains))
        if self.memory.chained_B != self.memory.size_B:
            self._lines = Lines(self.memory.chain(self.memory.size_B))
        lines, turns = self._lines, 4000 // chains + 200

        def work() -> None:
            starts = np.array(lines.take(chains, turns), np.uint64)
            loop.run(starts.ctypes.data, turns)

        return work, chains * turns

    def read(self, size_B: int) -> Finding:
        """Read bandwidth of one core within so many bytes [B/clk]."""
        return self._read(size_B, 0.15)

    def shared_read(self, size_B: int) -> Finding:
        """The same of a cache that others use too."""
        return self._read(size_B, 0.6)

    def _read(self, size_B: int, apart: float) -> Finding:
        loop = _present(self.loops.read(self.simd))
        turns = max(1, min(size_B, self.memory.size_B) // loop.per_turn)
        visited = turns * loop.per_turn
        address = self._touched(visited)
        loop.run(address, turns, 2)
        passes = self.ruler.turns(lambda n: loop.run(address, turns, n), 1)
        found = self.ruler.clocks(lambda: loop.run(address, turns, passes), passes * visited, apart)
        return Finding(1 / found.best, found.spread, f"reads of {self.simd} bit over {size_text(visited)}")

    def _touched(self, size_B: int) -> int:
        """The address of memory of which the first bytes have pages of their own."""
        self.memory.words[: size_B // 8 : 512] = self.memory.words[: size_B // 8 : 512]
        return self.memory.address

    def reach(self, size_B: int) -> Finding:
        """Bytes up to which one core reads at the speed of a cache [B], which is said to hold `size_B`.

        That is, faster than the mean of logarithms of the speeds within an eighth of it and in all of the memory.
        """
        sizes = [int(part * size_B) for part in PARTS if part * size_B <= self.memory.size_B]
        speeds = {size: self._read(size, 1.0).value for size in sizes}
        memory = self._read(self.memory.size_B, 1.0).value
        if not sizes or speeds[sizes[0]] < 1.5 * memory:
            raise Disturbed("reads from memory are as fast as those from the cache")
        least = math.sqrt(speeds[sizes[0]] * memory)
        held = sizes[0]
        for size in sizes:
            if speeds[size] < least:
                break
            held = size
        speeds[self.memory.size_B] = memory
        return Finding(held, 0.0, ", ".join(f"{speed:.0f} B/clk within {size_text(size)}" for size, speed in speeds.items()))

    def memory_read(self, threads: int) -> Finding:
        """Read bandwidth of main memory by so many cores [B/s]."""
        loop = _present(self.loops.read(self.simd))
        pieces = self._pieces(threads)
        turns = pieces[0].slice_B // loop.per_turn
        work = [lambda piece=piece: loop.run(piece.next_slice(), turns, 1) for piece in pieces]
        return best_rate(work, threads * turns * loop.per_turn, self._cpus).finding()

    def copy(self, threads: int) -> Finding:
        """Copy bandwidth of main memory by so many cores, bytes read plus written [B/s]."""
        pieces = self._pieces(threads)
        half = pieces[0].slice_B // 16

        def work(piece: Stretch) -> None:
            begin = (piece.next_slice() - piece.address) // 8
            np.copyto(piece.words[begin : begin + half], piece.words[begin + half : begin + 2 * half])

        return best_rate([functools.partial(work, piece) for piece in pieces], threads * 16 * half, self._cpus).finding()

    def _pieces(self, threads: int) -> list[Stretch]:
        """Stretch of each thread, which touches it first, so that it lies with its socket."""
        if self._shares[0] != threads:
            self._shares = 0, []  # the old ones go before the new ones come
            pieces = [Stretch(self.streamed_B // threads) for _ in range(threads)]
            together([functools.partial(piece.words.fill, 1) for piece in pieces], self._cpus)
            self._shares = threads, pieces
        return self._shares[1]

    def barrier(self, threads: int) -> Finding:
        """Time of a barrier of so many threads that spin [s]."""
        loop, counter = _present(self.loops.barrier()), ctypes.c_uint64()
        times: list[float] = []
        for _ in range(8):
            counter.value = 0
            passed: list[object] = []
            work = functools.partial(_pass, loop, ctypes.addressof(counter), threads, passed)
            turns = together([work] * threads, self._cpus)
            if passed == [BARRIERS] * threads:
                times.append(max(turn.spent for turn in turns) / BARRIERS)
        if len(times) < FEWEST:
            raise Disturbed("a thread did not arrive, because other work had its core")
        return settled(times, 1.0).finding()

    def product(self, threads: int) -> Finding:
        """Rate of a single-precision matrix product of 1536 rows and columns [FLOP/s]; the library has been told its threads."""
        a, b, c = (np.ones((PRODUCT, PRODUCT), np.float32) for _ in range(3))
        np.matmul(a, b, out=c)
        times = []
        for _ in range(5):
            begin = time.process_time()
            np.matmul(a, b, out=c)
            times.append((time.process_time() - begin) / threads)
        best = settled(times, 1.0)
        return Finding(2.0 * PRODUCT**3 / best.best, best.spread)


def whole(measured: Callable[[], Finding]) -> Finding:
    """A latency that has whole clocks: measured again where it comes out between them, as beside a disturbed chain."""
    for _ in range(ATTEMPTS):
        found = measured()
        if abs(found.value - round(found.value)) <= BETWEEN:
            return found
    raise Disturbed(f"{found.value:.2f} clk is no whole number of clocks")


def _knee(rates: dict[int, float]) -> int:
    """The fewest chains that are within 5 % of the fastest."""
    return min(chains for chains, rate in rates.items() if rate > 0.95 * max(rates.values()))


def _pass(loop: Loop, counter: int, threads: int, passed: list[object]) -> None:
    """Pass the barrier many times."""
    passed.append(loop.run(counter, threads, BARRIERS))


def _present(loop: Loop | None) -> Loop:
    if loop is None:
        raise Absent("")
    return loop


# ---------------------------------------------------------------------------------------------- the process


def main(asked: str) -> None:
    """Run the jobs, with a line before each and one after it."""
    words = json.loads(asked)
    jobs = words.pop("jobs")
    bench = Bench(**words)
    try:
        if bench.loops.chain() is not None:
            _ = bench.ruler
    except (OSError, ImportError, RuntimeError) as error:
        _say(without=_reason(error))
        return
    _say(how=bench.loops.how)
    for key, what, at in jobs:
        _say(begins=[key, what, at])
        try:
            found: Finding = getattr(bench, what)(at)
            _say(key=key, at=at, **found._asdict())
        except Absent:
            _say(absent=key)
        except (Disturbed, OSError, MemoryError, RuntimeError) as error:
            _say(failed=key, at=at, why=_reason(error))


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _say(**words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
