"""Networks built from traces: every op kind, its shapes and a few values, in onnxruntime where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archsim.base.errors import Unsupported
from archsim.measure.nodes import BUILDERS, window_pads
from archsim.measure.onnx_session import build, feeds, model_of
from archsim.trace.file import names
from archsim.trace.op import KINDS
from archsim.trace.trace import BoundTrace

from ..each import each
from ..shipped import line, load, network

NOT_AT_INFERENCE = {"update", "cross_entropy"}
READ_ONLY = {"group_norm", "element_wise", "reduce", "gather", "scatter", "traffic", "stated"}  # of models that were read
READ_ONLY |= {"collective", "gated", "experts", "latent_attention"}


def trace(inputs: dict[str, list[int]], *lines: dict[str, Any]) -> BoundTrace:
    return network(*lines, **inputs)


X, SEQUENCE = {"x": [2, 4, 9, 9]}, {"x": [2, 5, 8]}
CASES = {
    "conv2d": (X, line("conv2d", "y", "x", [2, 6, 5, 4], kernel=[3, 3], stride=[2, 2], pad=[1, 0, 1, 1], groups=2)),
    "dilated": (X, line("conv2d", "y", "x", [2, 4, 5, 5], kernel=[3, 3], dilation=[2, 2], groups=4, bias=False)),
    "conv_transpose2d": (X, line("conv_transpose2d", "y", "x", [2, 3, 17, 19], kernel=[3, 3], stride=[2, 2], pad=[1, 0])),
    "upsample": (X, line("upsample", "y", "x", [2, 4, 18, 18])),
    "bilinear": (X, line("upsample", "y", "x", [2, 4, 13, 20], mode="bilinear")),
    "leaky_relu": (X, line("leaky_relu", "y", "x", [2, 4, 9, 9])),
    "hard_sigmoid": (X, line("hard_sigmoid", "y", "x", [2, 4, 9, 9])),
    "hard_swish": (X, line("hard_swish", "y", "x", [2, 4, 9, 9])),
    "scale": (X, line("scale", "y", "x", [2, 4, 9, 9])),
    "scale_by": (X, line("scale_by", "y", "x", [2, 4, 9, 9], factor=0.25)),
    "quantise": (X, line("quantise", "y", "x", [2, 4, 9, 9])),
    "dynamic": (X, line("quantise", "y", "x", [2, 4, 9, 9], dynamic=True)),
    "channel_norm": (X, line("rms_norm", "y", "x", [2, 4, 9, 9], axis=1)),
    "max_pool": (X, line("max_pool", "y", "x", [2, 4, 5, 5], kernel=[2, 2], stride=[2, 2], ceil_mode=True)),
    "avg_pool": (X, line("avg_pool", "y", "x", [2, 4, 5, 5], kernel=[3, 3], stride=[2, 2], pad=[1, 1])),
    "global_avg_pool": (X, line("global_avg_pool", "y", "x", [2, 4, 1, 1])),
    "lrn": (X, line("lrn", "y", "x", [2, 4, 9, 9])),
    "batch_norm": (X, line("batch_norm", "y", "x", [2, 4, 9, 9])),
    "bias_add": (X, line("bias_add", "y", "x", [2, 4, 9, 9])),
    "relu6": (X, line("relu6", "y", "x", [2, 4, 9, 9])),
    "dropout": (X, line("dropout", "y", "x", [2, 4, 9, 9])),
    "add": (X, line("add", "y", "x x x", [2, 4, 9, 9])),
    "mul": (X, line("mul", "y", "x x", [2, 4, 9, 9])),
    "concat": (X, line("concat", "y", "x x", [2, 8, 9, 9])),
    "pad": (X, line("pad", "y", "x", [2, 4, 10, 12], before=[0, 0, 1, 1], after=[0, 0, 0, 2])),
    "reshape": (X, line("reshape", "y", "x", [2, 324])),
    "transpose": (X, line("transpose", "y", "x", [2, 9, 9, 4], order=[0, 2, 3, 1])),
    "slice": (X, line("slice", "y", "x", [2, 2, 9, 9], axis=1, start=1, stop=3)),
    "linear": (SEQUENCE, line("linear", "y", "x", [2, 5, 3])),
    "layer_norm": (SEQUENCE, line("layer_norm", "y", "x", [2, 5, 8])),
    "softmax": (SEQUENCE, line("softmax", "y", "x", [2, 5, 8])),
    "argmax": (SEQUENCE, line("argmax", "y", "x", [2, 5])),
    "silu": (SEQUENCE, line("silu", "y", "x", [2, 5, 8])),
    "gelu_tanh": (SEQUENCE, line("gelu_tanh", "y", "x", [2, 5, 8])),
    "mask": (SEQUENCE, line("mask", "y", "x", [2, 5, 8])),
    "floor": (SEQUENCE, line("floor", "y", "x", [2, 5, 8])),
    "rms_norm": (SEQUENCE, line("rms_norm", "y", "x", [2, 5, 8])),
    "rotary": (SEQUENCE, line("rotary", "y", "x", [2, 5, 8], width=4)),
    "gelu": (SEQUENCE, line("gelu", "y", "x", [2, 5, 8])),
    "sigmoid": (SEQUENCE, line("sigmoid", "y", "x", [2, 5, 8])),
    "tanh": (SEQUENCE, line("tanh", "y", "x", [2, 5, 8])),
    "relu": (SEQUENCE, line("relu", "y", "x", [2, 5, 8])),
    "matmul": (SEQUENCE, line("matmul", "y", "x x", [2, 5, 5], transpose_b=True)),
    "rnn": (SEQUENCE, line("rnn", "y", "x", [2, 5, 6], hidden=6, layers=2)),
    "both_ways": (SEQUENCE, line("gru", "y", "x", [2, 5, 12], hidden=6, layers=2, bidirectional=True)),
    "gru": (SEQUENCE, line("gru", "y", "x", [2, 5, 6], hidden=6, layers=2)),
    "lstm": (SEQUENCE, line("lstm", "y", "x", [2, 5, 6], hidden=6, layers=2)),
    "lstm_cell": ({"x": [3, 8], "s": [2, 3, 6]}, line("lstm_cell", "y", "x s", [2, 3, 6], hidden=6)),
    "embedding": ({"x": [2, 5]}, line("embedding", "y", "x", [2, 5, 7], vocabulary=11, features=7)),
    "attention": (SEQUENCE, line("attention", "y", "x x x", [2, 5, 8], heads=2, causal=True)),
}


def answer(bound: BoundTrace) -> tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]:
    """The one output and the inputs of a run."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from archsim.measure.onnx_session import OnnxSession

    session = OnnxSession(bound, 1)
    return session._session.run(None, session._feeds)[0], session._feeds


@each(("inputs", "record"), CASES.values())
def test_an_op_runs_and_gives_its_shape(inputs: dict[str, list[int]], record: dict[str, Any]) -> None:
    out, _ = answer(trace(inputs, record))
    assert list(out.shape) == record["out"]
    assert np.isfinite(out).all()


def test_every_kind_of_the_vocabulary_is_built_or_has_no_place_at_inference() -> None:
    assert set(KINDS) - set(BUILDERS) == NOT_AT_INFERENCE | READ_ONLY
    assert {record["op"] for _, record in CASES.values()} == set(BUILDERS)


def test_causal_attention_is_what_its_definition_says() -> None:
    out, given = answer(trace(*CASES["attention"]))
    x = given["x"].reshape(2, 5, 2, 4).transpose(0, 2, 1, 3)
    scores = x @ x.transpose(0, 1, 3, 2) / 2 + np.triu(np.full((5, 5), -1e9), 1)
    share = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = (share / share.sum(-1, keepdims=True)) @ x
    np.testing.assert_allclose(out, wanted.transpose(0, 2, 1, 3).reshape(2, 5, 8), atol=1e-5)


def test_a_window_hides_keys_long_before() -> None:
    """The last two keys of each query: what the others hold changes nothing."""
    record = line("attention", "y", "q k k", [1, 4, 4], heads=1, causal=True, window=2)
    out, given = answer(trace({"q": [1, 4, 4], "k": [1, 4, 4]}, record))
    q, k = given["q"][0], given["k"][0]
    for t in range(1, 4):
        share = np.exp(q[t] @ k[t - 1 : t + 1].T / 2)
        np.testing.assert_allclose(out[0, t], share / share.sum() @ k[t - 1 : t + 1], atol=1e-5)


def test_grouped_queries_share_their_keys() -> None:
    inputs = {"q": [2, 3, 8], "k": [2, 5, 4], "v": [2, 5, 4]}
    out, given = answer(trace(inputs, line("attention", "y", "q k v", [2, 3, 8], heads=4, kv_heads=2, causal=True)))
    q = given["q"].reshape(2, 3, 4, 2).transpose(0, 2, 1, 3)
    k, v = (np.repeat(given[name].reshape(2, 5, 2, 2).transpose(0, 2, 1, 3), 2, 1) for name in "kv")
    scores = q @ k.transpose(0, 1, 3, 2) / 2**0.5 + np.triu(np.full((3, 5), -1e9), 3)
    share = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = (share / share.sum(-1, keepdims=True)) @ v
    np.testing.assert_allclose(out, wanted.transpose(0, 2, 1, 3).reshape(2, 3, 8), atol=1e-5)


def test_the_reset_of_a_gated_unit_acts_after_the_product_with_the_state() -> None:
    """Against the equations of cuDNN's form, written out; ONNX orders its gates z, r, n."""
    bound = trace(SEQUENCE, line("gru", "y", "x", [2, 5, 3], hidden=3))
    out, given = answer(bound)
    weights = build(bound).weights
    w, r, b = (weights[f"y:{name}0"][0].astype(float) for name in "wrb")
    h = np.zeros((5, 3))
    for x, wanted in zip(given["x"], out, strict=True):
        of_x, of_h = x @ w.T + b[:9], h @ r.T + b[9:]
        z, reset = (1 / (1 + np.exp(-(of_x + of_h)[:, i : i + 3])) for i in (0, 3))
        h = (1 - z) * np.tanh(of_x[:, 6:] + reset * of_h[:, 6:]) + z * h
        np.testing.assert_allclose(wanted, h, atol=1e-5)


def test_a_partial_window_is_padded_to_its_size() -> None:
    bound = trace(*CASES["max_pool"])
    assert window_pads(bound.ops[0]) == (0, 0, 1, 1)
    out, given = answer(bound)
    np.testing.assert_array_equal(out[..., 4, 4], given["x"][..., 8, 8])


@each("net", names())
def test_every_shipped_network_has_only_kinds_that_can_be_built(net: str) -> None:
    assert {op.kind.op for op in load(net).ops} <= set(BUILDERS)


def test_a_small_network_of_the_zoo_runs_and_its_ops_are_timed() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from archsim.measure.onnx_session import OnnxSession

    bound = load("resnet_56").bind(N=1)
    session = OnnxSession(bound, 1)
    assert session.outputs() == [op.shape for op in bound.ops if op.name in bound.outputs]
    assert session.timed(1) > 0
    times, others = session.per_op(2)
    together = [name for group in times for name in group]
    assert len(together) == len(set(together))
    assert len(together) >= 0.9 * len(bound.ops)
    assert others >= 0 < min(times.values())


def test_weights_stay_outside_the_model() -> None:
    pytest.importorskip("onnx")
    bound = trace({"x": [2, 1000]}, line("linear", "y", "x", [2, 1000]))
    assert len(model_of(build(bound))) < 10_000


def test_indices_are_within_their_table() -> None:
    assert feeds(trace(*CASES["embedding"]))["x"].max() < 11


def test_a_kind_without_a_builder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(BUILDERS, "relu")
    with pytest.raises(Unsupported, match="relu"):
        build(trace(*CASES["relu"]))


def test_queries_keys_and_values_side_by_side_are_taken_apart() -> None:
    out, given = answer(trace({"x": [2, 5, 16]}, line("attention", "y", "x", [2, 5, 8], heads=4, kv_heads=2)))
    q, k, v = np.split(given["x"], [8, 12], axis=2)
    inputs = {"q": [2, 5, 8], "k": [2, 5, 4], "v": [2, 5, 4]}
    heads = [x.reshape(2, 5, -1, 2).transpose(0, 2, 1, 3) for x in (q, k, v)]
    k, v = (np.repeat(x, 2, 1) for x in heads[1:])
    scores = heads[0] @ k.transpose(0, 1, 3, 2) / 2**0.5
    share = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = (share / share.sum(-1, keepdims=True)) @ v
    np.testing.assert_allclose(out, wanted.transpose(0, 2, 1, 3).reshape(inputs["q"]), atol=1e-5)


def test_rotary_positions_turn_pairs_by_their_position() -> None:
    out, given = answer(trace(*CASES["rotary"]))
    x = given["x"].reshape(2, 5, 2, 4)
    angles = np.outer(np.arange(5), [1.0, 0.01])[:, None, :]  # position x 10000 ** (-2 i / 4)
    first, second = x[..., :2], x[..., 2:]
    cosine, sine = np.cos(angles), np.sin(angles)
    wanted = np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)
    np.testing.assert_allclose(out, wanted.reshape(2, 5, 8), atol=1e-5)


def test_an_rms_norm_leaves_a_mean_square_of_one() -> None:
    out, _ = answer(trace(*CASES["rms_norm"]))
    np.testing.assert_allclose((out**2).mean(-1), 1.0, atol=1e-3)
