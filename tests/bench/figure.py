"""What a bench measures: figures, each sampled again and again in one process, so that two versions can take turns."""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Sample = Callable[[], float]


class Absent(Exception):
    """What a figure needs is not installed here."""


def absent(error: BaseException) -> bool:
    """Whether what is missing is no part of archsim, which says so itself of its extras."""
    return type(error).__name__ in (Absent.__name__, "MissingExtra")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A speed, a time or a size.

    prepare: imports what it measures, which an older version may lack, and runs it once, so that byte code and machine code are
        there; returns what takes a sample in `unit`. True asks for the least work that still runs
    rate: whether more is better
    most: samples that are taken at most, where one takes seconds
    peers: the figure of other tools in the same unit, by their names
    """

    name: str
    unit: str
    prepare: Callable[[bool], Sample]
    rate: bool = False
    most: int | None = None
    peers: Mapping[str, float] = field(default_factory=dict)


def rate(name: str, prepare: Callable[[bool], Sample], **options: Any) -> Figure:
    """A figure of things done in a CPU second."""
    return Figure(name=name, unit="1/s", prepare=prepare, rate=True, **options)


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of a call in this process [s]."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def warm_rate(count: float, work: Callable[[], object]) -> Sample:
    """How many of the `count` things that a call does it does in a CPU second; the first call is not timed."""
    work()
    return lambda: count / cpu_seconds(work)


def child(*words: str) -> tuple[float, str]:
    """CPU time of a Python process and of those that it starts [s], and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def in_child(bench: str, call: str) -> float:
    """The value of a call of a bench, in a process that has done nothing before."""
    return float(child("-c", f"from tests.bench.{bench} import *; print({call})")[1])


def peak_memory() -> float:
    """The most memory that this process has had [MB]."""
    if sys.platform != "linux":
        raise Absent("a system that says how much memory a process has had at most")
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def arguments(doc: str | None, **positional: Mapping[str, Any]) -> argparse.ArgumentParser:
    """The arguments of a bench, of which each has `--smoke`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, options in positional.items():
        parser.add_argument(name, **options)
    parser.add_argument("--smoke", action="store_true", help="the least work that shows that it runs")
    return parser


def report(doc: str | None, figures: Sequence[Figure], words: Sequence[str]) -> None:
    """A line for each figure: median and range of its samples, and how many times those of its peers it is."""
    asked = arguments(doc, rounds={"nargs": "?", "type": int, "default": 5}).parse_args(words)
    for figure in figures:
        try:
            sample = figure.prepare(asked.smoke)
            found = sorted(sample() for _ in range(1 if asked.smoke else min(asked.rounds, figure.most or asked.rounds)))
        except Exception as error:
            if not absent(error):
                raise
            print(f"{figure.name:<66} not here: {error}", flush=True)
            continue
        low, middle, high = (shown(value, figure.unit) for value in (found[0], statistics.median(found), found[-1]))
        beside = "".join(f"; {statistics.median(found) / value:,.0f} times {name}" for name, value in figure.peers.items())
        print(f"{figure.name:<66} {middle:>14}  ({low} to {high}){beside}", flush=True)


def shown(value: float, unit: str) -> str:
    """A value in its unit, with three digits.

    >>> shown(61.1e6, "1/s"), shown(999_999.0, "1/s"), shown(0.0031, "s"), shown(5.666, "x numpy")
    ('61.1 M/s', '1 M/s', '3.1 ms', '5.67 x numpy')
    """
    value = float(f"{value:.3g}")
    if unit not in ("s", "1/s"):
        return f"{value:.3g} {unit}"
    prefixes = ((1e6, "M"), (1e3, "k"), (1.0, "")) if unit == "1/s" else ((1.0, ""), (1e-3, "m"), (1e-6, "u"))
    scale, prefix = next((pair for pair in prefixes if value >= pair[0]), prefixes[-1])
    return f"{value / scale:.3g} {prefix}{unit.removeprefix('1')}"
