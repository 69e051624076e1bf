"""Bad input: one clear message, the right exit code, no traceback, nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from archsim.base.files import data_folder
from archsim.trace import dumps, load

SPEC = data_folder("hwspecs").joinpath("tegra_x1.toml").read_text("utf-8")
BANDWIDTH = 'bandwidth = { value = "25.6 GB/s", source = "module", kind = "datasheet" }'
BARE = 'bandwidth = { value = %s, source = "module", kind = "datasheet" }'
HEADER = {"schema": "archsim-trace/1", "name": "tiny", "inputs": {"data": ["N", 3, 8, 8]}, "dtype": "fp32", "source": "test"}
CONV = {"op": "conv2d", "name": "conv1", "in": ["data"], "out": ["N", 16, 6, 6], "kernel": [3, 3]}
RELU = {"op": "relu", "name": "relu1", "in": ["conv1"], "out": ["N", 16, 6, 6]}


def trace(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def spec(new: str, old: str = BANDWIDTH) -> bytes:
    assert SPEC.count(old) == 1
    return SPEC.replace(old, new).encode()


SPECS = {
    "unknown key": (spec(f'{BANDWIDTH}\nbandwith = {{ value = "1 GB/s", source = "x", kind = "measured" }}'), "bandwith"),
    "bare number": (spec(BARE % "25.6e9"), "lacks its unit"),
    "NaN": (spec(BARE % "nan"), "finite"),
    "1e400": (spec(BARE % '"1e400 GB/s"'), "finite"),
    "negative": (spec(BARE % '"-1 GB/s"'), "outside the range 1 MB/s to 10 PB/s"),
    "missing value": (spec('bandwidth = { source = "module", kind = "datasheet" }'), "is missing"),
    "missing key": (spec(""), "memory.bandwidth: is missing"),
    "missing source": (spec('bandwidth = { value = "25.6 GB/s", kind = "datasheet" }'), "source: is missing"),
    "deep key": (b"schema = 1\n" + b"a." * 20_000 + b"a = 1\n", "dots"),
    "empty": (b"", "is empty"),
    "binary": (bytes(range(256)), "UTF-8"),
    "key with an escape": (spec('["mar\\u001bket"]\n[market]', "[market]"), "no such table"),
}
TRACES = {
    "binary": (bytes(range(256)), "UTF-8"),
    "deep": (b'{"schema": ' + b"[" * 100_000, "line 1"),
}


def files_of(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def refused(result: Any, code: int, *texts: str) -> None:
    assert result.code == code, result.err
    assert result.out == ""
    assert result.err.startswith(("archsim: ", "Usage: "))
    assert "defect" not in result.err
    assert len(result.err) < 10_000
    assert "\x1b" not in result.err
    for text in texts:
        assert text in result.err


@pytest.mark.parametrize(("content", "text"), SPECS.values(), ids=list(SPECS))
def test_a_bad_spec(cli: Any, tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "bad.toml").write_bytes(content)
    path = str(tmp_path / "bad.toml")
    refused(cli("estimate", "--net", "alexnet", "--hw", path, "--html", str(tmp_path / "out.html")), 65, text, "bad.toml")
    refused(cli("compare", "--net", "alexnet", "--hw", f"tegra_x1,{path}"), 65, text)
    refused(cli("show", "hw", path), 65, text)
    assert files_of(tmp_path) == ["bad.toml"]


@pytest.mark.parametrize(("content", "text"), TRACES.values(), ids=list(TRACES))
def test_a_bad_trace(cli: Any, tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)
    path = str(tmp_path / "bad.jsonl")
    refused(cli("estimate", "--net", path, "--hw", "tegra_x1", "--html", str(tmp_path / "out.html"), "--json"), 65, text)
    assert files_of(tmp_path) == ["bad.jsonl"]


def test_a_batch_that_makes_a_tensor_too_large(cli: Any, tmp_path: Path) -> None:
    big = HEADER | {"inputs": {"data": ["N", 3, 2**24, 2**24]}}
    (tmp_path / "big.jsonl").write_bytes(trace(big, CONV | {"out": ["N", 16, 2**24 - 2, 2**24 - 2]}))
    result = cli("estimate", "--net", str(tmp_path / "big.jsonl"), "--hw", "tegra_x1", "--batch", "1000000")
    assert result.code in (2, 65)
    assert "2^53" in result.err


def test_a_bad_calibration(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("schema = 7\n")
    refused(cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--calibration", str(tmp_path / "bad.toml")), 65, "schema")


@pytest.mark.parametrize("words", [("--net", "FOLDER", "--hw", "tegra_x1"), ("--net", "alexnet", "--hw", "FOLDER")])
def test_a_folder_in_place_of_a_file(cli: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    refused(cli("estimate", *[str(tmp_path) if word == "FOLDER" else word for word in words]), 65, "is a folder")


def test_an_output_path_that_cannot_be_written(cli: Any, tmp_path: Path) -> None:
    for path, text in ((tmp_path, "is a folder"), (tmp_path / "no" / "out.html", "no folder")):
        refused(cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--html", str(path)), 65, text)
    assert files_of(tmp_path) == []


# ---------------------------------------------------------------------------------------------- stated bounds


def test_a_defect_of_ours_is_said_to_be_one(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("wrong sign")

    monkeypatch.setattr("archsim.estimation.estimate.estimate", broken)
    result = cli("estimate", "--net", "alexnet", "--hw", "tegra_x1")
    assert result.code == 70
    assert "RuntimeError: wrong sign" in result.err
    assert "defect" in result.err


def test_a_good_trace_is_not_refused(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(trace(HEADER, CONV, RELU))
    assert cli("estimate", "--net", str(tmp_path / "good.jsonl"), "--hw", "tegra_x1").code == 0
    (tmp_path / "alex.jsonl").write_text(dumps(load("alexnet")))
    assert cli("estimate", "--net", str(tmp_path / "alex.jsonl"), "--hw", "tegra_x1").code == 0
