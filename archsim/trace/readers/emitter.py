"""`Emitter`: one node on its way to ops of a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archsim.trace.dims import Shape, elements
from archsim.trace.kind import Kind
from archsim.trace.kinds.general import Traffic
from archsim.trace.readers.call import Call
from archsim.trace.readers.draft import Draft
from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import ModelNode

BYTE = 8  # bits


class Emitter:
    """One node on its way to ops: its inputs by their names in the trace, and what it makes."""

    def __init__(self, graph: NodeGraph, draft: Draft, node: ModelNode) -> None:
        self.graph, self.draft, self.node = graph, draft, node
        self.call: Call = graph.call(node)
        self.name = node.name or next(filter(None, node.outputs))

    @property
    def shape(self) -> Shape:
        """The shape of the first result."""
        return self.graph.shape(self.node.outputs[0])

    def tensor(self, i: int = 0) -> str:
        """Input i in the trace."""
        return self.draft.name_of(self.node.inputs[i])

    def moving(self) -> list[str]:
        """The inputs that depend on those of the model, in the trace, as the shapes that the model has for them."""
        return [self.draft.name_of(name) for name in self.graph.moving(self.node)]

    def fixed(self, i: int) -> bool:
        """Whether input i is there, and the same whatever the model is given."""
        return self.call.has(i) and self.call.known(i).fixed

    def add(self, kind: Kind, *inputs: str, shape: Shape | None = None, output: int = 0, part: str = "") -> str:
        """An op that makes a result, or a `part` on the way to it."""
        made = self.graph.shape(self.node.outputs[output]) if shape is None else shape
        name = self.draft.add(kind, inputs, made, f"{self.name}/{part}" if part else self.name)
        if not part:
            self.draft.alias(self.node.outputs[output], name)
        return name

    def learned(self) -> int:
        """Values that the file holds of the inputs, each tensor once; numbers alone, indices and truth values are not learned."""
        held = {self.graph.stored(name): self.graph.held(name) for name in self.node.inputs if name}
        return sum([size for one in held.values() if one is not None and (size := elements(one.shape)) > 1])

    def narrow(self, i: int) -> int:
        """Bits of the weights in input i, where a file that multiplies wider values holds them in a byte or less; else 0."""
        held = self.graph.held(self.node.inputs[i])
        return held.bits if held is not None and held.bits <= BYTE and self.graph.inferred.model.dtype != "int8" else 0

    def bounded(self, *inputs: str, each: float = 0.0, operator: str = "", own: int = 0) -> None:
        """An op of which only the arithmetic and the traffic of its tensors are known; `each` FLOP for each result."""
        work = max(1, int(each)) if each else 0
        self.add(Traffic(operator=operator or self.node.kind, each=work, own=own, learned=self.learned()), *inputs)

    def end(self, tensor: str, output: int = 0) -> None:
        """A tensor of the trace as a result, under the shape that the result has."""
        name = self.draft.view(tensor, self.graph.shape(self.node.outputs[output]), f"{self.name}/view")
        self.draft.alias(self.node.outputs[output], name)

    def viewed(self, i: int, shape: Shape, part: str = "view") -> str:
        """Input i under another shape."""
        return self.draft.view(self.tensor(i), shape, f"{self.name}/{part}")


Rule = Callable[[Emitter], Any]
