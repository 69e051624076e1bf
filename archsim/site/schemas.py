"""A page that lists the schemas of all JSON outputs, beside the schemas themselves."""

from __future__ import annotations

from typing import Any

from archsim.answers.schemas import SCHEMAS, schema_of
from archsim.render.markdown import table
from archsim.site.markdown import contents, plain

FOLDER = "schemas"
HEAD = ("key", "type")


def pages() -> dict[str, str]:
    """Pages by their place in the site."""
    ordered = {name: schema_of(name) for name in sorted(SCHEMAS)}
    index = (
        "# JSON\n\nWhat `--json` prints, by command, as JSON Schema 2020-12 (`archsim show schema NAME`). "
        "A key that is listed here keeps its name and its unit; units are SI and stand in the name.\n\n"
    )
    return {f"{FOLDER}/index": index + contents(ordered)} | {f"{FOLDER}/{name}": _page(one) for name, one in ordered.items()}


def _page(schema: dict[str, Any]) -> str:
    title = schema.get("title", "")
    rows = [[f"`{key}`", plain(shape(value))] for key, value in schema.get("properties", {}).items()]
    return f"# {title}\n\n" + table(HEAD, rows)


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
