"""Profiles as files: read in pieces of any size, refused in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from archsim.base.errors import InputError
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import make_request
from archsim.study.profiled import compare_profile
from archsim.trace.profiles import record
from archsim.trace.profiles.reader import of_profile, read
from tests.each import each
from tests.trace.kineto import write

FOLDER = Path(__file__).parent / "profiles"


def test_pieces_of_any_size_give_the_same_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json"
    wanted = [{"a": 1.25, "b": [1, 2], "c": "\u00e9]},{"}, {}, {"d": 1234567, "e": None}]
    path.write_text(json.dumps({"x": 12, "traceEvents": wanted, "y": [1]}, ensure_ascii=False, indent=1), "utf-8")
    for size in (1, 2, 3, 7, 64, 1 << 20):
        monkeypatch.setattr(record, "CHUNK", size)
        assert [*record.events(path, "traceEvents")] == wanted, size


def test_a_packed_profile_is_that_of_the_plain_one(tmp_path: Path) -> None:
    write(tmp_path / "p.json", 2)
    (tmp_path / "p.json.gz").write_bytes(gzip.compress((tmp_path / "p.json").read_bytes()))
    assert read(tmp_path / "p.json.gz").kernels == read(tmp_path / "p.json").kernels


PACKED = gzip.compress(b'{"traceEvents": [' + b" " * (64 << 20) + b"]}")
BROKEN = {
    "deep.json": (b'{"traceEvents": [' + b"[" * 200_000, "nested too deeply"),
    "long.json": (b'{"traceEvents": [{"a": "' + b"x" * (3 << 20) + b'"}]}', "more than 1048576 characters"),
    "cut.json": (b'{"traceEvents": [{"a": "' + b"x" * 1000, "cut off"),
    "bomb.json.gz": (PACKED, "inflates to more than 250 times"),
    "half.json.gz": (gzip.compress((FOLDER / "torch_cpu_cnn.json").read_bytes())[:-9], "truncated gzip"),
    "none.json.gz": (b"{}", "is not a gzip file"), "latin.json": (b'{"traceEvents": [{"a": "\xff"}]}', "UTF-8"),
    "digits.json": (b'{"traceEvents": [{"a": ' + b"9" * 5000 + b"}]}", "5000 digits"),
}  # fmt: skip


@each("name", BROKEN)
def test_what_is_too_much_or_broken_is_one_line(name: str, tmp_path: Path) -> None:
    data, says = BROKEN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=says) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.iterdir()))
def test_a_profile_is_a_network_that_costs_what_its_comparison_says(name: str) -> None:
    file = str(FOLDER / name)
    found = estimate_of(make_request(file, "i7_6700k", stack="pytorch-cpu"), references=False)
    assert found.latency_s == pytest.approx(compare_profile(file, "i7_6700k", stack="pytorch-cpu").predicted_s)


def test_what_became_of_the_calls_of_a_profile_is_listed() -> None:
    trace, rows = of_profile(FOLDER / "onnxruntime_cnn.json", {})
    by_name = {row.operator: row for row in rows}
    assert (by_name["Conv"].nodes, by_name["Conv"].status) == (2, "mapped")
    assert (by_name["Flatten"].status, by_name["Flatten"].why) == ("left out", "changes only how a tensor is seen")
    assert len(trace.ops) >= sum(row.status == "mapped" for row in rows)


def test_a_broken_archive_is_no_profile(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json.gz"
    broken.write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(InputError, match="is not a gzip file"):
        make_request(str(broken), "i7_6700k")
