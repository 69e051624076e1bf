"""A trace as a graph of ONNX nodes with random weights: plain values here, `onnx` itself only in `model_of`.

A tensor keeps its name from the trace, and so does the node that makes it; further nodes of the same op are called
`op/1`, `op/2`, ... so that a profile leads back to the op.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.errors import Unsupported
from archsim.measure.nodes import BUILDERS, Array
from archsim.trace.trace import BoundOp, BoundTrace

OPSET, IR_VERSION = 20, 9  # the first opset with Gelu; what onnxruntime 1.17 and newer read


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: operator, name, tensors, attributes."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class Graph:
    """The nodes and weights of a network as they are collected, op by op."""

    def __init__(self, trace: BoundTrace, seed: int = 0) -> None:
        self.trace = trace
        self.nodes: list[Node] = []
        self.weights: dict[str, Array] = {}
        self._random = np.random.default_rng(seed)
        for op in trace.ops:
            BUILDERS[op.kind.op](self, op)

    def weight(self, op: BoundOp, label: str, shape: Sequence[int], fan_in: int = 0) -> str:
        """Random values that keep the size of what flows through; small ones where there is no fan-in."""
        scale = math.sqrt(2.0 / fan_in) if fan_in else 0.01
        values = self._random.standard_normal(tuple(shape), dtype=np.float32)
        values *= np.float32(scale)
        return self.constant(op, label, values)

    def constant(self, op: BoundOp, label: str, values: Array) -> str:
        """A named array."""
        name = f"{op.name}:{label}"
        self.weights[name] = values
        return name

    def whole(self, op: BoundOp, label: str, *values: int) -> str:
        """A named vector of whole numbers."""
        return self.constant(op, label, np.array(values, np.int64))

    def node(
        self, op: BoundOp, kind: str, inputs: Sequence[str], step: int = 0, outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """One node of an op, its last one unless `step` numbers it; gives the name of its first output."""
        name = f"{op.name}/{step}" if step else op.name
        made = tuple(outputs) or (name,)
        given = {key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()}
        self.nodes.append(Node(kind=kind, name=name, inputs=tuple(inputs), outputs=made, attributes=given))
        return next(filter(None, made))


def missing_builders(trace: BoundTrace) -> list[str]:
    """The op kinds of a network that cannot be built, sorted."""
    return sorted({op.kind.op for op in trace.ops} - set(BUILDERS))


def build(trace: BoundTrace) -> Graph:
    """The graph of a network; Unsupported names the op kinds that cannot be built."""
    missing = missing_builders(trace)
    if missing:
        raise Unsupported(f"network {trace.name} cannot be built: it has {', '.join(missing)}")
    return Graph(trace)


def index_limits(trace: BoundTrace) -> dict[str, int]:
    """The inputs that hold indices, with the number of rows they may point at."""
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
    """The serialised ONNX model; its weights are external, to be handed to the session as arrays."""
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
    """Whether an array stays outside the model: small whole numbers (shapes, bounds) must be seen by the optimiser."""
    return values.dtype == np.float32 and values.ndim > 0


def _initializer(name: str, values: Array) -> Any:
    from onnx import TensorProto, numpy_helper

    if not is_external(values):
        return numpy_helper.from_array(values, name)
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=values.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="handed over in memory")
    return tensor
