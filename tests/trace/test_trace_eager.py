"""Transformers op by op: built from the numbers of a configuration, with the kernels that eager modules launch."""

from __future__ import annotations

from collections import Counter

import pytest

import archsim
from archsim.stack import catalog
from archsim.trace.huggingface.reader import model_of
from archsim.trace.zoo import eager

from ..shipped import load

GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32, "vocab_size": 100,
        "activation_function": "gelu_new", "attn_pdrop": 0.1, "resid_pdrop": 0.1}  # fmt: skip
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 1,
         "intermediate_size": 96, "max_position_embeddings": 32, "vocab_size": 100, "hidden_act": "silu"}  # fmt: skip


def kinds(trace, **sizes) -> Counter:
    return Counter(op.kind.op for op in trace.bind(N=2, T=16, **sizes).ops)


def test_the_numbers_of_a_configuration_are_those_of_the_network_of_that_name():
    large = dict(GPT2, n_embd=1280, n_head=20, n_layer=36, n_positions=1024, vocab_size=50257)
    built = eager.build("gpt2_large@hf", eager.config_of(model_of(large, "x")))
    assert built == load("gpt2_large@hf")


def test_a_layer_keeps_its_scores_in_memory():
    """Two products around a scaling, a mask, a softmax and dropout; three copies of heads and one back."""
    found = kinds(eager.build("small", eager.config_of(model_of(GPT2, "x"))))
    assert found["attention"] == 0
    assert {kind: found[kind] for kind in ("matmul", "scale_by", "mask", "softmax", "gelu_tanh")} == {
        "matmul": 4, "scale_by": 2, "mask": 2, "softmax": 2, "gelu_tanh": 2,
    }  # fmt: skip
    assert found["transpose"] == 2 * 4
    assert found["dropout"] == 1 + 2 * 3
    assert found["linear"] == 2 * 4 + 1


def test_experts_take_the_rows_of_their_capacity_in_every_other_layer():
    """Two stacks of 24 layers; in half of them four experts take 64 rows of each sample."""
    trace = load("switch_xl4").bind(N=2, T=128)
    rows = [op for op in trace.ops if op.name.endswith("expert1.mlp1")]
    assert [op.input_shapes[0] for op in rows] == [(2, 64, 1024)] * 24
    assert sum(op.name.endswith(".router") for op in trace.ops) == 24
    assert sum(op.kind.op == "softmax" and op.name.endswith("self.softmax") for op in trace.ops) == 48
    assert sum(op.name.endswith("cross.softmax") for op in trace.ops) == 24


def test_keys_that_heads_share_are_copied_for_each():
    config = eager.config_of(model_of(LLAMA, "x"))
    assert config.tied is False
    trace = eager.build("small", config).bind(N=2, T=16)
    repeated = next(op for op in trace.ops if op.name == "block1.key.repeated")
    assert (len(repeated.inputs), repeated.shape) == (4, (2, 8, 8, 16))


def test_every_network_of_the_table_is_what_the_stack_builds_under_its_name():
    variants = catalog.find("pytorch-2-hf-eager").variants
    for graph in eager.MODELS:
        assert variants.get(graph.removesuffix("@hf"), graph) == graph or graph.endswith("pretraining")


def test_an_activation_of_eight_operators_is_eight_kernels():
    found = archsim.estimate(net="gpt2_small", hw="tesla_v100_pcie_32gb", stack="pytorch-2-hf-eager", batch=8)
    activation = next(op for op in found.ops if op.kind == "gelu_tanh")
    assert activation.dram_bytes == pytest.approx(18 * 8 * 512 * 3072 * 4)  # ten reads and eight writes, too large for the L2
