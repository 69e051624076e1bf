"""Pages of keys: those of a spec, for each kind of device; and those of JSON, for each command."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from archsim.answers.schemas import SCHEMAS, schema_of
from archsim.base.units import TEXT
from archsim.device.device import CLASSES, PARTS
from archsim.device.part import Unit
from archsim.device.spec import keys, read_by
from archsim.render.markdown import table
from archsim.site.markdown import contents, plain

KINDS = {"gpu": "GPU", "cpu": "CPU", "tpu": "TPU"}
HEAD = ("key", "unit", "range", "needed", "moves", "meaning")


def pages() -> dict[str, str]:
    """Pages by their place in the site."""
    of_specs = (
        "# Keys of a spec\n\nA spec describes one device in a TOML file: what each value means, in which unit and within which "
        "limits, and which fidelities it moves. `archsim show hw NAME` prints those of a device with their sources; the page "
        "[own-files](../own-files.md) says how to write one.\n\n"
    )
    of_json = (
        "# JSON\n\nWhat `--json` prints, by command, as JSON Schema 2020-12 (`archsim show schema NAME`). "
        "A key that is listed here keeps its name and its unit; units are SI and stand in the name.\n\n"
    )
    found = {f"keys/{kind}": _page(kind) for kind in CLASSES} | {f"schemas/{name}": _listed(name) for name in sorted(SCHEMAS)}
    return found | {"keys/index": of_specs + contents(CLASSES), "schemas/index": of_json + contents(sorted(SCHEMAS))}


def _page(kind: str) -> str:
    parts = []
    for part, rows in groupby(keys(kind), key=lambda row: row[0].partition(".")[0]):
        about = plain((PARTS[kind][part].__doc__ or "").partition("\n")[0])
        parts.append(f"## `[{part}]`\n\n{about}\n\n" + table(HEAD, [_row(*row) for row in rows]))
    return f"# Spec of a {KINDS[kind]}\n\n" + "\n".join(parts)


def _row(key: str, unit: Unit, required: bool) -> list[str]:
    words = unit.unit == TEXT
    return [f"`{key}`", "word" if words else plain(unit.unit), "" if words else plain(unit.range), "yes" if required else "",
            read_by(unit) or "nothing", plain(unit.doc)]  # fmt: skip


def _listed(name: str) -> str:
    schema = schema_of(name)
    rows = [[f"`{key}`", plain(shape(value))] for key, value in schema.get("properties", {}).items()]
    return f"# {schema.get('title', '')}\n\n" + table(("key", "type"), rows)


def shape(schema: dict[str, Any]) -> str:
    """What a value is, in words.

    >>> shape({"type": ["number", "null"]}), shape({"const": "a/1"}), shape({"type": "array", "items": {"type": "string"}})
    ('number or null', 'a/1', 'list of string')
    """
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(map(shape, schema[word]))
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {shape(schema.get('items', {}))}"
    if kind == "object" and schema.get("properties"):
        return "{" + ", ".join(schema["properties"]) + "}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"by name: {shape(schema['additionalProperties'])}"
    return str(kind)
