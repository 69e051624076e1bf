"""The what-if pages, asked in this process: states, messages, exports, and who is refused."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from click.testing import CliRunner

from archsim.base.errors import ArchsimError, MissingExtra
from archsim.cli.main import group
from archsim.device.catalog import find, names
from archsim.device.entry import quantity
from archsim.ui.estimates import change_of, estimated, fault_of
from archsim.ui.form import devices, knobs
from archsim.ui.server import PageServer, WhatIfApplication
from archsim.ui.shown import commands
from archsim.ui.state import MODELS, MOST_PINS, NETWORKS, plain, read_state

from ..each import each
from .asked import get, served

ALEXNET = {"net": "alexnet", "hw": "tegra_x1"}
SPEEDUP = {**ALEXNET, "memory.bandwidth": "51.2 GB/s", "clock": "600 MHz"}
LLAMA = {"net": "llama_3_8b", "hw": "h100_sxm5_80gb", "input": "512", "output": "64", "batch": "8", "weights": "fp8"}
LLAMA_FASTER = {**LLAMA, "memory.bandwidth": "5 TB/s", "clock": "1.5 GHz"}
MARKUP = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'><svg/onload=alert(1)>")
SHOWN = {
    "/": ("What limits it", "Roofline before", "Roofline after", "Layers", "Measured by others", "Pin this variant", "was "),
    "/llm": ("time to first token", "Where the time goes", "Decode waits for memory", "Memory of a device"),
}


@each(("path", "query"), (("/", SPEEDUP), ("/llm", LLAMA_FASTER)))
def test_a_page_shows_before_and_after_and_holds_its_state(path: str, query: dict[str, str]) -> None:
    status, _, body = get(path, query)
    assert status == 200
    assert [part for part in SHOWN[path] if part not in body] == []
    assert f'value="{query["memory.bandwidth"]}"' in body
    assert f'<option value="{query["net"]}" selected>' in body
    assert get(path)[0] == 200  # an example
    assert SHOWN[path][0] in get(f"{path.rstrip('/')}/result", query)[2]


def test_stacks_and_devices_stand_in_groups_and_what_is_usual_is_told() -> None:
    body = get(query=ALEXNET)[2]
    stacks = body.partition('name="stack"')[2].partition("</select>")[0]
    assert all(f'<option value="{stack}">' in stacks for stack in ("caffe-cudnn4", "caffe-native", "torch7-cudnn5.1"))
    assert "usual: caffe-cudnn4" in stacks
    assert "intel-mkl" not in stacks
    assert '<optgroup label="NVIDIA, 2016">' in body
    assert sorted(name for group in devices().values() for name, _ in group) == sorted(names())


def test_an_address_is_read_as_it_was_written() -> None:
    pinned = urlencode({**ALEXNET, "sm.count": "4"})
    state = read_state(urlencode([*SPEEDUP.items(), ("batch", "16"), ("pin", pinned)]))
    assert read_state(state.query) == state
    body = get("/result", state.query)[2]
    assert "sm.count = 4" in body
    assert "Remove variant 1" in body


@each("hw", ("tegra_x1", "i7_6700k", "tpu_v1"))
def test_every_slider_starts_at_a_value_that_can_be_set(hw: str) -> None:
    spec = find(hw)
    for one in knobs(read_state(urlencode({"net": "alexnet", "hw": hw}))):
        value, problem = quantity(plain(one.value, one.unit.unit), one.unit)
        assert problem is None, one.key
        assert value == pytest.approx(one.value, rel=1e-5)
        assert one.low <= one.value <= one.high, one.key
        assert "." not in one.key or one.key in spec.entries


@each(("field", "path", "query"), (
    *((field, "/", {**ALEXNET, **query}) for field, query in (
        ("net", {"net": "nothing"}), ("hw", {"hw": "/etc/passwd"}), ("net", {"net": "../x.jsonl"}), ("batch", {"batch": "-1"}),
        ("batch", {"batch": "1e999"}), ("sm.count", {"sm.count": "nan"}), ("sm.count", {"sm.count": "two", "batch": "2"}),
        ("sm.cuont", {"sm.cuont": "2"}), ("memory.type", {"memory.type": "x"}), ("stack", {"stack": "/etc/x.toml"}),
        ("precision", {"precision": "int8"}), ("threads", {"threads": "4"}), ("bind", {"bind": "x"}),
        ("fidelity", {"fidelity": "y"}), *((name, {name: text}) for name in ("net", "sm.count", "batch") for text in MARKUP),
        *((text, {text: "1"}) for text in MARKUP))),
    *((field, "/llm", {**LLAMA, field: value}) for field, value in (
        ("hw", "i7_6700k"), ("net", "resnet_50"), ("net", "/etc/passwd"), ("engine", "x.toml"), ("batch", "0"), ("input", "1e9"),
        ("tp", "3"), ("weights", MARKUP[1]), ("kv", "fp3"), ("stack", "caffe-native"), ("node", "/etc/x"), ("threads", "4"))),
    *((None, "/", query) for query in (
        "net=%ff%fe&hw=tegra_x1", "net=alexnet&net=alexnet&hw=tegra_x1", "a&b&c", "&".join(f"a{i}=1" for i in range(1000)),
        "x" * 20_000, "net=alexnet&hw=tegra_x1&pin=net%3Dalexnet", "net=alexnet&hw=tegra_x1&pin=pin%3Dx", "\xff=\xff",
        "net=alexnet&hw=tegra_x1" + "&pin=i" * (MOST_PINS + 1), "net=alexnet&batch=-1&hw=tegra_x1&sm.count=x")),
))  # fmt: skip
def test_what_cannot_be_gets_a_message_at_its_field_in_words_of_the_page(
    field: str | None, path: str, query: str | dict[str, str]
) -> None:  # fmt: skip
    for asked in (path, f"{path.rstrip('/')}/result"):
        status, _, body = get(asked, query)
        told = body.partition('role="alert"')[2].partition("</p>")[0]
        assert status == 400, (asked, body[:200])
        assert "Not possible:" in told
        assert "--" not in told
        assert not any(text in body for text in MARKUP)
    view = {one.path: one for one in (NETWORKS, MODELS)}[path]
    assert field is None or fault_of(urlencode(query), view, {})[0] == field


def test_what_is_right_of_an_address_stays_in_the_form() -> None:
    body = get("/", {**SPEEDUP, "sm.cuont": "2"})[2]
    assert '<option value="alexnet" selected>' in body
    assert 'value="51.2 GB/s"' in body


@each(("code", "path", "changed"), (
    (403, "/", {"host": "evil.example:8050"}), (403, "/", {"host": "127.0.0.1:9"}), (200, "/", {"host": "localhost:8050"}),
    (200, "/", {"sec_fetch_site": "none"}), (200, "/", {"sec_fetch_site": "same-origin"}),
    (403, "/", {"sec_fetch_site": "same-site"}), (403, "/result", {"sec_fetch_site": "cross-site"}),
    (404, "/../../etc/passwd", {}), (404, "/ui.py", {}), (404, "/llm/", {}), (405, "/upload", {}), (405, "/", {"method": "POST"}),
    (405, "/", {"method": "DELETE"}), (405, "/", {"method": "\xff"}), (404, "/\xff", {}), (403, "/", {"host": "\x00"}),
    (403, "/", {"cookie": "\xff;=;;"}), (403, "/", {"sec_fetch_site": "\xff"}), (403, "/", {"host": "[::"}),
    (200, "/help", {}), (200, "/ui.js", {}), (200, "/ui.css", {}),
))  # fmt: skip
def test_other_hosts_sites_paths_and_methods_are_refused_under_the_same_headers(
    code: int, path: str, changed: dict[str, str]
) -> None:  # fmt: skip
    status, headers, body = get(path, **changed)  # type: ignore[arg-type]
    assert status == code
    policy = headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert body.count("<script") - body.count('<script type="application/json">') <= 1
    assert " onclick" not in body


def test_only_the_browser_that_opened_the_printed_address_sees_anything() -> None:
    app = WhatIfApplication(8050)
    key = f"key={app.key}"
    for cookie in ("", "archsim_8050=", f"archsim_8050={app.key[:-1]}", f"archsim_8051={app.key}"):
        for path in ("/", "/result", "/llm", "/help", "/ui.js", "/ui.css", "/upload"):
            code, headers, body = get(path, ALEXNET, app, cookie=cookie)
            assert code == 403
            assert "set-cookie" not in headers
            assert "archsim ui" in body
    code, headers, body = get("/llm", f"{key}&net=llama_3_8b&hw=%22%3E", app, cookie="", sec_fetch_site="cross-site")
    assert code == 200
    assert headers["set-cookie"] == f"archsim_8050={app.key}; HttpOnly; Path=/; SameSite=strict"
    assert 'content="0;url=/llm?net=llama_3_8b&amp;hw=%22%3E"' in body
    assert app.key not in body
    assert get("/", key[:-1], app, cookie="")[0] == 403
    assert get("/", key, app, cookie="", host="evil.example:8050")[0] == 403
    assert get("/result", key, app, cookie="")[0] == 403
    assert WhatIfApplication(8050).key != app.key


def test_a_defect_is_answered_and_the_server_stays_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("archsim.ui.server.form", lambda *words: 1 / 0)
        status, headers, body = get()
    assert status == 500
    assert headers["content-type"].startswith("text/plain")
    assert "defect of archsim" in body
    assert get()[0] == 200


def test_the_exported_commands_give_the_numbers_of_the_page() -> None:
    state, served_state = read_state(urlencode(SPEEDUP)), read_state(urlencode(LLAMA_FASTER), MODELS)
    change, runner = change_of(state), CliRunner()
    assert change.after.latency_s < change.before.latency_s
    for made in commands(state):
        outcome = runner.invoke(group, [*shlex.split(made)[1:], "--json"])
        assert outcome.exit_code == 0, outcome.output
        assert f"{change.after.latency_s:.6g}"[:6] in outcome.output, made
    outcome = runner.invoke(group, [*shlex.split(*commands(served_state))[1:], "--json"])
    assert json.loads(outcome.stdout)["tpot_s"] == pytest.approx(estimated(served_state).tpot_s)
    assert estimated(served_state).tpot_s < estimated(served_state, changed=False).tpot_s


def test_the_command_opens_what_it_names(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(Path(find("gtx_1080").path).read_text().replace('id = "gtx_1080"', 'id = "mine"', 1))
    with served() as made:
        assert "net=" not in made.address()
        assert made.address("AlexNet", "GTX 1080").endswith("&net=alexnet&hw=gtx_1080")
        assert f"{MODELS.path}?key=" in made.address("llama_3_70b")
        assert "hw=mine-" in made.address(hw=str(own))
        for word in ("alexnett", "none.toml"):
            with pytest.raises(ArchsimError, match=word):
                made.address(word, word)
        with pytest.raises(OSError, match="in use"):
            PageServer(made.socket.getsockname()[1])
        outcome = CliRunner().invoke(group, ["ui", "--no-browser", "--port", str(made.socket.getsockname()[1])])
    assert outcome.exit_code == 2
    assert "0 for a free one" in outcome.output
    assert made.app.uploads.folder == ""


def test_without_its_packages_the_command_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.cli.change.find_spec", lambda name: None)
    outcome = CliRunner().invoke(group, ["ui"])
    assert isinstance(outcome.exception, MissingExtra)
    assert outcome.exception.exit_code == 69
    assert 'pip install "archsim[ui]"' in str(outcome.exception)


@pytest.mark.slow
def test_the_command_prints_an_address_that_opens_it_and_ends_by_an_interrupt() -> None:
    command = [sys.executable, "-m", "archsim", "ui", "--port", "0", "--no-browser", "--net", "alexnet", "--hw", "gtx_1080"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        browser = build_opener(HTTPCookieProcessor())
        (onward,) = re.findall('url=/([^"]*)', browser.open(address).read().decode())
        page = browser.open(address.partition("?")[0] + onward.replace("&amp;", "&")).read().decode()
        assert "alexnet on NVIDIA GeForce GTX 1080" in page
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
