"""The profile in a file of any tool that is known here, by how it begins, and as a network; the kernels of Nsight Systems.

Equal repetitions of the sequence of kernels are runs. What nsys prints before the table is passed over.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from archsim.base.errors import InputError, Unsupported
from archsim.base.files import read_head
from archsim.trace.dims import short
from archsim.trace.formats import unknown_symbol
from archsim.trace.profiles.calls import period
from archsim.trace.profiles.network import ProfiledNetwork, network_of
from archsim.trace.profiles.record import Profile, ProfiledKernel, middle, texts_of
from archsim.trace.readers.read import MAPPED, MappedOperator
from archsim.trace.trace import Trace

# -------------------------------------------------------------------------------------------- the csv of Nsight Systems

UNITS = {"ns": 1e-9, "us": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
LONGEST_LINE, MOST_KERNELS = 1 << 16, 1 << 22
SUMMARY = "is a summary without start times; `nsys stats --report cuda_gpu_trace --format csv` has them"


def read_nsight(path: Path) -> Profile:
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
    shown = middle(lengths)
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


# ------------------------------------------------------------------------------------------------------------- any tool

HEAD = 1 << 16  # bytes from which the tool is recognised
ONNXRUNTIME = re.compile(rb'\s*\[[^\]]{0,4096}?"cat"\s*:\s*"(Session|Node)"')
NSIGHT = re.compile(rb'(^|\n)[^\n{\[]*(Total Time|Duration) \([^\n)]{1,3}\)"?,[^\n]*Name')
CHROME = re.compile(rb'\A\s*(\[|\{)')


def read(path: Path) -> Profile:
    """The profile. Raises MissingFile, or InputError for a file of another kind."""
    head = read_head(path, HEAD).removeprefix(b"\xef\xbb\xbf")
    if ONNXRUNTIME.match(head):
        from archsim.trace.profiles.onnxruntime import read as of_onnxruntime

        return of_onnxruntime(path)
    if NSIGHT.search(head):

        return read_nsight(path)
    if not CHROME.match(head):
        known = "is empty" if not head.strip() else "is no profile that is read: a Chrome trace of PyTorch's profiler, " \
                "a profile of onnxruntime and the csv of `nsys stats` are"
        raise InputError(str(path), known)
    from archsim.trace.profiles.kineto import read as of_pytorch

    return of_pytorch(path)


# --------------------------------------------------------------------------------------------------------- as a network

LEFT_OUT = "left out"
EVENTS = re.compile(rb'"traceEvents"\s*:|\A\s*\[\s*\{[^}]*"ph"\s*:')  # an object with events, or a list of them


def begins_as_profile(head: bytes) -> bool:
    """Whether a JSON file begins as a profile with the calls of a framework does.

    >>> begins_as_profile(b'{"schemaVersion": 1, "traceEvents": ['), begins_as_profile(b'{"n_embd": 768}')
    (True, False)
    """
    return bool(EVENTS.search(head) or ONNXRUNTIME.match(head))


def read_network(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The network of a profile, whose sizes are all fixed.

    Raises MissingFile, InputError, Unsupported where no shapes were recorded, ArgumentError for a size that is asked for.
    """
    return _network(path, sizes)[1].trace


def of_profile(path: Path, sizes: Mapping[str, int]) -> tuple[Trace, list[MappedOperator]]:
    """The network, and the operators of the profile with what became of them, those with the most calls first."""
    profile, network = _network(path, sizes)
    ops = {place for places in network.calls.values() for place in places}
    why = dict(network.left_out)
    count = Counter((call.operator, MAPPED if place in ops else LEFT_OUT, why.get(place, ""))
                    for place, call in enumerate(profile.calls))  # fmt: skip
    return network.trace, [MappedOperator(name, calls, status, said) for (name, status, said), calls in count.most_common()]


def _network(path: Path, sizes: Mapping[str, int]) -> tuple[Profile, ProfiledNetwork]:
    profile = read(path)
    if not profile.calls:
        raise Unsupported(f"{path}: holds no network: kernels alone; `archsim profile --net` sets them beside one")
    network = network_of(profile)
    for name in sizes:
        raise unknown_symbol(path, name, network.trace.free_symbols)
    return profile, network
