"""What has been simulated is remembered between processes, and a file that is not as it was written gives no number."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from archsim.estimation import memo
from archsim.estimation.memo import Memo

from ..each import each

CLOCKS = {str(i).encode(): 12.5 + i for i in range(300)}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file with what was simulated, written by another thread, as in a server."""
    first = Memo(tmp_path / "memo")
    writing = Thread(target=first.update, args=(CLOCKS,))
    writing.start()
    writing.join()
    first.close()
    return tmp_path / "memo"


def believed(place: Path) -> dict[bytes, float]:
    """What a new process takes from a file, all of which must be as it was simulated."""
    found = Memo(place)
    known = {key: found[key] for key in CLOCKS if key in found}
    found.close()
    assert known.items() <= CLOCKS.items()
    return known


def test_a_sound_file_gives_all(place: Path) -> None:
    assert believed(place) == CLOCKS
    assert Memo(place).checked() == len(CLOCKS)


@each("seed", range(200))
def test_no_damaged_file_gives_another_number_and_the_next_process_begins_anew(place: Path, seed: int) -> None:
    random, sound = Random(seed), place.read_bytes() if place.exists() else b""
    memo_of = place.with_name(f"damaged{seed}")
    at = random.randrange(len(sound))
    cut, flipped = sound[:at], bytearray(sound)
    for _ in range(random.choice((1, 3, 50))):
        flipped[random.randrange(len(sound))] ^= 1 << random.randrange(8)
    memo_of.write_bytes(random.choice((bytes(flipped), cut, cut + random.randbytes(300) + sound[at + 300 :])))
    believed(memo_of)
    checked = Memo(memo_of)
    checked.checked()
    checked.close()
    after = Memo(memo_of)
    after[b"new"] = 1.0
    assert after.checked()


@each("statement", (
    "UPDATE clocks SET clocks = (SELECT clocks FROM clocks LIMIT 1)", "UPDATE clocks SET key = key || 'x'",
    "UPDATE clocks SET clocks = 'text'", "UPDATE clocks SET clocks = 5e300", "UPDATE clocks SET clocks = NULL",
    "CREATE VIEW other AS SELECT 1", "ALTER TABLE clocks ADD COLUMN more",
    "ALTER TABLE clocks RENAME TO c; CREATE VIEW clocks AS SELECT key, clocks FROM c",
))  # fmt: skip
def test_what_was_not_written_here_discards_the_file(place: Path, statement: str) -> None:
    other = place.with_name(f"changed{abs(hash(statement))}")
    other.write_bytes(place.read_bytes())
    with sqlite3.connect(other) as connection:
        connection.executescript(statement)
    connection.close()
    found = Memo(other)
    assert found.checked() is None
    assert not other.exists()


def test_a_held_lock_costs_one_wait_and_the_file_stays(place: Path) -> None:
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    found, began = Memo(place), time.monotonic()
    for number in range(50):
        found[bytes([number, 0])] = 1.0
    assert time.monotonic() - began < 10 * memo.WAIT_S
    assert found[bytes([7, 0])] == 1.0
    other.close()
    assert believed(place) == CLOCKS


def test_the_file_is_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "OPENING", tuple(text.replace("16384", "20") for text in memo.OPENING))
    found = Memo(place)
    found.update({str(i).encode() * 9: 1.0 for i in range(9000)})
    assert not place.exists()
    assert len(found) == 9000


def test_a_relative_cache_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    found = memo.place()
    assert found is not None
    assert found.is_relative_to(tmp_path / "home" / ".cache")
    assert not (tmp_path / "relative").exists()
