"""Attention as products and a softmax, and sequences whose length is a symbol."""

from __future__ import annotations

from collections import Counter

import pytest

import archsim
from archsim.base.errors import ArgumentError, InputError
from archsim.estimation.request import make_request
from archsim.trace import loads, names, task_trace
from archsim.trace.file import dumps
from archsim.trace.task import unfused
from archsim.trace.trace import Trace
from archsim.trace.zoo.eager import MODELS as EAGER
from archsim.trace.zoo.transformer import MODELS

from ..shipped import load

HEAD = '{"schema": "archsim-trace/1", "name": "tiny", "dtype": "fp32", "source": "a test", '


def small(inputs: str, *ops: str) -> Trace:
    return loads("\n".join([HEAD + inputs + "}", *ops]) + "\n")


@pytest.mark.parametrize("name", MODELS)
def test_the_parts_are_a_sound_trace_with_the_same_parameters(name):
    whole, apart = load(name), unfused(load(name))
    assert loads(dumps(apart)) == apart  # the checker knows every shape rule
    assert apart.ends == whole.ends
    assert apart.bind(N=2).parameters == whole.bind(N=2).parameters
    assert "attention" not in {op.kind.op for op in apart.ops}


@pytest.mark.parametrize(("name", "pairs"), [("bert_base", 128 * 128), ("vit_base_16", 197 * 197), ("llama_3_8b", 512 * 512)])
def test_the_scores_of_all_pairs_are_computed_masked_or_not(name, pairs):
    bound, model = unfused(load(name)).bind(N=3), MODELS[name]
    found = Counter(op.macs for op in bound.ops if op.kind.op == "matmul")
    assert found == {3 * pairs * model.width: 2 * model.layers}
    softmax = next(op for op in bound.ops if op.name == "block1.attention.softmax")
    assert softmax.flop == 5 * 3 * model.heads * pairs
    assert any(op.name.endswith(".masked") for op in bound.ops) == (name == "llama_3_8b")


def test_a_projection_of_all_three_becomes_three():
    whole, apart = (trace.bind(N=1) for trace in (load("gpt2_small"), unfused(load("gpt2_small"))))
    linear = {op.name: op.macs for op in apart.ops if op.kind.op == "linear" and op.name.startswith("block1.qkv")}
    assert linear == {f"block1.qkv.{part}": 512 * 768 * 768 for part in ("queries", "keys", "values")}
    assert sum(linear.values()) == next(op.macs for op in whole.ops if op.name == "block1.qkv")


def test_keys_that_heads_share_are_not_repeated():
    bound = unfused(load("llama_3_8b")).bind(N=1, T=16)
    shapes = {op.name: op.shape for op in bound.ops}
    assert shapes["block1.attention.keys"] == (1, 8, 16, 128)
    assert shapes["block1.attention.scores"] == (1, 8, 64, 16)


def test_a_network_without_attention_stays_as_it_is():
    assert unfused(load("alexnet")) == load("alexnet")


def test_what_cannot_be_taken_apart_is_refused():
    relu = '{"op": "relu", "name": "qkv", "in": ["x"], "out": ["N", 4, 24]}'
    attention = '{"op": "attention", "name": "y", "in": ["qkv"], "out": ["N", 4, 8], "heads": 2}'
    with pytest.raises(ValueError, match="'y' needs queries, keys and values apart"):
        unfused(small('"inputs": {"x": ["N", 4, 24]}', relu, attention))
    taken = '{"op": "relu", "name": "y.softmax", "in": ["x"], "out": ["N", 4, 8]}'
    alone = '{"op": "attention", "name": "y", "in": ["x", "x", "x"], "out": ["N", 4, 8], "heads": 2}'
    with pytest.raises(ValueError, match="name that the parts"):
        unfused(small('"inputs": {"x": ["N", 4, 8]}', taken, alone))


@pytest.mark.parametrize("task", ["inference", "training_step"])
@pytest.mark.parametrize("name", ["bert_base", "gpt2_small"])
def test_older_stacks_keep_the_scores_and_newer_ones_do_not(name, task):
    old, new = (make_request(name, "tesla_v100_sxm2", stack=stack, task=task) for stack in ("pytorch-cudnn7.6", "pytorch-2"))
    assert old.template == task_trace(unfused(load(name)), task, old.work.optimiser)
    assert new.template == task_trace(load(name), task, new.work.optimiser)


def test_scores_in_memory_cost_time_and_memory():
    old, new = (archsim.estimate("bert_base", "tesla_v100_sxm2", stack=stack, batch=8, seq_len=512, task="training_step")
                for stack in ("pytorch-cudnn7.6", "pytorch-2"))  # fmt: skip
    kept = 12 * 8 * 12 * 512 * 512 * 4.0  # the weights of all pairs, layer by layer
    assert old.memory.activations - new.memory.activations > 2 * kept
    assert old.latency_s > new.latency_s


# ------------------------------------------------------------------------------------------------- length of a sequence


def test_a_length_may_be_left_out_or_given():
    usual, given = (make_request("bert_base", "a100_sxm4_40gb", seq_len=length).trace for length in (None, 64))
    assert (usual.inputs["tokens"], given.inputs["tokens"]) == ((1, 128), (1, 64))
    assert given.parameters == usual.parameters
    result = archsim.estimate("bert_base", "a100_sxm4_40gb", seq_len=64, batch=2)
    assert (result.seq_len, archsim.estimate("alexnet", "gtx_1080").seq_len) == (64, None)


def test_linear_layers_grow_with_the_length_and_attention_with_its_square():
    work = {t: Counter(dict.fromkeys(("linear", "attention"), 0)) for t in (64, 128)}
    for t, found in work.items():
        for op in load("bert_base").bind(N=1, T=t).ops:
            if op.name.startswith("block"):
                found[op.kind.op] += op.macs
    assert work[128]["linear"] == 2 * work[64]["linear"]
    assert work[128]["attention"] == 4 * work[64]["attention"]


@pytest.mark.parametrize(("net", "length", "why"), [
    ("alexnet", 128, "takes no sequences of a length that can be set"), ("bert_base", 513, "T must be at most 512"),
    ("bert_base", 0, "T must be a whole number from 1"), ("lstm_ptb", 64, "takes no sequences"),
])  # fmt: skip
def test_a_length_that_a_network_cannot_take_is_refused(net, length, why):
    with pytest.raises(ArgumentError, match=why):
        make_request(net, "a100_sxm4_40gb", seq_len=length)


RELU = '{"op": "relu", "name": "y", "in": ["x"], "out": ["N", "T"]}'


@pytest.mark.parametrize(("sizes", "why"), [
    ('{"T": {"usual": 8, "most": 4}}', "must be like"), ('{"T": 8}', "must be like"), ("[]", "must be like"),
    ('{"T": {"usual": 8}}', "must be like"), ('{"T": {"usual": 0, "most": 4}}', "write a whole number"),
    ('{"T": {"usual": "N", "most": 4}}', "must be like"), ('{"S": {"usual": 1, "most": 4}}', "'S', which no shape uses"),
])  # fmt: skip
def test_sizes_that_make_no_sense_are_refused_by_line(sizes, why):
    with pytest.raises(InputError, match=f"line 1: header 'sizes'.*{why}"):
        small(f'"inputs": {{"x": ["N", "T"]}}, "sizes": {sizes}', RELU)


def test_sizes_are_written_as_they_are_read():
    trace = small('"inputs": {"x": ["N", "T"]}, "sizes": {"T": {"usual": 8, "most": 16}}', RELU)
    assert (trace.unsized, trace.bind(N=2).ops[0].shape, trace.bind(N=2, T=3).ops[0].shape) == (("N",), (2, 8), (2, 3))
    assert loads(dumps(trace)) == trace


def test_only_transformers_have_a_length_to_set():
    assert {name for name in names() if load(name).sizes} == {name for name in MODELS if not name.startswith("vit")} | set(EAGER)


# ---------------------------------------------------------------------------------------------------- tied embeddings


def test_a_table_is_updated_once_with_the_gradients_of_both_its_uses():
    step = task_trace(load("gpt2_small"), "training_step")
    updates = {op.name: op for op in step.ops if op.phase == "update"}
    assert "head.update" not in updates
    assert updates["tokens.embedding.update"].inputs == ("tokens.embedding.backward_filter", "head.backward_filter")
    assert updates["positions.embedding.update"].inputs == ("positions.embedding.backward_filter",)


def test_rotary_positions_only_stream():
    """An attribute of theirs is not the size of a window that the lowering of poolings and LRN looks for."""
    ops = archsim.estimate("llama_2_7b", "a100_sxm4_80gb", stack="pytorch-2", precision="fp16").ops
    rotary, linear = (sum(op.time_s for op in ops if op.kind == kind) for kind in ("rotary", "linear"))
    assert rotary < 0.2 * linear
