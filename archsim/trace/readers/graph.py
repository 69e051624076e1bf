"""`NodeGraph`: the nodes that run, with what is known of their tensors, as patterns see and change them."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archsim.trace.dims import Shape
from archsim.trace.readers.infer import Inferred, single
from archsim.trace.readers.model import Call, KnownTensor, ModelNode, StoredTensor

TURNED = ".turned"  # ending of the name of weights that a reader turned
SAME_VALUES = ("Transpose", "Cast", "Identity", "DequantizeLinear", "Reshape", "Unsqueeze", "Squeeze", "Expand")
OWN = "archsim"  # domain of nodes that patterns make


class NodeGraph:
    """The nodes of a model whose results depend on its inputs, in an order in which they run.

    What follows from constants and shapes alone is worked out when a model is loaded, and is no part of a run.
    """

    def __init__(self, inferred: Inferred) -> None:
        self.inferred = inferred
        self.known: dict[str, KnownTensor] = dict(inferred.known)
        self.outputs: list[str] = []
        self._ends: set[str] = set()
        self._end_in([name for name in inferred.model.outputs if not self.known[name].fixed])
        runs = [node for node in inferred.model.nodes if any(not self.known[name].fixed for name in node.outputs if name)]
        self._place: dict[ModelNode, float] = {node: float(i) for i, node in enumerate(runs)}
        self._places = [float(i) for i in range(len(runs))]  # sorted; those of nodes that are gone, too
        self.producer: dict[str, ModelNode] = {name: node for node in runs for name in node.outputs if name}
        self.all_makers = {name: node for node in inferred.model.nodes for name in node.outputs}  # those of fixed tensors, too
        self._stored: dict[str, str] = {}
        self._readers: dict[str, dict[ModelNode, None]] = {}
        for node in runs:
            self._enter(node)

    @property
    def nodes(self) -> list[ModelNode]:
        """The nodes in order."""
        return sorted(self._place, key=lambda node: self._place[node])

    def call(self, node: ModelNode) -> Call:
        """A node with what is known of its inputs."""
        return Call(node=node, inputs=[self.known.get(name) if name else None for name in node.inputs],
                    opset=self.inferred.model.opset)  # fmt: skip

    def readers(self, tensor: str) -> list[ModelNode]:
        """The nodes that read a tensor."""
        return [*self._readers.get(tensor, ())]

    def ends(self, tensor: str) -> bool:
        """Whether a tensor is a result of the model."""
        return tensor in self._ends

    def reader(self, tensor: str, *kinds: str) -> ModelNode | None:
        """The only node that reads a tensor, if it is of these kinds, and the tensor is no output."""
        found = self._readers.get(tensor, {})
        if len(found) != 1 or self.ends(tensor):
            return None
        node = next(iter(found))
        return node if not kinds or node.kind in kinds else None

    def maker(self, tensor: str, *kinds: str) -> ModelNode | None:
        """The node that makes a tensor, if it is of these kinds."""
        node = self.producer.get(tensor)
        return node if node is not None and (not kinds or node.kind in kinds) else None

    def stored(self, tensor: str) -> str:
        """The tensor of the file whose values a fixed one has, in another order, shape or format."""
        way = []
        while tensor not in self._stored:
            maker = self.all_makers.get(tensor)
            if maker is None or maker.kind not in SAME_VALUES:
                self._stored[tensor] = tensor.removesuffix(TURNED)
                break
            way.append(tensor)
            tensor = maker.inputs[0]
        self._stored.update(dict.fromkeys(way, self._stored[tensor]))
        return self._stored[tensor]

    def held(self, tensor: str) -> StoredTensor | None:
        """The tensor of the file whose values a fixed one has; None where they are worked out, and where nobody learns them."""
        found = self.inferred.model.constants.get(self.stored(tensor)) if self.known[tensor].fixed else None
        return found if found is not None and found.bits else None

    def shape(self, tensor: str) -> Shape:
        """The shape of a tensor."""
        return self.known[tensor].shape

    def fixed(self, tensor: str) -> bool:
        """Whether a tensor is the same whatever the inputs hold."""
        return self.known[tensor].fixed

    def number(self, tensor: str) -> float | None:
        """The one value of a tensor; None where it has several, or is not known."""
        known = self.known.get(tensor)
        return None if known is None else single(known.value)

    def moving(self, node: ModelNode) -> list[str]:
        """The inputs of a node that depend on the model's inputs."""
        return [name for name in node.inputs if name and not self.known[name].fixed]

    def other(self, node: ModelNode, tensor: str) -> str:
        """The other one of two inputs; empty where there are not two."""
        if len(node.inputs) != 2 or tensor not in node.inputs:
            return ""
        return node.inputs[1] if node.inputs[0] == tensor else node.inputs[0]

    def learned(self, node: ModelNode, tensor: str) -> str:
        """The other input of a node of two, where it is fixed; else empty."""
        found = self.other(node, tensor)
        return found if found and self.known[found].fixed else ""

    def replace(
        self, nodes: Iterable[ModelNode], kind: str, inputs: Sequence[str], outputs: Sequence[str], *, name: str = "",
        domain: str = OWN, **attributes: Any,
    ) -> ModelNode:  # fmt: skip
        """One node in place of some, where the last of them stands; it is called as the one that made its first output."""
        gone = [*dict.fromkeys(nodes)]
        place = max(self._place[node] for node in gone)
        called = name or self.producer[outputs[0]].name
        made = ModelNode(
            kind=kind, name=called, inputs=tuple(inputs), outputs=tuple(outputs), attributes=attributes, domain=domain
        )
        self.remove(gone)
        self._place[made] = place
        self.producer.update({output: made for output in outputs if output})
        self._enter(made)
        return made

    def remove(self, nodes: Iterable[ModelNode]) -> None:
        """Take nodes out."""
        for node in nodes:
            del self._place[node]
            for output in node.outputs:
                if self.producer.get(output) is node:
                    del self.producer[output]
            for tensor in dict.fromkeys(node.inputs):
                self._readers.get(tensor, {}).pop(node, None)

    def bypass(self, node: ModelNode, source: str) -> None:
        """Take out a node whose first result is one of its inputs: who reads the one reads the other."""
        made = node.outputs[0]
        self.remove([node])
        self.rename(made, source)

    def bypass_all(self, same: Mapping[str, str]) -> None:
        """Take out the makers of tensors that are others, each with the one that it is; who reads the one reads the other."""
        self.remove([self.producer[made] for made in same])
        for reader in dict.fromkeys(node for made in same for node in self.readers(made)):
            self._reread(reader, same)
        self._end_in([same.get(tensor, tensor) for tensor in self.outputs])

    def rename(self, made: str, source: str) -> None:
        """Let all that reads one tensor read another."""
        for reader in self.readers(made):
            self._reread(reader, {made: source})
        if self.ends(made):
            self._end_in([source if tensor == made else tensor for tensor in self.outputs])

    def _reread(self, reader: ModelNode, same: Mapping[str, str]) -> None:
        """Let one node read other tensors in place of some."""
        place = self._place[reader]
        self.remove([reader])
        changed = dataclasses.replace(reader, inputs=tuple([same.get(t, t) for t in reader.inputs]))
        self._place[changed] = place
        self.producer.update({output: changed for output in changed.outputs if output})
        self._enter(changed)

    def add_tensor(self, name: str, shape: Shape) -> str:
        """A tensor of a pattern's own, under a name that is not taken."""
        free, number = name, 1
        while free in self.known:
            number += 1
            free = f"{name}.{number}"
        self.known[free] = KnownTensor(shape=tuple(shape))
        return free

    def insert(self, before: ModelNode, kind: str, inputs: Sequence[str], output: str, name: str, **attributes: Any) -> ModelNode:
        """One more node, just before another."""
        made = ModelNode(kind=kind, name=name, inputs=tuple(inputs), outputs=(output,), attributes=attributes, domain=OWN)
        self._place[made] = self._before(before)
        insort(self._places, self._place[made])
        self.producer[output] = made
        self._enter(made)
        return made

    def _before(self, node: ModelNode) -> float:
        at = self._place[node]
        first = bisect_left(self._places, at)
        return (at + (self._places[first - 1] if first else at - 1.0)) / 2.0

    def without_dead(self) -> None:
        """Take out what no output needs."""
        needed = set(self.outputs)
        dead = []
        for node in reversed(self.nodes):
            if needed.isdisjoint(node.outputs):
                dead.append(node)
            else:
                needed.update(node.inputs)
        self.remove(dead)

    def without_unread(self, tensors: Iterable[str]) -> None:
        """Take out the makers of those of these tensors that nothing reads, and what only they read."""
        waiting = [*tensors]
        while waiting:
            maker = self.producer.get(waiting.pop())
            if maker is not None and not any(self._readers.get(name) or self.ends(name) for name in maker.outputs):
                self.remove([maker])
                waiting.extend(maker.inputs)

    def _end_in(self, outputs: list[str]) -> None:
        self.outputs, self._ends = outputs, set(outputs)

    def _enter(self, node: ModelNode) -> None:
        for tensor in filter(None, node.inputs):
            self._readers.setdefault(tensor, {})[node] = None


def attribute(node: ModelNode, name: str, default: Any = None) -> Any:
    """An attribute of a node."""
    found: Mapping[str, Any] = node.attributes
    return found.get(name, default)
