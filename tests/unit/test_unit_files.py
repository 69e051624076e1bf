"""Reading strangers' files and writing our own."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from archsim.base import files
from archsim.base.errors import InputError, MissingFile
from archsim.base.files import data_folder, read_text, write_text

LIMIT = 10_000


def refused(path: Path, match: str, limit: int = LIMIT) -> None:
    with pytest.raises(InputError, match=match) as caught:
        read_text(path, limit)
    assert caught.value.path == str(path)
    assert len(caught.value.problems) == 1


def test_text_is_read_with_and_without_a_byte_order_mark(tmp_path: Path) -> None:
    for content in (b"schema = 1\n", b"\xef\xbb\xbfschema = 1\n"):
        (tmp_path / "a.toml").write_bytes(content)
        assert read_text(tmp_path / "a.toml", LIMIT) == "schema = 1\n"


def test_a_path_may_be_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert read_text(str(tmp_path / "a"), LIMIT) == "x"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"):
        read_text(tmp_path / "nope", LIMIT)


def test_a_folder(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder")


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    refused(tmp_path / "a", "is empty")


def test_binary_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(256)))
    refused(tmp_path / "a", r"is not UTF-8 text \(byte 128\)")
    (tmp_path / "b").write_bytes(b"abc\0def")
    refused(tmp_path / "b", "is binary")


def test_a_file_just_at_and_just_over_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * LIMIT)
    assert len(read_text(tmp_path / "a", LIMIT)) == LIMIT
    (tmp_path / "a").write_bytes(b"x" * (LIMIT + 1))
    refused(tmp_path / "a", "is larger than 10000 bytes")


def test_a_device_without_end_is_not_read_to_its_end() -> None:
    refused(Path("/dev/zero"), "is larger than")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    refused(tmp_path / "a", "cannot be read")


def test_a_gzipped_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"hello"))
    assert read_text(tmp_path / "a.jsonl.gz", LIMIT) == "hello"


def test_a_gzip_bomb_is_not_inflated(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\0" * 50_000_000))
    refused(tmp_path / "a.gz", "inflates past", limit=100_000_000)


def test_a_gzipped_file_over_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(os.urandom(8_000).hex().encode()))
    refused(tmp_path / "a.gz", "inflates past 10000 bytes")


def test_a_truncated_gzip_file(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"hello world" * 10)[:-9])
    refused(tmp_path / "a.gz", "truncated")


def test_a_file_that_only_claims_to_be_gzip(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_text("hello")
    refused(tmp_path / "a.gz", "is not a gzip file")


def test_the_shipped_data_is_found() -> None:
    assert data_folder("hwspecs").joinpath("tegra_x1.toml").is_file()
    assert data_folder("traces/nets").joinpath("alexnet.jsonl").is_file()


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "größer\n")
    assert (tmp_path / "a.txt").read_text("utf-8") == "größer\n"
    write_text(tmp_path / "a.gz", "größer\n")
    assert read_text(tmp_path / "a.gz", LIMIT) == "größer\n"
    assert sorted(os.listdir(tmp_path)) == ["a.gz", "a.txt"]


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    write_text(tmp_path / "a.gz", "x" * 1000)
    first = (tmp_path / "a.gz").read_bytes()
    write_text(tmp_path / "a.gz", "x" * 1000)
    assert (tmp_path / "a.gz").read_bytes() == first


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (tmp_path / "a.txt").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        write_text(tmp_path / "a.txt", "new")
    monkeypatch.undo()
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_output_path_that_is_a_folder_or_in_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; name a file"):
        write_text(tmp_path, "x")
    with pytest.raises(InputError, match="no folder"):
        write_text(tmp_path / "nope" / "a.txt", "x")


def test_a_written_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    write_text(tmp_path / "ours", "x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
