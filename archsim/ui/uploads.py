"""Networks and devices of a user's own, dropped on the page: kept in a folder of the server until it ends, read and never run.

What a browser sends is a file's bytes and its name. The name is only shown; the file lies under one that is made here, so no
address leads to another file of this computer, and neither does a word of a file (`files_within`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from threading import BoundedSemaphore
from typing import Any, BinaryIO

from archsim.base.errors import ArchsimError, ArgumentError, Unsupported
from archsim.base.files import files_within
from archsim.base.limits import LIMITS, MIB

MOST_BYTES = LIMITS["upload"].size  # of one file; the network in a larger one belongs to the command line
MOST_FILES = LIMITS["upload"].entries  # at once; the oldest makes place for another
MOST_PENDING = 2  # that are being sent
CHUNK = 1 << 20
LONGEST_STEM = 40  # characters that are kept of a name
SPEC = ".toml"
NETWORKS = (".onnx", ".jsonl", ".jsonl.gz", ".prototxt", ".et", ".json")


class TooLarge(ArgumentError):
    """A file of more bytes than are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file of the user's own. name: as the state of the page calls it; title: as the user does; hw: a device, else a network"""

    name: str
    title: str
    path: Path
    hw: bool


class Uploads:
    """The files that were dropped on the page, by the names that its state has for them."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._pending = BoundedSemaphore(MOST_PENDING)
        self._files: dict[str, UploadedFile] = {}

    @property
    def files(self) -> Mapping[str, UploadedFile]:
        """All of them, the oldest first."""
        return self._files

    @property
    def folder(self) -> str:
        """Where they lie; empty before the first."""
        return self._folder.name if self._folder is not None else ""

    def take(self, title: str, length: int, body: BinaryIO, lock: AbstractContextManager[Any]) -> UploadedFile:
        """Write down what is sent, and keep it if it can be read as a network or a device; `lock` guards the files.

        Raises ArgumentError for a file, a size, a name or an end that cannot be, and OSError where the browser has gone or the
        disk is full; then nothing of it stays.
        """
        title = re.split(r"[/\\]", title)[-1].strip() or "file"
        suffix = _suffix(title)
        if length == 0:
            raise ArgumentError(f"{title} is empty")
        if length > MOST_BYTES:
            raise TooLarge(f"{title} has {length / MIB:,.0f} MiB; at most {MOST_BYTES // MIB} MiB are taken here: "
                           "`archsim whatif --net FILE` reads larger ones")  # fmt: skip
        if not self._pending.acquire(blocking=False):
            raise ArgumentError(f"{title}: other files are still being sent; drop it again when they are there")
        sent = None
        try:
            with lock:
                self._folder = self._folder or TemporaryDirectory(prefix="archsim-ui-")
            handle, place = mkstemp(suffix, dir=self._folder.name)
            sent = Path(place)
            digest = _written(handle, title, length, body)
            stem = re.sub(r"[^A-Za-z0-9_-]+", "_", title[: -len(suffix)])[:LONGEST_STEM] or "file"
            name = f"{stem}-{digest[:8]}{suffix}"
            with lock:
                return self._keep(UploadedFile(name=name, title=title, path=sent.with_name(name), hw=suffix == SPEC), sent)
        finally:
            self._pending.release()
            if sent is not None:
                sent.unlink(missing_ok=True)

    def _keep(self, file: UploadedFile, sent: Path) -> UploadedFile:
        if file.name not in self._files:
            sent.rename(file.path)
            try:
                with files_within(self.folder):
                    _check(file)
            except BaseException as error:
                file.path.unlink()
                if not isinstance(error, ArchsimError):
                    raise
                raise ArgumentError(str(error).replace(str(file.path), file.title)) from None
        self._files.pop(file.name, None)
        self._files[file.name] = file
        while len(self._files) > MOST_FILES:
            self._files.pop(next(iter(self._files))).path.unlink(missing_ok=True)
        return file

    def plain(self, message: str, shown: Callable[[str], str] = str) -> str:
        """A message with the user's own names of files in place of those of this folder; `shown` escapes both, of a page."""
        for one in self._files.values():
            message = message.replace(shown(str(one.path)), shown(one.title))
        return message

    def close(self) -> None:
        """Delete all."""
        self._files.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _written(handle: int, title: str, length: int, body: BinaryIO) -> str:
    """Write down so many bytes; their digest. Raises ArgumentError where fewer come."""
    summed, left = hashlib.sha256(), length
    with open(handle, "wb") as stream:
        while left > 0 and (piece := body.read(min(CHUNK, left))):
            left -= stream.write(piece)
            summed.update(piece)
    if left:
        raise ArgumentError(f"{title}: ended after {length - left} of {length} bytes")
    return summed.hexdigest()


def _suffix(title: str) -> str:
    """The ending by which a file is read. Raises ArgumentError for one that none reads."""
    found = [suffix for suffix in (SPEC, *NETWORKS) if title.lower().endswith(suffix)]
    if not found:
        raise ArgumentError(f"{title}: a device ends in {SPEC}, a network in {', '.join(NETWORKS)}")
    return max(found, key=len)


def _check(file: UploadedFile) -> None:
    """Raises ArchsimError for a file that is neither a device nor a network."""
    if file.hw:
        from archsim.device.catalog import find as find_device
        from archsim.estimation.names_in_spec import check_names

        check_names(find_device(str(file.path)), None, None)
        return
    from archsim.trace.file import load

    try:
        load(str(file.path))
    except Unsupported:
        from archsim.trace.huggingface.catalog import find  # a model that is no network yet may be one that an engine serves

        if file.path.suffix != ".json":
            raise
        find(str(file.path))
    except ArgumentError as error:
        if "bind" not in str(error):  # sizes are given on the page
            raise
