"""Profiles of a GPU, drawn up: kernels belong to the calls that launched them, and gaps, copies and layouts have their names."""

from __future__ import annotations

import json
import math
from pathlib import Path

import archsim
from tests.trace.kineto import GAP_US, events


def test_what_a_device_waits_copies_and_moves_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events(3, layers=2))}), "utf-8")
    found = archsim.profile(path, "a100_sxm4_40gb", stack="pytorch-2")
    assert (found.precision, len(found.run_s), len(found.ops)) == ("fp16", 3, 8)
    assert [op.name for op in found.ops if op.cause == "attention not fused"] == ["attention_1", "attention_9"]
    causes = {cause.name: cause.time_s for cause in found.gap}
    assert math.isclose(causes["copies"], 3e-6)
    assert math.isclose(causes["layout and type conversions"], 14e-6)
    assert math.isclose(causes["host gaps"], found.idle_s - found.wait_s)
    assert found.idle_s > 15 * GAP_US * 1e-6
    assert math.isclose(math.fsum(causes.values()), found.measured_s - found.predicted_s)
