"""Real architectures as exporters write them, ONNX and torch.export: the work that torch counts, the cost of the shipped ones.

`tests/trace/exports/record.py` recorded them.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import archsim
from archsim.trace import Trace, dumps, load
from archsim.trace.op import Attention
from archsim.trace.readers.torch import trace_of_programs

from ..each import each

HERE = Path(__file__).parent / "exports"
PROBES = (11, 13)  # the batches at which programs were recorded
COUNTED = json.loads((HERE / "flop_counter.json").read_text())
# recorded model -> the shipped network that it is
SHIPPED = {
    "alexnet": "alexnet_owt", "vgg16": "vgg_16", "resnet18": "resnet_18", "resnet50": "resnet_50", "mobilenet_v2": "mobilenet_v2",
    "mobilenet_v3_large": "mobilenet_v3_large", "googlenet": "googlenet@torchvision", "inception_v3": "inception_v3",
    "efficientnet_b0": "efficientnet_b0", "convnext_tiny": "convnext_tiny", "vit_b_16": "vit_base_16", "bert_base": "bert_base",
    "shufflenet_v2_x1_0": "shufflenet_v2_x1_0", "densenet121": "densenet_121",
}  # fmt: skip
FOLDED = ("resnet50",)  # whose exporter folds batch normalisation into convolutions
# densenet121: torchvision joins all features of a block at once, the shipped one two by two; inception_v3:
# TorchScript merges joins
OTHER = {"densenet121": 0.08, "inception_v3": 0.02}


@cache
def program(name: str) -> Trace:
    return trace_of_programs(json.loads(gzip.decompress((HERE / f"{name}.program.json.gz").read_bytes())), PROBES)


def exported(name: str, folder: Path) -> str:
    place = folder / f"{name}.onnx"
    place.write_bytes(gzip.decompress((HERE / f"{name}.onnx.gz").read_bytes()))
    return str(place)


def shipped_as_file(name: str, folder: Path) -> tuple[str, dict[str, int]]:
    """A shipped network under no name that a stack might take for another graph, and its sizes."""
    place, trace = folder / f"own_{name}.jsonl", load(SHIPPED[name])
    place.write_text(dumps(trace))
    return str(place), {"seq_len": 64} if "T" in trace.free_symbols else {}


def test_twelve_models_and_more_were_recorded():
    assert len(COUNTED) >= 12
    assert len(SHIPPED) >= 10


def as_torch_counts(trace: Trace) -> int:
    """FLOP of products at a batch of 2: 2 for each multiply-accumulate, hidden pairs of causal attention counted in full."""
    bound = trace.bind(**{symbol: {"N": 2, "T": 64}[symbol] for symbol in trace.free_symbols})
    seen = [replace(op.kind, causal=False) if isinstance(op.kind, Attention) else op.kind for op in bound.ops]
    return 2 * sum(kind.macs(op.input_shapes, op.shape) for kind, op in zip(seen, bound.ops, strict=True))


@each("name", sorted(COUNTED))
def test_the_work_of_a_program_is_what_torch_counts(name: str):
    assert program(name).free_symbols == ("N",)
    assert as_torch_counts(program(name)) == COUNTED[name]


@each("name", sorted(COUNTED))
def test_the_work_of_an_onnx_model_is_what_torch_counts(tmp_path: Path, name: str):
    assert as_torch_counts(load(exported(name, tmp_path))) == COUNTED[name]


def test_weights_that_are_an_embedding_s_table_count_once(tmp_path: Path):
    for trace in (program("gpt2"), load(exported("gpt2", tmp_path))):
        (head,) = (op for op in trace.ops if op.shape[-1] == 50257 and op.kind.op == "linear")
        assert head.shares in {op.name for op in trace.ops if op.kind.op == "embedding"}
        assert trace.bind(**dict.fromkeys(trace.free_symbols, 1)).parameters == pytest.approx(124.4e6, rel=0.01)


@pytest.mark.parametrize("hw", ["gtx_1080", "i7_6700k"])
@pytest.mark.parametrize("form", ["program", "onnx"])
def test_exports_cost_what_the_shipped_networks_do(tmp_path: Path, hw: str, form: str):
    wrong = {}
    for name in SHIPPED:
        if form == "onnx" and name in FOLDED:
            continue
        own, words = shipped_as_file(name, tmp_path)
        found = (exported(name, tmp_path), words) if form == "onnx" else (program(name), {})
        mine, theirs = (archsim.estimate(net=net, hw=hw, batch=2, **sizes).latency_s for net, sizes in (found, (own, words)))
        wrong |= {name: mine / theirs} if abs(mine / theirs - 1) > OTHER.get(name, 0.01) else {}
    assert wrong == {}


def test_batch_normalisation_that_was_folded_is_no_op(tmp_path: Path):
    kinds = {op.kind.op for op in load(exported("resnet50", tmp_path)).ops}
    assert "batch_norm" not in kinds
    assert "batch_norm" in {op.kind.op for op in program("resnet50").ops}
