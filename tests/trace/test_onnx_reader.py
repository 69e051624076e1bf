"""ONNX models: what they become, which sizes stay free, and that a shipped network written as ONNX costs what it did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

import archsim
from archsim.base.errors import ArgumentError, InputError
from archsim.measure.onnx_session import build, model_of
from archsim.trace import Trace, load, names

from ..each import each
from .onnx_models import hollow, number, onnx_model, small_cnn, whole, written


def kinds(trace: Trace) -> list[str]:
    return [op.kind.op for op in trace.ops]


def read(model: object, folder: Path, **sizes: int) -> Trace:
    return load(written(model, folder), tuple(sizes.items()))  # type: ignore[arg-type]


def test_a_model_becomes_a_trace_whose_batch_is_free(tmp_path: Path):
    trace = read(small_cnn(), tmp_path)
    assert kinds(trace) == ["conv2d", "batch_norm", "relu", "max_pool", "reshape", "linear"]
    assert trace.inputs == {"x": ("N", 3, 32, 32)}
    assert trace.symbols == {"N": "batch"}
    assert [op.shape for op in trace.ops][-2:] == [("N", 4096), ("N", 10)]
    assert trace.bind(N=4).macs == 4 * (16 * 27 * 1024 + 40960)


def test_its_sizes_are_bound_by_the_names_that_it_has(tmp_path: Path):
    path = written(small_cnn(), tmp_path)
    eight = archsim.estimate(net=path, hw="gtx_1080", bind={"batch": 8})
    assert eight.batch == 8
    assert eight.latency_s == archsim.estimate(net=path, hw="gtx_1080", batch=8).latency_s
    with pytest.raises(ArgumentError, match=r"has no symbol 'bacth'; nearest: batch"):
        archsim.estimate(net=path, hw="gtx_1080", bind={"bacth": 8})


def test_a_fixed_batch_is_refused_with_another(tmp_path: Path):
    path = written(small_cnn(4), tmp_path)
    assert archsim.estimate(net=path, hw="gtx_1080").batch == 4
    with pytest.raises(ArgumentError, match="batch 8: the shapes of network 'model' are of batch 4"):
        archsim.estimate(net=path, hw="gtx_1080", batch=8)


def test_sizes_that_do_not_grow_as_products_are_asked_for_by_name(tmp_path: Path):
    nodes = [("Conv", "x w", "c", {"strides": [2, 2]}), ("GlobalAveragePool", "c", "y")]
    model = onnx_model(nodes, {"x": ["batch", 3, "height", "width"]}, ["y"], [hollow("w", 8, 3, 3, 3)])
    with pytest.raises(ArgumentError, match=r"needs sizes for height, width: --bind height=SIZE --bind width=SIZE"):
        read(model, tmp_path)
    trace = read(model, tmp_path, height=33, width=65)
    assert trace.ops[0].shape == ("N", 8, 16, 32)


def test_a_sequence_stays_free_and_is_called_by_either_name(tmp_path: Path):
    nodes = [("Gather", "table ids", "e"), ("MatMul", "e w", "m"), ("Add", "m b", "y")]
    tensors = [hollow("table", 100, 16), hollow("w", 16, 32), hollow("b", 32)]
    path = written(onnx_model(nodes, {"ids": ["batch", "seq_len"]}, ["y"], tensors, integers=["ids"]), tmp_path)
    assert kinds(load(path)) == ["embedding", "linear"]
    assert archsim.estimate(net=path, hw="gtx_1080", seq_len=7, batch=3).flop == 2 * 21 * 16 * 32 + 21 * 32
    assert archsim.estimate(net=path, hw="gtx_1080", bind={"seq_len": 7, "batch": 3}).flop == 2 * 21 * 16 * 32 + 21 * 32
    with pytest.raises(ArgumentError, match=r"needs sizes for T \(seq_len\): --bind seq_len=SIZE"):
        archsim.estimate(net=path, hw="gtx_1080")


GELU = [("Div", "x r2", "a"), ("Erf", "a", "e"), ("Add", "e one", "p"), ("Mul", "x p", "q"), ("Mul", "q half", "y")]
GELU_FIRST_HALVED = [("Mul", "x half", "h"), ("Div", "x r2", "a"), ("Erf", "a", "e"), ("Add", "e one", "p"), ("Mul", "h p", "y")]
GELU_TANH = [
    ("Pow", "x three", "c"),
    ("Mul", "c small", "d"),
    ("Add", "x d", "s"),
    ("Mul", "s r2", "a"),
    ("Tanh", "a", "t"),
    ("Add", "t one", "p"),
    ("Mul", "x half", "h"),
    ("Mul", "h p", "y"),
]
LAYER_NORM = [
    ("ReduceMean", "x", "m", {"axes": [-1]}),
    ("Sub", "x m", "d"),
    ("Pow", "d two", "s"),
    ("ReduceMean", "s", "v", {"axes": [-1]}),
    ("Add", "v small", "e"),
    ("Sqrt", "e", "r"),
    ("Div", "d r", "n"),
    ("Mul", "n g", "k"),
    ("Add", "k g", "y"),
]
RMS_NORM = [
    ("Pow", "x two", "s"),
    ("ReduceMean", "s", "v", {"axes": [-1]}),
    ("Add", "v small", "e"),
    ("Sqrt", "e", "r"),
    ("Reciprocal", "r", "i"),
    ("Mul", "x i", "n"),
    ("Mul", "g n", "y"),
]
SILU = [("Sigmoid", "x", "s"), ("Mul", "x s", "y")]
HARD_SWISH = [("Add", "x three", "a"), ("Clip", "a zero six", "c"), ("Mul", "x c", "m"), ("Div", "m six", "y")]
GROUP_NORM = [
    ("Reshape", "x groups", "a"),
    ("InstanceNormalization", "a i i", "b"),
    ("Reshape", "b back", "c"),
    ("Mul", "c gc", "d"),
    ("Add", "d gc", "y"),
]


@each(
    ("wanted", "nodes"),
    [
        ("gelu", GELU),
        ("gelu", GELU_FIRST_HALVED),
        ("gelu_tanh", GELU_TANH),
        ("layer_norm", LAYER_NORM),
        ("rms_norm", RMS_NORM),
        ("silu", SILU),
        ("hard_swish", HARD_SWISH),
    ],
)
def test_what_exporters_write_as_arithmetic_is_one_op(tmp_path: Path, wanted: str, nodes: list[tuple[object, ...]]):
    values = {"r2": 1.41421, "one": 1.0, "half": 0.5, "three": 3.0, "small": 0.044715, "two": 2.0, "zero": 0.0, "six": 6.0}
    tensors = [number(name, value) for name, value in values.items()] + [hollow("g", 64)]
    assert kinds(read(onnx_model(nodes, {"x": ["N", 8, 64]}, ["y"], tensors), tmp_path)) == [wanted]  # type: ignore[arg-type]


def test_a_group_norm_written_as_an_instance_norm_of_groups_is_one_op(tmp_path: Path):
    tensors = [whole("groups", 0, 4, -1), whole("back", 0, 8, 6, 6), hollow("i", 4), hollow("gc", 8, 1, 1)]
    trace = read(onnx_model(GROUP_NORM, {"x": ["N", 8, 6, 6]}, ["y"], tensors), tmp_path)
    assert kinds(trace) == ["group_norm"]
    assert trace.ops[0].kind.groups == 4  # type: ignore[attr-defined]


def attention_nodes(mask: str = "") -> list[tuple[object, ...]]:
    made: list[tuple[object, ...]] = []
    for part in "qkv":
        made += [
            ("MatMul", f"x w{part}", f"{part}0"),
            ("Add", f"{part}0 b", f"{part}1"),
            ("Reshape", f"{part}1 heads", f"{part}2"),
            ("Transpose", f"{part}2", f"{part}", {"perm": [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]}),
        ]
    made += [("MatMul", "q k", "s0"), ("Div", "s0 root", "s1")]
    made += [("Add", f"s1 {mask}", "s2")] if mask else [("Identity", "s1", "s2")]
    made += [
        ("Softmax", "s2", "s3", {"axis": -1}),
        ("MatMul", "s3 v", "o0"),
        ("Transpose", "o0", "o1", {"perm": [0, 2, 1, 3]}),
        ("Reshape", "o1 joined", "o2"),
        ("MatMul", "o2 wo", "y"),
    ]
    return made


@each(("mask", "causal"), [("", False), ("triangle", True), ("padding", False)])
def test_attention_written_as_products_is_one_op(tmp_path: Path, mask: str, causal: bool):
    triangle = np.triu(np.full((16, 16), -1e9, np.float32), 1)
    tensors = [
        *(hollow(f"w{part}", 64, 64) for part in "qkvo"),
        hollow("b", 64),
        whole("heads", 0, 0, 4, 16),
        whole("joined", 0, 0, 64),
        number("root", 4.0),
        numpy_helper.from_array(triangle, "triangle"),
    ]
    inputs = {"x": ["N", 16, 64]} | ({"padding": ["N", 1, 1, 16]} if mask == "padding" else {})
    trace = read(onnx_model(attention_nodes(mask), inputs, ["y"], tensors), tmp_path)
    assert Counter(kind for kind in kinds(trace) if kind != "reshape") == {"linear": 4, "attention": 1}
    kind = next(op.kind for op in trace.ops if op.kind.op == "attention")
    assert (kind.heads, kind.causal) == (4, causal)  # type: ignore[attr-defined]


def test_recurrent_layers_on_each_other_are_one_call(tmp_path: Path):
    nodes = [
        ("LSTM", "x w r b", "y0", {"hidden_size": 8}),
        ("Squeeze", "y0 one", "x1"),
        ("LSTM", "x1 w1 r b", "y1", {"hidden_size": 8}),
        ("Squeeze", "y1 one", "y"),
    ]
    tensors = [hollow("w", 1, 32, 5), hollow("w1", 1, 32, 8), hollow("r", 1, 32, 8), hollow("b", 1, 64), whole("one", 1)]
    trace = read(onnx_model(nodes, {"x": [7, "batch", 5]}, ["y"], tensors), tmp_path)
    assert [op.kind.op for op in trace.ops if op.kind.op != "reshape"] == ["lstm"]
    assert trace.ops[0].kind.layers == 2  # type: ignore[attr-defined]


def test_the_batch_is_what_is_called_so_wherever_it_stands(tmp_path: Path):
    tensors = [hollow("w", 1, 32, 5), hollow("r", 1, 32, 8)]
    model = onnx_model([("LSTM", "x w r", "y", {"hidden_size": 8})], {"x": ["time", "batch", 5]}, ["y"], tensors)
    assert read(model, tmp_path).symbols == {"N": "batch", "T": "time"}


def test_padding_by_name_and_images_of_one_row_or_of_planes_are_convolutions(tmp_path: Path):
    same = {"auto_pad": "SAME_UPPER", "strides": [2, 2]}
    trace = read(onnx_model([("Conv", "x w", "y", same)], {"x": ["N", 3, 15, 15]}, ["y"], [hollow("w", 8, 3, 3, 3)]), tmp_path)
    assert trace.ops[0].shape == ("N", 8, 8, 8)
    row = read(onnx_model([("Conv", "x w", "y")], {"x": ["N", 3, 15]}, ["y"], [hollow("w", 8, 3, 3)]), tmp_path)
    assert row.bind(N=1).macs == 13 * 8 * 9
    planes = read(onnx_model([("Conv", "x w", "y")], {"x": ["N", 3, 9, 9, 9]}, ["y"], [hollow("w", 8, 3, 3, 3, 3)]), tmp_path)
    assert planes.bind(N=1).macs == 7**3 * 8 * 81


def test_operators_of_before_opset_10_are_read(tmp_path: Path):
    nodes = [
        ("Slice", "x", "s", {"axes": [1], "starts": [0], "ends": [2]}),
        ("Upsample", "s", "u", {"scales": [1.0, 1.0, 2.0, 2.0]}),
        ("ReduceMean", "u", "m", {"axes": [2, 3]}),
        ("Squeeze", "m", "y", {"axes": [2, 3]}),
    ]
    trace = read(onnx_model(nodes, {"x": ["N", 4, 6, 6]}, ["y"], opset=7), tmp_path)
    assert kinds(trace) == ["slice", "upsample", "global_avg_pool", "reshape"]
    with pytest.raises(InputError, match="uses version 6 of ONNX's operators; 7 to"):
        read(onnx_model(nodes, {"x": ["N", 4, 6, 6]}, ["y"], opset=6), tmp_path)


QUICK = (
    "alexnet",
    "googlenet",
    "densenet_121",
    "mobilenet_v2",
    "efficientnet_b0",
    "vit_base_16",
    "shufflenet_v2_x1_0",
    "ssd_300",
)
# networks whose default stacks build another graph of the same name, or whose files have ops that no output needs
OTHERWISE = ("alexnet_s@mxnet", "lstm_32", "lstm_64", "lstm_ptb", "deepspeech_2", "switch_xl4", "jouppi_lstm1")


def round_trip(name: str, folder: Path) -> None:
    """The network as ONNX without values of weights: as much work, and on a GPU and a CPU as much time."""
    shipped = load(name)
    bound = shipped.bind(**{symbol: size for symbol, size in {"N": 2, "T": 64}.items() if symbol in shipped.free_symbols})
    place = folder / f"{name}.onnx"  # each its own: what was read from a path is kept
    place.write_bytes(model_of(build(bound, hollow=True)))
    again = load(str(place)).bind()
    assert (again.macs, again.flop) == (bound.macs, bound.flop)
    own = folder / f"{name}.jsonl"
    own.write_text(archsim.trace.dumps(shipped))  # type: ignore[attr-defined]
    near = 0.005 if any(op.kind.op == "attention" for op in shipped.ops) else 1e-9  # a sum of three is two sums there
    words = {"seq_len": 64} if "T" in shipped.free_symbols else {}
    words |= {"batch": 2} if "N" in shipped.free_symbols else {}
    for hw in ("gtx_1080", "i7_6700k"):
        mine = archsim.estimate(net=str(place), hw=hw).latency_s
        assert mine == pytest.approx(archsim.estimate(net=str(own), hw=hw, **words).latency_s, rel=near), hw  # type: ignore[arg-type]


@each("name", QUICK)
def test_networks_written_as_onnx_cost_what_they_did(tmp_path: Path, name: str):
    round_trip(name, tmp_path)


@pytest.mark.slow
@each("name", lambda: [name for name in names() if "@hf" not in name and name not in OTHERWISE])
def test_every_network_written_as_onnx_costs_what_it_did(tmp_path: Path, name: str):
    round_trip(name, tmp_path)
