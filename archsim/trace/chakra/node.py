"""`ExecutionNode`: a node of an execution trace, apart from how files write it; and what archsim adds to those it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archsim.base.errors import InputError
from archsim.base.files import LIMITS
from archsim.trace.check import trace_of
from archsim.trace.jsonlines import JsonLine, strict_json
from archsim.trace.trace import Trace

MOST_WAITS = 40 * LIMITS["chakra"].entries  # dependencies of all nodes together
VERSIONS = ("0.0.4", "1.0.0")  # of the schema; fields that are read are the same in both
WRITTEN = VERSIONS[0]

# names and numbers of the schema's enumerations
INVALID, METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = (
    "INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE",
    "COMM_COLL_NODE",
)  # fmt: skip
NODE_TYPES = (INVALID, METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE)
COLLECTIVES = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all", "reduce_scatter",
               "reduce_scatter_block", "barrier")  # fmt: skip
MEMORY, MESSAGES = (LOAD, STORE), (SEND, RECEIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorTexts:
    """What a node says of its inputs or outputs, each a list written as text, as recorders write it."""

    values: str = ""
    shapes: str = ""
    types: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionNode:
    """One node.

    control: ids of nodes that it was called by, or waits for
    data: ids of nodes whose results it needs
    start_us, duration_us: when it ran [us]
    attributes: by name; numbers, truth values, texts, or lists of them
    """

    id: int
    name: str
    type: str
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    start_us: int = 0
    duration_us: int = 0
    inputs: TensorTexts = TensorTexts()
    outputs: TensorTexts = TensorTexts()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def whole(self, *names: str) -> int | None:
        """The first of these attributes that is a whole number from 0."""
        for name in names:
            value = self.attributes.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return value
        return None

    def text(self, name: str) -> str:
        """An attribute that is a text; empty where there is none."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionTrace:
    """A whole trace: what it says of itself, and its nodes in the order of the file."""

    path: str
    version: str
    attributes: Mapping[str, Any]
    nodes: tuple[ExecutionNode, ...]


def check_waits(count: int, path: str) -> None:
    """Raise InputError for more dependencies than a trace may have."""
    if count > MOST_WAITS:
        raise InputError(path, f"has more than {MOST_WAITS} dependencies; refused")


# ---------------------------------------------------------------------------------------------------- what archsim adds

HEADER, OP = "archsim.network", "archsim.op"  # attributes that hold the lines of a trace file


def is_own(trace: ExecutionTrace) -> bool:
    """Whether archsim wrote a trace."""
    return bool(HEADER in trace.attributes)


def read_own(trace: ExecutionTrace) -> Trace:
    """The network of a trace that archsim wrote. Raises InputError."""
    texts = [trace.attributes[HEADER], *(node.attributes[OP] for node in trace.nodes if OP in node.attributes)]
    lines = []
    for number, text in enumerate(texts):
        try:
            record = strict_json(text if isinstance(text, str) else "")
            if not isinstance(record, dict):
                raise ValueError("is no object")
        except (ValueError, RecursionError) as error:
            name = OP if number else HEADER
            raise InputError(trace.path, f"node {number}: its attribute {name!r} is not JSON ({error})") from None
        lines.append(JsonLine(number, record))
    found, problems = trace_of(lines)
    if found is None:
        raise InputError(trace.path, [problem.replace("line ", "node ", 1) for problem in problems])
    return found


def own_attribute(record: Mapping[str, Any]) -> str:
    """One line of a trace file as an attribute."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def listed(items: Sequence[object]) -> str:
    """A list as text."""
    return json.dumps(items)
