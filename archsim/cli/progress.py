"""A progress line on standard error."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable

QUIET, STEP = 0.5, 0.1  # seconds before the first line, and between two lines
_COUNT = re.compile(r"(\d[\d,]*) of (?:at most )?(\d[\d,]*)")


class Progress:
    """A progress line on standard error, only on a terminal and only for work that takes long.

    Where what is told counts (`3 of 14 rows`), it ends with the time that the rest will take at the pace so far.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._shown, self._next = False, time.monotonic() + QUIET
        self._pace = (0, 0, 0.0)  # of what is counted: how many, the first that was told, and when

    def __enter__(self) -> Callable[[str], None]:
        return self._tell

    def _tell(self, text: str) -> None:
        now = time.monotonic()
        left = self._left(text, now)
        if self._stream.isatty() and now >= self._next:
            self._shown, self._next = True, now + STEP
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{f'archsim: {text}'[: max(width - len(left), 0)]}{left[:width]}")
            self._stream.flush()

    def _left(self, text: str, now: float) -> str:
        """How long the rest takes; nothing before there is a pace."""
        counted = _COUNT.search(text)
        if counted is None:
            return ""
        done, count = (int(number.replace(",", "")) for number in counted.groups())
        if self._pace[0] != count or done < self._pace[1]:
            self._pace = (count, done, now)
        _, first, began = self._pace
        return f", {duration((now - began) / (done - first) * max(count - done, 0))} left" if done > first and now > began else ""

    def __exit__(self, *failure: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Make room for what is printed in between."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def duration(seconds: float) -> str:
    """A time in the largest unit of which it has two.

    >>> duration(90.0), duration(7200.0)
    ('90 s', '2 hours')
    """
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} s"
