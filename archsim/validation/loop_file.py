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
MOST_OPS = 4096  # of a loop
MOST_BACK = 64  # iterations from which an operand may come
FARTHEST = 1 << 40  # bytes of an offset, a stride or a footprint
WIDEST = 4096  # bit of a register
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
    if not isinstance(ops, list) or not 1 <= len(ops) <= MOST_OPS:
        raise ValueError(f"ops: must be a list of 1 to {MOST_OPS} operations")
    place = {op["id"]: at for at, op in enumerate(ops)}
    if len(place) < len(ops):
        raise ValueError("ops: several have the same id")
    operations = tuple(_operation(op, at, ops, place) for at, op in enumerate(ops))
    streams = tuple(
        MemoryStream(name=str(one["name"]), stride=_whole(one, "stride_bytes", -FARTHEST, FARTHEST),
                     footprint=_whole(one, "footprint_bytes", 0, FARTHEST, 64) or 64,
                     start=_whole(one, "base_page_offset", 0, FARTHEST, 0), alias=str(one.get("alias_of") or ""))
        for one in words.get("streams", ())
    )  # fmt: skip
    known = {stream.name for stream in streams}
    for one in operations:
        if one.memory is not None and one.memory.stream not in known:
            there = ", ".join(sorted(known)) or "none"
            raise ValueError(f"an operation names the stream {one.memory.stream!r}; streams: {there}")
    if len(known) < len(streams):
        raise ValueError("streams: several have the same name")
    measured = (words.get("measured") or {}).get("cycles_per_iteration")
    return CoreLoop(
        name=str(words["name"]), operations=operations, streams=streams, isa=str(words.get("isa", "")),
        trips=_whole(words, "iterations_per_pass", 1, FARTHEST, 1000), flop=_amount(words.get("flops_per_iteration") or 0.0, 0.0),
        measured=None if measured is None else _amount(measured, 1e-9),
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
    width, element = _whole(op, "width_bits", 8, WIDEST), ELEMENTS[op["elem"]]
    vector = op["elem"] != "i64" or width > 64
    memory = op.get("mem")
    access = None
    if memory is not None:
        access = Access(stream=str(memory["stream"]), offset=_whole(memory, "offset", -FARTHEST, FARTHEST, 0),
                        size=_whole(memory, "bytes", 1, WIDEST, 8))  # fmt: skip
    if access is None and name in ("load", "broadcast", "store", "gather"):
        raise ValueError(f"op {op['id']}: {kind} lacks mem")
    before = ops[at - 1] if at else {}
    return Operation(
        kind=name, width=width, element=element, vector=vector, memory=access, folded=bool(op.get("fused_memory")),
        sources=_made(op["in"], place, at), address=_made(op["address_in"], place, at), writes=op.get("out") is not None,
        fused=kind == "branch" and op.get("macro_fusible_with") == before.get("id", -1),
        chained=op.get("form") == "accumulate" or kind == "dot", elements=max(1, width // element) if kind == "gather" else 1,
        text=f"{kind} {sub}".strip(),
    )  # fmt: skip


def _made(values: list[Mapping[str, Any]], place: Mapping[int, int], at: int) -> tuple[tuple[int, int], ...]:
    """Who made each operand, and how many iterations before; what the loop does not make is left out."""
    found = []
    for one in values:
        if one.get("producer") is None:
            continue
        if one["producer"] not in place:
            raise ValueError(f"an operand is of op {one['producer']!r}, which is none")
        made, back = place[one["producer"]], _whole(one, "distance", 0, MOST_BACK)
        if back == 0 and made >= at:
            raise ValueError(f"an operand of op number {at} is not made yet in its iteration; its distance is at least 1")
        found.append((made, back))
    return tuple(found)


def _whole(words: Mapping[str, Any], key: str, low: int, high: int, default: int | None = None) -> int:
    """A whole number of the file between two others; the default where it has none."""
    value = words.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise KeyError(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or not low <= value <= high or value % 1:
        raise ValueError(f"{key}: {value!r} is no whole number from {low} to {high}")
    return int(value)


def _amount(value: Any, low: float) -> float:
    """A finite number of the file, at least another one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value < 1e15:
        raise ValueError(f"{value!r} is no number of FLOP or clocks")
    return float(value)
