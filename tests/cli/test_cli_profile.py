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
    record = cli(*words, "--json").json
    assert record["schema"] == "archsim-profile/1"
    assert {piece["track"] for piece in record["measured_timeline"]} == {"measured"}
    assert cli(*words, "--csv").out.startswith("what,name,kind,count,measured_s,predicted_s")


def test_recorded_tiles_become_rows_that_a_stack_reads(cli: Any, tmp_path: Path) -> None:
    args = {"block": [128, 1, 1], "registers per thread": 168, "shared memory": 1024}
    event = {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_tn", "ts": 0, "dur": 1, "args": args}
    trace, tiles, stack = (tmp_path / name for name in ("trace.json", "mine.csv", "mine.toml"))
    trace.write_text(json.dumps({"traceEvents": [event]}), "utf-8")
    words = ("profile", str(trace), "--hw", "a100_sxm4_40gb", "--kernels", str(tiles))
    assert cli(*words).code == 0
    assert "gemm,ampere,,,,128,64,8,128,168,1024,,,,profile trace.json" in tiles.read_text("utf-8")
    assert "--batch: no effect with --kernels" in cli(*words, "--batch", "2").err
    stack.write_text(f'schema = 1\nid = "mine"\nlike = "pytorch-2"\n[menus.gemm]\nkernels = ["{tiles}", "generic"]\n', "utf-8")
    assert cli("estimate", "--net", "alexnet", "--hw", "a100_sxm4_40gb", "--stack", str(stack)).code == 0
