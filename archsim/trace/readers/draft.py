"""`Draft`: the ops of a trace while nodes become ops, two drafts merged into one with symbols; `Emitter`: one node of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from archsim.base.errors import InputError
from archsim.trace.dims import MOST_DIMS, Dim, Shape, elements, show
from archsim.trace.kind import Kind
from archsim.trace.kinds.general import Traffic
from archsim.trace.kinds.shaping import Reshape
from archsim.trace.readers.graph import NodeGraph
from archsim.trace.readers.model import Call, ModelNode
from archsim.trace.trace import Op
from archsim.trace.values import UniqueNames, printable, read, written

POWER = 2  # of a symbol in one dimension, at most


class Draft:
    """Ops by the names of their tensors; names of a trace are printable, not long, and used once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.ops: list[Op] = []
        self.inputs: dict[str, Shape] = {}
        self.shapes: dict[str, Shape] = {}
        self.names: dict[str, str] = {}
        self.outputs: tuple[str, ...] = ()
        self._owners: dict[str, str] = {}  # learned tensors of the model -> the op that counts them
        self._free = UniqueNames()

    def input(self, tensor: str, shape: Shape) -> None:
        """An input of the network."""
        name = self._free.free(printable(tensor) or "op")
        self.names[tensor] = name
        self.inputs[name] = self.shapes[name] = shape or (1,)

    def name_of(self, tensor: str) -> str:
        """The name of a tensor of the model in the trace."""
        return self.names[tensor]

    def alias(self, tensor: str, name: str) -> None:
        """A tensor of the model that is a tensor of the trace."""
        self.names[tensor] = name

    def add(self, kind: Kind, inputs: Sequence[str], shape: Shape, name: str) -> str:
        """One op that makes a tensor of this shape; returns its name. Raises InputError where the kind makes another.

        `kind` is read once more as if a trace file held it, so that the limits of its attributes hold here too.
        """
        found, problems = read(type(kind), written(kind), ())
        shape = shape or (1,)
        if not problems and found is not None:
            if len(shape) > MOST_DIMS:
                problems = [f"makes {show(shape)}; a tensor has at most {MOST_DIMS} dimensions here"]
            try:
                made = kind.shape([self.shapes[tensor] for tensor in inputs], shape)
                if tuple(made) != tuple(shape):
                    problems = [f"makes {show(made)}, not {show(shape)}"]
            except ValueError as error:
                problems = [str(error)]
        if problems:
            raise InputError(self.path, [f"{name!r} ({kind.op}) {problem}" for problem in problems])
        free = self._free.free(printable(name) or "op")
        self.shapes[free] = tuple(shape)
        self.ops.append(Op(name=free, kind=kind, inputs=tuple(inputs), shape=tuple(shape)))
        return free

    def share(self, first: int, learned: str) -> None:
        """Let the op with learned values among those from number `first` on share them with an earlier one of this tensor."""
        for place, op in enumerate(self.ops[first:], first):
            if op.kind.parameters([self.shapes[tensor] for tensor in op.inputs], self.shapes[op.name]):
                owner = self._owners.setdefault(learned, op.name)
                self.ops[place] = op if owner == op.name else replace(op, shares=owner)
                return

    def view(self, tensor: str, shape: Shape, name: str) -> str:
        """A tensor of the trace under another shape; itself where that is its shape."""
        shape = shape or (1,)
        return tensor if self.shapes[tensor] == tuple(shape) else self.add(Reshape(), [tensor], shape, name)


class NoProduct(Exception):
    """A size is no product of the symbols, or the graph depends on them."""


def merged(drafts: Sequence[Draft], probes: Sequence[Mapping[str, int]]) -> tuple[dict[str, tuple[Dim, ...]], tuple[Op, ...]]:
    """Inputs and ops with symbols, from drafts at two values of each. Raises NoProduct."""
    first, second = drafts[0], drafts[-1]
    if len(first.ops) != len(second.ops):
        raise NoProduct("the graph")
    symbols = _Symbols(probes)
    inputs = {name: symbols.dims(shape, second.inputs[name]) for name, shape in first.inputs.items()}
    ops = []
    for one, other in zip(first.ops, second.ops, strict=True):
        if one != replace(other, shape=one.shape):
            raise NoProduct(one.name)
        try:
            ops.append(replace(one, shape=symbols.dims(one.shape, other.shape)))  # type: ignore[arg-type]
        except NoProduct:
            raise NoProduct(one.name) from None
    return inputs, tuple(ops)


class _Symbols:
    """Sizes at two probes as products of symbols."""

    def __init__(self, probes: Sequence[Mapping[str, int]]) -> None:
        first, second = probes[0], probes[-1]
        names = sorted(first)
        self.found: dict[tuple[int, int], Dim] = {}
        self.products: list[tuple[int, int, list[str]]] = []
        if len(names) <= 4:
            for powers in sorted(product(range(POWER + 1), repeat=len(names)), key=sum):
                factors = [name for name, power in zip(names, powers, strict=True) for _ in range(power)]
                if factors:
                    sizes = [1, 1]
                    for name in factors:
                        sizes = [sizes[0] * first[name], sizes[1] * second[name]]
                    self.products.append((sizes[0], sizes[1], factors))
        else:
            self.products = [(first[name], second[name], [name]) for name in names]

    def dims(self, one: Shape, other: Shape) -> tuple[Dim, ...]:
        """A shape with symbols."""
        if len(one) != len(other):
            raise NoProduct("a shape")
        return tuple([self._dim(a, b) for a, b in zip(one, other, strict=True)])

    def _dim(self, a: int, b: int) -> Dim:
        if a == b:
            return a
        if (a, b) not in self.found:
            for x, y, factors in self.products:
                if a % x == 0 and b % y == 0 and a // x == b // y:
                    number = a // x
                    self.found[a, b] = "*".join([str(number)] * (number > 1) + factors)
                    break
            else:
                raise NoProduct("a size")
        return self.found[a, b]


# ------------------------------------------------------------------------------------------------------------- one node

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

    def made(self, kind: Kind, shape: Shape, *inputs: str) -> None:
        """The op of this node, where it makes the node's result in another shape."""
        self.end(self.draft.add(kind, inputs, shape, self.name))

    def viewed(self, i: int, shape: Shape, part: str = "view") -> str:
        """Input i under another shape."""
        return self.draft.view(self.tensor(i), shape, f"{self.name}/{part}")


Rule = Callable[[Emitter], Any]
