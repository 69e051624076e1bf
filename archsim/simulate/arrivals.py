"""Arrival times of requests: a Poisson process, or a recorded file."""

from __future__ import annotations

import csv
import io
import math
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import InputError
from archsim.base.files import read_text
from archsim.base.limits import LIMITS

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


def recorded_arrivals(path: str | Path) -> NDArray[np.float64]:
    """The column `arrival_s` of a CSV file [s], [M]; its rows must be in order of time.

    Raises MissingFile, or InputError with the lines that hold no time or a time before that of the line above.
    """
    try:
        reader = csv.reader(io.StringIO(read_text(path, LIMITS["arrivals"].size), newline=None))
        rows = list(islice(reader, LIMITS["arrivals"].entries + 2))
    except csv.Error as error:
        raise InputError(path, f"is not a CSV file ({error})") from None
    if len(rows) > LIMITS["arrivals"].entries + 1:
        raise InputError(path, f"has more than {LIMITS['arrivals'].entries:,} rows")
    head = [name.strip() for name in rows[0]]
    if COLUMN not in head:
        raise InputError(path, f"line 1: no column {COLUMN!r}; it holds the arrival of each request in seconds")
    place, times, problems, latest = head.index(COLUMN), [], [], -math.inf
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        written = row[place].strip() if place < len(row) else ""
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
