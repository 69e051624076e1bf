"""Loops of a core as a file: JSON with one loop or several, which become cases where somebody measured their cycles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from archsim.base.errors import ArgumentError, InputError, Unsupported, near_words
from archsim.base.files import LIMITS, read_text
from archsim.cycle.core.operation import SHUFFLES_ACROSS, Access, CoreLoop, MemoryStream, Operation
from archsim.detect.architecture import CoreRow, core_of
from archsim.detect.catalog import find as find_device
from archsim.detect.system import Computer
from archsim.device.device import Cpu
from archsim.device.spec import Spec
from archsim.evidence.case import TIMERS, WATCHED, Case, LoopPattern, Skip
from archsim.evidence.row import alone
from archsim.stack import catalog as stacks

Words = Mapping[str, Any]
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
SUFFIX = ".json"  # by which a measurement file of loops is told from one of rows
METRIC = "clk_per_iteration"
COLUMNS = ("group", "isa", "elem", "description")  # of a loop, which become columns of its row


def read_loops(path: str) -> tuple[CoreLoop, ...]:
    """The loops of a file: an object with a list `loops`, or one loop. Raises InputError with every problem."""
    return tuple([loop for _, loop in _read(path)[1]])


def _read(path: str) -> tuple[Any, list[tuple[Words, CoreLoop]]]:
    """What a file says of all its loops, and each in its words and as it was read."""
    text = read_text(Path(path), LIMITS["network"].size)
    try:
        words = json.loads(text)
    except ValueError as error:
        raise InputError(path, f"is no JSON: {error}") from None
    found = words.get("loops") if isinstance(words, dict) and "loops" in words else [words]
    if not isinstance(found, list) or not found:
        raise InputError(path, "loops: must be a list of loops, each with `name`, `ops` and `streams`")
    problems: list[str] = []
    loops: list[tuple[Words, CoreLoop]] = []
    for at, one in enumerate(found):
        try:
            loops.append((one, _loop(one)))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            name = one.get("name", at) if isinstance(one, dict) else at
            said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            problems.append(f"loops[{at}] ({name}): {said}")
    if problems:
        raise InputError(path, problems[:20])
    return words, loops


def _loop(words: Words) -> CoreLoop:
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


def _operation(op: Words, at: int, ops: list[Words], place: Mapping[int, int]) -> Operation:
    kind, sub = str(op["kind"]), str(op.get("sub") or "")
    if kind not in KINDS:
        raise ValueError(f"op {op['id']}: kind {kind!r} is not one of {near_words(kind, KINDS)}")
    name = OF_INT.get(sub, "int") if kind == "int" else "cross" if kind == "shuffle" and sub in SHUFFLES_ACROSS else KINDS[kind]
    if op["elem"] not in ELEMENTS:
        raise ValueError(f"op {op['id']}: elem {op['elem']!r} is not one of {', '.join(ELEMENTS)}")
    width, element = _whole(op, "width_bits", 8, WIDEST), ELEMENTS[op["elem"]]
    vector = op["elem"] != "i64" or width > 64
    memory = op.get("mem")
    access = None if memory is None else Access(
        stream=str(memory["stream"]), offset=_whole(memory, "offset", -FARTHEST, FARTHEST, 0),
        size=_whole(memory, "bytes", 1, WIDEST, 8),
    )  # fmt: skip
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


def _made(values: list[Words], place: Mapping[int, int], at: int) -> tuple[tuple[int, int], ...]:
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


def _whole(words: Words, key: str, low: int, high: int, default: int | None = None) -> int:
    """A whole number of the file between two others; the default where it has none."""
    value = default if words.get(key) is None else words[key]
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


# ----------------------------------------------------------------------------------------------------------------- cases


def loop_cases(path: str, devices: Sequence[str] = ()) -> tuple[list[Case], list[Skip]]:
    """A case for each measured loop of a file, a skip for each other one.

    devices: the one on which the loops are simulated; that of the file's machine where none is named. A loop runs at the middle
    of the clocks that were seen beside it.

    Raises InputError for a file that is none, ArgumentError for a device that cannot have been the one measured.
    """
    words, found = _read(path)
    spec = _device(path, _mapping(words.get("meta")), devices)
    stack = stacks.find(spec.identity.default_stack)
    cases: list[Case] = []
    skips: list[Skip] = []
    for line, (one, loop) in enumerate(found, start=1):
        fields = {"name": loop.name, **{name: str(one[name]) for name in COLUMNS if one.get(name)}}
        if loop.measured is None:
            skips.append(Skip(line=line, reason="nobody has measured the loop", file=path, fields=fields))
            continue
        cases.append(Case(
            line=line, fields=fields, source=Path(path).stem, label=loop.name, hardware=spec.identity.id, stack_id=stack.id,
            task="inference", metric=METRIC, measured=loop.measured, split=WATCHED, trace=alone("loop"), spec=spec, stack=stack,
            precision="fp64" if one.get("elem") == "f64" else "fp32", batch=1, clock=_clock(one["measured"]),
            timer=TIMERS["device"], pattern=LoopPattern(loop=loop), file=path,
        ))  # fmt: skip
    return cases, skips


def _clock(measured: Words) -> float | None:
    """The middle of the clocks beside a measurement [Hz]; None where it says nothing."""
    ends: Any = measured.get("clock_ghz")
    sound = isinstance(ends, list) and ends and all(isinstance(end, (int, float)) and 0 < end < 100 for end in ends)
    return 1e9 * sum(ends) / len(ends) if sound else None


def _device(path: str, meta: Words, devices: Sequence[str]) -> Spec:
    """The device that was measured: the one named, or a shipped one with the core of the file's machine."""
    if len(devices) > 1:
        raise ArgumentError(f"hw {','.join(devices)}: the loops of {path} were measured on one device; name one")
    row = _core(meta)
    if not devices:
        if row is None:
            raise ArgumentError(f"{path} does not say which processor was measured (meta.machine.cpu); --hw names it")
        return find_device(row.like)
    spec = find_device(devices[0])
    if not isinstance(spec.device, Cpu):
        raise ArgumentError(f"hw {devices[0]}: is a GPU, and the loops of {path} run on CPUs")
    if row is not None and spec.identity.architecture != row.architecture:
        raise ArgumentError(f"hw {devices[0]}: has cores of {spec.identity.architecture}, and the cycles of {path} were measured "
                            f"on {row.architecture}; leave --hw out for {row.like}")  # fmt: skip
    return spec


def _mapping(words: Any) -> Words:
    return words if isinstance(words, Mapping) else {}


def _core(meta: Words) -> CoreRow | None:
    """The row of the processor that the file names, as /proc/cpuinfo does; None where it names none that is known."""
    machine = _mapping(meta.get("machine"))
    cpu = _mapping(machine.get("cpu"))
    if not cpu:
        return None
    family, model = (int(text) if (text := str(cpu.get(key))).isdecimal() else None for key in ("cpu family", "model"))
    try:
        return core_of(Computer(
            vendor=str(cpu.get("vendor_id", "")), name=str(cpu.get("model name", "")), part=str(cpu.get("CPU part", "")),
            family=family, model=model, flags=frozenset(map(str, machine.get("flags") or ())), virtual=False, cores=1, threads=1,
            sockets=1, quota=None, caches=(), memory=None, base=None, boost=None, power=None, vector_bits=None, unseen=(),
        ))  # fmt: skip
    except Unsupported:
        return None
