"""Address traces of programs: Valgrind's lackey and Dinero's din, plain or gzip, read piece by piece.

    valgrind --tool=lackey --trace-mem=yes --log-file=prog.lackey ./prog

    lackey   "I  04001000,3"   an instruction of 3 bytes         din   "2 4001000"    an instruction
             " L 1ffefff0,8"   a load of 8 bytes                       "0 1ffefff0"   a read
             " S 1ffefff0,8"   a store                                 "1 1ffefff0"   a write
             " M 1ffefff0,8"   a load and a store

Addresses are hexadecimal. Lines of Valgrind about itself (`==123==`) are passed over. A file is a stranger's: it is never held
whole, and what is wrong is said with its line.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from archsim.cache.access import Accesses
from archsim.errors import InputError, MissingFile

PIECE = 1 << 20  # bytes read at once
# A trace deflates to a thirtieth, that of a tight loop to a hundredth; what inflates further is taken for a bomb.
GZIP_RATIO = 250
LONGEST_LINE = 256
LARGEST = 4096  # bytes of one access; Valgrind writes a few hundred at most, for the saved registers of a processor
MOST_SHOWN = 40  # characters of a line that an error quotes
DIN_SIZE = 4  # bytes of an access of a din trace, which does not say
LACKEY = {"I": (2,), " L": (0,), " S": (1,), " M": (0, 1)}
DIN = {"0": (0,), "1": (1,), "2": (2,)}
FETCH = 2
ADDRESSES = 1 << 64


def read(path: str | Path, instructions: bool = False, tell: Callable[[float], None] | None = None) -> Iterator[Accesses]:
    """The accesses of a trace file in order, in pieces. Data are those of core 0; `instructions`, if asked for, of core 1.

    `tell` hears the share of the file that has been read. Raises MissingFile, or InputError for a file that is no trace or is
    broken, with the line.
    """
    place = Path(path)
    if not place.exists():
        raise MissingFile(f"{place}: no such file")
    if place.is_dir():
        raise InputError(str(place), "is a folder, not a file")
    whole = max(place.stat().st_size, 1)
    number, kept, found, form = 0, b"", False, ""
    try:
        for piece, position in _pieces(place):
            lines = (kept + piece).split(b"\n")
            kept = lines.pop()
            form = form or _form(lines, place)
            if len(kept) > LONGEST_LINE:
                raise InputError(place, f"line {number + len(lines) + 1}: is longer than {LONGEST_LINE} characters; not a trace")
            accesses = _parsed(lines, number, form, instructions, place)
            number += len(lines)
            found = found or len(accesses) > 0
            yield accesses
            if tell is not None:
                tell(min(1.0, position / whole))
        if kept:
            form = form or _form([kept], place)
            accesses = _parsed([kept], number, form, instructions, place)
            found = found or len(accesses) > 0
            yield accesses
    except OSError as error:
        raise InputError(place, f"cannot be read ({error.strerror or error})") from None
    if not found:
        raise InputError(place, "has no accesses; valgrind --tool=lackey --trace-mem=yes --log-file=FILE writes some")


def _pieces(place: Path) -> Iterator[tuple[bytes, int]]:
    """The content, inflated if it is gzip by its first bytes, with the position in the file."""
    with place.open("rb") as stream:
        start = stream.read(2)
        stream.seek(0)
        if start == b"\x1f\x8b":
            yield from _inflated(iter(lambda: stream.read(PIECE), b""), place)
            return
        if place.suffix == ".gz":
            raise InputError(place, "is not a gzip file, though its name says so")
        position = 0
        for piece in iter(lambda: stream.read(PIECE), b""):
            position += len(piece)
            yield piece, position


def _inflated(pieces: Iterator[bytes], place: Path) -> Iterator[tuple[bytes, int]]:
    inflater, taken, given = zlib.decompressobj(wbits=31), 0, 0
    for piece in pieces:
        taken += len(piece)
        rest = piece
        while rest:
            if inflater.eof:  # gzip files may stand one after the other
                inflater = zlib.decompressobj(wbits=31)
            try:
                text = inflater.decompress(rest, PIECE)
            except zlib.error as error:
                raise InputError(place, f"is not a gzip file, or a broken one ({error})") from None
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            given += len(text)
            if given > GZIP_RATIO * max(taken, 4096):
                raise InputError(place, f"inflates to more than {GZIP_RATIO} times its size; inflate it yourself if you trust it")
            if text:
                yield text, taken
    if not inflater.eof:
        raise InputError(place, "is a truncated gzip file; what came before its end has been read")


def _form(lines: list[bytes], place: Path) -> str:
    """Which format the first line that says something is in."""
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith((b"==", b"--")):
            continue
        if words[0] in (b"I", b"L", b"S", b"M"):
            return "lackey"
        if words[0] in (b"0", b"1", b"2"):
            return "din"
        raise InputError(place, f"line {number}: {_quoted(line)} is neither lackey (' L 1ffefff0,8') nor din ('0 1ffefff0')")
    return ""


def _quoted(line: bytes) -> str:
    return repr(line[:MOST_SHOWN].decode("latin-1"))


def _parsed(lines: list[bytes], before: int, form: str, instructions: bool, place: Path) -> Accesses:
    """The accesses of some lines, of which the first is line `before` + 1 of the file."""
    address: list[int] = []
    size: list[int] = []
    kind: list[int] = []
    one = _lackey if form == "lackey" else _din
    for offset, raw in enumerate(lines):
        if not raw or raw.startswith((b"==", b"--")) or raw.isspace():
            continue
        try:
            kinds, where, length = one(raw.decode("ascii"))
            if not (0 <= where <= ADDRESSES - length and 1 <= length <= LARGEST):
                raise ValueError
        except (ValueError, KeyError):
            wanted = "' L 1ffefff0,8'" if form == "lackey" else "'0 1ffefff0'"
            problem = f"line {before + offset + 1}: {_quoted(raw)} is no access of a {form} trace, like {wanted}"
            raise InputError(place, problem) from None
        if kinds[0] == FETCH and not instructions:
            continue
        for each in kinds:
            address.append(where)
            size.append(length)
            kind.append(each)
    kinds_ = np.array(kind, dtype=np.int64)
    return Accesses(
        address=np.array(address, dtype=np.uint64).view(np.int64), size=np.array(size, dtype=np.int64),
        store=(kinds_ == 1).astype(np.int64), core=(kinds_ == FETCH).astype(np.int64) if instructions else 0,
    )  # fmt: skip


def _lackey(line: str) -> tuple[tuple[int, ...], int, int]:
    where, separator, length = line[3:].partition(",")
    if not separator or "_" in line or line[2] != " ":
        raise ValueError
    return LACKEY[line[:2].rstrip()], int(where, 16), int(length)


def _din(line: str) -> tuple[tuple[int, ...], int, int]:
    label, where, *_ = line.split()
    if "_" in where:
        raise ValueError
    return DIN[label], int(where, 16), DIN_SIZE
