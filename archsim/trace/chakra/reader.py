"""An execution trace as a network; and what became of its nodes: mapped, taken as they state, or approximated as memory traffic.

A trace that archsim wrote gives the network that it was written from. In one that PyTorch recorded, calls of ATen's operators
are read with their shapes, arguments and tensors (`pytorch`). In any other, each node is an op of the work that it states
(`num_ops` [FLOP], `tensor_size` or shapes [B], `comm_size` [B]), which waits for the nodes that it depends on. Nodes that only
mark a place are no ops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from archsim.base.errors import InputError, Unsupported, refuse
from archsim.trace.chakra.forms import read_binary, read_json
from archsim.trace.chakra.node import VERSIONS, ExecutionTrace, is_own, read_own
from archsim.trace.chakra.stated import read_stated
from archsim.trace.dims import short
from archsim.trace.formats import with_symbols
from archsim.trace.readers.read import MAPPED, OWN, TRAFFIC, MappedOperator
from archsim.trace.trace import Op, Trace


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The network of a trace, whose sizes are all fixed. Raises MissingExtra, MissingFile, InputError, Unsupported."""
    return network_in(execution_trace(path), sizes)


def network_in(trace: ExecutionTrace, sizes: Mapping[str, int]) -> Trace:
    """The network of the nodes; every name of `sizes` is a symbol of it. Raises ArgumentError for one that is not."""
    return with_symbols(network_of(trace), sizes, Path(trace.path))


def execution_trace(path: Path) -> ExecutionTrace:
    """The nodes of a file, in either form. Raises MissingExtra, MissingFile or InputError."""
    trace = read_json(path) if path.name.lower().endswith(".json") else read_binary(path)
    if trace.version and trace.version not in VERSIONS:
        raise InputError(str(path), f"is of version {short(trace.version)} of Chakra's schema; {' and '.join(VERSIONS)} are read")
    if not trace.nodes:
        raise InputError(str(path), "has no nodes")
    _check(trace)
    return trace


def network_of(trace: ExecutionTrace) -> Trace:
    """The network of the nodes. Raises InputError or Unsupported."""
    if is_own(trace):
        return read_own(trace)
    from archsim.trace.chakra.pytorch import is_recorded, read_recorded

    found = read_recorded(trace) if is_recorded(trace) else read_stated(trace)
    if not found.ops:
        raise Unsupported(f"{trace.path}: has no nodes that compute, move memory or communicate")
    return found


def _check(trace: ExecutionTrace) -> None:
    """Every node has an id of its own, and waits for nodes that are there."""
    known = {node.id for node in trace.nodes}
    problems: list[str] = []
    if len(known) < len(trace.nodes):
        seen: set[int] = set()
        twice = next(node.id for node in trace.nodes if node.id in seen or seen.add(node.id))  # type: ignore[func-returns-value]
        problems.append(f"has the node {twice} twice")
    for node in trace.nodes:
        missing = [each for each in node.data if each not in known]
        if missing:
            problems.append(f"node {node.id} {short(node.name)} depends on node {missing[0]}, which is not there")
        if len(problems) > 20:
            break
    refuse(trace.path, problems)


# --------------------------------------------------------------------------------------------- what became of the nodes

STATED = "as stated"
WHY = {
    STATED: "the FLOPs and bytes that the node states", TRAFFIC: "no rule: each tensor once bounds its time",
    OWN: "archsim.register_op says its work",
}  # fmt: skip


def of_chakra(path: Path, sizes: Mapping[str, int]) -> tuple[Trace, list[MappedOperator]]:
    """The network, and the operators of its nodes with what became of them, those with the most nodes first."""
    file = execution_trace(path)
    trace = network_in(file, sizes)
    count = Counter([*_called(file), *(found for op in trace.ops if (found := _became(op)) is not None)])
    if is_own(file):
        count = Counter((op.kind.op, MAPPED) for op in trace.ops)
    return trace, [MappedOperator(name, nodes, status, WHY.get(status, "")) for (name, status), nodes in count.most_common()]


def _called(file: ExecutionTrace) -> Iterator[tuple[str, str]]:
    """The calls that PyTorch recorded and that have a rule."""
    from archsim.trace.chakra.pytorch import calls_of, has_rule, is_recorded

    if is_recorded(file):
        yield from ((node.name, MAPPED) for node in calls_of(file) if has_rule(node))


def _became(op: Op) -> tuple[str, str] | None:
    """An op that is not one of the network's own kinds."""
    name = str(getattr(op.kind, "operator", ""))
    if op.kind.op == "collective":
        return str(getattr(op.kind, "function", "")), MAPPED
    if op.kind.op not in ("traffic", "stated"):
        return None
    if getattr(op.kind, "own", 0):
        return name, OWN
    return name, TRAFFIC if op.kind.op == "traffic" else STATED
