"""Files that are dropped on the page: what can be read is offered, everything else is refused with a message."""

from __future__ import annotations

import gzip
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from urllib.parse import parse_qs

import pytest

from archsim.base.errors import ArgumentError
from archsim.base.files import data_folder
from archsim.ui.server import WhatIfApplication, server
from archsim.ui.uploads import MOST_BYTES, MOST_FILES, UploadedFile

from ..each import each
from .asked import get, send

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


def place_of(app: WhatIfApplication) -> Path:
    """The folder of the files."""
    return next(iter(app.uploads.files.values())).path.parent


def test_a_network_and_a_device_of_ones_own_are_drawn(app: WhatIfApplication) -> None:
    status, _, net = send(app, "my net.jsonl", NET)
    assert status == 200, net
    status, _, hw = send(app, "mine.toml", DEVICE)
    assert status == 200, hw
    assert list(parse_qs(hw)) == ["hw"]
    status, _, body = get("/", f"{net}&{hw}", app)
    assert status == 200
    assert "my net.jsonl" in body
    assert "--hw mine.toml" in body
    assert str(place_of(app)) not in body
    twice = get("/result", f"net=alexnet&{hw}&sm.count=20", app)[2]
    assert "was" in twice


def test_an_onnx_file_is_read_and_its_symbols_are_sized_on_the_page(app: WhatIfApplication) -> None:
    pytest.importorskip("onnx")
    from ..trace.onnx_models import hollow, onnx_model

    model = onnx_model([("MatMul", "x w", "y"), ("Relu", "y", "z")], {"x": ["rows", 64]}, ["z"],
                       [hollow("w", 64, 32)])  # fmt: skip
    status, _, net = send(app, "model.onnx", model.SerializeToString())
    assert status == 200, net
    assert 'name="bind"' in get("/", f"{net}&hw=gtx_1080", app)[2]


def test_a_configuration_of_a_model_is_served(app: WhatIfApplication) -> None:
    config = data_folder("traces/models").joinpath("llama_3_8b.json").read_bytes()
    status, _, net = send(app, "config.json", config)
    assert status == 200, net
    assert "time to first token" in get("/llm/result", f"{net}&hw=h100_sxm5_80gb", app)[2]


@each(("name", "content"), (
    ("net.onnx", b"\0" * 100), ("net.onnx", b"no model"), ("net.jsonl", b"{}"), ("net.jsonl", NET[:200]), ("net.json", b"{}"),
    ("hw.toml", b"schema = 1"), ("hw.toml", b"\xff\xfe"), ("hw.toml", b"a" * 300_000), ("script.py", b"print(1)"), ("x", b"x"),
    ("net.jsonl", b""), ("net.jsonl.gz", gzip.compress(b" " * 50_000_000)), ("net.prototxt", b"layer {" * 1000),
    *(("hw.toml", HEAD.replace(b"/etc/passwd", path)) for path in (b"/etc/passwd", b"../x.toml", b"x.toml")),
    *(("hw.toml", DEVICE.replace(name, b'"/etc/passwd"', 1)) for name in (b'"torch7-cudnn5.1"', b'"i7_6700k"')),
    ("hw.toml", DEVICE.replace(b"schema = 1", b"schema = 1e400")),
))  # fmt: skip
def test_what_cannot_be_read_is_refused_and_not_kept(name: str, content: bytes) -> None:
    with started() as app:
        status, headers, body = send(app, name, content)
        assert status == 400, body
        assert headers["Content-Type"].startswith("text/plain")
        assert name in body
        assert "archsim-ui-" not in body
        assert not app.uploads.files
        assert send(app, "net.jsonl", NET)[0] == 200
        assert len(list(place_of(app).iterdir())) == 1


def test_a_spec_that_names_a_file_says_which_key(app: WhatIfApplication) -> None:
    body = send(app, "hw.toml", HEAD)[2]
    assert "inherits: /etc/passwd: is a file" in body
    assert "root:" not in body


@each("name", (
    f"{MARKUP}.jsonl", "../../../etc/cron.d/x.jsonl", "C:\\x\\y.jsonl", "a" * 500 + ".jsonl", "\x1b[31m.jsonl", ".jsonl",
))  # fmt: skip
def test_a_hostile_name_is_shown_as_text_and_names_no_place(name: str) -> None:
    with started() as app:
        status, _, told = send(app, name, NET)
        assert status == 200
        (kept,) = app.uploads.files.values()
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,60}\.jsonl", kept.path.name)
        body = get("/", f"{told}&hw=gtx_1080&sm.count=40", app)[2]
        assert MARKUP not in body
        assert "\x1b" not in body


def test_only_the_page_itself_sends_files_and_only_with_their_length(app: WhatIfApplication) -> None:
    assert send(app, "net.jsonl", NET, HTTP_ORIGIN="http://evil.example")[0] == 403
    assert send(app, "net.jsonl", NET, HTTP_ORIGIN="")[0] == 403
    assert send(app, "net.jsonl", NET, HTTP_SEC_FETCH_SITE="cross-site")[0] == 403
    assert send(app, "net.jsonl", NET, HTTP_HOST="evil.example")[0] == 403
    assert send(app, "net.jsonl", NET, HTTP_TRANSFER_ENCODING="chunked")[0] == 413
    assert send(app, "net.jsonl", NET, CONTENT_LENGTH="-5")[0] == 413
    assert send(app, "net.jsonl", NET, CONTENT_LENGTH=str(2**30))[0] == 413
    assert send(app, "net.jsonl", NET, CONTENT_LENGTH=str(len(NET) + 1))[0] == 400
    assert not app.uploads.files


def test_the_oldest_file_makes_place_and_all_end_with_the_server(app: WhatIfApplication) -> None:
    names = [send(app, f"net{i}.jsonl", NET)[2] for i in range(MOST_FILES + 2)]
    folder = place_of(app)
    assert len(list(folder.iterdir())) == len(app.uploads.files) == MOST_FILES
    status, _, body = get("/", f"{names[0]}&hw=gtx_1080", app)
    assert status == 400
    assert "drop it again" in body
    assert get("/", f"{names[-1]}&hw=gtx_1080", app)[0] == 200
    app.uploads.close()
    assert not folder.exists()


@contextmanager
def served() -> Iterator[tuple[WhatIfApplication, Callable[[str], socket.socket]]]:
    """A server, and what opens a connection to it on which some bytes are sent."""
    with server(0) as made:
        running = Thread(target=made.serve_forever, daemon=True)
        running.start()
        app, links, host = made.get_app(), list[socket.socket](), f"127.0.0.1:{made.server_port}"
        assert isinstance(app, WhatIfApplication)

        def connected(sent: str) -> socket.socket:
            links.append(socket.create_connection(("127.0.0.1", made.server_port), timeout=30))
            head = f"Host: {host}\r\nOrigin: http://{host}\r\nCookie: {app.cookie}\r\n"
            links[-1].sendall(sent.replace("HEAD", head).encode())
            return links[-1]

        yield app, connected
        for link in links:
            link.close()
        made.shutdown()
        running.join()


def status(link: socket.socket) -> int:
    """The status of the answer, 0 where the server says nothing."""
    with link.makefile("rb") as answer:
        return int((answer.readline().split() or [b"", b"0"])[1])


def test_what_is_not_sent_to_its_end_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.ui.server._QuietHandler.timeout", 0.3)
    with served() as (app, connected):
        post = "POST /upload?name=n.jsonl HTTP/1.1\r\nHEADContent-Length: 5000000\r\n\r\n" + "x" * 1000
        reset = connected(post)
        while not app.uploads.folder or not os.listdir(app.uploads.folder):
            sleep(0.01)
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()
        assert status(connected(post)) == 400
        assert os.listdir(app.uploads.folder) == []
        assert send_all(connected) == 200


def send_all(connected: Callable[[str], socket.socket]) -> int:
    return status(connected(f"POST /upload?name=n.jsonl HTTP/1.1\r\nHEADContent-Length: {len(NET)}\r\n\r\n{NET.decode()}"))


def test_no_more_than_some_files_are_being_sent_at_once(app: WhatIfApplication) -> None:
    class Slow(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if held:
                held.pop()
                told.append(send(app, "other.jsonl", NET)[0])
                slow.append(app.uploads.take("slow.jsonl", len(NET), Slow(NET), app.lock))
            return super().read(size)

    held, told, slow = [1, 1], list[int](), list[UploadedFile]()
    with pytest.raises(ArgumentError, match="still being sent"):
        app.uploads.take("slow.jsonl", len(NET), Slow(NET), app.lock)
    assert told == [200, 400]
    assert send(app, "net.jsonl", NET)[0] == 200


def test_a_full_disk_is_told_and_leaves_nothing(app: WhatIfApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("archsim.ui.uploads._written", full)
    code, _, body = send(app, "net.jsonl", NET)
    assert (code, os.listdir(app.uploads.folder)) == (400, [])
    assert "No space left" in body


@each("changed", (
    {"CONTENT_LENGTH": "9" * 5000}, {"CONTENT_LENGTH": "\u0663"}, {"QUERY_STRING": "name=a&b=1&c=2"},
    {"QUERY_STRING": "&" * 60000},
    {"QUERY_STRING": "name=%ff%00.toml"}, {"HTTP_COOKIE": ""}, {"HTTP_COOKIE": "\xff;=;;"}, {"HTTP_ORIGIN": "null"},
    {"PATH_INFO": "/\xff"}, {"REQUEST_METHOD": "\xff"}, {"HTTP_HOST": "\x00"}, {"HTTP_SEC_FETCH_SITE": "\xff"},
))  # fmt: skip
def test_odd_requests_are_no_defect(app: WhatIfApplication, changed: dict[str, str]) -> None:
    code = send(app, "net.jsonl", NET, **changed)[0]
    assert 400 <= code < 500


def test_a_header_has_a_time_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.ui.server.PATIENCE", 0.5)
    with served() as (_, connected):
        link, began = connected("GET / HTTP/1.1\r\nHEAD"), monotonic()
        with suppress(OSError):
            while monotonic() - began < 10:
                link.sendall(b"X-a: b\r\n")
                sleep(0.1)
                link.setblocking(False)
                with suppress(BlockingIOError):
                    if link.recv(100):
                        break
                link.setblocking(True)
        assert monotonic() - began < 5


def test_only_the_browser_that_opened_the_printed_address_sees_anything() -> None:
    with started() as app:
        told = send(app, "secret.jsonl", NET)[2]
        key = f"key={app.key}"
        for cookie in ("", "archsim_8050=", f"archsim_8050={app.key[:-1]}", f"archsim_8051={app.key}"):
            for path in ("/", "/result", "/llm", "/ui.js", "/ui.css"):
                code, headers, body = get(path, f"{told}&hw=gtx_1080", app, HTTP_COOKIE=cookie)
                assert code == 403
                assert "Set-Cookie" not in headers
                assert "archsim ui" in body
                assert "secret" not in body
            assert send(app, "other.jsonl", NET, HTTP_COOKIE=cookie)[0] == 403
        code, headers, body = get("/", key, app, HTTP_COOKIE="", HTTP_SEC_FETCH_SITE="cross-site")
        assert code == 200
        assert headers["Set-Cookie"] == f"archsim_8050={app.key}; Path=/; HttpOnly; SameSite=Strict"
        assert app.key not in body
        assert get("/", key[:-1], app, HTTP_COOKIE="")[0] == 403
        assert get("/", key, app, HTTP_COOKIE="", HTTP_HOST="evil.example:8050")[0] == 403
        assert next(iter(app.uploads.files.values())).title == "secret.jsonl"
        assert WhatIfApplication(8050).key != app.key


@each(("site", "code"), (("none", 200), ("same-origin", 200), ("same-site", 403), ("cross-site", 403)))
def test_no_page_of_another_site_has_work_done(app: WhatIfApplication, site: str, code: int) -> None:
    assert get("/", "net=alexnet&hw=tegra_x1", app, HTTP_SEC_FETCH_SITE=site, HTTP_SEC_FETCH_DEST="image")[0] == code


def test_a_gigabyte_is_refused_with_a_message_and_the_server_stays_up() -> None:
    with server(0) as made:
        running = Thread(target=made.serve_forever, daemon=True)
        running.start()
        cookie = made.get_app().cookie
        link = HTTPConnection("127.0.0.1", made.server_port, timeout=30)
        link.putrequest("POST", "/upload?name=big.onnx")
        link.putheader("Origin", f"http://127.0.0.1:{made.server_port}")
        link.putheader("Content-Length", str(2**30))
        link.putheader("Cookie", cookie)
        link.endheaders()
        piece = b"\0" * (1 << 20)
        for _ in range(64):
            link.send(piece)
        link.sock.shutdown(1)
        answer = link.getresponse()
        assert answer.status == 413
        assert f"at most {MOST_BYTES >> 20} MiB" in answer.read().decode()
        other = HTTPConnection("127.0.0.1", made.server_port, timeout=30)
        other.request("GET", "/", headers={"Cookie": cookie})
        assert other.getresponse().status == 200
        made.shutdown()
        running.join()
