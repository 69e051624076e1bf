"""Execution traces of MLCommons Chakra: what is written is read again, what others wrote is kept, what cannot be is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.base.errors import ArchsimError, InputError, Unsupported
from archsim.trace import load
from archsim.trace.chakra.forms import _delimited, binary, json_text, messages
from archsim.trace.chakra.node import COLLECTIVE, COMPUTE, LOAD, METADATA, SEND, ExecutionNode, ExecutionTrace, TensorTexts
from archsim.trace.chakra.reader import execution_trace, of_chakra
from archsim.trace.task import prepared

from ..each import each
from ..fuzz.commands import run

SHAPES = TensorTexts(shapes="[[64, 128]]", types="['Tensor(float)']")
DRAWN_UP = (
    ExecutionNode(id=7, name="all", type=METADATA),
    ExecutionNode(id=10, name="weights", type=LOAD, attributes={"tensor_size": 4096, "is_cpu_op": False}),
    ExecutionNode(id=11, name="layer", type=COMPUTE, data=(10,), attributes={"num_ops": 10**9, "tensor_size": 10**6}),
    ExecutionNode(id=12, name="layer", type=COMPUTE, control=(7,), data=(11,), attributes={"num_ops": 5, "tensor_size": 8}),
    ExecutionNode(id=13, name="sum", type=COLLECTIVE, data=(12,),
                  attributes={"comm_type": 0, "comm_size": 10**6, "pg_name": "dp"}),
    ExecutionNode(id=14, name="my::op", type=COMPUTE, data=(13,), inputs=SHAPES, outputs=SHAPES),
    ExecutionNode(id=15, name="next", type=SEND, data=(14,), attributes={"comm_size": 512}),
)


def traced(*nodes: ExecutionNode, version: str = "0.0.4", **attributes: Any) -> ExecutionTrace:
    return ExecutionTrace(path="t", version=version, attributes=attributes, nodes=nodes)


def written(trace: ExecutionTrace, folder: Path, name: str = "t.et") -> str:
    place = folder / name
    place.write_bytes(binary(trace) if name.endswith(".et") else json_text(trace).encode())
    return str(place)


def refused(path: Path | str) -> str:
    with pytest.raises(ArchsimError) as error:
        load(str(path))
    return str(error.value)


@pytest.mark.parametrize("name", ["t.et", "t.json"])
def test_nodes_of_others_are_ops_of_the_work_that_they_state(tmp_path: Path, name: str):
    trace = load(written(traced(*DRAWN_UP), tmp_path, name))
    found = [(op.name, op.kind.op, op.inputs) for op in trace.ops]
    assert found == [("weights", "stated", ("start",)), ("layer", "stated", ("weights",)), ("layer.2", "stated", ("layer",)),
                     ("sum", "collective", ("layer.2",)), ("my::op", "traffic", ("sum",)),
                     ("next", "collective", ("my::op",))]  # fmt: skip
    bound = trace.bind()
    assert [op.flop for op in bound.ops] == [0, 10**9, 5, 0, 0, 0]
    assert [getattr(op.kind, "moves", None) for op in bound.ops[:3]] == [4096, 10**6, 8]
    assert [(op.kind.function, op.kind.size, op.kind.group) for op in (bound.ops[3], bound.ops[5])] == [  # type: ignore[attr-defined]
        ("all_reduce", 10**6, "dp"), ("send", 512, "all")]  # fmt: skip


def test_the_table_says_which_nodes_are_taken_as_they_state(tmp_path: Path):
    _, rows = of_chakra(Path(written(traced(*DRAWN_UP), tmp_path)), {})
    assert {(row.operator, row.nodes, row.status) for row in rows} == {
        ("weights", 1, "as stated"), ("layer", 2, "as stated"), ("all_reduce", 1, "mapped"), ("my::op", 1, "memory traffic"),
        ("send", 1, "mapped")}  # fmt: skip


def test_both_forms_hold_the_same(tmp_path: Path):
    attributes = {"whole": -3, "real": 0.5, "truth": True, "text": "é"}
    last = ExecutionNode(id=2**63, name="last", type=COMPUTE, start_us=2**40, attributes=attributes)
    given = traced(*DRAWN_UP, last, made="by me")
    one, other = (execution_trace(Path(written(given, tmp_path, name))) for name in ("t.et", "t.json"))
    assert one.nodes == other.nodes == given.nodes
    assert one.attributes == other.attributes == {"made": "by me"}


def test_other_forms_of_json_are_read(tmp_path: Path):
    feeder = {"workload_graph": [
        {"Id": 1, "Name": "a", "NodeType": 4, "num_ops": 100, "tensor_size": 4000, "data_deps": []},
        {"Id": 2, "Name": "b", "NodeType": 7, "comm_type": 6, "comm_size": 100, "data_deps": [1]},
    ]}  # fmt: skip
    (tmp_path / "w.json").write_text(json.dumps(feeder))
    assert [op.kind.op for op in load(str(tmp_path / "w.json")).ops] == ["stated", "collective"]
    pretty = "".join(json.dumps(json.loads(line), indent=2) for line in json_text(traced(*DRAWN_UP)).splitlines())
    (tmp_path / "p.json").write_text(pretty)
    assert len(load(str(tmp_path / "p.json")).ops) == 6


def test_every_bound_is_a_warning_and_an_error_if_strict(tmp_path: Path):
    path = written(traced(*DRAWN_UP), tmp_path)
    warnings = archsim.estimate(net=path, hw="gtx_1080").warnings
    assert sum("--strict refuses them" in said for said in warnings) == 3
    assert any("all_reduce x 1, send x 1" in said for said in warnings)
    with pytest.raises(Unsupported, match=r"strict: 1 op is not known here .* 2 ops state their arithmetic .* 2 ops communicate"):
        archsim.estimate(net=path, hw="gtx_1080", strict=True)


def test_a_registered_operator_has_the_work_of_its_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from archsim.trace.kinds import general

    monkeypatch.setattr(general, "OWN", {})
    archsim.register_op("my::silent", lambda inputs, output, element: (7.0, 1e6))
    path = written(traced(ExecutionNode(id=1, name="my::silent", type=COMPUTE)), tmp_path)
    found = archsim.estimate(net=path, hw="gtx_1080", strict=True)
    assert found.flop == 7.0
    assert found.dram_bytes == pytest.approx(1e6)


RUNS = [("lenet_5", ()), ("resnet_18", ("--batch", "4")), ("bert_base", ("--precision", "fp16")),
        ("googlenet", ("--fidelity", "event", "--streams", "4"))]  # fmt: skip


@pytest.mark.parametrize(("net", "more"), RUNS)
def test_an_estimate_written_and_read_again_is_the_same(tmp_path: Path, net: str, more: tuple[str, ...]):
    for name in ("t.et", "t.json"):
        path = str(tmp_path / name)
        words = ["--hw", "tesla_v100_sxm2", "--stack", "pytorch-cudnn7.6", "--json", *more]
        assert run(["estimate", "--net", net, *words, "--chakra", path]).code == 0
        back = execution_trace(Path(path))
        assert back.version == "0.0.4"
        asked = {"batch": 4} if "--batch" in more else {}
        streams = {"fidelity": "event", "streams": 4} if "--streams" in more else {}
        precision = {"precision": "fp16"} if "--precision" in more else {}
        of = {"hw": "tesla_v100_sxm2", "stack": "pytorch-cudnn7.6", **precision, **streams}
        one, other = archsim.estimate(net=net, **asked, **of), archsim.estimate(net=path, **of)
        assert other.latency_s == pytest.approx(one.latency_s, rel=1e-12)
        assert other.batch == one.batch
        last = max(node.start_us + node.duration_us for node in back.nodes)
        assert last == pytest.approx(1e6 * one.latency_s, abs=1.0)
        if not streams:
            spent = sum(int(node.attributes["duration_nanos"]) for node in back.nodes)
            assert spent == pytest.approx(1e9 * one.device_s, rel=1e-3)


def test_nodes_wait_for_those_whose_results_they_read(tmp_path: Path):
    path = str(tmp_path / "t.et")
    words = ["estimate", "--net", "resnet_18", "--hw", "gtx_1080", "--task", "training_step", "--chakra", path]
    assert run(words).code == 0
    nodes = {node.name: node for node in execution_trace(Path(path)).nodes}
    trace = prepared("resnet_18", "training_step")
    for op in trace.ops:
        assert {other.name for other in nodes.values() if other.id in nodes[op.name].data} == {*op.inputs} & {*nodes}
    step = archsim.estimate(net="resnet_18", hw="gtx_1080", task="training_step")
    assert archsim.estimate(net=path, hw="gtx_1080").flop == step.flop  # all that the file holds
    with pytest.raises(ArchsimError, match="holds gradients"):
        archsim.estimate(net=path, hw="gtx_1080", task="training_step")


def test_a_file_of_another_is_not_overwritten(tmp_path: Path):
    place = tmp_path / "t.et"
    words = ["estimate", "--net", "lenet_5", "--hw", "gtx_1080", "--chakra", str(place)]
    place.write_bytes(b"mine")
    assert run(words).code == 65
    assert place.read_bytes() == b"mine"
    place.unlink()
    assert [run(words).code, run(words).code] == [0, 0]


WRONG: dict[str, tuple[ExecutionTrace, str]] = {
    "no nodes": (traced(), "has no nodes"),
    "only marks": (traced(ExecutionNode(id=1, name="x", type=METADATA)), "no nodes that compute"),
    "a newer schema": (traced(*DRAWN_UP, version="9.1"), "version '9.1' of Chakra's schema; 0.0.4 and 1.0.0 are read"),
    "one id twice": (traced(*DRAWN_UP, DRAWN_UP[0]), "has the node 7 twice"),
    "a dependency on nothing": (
        traced(ExecutionNode(id=1, name="x", type=COMPUTE, data=(3,))), "node 1 'x' depends on node 3, which is not there"),
    "a cycle": (
        traced(*(ExecutionNode(id=i, name="x", type=COMPUTE, data=(1 - i,)) for i in (0, 1))), "cycle of dependencies: node"),
    "no work": (
        traced(ExecutionNode(id=1, name="x", type=COMPUTE, duration_us=7)), "node 1 'x' .COMP_NODE. states neither"),
    "no size": (traced(ExecutionNode(id=1, name="x", type=LOAD)), "does not state its tensor_size"),
    "no size to send": (traced(ExecutionNode(id=1, name="x", type=SEND)), "does not state its comm_size"),
    "an unknown collective": (
        traced(ExecutionNode(id=1, name="x", type=COLLECTIVE, attributes={"comm_type": 77, "comm_size": 1})), "the comm_type 77"),
    "a size without end": (
        traced(ExecutionNode(id=1, name="x", type=LOAD, attributes={"tensor_size": 2**62})), "states 46.*; at most 2.53"),
}  # fmt: skip


@each("name", WRONG)
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, name: str):
    trace, says = WRONG[name]
    for form in ("t.et", "t.json"):
        with pytest.raises((InputError, Unsupported), match=says) as error:
            load(written(trace, tmp_path, form))
        assert "\n" not in str(error.value)


def crowded(what: str, count: int) -> Any:
    node = messages()["Node"](id=1, name="x" * (count if what == "name" else 1), type=4)
    if what == "deps":
        node.data_deps.extend([1] * count)
    for _ in range(count if what == "attr" else 0):
        node.attr.add(name="a")
    return node


SOUND = binary(traced(*DRAWN_UP))
BYTES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is empty"),
    "cut off": (SOUND[:-3], "is cut off"),
    "random": (bytes(range(7, 200)), "is no Chakra trace, or is cut off|begins with its GlobalMetadata"),
    "a length without end": (b"\xff" * 50, "byte 0: is no Chakra trace"),
    "a node first": (SOUND[8:], "begins with its GlobalMetadata"),
    "a node that is none": (SOUND + b"\x03\x0a\xff\x01", "no Node is there"),
    "a million nodes": (SOUND + b"\x02\x08\x01" * 1_000_000, "has more than 30000 nodes; refused"),
    "a node of attributes": (SOUND + _delimited(crowded("attr", 2000)), "node 1: has more than 1024 attributes; refused"),
    "too many dependencies": (SOUND + _delimited(crowded("deps", 500_000)) * 3, "has more than 1200000 dependencies; refused"),
    "a node of megabytes": (SOUND + _delimited(crowded("name", 3 << 20)), "has a node of more than 2097152 bytes; refused"),
    "a million empty ones": (SOUND + b"\0" * 1_000_000, "has more than 30000 nodes; refused"),
}
TEXTS: dict[str, tuple[str, str]] = {
    "a list": ('{"workload_graph": 3}', "is no|has no nodes"),
    "nodes that are none": ('{"workload_graph": [3]}', "node 1: 3 is no object"),
    "depth": ('{"dataDeps":' * 5000, "nested too deeply|is not JSON"),
    "lists in lists": ('{"dataDeps": ' + "[" * 100_000, "nested too deeply|is not JSON"),
    "a number that is none": ('{"dataDeps": [], "id": NaN}', "NaN, which is no number"),
    "an id that is none": ('{"workload_graph": [{"Id": -4}]}', "-4 is no whole number"),
    "digits": ('{"dataDeps": ' + "1" * 100_000, "has a number of 100000 digits"),
    "a million nodes": ('{"dataDeps": []}' + '{"id":"1"}' * 40_000, "has more than 30000 nodes; refused"),
    "objects without end": ('{"dataDeps": [' + "{}," * 500_000 + "]}", "has more than 450000 times '{'"),
    "cut off": ('{"version": "0.0.4", "dataDeps":', "is not JSON"),
}


@each("name", [*BYTES, *TEXTS])
def test_bytes_and_texts_of_strangers_are_refused_in_one_line(tmp_path: Path, name: str):
    for table, form in ((BYTES, "t.et"), (TEXTS, "t.json")):
        if name in table:
            content, says = table[name]
            (tmp_path / form).write_bytes(content if isinstance(content, bytes) else content.encode())
            with pytest.raises((InputError, Unsupported), match=says) as error:
                load(str(tmp_path / form))
            assert "\n" not in str(error.value)
            assert len(str(error.value)) < 500


def test_dependencies_through_marks_are_counted_too(tmp_path: Path):
    ops = [ExecutionNode(id=i, name="x", type=COMPUTE, attributes={"tensor_size": 4}) for i in range(1500)]
    marks = [ExecutionNode(id=1500 + i, name="m", type=METADATA, data=(1499 + i, *((i,) if i else range(1500))))
             for i in range(1500)]  # fmt: skip
    with pytest.raises(InputError, match="has more than 1200000 dependencies; refused"):
        load(written(traced(*ops, *marks), tmp_path))
