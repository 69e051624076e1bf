"""Address traces of programs: Valgrind's lackey and Dinero's din, plain or gzip, read in pieces.

    valgrind --tool=lackey --trace-mem=yes --log-file=prog.lackey ./prog

    lackey   "I  04001000,3"   an instruction of 3 bytes         din   "2 4001000"    an instruction
             " L 1ffefff0,8"   a load of 8 bytes                       "0 1ffefff0"   a read
             " S 1ffefff0,8"   a store                                 "1 1ffefff0"   a write
             " M 1ffefff0,8"   a load and a store

Addresses are hexadecimal. Valgrind's own messages (`==123==`) are skipped. A file is never held in memory as a whole, and every
error names its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from archsim.base.errors import InputError
from archsim.base.files import pieces_of
from archsim.cache.access import Accesses

LONGEST_LINE = 256
LARGEST = 4096  # B of one access; Valgrind writes a few hundred at most, when a processor saves its registers
MOST_SHOWN = 40  # characters of a line that an error quotes
FETCH, MODIFY = 2, 3  # 0 and 1 are a load and a store
ADDRESSES = 1 << 64
NOTHING = re.compile(rb"==.*|--.*|[ \t\r]*")  # lines without an access


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """A trace format. `start` matches its first line, `line` finds (kind, address, size), `kinds` maps the kinds to ours."""

    name: str
    start: re.Pattern[bytes]
    line: re.Pattern[bytes]
    kinds: dict[bytes, int]
    example: str
    size: int = 0  # bytes of an access, where the format does not say


LACKEY = TraceFormat(
    name="lackey", start=re.compile(rb"I | [LSM] "), kinds={b"I ": FETCH, b" L": 0, b" S": 1, b" M": MODIFY},
    line=re.compile(rb"^(I | [LSM]) ([0-9a-fA-F]{1,16}),([0-9]{1,9})[ \t\r]*$", re.MULTILINE), example=" L 1ffefff0,8",
)  # fmt: skip
DIN = TraceFormat(
    name="din", start=re.compile(rb"[012][ \t]"), kinds={b"0": 0, b"1": 1, b"2": FETCH}, size=4,
    line=re.compile(rb"^([012])[ \t]+(?:0x)?([0-9a-fA-F]{1,16})()(?:[ \t\r].*)?$", re.MULTILINE), example="0 1ffefff0",
)  # fmt: skip


def read(path: str | Path, instructions: bool = False, tell: Callable[[float], None] | None = None) -> Iterator[Accesses]:
    """The accesses of a trace file in order, in pieces. Data accesses are those of core 0, `instructions`, if wanted, of core 1.

    `tell` receives the share of the file that has been read. Raises MissingFile, or InputError with the line for a file that is
    no trace or is broken.
    """
    place = Path(path)
    number, kept, found = 0, b"", False
    form: TraceFormat | None = None

    def told(taken: int) -> None:
        if tell is not None:
            tell(min(1.0, taken / max(place.stat().st_size, 1)))

    for piece in chain(pieces_of(place, told), [b""]):
        text, end, kept = (kept + piece).rpartition(b"\n") if piece else (kept, b"", b"")  # the last line may lack its end
        if len(kept) > LONGEST_LINE:
            line = number + len(text.splitlines()) + 1
            raise InputError(place, f"line {line}: is longer than {LONGEST_LINE} characters; not a trace")
        form = form or _form(text, place)
        if form and text:
            accesses = _parsed(text, number, form, instructions, place)
            found = found or len(accesses) > 0
            yield accesses
        number += text.count(b"\n") + len(end)
    if not found:
        raise InputError(place, "has no accesses; valgrind --tool=lackey --trace-mem=yes --log-file=FILE writes some")


def _form(text: bytes, place: Path) -> TraceFormat | None:
    """The format of the first line with content."""
    for number, line in enumerate(text.split(b"\n"), 1):
        if NOTHING.fullmatch(line):
            continue
        for form in (LACKEY, DIN):
            if form.start.match(line):
                return form
        wanted = " nor ".join(f"{form.name} ({form.example!r})" for form in (LACKEY, DIN))
        raise InputError(place, f"line {number}: {_quoted(line)} is neither {wanted}")
    return None


def _quoted(line: bytes) -> str:
    return repr(line[:MOST_SHOWN].decode("latin-1"))


def _parsed(text: bytes, before: int, form: TraceFormat, instructions: bool, place: Path) -> Accesses:
    """The accesses of some whole lines, the first of which is line `before` + 1 of the file."""
    rows = form.line.findall(text)
    complete = len(rows) > text.count(b"\n")
    if not instructions:
        rows = [row for row in rows if form.kinds[row[0]] != FETCH]
    address = np.array([int(where, 16) for _, where, _ in rows], dtype=np.uint64)
    size = np.array([int(length or form.size) for _, _, length in rows], dtype=np.int64)
    kind = np.array([form.kinds[name] for name, _, _ in rows], dtype=np.int64)
    inside = (size >= 1) & (size <= LARGEST) & (address <= -size.astype(np.uint64))  # modulo 2^64
    if not (complete and inside.all()):
        _check(text, before, form, place)
    both = kind == MODIFY  # a load, then a store
    row = np.repeat(np.arange(len(kind)), 1 + both)
    kind = np.where(both, 0, kind)[row]
    kind[1:][row[1:] == row[:-1]] = 1
    return Accesses(
        address=address[row].view(np.int64), size=size[row], store=(kind == 1).astype(np.int64),
        core=(kind == FETCH).astype(np.int64) if instructions else 0,
    )  # fmt: skip


def _check(text: bytes, before: int, form: TraceFormat, place: Path) -> None:
    """Raise InputError for the first line that is neither an access nor a line without one."""
    for number, line in enumerate(text.split(b"\n"), before + 1):
        found = form.line.fullmatch(line)
        size = int(found[3] or form.size) if found else 0
        if NOTHING.fullmatch(line) or (found and 1 <= size <= LARGEST and int(found[2], 16) + size <= ADDRESSES):
            continue
        raise InputError(place, f"line {number}: {_quoted(line)} is no access of a {form.name} trace, like {form.example!r}")
