"""The messages of Chakra's schema for the package `protobuf`, built from a table: numbers and types of fields.

Schema: mlcommons/chakra, schema/protobuf/et_def.proto. Fields that nothing here reads are left out; protobuf skips them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from archsim.base.errors import MissingExtra

PACKAGE = "ChakraProtoMsg"
FIRST_VALUE = 3  # number of an attribute's first form; each form has a list behind it
# forms of an attribute's value, in the order of their numbers
FORMS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
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
        if kind in FORMS:
            field.type = getattr(kinds, f"TYPE_{kind.upper()}")
        else:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
        return field

    for form in FORMS:
        add(file.message_type.add(name=f"{form.capitalize()}List"), "values", 1, form, True)
    attribute = file.message_type.add(name="AttributeProto")
    attribute.oneof_decl.add(name="value")
    add(attribute, "name", 1, "string")
    for place, form in enumerate(FORMS):
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
