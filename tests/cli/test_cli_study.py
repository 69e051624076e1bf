"""`archsim study`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

STUDY = """schema = 1
title = "T"
question = "Q?"
[[part]]
kind = "sensitivity"
name = "a"
title = "A"
net = ["alexnet"]
hw = ["tegra_x1"]
"""


def test_the_command_writes_checks_and_refuses(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, "utf-8")
    assert cli("study", str(path), "--check").code == 1
    assert cli("study", str(path)).code == 0
    assert cli("study", str(path), "--check").code == 0
    (tmp_path / "README.md").write_text("other", "utf-8")
    stale = cli("study", str(path), "--check")
    assert stale.code == 1
    assert "README.md is not what the study gives now" in stale.err
    assert cli("study", str(tmp_path / "none.toml")).code == 66
    assert cli("study", str(path), "--out", str(tmp_path / "none")).code == 2
    assert cli("study", str(path), str(path), "--out", str(tmp_path)).code == 2
    assert cli("study").code == 2
    path.write_text("schema = 1\n", "utf-8")
    assert cli("study", str(path)).code == 65
