"""Kernels of Nsight Systems: the csv of `nsys stats --report cuda_gpu_trace --format csv`. It has no calls and no shapes.

Equal repetitions of the sequence of kernels are runs. What nsys prints before the table is passed over.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from archsim.base.errors import InputError
from archsim.trace.dims import short
from archsim.trace.profiles.nesting import period
from archsim.trace.profiles.record import Profile, ProfiledKernel
from archsim.trace.profiles.stream import texts_of

UNITS = {"ns": 1e-9, "us": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
LONGEST_LINE, MOST_KERNELS = 1 << 16, 1 << 22
SUMMARY = "is a summary without start times; `nsys stats --report cuda_gpu_trace --format csv` has them"


def read(path: Path) -> Profile:
    """The kernels of the run of the median time. Raises MissingFile or InputError."""
    found: list[ProfiledKernel] = []
    start = duration = name = stream = -1
    scale = (0.0, 0.0)
    for number, row in _rows(path):
        if name < 0:
            heads = [cell.strip() for cell in row]
            if any(head.startswith("Total Time") for head in heads):
                raise InputError(str(path), SUMMARY)
            if "Name" in heads and any(head.startswith("Start (") for head in heads):
                name, stream = heads.index("Name"), heads.index("Strm") if "Strm" in heads else -1
                (start, one), (duration, other) = (_unit(heads, word, path) for word in ("Start", "Duration"))
                scale = (one, other)
            continue
        if len(row) <= max(name, start, duration):
            continue
        begins, took = (_number(row[at], path, number) for at in (start, duration))
        found.append(ProfiledKernel(name=row[name], start_s=begins * scale[0], duration_s=took * scale[1],
                                    stream=row[stream] if stream >= 0 else "",
                                    copy=row[name].startswith("[CUDA mem")))  # fmt: skip
        if len(found) > MOST_KERNELS:
            raise InputError(str(path), f"has more than {MOST_KERNELS} kernels; refused")
    if not found:
        raise InputError(str(path), "has no kernels: `nsys stats --report cuda_gpu_trace` writes Start, Duration, Name")
    found.sort(key=lambda kernel: kernel.start_s)
    numbers: dict[str, int] = {}
    every = period([numbers.setdefault(kernel.name, len(numbers)) for kernel in found])
    runs = [found[i : i + every] for i in range(0, len(found), every)]
    lengths = [max(k.start_s + k.duration_s for k in run) - run[0].start_s for run in runs]
    shown = sorted(range(len(runs)), key=lambda i: lengths[i])[(len(runs) - 1) // 2]
    notes = () if len(runs) > 1 else ("all is one run: the kernels repeat no sequence",)
    return Profile(path=str(path), source="Nsight Systems", calls=(), kernels=tuple(runs[shown]), run_s=tuple(lengths),
                   shown=shown, shapes=False, notes=notes)  # fmt: skip


def _unit(heads: list[str], word: str, path: Path) -> tuple[int, float]:
    for place, head in enumerate(heads):
        unit = head.removeprefix(f"{word} (").removesuffix(")")
        if head.startswith(f"{word} (") and unit in UNITS:
            return place, UNITS[unit]
    raise InputError(str(path), f"has no column {word} (ns)")


def _number(text: str, path: Path, line: int) -> float:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e18:
        raise InputError(str(path), f"row {line}: {short(text)} is no time")
    return value


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        yield from enumerate(csv.reader(_lines(path)), 1)
    except csv.Error as error:
        raise InputError(str(path), f"is not csv ({error})") from None


def _lines(path: Path) -> Iterator[str]:
    rest = ""
    for piece in texts_of(path):
        *lines, rest = (rest + piece).split("\n")
        yield from (line.replace("\0", "?") for line in lines)
        if len(rest) > LONGEST_LINE:
            raise InputError(str(path), f"has a line of more than {LONGEST_LINE} characters")
    yield rest.replace("\0", "?")
