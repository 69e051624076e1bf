"""How a file writes an execution trace: messages of protobuf (`.et`) or as JSON, a feeder's graph, PyTorch's recorded nodes.

Schema: mlcommons/chakra, schema/protobuf/et_def.proto. Fields that nothing here reads are left out; protobuf skips them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from sys import intern
from typing import Any

from archsim.base.errors import InputError, MissingExtra
from archsim.base.files import LIMITS, read_bytes, read_text
from archsim.trace.chakra.node import COMPUTE, INVALID, NODE_TYPES, ExecutionNode, ExecutionTrace, TensorTexts, check_waits
from archsim.trace.dims import short
from archsim.trace.jsonlines import DECODER
from archsim.trace.readers.wire import varint

LIMIT = LIMITS["chakra"]
LARGEST_MESSAGE = 2 << 20  # bytes of a node
MOST_ATTRIBUTES = 1 << 10  # of a node
LONGEST_LIST = 1 << 10  # values of an attribute that are kept
LONGEST_VARINT = 5  # bytes of a length below 2^32
PACKAGE = "ChakraProtoMsg"
FIRST_VALUE = 3  # number of an attribute's first form; each form has a list behind it
# forms of an attribute's value, in the order of their numbers
VALUE_FORMS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
         "sfixed64", "bool", "string", "bytes")  # fmt: skip
# message -> (name of the field, its number, its type, whether it repeats)
FIELDS: dict[str, tuple[tuple[str, int, str, bool], ...]] = {
    "GlobalMetadata": (("version", 1, "string", False), ("attr", 2, "AttributeProto", True)),
    "IOInfo": (("values", 1, "string", False), ("shapes", 2, "string", False), ("types", 3, "string", False)),
    "Node": (
        ("id", 1, "uint64", False), ("name", 2, "string", False), ("type", 3, "int32", False),
        ("ctrl_deps", 4, "uint64", True), ("data_deps", 5, "uint64", True), ("start_time_micros", 6, "uint64", False),
        ("duration_micros", 7, "uint64", False), ("inputs", 8, "IOInfo", False), ("outputs", 9, "IOInfo", False),
        ("attr", 10, "AttributeProto", True),
    ),
}  # fmt: skip


def read_binary(path: Path) -> ExecutionTrace:
    """The trace in a `.et` file. Raises MissingExtra, MissingFile or InputError."""
    kinds = messages()
    data = read_bytes(path, LIMIT.size)
    if not data:
        raise InputError(str(path), "is empty")
    places = list(_places(data, str(path)))
    head = _head(kinds["GlobalMetadata"](), data, places[0], str(path))
    try:
        attributes = _values_in(head.attr)
    except ValueError as error:
        raise InputError(str(path), f"its GlobalMetadata {error}") from None
    nodes, waits = list[ExecutionNode](), 0
    for place in places[1:]:
        message = _parsed(kinds["Node"](), data, place, str(path), "no Node is there")
        try:
            nodes.append(_node_in(message))
        except ValueError as error:
            raise InputError(str(path), f"node {message.id}: {error}") from None
        waits += len(nodes[-1].data) + len(nodes[-1].control)
        check_waits(waits, str(path))
    return ExecutionTrace(path=str(path), version=head.version, attributes=attributes, nodes=tuple(nodes))


def _places(data: bytes, path: str) -> Iterator[tuple[int, int]]:
    """Where each message begins and ends."""
    at, count, end = 0, 0, len(data)
    while at < end:
        length = shift = 0
        first = at
        for at in range(first, min(end, first + LONGEST_VARINT)):
            byte = data[at]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            raise InputError(path, f"byte {first}: is no Chakra trace, or is cut off")
        at += 1
        if at + length > end:
            raise InputError(path, f"byte {first}: is no Chakra trace, or is cut off")
        if length > LARGEST_MESSAGE:
            raise InputError(path, f"byte {first}: has a node of more than {LARGEST_MESSAGE} bytes; refused")
        yield at, at + length
        at += length
        count += 1
        if count > LIMIT.entries + 1:
            raise InputError(path, f"has more than {LIMIT.entries} nodes; refused")


def _head(message: Any, data: bytes, place: tuple[int, int], path: str) -> Any:
    """The first message, which must not be a node: its fields have the same numbers and other types."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    wanted = "a Chakra trace begins with its GlobalMetadata"
    head = _parsed(message, data, place, path, wanted)
    if {each.field_number for each in UnknownFieldSet(head)} & {1, 2, 3, 4, 5}:
        raise InputError(path, f"byte {place[0]}: {wanted}")
    return head


def _parsed(message: Any, data: bytes, place: tuple[int, int], path: str, wanted: str) -> Any:
    from google.protobuf.message import DecodeError

    begin, end = place
    try:
        message.ParseFromString(data[begin:end])
    except DecodeError:
        raise InputError(path, f"byte {begin}: {wanted}") from None
    return message


def _node_in(message: Any) -> ExecutionNode:
    known = 0 <= message.type < len(NODE_TYPES)
    return ExecutionNode(
        id=message.id, name=message.name, type=NODE_TYPES[message.type] if known else f"type {message.type}",
        control=tuple(message.ctrl_deps), data=tuple(message.data_deps), start_us=message.start_time_micros,
        duration_us=message.duration_micros, inputs=_texts_in(message, "inputs"), outputs=_texts_in(message, "outputs"),
        attributes=_values_in(message.attr),
    )  # fmt: skip


def _texts_in(message: Any, name: str) -> TensorTexts:
    if not message.HasField(name):
        return TensorTexts()
    found = getattr(message, name)
    return TensorTexts(values=found.values, shapes=found.shapes, types=found.types)


def _values_in(found: Sequence[Any]) -> dict[str, Any]:
    if len(found) > MOST_ATTRIBUTES:
        raise ValueError(f"has more than {MOST_ATTRIBUTES} attributes; refused")
    values = {}
    for each in found:
        form: str = each.WhichOneof("value") or ""
        value: Any = getattr(each, form) if form else None
        values[intern(each.name)] = list(value.values[:LONGEST_LIST]) if form.endswith("_list") else value
    return values


def binary(trace: ExecutionTrace) -> bytes:
    """The bytes of a `.et` file. Raises MissingExtra."""
    kinds = messages()
    head = kinds["GlobalMetadata"](version=trace.version)
    _fill(head.attr, trace.attributes)
    return b"".join([_delimited(head), *(_delimited(_message(kinds["Node"], node)) for node in trace.nodes)])


def _message(kind: Any, node: ExecutionNode) -> Any:
    number = NODE_TYPES.index(node.type) if node.type in NODE_TYPES else NODE_TYPES.index(INVALID)
    made = kind(id=node.id, name=node.name, type=number, ctrl_deps=node.control, data_deps=node.data,
                start_time_micros=node.start_us, duration_micros=node.duration_us)  # fmt: skip
    for name in ("inputs", "outputs"):
        texts, place = getattr(node, name), getattr(made, name)
        place.values, place.shapes, place.types = texts.values, texts.shapes, texts.types
    _fill(made.attr, node.attributes)
    return made


def _fill(place: Any, attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        place.add(name=name, **{form_of(value): value})


def form_of(value: object) -> str:
    """The form in which an attribute is written.

    >>> form_of(True), form_of(3), form_of("a")
    ('bool_val', 'int64_val', 'string_val')
    """
    if type(value) is int:
        return "int64_val" if value < 2**63 else "uint64_val"
    return {bool: "bool_val", float: "double_val", str: "string_val"}[type(value)]


def _delimited(message: Any) -> bytes:
    body: bytes = message.SerializeToString()
    return varint(len(body)) + body


@cache
def messages() -> dict[str, Any]:
    """The classes of GlobalMetadata and Node. Raises MissingExtra without protobuf."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise MissingExtra("reading and writing Chakra's .et files", "chakra") from None
    file = descriptor_pb2.FileDescriptorProto(name="archsim_chakra.proto", package=PACKAGE, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def add(message: Any, name: str, number: int, kind: str, repeats: bool = False) -> Any:
        field = message.field.add(name=name, number=number, label=kinds.LABEL_REPEATED if repeats else kinds.LABEL_OPTIONAL)
        if kind in VALUE_FORMS:
            field.type = getattr(kinds, f"TYPE_{kind.upper()}")
        else:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
        return field

    for form in VALUE_FORMS:
        add(file.message_type.add(name=f"{form.capitalize()}List"), "values", 1, form, True)
    attribute = file.message_type.add(name="AttributeProto")
    attribute.oneof_decl.add(name="value")
    add(attribute, "name", 1, "string")
    for place, form in enumerate(VALUE_FORMS):
        number = FIRST_VALUE + 2 * place
        add(attribute, f"{form}_val", number, form).oneof_index = 0
        add(attribute, f"{form}_list", number + 1, f"{form.capitalize()}List").oneof_index = 0
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for each in fields:
            add(message, *each)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in ("GlobalMetadata", "Node"))
    return {found.name: message_factory.GetMessageClass(found) for found in found}


# -------------------------------------------------------------------------------------------------------------- as JSON

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


JSON_KEYS = {bool: "boolVal", int: "int64Val", float: "doubleVal", str: "stringVal"}


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
    return [{"name": name, JSON_KEYS[type(value)]: str(value) if type(value) is int else value}
            for name, value in attributes.items()]
