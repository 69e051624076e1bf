"""Microbenchmarks of this computer: which are run, in processes of their own, and what they found.

`benchmarks` has them, `probed` makes values of a spec of what they found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from archsim.detect.loops import LINE_B
from archsim.detect.sampling import Finding
from archsim.detect.system import load_average

LIMIT_S = 90  # for all microbenchmarks of one process
MEMORY_B = (1 << 28, 1 << 29)  # what chains of loads visit: twice the last cache, within these bounds
BUSY = 0.5  # load of each processor that is worth a word
LARGEST_SHARE = 8  # at most this part of the memory is visited
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
FAST = "archsim[fast]"

Tell = Callable[[str], None]
Job = tuple[str, str, int]  # what a figure is called, the method of `benchmarks.Bench` that finds it, threads or bytes or bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What the microbenchmarks found.

    readings: by name, then by the number of threads, bits or bytes
    failed: what could not be measured and why, in sentences; absent: names for which the loops at hand have nothing
    threads: the most that were to run at once; how: the loops that were timed; busy: what else ran, in a sentence
    """

    readings: dict[str, dict[int, Finding]] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    threads: int = 1
    how: str = ""
    busy: str = ""

    def values(self, name: str) -> dict[int, float]:
        """The figures of that name by threads, bits or bytes."""
        return {at: reading.value for at, reading in self.readings.get(name, {}).items()}

    def best(self, name: str) -> Finding | None:
        """The highest figure of that name."""
        return max(self.readings.get(name, {}).values(), key=lambda reading: reading.value, default=None)

    def least(self, name: str) -> Finding | None:
        """The lowest figure of that name."""
        return min(self.readings.get(name, {}).values(), key=lambda reading: reading.value, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the microbenchmarks must know of a computer.

    threads: the most that run at once; simd: width of the widest registers [bit]; fused: it has multiply-adds
    caches_B: sizes of the cache levels, from the first one [B]; last: how many of the last one there are
    memory_B: of the main memory that may be taken [B]; tlb_entries: small pages that its last TLB holds, 0 if unknown
    """

    threads: int
    simd: int
    fused: bool
    caches_B: tuple[int, ...]
    memory_B: int
    last: int = 1
    tlb_entries: int = 0

    @property
    def visited_B(self) -> int:
        """Memory that one core visits [B]."""
        least, most = MEMORY_B
        wanted = min(most, max(least, 2 * max(self.caches_B, default=0)))
        return int(min(wanted, self.memory_B // LARGEST_SHARE))

    @property
    def streamed_B(self) -> int:
        """Memory that all cores read and copy together: more than their caches hold [B]."""
        return min(max(self.visited_B, 2 * self.last * max(self.caches_B, default=0)), self.memory_B // LARGEST_SHARE)


def counts(most: int) -> list[int]:
    """Thread counts worth measuring: powers of two, and all.

    >>> counts(6)
    [1, 2, 4, 6]
    """
    powers = [1 << i for i in range(most.bit_length()) if 1 << i < most]
    return [*powers, most]


def jobs_of(subject: Subject) -> list[Job]:
    """The microbenchmarks of one process, those of the memory last."""
    ends = list(dict.fromkeys((1, subject.threads)))
    widths = [bits for bits in (128, 256, 512) if bits == subject.simd or 256 <= bits < subject.simd]
    jobs: list[Job] = [("clock", "clock", n) for n in ends]
    jobs.append(("fma_latency", "fma_latency", subject.simd))
    jobs += [("fma_per_clock", "fma_per_clock", bits) for bits in widths]
    jobs += [(f"fma{bits}", f"fma{bits}", n) for bits in widths for n in ends]
    jobs += _cache_jobs(subject)
    if subject.tlb_entries:
        jobs.append(("l2.tlb_miss", "tlb_miss", 2 * subject.tlb_entries))
    if subject.visited_B > max(subject.caches_B, default=0):
        jobs += [("memory.latency", "memory_latency", subject.visited_B), ("in_flight", "in_flight", subject.visited_B)]
    if len(subject.caches_B) > 2:
        jobs.append(("reach", "reach", subject.caches_B[-1]))
    for n in counts(subject.threads):
        jobs += [("memory.read", "memory_read", n), ("copy", "copy", n)]
    return [*jobs, *([("barrier", "barrier", subject.threads)] if subject.threads > 1 else [])]


def _cache_jobs(subject: Subject) -> Iterator[Job]:
    """Latency and bandwidth of each level: within half of the first, and within what the level before does not hold."""
    for level, size in enumerate(subject.caches_B, 1):
        name, inner = f"l{level}", subject.caches_B[level - 2] if level > 1 else 0
        if level == 1:
            yield f"{name}.latency", "first_latency", _lines(size / 2)
            yield f"{name}.read", "read", _lines(size / 2)
            continue
        middle = (inner * size) ** 0.5
        if level == 2:
            yield f"{name}.latency", "latency", _lines(middle)
            yield f"{name}.read", "read", _lines(middle)
            yield f"{name}.read", "read", _lines(size / 2)
            continue
        visited = min(2 * inner, size // 8)
        if visited >= inner:
            yield f"{name}.latency", "shared_latency", _lines(visited)
        yield f"{name}.read", "shared_read", _lines(min(4 * inner, middle))


def _lines(size_B: float) -> int:
    """Whole pages, or whole lines of less than a page."""
    step = 4096 if size_B >= 1 << 16 else 16 * LINE_B
    return max(step, int(size_B) // step * step)


def measure(subject: Subject, tell: Tell = lambda text: None) -> Probe:
    """Run every microbenchmark; `tell` is told what is being measured."""
    busy = _busy(subject.threads)
    jobs = jobs_of(subject)
    products: list[Job] = [("product", "product", n) for n in counts(subject.threads)]
    session = _Session(subject, len(jobs) + len(products), tell)
    names = ["llvm"] if find_spec("llvmlite") is not None else []
    for name in (*names, "bytes", "none"):
        if session.run(name, jobs):
            break
    for job in products:
        session.run("none", [job], job[2])
    return replace(session.probe(), busy=busy, threads=subject.threads)


def _busy(processors: int) -> str:
    """What the system says of other work, if it is much."""
    load = load_average()
    if load is None or load < BUSY * processors:
        return ""
    return (f"probed beside other programs (load average {load:.1f} on {processors} processors): memory and shared caches may be "
            "faster alone")  # fmt: skip


class _Session:
    """Processes that run microbenchmarks one after the other, and what they said."""

    def __init__(self, subject: Subject, total: int, tell: Tell) -> None:
        self._subject, self._total, self._tell = subject, total, tell
        self._begun = 0
        self._readings: dict[str, dict[int, Finding]] = {}
        self._failed: list[str] = []
        self._absent: list[str] = []
        self._how = ""

    def probe(self) -> Probe:
        """All that was found."""
        return Probe(readings=self._readings, failed=tuple(dict.fromkeys(self._failed)),
                     absent=tuple(dict.fromkeys(self._absent)), how=self._how)  # fmt: skip

    def run(self, loops: str, jobs: list[Job], threads: int = 1) -> bool:
        """Run jobs with these loops; False where they cannot be had. A job that ends its process is left out, the rest go on."""
        left = list(jobs)
        while left:
            process = self._start(loops, left, threads)
            if process is None:
                return True
            with process:
                had, current, end = self._follow(process, left)
            if current is None:
                if end and had:
                    self._failed.append(f"microbenchmarks: {end}")
                return had
            self._failed.append(f"{current[0]}: {end or 'came to no end'}")
            left = left[left.index(current) + 1 :] if "took more" not in end else []
        return True

    def _start(self, loops: str, jobs: list[Job], threads: int) -> subprocess.Popen[str] | None:
        subject = self._subject
        asked = {"loops": loops, "simd": subject.simd, "fused": subject.fused, "memory_B": subject.visited_B,
                 "streamed_B": subject.streamed_B, "jobs": jobs}  # fmt: skip
        environment = os.environ | dict.fromkeys(BLAS_THREADS, str(threads))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        words = [sys.executable, "-m", "archsim.detect.benchmarks", json.dumps(asked)]
        try:
            return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            self._failed.append(f"microbenchmarks: could not be started ({error.strerror or error})")
            return None

    def _follow(self, process: subprocess.Popen[str], jobs: list[Job]) -> tuple[bool, Job | None, str]:
        """Hear a process to its end: whether it had its loops, the job that it did not end, and how it ended if badly."""
        had, current, late = False, None, threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        watch = threading.Timer(LIMIT_S, stop)
        watch.start()
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            for line in process.stdout:
                said = _parsed(line)
                if "without" in said:
                    self._failed.append(f"loops: {said['without']}")
                elif "how" in said:
                    had, self._how = True, self._how or said["how"]
                elif "begins" in said:
                    current = next((job for job in jobs if list(job) == said["begins"]), None)
                    self._begun += 1
                    self._tell(f"probing {min(self._begun, self._total)} of {self._total}: {said['begins'][0]}")
                elif self._hear(said):
                    current = None
            words = (process.stderr.read().strip().splitlines() or ["no word"])[-1][:200]
            process.wait()
        finally:
            watch.cancel()
            if process.poll() is None:
                process.kill()
        end = f"ended with {process.returncode}: {words}" if process.returncode else ""
        return had, current, f"took more than {LIMIT_S} s" if late.is_set() else end

    def _hear(self, said: dict[str, Any]) -> bool:
        """Keep what a line says; whether it ends a job."""
        if "value" in said:
            reading = Finding(value=float(said["value"]), spread=float(said["spread"]), note=str(said["note"]))
            self._readings.setdefault(said["key"], {})[int(said["at"])] = reading
        elif "failed" in said:
            self._failed.append(f"{said['failed']}: {said['why']}")
        elif "absent" in said:
            self._absent.append(said["absent"])
        return bool({"value", "failed", "absent"} & said.keys())


def _parsed(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
