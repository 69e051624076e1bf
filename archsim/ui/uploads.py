"""Networks and devices of a user's own, dropped on the page: kept in a folder of the server until it ends, read and never run.

What a browser sends is a file's bytes and its name. The name is only shown; the file lies under one that is made here, so no
address leads to another file of this computer. A spec that would read one by its words is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import BinaryIO

from archsim.base.errors import ArchsimError, ArgumentError, InputError, Unsupported
from archsim.base.files import read_text
from archsim.base.limits import LIMITS, MIB
from archsim.device.file import document

MOST_BYTES = LIMITS["upload"].size  # of one file; the network in a larger one belongs to the command line
MOST_FILES = LIMITS["upload"].entries  # at once; the oldest makes place for another
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
        self._files: dict[str, UploadedFile] = {}

    @property
    def files(self) -> Mapping[str, UploadedFile]:
        """All of them, the oldest first."""
        return self._files

    def receive(self, title: str, length: int, body: BinaryIO) -> UploadedFile:
        """Write down what is sent; `keep` then decides about it. Raises ArgumentError for a size, name or end that cannot be."""
        title = re.split(r"[/\\]", title)[-1].strip() or "file"
        suffix = _suffix(title)
        if length == 0:
            raise ArgumentError(f"{title} is empty")
        if length > MOST_BYTES:
            raise TooLarge(f"{title} has {length / MIB:,.0f} MiB; at most {MOST_BYTES // MIB} MiB are taken here: "
                           "`archsim whatif --net FILE` reads larger ones")  # fmt: skip
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="archsim-ui-")
        handle, place = mkstemp(suffix, dir=self._folder.name)
        summed, left = hashlib.sha256(), length
        with open(handle, "wb") as stream:
            while left > 0 and (piece := body.read(min(CHUNK, left))):
                left -= stream.write(piece)
                summed.update(piece)
        if left:
            Path(place).unlink()
            raise ArgumentError(f"{title}: ended after {length - left} of {length} bytes")
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", title[: -len(suffix)])[:LONGEST_STEM] or "file"
        return UploadedFile(name=f"{stem}-{summed.hexdigest()[:8]}{suffix}", title=title, path=Path(place), hw=suffix == SPEC)

    def keep(self, sent: UploadedFile) -> UploadedFile:
        """Add a file to those of the page if it can be read as a network or a device; else delete it and raise ArgumentError."""
        kept = replace(sent, path=sent.path.rename(sent.path.with_name(sent.name)))
        try:
            _check(kept)
        except ArchsimError as error:
            if kept.name not in self._files:
                kept.path.unlink()
            raise ArgumentError(str(error).replace(str(kept.path), kept.title)) from None
        self._files.pop(kept.name, None)
        self._files[kept.name] = kept
        while len(self._files) > MOST_FILES:
            self._files.pop(next(iter(self._files))).path.unlink(missing_ok=True)
        return kept

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


def _suffix(title: str) -> str:
    """The ending by which a file is read. Raises ArgumentError for one that none reads."""
    found = [suffix for suffix in (SPEC, *NETWORKS) if title.lower().endswith(suffix)]
    if not found:
        raise ArgumentError(f"{title}: a device ends in {SPEC}, a network in {', '.join(NETWORKS)}")
    return max(found, key=len)


def _check(file: UploadedFile) -> None:
    """Raises ArchsimError for a file that is neither a device nor a network."""
    if file.hw:
        _check_spec(file.path)
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


def _check_spec(place: Path) -> None:
    from archsim.device.catalog import find
    from archsim.estimation.names_in_spec import check_names

    words = document(read_text(place, LIMITS["device"].size), str(place))
    launch = words.get("launch")
    host = launch.get("host_cpu") if isinstance(launch, dict) else None
    named = {"inherits": words.get("inherits"), "default_stack": words.get("default_stack"),
             "launch.host_cpu": host.get("value") if isinstance(host, dict) else None}  # fmt: skip
    paths = [key for key, name in named.items() if isinstance(name, str) and re.search(r"[/\\]|\.toml$", name)]
    if paths:
        raise InputError(str(place), [f"{key}: names a file; on the page only what is shipped can be named" for key in paths])
    check_names(find(str(place)), None, None)
