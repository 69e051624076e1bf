"""The file of a sweep: SQLite, one transaction for each part, parts in order.

A part is in the file completely or not at all, and the file always holds the first points. So a sweep resumes at its number of
points, and the file of a killed and resumed sweep has the same bytes as that of an undisturbed one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.base.limits import LIMITS
from archsim.study.space import Space
from archsim.study.sweep import DIE, Chunk, names, rows

SCHEMA = "archsim-sweep/1"
LOCK_TIMEOUT_S = 5.0  # for another process that holds the file's lock
TYPES = {"text": "TEXT"}
INTEGERS = ("point", "fits", "one_die")
LARGEST_NUMBER = 9e307
LARGEST_VALUE = 1 << 24  # bytes of a text in a file


class Store:
    """The results of one sweep in an SQLite file, made by `open_store`; `count` is the number of stored points."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, space: Space, count: int, columns: Mapping[str, str]
    ) -> None:
        self.path, self.count, self.space, self.columns = path, count, space, columns
        self._connection = connection
        self._insert = f"INSERT INTO points VALUES ({', '.join('?' * len(columns))})"

    @property
    def whole(self) -> frozenset[str]:
        """The columns of whole numbers."""
        return frozenset(INTEGERS) | self.space.whole

    def about(self) -> dict[str, Any]:
        """The file's description of itself: schema, version, units, and everything that decides the results."""
        with _as_file_errors(self.path, ""):
            return {key: json.loads(value) for key, value in self._connection.execute("SELECT key, value FROM study")}

    def append(self, chunk: Chunk) -> None:
        """Add a part, which must begin where the file ends. Raises InputError where it does not, or the disk refuses."""
        with _as_file_errors(self.path, f"{self.count:,} points are safe in it; --resume goes on"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                (there,) = self._connection.execute("SELECT coalesce(max(point) + 1, 0) FROM points").fetchone()
                if there != chunk.part.start:
                    raise InputError(str(self.path), "another sweep is writing into it; wait for it, or name another file")
                self._connection.executemany(self._insert, rows(chunk, self.space))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self.count = chunk.part.stop

    def read(self, columns: str = "*", rest: str = "") -> Iterator[tuple[Any, ...]]:
        """Rows of the points: `columns` and the `rest` of a SELECT statement."""
        with _as_file_errors(self.path, ""):
            yield from self._connection.execute(f"SELECT {columns} FROM points {rest}")


@contextmanager
def open_store(path: Path, space: Space, record: Mapping[str, Any], kind: str, resume: bool) -> Iterator[Store]:
    """The store of a sweep: a new file, or with `resume` a file that holds the first points of the same sweep.

    `record` is everything that decides the results (`Space.record`), `kind` the kind of device. Raises InputError for a file that
    exists (without `resume`), is no sweep, holds another sweep, or cannot be written.
    """
    if path.is_dir():
        raise InputError(str(path), "is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(str(path), f"cannot be written: no folder {path.parent}")
    there = path.exists() and path.stat().st_size > 0
    if there and not resume:
        raise InputError(str(path), "is there already; --resume goes on with its sweep, --force replaces it")
    columns = names(space, kind)
    with _as_file_errors(path, ""):
        connection = sqlite3.connect(path, isolation_level=None, timeout=LOCK_TIMEOUT_S)
        try:
            if there and _is_started(connection):
                _check(path, connection, record, columns, space.whole)
            else:
                _create(connection, record, columns, space.whole)
            (count,) = connection.execute("SELECT count(*) FROM points").fetchone()
        except BaseException:
            connection.close()
            raise
    try:
        yield Store(path, connection, space, count, columns)
    finally:
        connection.close()


def _create(
    connection: sqlite3.Connection, record: Mapping[str, Any], columns: Mapping[str, str], whole: Collection[str]
) -> None:
    about = {"schema": SCHEMA, "units": columns, **record}
    connection.execute("BEGIN IMMEDIATE")
    for text in _tables(columns, whole).values():
        connection.execute(text)
    connection.executemany("INSERT INTO study VALUES (?, ?)", [(key, json.dumps(value)) for key, value in about.items()])
    connection.execute("COMMIT")


def _tables(columns: Mapping[str, str], whole: Collection[str]) -> dict[str, str]:
    """The statements that make the tables of a file, by name."""
    kinds = {name: "INTEGER" if name in INTEGERS or name in whole else TYPES.get(unit, "REAL") for name, unit in columns.items()}
    kinds["point"] = "INTEGER PRIMARY KEY"
    fields = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
    study = "CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
    return {"study": study, "points": f"CREATE TABLE points ({fields})"}


def _is_started(connection: sqlite3.Connection) -> bool:
    """Whether the file has any content. Opening it rolls back an unfinished first transaction of a killed process."""
    try:
        (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError:
        return True
    return bool(count)


def _check(
    path: Path, connection: sqlite3.Connection, record: Mapping[str, Any], columns: Mapping[str, str], whole: Collection[str]
) -> None:
    """InputError unless the file holds the sweep of this record, and nothing else.

    A view or a trigger of a stranger could run without end, and a point is written to other files as it is read.
    """
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        kinds = connection.execute("SELECT type, name FROM sqlite_master ORDER BY name LIMIT 3").fetchall()
        if kinds != [("table", "points"), ("table", "study")]:
            raise ValueError("other tables")
        described = connection.execute("SELECT key, value FROM study LIMIT ?", (LIMITS["sweep"].entries,))
        about = {key: json.loads(value) for key, value in described}
    except (sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
        if "locked" in str(error) or "readonly" in str(error):
            raise
        raise InputError(str(path), "is not a sweep of archsim; name another file") from None
    other = [key for key, value in record.items() if about.get(key) != json.loads(json.dumps(value))]
    if other:
        was, now = (json.dumps(values.get(other[0])) for values in (about, record))
        raise InputError(str(path), f"holds another sweep ({other[0]} was {_short(was)}, is {_short(now)}); name another file")
    _check_points(path, connection, columns, whole)


def _check_points(path: Path, connection: sqlite3.Connection, columns: Mapping[str, str], whole: Collection[str]) -> None:
    """InputError unless the points are the first ones, each a row of finite numbers and text in the columns of the sweep."""
    wrong = ""
    if dict(connection.execute("SELECT name, sql FROM sqlite_master")) != _tables(columns, whole):
        wrong = "its tables have other columns"
    else:
        sound = ["network IS NOT NULL", "hardware IS NOT NULL", "(problem IS NULL OR fits IS NULL)"]
        for name, unit in columns.items():
            if unit == "text":
                sound.append(f"typeof(\"{name}\") IN ('text', 'null')")
            else:
                sound.append(f"typeof(\"{name}\") IN ('integer', 'real', 'null')")
                missing = "1" if name in DIE else "problem IS NOT NULL"  # outputs are missing only with a reason
                sound.append(f'coalesce(abs("{name}") < {LARGEST_NUMBER}, {missing})')
        (odd,) = connection.execute(f"SELECT min(point) FROM points WHERE NOT ({' AND '.join(sound)})").fetchone()
        least, most, count = connection.execute("SELECT min(point), max(point), count(*) FROM points").fetchone()
        if odd is not None:
            wrong = f"point {odd} is none that a sweep writes"
        elif count and (least, most) != (0, count - 1):
            wrong = "it does not hold the first points of the sweep"
    if wrong:
        raise InputError(str(path), f"is not a sweep of archsim ({wrong}); name another file")


def _short(text: str) -> str:
    return text if len(text) <= 90 else text[:87] + "..."


@contextmanager
def _as_file_errors(path: Path, safe: str) -> Iterator[None]:
    """Raise errors of the database as errors of the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise InputError(str(path), "is not a sweep of archsim (text that is not UTF-8); name another file") from None
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "")
        why = {
            "SQLITE_FULL": "the disk is full",
            "SQLITE_BUSY": "another sweep is writing into it; wait for it, or name another file",
            "SQLITE_CANTOPEN": "it cannot be opened for writing",
            "SQLITE_NOTADB": "is not a sweep of archsim; name another file",
        }.get(code, f"cannot be read or written ({error})")
        raise InputError(str(path), f"{why}; {safe}" if safe else why) from None
