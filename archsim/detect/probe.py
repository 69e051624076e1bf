"""Microbenchmarks of this computer, each in a process of its own: clock, latencies, copy bandwidth, matrix product.

    python -m archsim.detect.probe clock 2        prints one JSON number

A process of its own, because a numerical library takes its number of threads from the environment when it starts, and
because a loop of machine code that a processor refuses must not take the caller along. Each figure is the best of several
short windows of processor time, because other work can only make a window slower.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WINDOW_S = 0.08
WINDOWS = 5
CHAIN, MULTIPLY_CLK = 16, 3  # dependent 64-bit multiplies in a turn of the loop, latency of each (Agner Fog, instruction tables)
CLOCK_LOOP = b"\x48\x0f\xaf\xc0" * CHAIN + b"\x48\x83\xef\x01\x75\xba\xc3"  # imul rax,rax ...; sub rdi,1; jnz; ret
CHASE_LOOP = b"\x48\x8b\x3f\x48\xff\xce\x75\xf8\x48\x89\xf8\xc3"  # mov rdi,[rdi]; dec rsi; jnz; mov rax,rdi; ret
FMA_CHAINS = 12  # independent multiply-adds in a turn: more than latency x ports of any core, fewer than its registers
LINE_B = 64
PRODUCT = 1536  # rows and columns of the matrix product: 28 MB, large enough for full speed, short enough for a window
LIMIT_S = 60
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Results of the microbenchmarks, each keyed by the number of threads that ran at once.

    clock_Hz: core clock [Hz]
    fma256_ps, fma512_ps: multiply-adds of 256 and 512 bit that one core starts [1/s]
    copy_Bps: copies of all threads, bytes read plus bytes written [B/s]
    product_flops: single-precision matrix product of all threads [FLOP/s]
    latency_s: load-to-use latency [s], keyed by the size of the set of lines that the loads visit [B]
    failed: what could not be measured and why, in sentences
    """

    clock_Hz: dict[int, float] = field(default_factory=dict)
    fma256_ps: dict[int, float] = field(default_factory=dict)
    fma512_ps: dict[int, float] = field(default_factory=dict)
    copy_Bps: dict[int, float] = field(default_factory=dict)
    product_flops: dict[int, float] = field(default_factory=dict)
    latency_s: dict[int, float] = field(default_factory=dict)
    failed: tuple[str, ...] = ()


def counts(most: int) -> list[int]:
    """Thread counts worth measuring: powers of two, and all.

    >>> counts(6)
    [1, 2, 4, 6]
    """
    powers = [1 << i for i in range(most.bit_length()) if 1 << i < most]
    return [*powers, most]


def measure(threads: int, simd: int, copied_B: int, walked_B: int, tell: Tell = lambda text: None) -> Probe:
    """Run every microbenchmark.

    threads: the most that run at once; simd: width of the widest registers [bit]
    copied_B: bytes that all threads together move in a copy; walked_B: size of the set of lines that dependent loads visit [B]
    tell: told what is being measured
    """
    ends = list(dict.fromkeys((1, threads)))
    jobs: list[tuple[str, int, tuple[int, ...]]] = [("clock", n, ()) for n in ends]
    jobs += [(f"fma{bits}", n, ()) for bits in (256, 512) if bits <= simd for n in ends]
    jobs += [("copy", n, (copied_B // n,)) for n in counts(threads)]
    jobs += [("product", n, ()) for n in counts(threads)]
    jobs += [("latency", walked_B, ())]
    failed: list[str] = []
    found: dict[str, dict[int, float]] = {what: {} for what in WORK}
    for what, n, more in jobs:
        tell(f"probing: {what}" + (f", {n} threads" if what != "latency" else ""))
        value = _child(what, n, *more)
        if isinstance(value, float):
            found[what][n] = value
        else:
            failed.append(f"{what}: {value}")
    return Probe(
        clock_Hz=found["clock"], fma256_ps=found["fma256"], fma512_ps=found["fma512"], copy_Bps=found["copy"],
        product_flops=found["product"], latency_s=found["latency"], failed=tuple(dict.fromkeys(failed)),
    )  # fmt: skip


def _child(what: str, *numbers: int) -> float | str:
    """The result of one microbenchmark, or why there is none."""
    threads = str(numbers[0]) if what == "product" else "1"
    environment = os.environ | dict.fromkeys(BLAS_THREADS, threads)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    words = [sys.executable, "-m", "archsim.detect.probe", what, *map(str, numbers)]
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"took more than {LIMIT_S} s"
    except OSError as error:
        return f"could not be started ({error.strerror or error})"
    if done.returncode:
        return f"ended with {done.returncode}: {(done.stderr.strip().splitlines() or ['no word'])[-1][:200]}"
    return float(json.loads(done.stdout))


# ---------------------------------------------------------------------------------------------- in the process of its own


def best_rate(work: Callable[[int], float], threads: int, library_threads: int = 1) -> float:
    """The highest rate of several windows: the work of all threads over the processor time of the busiest [1/s].

    Processor time leaves out the moments in which other programs had the core. `library_threads` are those that a library starts
    inside one call; `work(thread)` returns what it did.
    """
    rates = []
    for _ in range(WINDOWS):
        done, spent = [0.0] * threads, [0.0] * threads
        gate = threading.Barrier(threads)

        def run(place: int, done: list[float] = done, spent: list[float] = spent, gate: threading.Barrier = gate) -> None:
            clock = time.process_time if library_threads > 1 else time.thread_time
            gate.wait()
            begin = clock()
            done[place] = work(place)
            spent[place] = (clock() - begin) / library_threads

        workers = [threading.Thread(target=run, args=(place,)) for place in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        rates.append(sum(done) / max(spent))
    return max(rates)


def machine_code(code: bytes, *kinds: Any) -> Callable[..., int]:
    """A function of x86-64 machine code; raises OSError on another processor or where memory may not be executed."""
    import ctypes
    import mmap

    if platform.machine() not in ("x86_64", "AMD64"):
        raise OSError("the loop is written for x86-64")
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, *kinds)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    function.page = page  # type: ignore[attr-defined]
    return function


def clock(threads: int) -> float:
    """Core clock while `threads` cores run [Hz]: dependent 64-bit multiplies x 3 clk each / time."""
    import ctypes

    loop = machine_code(CLOCK_LOOP, ctypes.c_uint64)
    turns = int(WINDOW_S * 3e9 / (CHAIN * MULTIPLY_CLK))

    def work(_: int) -> float:
        loop(turns)
        return float(turns * CHAIN * MULTIPLY_CLK)

    return best_rate(work, threads) / threads


def fma_loop(bits: int) -> bytes:
    """Machine code of a loop of 12 independent multiply-adds of `bits` (VFMADD231PS on registers 0 to 11, all zero).

    VEX.256.66.0F38.W0 B8 /r and EVEX.512.66.0F38.W0 B8 /r (VFMADD231PS) of Intel's instruction set reference.
    """
    body = b""
    for i in range(FMA_CHAINS):
        low, vvvv, modrm = i < 8, (~i & 15) << 3, 0xC0 | (i & 7) * 9
        if bits == 512:
            body += bytes((0x62, 0xF2 if low else 0x52, vvvv | 0x05, 0x48, 0xB8, modrm))
        else:
            body += bytes((0xC4, 0xE2 if low else 0x42, vvvv | 0x05, 0xB8, modrm))
    back = -(len(body) + 6) & 0xFF
    return b"\xc5\xfc\x77" + body + bytes((0x48, 0x83, 0xEF, 0x01, 0x75, back)) + b"\xc5\xf8\x77\xc3"


def fma(bits: int, threads: int) -> float:
    """Multiply-adds of `bits` that one core starts while `threads` cores do [1/s]."""
    import ctypes

    loop = machine_code(fma_loop(bits), ctypes.c_uint64)
    turns = int(WINDOW_S * 3e9 / FMA_CHAINS)

    def work(_: int) -> float:
        loop(turns)
        return float(turns * FMA_CHAINS)

    return best_rate(work, threads) / threads


def fma256(threads: int) -> float:
    """`fma` of 256 bit."""
    return fma(256, threads)


def fma512(threads: int) -> float:
    """`fma` of 512 bit."""
    return fma(512, threads)


def copy(threads: int, size_B: int) -> float:
    """Copy bandwidth [B/s], bytes read plus written, of `threads` threads that each copy an array of `size_B` / 2 bytes."""
    import numpy as np

    pairs = [(np.ones(size_B // 8, np.float32), np.ones(size_B // 8, np.float32)) for _ in range(threads)]

    def work(place: int) -> float:
        source, target = pairs[place]
        np.copyto(target, source)
        return float(source.nbytes + target.nbytes)

    return best_rate(work, threads)


def product(threads: int) -> float:
    """Rate of a single-precision matrix product of 1536 rows and columns [FLOP/s]; the library has been told its `threads`."""
    import numpy as np

    a, b, c = (np.ones((PRODUCT, PRODUCT), np.float32) for _ in range(3))

    def work(_: int) -> float:
        np.matmul(a, b, out=c)
        return 2.0 * PRODUCT**3

    np.matmul(a, b, out=c)
    return best_rate(work, 1, library_threads=threads)


def latency(size_B: int) -> float:
    """Load-to-use latency [s]: time per load of a chain that visits every line of `size_B` bytes in random order."""
    import ctypes

    import numpy as np

    loop = machine_code(CHASE_LOOP, ctypes.c_void_p, ctypes.c_uint64)
    lines = max(2, size_B // LINE_B)
    order = np.random.default_rng(0).permutation(lines)
    memory = np.zeros(lines * LINE_B // 8 + LINE_B // 8, np.uint64)
    start = -(-memory.ctypes.data // LINE_B) * LINE_B
    words = memory[(start - memory.ctypes.data) // 8 :]
    words[order * (LINE_B // 8)] = (start + np.roll(order, -1) * LINE_B).astype(np.uint64)
    steps = max(200_000, min(lines, 2_000_000))
    loop(start, steps)

    def work(_: int) -> float:
        loop(start, steps)
        return float(steps)

    return 1.0 / best_rate(work, 1)


WORK: dict[str, Callable[..., float]] = {
    "clock": clock, "fma256": fma256, "fma512": fma512, "copy": copy, "product": product, "latency": latency,
}  # fmt: skip


def main(what: str, *numbers: str) -> None:
    """Run one microbenchmark and print its figure."""
    sys.stdout.write(json.dumps(WORK[what](*map(int, numbers))) + "\n")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, MemoryError) as error:
        sys.exit(str(error) or type(error).__name__)
