"""Transformers by their `config.json`: published parameters, the zoo's graphs, and files that are wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim.base.errors import InputError, UnknownName
from archsim.base.files import data_folder
from archsim.trace.file import load
from archsim.trace.huggingface import catalog
from archsim.trace.huggingface.graph import Layout, graph_of, step_of
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.huggingface.reader import model_of
from archsim.trace.kinds.dense import Experts
from archsim.trace.kinds.pointwise import Gated
from archsim.trace.kinds.sequence import Attention, LatentAttention
from archsim.trace.trace import BoundTrace

from ..each import each

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512,
}  # fmt: skip
GPT = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "vocab_size": 1000}


def published(name: str) -> int:
    return int(json.loads(data_folder(catalog.FOLDER).joinpath(f"{name}.json").read_text("utf-8"))["parameters"])


def bound(model: TransformerModel, layout: Layout | None = None) -> BoundTrace:
    trace = graph_of(model) if layout is None else step_of(model, layout)
    sizes = {"N": 2, "T": 4, "S": 8}
    return trace.bind(**{name: sizes[name] for name in trace.free_symbols})


@each("name", catalog.names())
def test_a_shipped_model_has_the_published_parameters(name: str):
    assert bound(catalog.find(name)).parameters == published(name)


def wrong(words: Any) -> str:
    with pytest.raises(InputError) as caught:
        model_of(words, "config.json")
    return str(caught.value)


@each(("changes", "words"), [
    ({"hidden_size": None}, "hidden_size: is missing"),
    ({"hidden_size": -64}, "hidden_size: must lie in 1..1048576, is -64"),
    ({"hidden_size": 1 << 62}, "hidden_size: must lie in"),
    ({"head_dim": 7}, "head_dim: 7 features of a head are no pairs, which positions turn"),
    ({"hidden_size": True}, "hidden_size: must be a whole number, is True"),
    ({"num_attention_heads": 7}, "num_attention_heads: 7 does not divide hidden_size 64"),
    ({"num_attention_heads": None, "n_head": 7}, "n_head: 7 does not divide hidden_size 64"),
    ({"num_key_value_heads": 3}, "num_key_value_heads: 3 does not divide num_attention_heads 8"),
    ({"intermediate_size": None}, "intermediate_size: is missing"),
    ({"hidden_act": "mish"}, "hidden_act: 'mish' is not one of gelu"),
    ({"attention_bias": "yes"}, "attention_bias: must be true or false, is 'yes'"),
    ({"model_type": "lama"}, "model_type: 'lama' is no family that is built here; nearest: llama"),
    ({"model_type": None}, "model_type: is missing"),
    ({"vocab_size": 0, "num_hidden_layers": 0}, "2 problems"),
])  # fmt: skip
def test_a_wrong_key_is_named_with_its_value(changes: dict[str, Any], words: str):
    assert words in wrong({**LLAMA, **changes})


@each(("text", "words"), [
    ('{"model_type": "gpt2", "n_embd": NaN}', "has NaN, which is no number"),
    ('{"model_type": "gpt2", "n_embd": 1e999}', "not finite"),
    ('{"model_type": "gpt2", "model_type": "bert"}', "has the key 'model_type' twice"),
    ('{"model_type": "gpt2"', "line 1: is not JSON"),
    ('["model_type", "hidden_size"]', "is no network that is read here"),
    ('{"model_type":' + "[" * 100_000, "nested too deeply"),
])  # fmt: skip
def test_a_file_that_is_no_configuration_is_refused_in_one_line(tmp_path: Path, text: str, words: str):
    place = tmp_path / "config.json"
    place.write_text(text)
    with pytest.raises(InputError) as caught:
        load(str(place))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_more_layers_than_can_be_built_are_refused(tmp_path: Path):
    place = tmp_path / "config.json"
    place.write_text(json.dumps({**LLAMA, "num_hidden_layers": 5001}))
    with pytest.raises(InputError, match=r"num_hidden_layers: must lie in 1..2000, is 5001"):
        load(str(place))


def test_a_config_without_fused_attention_is_the_module_op_by_op(tmp_path: Path):
    from archsim.trace.task import prepared

    place = tmp_path / "config.json"
    place.write_text(json.dumps({**GPT, "activation_function": "gelu_new"}))
    kinds = {op.kind.op for op in prepared(str(place), "inference", fused_attention=False).ops}
    assert {"gelu_tanh", "mask", "matmul"} <= kinds
    assert "attention" not in kinds


def test_a_wrapper_gives_name_and_source():
    model = model_of({"id": "mine", "source": "a page", "config": LLAMA}, "x.json")
    assert (model.name, model.source) == ("mine", "a page")
    with pytest.raises(UnknownName, match="nearest: llama_3_8b"):
        catalog.find("llama3_8bb")


@each(("family", "changes", "windows"), [
    ("gemma2", {"sliding_window": 16}, (16, 0, 16, 0)),
    ("gemma2", {}, (4096, 0, 4096, 0)),
    ("gemma2", {"layer_types": ["full_attention"] * 3 + ["sliding_attention"]}, (0, 0, 0, 4096)),
    ("gemma3_text", {"sliding_window": 16}, (16, 16, 16, 16)),
    ("gemma3_text", {"sliding_window": 16, "sliding_window_pattern": 3}, (16, 16, 0, 16)),
    ("exaone4", {"sliding_window": 16, "sliding_window_pattern": "LG"}, (16, 0, 16, 0)),
    ("mistral", {"sliding_window": 16}, (16, 16, 16, 16)),
    ("mistral", {}, ()),
    ("qwen2", {"sliding_window": 16, "use_sliding_window": False}, ()),
    ("qwen2", {"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 3}, (0, 0, 0, 16)),
    ("llama", {"sliding_window": 16}, ()),
])  # fmt: skip
def test_windows_follow_the_layers_that_have_them(family: str, changes: dict[str, Any], windows: tuple[int, ...]):
    assert model_of({**LLAMA, "model_type": family, "num_hidden_layers": 4, **changes}, "x").windows == windows


def test_a_step_has_one_projection_for_each_input_and_scores_the_last_tokens():
    model = model_of(LLAMA, "x")
    step = bound(model, Layout(engine=True))
    kinds = [type(op.kind) for op in step.ops]
    assert kinds.count(Gated) == 2
    attention = next(op for op in step.ops if isinstance(op.kind, Attention))
    assert attention.input_shapes == ((2, 4, 12 * 8), (2, 8, 16), (2, 8, 16))
    assert step.ops[-1].shape == (2, 1, 1000)
    halves = bound(model, Layout(engine=True, tensor=2))
    assert abs(2 * halves.parameters / step.parameters - 1) < 0.01


def test_stages_of_a_pipeline_are_the_step_together():
    model = model_of(LLAMA, "x")
    whole = bound(model, Layout(engine=True))
    parts = [bound(model, Layout(engine=True, first=first, last=first + 1)) for first in (0, 1)]
    assert sum(part.flop for part in parts) == whole.flop
    assert sum(part.parameters for part in parts) == whole.parameters


def test_experts_count_what_is_active():
    kind = Experts(total=8, top=2, hidden=32)
    shapes = [(1, 1, 16), (1, 1, 8)]
    assert kind.macs(shapes, shapes[0]) == 2 * 3 * 16 * 32
    assert kind.parameters(shapes, shapes[0]) == 8 * 3 * 16 * 32
    half = replace(kind, experts=4)
    assert half.macs(shapes, shapes[0]) == 3 * 16 * 32
    many = [(64, 64, 16), (64, 64, 8)]
    assert abs(kind.active(many) - 8) < 1e-9
    with pytest.raises(ValueError, match="scores of 8 experts"):
        kind.shape([(1, 1, 16), (1, 1, 4)], ())
    with pytest.raises(ValueError, match="got 1 inputs"):
        kind.shape([(1, 1, 16)], ())
    with pytest.raises(ValueError, match="9 chosen"):
        replace(kind, top=9).shape(shapes, ())


def test_latent_attention_reads_the_cache_once_for_all_heads():
    kind = LatentAttention(heads=4, rank=8)
    shapes = [(2, 1, 4 * 10), (2, 6, 10)]
    assert kind.shape(shapes, ()) == (2, 1, 32)
    assert kind.macs(shapes, (2, 1, 32)) == 2 * 4 * 6 * (10 + 8)
    assert kind.flop(shapes, (2, 1, 32)) == 2 * kind.macs(shapes, (2, 1, 32)) + 6 * 2 * 4 * 6
    for bad in ([(2, 1, 40)], [(2, 1, 39), (2, 6, 10)], [(2, 7, 40), (2, 6, 10)]):
        with pytest.raises(ValueError, match=r"takes queries|which"):
            kind.shape(bad, ())


def test_halves_are_gated():
    assert Gated().shape([(2, 8)], ()) == (2, 4)
    with pytest.raises(ValueError, match="two halves"):
        Gated().shape([(2, 7)], ())
