"""Files that are dropped on the page: what can be read is offered, everything else is refused with a message."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

import pytest

from archsim.base.files import data_folder
from archsim.ui.server import WhatIfApplication, server
from archsim.ui.uploads import MOST_BYTES, MOST_FILES

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
    assert "inherits: names a file" in body
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


def test_a_gigabyte_is_refused_with_a_message_and_the_server_stays_up() -> None:
    with server(0) as made:
        running = Thread(target=made.serve_forever, daemon=True)
        running.start()
        link = HTTPConnection("127.0.0.1", made.server_port, timeout=30)
        link.putrequest("POST", "/upload?name=big.onnx")
        link.putheader("Origin", f"http://127.0.0.1:{made.server_port}")
        link.putheader("Content-Length", str(2**30))
        link.endheaders()
        piece = b"\0" * (1 << 20)
        for _ in range(64):
            link.send(piece)
        link.sock.shutdown(1)
        answer = link.getresponse()
        assert answer.status == 413
        assert f"at most {MOST_BYTES >> 20} MiB" in answer.read().decode()
        other = HTTPConnection("127.0.0.1", made.server_port, timeout=30)
        other.request("GET", "/")
        assert other.getresponse().status == 200
        made.shutdown()
        running.join()
