"""What must not change an answer: names of layers, the order of dictionaries, what was asked before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import archsim
from archsim.answers.estimate import record
from archsim.trace import Trace, dumps, load

SCRIPT = """
import archsim
from archsim.answers.estimate import record
print(record(archsim.estimate(net="googlenet", hw="gtx_1080", batch=16, task="training_step")))
print(record(archsim.estimate(net="alexnet", hw="i7_6700k", batch=2)))
"""


@pytest.mark.shipped_fit  # which the other process takes
@pytest.mark.slow
def test_neither_another_hash_seed_nor_what_ran_before_changes_a_byte(capsys: pytest.CaptureFixture[str]) -> None:
    exec(SCRIPT, {})  # with the seed of this process, after the tests before
    seed = {"PYTHONHASHSEED": "0" if os.environ.get("PYTHONHASHSEED") != "0" else "1"}
    other = subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | seed, capture_output=True, text=True, check=True)
    assert other.stdout.startswith("{")
    assert capsys.readouterr().out == other.stdout


def test_asking_something_else_in_between_changes_nothing() -> None:
    def text() -> str:
        return str(record(archsim.estimate(net="resnet_18", hw="tesla_k40", batch=4)))

    first = text()
    archsim.estimate(net="resnet_18", hw="tesla_k40", batch=5, precision="fp16", task="training_step")
    archsim.estimate(net="resnet_18", hw="tesla_k40", batch=4, set={"memory.bandwidth": "1 GB/s"})
    assert text() == first


def renamed(trace: Trace) -> Trace:
    names = {op.name: f"zz{len(trace.ops) - i}" for i, op in enumerate(trace.ops)}
    ops = [replace(op, name=names[op.name], inputs=tuple(names.get(name, name) for name in op.inputs)) for op in trace.ops]
    return replace(trace, ops=tuple(ops), outputs=tuple(names[name] for name in trace.outputs))


@pytest.mark.parametrize("task", ["inference", "training_step"])
@pytest.mark.parametrize("net", ["alexnet", "googlenet"])
def test_renaming_layers_changes_no_number(net: str, task: str, tmp_path: Path) -> None:
    path = tmp_path / "renamed.jsonl"
    path.write_text(dumps(renamed(load(net))))
    before = archsim.estimate(net=net, hw="gtx_1080", batch=4, task=task)
    after = archsim.estimate(net=str(path), hw="gtx_1080", batch=4, task=task)
    assert [op.time_s for op in before.ops] == [op.time_s for op in after.ops]
    for name in ("latency_s", "energy_j", "flop", "dram_bytes", "memory_bytes", "breakdown_s"):
        assert getattr(before, name) == getattr(after, name), name
    assert {op.name for op in before.ops}.isdisjoint(op.name for op in after.ops)


def test_a_trace_written_and_read_again_gives_the_same_numbers(tmp_path: Path) -> None:
    path = tmp_path / "again.jsonl"
    path.write_text(dumps(load("squeezenet_1_1")))
    before, after = (archsim.estimate(net=net, hw="tegra_x1") for net in ("squeezenet_1_1", str(path)))
    assert before.ops == after.ops


def test_bytes_of_json_are_the_same_twice() -> None:
    texts = {json.dumps(record(archsim.estimate(net="alexnet", hw="tegra_x1"))) for _ in range(2)}
    assert len(texts) == 1
    assert json.loads(texts.pop())["network"] == "alexnet"
