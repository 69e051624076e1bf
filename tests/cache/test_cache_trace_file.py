"""Traces of other tools: read in order and in bounded memory; strangers' files are refused with their line."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from archsim.base import files
from archsim.base.errors import InputError
from archsim.cache.access import Accesses
from archsim.cache.trace_file import read

from ..each import each

LACKEY = """==12== Lackey, an example Valgrind tool
I  04001000,3
 L 1ffeffe7c,8
 S 1ffeffe80,4
 M 0421c7cc,4
==12==
"""
DIN = "2 4001000\n0 1ffe7c\n1 0x1ffe80\n\n0 421c7cc extra words\n"


def all_of(path: Path, instructions: bool = False) -> list[tuple[int, int, int]]:
    return [row for part in read(path, instructions) for row in rows(part)]


def rows(part: Accesses) -> list[tuple[int, int, int]]:
    return list(zip(part.address.tolist(), np.broadcast_to(part.size, len(part)).tolist(), part.store.tolist(), strict=True))


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_lackey_trace(tmp_path: Path) -> None:
    data = [(0x1FFEFFE7C, 8, 0), (0x1FFEFFE80, 4, 1), (0x421C7CC, 4, 0), (0x421C7CC, 4, 1)]
    place = write(tmp_path / "a.lackey", LACKEY)
    assert all_of(place) == data
    assert all_of(place, instructions=True) == [(0x4001000, 3, 0), *data]


def test_a_din_trace(tmp_path: Path) -> None:
    assert all_of(write(tmp_path / "a.din", DIN)) == [(0x1FFE7C, 4, 0), (0x1FFE80, 4, 1), (0x421C7CC, 4, 0)]


def test_instructions_are_of_a_core_of_their_own(tmp_path: Path) -> None:
    (part,) = read(write(tmp_path / "a", LACKEY), instructions=True)
    assert part.core.tolist() == [1, 0, 0, 0, 0]


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    plain = all_of(write(tmp_path / "a", LACKEY))
    assert all_of(write(tmp_path / "c", LACKEY.rstrip("=12\n"))) == plain[:-2] + plain[-2:]


def test_pieces_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(tmp_path / "a", LACKEY)
    whole = all_of(place)
    for piece in (1, 7, 64):
        monkeypatch.setattr(files, "PACKED", piece)
        monkeypatch.setattr(files, "CHUNK", piece)
        if piece > 4:  # the form must show in the first piece
            assert all_of(place) == whole


def test_line_ends_of_other_systems_and_a_heading_within(tmp_path: Path) -> None:
    heading, *lines = LACKEY.splitlines()
    place = write(tmp_path / "a", "\r\n".join([*lines, heading, *lines, ""]))
    assert all_of(place) == 2 * all_of(write(tmp_path / "b", LACKEY))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_read_as_it_comes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(gzip.compress(LACKEY.encode())))
    writer.start()
    assert all_of(tmp_path / "pipe") == all_of(write(tmp_path / "a", LACKEY))
    writer.join()


def test_addresses_of_64_bits(tmp_path: Path) -> None:
    (part,) = read(write(tmp_path / "a", " L ffffffffff600000,8\n"))
    assert part.address.view(np.uint64).tolist() == [0xFFFFFFFFFF600000]


@each("content", (bytes(range(256)), b"0" * 100_000))
def test_what_is_no_text_is_refused_with_its_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match=r"neither lackey|line 1") as caught:
        all_of(write(tmp_path / "a", content))
    assert len(str(caught.value)) < 400


def test_a_bomb_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    place = write(tmp_path / "a.gz", gzip.compress((" L 00001000,8\n" * 1_000_000).encode()))
    seen: list[int] = []
    with pytest.raises(InputError, match="inflates to more than"):
        seen.extend(map(len, read(place)))
    assert sum(seen) < 1_000_000


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[float] = []
    for _ in read(write(tmp_path / "a", LACKEY), tell=told.append):
        pass
    assert told == [1.0]
