"""`Graph`: the ONNX nodes and random weights of a network, as plain values without `onnx`.

A tensor and the node that makes it keep the tensor's name in the trace; further nodes of the same op are called `op/1`, `op/2`,
..., so that a profile leads back to the op.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.trace.trace import BoundOp, BoundTrace

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One node: operator, name, tensors, attributes."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class Graph:
    """The nodes and weights of a network, collected op by op; `hollow` weights have a shape and no values of their own."""

    def __init__(self, trace: BoundTrace, seed: int = 0, hollow: bool = False) -> None:
        self.trace, self.hollow = trace, hollow
        self.nodes: list[GraphNode] = []
        self.weights: dict[str, Array] = {}
        self._random = np.random.default_rng(seed)

    def weight(self, op: BoundOp, label: str, shape: Sequence[int], fan_in: int = 0) -> str:
        """Random values scaled by fan-in, so that activations keep their magnitude; small ones without a fan-in."""
        if self.hollow:
            return self.constant(op, label, np.broadcast_to(np.float32(0.0), tuple(shape)))
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
        """One node of an op, its last one unless `step` numbers it; returns the name of its first output."""
        name = f"{op.name}/{step}" if step else op.name
        made = tuple(outputs) or (name,)
        given = {key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()}
        self.nodes.append(GraphNode(kind=kind, name=name, inputs=tuple(inputs), outputs=made, attributes=given))
        return next(filter(None, made))
