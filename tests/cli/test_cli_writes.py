"""What commands write: checked before any work, refused where something would be lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import heard

ESTIMATE = ("estimate", "--net", "alexnet", "--hw", "tegra_x1")
COMPARE = ("compare", "--net", "alexnet", "--hw", "tegra_x1,gtx_1080")
SWEEP = ("sweep", "--net", "alexnet", "--hw", "gtx_1080", "--vary", "sm.count=8,16")


def worked(*_: object, **__: object) -> None:
    raise AssertionError("work began before the place was checked")


@pytest.mark.parametrize("path", ["/dev/full", "-", "no/x.html", "theirs.html"])
def test_a_place_is_refused_before_work_begins(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs.html").write_text("<html>mine</html>")
    monkeypatch.setattr("archsim.estimation.estimate.estimate", worked)
    found = cli(*ESTIMATE, "--html", path)
    assert found.code == (2 if path == "-" else 65)
    assert (found.out, path in found.err) == ("", True)
    assert os.listdir(tmp_path) == ["theirs.html"]
    assert (tmp_path / "theirs.html").read_text() == "<html>mine</html>"


def test_each_command_replaces_its_own_pages(cli: Any, tmp_path: Path) -> None:
    page = str(tmp_path / "x.html")
    assert [cli(*ESTIMATE, "--html", page).code for _ in range(2)] == [0, 0]
    assert "archsim compare wrote; name another file, or add --force" in cli(*COMPARE, "--html", page).err
    assert cli(*COMPARE, "--html", page, "--force").code == 0
    assert cli(*COMPARE, "--html", page).code == 0


def test_one_file_cannot_take_two_outputs(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    found = cli(*ESTIMATE, "--html", str(tmp_path / "x"), "--timeline", str(tmp_path / "link"))
    assert (found.code, os.listdir(tmp_path)) == (2, ["link"])
    assert "--html and --timeline both name" in found.err


def test_a_dash_is_standard_output_where_results_are_printed(cli: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert "is no file" in cli("detect", "--out", "-").err
    assert cli(*SWEEP, "--out", "-").out == cli(*SWEEP).out
    assert os.listdir(tmp_path) == []


def test_a_sweep_is_replaced_by_force_only_when_it_is_complete(cli: Any, tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("x.sqlite", "x.csv"):
        place = tmp_path / name
        assert cli(*SWEEP, "--out", str(place)).code == 0
        before = place.read_bytes()
        assert "--force" in cli(*SWEEP, "--out", str(place)).err
        with monkeypatch.context() as patch:
            patch.setattr("archsim.study.store.Store.append", worked)
            assert cli(*SWEEP, "--out", str(place), "--batch", "2", "--force").code == 70
        assert place.read_bytes() == before
        assert cli(*SWEEP, "--out", str(place), "--batch", "2", "--force").code == 0
        assert place.read_bytes() != before
    assert sorted(os.listdir(tmp_path)) == ["x.csv", "x.csv.json", "x.sqlite"]


def test_a_study_replaces_its_files_and_no_others(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'schema = 1\ntitle = "T"\nquestion = "Q?"\n[[part]]\nkind = "sensitivity"\nname = "a"\ntitle = "A"\n'
        'net = ["alexnet"]\nhw = ["tegra_x1"]\n'
    )
    study = ("study", str(tmp_path / "study.toml"))
    (tmp_path / "README.md").write_text("# Mine\n")
    assert "is there already" in cli(*study).err
    assert sorted(os.listdir(tmp_path)) == ["README.md", "study.toml"]
    (tmp_path / "README.md").unlink()
    assert [cli(*study).code for _ in range(2)] == [0, 0]
    (table,) = (name for name in os.listdir(tmp_path) if name.endswith(".csv"))
    (tmp_path / table).write_text("mine\n")
    assert "is there already" in cli(*study).err
    assert (tmp_path / table).read_text() == "mine\n"
    assert [cli(*study, "--force").code, cli(*study, "--check").code] == [0, 0]


def test_the_workflow_of_the_manual_keeps_the_device_that_was_measured(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretended: Any
) -> None:
    pytest.importorskip("scipy")
    monkeypatch.setattr("archsim.measure.run.opener", lambda *_: pretended)
    monkeypatch.chdir(tmp_path)
    nets = "alexnet,resnet_18,resnet_50,squeezenet_1_0,vgg_16,googlenet"
    assert cli("detect", "--out", "mine.toml").code == 0
    assert cli("measure", "--net", nets, "--rounds", "1", "--time-limit", "0s", "--out", "mine.csv").code == 0
    device = Path("mine.toml").read_text()
    fit = ("calibrate", "--measurements", "mine.csv", "--fit", "dispatch.native")
    for place in ("mine.toml", "./mine.toml"):
        assert "is the device file of mine.csv" in cli(*fit, "--out", place, "--force").err + cli(*fit, "--out", place).err
    assert "is there already" in cli("calibrate", "--fit", "dispatch.native", "--out", "mine.toml").err
    assert Path("mine.toml").read_text() == device
    assert cli(*fit, "--out", "constants.toml").code in (0, 1)
    assert Path("mine.toml").read_text() == device
    found = cli("estimate", "--net", "alexnet", "--hw", "./mine.toml", "--calibration", "constants.toml", "--json")
    assert found.json["latency_s"] > 0
    assert cli("validate", "--measurements", "mine.csv", "--disturbed", "--json").json["skipped"] == []


def ended(number: int, folder: Path) -> tuple[int, str]:
    """Exit code and words of an estimate that a signal reaches while it writes a page."""
    code = (
        "import os, sys, time; from archsim.base import writer; write = writer.os.fsync\n"
        "def slow(handle): print('writing', flush=True); time.sleep(30)\n"
        "writer.os.fsync = slow\n"
        "sys.argv = ['archsim', 'estimate', '--net', 'alexnet', '--hw', 'tegra_x1', '--html', 'x.html']\n"
        "from archsim.cli.main import main; main()"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=heard) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        assert any(name.startswith(".archsim-") for name in os.listdir(folder))
        time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    return process.returncode, said.strip()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "said"), [
    (signal.SIGINT, 130, "archsim: interrupted"), (signal.SIGTERM, 143, "archsim: terminated"),
    (signal.SIGHUP, 129, "archsim: terminated"),
])  # fmt: skip
def test_a_signal_leaves_nothing_half_written(tmp_path: Path, number: int, code: int, said: str) -> None:
    assert ended(number, tmp_path) == (code, said)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [ESTIMATE, ("list", "hw"), ("--help",), SWEEP, ("cache", "--help")])
def test_closed_streams_are_one_error_or_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    command = f'"{sys.executable}" -m archsim {" ".join(words)}'
    for closed, code, said in ((">&-", 65, "archsim: standard output is closed, so nothing could be printed\n"),
                               (">&- 2>&- <&-", 65, ""), ("2>&-", 0, ""), ("<&-", 0, "")):  # fmt: skip
        done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == code, closed
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []
