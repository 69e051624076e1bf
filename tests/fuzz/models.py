"""Hostile models of other people's formats: ONNX whose messages are changed field by field, and Caffe's text."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from ..trace.onnx_models import onnx_model, small_cnn, whole
from ..trace.test_onnx_reader import GELU, LAYER_NORM, attention_nodes
from . import mutate

EXPORTS = Path(__file__).parents[1] / "trace" / "exports"
SIZES = (-(2**63), -8, -1, 0, 1, 2, 3, 7, 64, 224, 2**31, 2**53, 2**62, 2**63 - 1)
REALS = (0.0, -1.0, 0.5, 1e38, float("inf"), float("nan"))
OPERATORS = (
    "Conv",
    "Relu",
    "Add",
    "MatMul",
    "Gemm",
    "Reshape",
    "Concat",
    "Split",
    "Slice",
    "Gather",
    "Softmax",
    "Resize",
    "Expand",
    "Tile",
    "Pad",
    "LSTM",
    "TopK",
    "Range",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Where",
    "If",
    "Einsum",
    "ReduceMean",
    "Shape",
    "Odd",
)
CAFFE = """name: "tiny" input: "data" input_shape { dim: 4 dim: 3 dim: 32 dim: 32 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 3 stride: 2 } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "split" type: "Slice" bottom: "pool1" top: "a" top: "b" slice_param { axis: 1 slice_point: 3 } }
layer { name: "cat" type: "Concat" bottom: "a" bottom: "b" top: "cat" }
layer { name: "flat" type: "Reshape" bottom: "cat" top: "flat" reshape_param { shape { dim: 0 dim: -1 } } }
layer { name: "fc" type: "InnerProduct" bottom: "flat" top: "fc" inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""


@cache
def seeds() -> tuple[bytes, ...]:
    """Sound models, none of them long."""
    tensors = [whole("heads", 0, 0, 4, 16), whole("joined", 0, 0, 64)]
    made = [
        small_cnn(),
        small_cnn(2),
        onnx_model(attention_nodes(), {"x": ["N", 16, 64]}, ["y"], tensors),
        onnx_model([*GELU, *[("Relu", "y", "z")]], {"x": ["N", 8]}, ["z"]),
        onnx_model(LAYER_NORM, {"x": ["N", 8]}, ["y"]),
    ]
    exported = [gzip.decompress((EXPORTS / f"{name}.onnx.gz").read_bytes()) for name in ("alexnet", "resnet18")]
    return (*(model.SerializeToString() for model in made), *exported)


def onnx_bytes(random: Random) -> bytes:
    """A model with some of its fields or bytes changed."""
    data = random.choice(seeds())
    if random.random() < 0.15:
        return mutate.bytes_of(data, random)
    from onnx import ModelProto

    model = ModelProto.FromString(data)
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        _change(model, random)
    return model.SerializeToString()


def _change(model: Any, random: Random) -> None:
    graph = model.graph
    node = random.choice(graph.node)
    names = [name for each in graph.node for name in (*each.input, *each.output)] + [info.name for info in graph.input]
    what = random.randrange(9)
    if what == 0 and graph.initializer:
        tensor = random.choice(graph.initializer)
        grown = [*tensor.dims, random.choice(SIZES)]
        tensor.dims[:] = grown if random.random() < 0.3 else [random.choice(SIZES) for _ in tensor.dims]
    elif what == 1 and graph.input:
        dims = random.choice(graph.input).type.tensor_type.shape.dim
        if dims:
            dim = random.choice(dims)
            if random.random() < 0.7:
                dim.dim_value = random.choice(SIZES)
            else:
                dim.dim_param = random.choice(("batch", "", "a + b", "2*batch", "x" * 300, "__import__('os')", "1" * 5000))
    elif what == 2 and node.input:
        node.input[random.randrange(len(node.input))] = random.choice([*names, "", "nowhere"])
    elif what == 3:
        node.op_type = random.choice(OPERATORS)
    elif what == 4 and node.attribute:
        attribute = random.choice(node.attribute)
        if attribute.ints:
            attribute.ints[random.randrange(len(attribute.ints))] = random.choice(SIZES)
        attribute.i, attribute.f = random.choice(SIZES), random.choice(REALS)
        attribute.type = random.randrange(0, 14)
    elif what == 5 and node.output:
        node.output[random.randrange(len(node.output))] = random.choice([*names, ""])
    elif what == 6:
        graph.node.add().CopyFrom(node)
    elif what == 7:
        graph.node.remove(node)
    else:
        tensors = [tensor for tensor in graph.initializer if tensor.raw_data]
        if tensors:
            tensor = random.choice(tensors)
            tensor.raw_data = random.randbytes(len(tensor.raw_data))
    if not graph.node:
        graph.node.add(op_type="Relu", input=["x"], output=["y"])


@cache
def profiles() -> tuple[str, ...]:
    """Sound profiles: of PyTorch on a GPU, and of onnxruntime."""
    from ..trace.kineto import events

    node = {"cat": "Node", "pid": 1, "tid": 1, "dur": 46, "ts": 20, "ph": "X", "name": "conv_kernel_time", "args": {
        "op_name": "Conv", "input_type_shape": [{"float": [4, 3, 32, 32]}, {"float": [16, 3, 3, 3]}],
        "output_type_shape": [{"float": [4, 16, 32, 32]}]}}  # fmt: skip
    run = {"cat": "Session", "pid": 1, "tid": 1, "dur": 100, "ts": 10, "ph": "X", "name": "model_run", "args": {}}
    return json.dumps({"traceEvents": [*events(2)]}), json.dumps([node, run])


def chakra_traces() -> tuple[bytes, ...]:
    """Sound execution traces: one of nodes that state their work, and one that archsim wrote."""
    from ..trace.test_chakra import DRAWN_UP, traced

    return _chakra(traced(*DRAWN_UP)), _chakra(_own_trace())


@cache
def _own_trace() -> Any:
    from archsim.estimation.estimate import estimate
    from archsim.estimation.execution_trace import execution_trace
    from archsim.estimation.request import make_request
    from archsim.schedule.observer import Recording

    seen = Recording()
    found = estimate("lenet_5", "gtx_1080", observers=[seen])
    return execution_trace(found, make_request("lenet_5", "gtx_1080").trace, seen, "estimate")


def _chakra(trace: Any) -> bytes:
    from archsim.trace.chakra.forms import binary

    return binary(trace)


@cache
def _recorded() -> str:
    from ..trace.recorded import recorded
    from ..trace.test_torch_reader import X, call, program

    calls = (
        call("aten.conv2d.default", "c", [4, 8, 16, 16], X, {"tensor": "w"}, None, [2, 2], [1, 1], [1, 1], 1),
        call("aten.batch_norm.default", "n", [4, 8, 16, 16], {"tensor": "c"}, {"tensor": "g"}, {"tensor": "g"}, {"tensor": "g"},
             {"tensor": "g"}, False, 0.1, 1e-5, True), call("aten.relu_.default", "r", [4, 8, 16, 16], {"tensor": "n"}),
        call("aten.max_pool2d.default", "p", [4, 8, 8, 8], {"tensor": "r"}, [2, 2], [2, 2], [0, 0], [1, 1], False),
        call("aten.mean.dim", "m", [4, 8], {"tensor": "p"}, [2, 3]),
        call("aten.linear.default", "f", [4, 10], {"tensor": "m"}, {"tensor": "v"}, None),
        call("aten.cat.default", "y", [4, 18], [{"tensor": "f"}, {"tensor": "m"}], 1),
        call("aten.slice.Tensor", "z", [4, 5], {"tensor": "y"}, 1, 0, 5),
        call("aten.softmax.int", "o", [4, 5], {"tensor": "z"}, -1),
    )  # fmt: skip
    return recorded(program(*calls, x=[4, 3, 32, 32], w=[8, 3, 3, 3], g=[8], v=[10, 8]))


def chakra_bytes(random: Random) -> bytes:
    """A trace with some of its nodes, attributes or bytes changed; the JSON form begins with a brace."""
    from archsim.trace.chakra.forms import binary, json_text

    from ..trace.test_chakra import DRAWN_UP, traced

    if random.random() < 0.35:
        return mutate.text_of(_recorded(), random).encode("utf-8", "surrogatepass")
    trace = traced(*DRAWN_UP) if random.random() < 0.6 else _own_trace()
    if random.random() < 0.4:
        text = mutate.text_of(json_text(trace), random)
        return text.encode("utf-8", "surrogatepass")
    if random.random() < 0.4:
        return mutate.bytes_of(binary(trace), random)
    return binary(replace(trace, nodes=tuple(_changed(node, random) for node in trace.nodes)))


def _changed(node: Any, random: Random) -> Any:
    if random.random() < 0.7:
        return node
    return replace(
        node, type=random.choice(("COMP_NODE", "MEM_LOAD_NODE", "COMM_COLL_NODE", "COMM_SEND_NODE", "METADATA_NODE", "odd")),
        data=tuple(random.choice((*node.data, 0, 7, 10, 11, 12, 99)) for _ in range(random.randrange(3))),
        attributes={name: random.choice((*map(abs, SIZES[:-1]), value)) for name, value in node.attributes.items()},
        outputs=replace(node.outputs, shapes=random.choice(("[[0]]", "[[4, 4]]", "[" * 300, f"[[{2**53 + 1}]]"))),
    )  # fmt: skip
