"""JSON Schema of the records that answers consist of: what a dataclass looks like once it has been written as JSON."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.lazy import LazyField
from archsim.base.units import COUNT
from archsim.study.condition import unit_of

Schema = dict[str, Any]
PLAIN: dict[Any, Schema] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    type(None): {"type": "null"}, Any: {}, object: {},
}  # fmt: skip


def of_type(kind: Any) -> Schema:
    """The schema of a type: of texts, numbers, records, and of tables and lists of them. TypeError for any other.

    >>> of_type(float | None), of_type(tuple[str, ...])
    ({'type': ['number', 'null']}, {'type': 'array', 'items': {'type': 'string'}})
    """
    if kind in PLAIN:
        return dict(PLAIN[kind])
    if dataclasses.is_dataclass(kind):
        return record_of(kind)
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is LazyField:
        return of_type(inside[0])
    if origin in (typing.Union, types.UnionType):
        return either(*(of_type(one) for one in inside if not _is_array(one)))
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": of_type(inside[1])}
    if origin is tuple and inside[-1] is not Ellipsis:
        items = [of_type(one) for one in inside]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if isinstance(origin, type) and issubclass(origin, Sequence | frozenset):
        return {"type": "array", "items": of_type(inside[0])}
    raise TypeError(f"{kind} has no JSON form")


def record_of(kind: Any, *only: str) -> Schema:
    """The schema of a dataclass: all its fields, or `only` some of its fields and properties."""
    hints = typing.get_type_hints(kind)
    names = only or tuple(field.name for field in dataclasses.fields(kind))
    found = {name: hints[name] if name in hints else _returned(kind, name) for name in names}
    return table({name: of_type(one) for name, one in found.items()}, about=(inspect.getdoc(kind) or "").split("\n\n")[0])


def _returned(kind: Any, name: str) -> Any:
    return typing.get_type_hints(getattr(kind, name).fget)["return"]


def _is_array(kind: Any) -> bool:
    return getattr(typing.get_origin(kind) or kind, "__module__", "").startswith("numpy")


def table(properties: Mapping[str, Schema], about: str = "", optional: Sequence[str] = ()) -> Schema:
    """An object with these keys, all of which are there but the `optional` ones. A number says its unit."""
    described = {name: with_unit(name, schema) for name, schema in properties.items()}
    about = " ".join(about.split())
    return {"type": "object", **({"description": about} if about else {}), "properties": described,
            "required": [name for name in properties if name not in optional]}  # fmt: skip


def with_unit(name: str, schema: Schema) -> Schema:
    """The schema with the unit that the name of a number ends with."""
    unit = unit_of(name)
    holds = schema.get("type"), schema.get("additionalProperties", {}).get("type"), schema.get("items", {}).get("type")
    numbers = any("number" in (kind if isinstance(kind, list) else [kind]) for kind in holds)
    return {"description": unit, **schema} if numbers and unit != COUNT and "description" not in schema else schema


def either(*schemas: Schema) -> Schema:
    """One of several; plain types are one list."""
    unique = [schema for i, schema in enumerate(schemas) if schema not in schemas[:i]]
    if len(unique) == 1:
        return unique[0]
    if {} in unique:
        return {}
    if all(set(schema) == {"type"} for schema in unique):
        return {"type": [kind for schema in unique for kind in (
            schema["type"] if isinstance(schema["type"], list) else [schema["type"]])]}  # fmt: skip
    return {"anyOf": unique}


def or_null(schema: Schema) -> Schema:
    """The schema, or null."""
    return either(schema, {"type": "null"})


def listed(items: Schema) -> Schema:
    """A list of them."""
    return {"type": "array", "items": items}


def by_name(values: Schema) -> Schema:
    """A table of them by names that depend on the question."""
    return {"type": "object", "additionalProperties": values}


def merged(*tables: Schema) -> Schema:
    """One object with the keys of several; later ones win."""
    found = table({})
    for one in tables:
        found["properties"] |= one["properties"]
        found["required"] = [*dict.fromkeys([*found["required"], *one["required"]])]
    found["description"] = next((one["description"] for one in tables if "description" in one), "")
    return found
