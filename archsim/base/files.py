"""Where the shipped data lies, and how files of strangers are read: bounded, as UTF-8, with one kind of error.

`archsim.base.writer` writes files.
"""

from __future__ import annotations

import zlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from archsim.base.errors import InputError, MissingFile

GZIP_RATIO = 100  # a file that inflates further than this is taken for a bomb
CHUNK = 1 << 20


def data_folder(name: str) -> Traversable:
    """The folder of shipped data called `name` (`hwspecs`, `traces/nets`, ...).

    An installed wheel holds it under `archsim/_data`; in a checkout or an editable install it is the top-level folder.
    """
    package = files("archsim")
    shipped = package.joinpath("_data", *name.split("/"))
    if shipped.is_dir():
        return shipped
    return Path(str(package)).parent.joinpath(*name.split("/"))


def read_text(path: str | Path | Traversable, limit: int) -> str:
    """The text of a file of at most `limit` bytes (after inflating, when its name ends in `.gz`).

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
    """The first `count` bytes of a file. Raises MissingFile, or InputError for a folder or an unreadable file."""
    try:
        if not place.exists():
            raise MissingFile(f"{place}: no such file")
        if place.is_dir():
            raise InputError(str(place), "is a folder, not a file")
        with place.open("rb") as stream:
            return stream.read(count)
    except OSError as error:
        raise InputError(str(place), f"cannot be read ({error.strerror or error})") from None
    except ValueError:  # a zero byte, or half a character
        raise InputError(str(place), "is no name of a file") from None


def read_bytes(place: Path | Traversable, limit: int) -> bytes:
    """The content of a file of at most `limit` bytes, inflated when its name ends in `.gz`.

    Raises MissingFile, or InputError for a folder, an unreadable, oversized or broken file.
    """
    try:
        if isinstance(place, Path) and not place.exists():
            raise MissingFile(f"{place}: no such file")
        if place.is_dir():
            raise InputError(str(place), "is a folder, not a file")
        with place.open("rb") as stream:
            data = stream.read(limit + 1)
        if str(place).endswith(".gz"):
            data = _inflate(data, limit, str(place))
    except OSError as error:
        raise InputError(str(place), f"cannot be read ({error.strerror or error})") from None
    except ValueError:  # a zero byte, or half a character
        raise InputError(str(place), "is no name of a file") from None
    if len(data) > limit:
        raise InputError(str(place), f"is larger than {limit} bytes")
    return data


def _inflate(data: bytes, limit: int, path: str) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    cap = min(limit, max(len(data), 1024) * GZIP_RATIO)
    try:
        inflated = stream.decompress(data, cap + 1)
    except zlib.error as error:
        raise InputError(path, f"is not a gzip file ({error})") from None
    if len(inflated) > cap:
        raise InputError(path, f"inflates past {cap} bytes; refused")
    if not stream.eof:
        raise InputError(path, "is a truncated gzip file")
    return inflated
