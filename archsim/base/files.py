"""Where the shipped data lies, and how files of strangers are read: bounded by kind, as UTF-8, with one kind of error.

`archsim.base.writer` writes files.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import IO

from archsim.base.errors import InputError, MissingFile

# --------------------------------------------------------------------------------------------------------------- limits

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLimit:
    """The most that one file may hold.

    size: bytes, after inflating
    depth: tables and lists inside each other
    entries: what the file is a list of: keys, ops, rows, parts
    """

    size: int
    depth: int
    entries: int


LIMITS = {
    **dict.fromkeys(("device", "node", "silicon"), InputLimit(size=256 * KIB, depth=8, entries=5_000)),
    "kernels": InputLimit(size=MIB, depth=1, entries=10_000),
    "stack": InputLimit(size=256 * KIB, depth=12, entries=10_000),
    "calibration": InputLimit(size=MIB, depth=8, entries=50_000),
    "study": InputLimit(size=64 * KIB, depth=8, entries=5_000),
    "sources": InputLimit(size=MIB, depth=8, entries=50_000),
    "network": InputLimit(size=64 * MIB, depth=32, entries=250_000),
    "config": InputLimit(size=4 * MIB, depth=32, entries=2_000),
    "prototxt": InputLimit(size=4 * MIB, depth=16, entries=200_000),
    "onnx": InputLimit(size=(1 << 31) - 1, depth=32, entries=30_000),  # weights are not read; entries are nodes
    "chakra": InputLimit(size=64 * MIB, depth=32, entries=30_000),
    "profile": InputLimit(size=16 << 30, depth=32, entries=50_000_000),  # read event by event; entries are events
    "measurements": InputLimit(size=64 * MIB, depth=1, entries=1_000_000),
    "prices": InputLimit(size=MIB, depth=1, entries=10_000),
    "shares": InputLimit(size=MIB, depth=1, entries=4_000),
    "arrivals": InputLimit(size=256 * MIB, depth=1, entries=10_000_000),
    "upload": InputLimit(size=256 * MIB, depth=1, entries=8),  # entries are files at once, each within the limits of its kind
    "sweep": InputLimit(size=1 << 50, depth=32, entries=1_000),  # entries of what it says of itself; points are read one by one
}
MOST_DOTS = 16  # in a key of TOML, whose parser takes seconds for thousands


# ---------------------------------------------------------------------------------------------------------------- files

GZIP = b"\x1f\x8b"
GZIP_RATIO = 250  # a file that inflates further is taken for a bomb; traces of tight loops come to 1/100
MOST_MEMBERS = 1_000_000  # of a gzip file; bgzip writes one for 64 KiB
SPECIAL = {
    stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}  # fmt: skip
_FOLDER: ContextVar[str | None] = ContextVar("folder", default=None)  # in which alone a name may lead to a file; None: anywhere
CHUNK = 1 << 20  # bytes; a smaller file may inflate by any factor
PACKED = 1 << 12  # bytes that are inflated at once: what is behind the end of a member is copied


def data_folder(name: str) -> Traversable:
    """The folder of shipped data called `name` (`hwspecs`, `traces/nets`, ...).

    An installed wheel holds it under `archsim/_data`; in a checkout or an editable install it is the top-level folder.
    """
    package = files("archsim")
    shipped = package.joinpath("_data", *name.split("/"))
    if shipped.is_dir():
        return shipped
    return Path(str(package)).parent.joinpath(*name.split("/"))


@contextmanager
def files_within(folder: str) -> Iterator[None]:
    """For the time of a page's request: no name leads to a file outside of `folder`."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def is_path(name: str) -> bool:
    """Whether a name of a device, a stack or a node is the path of its file."""
    return "/" in name or "\\" in name or name.endswith(".toml")


def named_file(name: str, stream: bool = False) -> Path:
    """The file that a name is the path of: the one way to it from a word of a command, of a page or of another file.

    stream: one that a user may pipe to a command; all else must be a regular file with content, since a pipe, a device and what
    the kernel shows as a file can block for ever.

    Raises InputError for what may not be opened; whether a file is there is for its reader to say.
    """
    folder = _FOLDER.get()
    if folder is not None and os.path.dirname(os.path.abspath(name)) != folder:
        raise InputError(name, "is a file; on the page only what is shipped can be named")
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return Path(name)
    if not stream and (what := SPECIAL.get(stat.S_IFMT(found.st_mode), "" if found.st_size else "empty")):
        raise InputError(name, f"is {what}; name a file")
    return Path(name)


def read_text(path: str | Path | Traversable, limit: int) -> str:
    """The text of a file of at most `limit` bytes after inflating.

    Raises MissingFile, or InputError for a folder, an unreadable, empty, oversized, binary or broken file.
    """
    place = Path(path) if isinstance(path, str) else path
    data = read_bytes(place, limit)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(str(place), f"is not UTF-8 text (byte {error.start})") from None
    if not text.strip():
        raise InputError(str(place), "is empty")
    if "\0" in text:
        raise InputError(str(place), "is binary, not text")
    return text


def read_head(place: Path, count: int) -> bytes:
    """The first `count` bytes of a file, or of what it inflates to. Raises MissingFile or InputError as `pieces_of` does."""
    head = b""
    with closing(pieces_of(place)) as pieces:
        while len(head) < count and (piece := next(pieces, b"")):
            head += piece
    return head[:count]


def read_bytes(place: Path | Traversable, limit: int) -> bytes:
    """The content of a file of at most `limit` bytes after inflating. Raises MissingFile or InputError as `pieces_of` does."""
    found = bytearray()
    for piece in pieces_of(place):
        found += piece
        if len(found) > limit:
            raise InputError(str(place), f"is larger than {limit} bytes")
    return bytes(found)


@contextmanager
def opened(place: Path | Traversable) -> Iterator[IO[bytes]]:
    """A file to be read. Raises MissingFile, or InputError for a folder or an unreadable file."""
    path = str(place)
    try:
        if isinstance(place, Path) and not place.exists():
            raise MissingFile(f"{path}: no such file")
        if place.is_dir():
            raise InputError(path, "is a folder, not a file")
        with place.open("rb") as stream:
            yield stream
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})") from None
    except ValueError:  # a zero byte, or half a character
        raise InputError(path, "is no name of a file") from None


def pieces_of(place: Path | Traversable, tell: Callable[[int], object] = lambda taken: None) -> Generator[bytes]:
    """The content of a file in pieces, inflated where it begins as gzip. `tell` hears how many bytes of the file are read.

    Raises what `opened` does, and InputError for a broken file.
    """
    with opened(place) as stream:
        first = stream.read(PACKED)
        if first.startswith(GZIP):
            yield from _inflated(chain([first], iter(lambda: stream.read(PACKED), b"")), str(place), tell)
            return
        if str(place).lower().endswith(".gz") and first:
            raise InputError(str(place), "is not a gzip file, though its name says so")
        taken = 0
        for piece in filter(None, chain([first + stream.read(CHUNK)], iter(lambda: stream.read(CHUNK), b""))):
            yield piece
            taken += len(piece)
            tell(taken)


def _inflated(packed: Iterable[bytes], path: str, tell: Callable[[int], object]) -> Iterator[bytes]:
    """The contents of all members of a gzip file one after the other (RFC 1952, 2.2). Zeros behind the last are padding."""
    member, members, taken, given = zlib.decompressobj(wbits=31), 1, 0, 0
    for piece in packed:
        rest, taken = piece, taken + len(piece)
        while rest:
            if member.eof:
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                member, members = zlib.decompressobj(wbits=31), members + 1
            try:
                found = member.decompress(rest, CHUNK)
            except zlib.error as error:
                what = "has something else behind its gzip data" if members > 1 else "is not a gzip file, or a broken one"
                raise InputError(path, f"{what} ({error})") from None
            rest, given = member.unused_data if member.eof else member.unconsumed_tail, given + len(found)
            if given > max(GZIP_RATIO * taken, CHUNK) or members > MOST_MEMBERS:
                raise InputError(path, f"inflates to more than {GZIP_RATIO} times its size, or has more than {MOST_MEMBERS} "
                                       "parts; inflate it yourself if you trust it")  # fmt: skip
            if found:
                yield found
        tell(taken)
    if not member.eof:
        raise InputError(path, "is a truncated gzip file; copy it again, or inflate what there is of it with zcat")
