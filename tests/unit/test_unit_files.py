"""Reading strangers' files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from archsim.base.errors import InputError, MissingFile
from archsim.base.files import data_folder, read_text

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
