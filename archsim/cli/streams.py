"""The standard streams and the signals of a command: what may be closed, full, or in another encoding, and what ends it early."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = ("SIGTERM", "SIGHUP")


class Terminated(KeyboardInterrupt):
    """A signal that ends the process, raised like an interrupt so that nothing half-written is left."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def output_is_open() -> bool:
    """Whether standard output can be written, after giving closed streams a place, so that no file takes their numbers.

    What the encoding of a terminal does not have is written as its number: a name of a file may have any bytes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is not None:
        return True
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return False


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise Terminated for the signals that would end the process without clearing up; those ignored stay ignored."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ENDING:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, _: object) -> None:
    raise Terminated(number)
