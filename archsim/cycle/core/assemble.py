"""A loop as the pipeline takes it: micro-operations with slots, ports and latencies of one core."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from archsim.base.errors import Unsupported
from archsim.cycle.core import layout
from archsim.cycle.core.machine import DIVIDER, CoreMachine
from archsim.cycle.core.operation import CoreLoop, MemoryStream, Operation, chased, levels, stored_to

NEEDS_NO_PORT = {"zero": ("zero", "moves", "memory"), "mov": ("moves", "memory")}  # kinds by what rename eliminates
# Trips up to which the exit of a loop is predicted where a spec does not say: A. Fog, The microarchitecture of Intel, AMD and VIA
# CPUs (2022), section 3: loops of 64 on Pentium M to Ivy Bridge; from Haswell on the history of branches, which is not longer.
FORESEEN = 64
MOVED = {"zero": "logic", "mov": "logic"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroOperation:
    """One row of a program, before it is numbers; `operation` is its place in the loop, `sources` (row, iterations before, clocks
    more than the producer's latency)."""

    operation: int
    kind: int
    slots: int
    ports: int
    passes: int
    latency: float
    queue: int
    divides: float = 0.0
    register: int = 0
    sources: tuple[tuple[int, int, float], ...] = ()
    stream: int = -1
    offset: int = 0
    size: int = 0
    taken: bool = False
    missed: float = 0.0


def assembled(machine: CoreMachine, loop: CoreLoop) -> tuple[MicroOperation, ...]:
    """The micro-operations of an iteration on a core. Raises Unsupported for what it has no port for."""
    streams = {stream.name: at for at, stream in enumerate(loop.streams)}
    result_row: dict[int, int] = {}  # the row whose end is the result of an operation
    rows: list[MicroOperation] = []
    fusing = machine.pipeline.fuses or "none"
    for at, one in enumerate(loop.operations):
        folded_before = at > 0 and loop.operations[at - 1].folded and fusing in ("memory", "both")
        compared = at > 0 and loop.operations[at - 1].kind == "int"
        if one.kind == "branch" and one.fused and compared and fusing in ("branch", "both"):
            counter = result_row[at - 1]
            ports = machine.ports_of("branch", 64) if one.taken else rows[counter].ports
            rows[counter] = replace(rows[counter], ports=ports, taken=one.taken, missed=missed_share(machine, one))
            result_row[at] = counter
            continue
        rows += _parts(machine, one, at, streams, _slots(machine, one) - int(folded_before))
        result_row[at] = len(rows) - 1
    first = {row.operation: place for place, row in reversed(list(enumerate(rows)))}
    return tuple(_linked(machine, loop, rows, place, result_row, first) for place in range(len(rows)))


def _slots(machine: CoreMachine, one: Operation) -> int:
    """Slots of rename: an operation wider than what one slot carries is cracked, into as many as rename and the window hold."""
    p = machine.pipeline
    if p.slot_width is None or not one.vector:
        return 1
    return int(max(1, min(ceil(one.width / float(p.slot_width)), float(p.rename), float(p.window or inf))))


def _parts(machine: CoreMachine, one: Operation, at: int, streams: dict[str, int], slots: int) -> list[MicroOperation]:
    """The micro-operations of one operation, without what they wait for."""
    register = 0 if not one.writes else 2 if one.vector else 1
    if one.kind == "store":
        return _store(machine, one, at, streams, slots)
    if one.kind == "broadcast" and "broadcast" in machine.masks and not one.folded:
        spread = replace(one, memory=None, vector=True)
        return [_load(machine, one, at, streams, slots, 0), *_arithmetic(machine, spread, at, slots, register)]
    if one.kind in ("load", "broadcast"):
        return [_load(machine, one, at, streams, slots, 0 if one.folded else register)]
    if one.kind == "gather":
        return _gather(machine, one, at, streams, slots, register)
    eliminated = (machine.pipeline.eliminates or "none") in NEEDS_NO_PORT.get(one.kind, ())
    if eliminated:
        return [MicroOperation(operation=at, kind=layout.NOTHING, slots=slots, ports=0, passes=0, latency=0, queue=0)]
    return _arithmetic(machine, one, at, slots, register)


def _arithmetic(machine: CoreMachine, one: Operation, at: int, slots: int, register: int) -> list[MicroOperation]:
    """The micro-operations that it is cracked into, one behind the other; the last one has the result."""
    kind = MOVED.get(one.kind, one.kind) if one.vector else {"mov": "int", "zero": "int"}.get(one.kind, one.kind)
    times = max(1, ceil(one.width / float(machine.pipeline.datapath))) if one.vector else 1
    divider = kind in DIVIDER
    hold, latency = _divided(machine, kind, one) if divider else (machine.hold.get(kind, 1.0), machine.latency_of(kind))
    count = int(machine.cracked.get(kind, 1.0))
    last = MicroOperation(
        operation=at, kind=layout.ARITHMETIC, slots=slots, ports=machine.ports_of(kind, one.width),
        passes=1 if divider else ceil(times * hold), divides=times * hold if divider else 0.0,
        latency=max(1.0, latency - count + 1),
        queue=layout.VECTOR_QUEUE if one.vector else layout.INT_QUEUE, register=register,
        taken=one.kind == "branch" and one.taken, missed=missed_share(machine, one),
    )  # fmt: skip
    return [replace(last, latency=1, register=0, taken=False, missed=0.0)] * (count - 1) + [last]


def missed_share(machine: CoreMachine, one: Operation) -> float:
    """The share of iterations in which a branch is mispredicted: on its data, and at the exit of a loop of many trips.

    missed + 1 / trips, the second where trips > `pipeline.exit_trips`, at most 1
    """
    exits = float(machine.pipeline.exit_trips or FORESEEN)
    share = min(1.0, one.missed + (1.0 / one.trips if one.trips > exits else 0.0))
    if share and machine.pipeline.mispredict is None:
        raise Unsupported(f"{machine.name}: has a mispredicted branch to run, and its spec has no pipeline.mispredict; "
                          '--set pipeline.mispredict="16 clk" gives one')  # fmt: skip
    return share


def _divided(machine: CoreMachine, kind: str, one: Operation) -> tuple[float, float]:
    """Clocks for which a division or root holds the divider, and its latency [clk].

    fp64 of less than the whole width takes the share of both that fp32 of that width takes.
    """
    narrow = f"{kind}{128 if one.width <= 128 else 256 if one.width <= 256 else ''}"
    whole = machine.hold.get(kind, 1.0)
    hold = machine.hold.get(narrow, whole)
    if one.element < 64:
        return hold, machine.latency.get(narrow, machine.latency_of(kind))
    double, doubled = machine.hold.get(f"{kind}64", whole), machine.latency.get(f"{kind}64", machine.latency_of(kind))
    return double * hold / whole, doubled * machine.latency.get(narrow, machine.latency_of(kind)) / machine.latency_of(kind)


def _load(machine: CoreMachine, one: Operation, at: int, streams: dict[str, int], slots: int, register: int) -> MicroOperation:
    assert one.memory is not None
    path = float(machine.pipeline.load_path or one.width)
    passes = 1 if one.kind == "broadcast" else max(1, ceil(one.width / path))
    latency = machine.latency.get("load_vector", machine.load) if one.vector else machine.load
    latency += machine.latency.get("indexed", 0.0) if one.indexed else 0.0
    return MicroOperation(
        operation=at, kind=layout.LOAD, slots=slots, ports=machine.ports_of("load_vector" if one.vector else "load", one.width),
        passes=passes, queue=layout.MEMORY_QUEUE, register=register, latency=latency + passes - 1,
        stream=streams[one.memory.stream], offset=one.memory.offset, size=one.memory.size,
    )  # fmt: skip


def _store(machine: CoreMachine, one: Operation, at: int, streams: dict[str, int], slots: int) -> list[MicroOperation]:
    """Its address and its data."""
    assert one.memory is not None
    path = float(machine.pipeline.store_path or one.width)
    passes = max(1, ceil(one.width / path))
    one_slot = (machine.pipeline.fuses or "none") in ("memory", "both")
    return [
        MicroOperation(operation=at, kind=layout.ARITHMETIC, slots=slots, ports=machine.ports_of("store_address", one.width),
                       passes=1, latency=1, queue=layout.MEMORY_QUEUE),
        MicroOperation(operation=at, kind=layout.STORE, slots=0 if one_slot else 1, passes=passes, latency=passes,
                       ports=machine.ports_of("store_data_vector" if one.vector else "store_data", one.width),
                       queue=layout.VECTOR_QUEUE if one.vector else layout.INT_QUEUE,
                       stream=streams[one.memory.stream], offset=one.memory.offset, size=one.memory.size),
    ]  # fmt: skip


def _gather(machine: CoreMachine, one: Operation, at: int, streams: dict[str, int], slots: int, register: int
            ) -> list[MicroOperation]:  # fmt: skip
    """A load for each element, and what puts them together."""
    assert one.memory is not None
    hold = machine.hold.get("gather", 1.0)
    loads = [
        MicroOperation(operation=at, kind=layout.LOAD, slots=slots if i == 0 else 0, queue=layout.MEMORY_QUEUE,
                       ports=machine.ports_of("load_vector", one.width),
                       passes=max(1, ceil(hold * (i + 1)) - ceil(hold * i)),
                       latency=machine.latency.get("load_vector", machine.load), stream=streams[one.memory.stream],
                       offset=one.memory.offset, size=one.element // 8)
        for i in range(one.elements)
    ]  # fmt: skip
    together = MicroOperation(operation=at, kind=layout.ARITHMETIC, slots=1, ports=machine.ports_of("shuffle", one.width),
                              passes=1, latency=machine.latency.get("gather", 1.0), queue=layout.VECTOR_QUEUE,
                              register=register)  # fmt: skip
    return [*loads, together]


def _linked(machine: CoreMachine, loop: CoreLoop, rows: Sequence[MicroOperation], place: int, result: dict[int, int],
            first: dict[int, int]) -> MicroOperation:  # fmt: skip
    """A row with what it waits for: operands, its own loads, and stores of the bytes that it loads."""
    row = rows[place]
    one = loop.operations[row.operation]
    found: list[tuple[int, int, float]] = []
    for number, (made, back) in enumerate(one.sources):
        producer = loop.operations[made]
        more = 0.0
        if one.chained and number == len(one.sources) - 1 and f"{one.kind}_chain" in machine.latency:
            more = machine.latency[f"{one.kind}_chain"] - machine.latency_of(one.kind) if producer.kind == one.kind else 0.0
        elif one.kind == producer.kind == "add" and "add_chain" in machine.latency and one.vector:
            more = machine.latency["add_chain"] - machine.latency_of("add")
        found.append((result[made], back, more))
    if one.kind == "store":
        address = [(result[made], back, 0.0) for made, back in one.address]
        found = address if row.kind == layout.ARITHMETIC else [*found, (first[row.operation], 0, 0.0)]
    elif one.kind == "gather":
        if row.kind == layout.LOAD:
            found = [(result[made], back, 0.0) for made, back in one.address] + found[:2]
        else:
            found = [(place - 1, 0, 0.0), *found]
    elif row.kind == layout.LOAD:
        renamed = _renamed(machine, loop, row, result)
        if renamed:
            return replace(row, kind=layout.NOTHING, latency=0.0, stream=-1, sources=renamed)
        found = [(result[made], back, 0.0) for made, back in one.address] + forwarded(machine, loop, row, result)
    behind = row.operation > 0 and loop.operations[row.operation - 1].folded
    if behind and one.kind not in ("store", "gather"):
        found = [pair for pair in found if pair[0] != result[row.operation - 1]] + [(result[row.operation - 1], 0, 0.0)]
    if place > first[row.operation] and one.kind not in ("load", "store", "gather"):  # behind its other micro-operations
        found = [(place - 1, 0, 0.0)]
    if len(found) > layout.SOURCES:
        found = sorted(found, key=lambda pair: (pair[1], -pair[0]))[: layout.SOURCES]
    return replace(row, sources=tuple(found))


def stores_before(loop: CoreLoop, at: int) -> list[tuple[int, int]]:
    """The stores that write the bytes which a load reads, and how many iterations before; the last one before the load first."""
    one = loop.operations[at].memory
    assert one is not None
    mine = _stream(loop, one.stream)
    found = []
    for place, other in enumerate(loop.operations):
        if other.kind != "store" or other.memory is None:
            continue
        theirs = _stream(loop, other.memory.stream)
        if (mine.alias or mine.name) != (theirs.alias or theirs.name):
            continue
        ahead = other.memory.offset - one.offset
        if ahead == 0 and (place < at or mine.stride == 0):
            found.append((place, 0 if place < at else 1))
        elif mine.stride and ahead > 0 and ahead % mine.stride == 0:
            found.append((place, ahead // mine.stride))
    return sorted(found, key=lambda store: (store[1], -store[0]))


def forwarded(machine: CoreMachine, loop: CoreLoop, row: MicroOperation, result: dict[int, int]) -> list[tuple[int, int, float]]:
    """The stores whose bytes a load reads, of this iteration or of one before, and what it takes until they are there."""
    vector = loop.operations[row.operation].vector
    clocks = machine.pipeline.forward_vector if vector else machine.pipeline.forward
    if clocks is None:
        return []
    return [(result[at], back, float(clocks) - 1.0 - row.latency) for at, back in stores_before(loop, row.operation)][:1]


def _renamed(machine: CoreMachine, loop: CoreLoop, row: MicroOperation, result: dict[int, int]
             ) -> tuple[tuple[int, int, float], ...]:  # fmt: skip
    """Who made the value that a load finds in a register, since a store of the same size has named it; nobody where none has."""
    one = loop.operations[row.operation]
    if machine.pipeline.eliminates != "memory" or one.vector or one.kind != "load" or one.memory is None:
        return ()
    for at, back in stores_before(loop, row.operation):
        store = loop.operations[at]
        if store.memory is not None and store.memory.size == one.memory.size and back <= 1 and store.sources:
            made, before = store.sources[0]
            return ((result[made], back + before, 0.0),)
    return ()


def _stream(loop: CoreLoop, name: str) -> MemoryStream:
    return next(stream for stream in loop.streams if stream.name == name)


def table(rows: Sequence[MicroOperation], shared: Container[int] = ()) -> list[int]:
    """The rows as numbers, one after the other; `shared`: the queues that are one scheduler."""
    found: list[int] = []
    for row in rows:
        line = [0] * layout.COLUMNS
        for column, value in {
            layout.KIND: row.kind, layout.SLOTS: row.slots, layout.PORTS: row.ports, layout.PASSES: row.passes,
            layout.DIVIDES: round(row.divides * layout.TICKS), layout.LATENCY: round(row.latency),
            layout.QUEUE: layout.INT_QUEUE if row.queue in shared else row.queue,
            layout.REGISTER: row.register, layout.STREAM: row.stream, layout.OFFSET: row.offset,
            layout.BYTES: row.size, layout.TAKEN: int(row.taken), layout.LOW: (row.ports & -row.ports).bit_length() - 1,
            layout.HIGH: row.ports.bit_length(),
            layout.MISSED: round(row.missed * layout.TICKS),
        }.items():  # fmt: skip
            line[column] = value
        for source in range(layout.SOURCES):
            at = layout.FROM1 + 3 * source
            made, back, more = row.sources[source] if source < len(row.sources) else (-1, 0, 0.0)
            line[at], line[at + 1], line[at + 2] = made, back, round(more)
        found += line
    return found


def streams_of(machine: CoreMachine, loop: CoreLoop) -> list[int]:
    """The streams of a loop as numbers."""
    found: list[int] = []
    entries, page, _ = machine.tlb
    written = stored_to(loop)
    for stream, level in zip(loop.streams, levels(loop, machine.sizes), strict=True):
        paged = level > 1 and entries * page < stream.footprint
        found += [stream.start, stream.stride, min(level, 2 + len(machine.near)), int(chased(loop, stream.name)), int(paged),
                  int(stream.name in written)]  # fmt: skip
    return found
