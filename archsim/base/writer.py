"""How every output is written: whole or not at all, into regular files, and never over what archsim did not write itself.

A file that is there already is replaced if it is empty, or bears the mark of the same command and kind; otherwise only by force.
Links are followed: the file that they lead to is replaced, and the link stays.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from archsim.base.errors import InputError
from archsim.base.files import SPECIAL

MARKED = 1 << 22  # bytes of a file in which its mark is looked for; no file with a digest is larger
TEMPORARY, DAY = ".archsim-", 86_400.0  # how names of temporary files begin; seconds
MOST_LINKS = 40  # as Linux follows
_META = '<meta charset="utf-8">\n'
_SUM = re.compile(r"# archsim (\w+) replaces this file unless it was changed; sha256 of the rest: ([0-9a-f]{64})\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputKind:
    """A kind of file, and how archsim tells its own from others.

    name: as an error calls it
    marked: the text with its mark, from the text and the command that writes it
    own: whether a text bears the mark of a command
    """

    name: str
    marked: Callable[[str, str], str] = lambda text, command: text
    own: Callable[[str, str], bool]


def _page(text: str, command: str) -> str:
    return text.replace(_META, f'{_META}<meta name="generator" content="archsim {command}">\n', 1)


def _timeline(text: str, command: str) -> str:
    return text.replace("{", f'{{"otherData": {{"generator": "archsim {command}"}}, ', 1)


def _summed(text: str, command: str) -> str:
    import hashlib

    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"# archsim {command} replaces this file unless it was changed; sha256 of the rest: {digest}\n{text}"


def _is_summed(text: str, command: str) -> bool:
    found = _SUM.match(text)
    return found is not None and _summed(text[found.end() :], command) == text


PAGE = OutputKind(
    name="page", marked=_page, own=lambda text, command: f'content="archsim {command}">' in text[:1000]
)  # fmt: skip
TIMELINE = OutputKind(
    name="timeline", marked=_timeline, own=lambda text, command: text.startswith(_timeline("{", command))
)  # fmt: skip
EXECUTION_TRACE = OutputKind(
    name="execution trace", own=lambda text, command: f"archsim {command}" in text[:1000]
)  # fmt: skip  # the trace says itself who wrote it
SWEEP = OutputKind(name="sweep", own=lambda text, command: True)  # goes on, or is refused by rules of its own
TOML = OutputKind(name="unchanged TOML file", marked=_summed, own=_is_summed)


def table_with(columns: Callable[[], Sequence[str]], name: str) -> OutputKind:
    """A CSV file, known by the names of its columns."""
    return OutputKind(name=name, own=lambda text, command: text.partition("\n")[0].rstrip("\r") == ",".join(columns()))


def json_with(schema: str) -> OutputKind:
    """A JSON file, known by its schema."""
    return OutputKind(name=f"{schema} file", own=lambda text, command: f'"schema": "{schema}' in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A file that a command is to write.

    path: as the user wrote it
    command: the one that writes, for the mark
    force: replace a regular file whatever it holds
    """

    path: str
    kind: OutputKind
    command: str
    force: bool = False

    def check(self) -> Path:
        """The place of the file with links followed, after making sure that it may be written and that its folder takes files.

        Raises InputError for what is no regular file, a folder that is missing or takes none, and a file that is not ours.
        """
        place = _followed(self.path)
        found = _mode(place, self.path)
        if found is not None and not stat.S_ISREG(found):
            what = SPECIAL.get(stat.S_IFMT(found), "no regular file")
            raise InputError(self.path, f"is {what}; name a file")
        if not place.parent.is_dir():
            raise InputError(self.path, f"cannot be written: no folder {place.parent}")
        if found is not None and not self.force:
            self._refuse_loss(place, found)
        _tidy(place.parent)
        try:
            handle, probe = tempfile.mkstemp(dir=place.parent, prefix=TEMPORARY)
            os.close(handle)
            os.unlink(probe)
        except OSError as error:
            raise InputError(self.path, f"cannot be written ({error.strerror or error})") from None
        return place

    def write(self, text: str) -> None:
        """Write the whole file, with its mark; compressed where the name ends in `.gz`. Raises InputError as `stream` does."""
        import gzip

        body = self.kind.marked(text.encode("utf-8", "backslashreplace").decode(), self.command).encode()
        with self.stream() as stream:
            stream.write(gzip.compress(body, mtime=0) if self.path.endswith(".gz") else body)

    def write_bytes(self, data: bytes) -> None:
        """Write the whole file as it is. Raises InputError as `stream` does."""
        with self.stream() as stream:
            stream.write(data)

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """A file that appears under its name only when it is complete on the disk, with the permissions of the one it replaces.

        Raises InputError where it cannot be written; then, as after an interrupt, nothing is left and nothing is changed.
        """
        place, temporary = self.check(), ""
        try:
            found = _mode(place, self.path)
            handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=TEMPORARY)
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o666 & ~_umask() if found is None else stat.S_IMODE(found) & 0o777)
            os.replace(temporary, place)
            temporary = ""
        except OSError as error:
            raise InputError(self.path, f"cannot be written ({error.strerror or error})") from None
        finally:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)

    def _refuse_loss(self, place: Path, mode: int) -> None:
        if not mode & 0o222:
            raise InputError(self.path, "is there already and write-protected; name another file, or add --force")
        try:
            with place.open("rb") as stream:
                data = stream.read(MARKED)
        except OSError as error:
            raise InputError(self.path, f"is there already and cannot be read ({error.strerror or error})") from None
        if data and not self.kind.own(_text(data), self.command):
            raise InputError(self.path, f"is there already and is no {self.kind.name} that archsim {self.command} wrote; "
                                        "name another file, or add --force")  # fmt: skip


def _tidy(folder: Path) -> None:
    """Delete what killed commands of this user left in a folder: temporary files that nobody has written to for a day."""
    with suppress(OSError):
        for left in folder.glob(f"{TEMPORARY}????????"):
            found = left.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and time.time() - found.st_mtime > DAY:
                left.unlink()


def _followed(path: str) -> Path:
    """The end of a chain of links. Raises InputError for an impossible path, and for links to what a process has open."""
    if not path or path.endswith("/"):
        raise InputError(path, "is a folder; name a file" if path else "is no name of a file")
    if "\0" in path:
        raise InputError(path.replace("\0", "?"), "has a zero byte, which no name of a file has")
    there = path
    try:
        for _ in range(MOST_LINKS):
            folder, name = os.path.split(there)
            place = Path(os.path.realpath(folder)) / name
            if str(place).startswith("/proc/"):
                raise InputError(path, "is what a process has open; name a file")
            if not place.is_symlink():
                return place
            there = os.path.join(place.parent, os.readlink(place))
    except OSError as error:
        raise InputError(path, f"cannot be written ({error.strerror or error})") from None
    raise InputError(path, "is a link that leads to itself")


def _mode(place: Path, path: str) -> int | None:
    """Kind and permissions of a file; None where there is none."""
    try:
        return os.stat(place).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(path, f"cannot be written ({error.strerror or error})") from None


def _text(data: bytes) -> str:
    if data[:2] == b"\x1f\x8b":
        with suppress(zlib.error):
            data = zlib.decompressobj(wbits=31).decompress(data, MARKED)
    return data.decode("utf-8", "replace")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
