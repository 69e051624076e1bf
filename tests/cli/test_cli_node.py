"""`detect` and `measure`, and the loop that they close with `validate`."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from archsim.detect.probe import Probe
from archsim.detect.sampling import Finding
from archsim.trace.trace import BoundTrace

pytestmark = pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux describes itself")
QUICK = ("--rounds", "1", "--time-limit", "0s", "--threads", "1")


@pytest.fixture(autouse=True)
def probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe takes no time, and no other work disturbs a round, whatever runs beside these tests."""
    monkeypatch.setattr("archsim.measure.timing.cpu_share", lambda *_: 1.0)
    monkeypatch.setattr("archsim.detect.detect.measure", lambda *_: Probe(readings={"clock": {1: Finding(value=2e9)}}))


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch, pretended: type) -> None:
    """Every network is ready to run, without a runtime."""
    monkeypatch.setattr("archsim.measure.run.opener", lambda backend, device, *_: pretended)


def test_detect_prints_a_spec_on_request(cli: Any, tmp_path: Path) -> None:
    result = cli("detect", "--toml")
    assert result.out.startswith("# Written by archsim detect.\n")
    (tmp_path / "mine.toml").write_text(result.out)
    assert "core.count" in cli("show", "hw", str(tmp_path / "mine.toml")).out


def test_detect_says_in_a_few_lines_what_this_computer_is_and_what_to_type(cli: Any) -> None:
    result = cli("detect")
    assert (result.code, result.err) == (0, "")
    assert len(result.out.splitlines()) < 16
    for text in ("this computer: ", "FLOP/s fp32", "of memory", "its power limit", "caches", "assumed", "GPU", "--hw host"):
        assert text in result.out, text


def test_a_guessed_power_is_said_where_it_ranks(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    guess = "tdp = { value = '7.5 W', source = 'x', kind = 'assumed', note = 'not told by the system; as X; times 0.02' }"
    path.write_text(re.sub(r"tdp = .*", guess, cli("detect", "--toml").out))
    words = ("estimate", "--net", "alexnet", "--hw", str(path), "--json")
    notes = cli(*words).json["assumptions"]
    assert any(note.startswith("power of host: 7.5 W, as X; times 0.02: a guess") for note in notes)
    told = cli(*words, "--set", "power.tdp=15W").json["assumptions"]
    assert not any(note.startswith("power of host") for note in told)


def test_detect_writes_a_file_of_the_given_id(cli: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "mine.toml")
    result = cli("detect", "--id", "my_computer", "--out", path)
    assert result.code == 0
    assert f"--hw {path}" in result.out
    assert cli("estimate", "--net", "alexnet", "--hw", path, "--json").json["hardware"] == "my_computer"
    assert cli("detect", "--id", "My Computer").code == 65


def test_the_computer_s_own_names_stay_out(cli: Any) -> None:
    import getpass
    import socket

    text = cli("detect").out + cli("detect", "--toml").out
    for secret in (socket.gethostname(), str(Path.home())):
        assert len(secret) < 4 or secret not in text
    assert f"/{getpass.getuser()}/" not in text


def test_host_is_this_computer_in_every_command(cli: Any) -> None:
    estimate = cli("estimate", "--net", "alexnet", "--hw", "host", "--json").json
    assert estimate["hardware"] == "host"
    assert estimate["latency_s"] > 0
    assert cli("show", "hw", "host").code == 0
    assert "on 2 devices" in cli("compare", "--net", "alexnet", "--hw", "host,i7_6700k").out


@pytest.mark.usefixtures("ready")
def test_what_was_measured_stands_beside_what_is_predicted(cli: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "mine.csv")
    result = cli("measure", "--net", "alexnet,resnet_56", "--per-op", "--out", path, *QUICK)
    assert (result.code, result.out) == (0, "")
    assert "4 rows in" in result.err
    assert "energy" in result.err
    validation = cli("validate", "--measurements", path, "--json").json
    assert validation["skipped"] == []
    assert [(row["label"], row["op"]) for row in validation["rows"]] == [
        ("alexnet", ""), ("alexnet", "conv1+relu1"), ("resnet_56", ""), ("resnet_56", "conv1+conv1.bn")]  # fmt: skip
    whole, part = (row["predicted"] for row in validation["rows"][:2])
    assert 0 < part < whole


@pytest.mark.usefixtures("ready")
def test_a_new_computer_is_described_beside_its_rows(cli: Any, tmp_path: Path) -> None:
    rows, spec = tmp_path / "mine.csv", tmp_path / "mine.toml"
    assert "described it in" in cli("measure", "--net", "alexnet", "--out", str(rows), *QUICK).err
    assert 'boost = { value = "2.000 GHz", source = "archsim detect --probe"' in spec.read_text()
    before = spec.read_text()
    rows.unlink()
    assert "described it in" not in cli("measure", "--net", "alexnet", "--out", str(rows), *QUICK).err
    assert spec.read_text() == before
    assert cli("validate", "--measurements", str(rows), "--json").json["skipped"] == []
    spec.unlink()
    assert "name its file with --hw" in cli("validate", "--measurements", str(rows)).out


@pytest.mark.usefixtures("ready")
def test_rows_without_a_file_are_printed(cli: Any) -> None:
    rows = cli("measure", "--net", "resnet_56", *QUICK).rows
    assert [(row["network"], row["hardware"], row["value"]) for row in rows] == [("resnet_56", "host", "0.05")]
    assert rows[0]["spec_hash"]


@pytest.mark.usefixtures("ready")
def test_a_row_is_predicted_with_its_own_spec_only(cli: Any, tmp_path: Path) -> None:
    spec, rows = tmp_path / "other.toml", str(tmp_path / "mine.csv")
    spec.write_text(cli("detect", "--toml").out.replace('capacity = { value = "', 'capacity = { value = "1'))
    assert cli("measure", "--net", "resnet_56", "--hw", str(spec), "--out", rows, *QUICK).code == 0
    other = cli("validate", "--measurements", rows, "--json").json
    assert "name its file with --hw" in other["skipped"][0]["reason"]
    own = cli("validate", "--measurements", rows, "--hw", str(spec), "--json").json
    assert (own["skipped"], len(own["rows"])) == ([], 1)
    assert cli("validate", "--measurements", rows, "--hw", str(tmp_path / "no.toml")).code == 66


@pytest.mark.usefixtures("ready")
def test_constants_are_fitted_to_rows_of_a_computer_of_one_s_own(cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    spec, rows, out = str(tmp_path / "mine.toml"), str(tmp_path / "mine.csv"), str(tmp_path / "fitted.toml")
    assert cli("detect", "--id", "my_computer", "--out", spec).code == 0
    nets = "alexnet,resnet_18,resnet_50,squeezenet_1_0,vgg_16,googlenet"
    assert cli("measure", "--net", nets, "--hw", spec, "--out", rows, *QUICK).code == 0
    result = cli("calibrate", "--measurements", rows, "--hw", spec, "--fit", "dispatch.native", "--out", out)
    assert "fitting to 6 of 6 rows" in result.err
    assert Path(out).exists()


@pytest.mark.usefixtures("ready")
def test_an_op_that_is_not_there_is_a_skip(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    assert cli("measure", "--net", "alexnet", "--per-op", "--out", str(path), *QUICK).code == 0
    path.write_text(path.read_text().replace("conv1+relu1", "conv1+nothing"))
    skips = cli("validate", "--measurements", str(path), "--json").json["skipped"]
    assert [skip["reason"] for skip in skips] == ["the network has no op nothing"]


@pytest.mark.usefixtures("ready")
def test_rows_of_host_do_not_join_the_corpus(cli: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "mine.csv")
    assert cli("measure", "--net", "resnet_56", "--out", path, *QUICK).code == 0
    result = cli("validate", "--add", path)
    assert result.code == 65
    assert "archsim detect --id NAME" in result.err
    assert cli("measure", "--net", "resnet_56", "--hw", "i7_6700k", "--out", path, *QUICK).code == 0
    assert cli("validate", "--add", path).code == 0


def test_an_interrupt_keeps_what_was_measured(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pretended: type
) -> None:
    def build(trace: BoundTrace, threads: int) -> object:
        if trace.name != "resnet_56":
            raise KeyboardInterrupt
        return pretended(trace, threads)

    monkeypatch.setattr("archsim.measure.run.opener", lambda backend, device, *_: build)
    path = tmp_path / "mine.csv"
    result = cli("measure", "--net", "resnet_56,alexnet", "--out", str(path), *QUICK)
    assert result.code == 130
    assert "1 row in" in result.err
    assert [row["network"] for row in csv.DictReader(path.read_text().splitlines())] == ["resnet_56"]


@pytest.mark.usefixtures("ready")
def test_strict_leaves_with_one(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.measure.timing.cpu_share", lambda *_: 0.3)
    result = cli("measure", "--net", "resnet_56", "--strict", *QUICK)
    assert (result.code, result.out) == (1, "")
    assert "other work took the cores" in result.err


BAD = {
    "unknown net": (("--net", "alexnett"), 2, "nearest: alexnet"),
    "no net": (("--net", ","), 2, "names nothing"),
    "batch": (("--net", "alexnet", "--batch", "1,x"), 2, "--batch"),
    "threads": (("--net", "alexnet", "--threads", "1000000"), 2, "may use"),
    "backend": (("--net", "alexnet", "--backend", "tensorflow"), 2, "onnxruntime, torch"),
    "device": (("--net", "alexnet", "--device", "cuda"), 2, "--backend torch"),
    "a GPU's spec": (("--net", "alexnet", "--hw", "gtx_1080"), 2, "is a gpu"),
    "processor time": (("--net", "alexnet", "--threads", "1", "--processor-time", "--hw", "gtx_1080"), 2, "is a gpu"),
    "spec": (("--net", "alexnet", "--hw", "no.toml"), 66, "no such file"),
    "path": (("--net", "/no/such.jsonl"), 2, "relative"),
    "no such trace": (("--net", "mine.jsonl"), 66, "no such file"),
}


@pytest.mark.parametrize(("words", "code", "text"), BAD.values(), ids=list(BAD))
def test_bad_usage_of_measure(cli: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, text: str) -> None:
    monkeypatch.setattr("archsim.measure.onnx_session.runtime", lambda: None)
    result = cli("measure", *words)
    assert result.code == code, result.err
    assert text in result.err
    assert result.out == ""


@pytest.mark.parametrize(("runtime", "way", "more"), [
    ("onnxruntime", 'pip install "archsim[measure]"', ()), ("torch", "pytorch.org", ("--backend", "torch")),
])  # fmt: skip
def test_without_a_runtime_the_way_to_it_is_said(
    cli: Any, monkeypatch: pytest.MonkeyPatch, runtime: str, way: str, more: tuple[str, ...]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, runtime, None)
    result = cli("measure", "--net", "alexnet", *more)
    assert result.code == 69
    assert way in result.err


def test_measure_writes_the_rows_of_a_file_and_says_which_it_could_not_run(
    cli: Any, tmp_path: Path, pretended: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archsim.measure.cases.session_class", lambda *_: pretended)
    rows, out = tmp_path / "rows.csv", tmp_path / "measured.csv"
    head = "network,stack,task,batch,seq_len,precision,threads,metric,value"
    rows.write_text(f"{head}\nalexnet,pytorch-2,inference,1,,fp32,,latency_s,\nno_such_net,pytorch-2,inference,1,,fp32,,latency_s,\n")
    result = cli("measure", "--cases", str(rows), "--out", str(out), "--rounds", "3")
    assert result.code == 1
    assert "1 of 2 rows measured" in result.err
    written = out.read_text().splitlines()
    assert written[0] == f"{head},low,high,rounds,software"
    assert written[1].split(",")[8] == "0.05"
    assert cli("measure", "--cases", str(rows), "--net", "alexnet").code == 2
    assert "give --net, or --cases" in cli("measure").err
