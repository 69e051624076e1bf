"""Files that are dropped on the page: what can be read is offered, all else is refused with a message. And who sends badly."""

from __future__ import annotations

import gzip
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import parse_qs

import pytest

from archsim.base.files import data_folder
from archsim.ui.server import WhatIfApplication
from archsim.ui.uploads import MOST_BYTES, MOST_FILES

from ..each import each
from .asked import MARK, form_of, get, send, served

NET = data_folder("traces/nets").joinpath("alexnet.jsonl").read_bytes()
DEVICE = data_folder("hwspecs").joinpath("gtx_1080.toml").read_bytes().replace(b'id = "gtx_1080"', b'id = "mine"', 1)
HEAD = b'schema = 1\nid = "mine"\nname = "Mine"\ninherits = "/etc/passwd"\n'
MARKUP = "<img src=x onerror=alert(1)>"


@contextmanager
def started() -> Iterator[WhatIfApplication]:
    """The page without any file."""
    made = WhatIfApplication(8050)
    try:
        yield made
    finally:
        made.uploads.close()


@pytest.fixture
def app() -> Iterator[WhatIfApplication]:
    with started() as made:
        yield made


def test_files_of_ones_own_are_drawn_under_their_names(app: WhatIfApplication) -> None:
    net, hw = send(app, "my net.jsonl", NET), send(app, "mine.toml", DEVICE)
    assert (net[0], hw[0]) == (200, 200), net
    assert list(parse_qs(hw[2])) == ["hw"]
    status, _, body = get("/", f"{net[2]}&{hw[2]}", app)
    assert status == 200
    assert "my net.jsonl" in body
    assert "--hw mine.toml" in body
    assert app.uploads.folder not in body
    assert "was" in get("/result", f"net=alexnet&{hw[2]}&sm.count=20", app)[2]
    config = data_folder("traces/models").joinpath("llama_3_8b.json").read_bytes()
    model = send(app, "config.json", config)[2]
    assert "time to first token" in get("/llm/result", f"{model}&hw=h100_sxm5_80gb", app)[2]


def test_an_onnx_file_is_read_and_its_symbols_are_sized_on_the_page(app: WhatIfApplication) -> None:
    pytest.importorskip("onnx")
    from ..trace.onnx_models import hollow, onnx_model

    model = onnx_model([("MatMul", "x w", "y"), ("Relu", "y", "z")], {"x": ["rows", 64]}, ["z"],
                       [hollow("w", 64, 32)])  # fmt: skip
    status, _, net = send(app, "model.onnx", model.SerializeToString())
    assert status == 200, net
    assert 'name="bind"' in get("/", f"{net}&hw=gtx_1080", app)[2]


@each(("name", "content"), (
    ("net.onnx", b"\0" * 100), ("net.onnx", b"no model"), ("net.jsonl", b"{}"), ("net.jsonl", NET[:200]), ("net.json", b"{}"),
    ("hw.toml", b"schema = 1"), ("hw.toml", b"\xff\xfe"), ("hw.toml", b"a" * 300_000), ("script.py", b"print(1)"), ("x", b"x"),
    ("net.jsonl", b""), ("net.jsonl.gz", gzip.compress(b" " * 50_000_000)), ("net.prototxt", b"layer {" * 1000),
    ("hw.toml", HEAD), *(("hw.toml", HEAD.replace(b"/etc/passwd", path)) for path in (b"../x.toml", b"x.toml")),
    *(("hw.toml", DEVICE.replace(name, b'"/etc/passwd"', 1)) for name in (b'"torch7-cudnn5.1"', b'"i7_6700k"')),
    ("hw.toml", DEVICE.replace(b"schema = 1", b"schema = 1e400")),
))  # fmt: skip
def test_what_cannot_be_read_is_refused_and_not_kept(name: str, content: bytes) -> None:
    with started() as app:
        status, headers, body = send(app, name, content)
        assert status == 400, body
        assert headers["content-type"].startswith("text/plain")
        assert name in body
        assert "archsim-ui-" not in body
        assert "root:" not in body
        assert content != HEAD or "inherits: /etc/passwd: is a file" in body
        assert not app.uploads.files
        assert send(app, "net.jsonl", NET)[0] == 200
        assert len(os.listdir(app.uploads.folder)) == 1


@each("name", (
    f"{MARKUP}.jsonl", "../../../etc/cron.d/x.jsonl", "C:\\x\\y.jsonl", "a" * 500 + ".jsonl", "\x1b[31m.jsonl", ".jsonl",
    'a"b.jsonl',
))  # fmt: skip
def test_a_hostile_name_is_shown_as_text_and_names_no_place(name: str) -> None:
    with started() as app:
        status, _, told = send(app, name, NET)
        assert status == 200, told
        (kept,) = app.uploads.files.values()
        assert kept.path.parent == Path(app.uploads.folder)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,60}\.jsonl", kept.path.name)
        body = get("/", f"{told}&hw=gtx_1080&sm.count=40", app)[2]
        assert MARKUP not in body
        assert "\x1b" not in body


@each(("code", "changed"), (
    *((403, one) for one in ({"origin": "http://evil.example"}, {"origin": ""}, {"origin": "null"}, {"cookie": ""},
                             {"host": "evil.example"}, {"sec_fetch_site": "cross-site"})),
    *((413, {"content_length": length}) for length in ("-5", "", "x", "\u0663", "9" * 5000, str(2**30))),
    *((400, {"content_type": kind}) for kind in ("", "text/plain", "multipart/form-data", "multipart/form-data; boundary=other",
                                                 "application/x-www-form-urlencoded", f"multipart/form-data; boundary={MARK}x")),
))  # fmt: skip
def test_only_the_page_itself_sends_files_and_only_whole_ones_with_their_length(code: int, changed: dict[str, str]) -> None:
    with started() as app:
        status, _, body = send(app, "net.jsonl", NET, **changed)
        assert status == code, body
        assert not app.uploads.files
        assert app.uploads.folder == ""


def test_the_oldest_file_makes_place_and_all_end_with_the_server(app: WhatIfApplication) -> None:
    names = [send(app, f"net{i}.jsonl", NET)[2] for i in range(MOST_FILES + 2)]
    folder = Path(app.uploads.folder)
    assert len(list(folder.iterdir())) == len(app.uploads.files) == MOST_FILES
    status, _, body = get("/", f"{names[0]}&hw=gtx_1080", app)
    assert status == 400
    assert "drop it again" in body
    assert get("/", f"{names[-1]}&hw=gtx_1080", app)[0] == 200
    with served() as made:
        app.uploads, made.app.uploads = made.app.uploads, app.uploads
    assert not folder.exists()


def test_a_full_disk_is_told_and_leaves_nothing(app: WhatIfApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("archsim.ui.uploads.shutil.copyfileobj", full)
    code, _, body = send(app, "net.jsonl", NET)
    assert (code, os.listdir(app.uploads.folder)) == (400, [])
    assert "No space left" in body


@contextmanager
def connecting() -> Iterator[tuple[WhatIfApplication, Callable[[bytes], socket.socket]]]:
    """A server, and what opens a connection to it on which some bytes are sent; HEAD stands for what the own page sends."""
    links: list[socket.socket] = []
    with served() as made:
        port = made.socket.getsockname()[1]
        host = f"127.0.0.1:{port}"
        head = f"Host: {host}\r\nOrigin: http://{host}\r\nCookie: {made.app.cookie}={made.app.key}\r\n" \
               f"Content-Type: multipart/form-data; boundary={MARK}\r\n"  # fmt: skip

        def connected(sent: bytes) -> socket.socket:
            links.append(socket.create_connection(("127.0.0.1", port), timeout=30))
            links[-1].sendall(sent.replace(b"HEAD", head.encode(), 1))
            return links[-1]

        try:
            yield made.app, connected
        finally:
            for link in links:
                link.close()


def status(link: socket.socket) -> int:
    """The status of the answer, 0 where the server says nothing."""
    with link.makefile("rb") as answer:
        return int((answer.readline().split() or [b"", b"0"])[1])


def post(length: int, content: bytes) -> bytes:
    """A file that is sent, or its beginning."""
    return b"POST /upload HTTP/1.1\r\nHEADContent-Length: %d\r\n\r\n" % length + content


def test_what_is_not_sent_to_its_end_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = form_of("n.jsonl", NET)
    with connecting() as (app, connected):
        halves = [connected(post(5_000_000, whole)) for _ in range(2)]
        while app.sending.borrowed_tokens < 2:
            sleep(0.01)
        assert status(connected(post(len(whole), whole))) == 400  # other files are being sent
        for half in halves:
            half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            half.close()
        while app.sending.borrowed_tokens:
            sleep(0.01)
        monkeypatch.setattr("archsim.ui.server.SENT", 0.2)
        assert status(connected(post(5_000_000, whole))) == 408  # too slow
        monkeypatch.undo()
        assert app.uploads.folder == ""
        assert status(connected(post(len(whole), whole))) == 200
        assert len(os.listdir(app.uploads.folder)) == 1


def test_too_much_and_odd_bytes_are_refused_and_the_server_stays_up() -> None:
    with connecting() as (_, connected):
        big = connected(post(2**30, b""))
        for _ in range(MOST_BYTES >> 22):
            big.sendall(bytes(1 << 20))  # what is refused is read all the same, else a browser never sees the answer
        assert status(big) == 413
        for sent in (
            b"\0\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"G\xff /\xff HTTP/1.1\r\nHEAD\r\n", b"GET /\xff HTTP/1.1\r\nHEAD\r\n",
            b"GET / HTTP/1.1\r\nHEADHost: other\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHEAD" + b"x" * 100_000,
            post(len(NET), NET).replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n", 1), b"GET http://[ HTTP/1.1\r\nHEAD\r\n",
            b"GET /?%ff=\x80 HTTP/1.1\r\nHEAD\r\n", b"POST /upload HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ):  # fmt: skip
            assert 400 <= status(connected(sent)) < 500, sent
        assert status(connected(b"GET / HTTP/1.1\r\nHEADUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")) == 200
        assert status(connected(b"GET / HTTP/1.1\r\nHEAD\r\n")) == 200


def test_a_header_has_a_time_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.ui.server.PATIENCE", 0.5)
    with connecting() as (_, connected):
        silent, began = connected(b""), monotonic()
        link = connected(b"GET / HTTP/1.1\r\nHEAD")
        with suppress(OSError):
            while monotonic() - began < 10:
                link.sendall(b"X-a: b\r\n")
                sleep(0.1)
        assert silent.recv(1) == b""
        assert monotonic() - began < 5
