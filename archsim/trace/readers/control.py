"""Control flow whose course follows from constants and shapes: the graphs that run, written out as often as they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from archsim.base.errors import Unsupported
from archsim.base.limits import LIMITS
from archsim.trace.readers.call import KnownTensor, Refusal, constant
from archsim.trace.readers.model import ModelNode, StoredTensor, SubGraph

MOST = LIMITS["onnx"].entries  # nodes, written out


class Inlining(Protocol):
    """The nodes of a model in the order in which they run, each with what is known of its results."""

    known: dict[str, KnownTensor]
    constants: dict[str, StoredTensor]
    nodes: list[ModelNode]

    def all(self, nodes: Sequence[ModelNode]) -> None:
        """Go through more nodes."""


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
    _collected(flow, parts, node.outputs[len(states) :], [0] * len(node.outputs))


def _scan(flow: Inlining, node: ModelNode) -> None:
    """A graph of states and parts of tensors, once for each part."""
    body, count = _graph(node, "body"), int(node.attributes.get("num_scan_inputs", 1))
    states, scanned = list(node.inputs[:-count]), node.inputs[-count:]
    axes = node.attributes.get("scan_input_axes") or [0] * count
    parts: list[list[str]] = []
    for i in range(flow.known[scanned[0]].shape[axes[0]]):
        at = f"{node.outputs[0]}.{i}"
        flow.known[f"{at}/at"] = KnownTensor(shape=(), value=np.array(i, np.int64), fixed=True)
        given = [f"{at}/part{k}" for k in range(count)]
        flow.all([ModelNode(kind="Gather", name=name, inputs=(tensor, f"{at}/at"), outputs=(name,), attributes={"axis": axis})
                  for name, tensor, axis in zip(given, scanned, axes, strict=True)])  # fmt: skip
        made = _placed(flow, body, (*states, *given), at, i)
        states, kept = made[: len(states)], made[len(states) :]
        parts.append(kept)
    _same(flow, states, node.outputs)
    outputs = node.outputs[len(states) :]
    _collected(flow, parts, outputs, node.attributes.get("scan_output_axes") or [0] * len(outputs))


def _collected(flow: Inlining, parts: Sequence[Sequence[str]], outputs: Sequence[str], axes: Sequence[int]) -> None:
    """One result of every pass beside the next."""
    for place, (output, axis) in enumerate(zip(outputs, axes, strict=False)):
        if output and not parts:
            raise Refusal("collects the results of no pass")
        names = [f"{one[place]}.row" for one in parts] if output else []
        flow.all([ModelNode(kind="Unsqueeze", name=name, inputs=(one[place],), outputs=(name,), attributes={"axes": [axis]})
                  for name, one in zip(names, parts, strict=False)])  # fmt: skip
        if output:
            flow.all([ModelNode(kind="Concat", name=output, inputs=tuple(names), outputs=(output,), attributes={"axis": axis})])


CONTROL: dict[str, Callable[[Inlining, ModelNode], None]] = {"If": _if, "Loop": _loop, "Scan": _scan}
