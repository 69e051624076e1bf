"""Networks and devices of a user's own, dropped on the page: kept in a folder of the server until it ends, read and never run.

What a browser sends is a file's bytes and its name. The name is only shown; the file lies under one that is made here, so no
address leads to another file of this computer, and neither does a word of a file (`files_within`).
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from archsim.base.errors import ArchsimError, ArgumentError, Unsupported
from archsim.base.files import LIMITS, files_within

MOST_BYTES = LIMITS["upload"].size  # of one file; the network in a larger one belongs to the command line
MOST_FILES = LIMITS["upload"].entries  # at once; the oldest makes place for another
LONGEST_STEM = 40  # characters that are kept of a name
SPEC = ".toml"
NETWORKS = (".onnx", ".jsonl", ".jsonl.gz", ".prototxt", ".et", ".json")


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
        self.files: Mapping[str, UploadedFile] = {}  # the oldest first; never changed, but replaced

    @property
    def folder(self) -> str:
        """Where they lie; empty before the first."""
        return self._folder.name if self._folder is not None else ""

    def take(self, title: str, sent: BinaryIO) -> UploadedFile:
        """Keep what was sent, if it can be read as a network or a device.

        Raises ArgumentError for a file or a name that cannot be, and OSError where the disk is full; then nothing of it stays.
        """
        title = re.split(r"[/\\]", title)[-1].strip() or "file"
        suffix = _suffix(title)
        self._folder = self._folder or TemporaryDirectory(prefix="archsim-ui-")
        digest = hashlib.file_digest(sent, "sha256").hexdigest()  # type: ignore[arg-type]
        if sent.tell() == 0:
            raise ArgumentError(f"{title} is empty")
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", title[: -len(suffix)])[:LONGEST_STEM] or "file"
        name = f"{stem}-{digest[:8]}{suffix}"
        file = UploadedFile(name=name, title=title, path=Path(self.folder, name), hw=suffix == SPEC)
        if name not in self.files:
            self._check(file, sent)
        kept = {known: one for known, one in self.files.items() if known != name} | {name: file}
        while len(kept) > MOST_FILES:
            kept.pop(next(iter(kept))).path.unlink(missing_ok=True)
        self.files = kept
        return file

    def _check(self, file: UploadedFile, sent: BinaryIO) -> None:
        """Write a file down, and read it."""
        sent.seek(0)
        try:
            with file.path.open("xb") as stream:
                shutil.copyfileobj(sent, stream)
            with files_within(self.folder):
                _read(file)
        except BaseException as error:
            file.path.unlink(missing_ok=True)
            if not isinstance(error, ArchsimError):
                raise
            raise ArgumentError(str(error).replace(str(file.path), file.title)) from None

    def plain(self, message: str, shown: Callable[[str], str] = str) -> str:
        """A message with the user's own names of files in place of those of this folder; `shown` escapes both, of a page."""
        for one in self.files.values():
            message = message.replace(shown(str(one.path)), shown(one.title))
        return message

    def close(self) -> None:
        """Delete all."""
        self.files = {}
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _suffix(title: str) -> str:
    """The ending by which a file is read. Raises ArgumentError for one that none reads."""
    found = [suffix for suffix in (SPEC, *NETWORKS) if title.lower().endswith(suffix)]
    if not found:
        raise ArgumentError(f"{title}: a device ends in {SPEC}, a network in {', '.join(NETWORKS)}")
    return max(found, key=len)


def _read(file: UploadedFile) -> None:
    """Raises ArchsimError for a file that is neither a device nor a network."""
    if file.hw:
        from archsim.device.catalog import find as find_device
        from archsim.estimation.hardware import check_names

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
