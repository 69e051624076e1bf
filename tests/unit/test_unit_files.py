"""Reading strangers' files, and machine code that is kept on disk, which is that of the source as it is now."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from archsim.base import files
from archsim.base.errors import InputError, MissingFile
from archsim.base.files import data_folder, read_text
from archsim.base.machine_code import digest
from archsim.cache.trace_file import read as addresses
from archsim.estimation.power import powers_of_file
from archsim.evidence.readers import read_files
from archsim.simulate.requests import recorded, recorded_arrivals
from archsim.study.price import read_prices
from archsim.trace import load
from archsim.trace.formats import format_of
from archsim.trace.profiles.reader import read as calls

from ..each import each
from ..fuzz.targets import ARRIVALS, HEAD, LACKEY, PRICES, ROWS, forget

LIMIT = 10_000
ROOT = Path(__file__).parents[2]


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


WORDS = "hello world" * 10
PACKED = gzip.compress(WORDS.encode())


@each(("data", "text"), (
    (PACKED, WORDS), (PACKED + gzip.compress(b"!"), f"{WORDS}!"), (PACKED + b"\0" * 9000, WORDS), (WORDS.encode(), WORDS),
    (gzip.compress(b"") + PACKED + gzip.compress(b"") * 500, WORDS),
))  # fmt: skip
def test_all_members_of_a_gzip_file_are_read(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a").write_bytes(data)
    assert read_text(tmp_path / "a", LIMIT) == text


@each(("data", "match"), (
    (gzip.compress(b"\0" * 50_000_000), "inflates to more"), (gzip.compress(os.urandom(8_000).hex().encode()), "is larger than"),
    (PACKED[:-9], "truncated"), (PACKED + PACKED[:-9], "truncated"), (PACKED + PACKED[:5], "truncated"), (b"hello", "not a gzip"),
    (PACKED + b"rubbish", "something else behind"), (PACKED[:10] + b"\xff" * 20, "broken"), (PACKED[:-8] + b"\0" * 8, "broken"),
    (gzip.compress(b"") * 300, "more than 200 parts"),
))  # fmt: skip
def test_what_is_not_all_gzip_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, match: str) -> None:
    monkeypatch.setattr(files, "MOST_MEMBERS", 200)
    (tmp_path / "a.gz").write_bytes(data)
    refused(tmp_path / "a.gz", match, limit=100_000_000 if "inflates" in match else LIMIT)


PROFILE = ROOT / "tests/trace/profiles/torch_cpu_cnn.json"
READERS: dict[str, tuple[Callable[[Path], Any], bytes]] = {
    "n.jsonl.gz": (lambda path: load(str(path)).ops, ROOT.joinpath("traces/nets/alexnet.jsonl").read_bytes()),
    "m.csv.gz": (lambda path: read_files([str(path)]), "\n".join((HEAD, *ROWS)).encode()),
    "p.csv.gz": (lambda path: read_prices(str(path), str), PRICES[0].encode()),
    "s.csv.gz": (lambda path: powers_of_file(str(path), "titan_xp"), b"fp32,dram\n0.5,0.1\n0.2,0.3\n"),
    "a.csv.gz": (lambda path: recorded_arrivals(path).tolist(), ARRIVALS[0].encode()),
    "r.csv.gz": (lambda path: recorded(path, 100), b"arrival_s,input,output\n0,5,6\n1,7,8\n"),
    "t.gz": (lambda path: [at for one in addresses(path) for at in one.address.tolist()], LACKEY.encode() * 9),
    "p.json.gz": (lambda path: calls(path).calls, PROFILE.read_bytes()),
    "n.json.gz": (lambda path: format_of(path).read(path, {}).ops, PROFILE.read_bytes()),
}  # fmt: skip


@each("name", READERS)
def test_every_reader_reads_two_members_as_one(tmp_path: Path, name: str) -> None:
    read, data = READERS[name]
    place, half = tmp_path / name, len(data) // 2
    place.write_bytes(gzip.compress(data))
    whole = read(place)
    assert whole
    place.write_bytes(gzip.compress(data[:half]) + gzip.compress(data[half:]))
    forget()
    assert repr(read(place)) == repr(whole)
    place.write_bytes(gzip.compress(data) + b"rubbish")
    forget()
    with pytest.raises(InputError, match="something else behind"):
        read(place)


def test_the_shipped_data_is_found() -> None:
    assert data_folder("hwspecs").joinpath("tegra_x1.toml").is_file()
    assert data_folder("traces/nets").joinpath("alexnet.jsonl").is_file()


def module(path: Path, source: str) -> ModuleType:
    path.write_text(source, "utf-8")
    found = ModuleType(path.stem)
    found.__file__ = str(path)
    return found


def test_a_change_in_any_module_is_another_version(tmp_path: Path) -> None:
    caller, callee = module(tmp_path / "caller.py", "from callee import f"), module(tmp_path / "callee.py", "def f(): return 1")
    before = digest(caller, callee)
    assert digest(caller, callee) == before
    module(tmp_path / "callee.py", "def f(): return 2")
    assert digest(caller, callee) != before
