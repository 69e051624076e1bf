"""Several commands at once that write the same file or the same cache: every file is whole, and nothing is left behind."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def at_once(commands: Sequence[Sequence[str]], folder: Path, **environment: str) -> list[tuple[int, str]]:
    """Exit codes and messages of commands that run side by side."""
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    running = [subprocess.Popen([sys.executable, "-m", "archsim", *words], cwd=folder, env=whole, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True) for words in commands]  # fmt: skip
    return [(process.returncode, said) for process, said in [(one, one.communicate(timeout=300)[1]) for one in running]]


def test_one_page_from_four_commands_is_one_of_them(tmp_path: Path) -> None:
    nets = ("alexnet", "vgg_16", "nin", "lenet_5")
    words = [("estimate", "--net", net, "--hw", "gtx_1080", "--html", "x.html") for net in nets]
    found = at_once(words, tmp_path)
    assert [code for code, _ in found] == [0] * 4, found
    assert os.listdir(tmp_path) == ["x.html"]
    page = (tmp_path / "x.html").read_text("utf-8")
    assert page.endswith("</html>\n")
    assert sum(f"<h1>{net} on" in page for net in nets) == 1


@pytest.mark.parametrize("name", ["x.sqlite", "x.csv"])
def test_one_sweep_from_two_commands_is_complete_or_refused(tmp_path: Path, name: str) -> None:
    vary = ("--vary", "sm.count=8:160:1", "--vary", "batch=1:64:1")
    words = ("sweep", "--net", "alexnet", "--hw", "gtx_1080", *vary, "--out", name)
    found = at_once([words, words], tmp_path)
    assert sorted(code for code, _ in found)[0] == 0 or all(code == 65 for code, _ in found), found
    assert all(code in (0, 65) for code, _ in found)
    assert all("defect" not in said and "Traceback" not in said for _, said in found)
    done = subprocess.run([sys.executable, "-m", "archsim", *words, "--resume"], cwd=tmp_path, capture_output=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    if name.endswith("sqlite"):
        assert done.returncode == 0
        connection = sqlite3.connect(tmp_path / name)
        assert connection.execute("SELECT count(*), min(point), max(point) FROM points").fetchone() == (9792, 0, 9791)
        connection.close()
    else:
        assert len((tmp_path / name).read_text().splitlines()) == 9793
        assert json.loads((tmp_path / f"{name}.json").read_text())["schema"] == "archsim-sweep/1"
    assert not [left for left in os.listdir(tmp_path) if left.startswith(".archsim-")]


def test_the_code_of_the_cache_simulator_is_compiled_by_several_at_once(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    (tmp_path / "t.din").write_text("0 10\n1 20\n" * 100)
    words = ("cache", "--hw", "i7_6700k", "--trace", "t.din")
    found = at_once([words] * 3, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "code"))
    assert [code for code, _ in found] == [0] * 3, found
