"""A progress line on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class Progress:
    """A progress line on standard error, only on a terminal and only for work that takes long."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._shown, self._next = False, time.monotonic() + 0.5

    def __enter__(self) -> Callable[[str], None]:
        return self._tell

    def _tell(self, text: str) -> None:
        if self._stream.isatty() and time.monotonic() >= self._next:
            self._shown, self._next = True, time.monotonic() + 0.1
            self._stream.write(f"\r\x1b[Karchsim: {text}")
            self._stream.flush()

    def __exit__(self, *failure: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
