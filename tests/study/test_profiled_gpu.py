"""Profiles of a GPU, drawn up: kernels belong to the calls that launched them, and gaps, copies and layouts have their names."""

from __future__ import annotations

import json
import math
from pathlib import Path

import archsim
from tests.trace.kineto import GAP_US, events


def test_kernels_of_nsight_stand_beside_families_of_ops(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    head = "Start (ns),Duration (ns),CorrId,Bytes (MB),Device,Ctx,Strm,Name"
    run = [(0, 3000, "[CUDA memcpy Host-to-Device]"), (5000, 900_000, "ampere_sgemm_128x64_tn"),
           (910_000, 20_000, "void at::native::vectorized_elementwise_kernel<4, Relu>(int, float)")]  # fmt: skip
    rows = [f'{start + turn * 10**6},{took},1,,GPU,1,7,"{name}"' for turn in range(3) for start, took, name in run]
    path.write_text("\n".join(["Processing [x.sqlite] with [cuda_gpu_trace.py]...", head, *rows]), "utf-8")
    found = archsim.profile(path, "gtx_1080", net="alexnet", batch=4)
    assert len(found.run_s) == 3
    assert math.isclose(found.measured_s, 930e-6)
    families = {op.name: op.measured_s for op in found.ops}
    assert math.isclose(families["products"], 900e-6)
    assert {one.name: one.cause for one in found.not_matched} == {"[CUDA memcpy Host-to-Device]": "copies"}
    assert math.isclose(math.fsum(cause.time_s for cause in found.gap), found.measured_s - found.predicted_s)


def test_what_a_device_waits_copies_and_moves_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events(3, layers=2))}), "utf-8")
    found = archsim.profile(path, "a100_sxm4_40gb", stack="pytorch-2")
    assert (found.precision, len(found.run_s), len(found.ops)) == ("fp16", 3, 10)
    assert [op.name for op in found.ops if op.cause == "attention not fused"] == ["attention_1", "attention_9"]
    moved = math.fsum(op.predicted_s for op in found.ops if op.kind == "gather")
    causes = {cause.name: cause.time_s for cause in found.gap}
    assert math.isclose(causes["copies"], 3e-6)
    assert math.isclose(causes["layout and type conversions"], 14e-6 - moved)
    assert math.isclose(causes["host gaps"], found.idle_s - found.wait_s)
    assert found.idle_s > 15 * GAP_US * 1e-6
    assert math.isclose(math.fsum(causes.values()), found.measured_s - found.predicted_s)
