"""The file of a sweep: SQLite, one transaction for each part, parts in order.

A part is in the file completely or not at all, and the file always holds the first points. So a sweep resumes at its number of
points, and the file of a killed and resumed sweep has the same bytes as that of an undisturbed one. What is resumed is believed
only as it was written: each part has a digest of its rows, which must be those of its points.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from archsim.base.errors import InputError
from archsim.base.files import LIMITS
from archsim.study.grid import OUTPUTS
from archsim.study.space import Part, Space
from archsim.study.sweep import Chunk, called_in, names, points_of, rows

SCHEMA = "archsim-sweep/1"
LOCK_TIMEOUT_S = 5.0  # for another process that holds the file's lock
TYPES = {"text": "TEXT"}
INTEGERS = ("point", "fits", "one_die")
LARGEST_NUMBER = 9e307
LARGEST_VALUE = 1 << 24  # bytes of a text in a file


class Store:
    """The results of one sweep in an SQLite file, made by `open_store`; `count` is the number of stored points."""

    def __init__(self, path: Path, connection: sqlite3.Connection, space: Space, columns: Mapping[str, str]) -> None:
        self.path, self.count, self.space, self.columns = path, 0, space, columns
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
                found = list(rows(chunk, self.space))
                self._connection.executemany(self._insert, found)
                self._connection.execute("INSERT INTO parts VALUES (?, ?)", (there, _digest(found, self.columns)))
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


def about_of(space: Space, record: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """What the file of a sweep says of itself."""
    return {**record, "schema": SCHEMA, "units": names(space, kind)}


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
    columns, about = names(space, kind), about_of(space, record, kind)
    with _as_file_errors(path, ""):
        connection = sqlite3.connect(path, isolation_level=None, timeout=LOCK_TIMEOUT_S)
        try:
            store = Store(path, connection, space, columns)
            if there and _is_started(connection):
                _check(path, connection, about, _tables(columns, space.whole))
                _check_points(store)
            else:
                _create(connection, about, _tables(columns, space.whole))
            (store.count,) = connection.execute("SELECT count(*) FROM points").fetchone()
        except BaseException:
            connection.close()
            raise
    try:
        yield store
    finally:
        connection.close()


def _create(connection: sqlite3.Connection, about: Mapping[str, Any], tables: Mapping[str, str]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for text in tables.values():
        connection.execute(text)
    connection.executemany("INSERT INTO study VALUES (?, ?)", [(key, json.dumps(value)) for key, value in about.items()])
    connection.execute("COMMIT")


def _tables(columns: Mapping[str, str], whole: Collection[str]) -> dict[str, str]:
    """The statements that make the tables of a file, by name."""
    kinds = {name: "INTEGER" if name in INTEGERS or name in whole else TYPES.get(unit, "REAL") for name, unit in columns.items()}
    kinds["point"] = "INTEGER PRIMARY KEY"
    fields = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
    return {
        "study": "CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "points": f"CREATE TABLE points ({fields})",
        "parts": "CREATE TABLE parts (start INTEGER PRIMARY KEY, digest BLOB NOT NULL)",
    }


def _digest(found: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> bytes:
    """A digest of the rows of a part. Raises ValueError for a value that is none of its column, or not finite."""
    summed = blake2b(digest_size=16)
    for values, unit in zip(zip(*found, strict=True), columns.values(), strict=True):
        if not set(map(type, values)) <= ({str, NoneType} if unit == "text" else {int, float, NoneType}):
            raise ValueError("a value of another kind")
        if unit == "text":
            summed.update(repr(values).encode())
        else:
            numbers = np.array(values, dtype=np.float64) + 0.0  # SQLite knows no negative zero
            if np.any(np.abs(numbers) > LARGEST_NUMBER):
                raise ValueError("a number that is not finite")
            summed.update(numbers.tobytes())
    return summed.digest()


def _is_started(connection: sqlite3.Connection) -> bool:
    """Whether the file has any content. Opening it rolls back an unfinished first transaction of a killed process."""
    try:
        (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError:
        return True
    return bool(count)


def _check(path: Path, connection: sqlite3.Connection, about: Mapping[str, Any], tables: Mapping[str, str]) -> None:
    """InputError unless the file holds the sweep that it is `about`, and nothing else.

    A view or a trigger of a stranger could run without end, and a point is written to other files as it is read.
    """
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
        kinds = connection.execute("SELECT type, name FROM sqlite_master ORDER BY name LIMIT 4").fetchall()
        if kinds != [("table", "parts"), ("table", "points"), ("table", "study")]:
            raise ValueError("other tables")
        described = connection.execute("SELECT key, value FROM study LIMIT ?", (LIMITS["sweep"].entries,))
        there = {key: json.loads(value) for key, value in described}
    except (sqlite3.DatabaseError, ValueError, TypeError, RecursionError) as error:
        if "locked" in str(error) or "readonly" in str(error):
            raise
        raise _no_sweep(path) from None
    wanted = json.loads(json.dumps(about))
    other = [key for key in {**wanted, **there} if there.get(key) != wanted.get(key) and (key != "numpy" or key not in there)]
    if other:
        was, now = (json.dumps(values.get(other[0])) for values in (there, wanted))
        raise InputError(str(path), f"holds another sweep ({other[0]} was {_short(was)}, is {_short(now)}); name another file")
    if dict(connection.execute("SELECT name, sql FROM sqlite_master")) != tables:
        raise _no_sweep(path, "its tables have other columns")


def _check_points(store: Store) -> None:
    """InputError unless the points are those of the first parts, and as they were written."""
    connection, space, stop = store._connection, store.space, 0
    if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
        raise _no_sweep(store.path, "it is damaged")
    (count,) = connection.execute("SELECT count(*) FROM points").fetchone()
    for number, (start, digest) in enumerate(connection.execute("SELECT start, digest FROM parts ORDER BY start").fetchall()):
        part = space.part(min(number, space.parts - 1))
        found = connection.execute("SELECT * FROM points WHERE point >= ? AND point < ?", (part.start, part.stop)).fetchall()
        if start != part.start or not _is_sound(store, part, found, digest):
            raise _no_sweep(store.path, f"points {part.start:,} to {part.stop - 1:,} are not as it wrote them")
        stop = part.stop
    if count != stop:
        raise _no_sweep(store.path, "it does not hold the first points of the sweep")


def _is_sound(store: Store, part: Part, found: Sequence[tuple[Any, ...]], digest: bytes) -> bool:
    """Whether rows are those of the points of a part, with all outputs or a reason, and have its digest."""
    request = store.space.request(part.base)
    known = points_of(store.space, part, called_in(request), store.space.columns(part, request))
    outputs = slice(len(known), len(known) + len(OUTPUTS))
    try:
        whole = len(found) == part.stop - part.start and _digest(found, store.columns) == digest
    except ValueError:
        return False
    return whole and all(map(_equal, known, zip(*found, strict=True))) and all(
        (None in row[outputs]) == (row[-1] is not None) for row in found)  # fmt: skip


def _equal(known: Sequence[Any], found: Sequence[Any]) -> bool:
    """Whether columns agree; with another numpy the last digits of a knob may differ."""
    return known == list(found) or (float in map(type, known) and bool(np.allclose(known, np.array(found, float), 1e-9, 0.0)))


def _no_sweep(path: Path, why: str = "") -> InputError:
    return InputError(str(path), f"is not a sweep of archsim{f' ({why})' if why else ''}; name another file")


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
