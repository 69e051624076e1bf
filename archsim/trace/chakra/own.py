"""What archsim adds to an execution trace that it writes, so that the same network comes out when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.errors import InputError
from archsim.trace.chakra.node import ExecutionTrace
from archsim.trace.check import trace_of
from archsim.trace.jsonlines import JsonLine, strict_json
from archsim.trace.trace import Trace

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
