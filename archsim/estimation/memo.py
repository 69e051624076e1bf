"""What has been simulated before: in memory, and between processes in a file of the user's cache folder.

A key stands for a program on a machine with its CTAs and trips, and the file's name for the code of the loop, so that a number is
never stale. The file is believed only as far as it is as it was written: each number has a digest. One with anything else in it
is deleted, since all that it held can be simulated again; one that cannot be read or written is not used.
"""

from __future__ import annotations

import os
import sqlite3
from collections import UserDict
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from struct import pack, unpack
from typing import Any

from archsim.base.version import __version__
from archsim.cycle.run import version

TABLE = "CREATE TABLE clocks (key BLOB PRIMARY KEY, clocks BLOB) WITHOUT ROWID"
OPENING = (  # a file of 64 MiB is full, and begun anew
    "PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF", "PRAGMA max_page_count = 16384",
    TABLE.replace("TABLE", "TABLE IF NOT EXISTS"),
)  # fmt: skip
MOST_CLOCKS = 1e18  # decades of any processor
WAIT_S = 0.2  # for the lock of another process
SOUND = ("SQLITE_BUSY", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")  # errors of a file that may be sound


class Memo(UserDict[bytes, float]):
    """Clocks by key, kept in memory and, where there is a `place`, in a file there. damaged: the file was deleted"""

    __contains__ = Mapping.__contains__  # also what only the file has

    def __init__(self, place: Path | None) -> None:
        super().__init__()
        self.place, self.damaged, self._file = place, False, _opened(place)
        for statement in OPENING:
            self._rows(statement)
        if self._rows("SELECT sql FROM sqlite_master") not in ([], [(TABLE,)]):
            self._discard()

    def __missing__(self, key: bytes) -> float:
        """What the file has. Raises KeyError."""
        for kept in self._rows("SELECT key, clocks FROM clocks WHERE key = ?", key):
            if _is_sound(*kept):
                self.data[key] = unpack("<d", kept[1][:8])[0]
                return self.data[key]
            self._discard()
        raise KeyError(key)

    def __setitem__(self, key: bytes, clocks: float) -> None:
        self.data[key] = clocks
        self._rows("INSERT OR REPLACE INTO clocks VALUES (?, ?)", key, _signed(key, pack("<d", clocks)))

    def __del__(self) -> None:
        """Nobody else has the file."""
        self.close()

    def close(self) -> None:
        """Close the file; what is in memory stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def checked(self) -> int | None:
        """How many numbers the file has, all as they were written; None where there is none, or none any more."""
        rows = self._rows("SELECT key, clocks FROM clocks")
        if not all(_is_sound(*row) for row in rows):
            self._discard()
        return None if self._file is None else len(rows)

    def _rows(self, statement: str, *values: bytes) -> list[tuple[Any, ...]]:
        """The answer of the file; none where it cannot be used (any more): one that fails once is not waited for again."""
        try:
            return [] if self._file is None else self._file.execute(statement, values).fetchall()
        except (sqlite3.Error, ValueError) as error:  # ValueError: names in it that are no UTF-8
            if getattr(error, "sqlite_errorname", "").startswith(SOUND):
                self.close()
            else:
                self._discard()
        return []

    def _discard(self) -> None:
        self.close()
        self.damaged = True
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{self.place}{end}")


@lru_cache(maxsize=1)
def memo() -> Memo:
    """The memo of this process; its file lies in the cache folder under `archsim`. ARCHSIM_MEMO=off leaves the file out."""
    return Memo(None if os.environ.get("ARCHSIM_MEMO") == "off" else place())


def place() -> Path | None:
    """The file of this version of the loop, in a folder that is made for it; None where there cannot be one."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "archsim"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder / f"cycle-{__version__}-{version()}.sqlite"


def _opened(place: Path | None) -> sqlite3.Connection | None:
    if place is not None:
        with suppress(sqlite3.Error):  # A server has a thread for each request; sqlite itself lets one after the other in.
            return sqlite3.connect(place, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    return None


def _signed(key: bytes, clocks: bytes) -> bytes:
    return clocks + blake2b(key + clocks, digest_size=8).digest()


def _is_sound(key: Any, kept: Any) -> bool:
    """Whether a row is one that was written here."""
    whole = isinstance(key, bytes) and isinstance(kept, bytes) and len(kept) == 16 and kept == _signed(key, kept[:8])
    return whole and 0.0 < unpack("<d", kept[:8])[0] < MOST_CLOCKS
