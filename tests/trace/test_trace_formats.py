"""Formats of networks: the ending of a path decides, or the content; sizes of symbols by the names that a file has for them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import archsim
from archsim.base.errors import ArgumentError, InputError, UnknownName
from archsim.trace import formats, load
from archsim.trace.formats import FORMATS, NetworkFormat, format_of

from ..each import each

HEADER = {
    "schema": "archsim-trace/1", "name": "tiny", "inputs": {"data": ["N", "Rows"]}, "dtype": "fp32", "source": "",
    "symbols": {"N": "batch", "Rows": "number of rows"},
}  # fmt: skip
LINES = [HEADER, {"op": "relu", "name": "relu", "in": ["data"], "out": ["N", "Rows"]}]

HERE = __name__


@pytest.fixture
def file(tmp_path: Path) -> str:
    place = tmp_path / "tiny.jsonl"
    place.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return str(place)


def read_nothing(path: Path, sizes: object) -> object:
    return replace(load("lstm_32"), name=path.name)


def begins_with_a_brace(head: bytes) -> bool:
    return head.startswith(b"{")


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two formats with the same ending, of which one is known by how it begins."""
    rows = (
        NetworkFormat(name="braced", suffixes=(".two",), reader=f"{HERE}:read_nothing", known_by=f"{HERE}:begins_with_a_brace"),
        NetworkFormat(name="starred", suffixes=(".two",), reader=f"{HERE}:read_nothing", known_by=f"{HERE}:begins_with_a_star"),
    )
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, *rows))


def begins_with_a_star(head: bytes) -> bool:
    return head.startswith(b"*")


def test_the_ending_decides_and_where_two_share_one_the_content(tmp_path: Path, two: None):
    place = tmp_path / "net.TWO"
    for content, name in (("{}", "braced"), ("*", "starred")):
        place.write_text(content)
        assert format_of(place).name == name
    assert format_of(tmp_path / "net.jsonl") is format_of(tmp_path / "whatever") is formats.TRACE
    place.write_text("?")
    with pytest.raises(InputError, match=r"net.TWO: is no network .* may be: braced, starred"):
        format_of(place)


@each("row", FORMATS)
def test_every_format_has_a_reader(row: NetworkFormat):
    assert all(callable(formats._function(place)) for place in (row.reader, row.known_by) if place)
    assert row.suffixes


def test_a_size_is_given_by_the_name_that_the_file_has(file: str):
    result = archsim.estimate(net=file, hw="gtx_1080", bind={"batch": 8, "Rows": 64})
    assert result.batch == 8
    assert result.flop == 8 * 64
    assert archsim.estimate(net=file, hw="gtx_1080", batch=8, bind=["Rows=64", "N=8"]).flop == 8 * 64


def test_sizes_that_are_missing_wrong_or_given_twice_are_refused_by_name(file: str):
    said = [
        ({}, r"network tiny needs sizes for Rows \(number of rows\): --bind Rows=SIZE"),
        ({"rows": 3}, r"tiny has no symbol 'rows'; nearest: Rows"),
        ({"Rows": 0}, r"bind: Rows=0: is not a whole number between 1 and 2147483647"),
        ({"Rows": 4, "batch": 2, "N": 3}, r"bind: batch=2: --batch says 3; --batch alone does as well"),
    ]
    for sizes, words in said:
        with pytest.raises(ArgumentError, match=words):
            archsim.estimate(net=file, hw="gtx_1080", bind=sizes)
    with pytest.raises(ArgumentError, match="bind: Rows: 'x' is not a whole number"):
        archsim.estimate(net=file, hw="gtx_1080", bind="Rows=x")


def test_the_tokens_of_a_shipped_network_are_a_symbol_too():
    assert archsim.estimate(net="bert_base", hw="gtx_1080", bind={"T": 100}).seq_len == 100
    with pytest.raises(ArgumentError, match="--seq-len says 64"):
        archsim.estimate(net="bert_base", hw="gtx_1080", seq_len=64, bind={"T": 100})


def test_an_unknown_name_says_which_endings_make_a_path():
    with pytest.raises(UnknownName, match=r"a path that ends in \.jsonl"):
        load("nothing_like_it")


def test_a_file_that_changed_is_read_again_in_the_same_process(file: str):
    words = {"hw": "gtx_1080", "batch": 2, "bind": {"Rows": 8}}
    first = archsim.estimate(net=file, **words)
    Path(file).write_text("".join(json.dumps(line).replace("relu", "gelu") + "\n" for line in LINES))
    second = archsim.estimate(net=file, **words)
    assert [[op.kind for op in found.ops] for found in (first, second)] == [["relu"], ["gelu"]]
    assert first.flop != second.flop
    assert first.provenance["trace_hash"] != second.provenance["trace_hash"]
