"""`archsim sweep` on the command line: what it prints, what it refuses, what a signal leaves behind."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import archsim
from archsim.cli import sweep
from archsim.render.text import Screen

from .conftest import Cli, heard

BASE = ("sweep", "--net", "alexnet", "--hw", "gtx_1080")
ROOT = Path(__file__).parents[2]


def test_rows_on_standard_output_are_single_estimates(cli: Cli) -> None:
    found = cli(*BASE, "--vary", "memory.bandwidth=100GB/s:400GB/s:3log", "--vary", "batch=1,4")
    rows = found.rows
    assert found.code == 0
    assert len(rows) == 6
    assert [(row["batch"], float(row["memory.bandwidth"])) for row in rows[:4]] == [
        ("1", 100e9), ("1", 200e9), ("1", 400e9), ("4", 100e9)
    ]  # fmt: skip
    alone = archsim.estimate("alexnet", "gtx_1080", batch=4, set={"memory.bandwidth": "100 GB/s"})
    for name in ("latency_s", "throughput_per_s", "power_w", "energy_j", "throughput_per_w", "dram_bytes", "memory_bytes"):
        assert float(rows[3][name]) == pytest.approx(getattr(alone, name), rel=1e-12)


def test_a_terminal_gets_a_summary_and_csv_when_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "screen", lambda: Screen(width=100))
    words = (*BASE, "--vary", "sm.count=8:40:8")
    out = cli(*words).out
    for text in ("Sweep of alexnet on gtx_1080", "5 points", "fastest", "least energy", "as it is"):
        assert text in out, text
    assert cli(*words, "--csv").out.startswith("point,network")


@pytest.mark.parametrize(("net", "hw", "vary", "swept"), [
    ("alexnet", "gtx_1080*", "batch=1,4", ["gtx_1080"] * 2 + ["gtx_1080_ti"] * 2),
    ("alexnet,alexnet", "gtx1080,tesla_k40,gtx_1080", "sm.count=8", ["gtx_1080", "tesla_k40"]),
])  # fmt: skip
def test_a_pattern_names_several_devices_and_each_is_swept_once(cli: Cli, net: str, hw: str, vary: str, swept: list[str]) -> None:
    assert [row["hardware"] for row in cli("sweep", "--net", net, "--hw", hw, "--vary", vary).rows] == swept


def test_a_file_is_written_and_can_be_resumed_but_not_overwritten(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "study.sqlite"
    words = (*BASE, "--vary", "sm.count=8:160:8", "--out", str(out))
    first = cli(*words)
    assert first.code == 0
    assert "20 points" in first.out
    assert f"wrote 20 points to {out}" in first.err
    again = cli(*words)
    assert (again.code, "--resume goes on" in again.err) == (65, True)
    assert cli(*words, "--resume").code == 0
    connection = sqlite3.connect(out)
    assert connection.execute("SELECT count(*), typeof(max(\"sm.count\")) FROM points").fetchall() == [(20, "integer")]
    about = {key: json.loads(value) for key, value in connection.execute("SELECT * FROM study")}
    connection.close()
    assert about["schema"] == "archsim-sweep/1"
    assert about["bases"][0]["spec_hash"] == archsim.estimate("alexnet", "gtx_1080").provenance["spec_hash"]
    assert about["units"]["latency_s"] == "s"


def test_csv_has_its_provenance_beside_it(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "study.csv"
    assert cli(*BASE, "--vary", "sm.count=8,16", "--out", str(out)).code == 0
    assert sorted(os.listdir(tmp_path)) == ["study.csv", "study.csv.json"]
    assert len(out.read_text().splitlines()) == 3
    assert json.loads(Path(f"{out}.json").read_text())["vary"] == ["sm.count=8,16"]
    assert cli(*BASE, "--vary", "sm.count=8,16", "--out", str(out)).code == 65


def test_parquet_holds_the_same_rows(cli: Cli, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    words = (*BASE, "--vary", "sm.count=8,16", "--vary", "precision=fp32,tf32", "--out")
    assert cli(*words, str(tmp_path / "a.parquet")).code == 0
    assert cli(*words, str(tmp_path / "b.sqlite")).code == 0
    table = parquet.read_table(tmp_path / "a.parquet")
    connection = sqlite3.connect(tmp_path / "b.sqlite")
    rows = connection.execute("SELECT * FROM points").fetchall()
    connection.close()
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert b"archsim" in table.schema.metadata


def test_points_that_are_no_machine_are_kept_with_their_reason(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "study.sqlite"
    found = cli(*BASE, "--vary", "power.idle=5W,500W", "--vary", "precision=fp32,tf32", "--out", str(out))
    assert found.code == 0
    assert "3 are impossible or not modelled" in found.out
    assert "power.idle: 500 W is more than power.tdp (180 W)" in found.out
    connection = sqlite3.connect(out)
    assert connection.execute("SELECT count(*) FROM points WHERE latency_s IS NULL AND fits IS NULL").fetchone() == (3,)
    assert connection.execute("SELECT DISTINCT typeof(fits) FROM points WHERE problem IS NULL").fetchall() == [("integer",)]
    connection.close()


def test_a_knob_that_changes_nothing_is_named(cli: Cli) -> None:
    found = cli(*BASE, "--vary", "sm.alu_latency=4clk,5clk,6clk", "--vary", "sm.count=8,16")
    assert "archsim: sm.alu_latency changes no output; --fidelity cycle reads it\n" in found.err
    assert "sm.count" not in found.err


def test_linked_keys_move_together(cli: Cli) -> None:
    found = cli(*BASE, "--vary", "sm.count=20,40", "--link", "l2.bandwidth=sm.count", "--link", "power.tdp=sm.count^0.5")
    rows = found.rows
    assert float(rows[1]["l2.bandwidth"]) == 2 * float(rows[0]["l2.bandwidth"])
    assert float(rows[1]["power.tdp"]) == pytest.approx(180 * 2**0.5)


def test_a_failed_scheduler_leaves_nothing(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("study.sqlite", "study.csv"):
        found = cli(*BASE, "--vary", "sm.count=8", "--scheduler", "tcp://127.0.0.1:9", "--out", name)
        assert (found.code, found.out) in ((69, ""), (2, ""))  # without the package, or without a scheduler
        assert "scheduler" in found.err
        assert os.listdir(tmp_path) == []


def test_a_base_that_cannot_be_is_refused_before_anything_runs(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "study.sqlite"
    found = cli(*BASE, "--stack", "intel-mkl", "--vary", "sm.count=8", "--out", str(out))
    assert found.code == 2
    assert "for a cpu" in found.err
    assert not out.exists()


def test_yes_goes_on_with_many_points(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MANY", 1)
    assert cli(*BASE, "--vary", "sm.count=8,16").code == 2
    assert cli(*BASE, "--vary", "sm.count=8,16", "--yes").code == 0


def started(out: str, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "archsim", *BASE, "--vary", "sm.count=1:150:1", "--vary",
             "memory.bandwidth=100GB/s:1TB/s:10000log", *more]  # fmt: skip
    return subprocess.Popen([*words, *(("--out", out) if out else ())], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=heard)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["one process", "two workers"])
def test_an_interrupt_says_what_is_safe(tmp_path: Path, more: tuple[str, ...]) -> None:
    out = tmp_path / "study.sqlite"
    process = started(str(out), *more)
    for _ in range(1000):
        if out.exists() and out.stat().st_size > 100_000:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "points are safe in" in err
    assert "Traceback" not in err
    connection = sqlite3.connect(out)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.slow
def test_a_reader_that_leaves_ends_it() -> None:
    process = started("")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("point,network")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 0
