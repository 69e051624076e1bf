"""Execution traces that PyTorch recorded: the same networks as torch.export's programs of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import archsim
from archsim.base.errors import InputError, Unsupported
from archsim.cli.main import group
from archsim.trace import Trace, load
from archsim.trace.chakra.forms import binary
from archsim.trace.chakra.reader import execution_trace
from archsim.trace.readers.torch import trace_of_programs

from ..each import each
from .recorded import ROOT, Observer, recorded
from .test_torch_reader import X, call, program, small

EXPORTS = Path(__file__).parent / "exports"
MODELS = ("alexnet", "resnet18", "shufflenet_v2_x1_0", "convnext_tiny", "swin_t", "bert_base", "gpt2")


def written(text: str, folder: Path) -> Path:
    place = folder / "r.json"
    place.write_text(text)
    return place


def kinds(trace: Trace) -> list[Any]:
    return [(op.kind, op.input_shapes, op.shape) for op in trace.bind().ops]


@each("name", MODELS)
def test_a_recorded_model_is_that_of_its_program(tmp_path: Path, name: str):
    given = json.loads(gzip.decompress((EXPORTS / f"{name}.program.json.gz").read_bytes()))[0]
    found, wanted = load(str(written(recorded(given), tmp_path))), trace_of_programs([given], ())
    assert kinds(found) == kinds(wanted)
    assert found.fixed_batch == wanted.fixed_batch == 11
    assert found.source == "Chakra execution trace, recorded by PyTorch"


def test_what_torch_2_15_recorded_is_the_model_that_ran(tmp_path: Path):
    found = {}
    for name in ("small", "encoder"):
        found[name] = load(str(written(gzip.decompress((EXPORTS / f"{name}.chakra.json.gz").read_bytes()).decode(), tmp_path)))
    small, encoder = found["small"].bind(), found["encoder"].bind()
    kinds = ["conv2d", "batch_norm", "relu", "global_avg_pool", "reshape", "linear"]
    assert [op.kind.op for op in small.ops] == kinds
    assert (small.parameters, small.macs) == (3 * 9 * 32 + 32 + 64 + 330, 4 * (9 * 3 * 32 * 32 * 32 + 320))
    layer = 3 * 64 * 65 + 64 * 65 + 128 * 65 + 64 * 129 + 2 * 128
    assert encoder.parameters == 2 * layer
    assert sum(op.kind.op == "attention" for op in encoder.ops) == 2


def test_lists_may_be_texts_as_a_converter_writes_them_and_the_file_binary(tmp_path: Path):
    text = recorded(small(4), quoted=True)
    found = load(str(written(text, tmp_path)))
    (tmp_path / "r.et").write_bytes(binary(execution_trace(tmp_path / "r.json")))
    assert kinds(load(str(tmp_path / "r.et"))) == kinds(found) == kinds(trace_of_programs([small(4)], ()))


def test_communication_waits_for_the_call_before_it(tmp_path: Path):
    observer = Observer(small(4))
    calls = [place for place, node in enumerate(observer.nodes) if node["name"] == "aten::linear"]
    sent = {"id": 900, "name": "ncclDevKernel_AllReduce", "ctrl_deps": ROOT, "type": 7, "is_cpu_op": False, "comm_type": 0,
            "comm_size": 4096}  # fmt: skip
    observer.nodes.insert(calls[0] + 1, sent)
    found = load(str(written(json.dumps(observer.record()), tmp_path)))
    assert [(op.kind.op, op.inputs) for op in found.ops][-1] == ("collective", (found.ops[0].name,))
    assert "all_reduce x 1" in " ".join(archsim.estimate(net=str(tmp_path / "r.json"), hw="gtx_1080").warnings)


def test_an_operator_that_nobody_knows_is_loud_and_may_be_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from archsim.trace.kinds import general

    monkeypatch.setattr(general, "OWN", {})
    given = recorded(program(call("mine.warp.default", "y", [4, 8], X), x=[4, 16])).replace("aten::warp", "mine::warp")
    path = str(written(given, tmp_path))
    assert any("mine.warp.default x 1" in text for text in archsim.estimate(net=path, hw="gtx_1080").warnings)
    with pytest.raises(Unsupported, match="strict: 1 op is not known here"):
        archsim.estimate(net=path, hw="gtx_1080", strict=True)
    (name,) = (getattr(op.kind, "operator", "") for op in load(path).ops)
    archsim.register_op(name, lambda inputs, output, element: (100.0 * inputs[0][1], 4e6))
    assert archsim.estimate(net=path, hw="gtx_1080", strict=True).flop == 1600


def test_the_table_says_what_became_of_each_operator(tmp_path: Path):
    given = recorded(program(call("mine.warp.default", "y", [4, 8], X), x=[4, 16])).replace("aten::warp", "mine::warp")
    outcome = CliRunner().invoke(group, ["show", "net", str(written(given, tmp_path)), "--json"])
    (row,) = json.loads(outcome.stdout)["operators"]
    assert (row["operator"], row["nodes"], row["status"]) == ("torch.mine.warp.default", 1, "memory traffic")
    outcome = CliRunner().invoke(group, ["show", "net", str(written(recorded(small(4)), tmp_path)), "--json"])
    listed = json.loads(outcome.stdout)["operators"]
    assert {row["status"] for row in listed} == {"mapped"}
    assert all(row["operator"].startswith("aten::") for row in listed)


def test_a_call_counts_with_the_known_calls_within_an_unknown_one(tmp_path: Path):
    observer = Observer(small(4))
    outer = next(node for node in observer.nodes if node["name"] == "aten::linear")
    outer["name"] = "aten::some_new_wrapper"
    inner = next(node for node in observer.nodes if node["ctrl_deps"] == outer["id"])
    inner["name"] = "aten::linear"
    assert [op.kind.op for op in load(str(written(json.dumps(observer.record()), tmp_path))).ops] == ["linear", "relu"]


WRONG = {
    "[4, 16]": ("[4, -16]", "is no shape of a tensor"),
    "[32, 16]": ("[32]", "arguments that do not fit it"),
    "aten::linear": ("aten::split", "arguments that do not fit it"),
    '"Tensor(float)"]}': ("3]}", "r.json"),
}


@each("old", WRONG)
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, old: str):
    new, says = WRONG[old]
    text = recorded(small(4))
    assert old in text
    with pytest.raises((InputError, Unsupported), match=says) as error:
        load(str(written(text.replace(old, new), tmp_path)))
    assert "\n" not in str(error.value)
