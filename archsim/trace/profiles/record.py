"""What a profile holds: calls with shapes, kernels with times, the run that is shown; and the objects of its file one by one.

The file is a list of objects, or an object with such a list under one key: both forms of Chrome's trace event format. Each object
is read by `json` itself; only the list around them is read here.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.base.files import LIMITS, pieces_of
from archsim.trace.dims import short
from archsim.trace.jsonlines import no_number, whole

PYTORCH = "PyTorch profiler"  # of `Profile.source`
Argument = Any  # a shape (tuple), a list of shapes, or the value of what is no tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledTensor:
    """A tensor that a call was given or made: its shape, and the type of its values as the profile writes it."""

    shape: tuple[int, ...]
    type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledCall:
    """One call of an operator, with all that it called itself.

    operator: as the framework calls it: aten::conv2d, Conv
    name: of a node, where the profile has one
    arguments: tensors, lists of them, and values, by place
    results: tensors that it made, where the profile has them
    start_s, duration_s: on the host [s]
    within: operators that ran inside it
    """

    operator: str
    name: str = ""
    arguments: tuple[Argument, ...] = ()
    results: tuple[ProfiledTensor, ...] = ()
    start_s: float
    duration_s: float
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledKernel:
    """One kernel or copy on a device. `call` is the place of the call that launched it; None where that is not known."""

    name: str
    start_s: float
    duration_s: float
    stream: str = ""
    copy: bool = False
    call: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile, of whose runs one is held: that of the median time.

    source: of which tool the file is
    calls: of the run, in the order in which they began; none overlaps another of its thread
    kernels: of the run, in the order in which they began; empty where the profile is of a CPU alone
    run_s: time of each recorded run [s]; `shown` is the place of the one that is held
    """

    path: str
    source: str
    calls: tuple[ProfiledCall, ...]
    kernels: tuple[ProfiledKernel, ...]
    run_s: tuple[float, ...]
    shown: int
    device: str = ""
    shapes: bool = True
    notes: tuple[str, ...] = ()


# ----------------------------------------------------------------------------------------------- objects of a JSON file

LIMIT = LIMITS["profile"]
CHUNK = 1 << 20  # bytes that are decoded at once
LARGEST_OBJECT = 1 << 20  # characters of one event
US = 1e-6
LATEST_US = 1e18  # of a time
SPACE = re.compile(r"[ \t\n\r]*")


DECODER = json.JSONDecoder(parse_constant=no_number, parse_int=whole)


def middle(lengths: Sequence[float]) -> int:
    """The place of the median, of two the lower one."""
    return sorted(range(len(lengths)), key=lambda i: lengths[i])[(len(lengths) - 1) // 2]


def events(path: Path, key: str) -> Iterator[dict[str, Any]]:
    """The objects of a list, or of the list under `key`. Raises MissingFile or InputError with the place of what is wrong."""
    yield from _JsonText(path).listed(key)


def texts_of(path: Path) -> Iterator[str]:
    """The text of a file piece by piece, inflated where it is gzip. Raises MissingFile or InputError."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    read = 0
    try:
        for data in pieces_of(path):
            for at in range(0, len(data), CHUNK):
                yield decoder.decode(data[at : at + CHUNK])
            read += len(data)
            if read > LIMIT.size:
                raise InputError(str(path), f"is larger than {LIMIT.size} bytes")
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise InputError(str(path), f"is not UTF-8 text (behind byte {read})") from None


class _JsonText:
    """A file while it is read: some text of it, and the place within."""

    def __init__(self, path: Path) -> None:
        self.path, self.pieces = str(path), texts_of(path)
        self.text, self.at, self.before, self.ended = "", 0, 0, False

    def wrong(self, said: str) -> InputError:
        """The error at this place."""
        return InputError(self.path, f"character {self.before + self.at}: {said}")

    def more(self) -> bool:
        """Read on; False at the end of the file."""
        self.before += self.at
        piece = next(self.pieces, None)
        self.text, self.at = self.text[self.at :] + (piece or ""), 0
        self.ended = piece is None
        return not self.ended

    def next(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            match = SPACE.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def expect(self, *wanted: str) -> str:
        """The next character, which must be one of these."""
        found = self.next()
        if found not in wanted or not found:
            said = f"has {short(found)}" if found else "ends"
            raise self.wrong(f"{said} where {' or '.join(map(repr, wanted))} is expected: it is no JSON, or cut off")
        self.at += 1
        return found

    def value(self) -> Any:
        """The next JSON value."""
        self.next()
        while True:
            try:
                found, end = DECODER.raw_decode(self.text, self.at)
                if end < len(self.text) or self.ended:
                    self.at = end
                    return found
            except json.JSONDecodeError as error:
                if self.ended:
                    raise self.wrong(f"is not JSON, or cut off ({error.msg})") from None
            except RecursionError:
                raise self.wrong("is nested too deeply") from None
            except ValueError as error:
                raise self.wrong(str(error)) from None
            if len(self.text) - self.at > LARGEST_OBJECT:
                raise self.wrong(f"is not JSON, or has a value of more than {LARGEST_OBJECT} characters")
            self.more()

    def listed(self, key: str) -> Iterator[dict[str, Any]]:
        """The objects of the list."""
        if not self.next():
            raise InputError(self.path, "is empty")
        if self.expect("[", "{") == "[":
            yield from self.items("")
        else:
            yield from self.under(key)
        if self.next():
            raise self.wrong("has more behind its end")

    def under(self, key: str) -> Iterator[dict[str, Any]]:
        """The objects of the list under a key of an object that has begun."""
        found = False
        if self.next() == "}":
            self.at += 1
        else:
            while True:
                if self.next() != '"':
                    self.expect('"')
                name = self.value()
                self.expect(":")
                if name == key and not found:
                    found = True
                    self.expect("[")
                    yield from self.items(key)
                else:
                    self.value()
                if self.expect(",", "}") == "}":
                    break
        if not found:
            raise InputError(self.path, f"has no list {key!r}: it is no profile that is read here")

    def items(self, key: str) -> Iterator[dict[str, Any]]:
        """The objects of a list that has begun."""
        if self.next() == "]":
            self.at += 1
            return
        for count in range(LIMIT.entries):
            found = self.value()
            if type(found) is not dict:
                raise InputError(self.path, f"event {count} of its list{f' {key!r}' if key else ''} is no object")
            yield found
            if self.expect(",", "]") == "]":
                return
        raise InputError(self.path, f"has more than {LIMIT.entries} events; refused")


def times_of(event: Mapping[str, Any], path: str | Path, count: int) -> tuple[float, float]:
    """Start and duration of an event [us]. Raises InputError for what is no time."""
    found = []
    for key in ("ts", "dur"):
        value = event.get(key, 0 if key == "dur" else None)
        if type(value) not in (int, float) or not abs(value) <= LATEST_US or (key == "dur" and value < 0):
            raise InputError(str(path), f"event {count} ({short(event.get('name'))}) has {key} = {short(value)}, "
                                        "which is no time in microseconds")  # fmt: skip
        found.append(float(value))
    return found[0], found[1]
