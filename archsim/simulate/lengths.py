"""Requests to a language model: when each arrives, and how many tokens its prompt and its answer have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArgumentError, InputError
from archsim.simulate.arrivals import poisson, recorded_rows

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
