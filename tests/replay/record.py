"""The file of predictions: a line a group with a count, the median error of its rows and a digest of its values."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from tests.replay.values import Value, Values

FILE = Path(__file__).with_name("predictions.txt")
DIGITS = 8  # after the first: values that agree to 1e-9 have one text, but where they lie at the edge of two
HEAD = (
    "# What archsim predicts. A line a group: values, median error in % where they are measured, digest of the values to nine\n"
    "# digits. `python -m tests.replay` compares, `python -m tests.replay --accept` writes.\n"
)


def as_text(values: Values) -> str:
    """The file of these values, the same on every run."""
    return HEAD + "".join(f"{group}: {line}\n" for group, line in lines_of(values).items())


def lines_of(values: Values) -> dict[str, str]:
    """What the file says of each group."""
    return {group: f"{len(own)} {_error(own)} {digest(own)}" for group, own in sorted(values.items())}


def read(text: str) -> dict[str, str]:
    """The lines of a file by group. Raises ValueError for one in which a line has no group."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {group: line for group, _, line in (line.rpartition(": ") for line in lines)}


def digest(values: Mapping[str, list[Value]]) -> str:
    """Twelve hexadecimal digits that stand for the values of a group to nine digits."""
    text = "\n".join(f"{key}={' '.join(map(shown, own[1:] or own))}" for key, own in sorted(values.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def shown(value: Value) -> str:
    """A number to nine digits, a word as it is."""
    return value if isinstance(value, str) else f"{value:.{DIGITS}e}"


def _error(values: Mapping[str, list[Value]]) -> str:
    errors = [abs(float(own[0])) for own in values.values() if len(own) > 1 and not math.isnan(float(own[0]))]
    return f"{100 * median(errors):.2f}" if errors else "-"
