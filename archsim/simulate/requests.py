"""Requests to a language model: when each arrives, and how many tokens its prompt and its answer have."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArgumentError, InputError, refuse, refuse_arguments
from archsim.base.files import LIMITS, read_text

COLUMNS = ("arrival_s", "input", "output")
Draw = Callable[[np.random.Generator, float, float, int], NDArray[np.float64]]
SHAPES: dict[str, Draw] = {
    "fixed": lambda random, first, second, count: np.full(count, first),
    "uniform": lambda random, first, second, count: random.uniform(first, second, count),
    "normal": lambda random, first, second, count: random.normal(first, second, count),
    "lognormal": lambda random, first, second, count: random.lognormal(math.log(first), second, count),
    "exponential": lambda random, first, second, count: random.exponential(first, count),
}
LONGEST = 1 << 24  # tokens
SHORTEST = 1e-9  # s from the first arrival to the last; no clock that stamps requests tells less


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
        values = SHAPES[self.shape](random, self.first, self.second, count)
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
    first, second = (*numbers, 0.0)[:2]
    known = all(math.isfinite(number) and 0 <= number <= LONGEST for number in numbers) and first >= (name != "uniform")
    refuse_arguments({
        f"{option} {text!r}: numbers of tokens lie between 1 and {LONGEST}": not known,
        f"{option} {text!r}: the second number is the larger one": name == "uniform" and second < first,
        f"{option} {text!r}: a sigma above 5 is no length of texts": name == "lognormal" and second > 5,
    })
    return TokenLengths(shape=name, first=first, second=second)


def drawn(rate: float, count: int, prompt: TokenLengths, answer: TokenLengths, context: int, seed: int) -> TextRequests:
    """Requests as a Poisson process, all at once where the rate is infinite, with lengths drawn one by one.

    A prompt is cut to what leaves one token of the model's `context`, an answer to what the prompt leaves.
    """
    random = np.random.default_rng(seed + 1)
    prompts = prompt.drawn(random, count, context - 1)
    answers = np.minimum(answer.drawn(random, count, context), context - prompts)
    times = np.zeros(count) if math.isinf(rate) else poisson(rate, count, seed)
    return TextRequests(arrival_s=times, input=prompts, output=np.maximum(1, answers))


def poisson(rate: float, count: int, seed: int) -> NDArray[np.float64]:
    """Arrival times of a Poisson process [s], [count].

    t_i = (x_1 + ... + x_i) / rate, with x exponential of mean 1. rate: requests per second [1/s]. With one seed, another rate
    stretches the same draw, so that latencies at two rates can be compared.

    >>> bool(np.allclose(poisson(2.0, 3, seed=1), poisson(1.0, 3, seed=1) / 2))
    True
    """
    return np.asarray(np.cumsum(np.random.default_rng(seed).exponential(1.0, count)) / rate)


Problem = Callable[[Sequence[str], list[float] | None, float], str]  # of the words, their numbers, and the time before them [s]


def recorded_numbers(path: str | Path, columns: Sequence[str], problem: Problem) -> NDArray[np.float64]:
    """The numbers in these columns of a CSV file, times [s] first, [M, columns].

    Raises MissingFile, or InputError for a file without one of the columns or with too many rows, and for lines with a `problem`.
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
    found: list[list[float]] = []
    problems = []
    for number, row in enumerate(rows[1:], 2):
        if row:
            written = [row[place].strip() if place < len(row) else "" for place in places]
            numbers = _numbers(written)
            said = problem(written, numbers, found[-1][0] if found else 0.0)
            if said:
                problems.append(f"line {number}: {said}")
            elif numbers is not None:
                found.append(numbers)
    refuse(path, problems)
    return np.array(found).reshape(-1, len(columns))


def _numbers(written: Sequence[str]) -> list[float] | None:
    try:
        return [*map(float, written)]
    except ValueError:
        return None


def recorded_arrivals(path: str | Path) -> NDArray[np.float64]:
    """The column `arrival_s` of a CSV file [s], [M]; its rows must be in order of time.

    Raises MissingFile, or InputError with the lines that hold no time or a time before that of the line above.
    """

    def problem(written: Sequence[str], numbers: list[float] | None, latest: float) -> str:
        if numbers is None or not math.isfinite(numbers[0]) or numbers[0] < 0:
            return f"{written[0]!r} is not a time in seconds"
        before = numbers[0] < latest
        return f"{written[0]} lies before {latest:g} of the line above; sort the file by {COLUMNS[0]}" if before else ""

    times = recorded_numbers(path, COLUMNS[:1], problem)[:, 0]
    if len(times) < 2:
        raise InputError(path, f"holds {len(times)} arrivals; it takes two or more")
    if times[-1] - times[0] < SHORTEST:
        raise InputError(path, f"all requests arrive at {times[0]:g} s, or within a nanosecond; --scenario Offline is for that")
    return times


def recorded(path: str | Path, context: int) -> TextRequests:
    """Requests of a CSV file with the columns `arrival_s`, `input` and `output`, in order of time.

    Raises MissingFile, or InputError with the lines that are wrong.
    """

    def problem(written: Sequence[str], numbers: list[float] | None, latest: float) -> str:
        if numbers is None:
            return f"needs three numbers, {', '.join(COLUMNS)}"
        time, prompt, answer = numbers
        if not (math.isfinite(time) and time >= latest):
            return f"arrival_s {time:g} lies before that of the line above, or is no time"
        if not all(1 <= tokens <= LONGEST and tokens == int(tokens) for tokens in (prompt, answer)):
            return "input and output are whole numbers from 1 on"
        over = prompt + answer > context
        return f"{prompt:g} + {answer:g} tokens are more than the {context} of the model" if over else ""

    found = recorded_numbers(path, COLUMNS, problem)
    if not len(found):
        raise InputError(path, "holds no requests")
    return TextRequests(arrival_s=found[:, 0], input=found[:, 1].astype(np.int64), output=found[:, 2].astype(np.int64))
