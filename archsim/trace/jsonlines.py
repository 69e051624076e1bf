"""A strict reader of JSON Lines: one object a line, no duplicate keys, no non-finite numbers, limited sizes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

LONGEST_NUMBER = 25  # characters; 2^64 has 20
MOST_PROBLEMS = 50


class JsonLine(NamedTuple):
    """One line of a file: its number, from 1, and its object."""

    number: int
    record: dict[str, Any]


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"has the key {twice!r} twice")
    return record


def whole(text: str) -> int:
    """A whole number of a file. Raises ValueError for one of thousands of digits."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"has a number of {len(text)} digits")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"has the number {text[:LONGEST_NUMBER]}, which is not finite")
    return value


def no_number(text: str) -> float:
    """Raises ValueError for NaN and infinity."""
    raise ValueError(f"has {text}, which is no number")


DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=whole, parse_float=_real, parse_constant=no_number)


def strict_json(text: str) -> Any:
    """One JSON document. Raises ValueError for what is none, for a key that comes twice and for a number that is not finite."""
    return DECODER.decode(text)


def parse(text: str, most: int, problems: list[str]) -> Iterator[JsonLine]:
    """The objects of `text`, at most `most` of them; the problems of its lines are added to `problems`. Blank lines are skipped.

    One after the other: what a caller keeps of a line takes less memory than its object.
    """
    count = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.isspace():
            continue
        if count == most:
            problems[:] = [f"line {number}: more than {most - 1} ops; refused"]
            return
        try:
            record = DECODER.decode(line)
            if not isinstance(record, dict):
                raise ValueError("is not a JSON object")
        except json.JSONDecodeError as error:
            problems.append(f"line {number}: is not JSON ({error.msg}, column {error.colno})")
        except ValueError as error:
            problems.append(f"line {number}: {error}")
        except RecursionError:
            problems.append(f"line {number}: is nested too deeply")
        else:
            count += 1
            yield JsonLine(number, record)
        if len(problems) > MOST_PROBLEMS:
            problems.append("and perhaps more; reading stopped here")
            return
