"""Loops as a file: JSON with one loop, or with several and the cycles that somebody measured or predicted of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archsim.base.errors import InputError, nearest
from archsim.base.files import read_text
from archsim.base.limits import LIMITS
from archsim.cycle.core.operation import SHUFFLES_ACROSS, Access, CoreLoop, MemoryStream, Operation

KINDS = {
    "load": "load", "broadcast_load": "broadcast", "store": "store", "gather": "gather", "fma": "fma", "add": "add",
    "mul": "mul", "div": "divide", "sqrt": "root", "max": "max", "shuffle": "shuffle", "convert": "convert", "round": "round",
    "scalef": "scale",
    "vint_add": "vint", "vint_shift": "shift", "vint_mul": "vmul", "logic": "logic", "blend": "blend", "mask_set": "mask",
    "pairwise_add": "pairwise", "int": "int", "branch": "branch", "zero": "zero", "mov": "mov", "dot": "dot", "tile": "tile",
    "transfer": "transfer",
}  # fmt: skip
OF_INT = {"imul": "multiply", "lea": "address", "mov": "mov"}
ELEMENTS = {"f32": 32, "f64": 64, "i32": 32, "i64": 64, "bf16": 16, "f16": 16, "i8": 8}


def read_loops(path: str) -> tuple[CoreLoop, ...]:
    """The loops of a file: an object with a list `loops`, or one loop. Raises InputError with every problem."""
    text = read_text(Path(path), LIMITS["network"].size)
    try:
        words = json.loads(text)
    except ValueError as error:
        raise InputError(path, f"is no JSON: {error}") from None
    found = words.get("loops") if isinstance(words, dict) and "loops" in words else [words]
    if not isinstance(found, list) or not found:
        raise InputError(path, "loops: must be a list of loops, each with `name`, `ops` and `streams`")
    problems: list[str] = []
    loops = []
    for at, one in enumerate(found):
        try:
            loops.append(loop_of(one))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            name = one.get("name", at) if isinstance(one, dict) else at
            said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            problems.append(f"loops[{at}] ({name}): {said}")
    if problems:
        raise InputError(path, problems[:20])
    return tuple(loops)


def loop_of(words: Mapping[str, Any]) -> CoreLoop:
    """One loop. Raises KeyError, TypeError or ValueError for words that are none."""
    ops = words["ops"]
    place = {op["id"]: at for at, op in enumerate(ops)}
    operations = tuple(_operation(op, at, ops, place) for at, op in enumerate(ops))
    streams = tuple(
        MemoryStream(name=one["name"], stride=int(one["stride_bytes"]), footprint=int(one.get("footprint_bytes") or 64),
                     start=int(one.get("base_page_offset") or 0), alias=one.get("alias_of") or "")
        for one in words.get("streams", ())
    )  # fmt: skip
    known = {stream.name for stream in streams}
    for one in operations:
        if one.memory is not None and one.memory.stream not in known:
            there = ", ".join(sorted(known)) or "none"
            raise ValueError(f"an operation names the stream {one.memory.stream!r}; streams: {there}")
    measured = (words.get("measured") or {}).get("cycles_per_iteration")
    return CoreLoop(
        name=str(words["name"]), operations=operations, streams=streams, trips=int(words.get("iterations_per_pass") or 1000),
        isa=str(words.get("isa", "")), flop=float(words.get("flops_per_iteration") or 0.0),
        measured=None if measured is None else float(measured),
    )  # fmt: skip


def _operation(op: Mapping[str, Any], at: int, ops: list[Mapping[str, Any]], place: Mapping[int, int]) -> Operation:
    kind = str(op["kind"])
    if kind not in KINDS:
        raise ValueError(f"op {op['id']}: kind {kind!r} is not one of {', '.join(nearest(kind, KINDS) or KINDS)}")
    name, sub = KINDS[kind], str(op.get("sub") or "")
    if kind == "int":
        name = OF_INT.get(sub, "int")
    if kind == "shuffle" and sub in SHUFFLES_ACROSS:
        name = "cross"
    if op["elem"] not in ELEMENTS:
        raise ValueError(f"op {op['id']}: elem {op['elem']!r} is not one of {', '.join(ELEMENTS)}")
    width, element = int(op["width_bits"]), ELEMENTS[op["elem"]]
    vector = op["elem"] != "i64" or width > 64
    memory = op.get("mem")
    access = None
    if memory is not None:
        access = Access(stream=str(memory["stream"]), offset=int(memory.get("offset") or 0), size=int(memory.get("bytes") or 8))
    before = ops[at - 1] if at else {}
    return Operation(
        kind=name, width=width, element=element, vector=vector, memory=access, folded=bool(op.get("fused_memory")),
        sources=_made(op["in"], place), address=_made(op["address_in"], place), writes=op.get("out") is not None,
        fused=kind == "branch" and op.get("macro_fusible_with") == before.get("id", -1),
        chained=op.get("form") == "accumulate" or kind == "dot", elements=max(1, width // element) if kind == "gather" else 1,
        text=f"{kind} {sub}".strip(),
    )  # fmt: skip


def _made(values: list[Mapping[str, Any]], place: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((place[one["producer"]], int(one["distance"])) for one in values if one.get("producer") is not None)
