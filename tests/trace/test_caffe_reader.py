"""Caffe's prototxt: what its layers become, that networks written so cost what they did, and files that cannot be."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.base.errors import ArchsimError, ArgumentError, InputError, Unsupported
from archsim.trace import Trace, dumps, load

from ..each import each

HEAD = 'name: "tiny" input: "data" input_shape { dim: 4 dim: 3 dim: 32 dim: 32 }\n'
CONV = """layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"  # the first
  param { lr_mult: 1 } convolution_param { num_output: 8 kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "pool1" top: "fc" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" include { phase: TRAIN } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" include { phase: TEST } }
"""


def read(text: str, folder: Path) -> Trace:
    place = folder / "net.prototxt"
    place.write_text(text)
    return load(str(place))


def kinds(trace: Trace) -> list[str]:
    return [op.kind.op for op in trace.ops]


def test_the_layers_of_the_test_phase_are_ops_with_a_free_batch(tmp_path: Path):
    trace = read(HEAD + CONV, tmp_path)
    assert kinds(trace) == ["conv2d", "relu", "max_pool", "reshape", "linear", "softmax"]
    assert trace.inputs == {"data": ("N", 3, 32, 32)}
    assert trace.ops[2].shape == ("N", 8, 8, 8)  # a last, partial window counts
    assert trace.name == "tiny"
    path = str(tmp_path / "net.prototxt")
    assert archsim.estimate(net=path, hw="gtx_1080", bind={"batch": 16}).batch == 16
    with pytest.raises(ArgumentError, match="has no symbol 'bach'; nearest: batch"):
        archsim.estimate(net=path, hw="gtx_1080", bind={"bach": 16})


def test_layers_of_files_before_2014_are_read(tmp_path: Path):
    text = """input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
    layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" convolution_param { num_output: 4 kernel_size: 3 } }
    layers { name: "r" type: RELU bottom: "c" top: "c" }"""
    assert kinds(read(text, tmp_path)) == ["conv2d", "relu"]


def shown(**fields: Any) -> str:
    """Fields of a message."""
    parts = []
    for name, value in fields.items():
        for each_ in value if isinstance(value, list) else [value]:
            parts.append(f"{name} {{ {each_} }}" if name.endswith("_param") else f"{name}: {each_}")
    return " ".join(parts)


def caffe_text(trace: Trace) -> str:
    """A network as Caffe would have it, of the kinds of op that CNNs of its time are made of."""
    lines = [
        f'input: "{name}" input_shape {{ dim: 1 {" ".join(f"dim: {size}" for size in dims[1:])} }}'
        for name, dims in trace.inputs.items()
    ]
    for op in trace.ops:
        k: Any = op.kind
        more, kind = "", ""
        if k.op in ("conv2d", "max_pool", "avg_pool"):
            sizes = shown(
                kernel_h=k.kernel[0],
                kernel_w=k.kernel[1],
                stride_h=k.stride[0],
                stride_w=k.stride[1],
                pad_h=k.pad[0],
                pad_w=k.pad[1],
            )
        if k.op == "conv2d":
            kind, more = "Convolution", f"convolution_param {{ {sizes} {shown(num_output=op.shape[1], group=k.groups)} "
            more += f"bias_term: {str(k.bias).lower()} dilation: {k.dilation[0]} }}"
        elif k.op.endswith("_pool") and k.op != "global_avg_pool":
            rounded = "CEIL" if k.ceil_mode else "FLOOR"
            kind, more = (
                "Pooling",
                f"pooling_param {{ {sizes} pool: {'MAX' if k.op == 'max_pool' else 'AVE'} round_mode: {rounded} }}",
            )
        elif k.op == "global_avg_pool":
            kind, more = "Pooling", "pooling_param { pool: AVE global_pooling: true }"
        elif k.op == "linear":
            kind, more = "InnerProduct", f"inner_product_param {{ num_output: {op.shape[-1]} bias_term: {str(k.bias).lower()} }}"
        elif k.op == "lrn":
            kind, more = "LRN", f"lrn_param {{ local_size: {k.size} }}"
        elif k.op == "reshape":
            kind, more = "Flatten", ""
        else:
            kind = {
                "relu": "ReLU",
                "dropout": "Dropout",
                "softmax": "Softmax",
                "concat": "Concat",
                "add": "Eltwise",
                "batch_norm": "BatchNorm",
                "sigmoid": "Sigmoid",
                "tanh": "TanH",
            }[k.op]
        bottoms = " ".join(f'bottom: "{name}"' for name in op.inputs)
        made = f"{op.name}.raw" if k.op == "batch_norm" else op.name
        lines.append(f'layer {{ name: "{made}" type: "{kind}" {bottoms} top: "{made}" {more} }}')
        if k.op == "batch_norm":
            lines.append(
                f'layer {{ name: "{op.name}" type: "Scale" bottom: "{made}" top: "{op.name}" scale_param {{ bias_term: true }} }}'
            )
    return "\n".join(lines)


@each("name", ["alexnet", "overfeat", "vgg_16", "googlenet", "nin", "resnet_50@caffe", "inception_bn@caffe", "squeezenet_1_0"])
def test_networks_written_as_prototxt_cost_what_they_did(tmp_path: Path, name: str):
    shipped = load(name)
    place = tmp_path / f"{name}.prototxt"  # each its own: what was read from a path is kept
    place.write_text(caffe_text(shipped))
    again = load(str(place))
    assert again.bind(N=3).flop == shipped.bind(N=3).flop
    own = tmp_path / f"{name}.jsonl"
    own.write_text(dumps(shipped))
    for hw in ("tesla_k40", "i7_6700k"):
        mine, theirs = (archsim.estimate(net=str(file), hw=hw, batch=16).latency_s for file in (place, own))
        assert mine == pytest.approx(theirs, rel=1e-9), hw


WRONG = [
    ("layer { name: ", "line 1: has an end where a value should be"),
    ("layer } ", "where"),
    (HEAD.replace("dim: 4", "dim: -4"), r"input 'data' has the shape \[-4, 3, 32, 32\]"),
    (HEAD, "has no layers that compute anything"),
    (
        HEAD + CONV.replace('bottom: "data"', 'bottom: "date"'),
        r"layer 'conv1' \(Convolution\) reads 'date', which nothing makes before",
    ),
    (
        HEAD + CONV.replace("stride: 2 pad", "stride: 0 pad"),
        r"layer 'conv1' \(Convolution\) has stride 0, which is no whole number from 1",
    ),
    (HEAD + CONV.replace("kernel_size: 3 stride: 2 pad", "kernel_size: 99 stride: 2 pad"), "window of 99"),
    (HEAD + CONV.replace("num_output: 8", "num_output: 4611686018427387904"), "has num_output 4611686018427387904"),
    (HEAD + CONV.replace("num_output: 8", "num_output: nan"), "has num_output 'nan'"),
    (HEAD + 'layer { name: "d" type: "Data" top: "data2" }', "reads a database, which does not say how large its images are"),
    ("a { " * 60, "line 1: is nested more than 16 deep"),
    ("\x01\x02", "line 1: is no text of a protobuf message"),
]


@each(("text", "words"), WRONG)
def test_a_file_that_cannot_be_is_refused_in_one_line(tmp_path: Path, text: str, words: str):
    with pytest.raises(InputError, match=words) as caught:
        read(text, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_layer_that_nobody_knows_is_refused_by_name(tmp_path: Path):
    odd = HEAD + 'layer { name: "odd" type: "MyLayer" bottom: "data" top: "odd" }'
    with pytest.raises(
        Unsupported, match=r"layer 'odd' is of the type 'MyLayer', which is not read: archsim.register_op\('MyLayer'"
    ):
        read(odd, tmp_path)


def test_changed_files_end_in_a_refusal(tmp_path: Path):
    chance, whole = random.Random(3), HEAD + CONV
    for _ in range(300):
        text = list(whole)
        for _ in range(chance.randrange(1, 6)):
            text[chance.randrange(len(text))] = chance.choice('{}:"0129.-+e#x <>[],')
        with contextlib.suppress(ArchsimError):  # nothing else
            read("".join(text), tmp_path)
