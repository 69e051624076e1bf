"""Trace files: what is read, what is refused and with which words."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from archsim.base.errors import InputError, MissingFile, UnknownName
from archsim.trace import dumps, jsonlines, load, loads, names
from archsim.trace import file as trace_file
from archsim.trace.trace import execution_order

from ..each import each

HEADER = {
    "schema": "archsim-trace/1", "name": "tiny", "inputs": {"data": ["N", 3, 32, 32]}, "dtype": "fp32",
    "source": "test",
}  # fmt: skip
CONV = {"op": "conv2d", "name": "conv1", "in": ["data"], "out": ["N", 16, 30, 30], "kernel": [3, 3]}
RELU = {"op": "relu", "name": "relu1", "in": ["conv1"], "out": ["N", 16, 30, 30]}
FLAT = {"op": "reshape", "name": "flat", "in": ["relu1"], "out": ["N", 14400]}
FC = {"op": "linear", "name": "fc", "in": ["flat"], "out": ["N", 10]}
LINES = [HEADER, CONV, RELU, FLAT, FC]


def text(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def problems(content: str) -> str:
    with pytest.raises(InputError) as caught:
        loads(content, "net.jsonl")
    message = str(caught.value)
    assert message.startswith("net.jsonl: ")
    return message


def changed(line: int, **changes: object) -> str:
    """The tiny network with other values on one line, counted from 1; a value of None removes the key."""
    records = [dict(record) for record in LINES]
    records[line - 1] = {key: value for key, value in (records[line - 1] | changes).items() if value is not None}
    return text(*records)


def test_a_file_becomes_a_trace():
    trace = loads(text(*LINES))
    assert [op.name for op in trace.ops] == ["conv1", "relu1", "flat", "fc"]
    assert trace.bind(N=2).ops[0].macs == 2 * 16 * 900 * 27
    assert (trace.name, trace.dtype, trace.source) == ("tiny", "fp32", "test")


def test_canonical_text_comes_back_byte_for_byte():
    assert dumps(loads(text(*LINES))) == text(*LINES)


def test_optional_header_keys_are_kept():
    extra = {"outputs": ["fc"], "symbols": {"N": "images"}, "aliases": ["little"], "notes": "for tests"}
    content = text(HEADER | extra, *LINES[1:])
    trace = loads(content)
    assert (trace.outputs, trace.symbols, trace.aliases, trace.notes) == (
        ("fc",), {"N": "images"}, ("little",), "for tests",
    )  # fmt: skip
    assert dumps(trace) == content


def test_lines_in_any_order_are_sorted_and_a_runnable_order_is_kept():
    shuffled = loads(text(HEADER, FC, FLAT, RELU, CONV))
    assert [op.name for op in shuffled.ops] == ["conv1", "relu1", "flat", "fc"]
    side = RELU | {"name": "side"}
    assert [op.name for op in loads(text(HEADER, CONV, side, RELU)).ops] == ["conv1", "side", "relu1"]


def test_ops_that_could_run_next_run_as_they_stand():
    assert execution_order([("c", ["b"]), ("a", []), ("b", []), ("d", [])]) == [1, 2, 0, 3]
    late = [RELU | {"name": name} for name in ("first", "second", "third")]
    assert [op.name for op in loads(text(HEADER, *late, CONV)).ops] == ["conv1", "first", "second", "third"]


def test_blank_lines_carriage_returns_and_a_byte_order_mark_do_no_harm(tmp_path):
    path = tmp_path / "net.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + text(*LINES).replace("\n", "\r\n\r\n").encode())
    assert load(path) == loads(text(*LINES))


def test_a_gzip_file_is_inflated(tmp_path):
    path = tmp_path / "net.jsonl.gz"
    path.write_bytes(gzip.compress(text(*LINES).encode()))
    assert load(str(path)) == loads(text(*LINES))


def test_all_problems_are_told_at_once():
    message = problems(changed(2, stride=[0, 1], kernel=[3]) + text(FC))
    assert "attribute 'kernel' must be a list of 2 whole numbers, not a list of 1" in message
    assert "attribute 'stride' must lie in 1..2147483647, not 0" in message
    assert message.count("line 2: conv2d") == 2


# what is changed on which line, and what the message must say; None removes a key
BROKEN = [
    (2, {"op": "conv2"}, "line 2: unknown op 'conv2'; nearest: conv2d"),
    (2, {"op": 7}, "line 2: unknown op 7; known: conv2d, conv_transpose2d, linear"),
    (2, {"op": None}, "line 2: the key 'op' is missing"),
    (2, {"name": None}, "line 2: the key 'name' is missing"),
    (2, {"kernel": None}, "line 2: conv2d attribute 'kernel' is missing"),
    (2, {"strides": [1, 1]}, "line 2: conv2d unknown attribute 'strides'; nearest: stride"),
    (2, {"nam": "x"}, "line 2: conv2d unknown attribute 'nam'; nearest: name"),
    (2, {"stride": [0, 1]}, "line 2: conv2d attribute 'stride' must lie in 1..2147483647, not 0"),
    (2, {"stride": 2}, "line 2: conv2d attribute 'stride' must be a list of 2 whole numbers, not 2"),
    (2, {"pad": [1, 1, 1]}, "line 2: conv2d attribute 'pad' must be a list of 2 or 4 whole numbers, not a list of 3"),
    (2, {"pad": [-1, 0]}, "line 2: conv2d attribute 'pad' must lie in 0..2147483647, not -1"),
    (2, {"groups": True}, "line 2: conv2d attribute 'groups' must be a whole number, not true or false"),
    (2, {"groups": 1.0}, "line 2: conv2d attribute 'groups' must be a whole number, not a fraction"),
    (2, {"groups": "1"}, "line 2: conv2d attribute 'groups' must be a whole number, not '1'"),
    (2, {"groups": 2}, "line 2: 'conv1' (conv2d) has 2 groups, which do not divide 3 input and 16 output channels"),
    (2, {"bias": 1}, "line 2: conv2d attribute 'bias' must be true or false, not 1"),
    (2, {"kernel": [40, 40]}, "line 2: 'conv1' (conv2d) has a window of 40, too large for an input of 32"),
    (2, {"out": ["N", 16, 31, 30]}, "line 2: 'conv1' (conv2d) records the shape [N, 16, 31, 30], but its inputs make"),
    (2, {"out": [1009, 16, 30, 30]}, "line 2: 'conv1' (conv2d) records the shape [1009, 16, 30, 30]"),
    (2, {"out": ["2*N", 16, 30, 30]}, "but its inputs make it [1009, 16, 30, 30] (with N = 1009)"),
    (2, {"out": ["N", 0, 30, 30]}, "line 2: conv2d 'out' has the dimension 0"),
    (2, {"out": ["N", -4, 30, 30]}, "line 2: conv2d 'out' has the dimension -4"),
    (2, {"out": ["N", 2**62, 30, 30]}, "line 2: conv2d 'out' has the dimension 4611686018427387904"),
    (2, {"out": ["N", 2**50, 30, 30]}, "line 2: 'conv1' (conv2d) has the shape [N, 1125899906842624, 30, 30], more"),
    (2, {"out": ["N", True, 30, 30]}, "line 2: conv2d 'out' has the dimension True"),
    (2, {"out": ["N", 16.0, 30, 30]}, "line 2: conv2d 'out' has the dimension 16.0"),
    (2, {"out": ["n", 16, 30, 30]}, "line 2: conv2d 'out' 'n' is no dimension"),
    (2, {"out": ["16", 16, 30, 30]}, "line 2: conv2d 'out' '16' names no symbol"),
    (2, {"out": ["N" + "*N" * 40, 16, 30, 30]}, "line 2: conv2d 'out' has the dimension 'N*N*N"),
    (2, {"out": []}, "line 2: conv2d 'out' must be a list of 1 to 8 dimensions, not []"),
    (2, {"out": "N"}, "line 2: conv2d 'out' must be a list of 1 to 8 dimensions, not 'N'"),
    (2, {"in": ["datum"]}, "line 2: 'conv1' reads 'datum', which nothing produces; nearest: data"),
    (2, {"in": "data"}, "line 2: conv2d 'in' must be a list of names, not 'data'"),
    (2, {"in": []}, "line 2: 'conv1' (conv2d) takes 1 input, got 0"),
    (2, {"in": ["fc"]}, "cycle"),
    (2, {"name": "data"}, "line 2: 'data' is the name of a network input too"),
    (2, {"name": ""}, "line 2: conv2d 'name' must be a name of 1 to 200 printable characters, not ''"),
    (2, {"name": "a\x1b[2Jb"}, "line 2: conv2d 'name' must be a name of 1 to 200 printable characters, not 'a\\x1b["),
    (2, {"name": "\ud800"}, "line 2: conv2d 'name' must be a name of 1 to 200 printable"),
    (2, {"name": "x" * 500}, "line 2: conv2d 'name' must be a name"),
    (2, {"phase": "sideways"}, "line 2: conv2d 'phase' must be one of forward, backward_data"),
    (2, {"phase": "backward"}, "line 2: conv2d: gradients and updates, and only they, have both 'parent' and 'of'"),
    (2, {"parent": "fc"}, "line 2: conv2d: gradients and updates, and only they, have both"),
    (2, {"shares": "fcc"}, "line 2: 'conv1' shares the learned values of 'fcc', which is no op with values of its own"),
    (4, {"name": "relu1"}, "line 4: 'relu1' was already named on line 3"),
    (1, {"schema": "archsim-trace/2"}, "line 1: header has schema 'archsim-trace/2'; this reads 'archsim-trace/1'"),
    (1, {"schema": None}, "line 1: header has schema None"),
    (1, {"dtype": None}, "line 1: header lacks the key 'dtype'"),
    (1, {"dtype": "fp64"}, "line 1: header 'dtype' must be one of fp32, tf32, fp16, bf16, fp8, int8, not 'fp64'"),
    (1, {"inputs": {}}, "line 1: header 'inputs' must name at least one input with its shape, not {}"),
    (1, {"inputs": ["data"]}, "line 1: header 'inputs' must name at least one input with its shape, not ['data']"),
    (1, {"inputs": {"data": [2**40, 2**40]}}, "line 1: header 'inputs' has 'data' [1099511627776, 1099511627776]"),
    (1, {"output": ["fc"]}, "line 1: header has the unknown key 'output'; nearest: outputs"),
    (1, {"outputs": ["fcc"]}, "line 1: header 'outputs' has 'fcc', which nothing produces; nearest: fc"),
    (1, {"symbols": ["N"]}, "line 1: header 'symbols' must say in words what each symbol means"),
    (1, {"notes": "two\nlines"}, "line 1: header 'notes' must be one line of text"),
]


@each(("line", "change", "sentence"), BROKEN)
def test_a_broken_line_is_named_with_what_is_wrong(line, change, sentence):
    assert sentence in problems(changed(line, **change))


def test_a_cycle_names_its_members():
    ring = [RELU | {"name": name, "in": [feed]} for name, feed in (("a", "c"), ("b", "a"), ("c", "b"))]
    message = problems(text(HEADER, CONV, *ring))
    assert "cycle" in message
    assert message.count(" -> ") == 3
    assert all(f" {name}" in message for name in "abc")


def test_an_op_that_feeds_itself_is_a_cycle():
    assert "line 3: cycle relu1 -> relu1" in problems(changed(3, **{"in": ["relu1"]}))


def test_a_long_cycle_is_cut_short():
    ring = [RELU | {"name": f"r{i}", "in": [f"r{(i + 1) % 300}"]} for i in range(300)]
    assert "... (300 ops)" in problems(text(HEADER, CONV, *ring))


# a whole line in place of line 3, and what the message must say
LINES_OF_STRANGERS = [
    ('{"op": "relu", "op": "relu"}', "line 3: has the key 'op' twice"),
    ('{"op": "relu", "name": "r", "in": ["conv1"], "out": [NaN]}', "line 3: has NaN, which is no number"),
    ('{"op": "relu", "name": "r", "in": ["conv1"], "out": [-Infinity]}', "line 3: has -Infinity, which is no number"),
    (
        '{"op": "relu", "name": "r", "in": ["conv1"], "out": [1e400]}',
        "line 3: has the number 1e400, which is not finite",
    ),
    (
        '{"op": "relu", "name": "r", "in": ["conv1"], "out": [' + "9" * 5000 + "]}",
        "line 3: has a number of 5000 digits",
    ),
    ('{"op": "relu", "deep": ' + "[" * 100_000, "line 3: is nested too deeply"),
    ('{"op": "relu", "deep": ' + '{"a":' * 100_000, "line 3: is nested too deeply"),
    ('{"op": "relu", "name": ', "line 3: is not JSON (Expecting value, column 24)"),
    ("[1, 2]", "line 3: is not a JSON object"),
    ("null", "line 3: is not a JSON object"),
    ("relu", "line 3: is not JSON"),
]


@each(("line", "sentence"), LINES_OF_STRANGERS)
def test_a_line_that_is_no_honest_json_is_refused(line, sentence):
    assert sentence in problems(text(HEADER, CONV) + line + "\n" + text(FLAT))


def test_a_header_alone_is_no_network():
    assert "has a header but no ops" in problems(text(HEADER))


def test_more_ops_than_allowed_are_refused(monkeypatch):
    monkeypatch.setattr(trace_file, "LIMIT", replace(trace_file.LIMIT, entries=3))
    assert "line 5: more than 3 ops; refused" in problems(text(*LINES))


def test_endless_problems_are_cut_short():
    message = problems(text(HEADER, *[CONV | {"name": f"c{i}", "in": ["nowhere"]} for i in range(200)]))
    assert message.count("nothing produces") == 50
    assert "and 150 more" in message
    message = problems(text(HEADER) + "x\n" * 1000)
    assert message.count("is not JSON") == jsonlines.MOST_PROBLEMS


def test_folders_empty_binary_and_oversized_files_are_refused(tmp_path, monkeypatch):
    empty, binary, large = (tmp_path / name for name in ("empty.jsonl", "binary.jsonl", "large.jsonl"))
    empty.write_text("\n")
    binary.write_bytes(b"\x00\xff\xfe\x01")
    large.write_text(text(*LINES))
    monkeypatch.setattr(trace_file, "LIMIT", replace(trace_file.LIMIT, size=300))
    for path, sentence in (
        (tmp_path, "is a folder"), (empty, "is empty"), (binary, "is not UTF-8"), (large, "is larger than 300 bytes"),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            load(path)
        assert sentence in str(caught.value)


@pytest.mark.parametrize("path", ["nowhere.jsonl", "./nowhere", "a/b"])
def test_a_missing_file_is_told_apart_from_an_unknown_name(path):
    with pytest.raises(MissingFile):
        load(path)


def test_a_path_that_no_disk_can_hold_is_refused():
    with pytest.raises(InputError):
        load("/" + "x" * 5000)


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(UnknownName) as caught:
        load("resnet_51")
    assert "unknown network 'resnet_51'; nearest: resnet_5" in str(caught.value)
    with pytest.raises(UnknownName):
        load("")
    with pytest.raises(UnknownName):
        load("..")


def test_an_alias_leads_to_its_network():
    assert load("vgg16").name == "vgg_16"
    assert load("bvlc_googlenet") == load("googlenet")


def test_names_are_sorted_and_hold_the_variants():
    assert names() == sorted(names())
    assert {"alexnet", "alexnet_s@mxnet", "alexnet_s@tensorflow"} < set(names())


def test_names_without_data_are_none(monkeypatch):
    monkeypatch.setattr(trace_file, "data_folder", lambda name: Path("/nowhere"))
    assert names() == []
