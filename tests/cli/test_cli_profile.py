"""`archsim profile`: forms of the answer, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CNN = Path(__file__).parents[1] / "trace" / "profiles" / "torch_cpu_cnn.json"


def test_the_command_prints_each_form(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "gap.html"
    words = ("profile", str(CNN), "--hw", "i7_6700k", "--stack", "pytorch-cpu")
    found = cli(*words, "--html", str(page))
    assert found.code == 0
    for text in ("PyTorch profiler · 3 runs", "times as long as predicted, +", "host gaps", "conv2d_0"):
        assert text in found.out, text
    shown = page.read_text("utf-8")
    assert "Measured above predicted" in shown
    record = json.loads(cli(*words, "--json").out)
    assert record["schema"] == "archsim-profile/1"
    assert {piece["track"] for piece in record["measured_timeline"]} == {"measured"}
    assert cli(*words, "--csv").out.startswith("what,name,kind,count,measured_s,predicted_s")
