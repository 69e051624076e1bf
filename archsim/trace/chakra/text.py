"""The JSON forms: messages as protobuf's JSON one after the other, a feeder's workload graph, and PyTorch's recorded nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError
from archsim.base.files import read_text
from archsim.base.limits import LIMITS
from archsim.trace.chakra.node import COMPUTE, NODE_TYPES, ExecutionNode, ExecutionTrace, TensorTexts
from archsim.trace.dims import short
from archsim.trace.jsonlines import DECODER

LIMIT = LIMITS["chakra"]
MARKS = re.compile(
    rb'"(workload_graph|dataDeps|data_deps|ctrlDeps|ctrl_deps|durationMicros|duration_micros|attr)"\s*:|"(COMP|COMM_\w+|MEM_\w+)_NODE"'
)
# keys of a node: as protobuf writes them, as its schema calls them, as feeders and recorders do
KEYS = {
    "id": ("id", "Id"), "name": ("name", "Name"), "type": ("type", "NodeType"), "control": ("ctrlDeps", "ctrl_deps"),
    "data": ("dataDeps", "data_deps"), "start_us": ("startTimeMicros", "start_time_micros", "ts"),
    "duration_us": ("durationMicros", "duration_micros", "runtime", "exclusive_dur"), "inputs": ("inputs",),
    "outputs": ("outputs",),
}  # fmt: skip
ATTRIBUTES = ("attr", "attrs")
MOST = 2**64
MOST_SIGNS = {"{": 15 * LIMIT.entries, "[": 35 * LIMIT.entries, ",": 50 * LIMIT.entries}  # objects, lists and values


def begins_as_chakra(head: bytes) -> bool:
    """Whether a JSON file begins as an execution trace does.

    >>> begins_as_chakra(b'{"workload_graph": []}'), begins_as_chakra(b'{"n_embd": 768}')
    (True, False)
    """
    return bool(MARKS.search(head))


def read_json(path: Path) -> ExecutionTrace:
    """The trace in a JSON file. Raises MissingFile or InputError."""
    objects = list(_objects(read_text(path, LIMIT.size), str(path)))
    head: Mapping[str, Any] = {}
    listed = next((objects[0][key] for key in ("workload_graph", "nodes") if isinstance(objects[0].get(key), list)), None)
    if listed is not None:
        head = {"version": str(objects[0].get("schema", ""))}
        objects = listed
    elif not any(key in objects[0] for key in ("id", "type", "inputs", *KEYS["data"])):
        head, objects = objects[0], objects[1:]
    if len(objects) > LIMIT.entries:
        raise InputError(str(path), f"has more than {LIMIT.entries} nodes; refused")
    nodes = tuple([_node(each, number, str(path)) for number, each in enumerate(objects, 1)])
    version = str(head.get("version", ""))
    return ExecutionTrace(path=str(path), version=version.rpartition("chakra.")[2], attributes=_attributes(head), nodes=nodes)


def _objects(text: str, path: str) -> Iterable[dict[str, Any]]:
    for sign, most in MOST_SIGNS.items():
        if text.count(sign) > most:
            raise InputError(path, f"has more than {most} times {sign!r}: more than {LIMIT.entries} nodes have; refused")
    at, count, end = 0, 0, len(text)
    space = re.compile(r"\s*")
    while (at := space.match(text, at).end()) < end:  # type: ignore[union-attr]
        try:
            found, at = DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(path, f"line {error.lineno}: is not JSON ({error.msg}, column {error.colno})") from None
        except ValueError as error:
            raise InputError(path, f"character {at}: {error}") from None
        except RecursionError:
            raise InputError(path, f"character {at}: is nested too deeply") from None
        count += 1
        if not isinstance(found, dict):
            raise InputError(path, f"character {at}: {short(found)} is no object")
        if count > LIMIT.entries + 1:
            raise InputError(path, f"has more than {LIMIT.entries} nodes; refused")
        yield found


def _node(record: object, number: int, path: str) -> ExecutionNode:
    where = f"node {number}"
    if not isinstance(record, dict):
        raise InputError(path, f"{where}: {short(record)} is no object")
    found = {name: next((record[key] for key in keys if key in record), None) for name, keys in KEYS.items()}
    kind = found["type"]
    if isinstance(kind, int) and not isinstance(kind, bool) and 0 <= kind < len(NODE_TYPES):
        kind = NODE_TYPES[kind]
    if kind is None:
        kind = COMPUTE if "inputs" in record else NODE_TYPES[0]
    known = {key for keys in KEYS.values() for key in keys}
    beside = {key: value for key, value in record.items() if key not in known and isinstance(value, bool | int | float | str)}
    try:
        return ExecutionNode(
            id=_whole(found["id"] or 0), name=str(found["name"] or ""), type=str(kind), control=_ids(found["control"]),
            data=_ids(found["data"]), start_us=_rounded(found["start_us"]), duration_us=_rounded(found["duration_us"]),
            inputs=_texts(found["inputs"]), outputs=_texts(found["outputs"]), attributes=beside | _attributes(record),
        )  # fmt: skip
    except ValueError as error:
        raise InputError(path, f"{where}: {error}") from None


def _whole(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise ValueError(f"{short(value)} is no whole number from 0 to 2^64")
    return value


def _rounded(value: object) -> int:
    return _whole(int(value) if isinstance(value, float) and 0 <= value < MOST else value or 0)


def _ids(value: object) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple([_whole(each) for each in value]) if isinstance(value, list) else (_whole(value),)


def _texts(value: object) -> TensorTexts:
    if not isinstance(value, dict):
        return TensorTexts()
    said = {key: value.get(key, "") for key in ("values", "shapes", "types")}
    return TensorTexts(**{key: each if isinstance(each, str) else json.dumps(each) for key, each in said.items()})


def _attributes(record: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as a list of names with values, each value under a key that says its form."""
    found: dict[str, Any] = {}
    for key in ATTRIBUTES:
        for each in record.get(key) or () if isinstance(record.get(key), list) else ():
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                form = next((name for name in each if name.lower().replace("_", "").endswith(("val", "list", "value"))), "")
                found[each["name"]] = _value(form, each.get(form))
    return found


def _value(form: str, value: Any) -> Any:
    """A value: protobuf's JSON writes integers of 64 bits as texts."""
    if isinstance(value, dict) and isinstance(value.get("values"), list):
        return [_value(form, each) for each in value["values"]]
    if isinstance(value, str) and re.fullmatch(r"\w*(int|fixed)\d*_?(val|list)", form, re.IGNORECASE):
        return int(value) if re.fullmatch(r"-?[0-9]{1,20}", value) else None
    return value


FORMS = {bool: "boolVal", int: "int64Val", float: "doubleVal", str: "stringVal"}


def json_text(trace: ExecutionTrace) -> str:
    """The text of a JSON file: the messages one after the other."""
    head = {"version": trace.version, "attr": _written(trace.attributes)}
    return "".join(json.dumps(each, ensure_ascii=False, allow_nan=False) + "\n" for each in [head, *map(_record, trace.nodes)])


def _record(node: ExecutionNode) -> dict[str, Any]:
    found: dict[str, Any] = {"id": str(node.id), "name": node.name, "type": node.type}
    found |= {"ctrlDeps": [*map(str, node.control)]} if node.control else {}
    found |= {"dataDeps": [*map(str, node.data)]} if node.data else {}
    found |= {"startTimeMicros": str(node.start_us), "durationMicros": str(node.duration_us)}
    for key in ("inputs", "outputs"):
        texts: TensorTexts = getattr(node, key)
        found[key] = {"values": texts.values, "shapes": texts.shapes, "types": texts.types}
    return found | {"attr": _written(node.attributes)}


def _written(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, FORMS[type(value)]: str(value) if type(value) is int else value} for name, value in attributes.items()]
