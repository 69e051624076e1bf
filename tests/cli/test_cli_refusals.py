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
    "cycle": (trace(HEADER, CONV | {"in": ["relu1"]}, RELU), "line"),
    "itself": (trace(HEADER, CONV | {"in": ["conv1"]}), "line 2"),
    "wrong shape": (trace(HEADER, CONV | {"out": ["N", 16, 7, 7]}), "line 2"),
    "dangling input": (trace(HEADER, CONV | {"in": ["nowhere"]}), "nowhere"),
    "2^62": (trace(HEADER | {"inputs": {"data": ["N", 3, 2**62, 2**62]}}, CONV), ""),
    "unknown op": (trace(HEADER, CONV | {"op": "conv2dd"}), "conv2d"),
    "unknown key": (trace(HEADER, CONV | {"kernal": [3, 3]}), "kernel"),
    "duplicate name": (trace(HEADER, CONV, CONV), "conv1"),
    "no ops": (trace(HEADER), ""),
    "empty": (b"", "is empty"),
    "binary": (bytes(range(256)), "UTF-8"),
    "not JSON": (b"{nonsense\n", "line 1"),
    "deep": (b'{"schema": ' + b"[" * 100_000, "line 1"),
    "NaN": (trace(HEADER, CONV).replace(b"[3, 3]", b"[NaN, 3]"), "line 2"),
    "other schema": (trace(HEADER | {"schema": "archsim-trace/9"}, CONV), "schema"),
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


STACK = 'schema = 1\nid = "mine"\nlike = "caffe-cudnn4"\n'
STACKS = {
    "unknown key": (STACK + "foo = 1\n", "foo: unknown key"),
    "unknown algorithm": (STACK + '[conv.algorithms]\nforward = { implicit_gem = "one" }\n', "nearest: implicit_gemm"),
    "unknown phase": (STACK + '[conv.algorithms]\nsideways = { implicit_gemm = "one" }\n', "sideways"),
    "like no stack": (STACK.replace("caffe-cudnn4", "nope"), "like: no stack 'nope'"),
    "like a number": (STACK.replace('"caffe-cudnn4"', "5"), "like: no stack 5"),
    "unknown part": (STACK + 'parts = { library = "cudnn 4.5" }\n', "no version '4.5'; known: 1, 2"),
    "missing menu": (STACK.replace("caffe-cudnn4", "ideal") + '[conv.algorithms]\nforward = { implicit_gemm = "one" }\n',
                     "menus.conv_forward"),
    "no tiles": (STACK + "[menus.gemm]\ntiles = []\n", "menus"),
    "reserved without unit": (STACK + 'reserved = "5"\n', "lacks its unit"),
    "less than nothing reserved": (STACK + 'reserved = "-5 GB"\n', "less than nothing"),
    "empty": ("", "is empty"),
    "not TOML": ("[", "is not valid TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "text"), STACKS.values(), ids=list(STACKS))
def test_a_bad_stack(cli: Any, tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    refused(cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--stack", str(tmp_path / "bad.toml")), 65, text)


def test_a_bad_calibration(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("schema = 7\n")
    refused(cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--calibration", str(tmp_path / "bad.toml")), 65, "schema")


USAGE = {
    "unknown net": (("--net", "alexnett", "--hw", "tegra_x1"), "nearest: alexnet"),
    "unknown device": (("--net", "alexnet", "--hw", "tegra_x"), "tegra_x1"),
    "ambiguous device": (("--net", "alexnet", "--hw", "titan_x"), "titan_x_maxwell or titan_x_pascal"),
    "unknown stack": (("--net", "alexnet", "--hw", "tegra_x1", "--stack", "caffe-cudn4"), "nearest: caffe-cudnn4"),
    "unknown precision": (("--net", "alexnet", "--hw", "tegra_x1", "--precision", "fp17"), "fp16"),
    "unknown task": (("--net", "alexnet", "--hw", "tegra_x1", "--task", "trainin"), "training_step"),
    "unknown fidelity": (("--net", "alexnet", "--hw", "tegra_x1", "--fidelity", "exact"), "roofline"),
    "batch 0": (("--net", "alexnet", "--hw", "tegra_x1", "--batch", "0"), "batch 0"),
    "batch -1": (("--net", "alexnet", "--hw", "tegra_x1", "--batch", "-1"), "batch -1"),
    "batch 2^62": (("--net", "alexnet", "--hw", "tegra_x1", "--batch", str(2**62)), "batch"),
    "batch 1.5": (("--net", "alexnet", "--hw", "tegra_x1", "--batch", "1.5"), "1.5"),
    "set of no key": (("--net", "alexnet", "--hw", "tegra_x1", "--set", "memory.bandwith=1GB/s"), "nearest: memory.bandwidth"),
    "set without value": (("--net", "alexnet", "--hw", "tegra_x1", "--set", "memory.bandwidth"), "KEY=VALUE"),
    "set of nothing": (("--net", "alexnet", "--hw", "tegra_x1", "--set", "="), "KEY=VALUE"),
    "clock without unit": (("--net", "alexnet", "--hw", "tegra_x1", "--clock", "690"), "lacks its unit"),
    "clock of zero": (("--net", "alexnet", "--hw", "tegra_x1", "--clock", "0Hz"), "1 MHz"),
    "clock beyond all": (("--net", "alexnet", "--hw", "tegra_x1", "--clock", "1e300THz"), ""),
    "threads of a GPU": (("--net", "alexnet", "--hw", "tegra_x1", "--threads", "4"), "CPU"),
    "no threads": (("--net", "alexnet", "--hw", "i7_6700k", "--threads", "0"), "threads 0"),
    "two devices": (("--net", "alexnet", "--hw", "tegra_x1", "--devices", "2"), "an estimate is of one"),
    "stack of the other kind": (("--net", "alexnet", "--hw", "tegra_x1", "--stack", "intel-mkl"), "cpu"),
    "precision without a unit": (("--net", "alexnet", "--hw", "tegra_x1", "--precision", "int8"), "int8"),
    "both formats": (("--net", "alexnet", "--hw", "tegra_x1", "--json", "--csv"), "choose one"),
    "no net": (("--hw", "tegra_x1"), "--net"),
    "unknown option": (("--net", "alexnet", "--hw", "tegra_x1", "--bach", "2"), "--batch"),
    "condition without a value": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "latency_s"), "condition"),
    "condition on no number": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "lateny_s > 1"), "lateny_s"),
    "condition with garbage": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "latency_s > 1e"), "1e"),
    "condition without its unit": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "latency > 5"), "lacks its unit"),
    "condition in another unit": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "power > 10ms"), "is not in W"),
    "condition on a number with a unit": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "batch > 3W"), "a unit where"),
    "condition of nan": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "latency_s > nan"), "not a finite number"),
    "condition beyond all": (("--net", "alexnet", "--hw", "tegra_x1", "--fail-if", "latency > 1e999s"), "is not finite"),
}


@pytest.mark.parametrize(("words", "text"), USAGE.values(), ids=list(USAGE))
def test_bad_usage(cli: Any, tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    refused(cli("estimate", *words, "--html", str(tmp_path / "out.html")), 2, text)
    assert files_of(tmp_path) == []


BAD_VALUES = ("memory.bandwidth=51.2", "memory.bandwidth=garbage", "memory.bandwidth=-1GB/s", "memory.bandwidth=nanGB/s",
              "sm.count=2.5",
              "memory.bandwidth=1e-300B/s", "sm.count=1e300", "link.bandwidth=1GB/s", "clock.base=5GHz")  # fmt: skip


@pytest.mark.parametrize("setting", BAD_VALUES)
def test_a_setting_that_does_not_fit(cli: Any, setting: str) -> None:
    refused(
        cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--set", setting),
        65,
        "--set",
        setting.split("=")[0].split(".")[0],
    )


@pytest.mark.parametrize(
    "words",
    [("estimate", "--net", "alexnet", "--hw", "/no/such.toml"), ("estimate", "--net", "/no/such.jsonl", "--hw", "tegra_x1"),
     ("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--stack", "/no/such.toml"),
     ("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--calibration", "/no/such.toml"), ("show", "hw", "/no/such.toml")],
)  # fmt: skip
def test_a_missing_file(cli: Any, words: tuple[str, ...]) -> None:
    refused(cli(*words), 66, "no such file")


@pytest.mark.parametrize("words", [("--net", "FOLDER", "--hw", "tegra_x1"), ("--net", "alexnet", "--hw", "FOLDER")])
def test_a_folder_in_place_of_a_file(cli: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    refused(cli("estimate", *[str(tmp_path) if word == "FOLDER" else word for word in words]), 65, "is a folder")


def test_an_output_path_that_cannot_be_written(cli: Any, tmp_path: Path) -> None:
    pytest.importorskip("archsim.report.page")
    for path, text in ((tmp_path, "is a folder"), (tmp_path / "no" / "out.html", "no folder")):
        refused(cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--html", str(path)), 65, text)
    assert files_of(tmp_path) == []


@pytest.mark.parametrize(("words", "text"),
    [(("estimat",), "nearest: estimate"), (("list", "cards"), "hw"), (("show", "hw"), "needs a name"),
                                             (("compare", "--net", "alexnet", "--hw", ","), "names no device"),
                                             (("show", "hw", "nope"), "unknown device")])  # fmt: skip
def test_bad_usage_of_other_commands(cli: Any, words: tuple[str, ...], text: str) -> None:
    refused(cli(*words), 2, text)


# ---------------------------------------------------------------------------------------------- stated bounds


@pytest.mark.parametrize(
    ("condition", "code"),
    [("latency_s > 0.005", 1), ("latency_s > 5", 0), ("latency_s > 0.005 and power_w < 1", 0),
     ("latency_s>0.005 and power_w>=1", 1),
     ("throughput_per_s <= 1e9", 1), ("latency > 5ms", 1), ("latency_s > 5 ms", 1), ("latency > 5s", 0),
     ("power > 10W", 0), ("throughput >= 10/s and throughput >= 10 img/s", 1), ("memory < 1GiB and batch < 2", 1)],
)  # fmt: skip
def test_a_stated_bound(cli: Any, condition: str, code: int) -> None:
    result = cli("estimate", "--net", "alexnet", "--hw", "tegra_x1", "--json", "--fail-if", condition)
    assert result.code == code
    assert json.loads(result.out)["network"] == "alexnet"
    assert (f"{condition} is true" in result.err) == bool(code)


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
