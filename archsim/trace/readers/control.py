"""Control flow whose course follows from constants and shapes: the graphs that run, written out as often as they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from archsim.base.errors import InputError, Unsupported
from archsim.base.files import LIMITS
from archsim.trace.dims import short
from archsim.trace.readers.model import KnownTensor, ModelNode, Refusal, StoredTensor, SubGraph, constant

MOST = LIMITS["onnx"].entries  # nodes, written out


@dataclass(slots=True, kw_only=True)
class Inlining:
    """The nodes of a model in the order in which they run, those of control flow as what runs of them.

    step: what a plain node makes known of its results
    """

    path: str
    known: dict[str, KnownTensor]
    constants: dict[str, StoredTensor]
    step: Callable[[ModelNode], None]
    nodes: list[ModelNode] = field(default_factory=list)

    def all(self, nodes: Iterable[ModelNode]) -> None:
        """Go through more nodes. Raises InputError for the first that cannot be, Unsupported."""
        for node in nodes:
            try:
                if node.kind in CONTROL:
                    CONTROL[node.kind](self, node)
                    continue
                self.step(node)
            except Refusal as problem:
                raise InputError(self.path, f"{node.said} {problem}") from None
            except (LookupError, TypeError) as error:
                raise InputError(self.path, f"{node.said} has graphs or tensors that do not fit ({short(error)})") from None
            self.nodes.append(node)


def _number(flow: Inlining, node: ModelNode, tensor: str, what: str) -> int:
    """The value of a tensor that decides what runs."""
    value = flow.known[tensor].value if tensor in flow.known else None
    if value is None or value.size != 1:
        raise Unsupported(f"has control flow: {node.said} {what} a value that depends on what the network is given, or that is "
                          "too large to be kept")  # fmt: skip
    return int(np.ravel(value)[0])


def _graph(node: ModelNode, name: str) -> SubGraph:
    graph = node.attributes.get(name)
    if not isinstance(graph, SubGraph):
        raise Refusal(f"has no graph {name}")
    return graph


def _placed(flow: Inlining, graph: SubGraph, given: Sequence[str], at: str, number: int = 0) -> list[str]:
    """A graph that reads these tensors, its own tensors under names that begin with `at`; the names of its results."""
    if len(given) != len(graph.inputs):
        raise Refusal(f"has a graph of {len(graph.inputs)} inputs, and {len(given)} tensors for them")
    if max(number, len(flow.nodes)) > MOST:
        raise Refusal(f"makes more than {MOST} nodes when it is written out; refused")
    own = [*graph.constants, *(name for node in graph.nodes for name in node.outputs if name)]
    names = dict(zip(graph.inputs, given, strict=True)) | {name: f"{at}/{name}" for name in own}
    for name, value in graph.constants.items():
        flow.constants[names[name]] = value
        flow.known[names[name]] = constant(value)
    flow.all([_renamed(node, names, f"{at}/{node.name}") for node in graph.nodes])
    return [names.get(name, name) for name in graph.outputs]


def _renamed(node: ModelNode, names: Mapping[str, str], called: str) -> ModelNode:
    """A node with other names of tensors, in its graphs too, but for those that these make themselves."""
    attributes = {key: _captured(each, names) if isinstance(each, SubGraph) else each for key, each in node.attributes.items()}
    inputs, outputs = (tuple([names.get(name, name) for name in side]) for side in (node.inputs, node.outputs))
    return replace(node, name=called, inputs=inputs, outputs=outputs, attributes=attributes)


def _captured(graph: SubGraph, names: Mapping[str, str]) -> SubGraph:
    own = {*graph.inputs, *graph.constants, *(name for node in graph.nodes for name in node.outputs)}
    outer = {name: other for name, other in names.items() if name not in own}
    nodes = tuple([_renamed(node, outer, node.name) for node in graph.nodes])
    return replace(graph, nodes=nodes, outputs=tuple([outer.get(name, name) for name in graph.outputs]))


def _same(flow: Inlining, made: Sequence[str], outputs: Sequence[str]) -> None:
    """Results of a graph as those of its node."""
    flow.all([ModelNode(kind="Identity", name=output, inputs=(one,), outputs=(output,))
              for one, output in zip(made, outputs, strict=False) if output])  # fmt: skip


def _if(flow: Inlining, node: ModelNode) -> None:
    taken = "then_branch" if _number(flow, node, node.inputs[0], "takes a branch by") else "else_branch"
    _same(flow, _placed(flow, _graph(node, taken), (), node.outputs[0]), node.outputs)


def _loop(flow: Inlining, node: ModelNode) -> None:
    """A graph of a counter, a condition and states; its results are the condition, the states, and parts of what is collected."""
    body, (most, going, *states) = _graph(node, "body"), (*node.inputs, "", "")[: max(2, len(node.inputs))]
    count = _number(flow, node, most, "runs as often as") if most else MOST
    parts: list[list[str]] = []
    while len(parts) < count and (not going or _number(flow, node, going, "ends by")):
        at = f"{node.outputs[0]}.{len(parts)}"
        flow.known[f"{at}/counter"] = KnownTensor(shape=(), value=np.array(len(parts), np.int64), fixed=True)
        flow.known.setdefault(f"{at}/true", KnownTensor(shape=(), value=np.array(True), fixed=True))
        made = _placed(flow, body, (f"{at}/counter", going or f"{at}/true", *states), at, len(parts))
        going, states, kept = made[0], made[1 : len(states) + 1], made[len(states) + 1 :]
        parts.append(kept)
    _same(flow, states, node.outputs)
    _collected(flow, parts, node.outputs[len(states) :])


def _collected(flow: Inlining, parts: Sequence[Sequence[str]], outputs: Sequence[str]) -> None:
    """One result of every pass below the next."""
    for place, output in enumerate(outputs):
        if output and not parts:
            raise Refusal("collects the results of no pass")
        if output:
            rows = [ModelNode(kind="Unsqueeze", name=f"{one[place]}.row", inputs=(one[place],), outputs=(f"{one[place]}.row",),
                              attributes={"axes": [0]}) for one in parts]  # fmt: skip
            joined = ModelNode(kind="Concat", name=output, inputs=tuple([row.name for row in rows]), outputs=(output,),
                               attributes={"axis": 0})  # fmt: skip
            flow.all([*rows, joined])


CONTROL: dict[str, Callable[[Inlining, ModelNode], None]] = {"If": _if, "Loop": _loop}
