"""Small ONNX models, written node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Node = tuple[Any, ...]  # operator, inputs, outputs, attributes


def hollow(name: str, *shape: int, dtype: int = FLOAT) -> TensorProto:
    """A tensor whose values are in a file that is not there."""
    tensor = TensorProto(name=name, data_type=dtype, dims=shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../../../etc/passwd")
    return tensor


def whole(name: str, *values: int) -> TensorProto:
    """A vector of whole numbers."""
    return numpy_helper.from_array(np.array(values, np.int64), name)


def number(name: str, value: float) -> TensorProto:
    """One number."""
    return numpy_helper.from_array(np.array(value, np.float32), name)


def onnx_model(
    nodes: Sequence[Node],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    tensors: Sequence[TensorProto] = (),
    *,
    opset: int = 17,
    integers: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> ModelProto:
    """A model of nodes (operator or domain.operator, inputs, outputs, attributes)."""
    made = []
    for operator, reads, makes, *more in nodes:
        domain, _, kind = operator.rpartition(".")
        made.append(
            helper.make_node(kind, reads.split(), makes.split(), name=f"n{len(made)}", domain=domain, **(more[0] if more else {}))
        )
    given = [helper.make_tensor_value_info(name, INT64 if name in integers else FLOAT, dims) for name, dims in inputs.items()]
    ends = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    stated = [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in (shapes or {}).items()]
    graph = helper.make_graph(made, "graph", given, ends, initializer=list(tensors), value_info=stated)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("my", 1)])


def written(model: ModelProto, folder: Path, name: str = "model.onnx") -> str:
    """The path of a model."""
    place = folder / name
    place.write_bytes(model.SerializeToString())
    return str(place)


def small_cnn(batch: int | str = "batch") -> ModelProto:
    """Convolution, batch normalisation, rectifier, pooling, flattening by the arithmetic of shapes, and a classifier."""
    nodes = [
        ("Conv", "x w b", "c", {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
        ("BatchNormalization", "c s s s s", "n"),
        ("Relu", "n", "r"),
        ("MaxPool", "r", "p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Shape", "p", "shape"),
        ("Gather", "shape zero", "rows"),
        ("Unsqueeze", "rows first", "rows1"),
        ("Concat", "rows1 rest", "flat", {"axis": 0}),
        ("Reshape", "p flat", "f"),
        ("Gemm", "f fw fb", "y", {"transB": 1}),
    ]
    tensors = [
        hollow("w", 16, 3, 3, 3),
        hollow("b", 16),
        hollow("s", 16),
        hollow("fw", 10, 4096),
        hollow("fb", 10),
        numpy_helper.from_array(np.array(0, np.int64), "zero"),
        whole("first", 0),
        whole("rest", -1),
    ]
    return onnx_model(nodes, {"x": [batch, 3, 32, 32]}, ["y"], tensors)
