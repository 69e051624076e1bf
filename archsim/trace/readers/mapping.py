"""What became of the operators of a model: mapped, approximated as memory traffic, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from archsim.trace.readers.infer import refused
from archsim.trace.readers.model import ModelFile
from archsim.trace.readers.operators import REFUSED
from archsim.trace.readers.read import trace_of
from archsim.trace.trace import Trace

MAPPED, OWN, PARTLY, TRAFFIC, NOT_READ = "mapped", "registered", "partly memory traffic", "memory traffic", "refused"


class MappedOperator(NamedTuple):
    """An operator of a model: its nodes, and what became of them."""

    operator: str
    nodes: int
    status: str
    why: str = ""


def mapped_operators(model: ModelFile, sizes: Mapping[str, int]) -> tuple[Trace | None, list[MappedOperator]]:
    """The trace, None where operators are refused, and every operator of the model, those with the most nodes first.

    Raises what reading the model raises, but not for refused operators.
    """
    count = Counter(node.operator for node in model.nodes)
    if refused(model):
        return None, [_row(name, nodes, Counter(), Counter()) for name, nodes in count.most_common()]
    trace = trace_of(model, sizes)
    unknown, own = Counter[str](), Counter[str]()
    for op in trace.ops:
        if op.kind.op == "traffic":
            (own if getattr(op.kind, "own", 0) else unknown)[str(getattr(op.kind, "operator", ""))] += 1
    return trace, [_row(name, nodes, unknown, own) for name, nodes in count.most_common()]


def _row(name: str, nodes: int, unknown: Counter[str], own: Counter[str]) -> MappedOperator:
    if name in REFUSED:
        return MappedOperator(name, nodes, NOT_READ, REFUSED[name])
    if own[name]:
        return MappedOperator(name, nodes, OWN, "archsim.register_op says its work")
    if unknown[name]:
        status = TRAFFIC if unknown[name] >= nodes else PARTLY
        return MappedOperator(name, nodes, status, "no rule: each tensor once bounds its time")
    return MappedOperator(name, nodes, MAPPED)


def of_onnx(path: Path, sizes: Mapping[str, int]) -> tuple[Trace | None, list[MappedOperator]]:
    """The operators of an ONNX file."""
    from archsim.trace.readers.model import checked
    from archsim.trace.readers.onnx_file import read_model

    return mapped_operators(checked(read_model(path)), sizes)

