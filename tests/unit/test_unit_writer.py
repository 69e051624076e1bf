"""Writing files: whole or not at all, into regular files, and never over what archsim did not write itself."""

from __future__ import annotations

import gzip
import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from archsim.base import writer
from archsim.base.errors import InputError
from archsim.base.writer import MARKED, PAGE, TIMELINE, TOML, OutputFile, OutputKind, json_with, table_with

from ..each import each

TABLE = table_with(lambda: ("a", "b"), "table")
CONTENT = {
    "page": (PAGE, '<html><head>\n<meta charset="utf-8">\n</head></html>\n'),
    "timeline": (TIMELINE, '{"displayTimeUnit": "ms", "traceEvents": []}\n'),
    "toml": (TOML, "schema = 1\n"),
    "table": (TABLE, "a,b\n1,2\n"),
    "json": (json_with("archsim-x/"), '{"schema": "archsim-x/1"}\n'),
}


def out(path: Path | str, kind: OutputKind = TABLE, command: str = "test", force: bool = False) -> OutputFile:
    return OutputFile(path=str(path), kind=kind, command=command, force=force)


def refused(file: OutputFile, match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        file.check()
    assert caught.value.path == file.path.replace("\0", "?")
    with pytest.raises(InputError, match=match):
        file.write("a,b\n")


@pytest.mark.parametrize("form", CONTENT)
def test_a_command_replaces_what_it_wrote_itself_and_nothing_else(tmp_path: Path, form: str) -> None:
    kind, text = CONTENT[form]
    place = tmp_path / "x"
    out(place, kind).write(text)
    out(place, kind).write(text)
    for other in CONTENT:
        if other != form:
            refused(out(place, CONTENT[other][0]), "is there already and is no")
    if form in ("page", "timeline", "toml"):  # the mark names the command
        refused(out(place, kind, command="other"), "is there already and is no")
    place.write_text("mine\n")
    refused(out(place, kind), r"name another file, or add --force")
    assert place.read_text() == "mine\n"
    out(place, kind, force=True).write(text)
    out(place, kind).write(text)
    assert os.listdir(tmp_path) == ["x"]


def test_a_toml_file_that_was_changed_is_kept(tmp_path: Path) -> None:
    out(tmp_path / "x", TOML).write("schema = 1\n")
    (tmp_path / "x").write_text((tmp_path / "x").read_text() + "# mine\n")
    refused(out(tmp_path / "x", TOML), "unchanged TOML file")


def test_marked_files_stay_what_they_are(tmp_path: Path) -> None:
    out(tmp_path / "x", TIMELINE).write(CONTENT["timeline"][1])
    found = json.loads((tmp_path / "x").read_text())
    assert found == {"otherData": {"generator": "archsim test"}, "displayTimeUnit": "ms", "traceEvents": []}


def test_an_empty_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    out(tmp_path / "x").write("a,b\n")
    assert (tmp_path / "x").read_text() == "a,b\n"


def test_text_is_utf_8_and_compressed_where_the_name_says_so(tmp_path: Path) -> None:
    out(tmp_path / "a.csv").write("a,b\ngrößer,1\n")
    assert (tmp_path / "a.csv").read_text("utf-8") == "a,b\ngrößer,1\n"
    for _ in range(2):  # the second finds the mark in what is compressed
        out(tmp_path / "a.csv.gz").write("a,b\ngrößer,1\n")
        data = (tmp_path / "a.csv.gz").read_bytes()
        assert gzip.decompress(data).decode() == "a,b\ngrößer,1\n"
    refused(out(tmp_path / "a.csv.gz", PAGE), "is no page")
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.csv.gz"]


def test_the_mark_of_a_large_file_is_found_in_its_beginning(tmp_path: Path) -> None:
    out(tmp_path / "x").write("a,b\n" + "1,2\n" * (MARKED // 3))
    out(tmp_path / "x").write("a,b\n")


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), OSError(122, "Disk quota exceeded"), KeyboardInterrupt()]
)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException
) -> None:
    (tmp_path / "a.txt").write_text("a,b\nold\n")

    def full(*_: object) -> None:
        raise failure

    monkeypatch.setattr(writer.os, step, full)
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        out(tmp_path / "a.txt").write("a,b\nnew\n")
    monkeypatch.undo()
    assert isinstance(caught.value, KeyboardInterrupt) or f"cannot be written ({failure.args[1]})" in str(caught.value)
    assert (tmp_path / "a.txt").read_text() == "a,b\nold\n"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_interrupt_between_two_pieces_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), out(tmp_path / "x").stream() as stream:  # noqa: PT012
        stream.write(b"half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def pipe(place: Path) -> None:
    os.mkfifo(place)


def listener(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(place.parent)  # the path of a socket may have 107 bytes only
        server.bind(place.name)


@pytest.mark.parametrize(("make", "text"), [(pipe, "is a pipe"), (Path.mkdir, "is a folder"), (listener, "is a socket")])
@pytest.mark.parametrize("through_a_link", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_regular_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], text: str, through_a_link: bool, force: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "special")
    before = stat.S_IFMT(os.stat(tmp_path / "special").st_mode)
    place = tmp_path / "special"
    if through_a_link:
        place = tmp_path / "link"
        place.symlink_to("special")
    refused(out(place, force=force), text)
    assert stat.S_IFMT(os.stat(tmp_path / "special").st_mode) == before
    assert len(os.listdir(tmp_path)) == 1 + through_a_link


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr"])
def test_devices_and_what_a_process_has_open_are_refused(path: str) -> None:
    refused(out(path, force=True), "is a device|is what a process has open")


@each(("path", "text"), [
    ("", "is no name"), ("x/", "is a folder"), (".", "is a folder"), ("no/x", "no folder"), ("a\0b", "zero byte"),
    ("x" * 256, "File name too long"), ("a/" * 5000, "is a folder"), ("loop", "itself|[Ll]evels"),
    ("x" * 5000 + "/x", "too long|no folder"), ("file/x", "no folder|Not a directory"),
])  # fmt: skip
def test_names_that_cannot_be_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if not (tmp_path / "loop").is_symlink():
        (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    refused(out(path), text)
    assert sorted(os.listdir(tmp_path)) == ["file", "loop"]


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    out(tmp_path / ("x" * 255)).write("a,b\n")
    assert os.listdir(tmp_path) == ["x" * 255]


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("a,b\nold\n")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "one").symlink_to("folder/two")
    (tmp_path / "real" / "two").symlink_to("../folder/x")
    out(tmp_path / "one").write("a,b\nnew\n")
    assert (tmp_path / "one").is_symlink()
    assert (tmp_path / "real" / "two").is_symlink()
    assert (tmp_path / "real" / "x").read_text() == "a,b\nnew\n"
    (tmp_path / "empty").symlink_to("real/new")  # leads to what is not there yet
    out(tmp_path / "empty").write("a,b\n")
    assert (tmp_path / "real" / "new").read_text() == "a,b\n"


def test_permissions_are_ordinary_or_those_of_the_file_before(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    out(tmp_path / "ours").write("a,b\n")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "ours").chmod(0o640)
    out(tmp_path / "ours").write("a,b\n")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o640


def test_a_write_protected_file_is_kept_whoever_asks(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a,b\n")
    (tmp_path / "x").chmod(0o444)
    refused(out(tmp_path / "x"), "write-protected")
    out(tmp_path / "x", force=True).write("a,b\nnew\n")
    assert (tmp_path / "x").read_text() == "a,b\nnew\n"


def test_a_folder_that_takes_no_file_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(**_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(writer.tempfile, "mkstemp", forbidden)
    refused(out(tmp_path / "x"), r"cannot be written \(Read-only file system\)")
