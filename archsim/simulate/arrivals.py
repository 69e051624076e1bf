"""Arrival times of requests: a Poisson process, or a recorded file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import InputError
from archsim.base.files import LIMITS, read_text

COLUMN = "arrival_s"
SHORTEST = 1e-9  # s from the first arrival to the last; no clock that stamps requests tells less


def poisson(rate: float, count: int, seed: int) -> NDArray[np.float64]:
    """Arrival times of a Poisson process [s], [count].

    t_i = (x_1 + ... + x_i) / rate, with x exponential of mean 1. rate: requests per second [1/s]. With one seed, another rate
    stretches the same draw, so that latencies at two rates can be compared.

    >>> bool(np.allclose(poisson(2.0, 3, seed=1), poisson(1.0, 3, seed=1) / 2))
    True
    """
    return np.asarray(np.cumsum(np.random.default_rng(seed).exponential(1.0, count)) / rate)


def recorded_rows(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file: the number of the line, and what stands in these columns, nothing in those that it lacks.

    Raises MissingFile, or InputError for a file without one of the columns or with too many rows.
    """
    limit = LIMITS["arrivals"]
    try:
        rows = list(islice(csv.reader(io.StringIO(read_text(path, limit.size), newline=None)), limit.entries + 2))
    except csv.Error as error:
        raise InputError(path, f"is not a CSV file ({error})") from None
    if len(rows) > limit.entries + 1:
        raise InputError(path, f"has more than {limit.entries:,} rows")
    head = [name.strip() for name in rows[0]]
    missing = [name for name in columns if name not in head]
    if missing:
        raise InputError(path, f"line 1: no column {missing[0]!r}; a file of requests has {', '.join(columns)}")
    places = [head.index(name) for name in columns]
    for number, row in enumerate(rows[1:], 2):
        if row:
            yield number, [row[place].strip() if place < len(row) else "" for place in places]


def recorded_arrivals(path: str | Path) -> NDArray[np.float64]:
    """The column `arrival_s` of a CSV file [s], [M]; its rows must be in order of time.

    Raises MissingFile, or InputError with the lines that hold no time or a time before that of the line above.
    """
    times, problems, latest = [], [], -math.inf
    for number, (written,) in recorded_rows(path, (COLUMN,)):
        try:
            time = float(written)
        except ValueError:
            time = math.nan
        if not math.isfinite(time) or time < 0:
            problems.append(f"line {number}: {written!r} is not a time in seconds")
        elif time < latest:
            problems.append(f"line {number}: {written} lies before {latest:g} of the line above; sort the file by {COLUMN}")
        else:
            times.append(time)
            latest = time
    if problems:
        raise InputError(path, problems)
    if len(times) < 2:
        raise InputError(path, f"holds {len(times)} arrivals; it takes two or more")
    if times[-1] - times[0] < SHORTEST:
        raise InputError(path, f"all requests arrive at {times[0]:g} s, or within a nanosecond; --scenario Offline is for that")
    return np.array(times)
