"""The what-if page, asked in this process."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner

from archsim.base.errors import ArchsimError
from archsim.base.units import show
from archsim.cli.main import group
from archsim.device.catalog import find
from archsim.device.entry import quantity
from archsim.study.file import load
from archsim.ui.estimates import change_of
from archsim.ui.export import estimate_command, study_text, sweep_command, whatif_command
from archsim.ui.form import knobs
from archsim.ui.server import server
from archsim.ui.state import MOST_PINS, plain, read_state

from ..each import each
from .asked import get

ALEXNET = {"net": "alexnet", "hw": "tegra_x1"}
FASTER = {**ALEXNET, "memory.bandwidth": "51.2 GB/s", "clock": "600 MHz"}


def test_the_page_shows_before_and_after_and_holds_its_state() -> None:
    status, _, body = get(query=FASTER)
    assert status == 200
    change = change_of(read_state(urlencode(FASTER)))
    assert change.after.latency_s < change.before.latency_s
    for part in ("What limits it", "Roofline", "Time and energy by layer", "Measured by others", "Variants", "Pin this variant"):
        assert part in body
    assert 'value="51.2 GB/s"' in body
    assert '<option value="alexnet" selected>' in body
    stacks = body.partition('name="stack"')[2].partition("</select>")[0]
    assert all(f'<option value="{stack}">' in stacks for stack in ("caffe-cudnn4", "caffe-native", "torch7-cudnn5.1"))


def test_an_address_is_read_as_it_was_written() -> None:
    pinned = urlencode({**ALEXNET, "sm.count": "4"})
    state = read_state(urlencode([*FASTER.items(), ("batch", "16"), ("pin", pinned)]))
    assert read_state(state.query) == state
    body = get("/result", state.query)[2]
    assert "sm.count = 4" in body
    assert "Remove variant 1" in body


def test_without_a_state_the_page_shows_an_example() -> None:
    assert get()[0] == 200


@each("hw", ("tegra_x1", "i7_6700k", "tpu_v1"))
def test_every_slider_starts_at_a_value_that_can_be_set(hw: str) -> None:
    spec = find(hw)
    for one in knobs(read_state(urlencode({"net": "alexnet", "hw": hw}))):
        value, problem = quantity(plain(one.value, one.unit.unit), one.unit)
        assert problem is None, one.key
        assert value == pytest.approx(one.value, rel=1e-5)
        assert one.low <= one.value <= one.high, one.key
        assert "." not in one.key or one.key in spec.entries


@each("query", (
    "net=nothing&hw=tegra_x1", "net=alexnet&hw=%2Fetc%2Fpasswd", "net=..%2F..%2Fx.jsonl&hw=tegra_x1",
    "net=alexnet&hw=tegra_x1&batch=-1",
    "net=alexnet&hw=tegra_x1&batch=1e999", "net=alexnet&hw=tegra_x1&sm.count=nan", "net=alexnet&hw=tegra_x1&sm.count=two",
    "net=alexnet&hw=tegra_x1&sm.cuont=2", "net=alexnet&hw=tegra_x1&memory.type=x",
    "net=alexnet&hw=tegra_x1&stack=%2Fetc%2Fx.toml",
    "net=%ff%fe&hw=tegra_x1", "net=alexnet&net=alexnet&hw=tegra_x1", "a&b&c", "&".join(f"a{i}=1" for i in range(1000)),
    "x" * 20_000,
    "net=alexnet&hw=tegra_x1&pin=net%3Dalexnet", "net=alexnet&hw=tegra_x1&pin=pin%3Dx", "net=alexnet&hw=tegra_x1&fidelity=none",
    "net=alexnet&hw=tegra_x1" + "".join(f"&pin={i}" for i in range(MOST_PINS + 1)),
))  # fmt: skip
def test_what_is_no_state_gets_a_message(query: str) -> None:
    for path in ("/", "/result"):
        status, _, body = get(path, query)
        assert status == 400, (path, query[:80], body[:200])
        assert "Not possible:" in body


@each("name", ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'><svg/onload=alert(1)>"))
def test_hostile_names_are_shown_as_text(name: str) -> None:
    for query in ({**ALEXNET, "net": name}, {**ALEXNET, name: "1"}, {**ALEXNET, "sm.count": name}, {**ALEXNET, "stack": name},
                  {**ALEXNET, "precision": name}, {**ALEXNET, "batch": name}, {**ALEXNET, "pin": name}):  # fmt: skip
        body = get(query=query)[2]
        assert name not in body
        assert "Not possible:" in body


def test_other_hosts_paths_methods_and_uploads_are_refused() -> None:
    assert get(HTTP_HOST="evil.example:8050")[0] == 403
    assert get(HTTP_HOST="127.0.0.1:9")[0] == 403
    assert get(HTTP_HOST="localhost:8050")[0] == 200
    assert get("/result", FASTER, HTTP_SEC_FETCH_SITE="cross-site")[0] == 403
    assert get("/../../etc/passwd")[0] == 404
    assert get("/ui.py")[0] == 404
    assert get(REQUEST_METHOD="POST", CONTENT_LENGTH=str(2**30))[0] == 405
    assert get(CONTENT_LENGTH=str(2**30))[0] == 413
    assert get(CONTENT_LENGTH="x")[0] == 413
    assert get("/upload")[0] == 405
    assert get(REQUEST_METHOD="DELETE")[0] == 405
    assert get(REQUEST_METHOD="HEAD")[2] == ""


def test_headers_admit_one_script_and_no_frame() -> None:
    for path in ("/", "/result", "/ui.js", "/ui.css", "/nothing"):
        headers = get(path)[1]
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
    body = get()[2]
    assert body.count("<script") - body.count('<script type="application/json">') == 1
    assert " onclick" not in body


def test_the_exported_commands_give_the_numbers_of_the_page() -> None:
    state = read_state(urlencode(FASTER))
    change = change_of(state)
    runner = CliRunner()
    for made in (whatif_command(state), estimate_command(state), sweep_command(state)):
        outcome = runner.invoke(group, shlex.split(made)[1:] + (["--json"] if " sweep " not in made else []))
        assert outcome.exit_code == 0, outcome.output
        assert f"{change.after.latency_s:.6g}"[:6] in outcome.output, made


def test_the_exported_study_is_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    state = read_state(urlencode(FASTER))
    made = study_text(state, change_of(state))
    assert tomllib.loads(made)["part"][0]["to"] == {"clock": "600 MHz"}
    file = tmp_path_factory.mktemp("ui") / "study.toml"
    file.write_text(made)
    assert load(file).parts[0].name == "change"


@each("words", ({"fidelity": "cycle"}, {"net": "bert_base", "seq_len": "64"}, {"fidelity": "roofline", "batch": "2"}))
def test_the_exported_study_gives_the_numbers_of_the_page(words: dict[str, str], tmp_path: Path) -> None:
    state = read_state(urlencode({**FASTER, **words}))
    folder = tmp_path / "-".join(words.values())
    folder.mkdir()
    (tmp_path / "study.toml").write_text(study_text(state, change_of(state)))
    outcome = CliRunner().invoke(group, ["study", str(tmp_path / "study.toml"), "--out", str(folder)])
    assert outcome.exit_code == 0, outcome.output
    report = "\n".join(file.read_text("utf-8") for file in sorted(folder.rglob("*")) if file.suffix in (".md", ".csv"))
    for estimate in (change_of(state).before, change_of(state).after):
        assert show(estimate.latency_s, "s") in report


def test_the_server_is_of_this_computer_alone() -> None:
    with server(0) as made:
        assert made.server_address[0] == "127.0.0.1"
        assert made.server_port > 0
        with pytest.raises(OSError, match="in use"):
            server(made.server_port)


def test_a_port_that_is_taken_is_refused_with_a_message() -> None:
    with server(0) as made:
        outcome = CliRunner().invoke(group, ["ui", "--no-browser", "--port", str(made.server_port)])
    assert outcome.exit_code == 2
    assert "0 for a free one" in outcome.output


def test_what_a_device_lacks_is_a_message() -> None:
    with pytest.raises(ArchsimError, match="threads"):
        change_of(read_state(urlencode({**ALEXNET, "threads": "4"})))


def test_a_defect_is_answered_and_the_server_stays_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("<b>broken</b>")

    with monkeypatch.context() as patched:
        patched.setattr("archsim.ui.server.form", broken)
        status, headers, body = get()
    assert status == 500
    assert headers["Content-Type"].startswith("text/plain")
    assert "defect of archsim" in body
    assert get()[0] == 200
