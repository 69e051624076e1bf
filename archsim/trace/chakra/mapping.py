"""What became of the nodes of a Chakra trace: mapped, taken as they state, or approximated as memory traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from archsim.trace.chakra.node import ExecutionTrace
from archsim.trace.chakra.own import is_own
from archsim.trace.chakra.reader import execution_trace, network_in
from archsim.trace.readers.mapping import MAPPED, OWN, TRAFFIC, MappedOperator
from archsim.trace.trace import Op, Trace

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
