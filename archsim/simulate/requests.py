"""Requests to a language model: when each arrives, and how many tokens its prompt and its answer have."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArgumentError, InputError
from archsim.base.files import read_text
from archsim.base.limits import LIMITS

COLUMNS = ("arrival_s", "input", "output")
SHAPES = ("fixed", "uniform", "normal", "lognormal", "exponential")
LONGEST = 1 << 24  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequests:
    """Requests in the order of their arrival: times [s], tokens of prompts and of answers, each [M]."""

    arrival_s: NDArray[np.float64]
    input: NDArray[np.int64]
    output: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLengths:
    """A distribution of numbers of tokens: fixed, uniform:LOW:HIGH, normal:MEAN:SPREAD, lognormal:MEDIAN:SIGMA, exponential:MEAN.
    """

    shape: str
    first: float
    second: float = 0.0

    def drawn(self, random: np.random.Generator, count: int, most: int) -> NDArray[np.int64]:
        """Numbers of tokens from 1 to `most`, [count]."""
        if self.shape == "uniform":
            values = random.uniform(self.first, self.second, count)
        elif self.shape == "normal":
            values = random.normal(self.first, self.second, count)
        elif self.shape == "lognormal":
            values = random.lognormal(math.log(self.first), self.second, count)
        elif self.shape == "exponential":
            values = random.exponential(self.first, count)
        else:
            values = np.full(count, self.first)
        return np.asarray(np.clip(np.rint(values), 1, most), dtype=np.int64)


def lengths_of(text: str, option: str) -> TokenLengths:
    """`512`, `uniform:100:900`, `lognormal:300:0.8`. Raises ArgumentError.

    >>> lengths_of("lognormal:300:0.8", "--input").shape
    'lognormal'
    """
    name, *words = text.split(":") if not text.replace(".", "", 1).isdigit() else ("fixed", text)
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        raise ArgumentError(f"{option} {text!r}: {words} are not numbers") from None
    wanted = 1 if name in ("fixed", "exponential") else 2
    if name not in SHAPES or len(numbers) != wanted:
        raise ArgumentError(f"{option} {text!r}: is not a number, uniform:LOW:HIGH, normal:MEAN:SPREAD, "
                            "lognormal:MEDIAN:SIGMA or exponential:MEAN")  # fmt: skip
    if not all(math.isfinite(number) and 0 <= number <= LONGEST for number in numbers) or numbers[0] < (name != "uniform"):
        raise ArgumentError(f"{option} {text!r}: numbers of tokens lie between 1 and {LONGEST}")
    if name == "uniform" and numbers[1] < numbers[0]:
        raise ArgumentError(f"{option} {text!r}: the second number is the larger one")
    if name == "lognormal" and numbers[1] > 5:
        raise ArgumentError(f"{option} {text!r}: a sigma above 5 is no length of texts")
    return TokenLengths(shape=name, first=numbers[0], second=numbers[1] if wanted == 2 else 0.0)


def drawn(rate: float, count: int, prompt: TokenLengths, answer: TokenLengths, context: int, seed: int) -> TextRequests:
    """Requests as a Poisson process, all at once where the rate is infinite, with lengths drawn one by one.

    A prompt is cut to what leaves one token of the model's `context`, an answer to what the prompt leaves.
    """
    random = np.random.default_rng(seed + 1)
    prompts = prompt.drawn(random, count, context - 1)
    answers = np.minimum(answer.drawn(random, count, context), context - prompts)
    times = np.zeros(count) if math.isinf(rate) else poisson(rate, count, seed)
    return TextRequests(arrival_s=times, input=prompts, output=np.maximum(1, answers))


def recorded(path: str | Path, context: int) -> TextRequests:
    """Requests of a CSV file with the columns `arrival_s`, `input` and `output`, in order of time.

    Raises MissingFile, or InputError with up to 20 lines that are wrong.
    """
    found, problems, latest = [], [], 0.0
    for number, row in recorded_rows(path, COLUMNS):
        try:
            time, prompt, answer = map(float, row)
        except ValueError:
            problems.append(f"line {number}: needs three numbers, {', '.join(COLUMNS)}")
            continue
        if not (math.isfinite(time) and time >= latest):
            problems.append(f"line {number}: arrival_s {time:g} lies before that of the line above, or is no time")
        elif not all(1 <= tokens <= LONGEST and tokens == int(tokens) for tokens in (prompt, answer)):
            problems.append(f"line {number}: input and output are whole numbers from 1 on")
        elif prompt + answer > context:
            problems.append(f"line {number}: {prompt:g} + {answer:g} tokens are more than the {context} of the model")
        else:
            found.append((time, int(prompt), int(answer)))
            latest = time
    if problems or not found:
        raise InputError(path, problems[:20] or "holds no requests")
    times, prompts, answers = zip(*found, strict=True)
    return TextRequests(arrival_s=np.array(times), input=np.array(prompts), output=np.array(answers))


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
