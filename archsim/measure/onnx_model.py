"""A trace as an ONNX model with random weights; only `model_of` needs `onnx`."""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.base.errors import Unsupported
from archsim.measure.graph import Array, Graph
from archsim.measure.nodes import BUILDERS
from archsim.trace.trace import BoundTrace

OPSET, IR_VERSION = 20, 9  # the first opset with Gelu; what onnxruntime 1.17 and newer read


def missing_builders(trace: BoundTrace) -> list[str]:
    """The op kinds of a network that cannot be built, sorted."""
    return sorted({op.kind.op for op in trace.ops} - set(BUILDERS))


def build(trace: BoundTrace, hollow: bool = False) -> Graph:
    """The graph of a network; with `hollow` weights it is only read. Unsupported names op kinds that cannot be built."""
    missing = missing_builders(trace)
    if missing:
        raise Unsupported(f"network {trace.name} cannot be built: it has {', '.join(missing)}")
    graph = Graph(trace, hollow=hollow)
    for op in trace.ops:
        BUILDERS[op.kind.op](graph, op)
    return graph


def index_limits(trace: BoundTrace) -> dict[str, int]:
    """The inputs that hold indices, with their upper limits."""
    return {name: int(getattr(op.kind, "vocabulary", 1)) for op in trace.ops if op.kind.op == "embedding"
            for name in op.inputs if name in trace.inputs}  # fmt: skip


def feeds(trace: BoundTrace, seed: int = 1) -> dict[str, Array]:
    """Random inputs."""
    random, limits = np.random.default_rng(seed), index_limits(trace)
    return {
        name: random.integers(0, limits[name], shape) if name in limits else random.standard_normal(shape, dtype=np.float32)
        for name, shape in trace.inputs.items()
    }  # fmt: skip


def model_of(graph: Graph) -> bytes:
    """The serialised ONNX model; its weights are external data, passed to the session as arrays."""
    from onnx import TensorProto, helper

    limits, trace = index_limits(graph.trace), graph.trace
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64 if name in limits else TensorProto.FLOAT, shape)
              for name, shape in trace.inputs.items()]  # fmt: skip
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in trace.outputs]
    nodes = [helper.make_node(n.kind, n.inputs, n.outputs, name=n.name, **n.attributes) for n in graph.nodes]
    stored = [_initializer(name, values) for name, values in graph.weights.items()]
    whole = helper.make_graph(nodes, "archsim", inputs, outputs, initializer=stored)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return bytes(model.SerializeToString())


def is_external(values: Array) -> bool:
    """Whether an array is external data; small integers (shapes, bounds) must be visible to the optimiser."""
    return values.dtype == np.float32 and values.ndim > 0


def _initializer(name: str, values: Array) -> Any:
    from onnx import TensorProto, numpy_helper

    if not is_external(values):
        return numpy_helper.from_array(values, name)
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=values.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="handed over in memory")
    return tensor
