"""What every case must keep: errors meant for the user, ten seconds, finite numbers."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LIMIT_S = 10.0


class Hang(BaseException):
    """A case that takes longer than it may."""


class Broken(Exception):
    """An answer that breaks a promise."""


@contextmanager
def in_time(limit_s: float = LIMIT_S) -> Iterator[None]:
    """Raise Hang in the code that is still at it after `limit_s`."""

    def stop(*_: object) -> None:
        raise Hang(f"more than {limit_s:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def all_finite(value: Any, where: str = "") -> None:
    """Raise Broken for a number of an answer that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Broken(f"{where}: {value} is not finite")
    if isinstance(value, dict):
        for key, one in value.items():
            all_finite(one, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            all_finite(one, f"{where}[{number}]")


def _no_constant(text: str) -> float:
    raise Broken(f"{text} in JSON")


def json_of(text: str) -> Any:
    """The JSON of an answer; Broken where it is none, or holds what is not finite."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise Broken(f"is not JSON: {error}") from None
    all_finite(value)
    return value


Case = Callable[[], None]
