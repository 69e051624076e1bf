"""Traces that PyTorch recorded: calls of ATen operators with tensors, shapes and arguments, read as those of `torch.export`.

A call counts with all that it runs within itself: of nested calls the outermost one that is known here, or of unknown ones the
outermost. Tensors that no call made are learned values where calls take those, else inputs of the network. Communication waits
for the call before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.trace.chakra.node import COLLECTIVE, COMPUTE, MESSAGES, ExecutionNode, ExecutionTrace
from archsim.trace.chakra.stated import kind_of, plain, read_list, result_of
from archsim.trace.dims import LARGEST, short
from archsim.trace.readers.aten_rules import OPERANDS, RULES
from archsim.trace.readers.model import checked
from archsim.trace.readers.read import trace_at_batches
from archsim.trace.readers.torch import model_of_program
from archsim.trace.readers.torch_program import LEARNED, NO_OPS, PRECISIONS, SCHEMA, TYPES, WHOLE, counted, operator_of
from archsim.trace.trace import Op, Trace
from archsim.trace.values import UniqueNames

NONE = "<None>"
SAME_VALUES = ("to", "_to_copy", "contiguous", "detach", "alias", "clone", "t", "view", "reshape", "transpose", "permute")
WITHOUT_INPUT = ("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty")


def is_recorded(trace: ExecutionTrace) -> bool:
    """Whether PyTorch recorded a trace: it has calls of ATen's operators with shapes."""
    return any(node.name.startswith("aten::") and node.outputs.types for node in trace.nodes)


def read_recorded(trace: ExecutionTrace) -> Trace:
    """The network, at the batch that was recorded. Raises InputError or Unsupported."""
    recorded = _Recorded(name=plain(Path(trace.path).stem))
    for node in calls_of(trace):
        try:
            recorded.call(node)
        except (ValueError, TypeError, IndexError, KeyError, OverflowError) as error:
            raise InputError(trace.path, f"node {node.id} {short(node.name)} has arguments that do not fit ({error})") from None
    found = trace_at_batches([checked(model_of_program(recorded.program(), trace.path))], ())
    sent = list(_sent(trace, found))
    outputs = (*found.outputs, *(op.name for op in sent))
    return replace(found, ops=(*found.ops, *sent), outputs=outputs, source="Chakra execution trace, recorded by PyTorch")


def _sent(trace: ExecutionTrace, found: Trace) -> Iterator[Op]:
    """Communication, which waits for the op of the last call before it."""
    ops = {op.name for op in found.ops}
    names, before = UniqueNames((*found.inputs, *ops)), found.ops[0].name
    for node in trace.nodes:
        if node.type == COLLECTIVE or node.type in MESSAGES:
            kind = kind_of(node, trace.path)
            yield Op(name=names.free(plain(node.name or node.type)), kind=kind, inputs=(before,), shape=result_of(node, kind))
        elif called(node) in ops:
            before = called(node)


def called(node: ExecutionNode) -> str:
    """The name of a call's op."""
    return f"{_kind(node)}_{node.id}"


def calls_of(trace: ExecutionTrace) -> Iterator[ExecutionNode]:
    """The calls that count, in the order of the file."""
    parent = {node.id: node.control[0] for node in trace.nodes if node.control}
    nodes = _by_call(trace.nodes, parent)
    place = {node.id: at for at, node in enumerate(nodes)}
    able = [_is_call(node) for node in nodes]
    known = [call and has_rule(node) for call, node in zip(able, nodes, strict=True)]
    chosen, _ = counted([place.get(parent.get(node.id, -1), -1) for node in nodes], able, known)
    yield from (nodes[at] for at in chosen)


def _by_call(nodes: Sequence[ExecutionNode], parent: Mapping[int, int]) -> Sequence[ExecutionNode]:
    """The nodes in the order of the file where callers come first, else by their ids, which count calls as they begin."""
    seen: set[int] = set()
    for node in nodes:
        if node.id in parent and parent[node.id] not in seen:
            return sorted(nodes, key=lambda each: each.id)
        seen.add(node.id)
    return nodes


def _is_call(node: ExecutionNode) -> bool:
    """Whether a node is a call of an operator that makes tensors."""
    space, kind = operator_of(node.name)
    able = bool(kind) and space not in NO_OPS and node.type == COMPUTE and node.attributes.get("is_cpu_op") is not False
    return able and "Tensor" in node.outputs.types


def has_rule(node: ExecutionNode) -> bool:
    """Whether a call is of an operator of ATen that is known here."""
    return _kind(node) in RULES and node.name.startswith("aten::")


def _kind(node: ExecutionNode) -> str:
    return node.name.partition("::")[2].rstrip("_")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A tensor at its first use that no call made."""

    shape: tuple[int, ...]
    type: str

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers."""
        return self.type.startswith(WHOLE)


@dataclass(slots=True, kw_only=True)
class _Recorded:
    """A recorded program while its calls are read."""

    name: str
    made: dict[int, str] = field(default_factory=dict)  # the tensor of an id, as it is now
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    given: dict[str, _Seen] = field(default_factory=dict)
    learned: set[str] = field(default_factory=set)
    source: dict[str, str] = field(default_factory=dict)  # tensors with the values of others
    calls: list[dict[str, Any]] = field(default_factory=list)

    def call(self, node: ExecutionNode) -> None:
        """One call."""
        kind, name = _kind(node), called(node)
        values, shapes, types = (read_list(text) for text in (node.inputs.values, node.inputs.shapes, node.inputs.types))
        args = []
        for place, value in enumerate(values):
            shape, type = (each[place] if place < len(each) else "" for each in (shapes, types))
            args.append(self._argument(value, shape, str(type)))
            if place in LEARNED.get(kind, ()):
                self._learn(args[-1])
        overload = re.match(r"[\w:]+\.(\w+)\(", node.text("op_schema"))
        made = [tuple(shape) for shape in _tensors(read_list(node.outputs.shapes), read_list(node.outputs.types))]
        results = _tensors(read_list(node.outputs.values), read_list(node.outputs.types))
        for number, value in enumerate(results):
            if isinstance(value, list | tuple) and value and isinstance(value[0], int):
                result = self.made[value[0]] = name if len(made) == 1 else f"{name}.{number}"
                self.shapes[result] = made[number] if number < len(made) else ()
        if kind in SAME_VALUES and args and isinstance(args[0], dict):
            self.source[name] = args[0]["tensor"]
        target = f"{node.name.replace('::', '.')}.{overload[1] if overload else 'default'}"
        self.calls.append({"call": target, "name": name, "args": args, "named": {}, "shapes": [list(shape) for shape in made]})

    def _argument(self, value: Any, shape: Any, type: str) -> Any:
        """An argument: a tensor by name, or a value."""
        if type.startswith("Tensor("):
            return self._tensor(value, shape, type)
        if type.startswith("GenericList[") and "Tensor(" in type and isinstance(value, list):
            types = re.findall(r"Tensor\(([^()]*)", type)
            listed = shape if isinstance(shape, list) else []
            return [self._tensor(each, listed[i] if i < len(listed) else [], f"Tensor({types[i] if i < len(types) else ''})")
                    for i, each in enumerate(value)]  # fmt: skip
        return None if value == NONE or type == "None" else value

    def _tensor(self, value: Any, shape: Any, type: str) -> Any:
        if not isinstance(value, list | tuple) or not value or not isinstance(value[0], int) or "nullptr" in type:
            return None
        sizes = _checked(tuple(shape) if isinstance(shape, list | tuple) else ())
        if self.shapes.get(self.made.get(value[0], "")) != sizes:  # the number of one that is gone may be that of another
            name = f"tensor_{value[0]}"
            name = self.made[value[0]] = f"{name}_{len(self.given)}" if name in self.given else name
            self.given[name], self.shapes[name] = _Seen(shape=sizes, type=type[len("Tensor(") :].rstrip(")")), sizes
        return {"tensor": self.made[value[0]]}

    def _learn(self, argument: Any) -> None:
        """Note that tensors are learned values, where no call made them from others."""
        for each in argument if isinstance(argument, list) else [argument]:
            if isinstance(each, dict):
                name = each["tensor"]
                while name in self.source:
                    name = self.source[name]
                if name in self.given:
                    self.learned.add(name)

    def program(self) -> dict[str, Any]:
        """All calls as a recorded program (`torch_program.record`)."""
        held = {*self.given} - self._inputs()
        moving = {name for name in self.given if name not in held}
        read: set[str] = set()
        ends: list[str] = []
        for call in self.calls:
            used = set(_named(call["args"]))
            read |= used
            results = [call["name"]] if len(call["shapes"]) == 1 else [f"{call['name']}.{i}" for i in range(len(call["shapes"]))]
            if moving & used and _base(call["call"]) not in WITHOUT_INPUT:
                moving.update(results)
                ends += results
        dtypes: dict[str, int] = {}
        for name in held:
            type = TYPES.get(self.given[name].type, "")
            if type in PRECISIONS:
                dtypes[type] = dtypes.get(type, 0) + math.prod(self.given[name].shape)
        return {
            "schema": SCHEMA, "name": self.name, "torch": "", "held": {name: self.given[name].shape for name in held},
            "inputs": {name: seen.shape for name, seen in self.given.items() if name not in held}, "calls": self.calls,
            "outputs": [name for name in ends if name not in read], "dtypes": dtypes,
            "integers": [name for name, seen in self.given.items() if name not in held and seen.whole],
        }  # fmt: skip

    def _inputs(self) -> set[str]:
        """The tensors that some call takes as its first, or in a list, and indices, none of them learned values or buffers.

        What a call stretches to a larger operand is a learned value. A batch has several samples in all inputs, or in none.
        """
        found = {name for name, seen in self.given.items() if seen.whole}
        for call in self.calls:
            kind, args = _base(call["call"]), call["args"]
            for place, argument in enumerate(args):
                taken = place not in LEARNED.get(kind, ()) and (place == 0 or isinstance(argument, list))
                if taken and not (kind in OPERANDS and self._stretched(argument, call["shapes"])):
                    found.update(_named(argument))
        found = (found & self.given.keys()) - self.learned
        several = {name for name in found if self.given[name].shape[:1] > (1,)}
        return several or found

    def _stretched(self, argument: Any, shapes: Sequence[Sequence[int]]) -> bool:
        seen = [self.given[name] for name in _named(argument) if name in self.given]
        return any(math.prod(each.shape) < math.prod(shapes[0]) for each in seen)


def _base(call: str) -> str:
    return call.split(".")[1].rstrip("_")


def _named(value: Any) -> Iterator[str]:
    """The tensors among arguments."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and "tensor" in each:
            yield each["tensor"]
        elif isinstance(each, list):
            yield from _named(each)


def _tensors(found: Any, types: Any) -> list[Any]:
    """What a list says of the tensors among results, also of those in a list of tensors."""
    listed: list[Any] = []
    for place, each in enumerate(found):
        type = str(types[place]) if place < len(types) else ""
        if type.startswith("GenericList[") and isinstance(each, list | tuple):
            listed += each
        elif type.startswith("Tensor("):
            listed.append(each)
    return listed


def _checked(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape as it was recorded. Raises ValueError for sizes that cannot be."""
    if not all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= LARGEST for size in shape):
        raise ValueError(f"{list(shape)[:8]} is no shape of a tensor")
    return tuple(shape)
