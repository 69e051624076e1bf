"""A network whose file fixes the batch: every command takes that one, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archsim.base.errors import InputError
from archsim.measure.run import bound
from archsim.trace import loads

HEAD = '{"schema": "archsim-trace/1", "name": "fixed", "inputs": %s, "dtype": "fp32", "source": "x"}\n'
CONV = ('{"op": "conv2d", "name": "conv1", "in": ["data"], "out": [%s, 16, 30, 30], "kernel": [3, 3]}\n'
        '{"op": "relu", "name": "relu1", "in": ["conv1"], "out": [%s, 16, 30, 30]}\n')  # fmt: skip


def text(batch: str) -> str:
    return HEAD % f'{{"data": [{batch}, 3, 32, 32]}}' + CONV % (batch, batch)


@pytest.fixture
def net(tmp_path: Path) -> str:
    (tmp_path / "fixed.jsonl").write_text(text("16"))
    return str(tmp_path / "fixed.jsonl")


def test_the_batch_of_the_file_is_that_of_the_estimate(cli: Any, net: str, tmp_path: Path) -> None:
    (tmp_path / "free.jsonl").write_text(text('"N"'))
    free = cli("estimate", "--net", str(tmp_path / "free.jsonl"), "--hw", "gtx_1080", "--batch", "16", "--json").json
    for given in ((), ("--batch", "16")):
        found = cli("estimate", "--net", net, "--hw", "gtx_1080", *given, "--json").json
        assert (found["batch"], found["latency_s"]) == (16, free["latency_s"])
        assert found["throughput_per_s"] == free["throughput_per_s"]
        assert any("as the shapes of the network's file fix it" in said for said in found["assumptions"]) == (not given)


@pytest.mark.parametrize("words", [
    ("estimate", "--batch", "64"), ("estimate", "--batch", "1"), ("compare", "--batch", "1,16"), ("compare", "--batch", "8"),
    ("explain", "--batch", "2"), ("cache", "--layer", "conv1", "--batch", "2"), ("sensitivity", "--batch", "64"),
    ("whatif", "--to", "batch=64"), ("simulate", "train", "--batch", "32"), ("simulate", "serve", "--rate", "10/s"),
    ("simulate", "serve", "--rate", "10/s", "--batching", "max=4"),
])  # fmt: skip
def test_another_batch_is_refused_with_the_way_out(cli: Any, net: str, words: tuple[str, ...]) -> None:
    found = cli(*words, "--net", net, "--hw", "gtx_1080")
    assert found.code in (2, 65)
    assert found.out == ""
    assert "batch" in found.err
    assert "16" in found.err
    assert "'N' in place of it" in found.err
    assert "fixed.jsonl" in found.err


def test_a_sweep_over_batches_says_which_it_cannot(cli: Any, net: str) -> None:
    rows = cli("sweep", "--net", net, "--hw", "gtx_1080", "--vary", "batch=1,16,64").rows
    assert [(row["batch"], bool(row["latency_s"]), "of batch 16" in row["problem"]) for row in rows] == [
        ("1", False, True), ("16", True, False), ("64", False, True)]  # fmt: skip


def test_measured_rows_of_another_batch_are_left_out(cli: Any, net: str, write: Any) -> None:
    path = write(*(f"me,{net},gtx_1080,torch7-cudnn5.1,inference,{batch},fp32,,1,,latency_s,0.01,test" for batch in (1, 16)))
    found = cli("validate", "--measurements", path, "--json").json
    assert [row["batch"] for row in found["rows"]] == [16]
    assert "is of batch 16, the row of batch 1" in found["skipped"][0]["reason"]


def test_what_the_inputs_share_is_the_batch() -> None:
    assert loads(text("16")).fixed_batch == 16
    assert loads(text('"N"')).fixed_batch is None
    two = HEAD % '{"data": [16, 3, 32, 32], "other": [2, 4]}' + CONV % (16, 16)
    assert loads(two).fixed_batch == 1
    with pytest.raises(ValueError, match="are of batch 1"):
        loads(two).samples(16)
    assert (loads(text('"N"')).samples(None), loads(text('"N"')).samples(8), loads(text("16")).samples(None)) == (1, 8, 16)


def test_measuring_another_batch_is_refused_before_anything_runs(net: str) -> None:
    assert bound(net, 16).inputs["data"][0] == 16
    with pytest.raises(InputError, match="are of batch 16"):
        bound(net, 2)
