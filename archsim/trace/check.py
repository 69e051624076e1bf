"""From the lines of a trace file to a `Trace`, or to the list of all problems.

Each line is read on its own first; then names, order and shapes are checked over the whole network. Recorded shapes are compared
with the shape rules of the ops at two values of each symbol, so that agreement is not a coincidence of one size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError
from typing import Any, NamedTuple

from archsim.base.errors import nearest
from archsim.trace import values
from archsim.trace.dims import LARGEST, Dim, Shape, bind_dims, elements, factors, short, show, symbols_in
from archsim.trace.jsonlines import JsonLine
from archsim.trace.kind import FORWARD
from archsim.trace.kinds.dense import Embedding
from archsim.trace.op import KINDS
from archsim.trace.trace import Op, Trace, ordered
from archsim.trace.values import read

SCHEMA = "archsim-trace/1"
HEADER = {
    "name": values.name, "inputs": values.inputs, "dtype": values.dtype, "source": values.text,
    "outputs": values.names, "sizes": values.sizes, "symbols": values.meanings, "aliases": values.names, "notes": values.text,
    "left_out": values.text,
}  # fmt: skip
OPTIONAL = ("outputs", "sizes", "symbols", "aliases", "notes", "left_out")
OP = {
    "name": ("name", values.name), "in": ("inputs", values.names), "out": ("shape", values.dims),
    "phase": ("phase", values.phase), "parent": ("parent", values.name), "of": ("of", values.shapes),
    "shares": ("shares", values.name),
}  # fmt: skip
OP_KEYS = ("op", *OP)
TIED = "tied"  # flag of a linear layer, as files had it before `shares`: its weights are the table of an embedding
ENOUGH = 50  # problems, after which checking stops
FEW = 2000  # names at most for the search of a nearest one
FEW_MEMBERS = 10  # of a cycle that an error names
PRIMES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069, 1087, 1091, 1093, 1097)
MOST_SYMBOLS = len(PRIMES) // 2


class Placed(NamedTuple):
    """An op with its line number."""

    line: int
    op: Op


def trace_of(lines: Iterable[JsonLine]) -> tuple[Trace | None, list[str]]:
    """The trace that the lines describe, or None, and the problems."""
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        return None, ["is empty"]
    header, problems = _header(first)
    placed: list[Placed] = []
    for line in rest:
        op, found = _op(line)
        problems += found
        if op is not None:
            placed.append(Placed(line.number, op))
        if len(problems) > ENOUGH:
            return None, [*problems, "and perhaps more; checking stopped here"]
    if header is None or problems:  # later checks would report consequences of these problems
        return None, problems
    if not placed:
        return None, ["has a header but no ops"]
    placed = _with_tables(placed)
    problems += _names(placed, header, first.number)
    misshapen = _shapes(placed, header["inputs"], first.number) + _sizes(placed, header, first.number)
    if problems:  # the order needs valid names
        return None, problems + misshapen
    ops, problems = _ordered(placed, header["inputs"])
    problems += misshapen
    return (None, problems) if problems else (Trace(ops=ops, **header), [])


def _ordered(placed: Sequence[Placed], inputs: Mapping[str, object]) -> tuple[tuple[Op, ...], list[str]]:
    """The ops in execution order: as they stand, where that is one."""
    try:
        return tuple([placed[position].op for position in ordered([(op.name, op.inputs) for _, op in placed], inputs)]), []
    except CycleError as error:
        ring = error.args[1]
    at = next(line for line, op in placed if op.name == ring[0])
    members = ring if len(ring) <= FEW_MEMBERS + 1 else [*ring[:FEW_MEMBERS], f"... ({len(ring) - 1} ops)"]
    return (), [f"line {at}: cycle {' -> '.join(members)}"]


def _header(line: JsonLine) -> tuple[dict[str, Any] | None, list[str]]:
    """The fields of a Trace, all but its ops."""
    where, raw = f"line {line.number}: header", line.record
    if raw.get("schema") != SCHEMA:
        return None, [f"{where} has schema {short(raw.get('schema'))}; this reads {SCHEMA!r}"]
    problems = [f"{where} lacks the key {key!r}" for key in HEADER if key not in raw and key not in OPTIONAL]
    for key in raw:
        if key not in HEADER and key != "schema":
            problems.append(f"{where} has the unknown key {short(key)}{_nearest(key, HEADER)}")
    fields: dict[str, Any] = {}
    for key, reader in HEADER.items():
        if key in raw:
            try:
                fields[key] = reader(raw[key])
            except ValueError as error:
                problems.append(f"{where} {key!r} {error}")
    return (None if problems else fields), problems


def _op(line: JsonLine) -> tuple[Op | None, list[str]]:
    """One op line."""
    raw, where = line.record, f"line {line.number}:"
    problems = [f"{where} the key {key!r} is missing" for key in ("op", "name", "in", "out") if key not in raw]
    if problems:
        return None, problems
    kind_class = KINDS.get(raw["op"]) if isinstance(raw["op"], str) else None
    if kind_class is None:
        hint = _nearest(raw["op"], KINDS) or f"; known: {', '.join(KINDS)}"
        return None, [f"{where} unknown op {short(raw['op'])}{hint}"]
    flagged = kind_class.op == "linear" and isinstance(raw.get(TIED), bool)
    own = {key: raw[key] for key in raw if key not in OP_KEYS and not (flagged and key == TIED)}
    kind, found = read(kind_class, own, OP_KEYS)
    problems = [f"{where} {kind_class.op} {text}" for text in found]
    fields: dict[str, Any] = {"shares": TIED} if flagged and raw[TIED] else {}
    for key, (field, reader) in OP.items():
        if key in raw:
            try:
                fields[field] = reader(raw[key])
            except ValueError as error:
                problems.append(f"{where} {kind_class.op} {key!r} {error}")
    forward = fields.get("phase", FORWARD) == FORWARD
    if any((key in raw) == forward for key in ("parent", "of")):
        problems.append(f"{where} {kind_class.op}: gradients and updates, and only they, have both 'parent' and 'of'")
    if problems or kind is None:
        return None, problems
    return Op(kind=kind, **fields), []


def _with_tables(placed: Sequence[Placed]) -> list[Placed]:
    """The ops, those with the old flag sharing the table that has a row for each of their results."""
    tables: dict[Dim, str] = {op.kind.vocabulary: op.name for _, op in reversed(placed) if isinstance(op.kind, Embedding)}
    return [Placed(line, replace(op, shares=tables.get(op.shape[-1], ""))) if op.shares == TIED else Placed(line, op)
            for line, op in placed]  # fmt: skip


def _names(placed: Sequence[Placed], header: Mapping[str, Any], header_line: int) -> list[str]:
    """Every tensor is named once, and whatever is used exists."""
    problems: list[str] = []
    where: dict[str, int] = {}
    for line, op in placed:
        if op.name in header["inputs"]:
            problems.append(f"line {line}: {op.name!r} is the name of a network input too")
        elif op.name in where:
            problems.append(f"line {line}: {op.name!r} was already named on line {where[op.name]}")
        where.setdefault(op.name, line)
    known = [*header["inputs"], *where]
    exists = set(known)
    wanted = [(f"line {line}: {op.name!r} reads", name) for line, op in placed for name in op.inputs]
    wanted += [(f"line {header_line}: header 'outputs' has", name) for name in header.get("outputs", ())]
    for place, name in wanted:
        if name not in exists:
            hint = _nearest(name, known) if len(problems) < ENOUGH and len(known) < FEW else ""
            problems.append(f"{place} {name!r}, which nothing produces{hint}")
    owners = {op.name for _, op in placed if not op.shares}
    return problems + [
        f"line {line}: {op.name!r} shares the learned values of {op.shares!r}, which is no op with values of its own"
        for line, op in placed if op.shares and op.phase == FORWARD and op.shares not in owners
    ]  # fmt: skip


def _sizes(placed: Sequence[Placed], header: Mapping[str, Any], header_line: int) -> list[str]:
    """Every symbol that has a size occurs in a shape."""
    used = symbols_in(dim for dims in (*header["inputs"].values(), *(op.shape for _, op in placed)) for dim in dims)
    unknown = [name for name in header.get("sizes", ()) if name not in used]
    return [f"line {header_line}: header 'sizes' has {short(name)}, which no shape uses" for name in unknown]


def _shapes(placed: Sequence[Placed], inputs: Mapping[str, tuple[Dim, ...]], header_line: int) -> list[str]:
    """Recorded shapes against the shape rules, at two values of each symbol."""
    recorded = {op.name: op.shape for _, op in placed} | dict(inputs)
    worked_on = [dims for _, op in placed for dims in op.of]
    symbols = sorted(symbols_in(dim for dims in (*recorded.values(), *worked_on) for dim in dims))
    if len(symbols) > MOST_SYMBOLS:
        return [f"uses {len(symbols)} symbols; at most {MOST_SYMBOLS} are allowed"]
    problems = [
        f"line {header_line}: header 'inputs' has {name!r} {show(dims)}, more than 2^53 values"
        for name, dims in inputs.items()
        if _too_large(dims)
    ]
    flagged: set[int] = set()
    for first in range(2 if symbols else 1):
        probe = dict(zip(symbols, PRIMES[first::2], strict=False))
        shapes = {name: bind_dims(dims, probe) for name, dims in recorded.items()}
        for line, op in placed:
            problem = "" if line in flagged else _shape_problem(op, shapes, probe)
            if problem:
                flagged.add(line)
                problems.append(f"line {line}: {op.name!r} ({op.kind.op}) {problem}")
        if len(problems) > ENOUGH:
            break
    return problems


def _shape_problem(op: Op, shapes: Mapping[str, Shape], probe: Mapping[str, int]) -> str:
    """What is wrong with the recorded shape of one op; empty when all is well or an input is unknown."""
    if op.of:
        inputs = [bind_dims(dims, probe) for dims in op.of]
    else:
        try:
            inputs = [shapes[name] for name in op.inputs]
        except KeyError:
            return ""
    recorded = shapes[op.name]
    try:
        computed = op.kind.shape(inputs, recorded)
    except ValueError as error:
        return f"{error}{_at(probe)}"
    if computed != recorded:
        right = _beside(op.shape, recorded, computed)
        return f"records the shape {show(op.shape)}, but its inputs make it {right}{_at(probe)}"
    if _too_large(op.shape):
        return f"has the shape {show(op.shape)}, more than 2^53 values"
    return ""


def _at(probe: Mapping[str, int]) -> str:
    return f" (with {', '.join(f'{name} = {value}' for name, value in probe.items())})" if probe else ""


def _too_large(dims: Sequence[Dim]) -> bool:
    """Whether the shape is too large even with every symbol at 1."""
    return elements(tuple([dim if isinstance(dim, int) else factors(dim)[0] for dim in dims])) > LARGEST


def _beside(written: Sequence[Dim], recorded: Shape, computed: Shape) -> str:
    """The computed shape, with the symbols of the recorded one where the two agree."""
    if len(recorded) != len(computed):
        return show(computed)
    agree = zip(written, recorded, computed, strict=True)
    return show([dim if size == own else own for dim, size, own in agree])


def _nearest(word: object, known: Iterable[str]) -> str:
    near = nearest(word, known) if isinstance(word, str) and len(word) <= values.LONGEST_NAME else []
    return f"; nearest: {', '.join(near)}" if near else ""
