"""Nodes as ops of the work that they state."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from graphlib import CycleError
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, Unsupported
from archsim.trace.chakra.node import (
    COLLECTIVE,
    COLLECTIVES,
    COMPUTE,
    MEMORY,
    MESSAGES,
    SEND,
    ExecutionNode,
    ExecutionTrace,
    check_waits,
)
from archsim.trace.dims import LARGEST, MOST_DIMS, short
from archsim.trace.jsonlines import DECODER
from archsim.trace.kind import Kind
from archsim.trace.kinds.general import Collective, Stated, Traffic, own_work, registered
from archsim.trace.trace import Op, Trace, ordered
from archsim.trace.values import UniqueNames, printable

START = "start"  # the network's one input, for which nodes wait that depend on none
ELEMENT = 4  # bytes of a value of fp32, in which the trace is written
LONGEST = 1 << 16  # characters of a list that is read
KEPT = (COMPUTE, COLLECTIVE, *MEMORY, *MESSAGES)


def read_stated(trace: ExecutionTrace) -> Trace:
    """The network. Raises InputError for cycles and sizes that cannot be, Unsupported for nodes that state no work."""
    names, made, ops = UniqueNames([START]), dict[int, str](), []
    waits = _waits(trace)
    for node in _ordered(trace):
        if node.type not in KEPT:
            continue
        kind = kind_of(node, trace.path)
        made[node.id] = names.free(plain(node.name or node.type))
        needs = tuple(dict.fromkeys(made[each] for each in waits[node.id])) or (START,)
        ops.append(Op(name=made[node.id], kind=kind, inputs=needs, shape=result_of(node, kind)))
    return Trace(
        name=plain(Path(trace.path).stem), inputs={START: (1,)}, ops=tuple(ops), source="Chakra execution trace"
    )  # fmt: skip


def plain(text: str) -> str:
    """A name that a trace can have."""
    return printable(text) or "node"


def _ordered(trace: ExecutionTrace) -> Sequence[ExecutionNode]:
    """The nodes, each after those that it depends on, otherwise in the order of the file."""
    known = {node.id for node in trace.nodes}
    needs = [(str(node.id), [str(each) for each in (*node.data, *node.control) if each in known]) for node in trace.nodes]
    try:
        return [trace.nodes[place] for place in ordered(needs)]
    except CycleError as error:
        raise InputError(trace.path, f"has a cycle of dependencies: node {' -> node '.join(error.args[1][:6])}") from None


def _waits(trace: ExecutionTrace) -> dict[int, tuple[int, ...]]:
    """The ops that each node waits for: through nodes that are no ops to those that are."""
    kept = {node.id for node in trace.nodes if node.type in KEPT}
    found: dict[int, tuple[int, ...]] = {}
    passed = 0
    for node in _ordered(trace):
        needs: dict[int, None] = {}
        for each in (*node.data, *node.control):
            needs.update(dict.fromkeys([each] if each in kept else found.get(each, ())))
        found[node.id] = tuple(needs)
        passed += len(needs)
        check_waits(passed, trace.path)
    return found


def kind_of(node: ExecutionNode, path: str) -> Kind:
    """What a node does. Raises InputError or Unsupported."""
    said = f"node {node.id} {short(node.name)} ({node.type})"
    if node.type == COLLECTIVE or node.type in MESSAGES:
        return collective_of(node, path, said)
    size = node.whole("tensor_size")
    if node.type in MEMORY:
        if not size:
            raise Unsupported(f"{path}: {said} does not state its tensor_size")
        return Stated(operator=plain(node.name or node.type), does=node.type.split("_")[1].lower(), moves=_size(size, path, said))
    inputs, outputs = shapes_in(node.inputs.shapes), shapes_in(node.outputs.shapes)
    if registered(node.name) is not None:
        work, own = own_work(node.name, inputs, outputs[0] if outputs else (1,), ELEMENT)
        return Stated(operator=plain(node.name), own=True, flops=_size(round(work), path, said),
                      moves=_size(math.ceil(own), path, said))  # fmt: skip
    moved = ELEMENT * sum(math.prod(shape) for shape in inputs + outputs) if size is None else size
    flop = node.whole("num_ops") or 0
    if not moved:
        raise Unsupported(f"{path}: {said} states neither tensor_size nor shapes, so that its work is not known; "
                          f"archsim.register_op({node.name!r}, work) says it")  # fmt: skip
    if size is None and not flop:
        return Traffic(operator=plain(node.name or "node"))
    return Stated(operator=plain(node.name or "node"), flops=_size(flop, path, said), moves=_size(moved, path, said))


def collective_of(node: ExecutionNode, path: str, said: str) -> Collective:
    """What a node sends. Raises InputError or Unsupported."""
    size = node.whole("comm_size", "tensor_size")
    if node.type == COLLECTIVE:
        number = node.whole("comm_type")
        text = node.text("comm_type").lower()
        name = text if text in COLLECTIVES else COLLECTIVES[number] if number is not None and number < len(COLLECTIVES) else ""
        if not name:
            raise InputError(path, f"{said} has the comm_type {short(node.attributes.get('comm_type'))}; 0 to "
                                   f"{len(COLLECTIVES) - 1} are {', '.join(COLLECTIVES)}")  # fmt: skip
    else:
        name = "send" if node.type == SEND else "receive"
    if size is None and name != "barrier":
        raise Unsupported(f"{path}: {said} does not state its comm_size")
    group = node.text("pg_name") or node.text("comm_group") or "all"
    return Collective(function=name, size=_size(size or 0, path, said), group=plain(group))


def _size(value: int, path: str, said: str) -> int:
    if value > LARGEST:
        raise InputError(path, f"{said} states {value}; at most 2^53 is read")
    return value


def result_of(node: ExecutionNode, kind: Kind) -> tuple[int, ...]:
    """The shape of what an op leaves: as stated, else as many values as it moves."""
    shapes = [shape for shape in shapes_in(node.outputs.shapes) if math.prod(shape) <= LARGEST]
    if shapes and 1 <= len(shapes[0]) <= MOST_DIMS:
        return shapes[0]
    size = getattr(kind, "moves", None) or getattr(kind, "size", None) or ELEMENT
    return (max(1, int(size) // ELEMENT),)


def shapes_in(text: str) -> list[tuple[int, ...]]:
    """The shapes in a list of them, also of lists of tensors; what is none, and an empty one, is left out.

    >>> shapes_in("[[2, 3], [], [[4], [5, 6]]]")
    [(2, 3), (4,), (5, 6)]
    """
    found: list[tuple[int, ...]] = []

    def look(value: Any) -> None:
        if isinstance(value, list | tuple) and value:
            if all(isinstance(size, int) and not isinstance(size, bool) and 0 < size <= LARGEST for size in value):
                found.append(tuple(value))
            else:
                for each in value:
                    look(each)

    look(read_list(text))
    return found


def read_list(text: str) -> Any:
    """A list that is written as text, as Python or JSON does; an empty one where it is none, or too long to be read."""
    if not text or len(text) > LONGEST:
        return []
    try:
        found = DECODER.decode(text)
    except (ValueError, RecursionError):
        found = None
    try:
        found = ast.literal_eval(text) if found is None else found
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return []
    return list(found) if isinstance(found, list | tuple) else []
