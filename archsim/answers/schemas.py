"""The JSON Schemas of what `--json` prints: `archsim show schema NAME` makes them from the classes of answers.

Answers that are no class have their keys here; what is inside of these is left open. The contract suite holds that the outputs of
every command are as their schema says, without a key that it does not name.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from archsim.base.errors import one_of
from archsim.base.record import LazyField
from archsim.base.units import COUNT
from archsim.study.objective import unit_of

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
PLAIN: dict[Any, Schema] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    type(None): {"type": "null"}, Any: {}, object: {},
}  # fmt: skip
Row = dict[str, Any]
Rows, Texts, Numbers = list[Row], list[str], dict[str, float]
DEVICE = {"network": str, "hardware": str, "hardware_name": str, "changes": dict[str, str]}
ASKED = {**DEVICE, "stack": str, "task": str, "batch": int, "precision": str}
SCORED = {"fidelity": str, "provenance": dict[str, str]}
SEVERAL = ("power", "curves", "slowest")  # of which a command prints one, or a list
UNTAGGED = ("compare", "slowest", "names", "hw")  # that name no schema
TAGS = {"explain": "explanation", "simulated": "simulated-layer", "validate": "validation", "net": "network",
        "serve_llm": "serve-llm"}  # those that are called otherwise in the output  # fmt: skip

# name -> (command, the class of the answer, or its keys, or a type)
SCHEMAS: dict[str, tuple[str, Any]] = {
    "estimate": ("estimate", "estimation.result.Estimate"),
    "power": ("power", "estimation.power.PowerEstimate"),
    "llm": ("llm", "generation.estimate.GenerationEstimate"),
    "compare": ("compare", Rows),
    "curves": ("compare --batch RANGE", {
        "network": str, "copies": bool, "curves": Rows, "best": Rows, "crossings": Rows, "payoffs": Rows,
        "besides_the_device": Rows, "cannot_run": Rows, "notes": Texts}),
    "whatif": ("whatif", {
        "changes": Texts, "followed": Row, "changed": bool, "ratios": Numbers, "moves": Rows, "ops": Rows, "before": Row,
        "after": Row, "dies": Rows | None}),
    "profile": ("profile", "study.profiled.ProfileComparison"),
    "sensitivity": ("sensitivity", {
        **ASKED, "step": float, "span": float, "limited_by": str, "saved_s": Numbers, "host_floor_s": float, "values": Rows}),
    "search": ("search", {
        **ASKED, "stack_rows": Row, "wanted": str, "how": str, "points": int, "feasible": int, "no_machine": int,
        "no_mask": int, "base": Row, "best": Rows, "front": Rows, "front_of": Texts, "estimated": Texts, "saved": Row | None}),
    "target": ("search --target OUTPUT=VALUE", {
        **DEVICE, "output": str, "limit": float, "base": Row, "ways": Rows}),
    "tune": ("tune", "study.tune.Tuning"),
    "serve": ("simulate serve", "simulate.serve.Serving"),
    "serve_llm": ("simulate serve --llm", "simulate.serve_llm.TextServing"),
    "train": ("simulate train", "simulate.train.Training"),
    "allreduce": ("simulate allreduce", "simulate.allreduce.AllReduces"),
    "sm": ("simulate sm", {
        "hardware": str, "kernel": str, "clock_hz": float, "scheduler": str, "time_s": float, "clocks": float, "ctas": int,
        "resident_ctas": int, "occupancy": float, "achieved_occupancy": float, "instructions": int,
        "instructions_per_clock": float, "issue_use": float, "pipe_use": Numbers, "peak_share": float | None,
        "bandwidth_bps": Numbers, "energy_j": Numbers, "power_w": float, "hits": Numbers,
        "addresses": dict[str, int], "unread": Texts, "stalls": Numbers, "stalled": Rows}),
    "core": ("simulate core", {"hardware": str, "clock_hz": float, "loops": Rows, "skipped": Rows}),
    "curve": ("simulate sm --curve", "simulate.curves.SimulatedCurve"),
    "cache": ("cache", "explain.caches.CacheReport"),
    "explain": ("explain --layer NAME", "explain.layer.Explanation"),
    "simulated": ("explain --layer NAME --fidelity cycle", "explain.simulated.SimulatedLayer"),
    "slowest": ("explain", "explain.layer.Slow"),
    "validate": ("validate", {
        **SCORED, "without": Texts, "groups": Rows, "overall": Rows, "rows": Rows,
        "skipped": Rows, "skipped_by_reason": dict[str, int]}),
    "scoreboard": ("validate --predictor ...", {
        **SCORED, "asked": int, "rows": int, "skipped": int, "predictors": Rows, "predictions": Rows, "claims": Rows}),
    "sweep": ("sweep", {"units": dict[str, str], "stack_rows": Rows, "rows": Rows}),
    "hw": ("show hw NAME", {
        "identity": Row, "kind": str, "hash": str, "values": Row, "keys": Row, "stated": Row}),
    "node": ("show node NAME", {
        "id": str, "name": str, "devices": int, "holds": str | None, "values": Row, "links": Rows}),
    "net": ("show net NAME", {
        "network": str, "source": str, "macs": int | None, "flop": float | None, "parameters": int | None, "sizes": Row,
        "ops": Rows, "operators": Rows}),
    "stack": ("show stack NAME", {
        "id": str, "parts": dict[str, str], "digest": str, "measured_rows": Row, "fuses": str, "releases": Rows, "values": Row,
        "keys": Row}),
    "calibration": ("show calibration", {"version": str, "constants": Row}),
    "names": ("list WHAT", list[dict[str, str]]),
}  # fmt: skip


def schema_of(name: str) -> Schema:
    """The schema of that name, with its title. Raises UnknownName."""
    one_of("schema", name, sorted(SCHEMAS))
    command, keys = SCHEMAS[name]
    if isinstance(keys, str):
        from archsim.answers.estimate import ESTIMATED, SCALARS

        module, _, kind = keys.rpartition(".")
        only = (*SCALARS, *ESTIMATED) if name == "estimate" else ()
        found = record_of(getattr(import_module(f"archsim.{module}"), kind), *only)
    else:
        found = table(keys) if isinstance(keys, dict) else of_type(keys)
    if name not in UNTAGGED:
        found["properties"] = {"schema": {"const": f"archsim-{TAGS.get(name, name)}/1"}} | found["properties"]
        found["required"] = ["schema", *found["required"]]
    if name == "serve":
        found["properties"]["batching"] = table({"max": int, "wait_s": float})  # words of the option
    if name in SEVERAL:
        found = {"anyOf": [found, {"type": "array", "items": found}]}
    return {"$schema": DIALECT, "title": f"`archsim {command} --json`", **found}


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
        return {"type": "array", "minItems": len(inside), "maxItems": len(inside)}
    if isinstance(origin, type) and issubclass(origin, Sequence | frozenset):
        return {"type": "array", "items": of_type(inside[0])}
    raise TypeError(f"{kind} has no JSON form")


def record_of(kind: Any, *only: str) -> Schema:
    """The schema of a dataclass: all its fields, or `only` some of its fields and properties."""
    hints = typing.get_type_hints(kind)
    found = {name: hints.get(name) or typing.get_type_hints(getattr(kind, name).fget)["return"]
             for name in only or [field.name for field in dataclasses.fields(kind)]}  # fmt: skip
    return {"description": " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split()), **table(found)}


def _is_array(kind: Any) -> bool:
    return getattr(typing.get_origin(kind) or kind, "__module__", "").startswith("numpy")


def table(keys: Mapping[str, Any]) -> Schema:
    """An object with these keys, by their types. A number says the unit that its name ends with."""
    properties = {name: of_type(kind) for name, kind in keys.items()}
    for name, schema in properties.items():
        if unit_of(name) != COUNT and "number" in str(schema):
            schema.setdefault("description", unit_of(name))
    return {"type": "object", "properties": properties, "required": [*keys]}


def either(*schemas: Schema) -> Schema:
    """One of several; plain types are one list."""
    unique = [schema for i, schema in enumerate(schemas) if schema not in schemas[:i]]
    if all(set(schema) == {"type"} for schema in unique):
        return {"type": [schema["type"] for schema in unique]} if len(unique) > 1 else unique[0]
    return {"anyOf": unique}
