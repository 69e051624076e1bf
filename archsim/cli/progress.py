"""A progress line on standard error."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable

QUIET, STEP = 0.5, 0.1  # seconds before the first line, and between two lines
BAR = 20
_COUNT = re.compile(r"(\d[\d,]*) of (?:at most )?(\d[\d,]*)")


class Progress:
    """A progress line on standard error, only on a terminal and only for work that takes long.

    Where what is told counts (`3 of 14 rows`), the line has a bar and the time that the rest will take at the pace so far.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._shown, self._next = False, time.monotonic() + QUIET
        self._pace: _Pace | None = None

    def __enter__(self) -> Callable[[str], None]:
        return self._tell

    def _tell(self, text: str) -> None:
        now = time.monotonic()
        counted, bar, rest = _COUNT.search(text), "", ""
        if counted is not None:
            done, count = (int(number.replace(",", "")) for number in counted.groups())
            if self._pace is None or self._pace.count != count or done < self._pace.first:
                self._pace = _Pace(count, done, now)
            bar, rest = self._pace.bar(done), self._pace.rest(done, now)
        if self._stream.isatty() and now >= self._next:
            self._shown, self._next = True, now + STEP
            self._stream.write(f"\r\x1b[K{_fitted(bar, text, rest, shutil.get_terminal_size().columns - 1)}")
            self._stream.flush()

    def __exit__(self, *failure: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class _Pace:
    """How fast something is counted, from the first number that was told, and the time that the rest will take."""

    def __init__(self, count: int, first: int, began: float) -> None:
        self.count, self.first, self.began = count, first, began

    def bar(self, done: int) -> str:
        """How much is done."""
        filled = min(BAR, BAR * done // max(self.count, 1))
        return f"[{'#' * filled}{'-' * (BAR - filled)}] "

    def rest(self, done: int, now: float) -> str:
        """How long the rest takes; nothing before there is a pace."""
        if done <= self.first or now <= self.began:
            return ""
        return f", {duration((now - self.began) / (done - self.first) * max(self.count - done, 0))} left"


def _fitted(bar: str, text: str, rest: str, width: int) -> str:
    """One line within the width: a narrow one goes without the bar, a narrower one without the end of the text."""
    head = "archsim: "
    if len(head + bar + text + rest) > width:
        bar = ""
    return f"{head}{bar}{text[: max(width - len(head + bar + rest), 0)].rstrip()}{rest}"[: max(width, 1)]


def duration(seconds: float) -> str:
    """A time in the largest unit of which it has two.

    >>> duration(90.0), duration(7200.0)
    ('90 s', '2 hours')
    """
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} s"
