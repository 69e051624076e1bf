"""What has been simulated before: in memory, and between processes in a file of the user's cache folder.

A key stands for a program on a machine with its CTAs and trips, and the file's name for the code of the loop. So a number is
never stale; a file that cannot be read or written is not used.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, MutableMapping
from functools import lru_cache
from pathlib import Path

from archsim.base.version import __version__
from archsim.cycle.compile import version


class Memo(MutableMapping[bytes, float]):
    """Clocks by key, kept in memory and, where there is a file, in that too."""

    def __init__(self, file: sqlite3.Connection | None) -> None:
        self._file, self._seen = file, dict[bytes, float]()

    def __getitem__(self, key: bytes) -> float:
        if key not in self._seen:
            self._seen[key] = self._read(key)
        return self._seen[key]

    def __setitem__(self, key: bytes, clocks: float) -> None:
        self._seen[key] = clocks
        if self._file is not None:
            with contextlib.suppress(sqlite3.Error):  # read-only, full or locked: the number is still in memory
                self._file.execute("INSERT OR REPLACE INTO clocks VALUES (?, ?)", (key, clocks))

    def __delitem__(self, key: bytes) -> None:
        del self._seen[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def close(self) -> None:
        """Close the file; what is in memory stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        """Nobody else has the file."""
        self.close()

    def _read(self, key: bytes) -> float:
        row = None
        if self._file is not None:
            with contextlib.suppress(sqlite3.Error):
                row = self._file.execute("SELECT clocks FROM clocks WHERE key = ?", (key,)).fetchone()
        if row is None or not isinstance(row[0], float) or not 0.0 < row[0] < float("inf"):
            raise KeyError(key)
        return row[0]


@lru_cache(maxsize=1)
def memo() -> Memo:
    """The memo of this process; its file lies in the cache folder under `archsim`. ARCHSIM_MEMO=off leaves the file out."""
    return Memo(None if os.environ.get("ARCHSIM_MEMO") == "off" else _file())


def _file() -> sqlite3.Connection | None:
    """The file of this version of the loop; None where there is no place for one."""
    name = f"cycle-{__version__}-{version()}.sqlite"
    connection = None
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "archsim"
        folder.mkdir(parents=True, exist_ok=True)
        # A server has a thread for each request; sqlite itself lets one after the other in.
        connection = sqlite3.connect(folder / name, timeout=0.2, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE IF NOT EXISTS clocks (key BLOB PRIMARY KEY, clocks REAL) WITHOUT ROWID")
    except (OSError, RuntimeError, sqlite3.Error):
        if connection is not None:
            connection.close()
        return None
    return connection
