"""What an iteration of a loop takes at least on a core, whatever its pipeline does: a bound for each part that it shares.

Each is in clocks per iteration, follows from the operations and the machine alone, and no simulation passes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd

from archsim.cycle.core import layout
from archsim.cycle.core.assemble import MicroOperation, assembled
from archsim.cycle.core.machine import CoreMachine, delivered
from archsim.cycle.core.misses import crossing
from archsim.cycle.core.operation import CoreLoop, chased, levels, stored_to

EXPLAINED = 0.9  # of the simulated clocks: a bound below does not say what the loop waits for
TOUCHED = 4096  # iterations after which the lines of a stream are counted off
SMALL = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEdge:
    """A micro-operation that waits for another.

    clocks: from the end of the one that `made` an operand to the end of its `user`, `back` iterations later
    """

    made: int
    user: int
    clocks: float
    back: int


def bounds(machine: CoreMachine, loop: CoreLoop, rows: Sequence[MicroOperation] | None = None) -> dict[str, float]:
    """Every bound of an iteration by name [clk], the largest first.

    rows: the micro-operations of the loop on the core, if they are known
    """
    rows = assembled(machine, loop) if rows is None else rows
    pipeline = machine.pipeline
    slots, taken, rename = sum(row.slots for row in rows), sum(row.taken for row in rows), float(pipeline.rename)
    replayed = pipeline.loop_buffer is not None and slots <= pipeline.loop_buffer
    found = {
        "front end": slots / rename if replayed else front_end(slots, taken, rename, delivered(pipeline, slots),
                                                               float(pipeline.branches or 1)),
        "retire": slots / float(pipeline.retire or rename),
        "chain": longest_chain(chain_edges(machine, loop, rows))[0],
        "mispredicted branches": sum(row.missed * restart(machine, row) for row in rows),
        "divider": sum(row.divides for row in rows),
        "loads": sum(row.size for row in rows if row.kind == layout.LOAD) / machine.read,
        "stores": sum(row.size for row in rows if row.kind == layout.STORE) / machine.write,
        **_beyond(machine, loop, rows),
    }  # fmt: skip
    if pipeline.order == "in":
        found["issue"] = sum(row.kind != layout.NOTHING for row in rows) / rename
    ports, clocks = port_bound((row.ports, row.passes + _split(machine, loop, row)) for row in rows if row.kind != layout.NOTHING)
    if ports:
        names = [name for at, name in enumerate(machine.ports) if ports >> at & 1]
        found[f"{'ports' if len(names) > 1 else 'port'} {' '.join(names)}"] = clocks
    return dict(sorted(((name, clocks) for name, clocks in found.items() if clocks > 0), key=lambda one: -one[1]))


def restart(machine: CoreMachine, row: MicroOperation) -> float:
    """Clocks from the rename of a mispredicted branch to that of what follows it [clk]."""
    pipeline = machine.pipeline
    return round(float(pipeline.issue_delay or 1)) + round(row.latency) + round(float(pipeline.mispredict or 0))


def what_binds(found: Mapping[str, float], cycles: float, waits: Mapping[str, float]) -> tuple[str, float]:
    """What a loop of some simulated clocks waits for, and the share of these clocks that the largest bound explains.

    The largest bound; where it explains less than nine tenths, and rename waited for a queue or registers, these.
    """
    name, clocks = max(found.items(), key=lambda one: one[1], default=("", 0.0))
    share = clocks / cycles if cycles else 0.0
    pool, lost = max(waits.items(), key=lambda one: one[1], default=("", 0.0))
    return (pool if share < EXPLAINED and lost > 0 else name), share


def front_end(slots: int, taken: int, rename: float, fetch: float, branches: float) -> float:
    """Clocks in which the front end delivers an iteration [clk].

    max(slots / rename, slots / fetch, taken / branches), and ceil(slots / fetch) where each clock follows one taken branch

    slots: of an iteration; taken: branches of it that are taken
    rename, fetch: slots per clock; branches: taken branches per clock

    >>> front_end(slots=10, taken=1, rename=8, fetch=8, branches=1)
    2
    """
    whole = ceil(slots / fetch) if taken == 1 and branches < 2 else 0
    return max(slots / rename, slots / fetch, taken / max(1, int(branches)), whole)


def port_bound(operations: Iterable[tuple[int, float]]) -> tuple[int, float]:
    """The ports that some operations load most, as a mask, and for how many clocks [clk].

    max over sets S of ports: (sum of clocks of operations whose ports are all in S) / |S|
    (Abel and Reineke 2022, uiCA, section 4.9; the sets that matter are unions of the masks)

    operations: (mask of the ports that take it, clocks that it keeps one)

    >>> port_bound([(0b01, 1.0), (0b11, 1.0), (0b11, 2.0)])
    (3, 2.0)
    """
    clocks: dict[int, float] = {}
    for mask, passes in operations:
        clocks[mask] = clocks.get(mask, 0.0) + passes
    sets = {0}
    for mask in clocks:
        sets |= {one | mask for one in sets}
    best, most = 0, 0.0
    for one in sorted(sets - {0}, key=lambda ports: (ports.bit_count(), ports)):
        within = sum(each for mask, each in clocks.items() if mask & ~one == 0) / one.bit_count()
        if within > most + SMALL:
            best, most = one, within
    return best, most


def chain_edges(machine: CoreMachine, loop: CoreLoop, rows: Sequence[MicroOperation]) -> list[ChainEdge]:
    """Who waits for whom in a loop, and for how long at least; a load of a chain of pointers waits for its level, too."""
    found = []
    far = {at: _chased_clocks(machine, loop, at, level) for at, level in enumerate(levels(loop, machine.sizes))
           if chased(loop, loop.streams[at].name)}  # fmt: skip
    for user, row in enumerate(rows):
        if row.kind == layout.NOTHING:
            own = 0.0
        else:
            own = float(round(row.latency))
            if row.kind == layout.LOAD:
                own = max(own, far.get(row.stream, 0.0))
        found += [ChainEdge(made=made, user=user, clocks=own + round(more), back=back) for made, back, more in row.sources]
    return found


def _chased_clocks(machine: CoreMachine, loop: CoreLoop, stream: int, level: int) -> float:
    """Clocks of a load from a level, and of the translation of its address, where the next address is in its data."""
    if level < 2:
        return 0.0
    entries, page, _ = machine.tlb
    footprint = loop.streams[stream].footprint
    latency = machine.near[min(level - 2, len(machine.near) - 1)][1]
    return round(latency) + (round(machine.translation_clocks(footprint)) if entries * page < footprint else 0.0)


def longest_chain(edges: Sequence[ChainEdge]) -> tuple[float, tuple[int, ...]]:
    """The chain through the iterations that takes longest [clk per iteration], and the micro-operations in it.

    max over cycles of the graph: (sum of clocks) / (sum of iterations that it goes back)     (maximum cycle ratio)

    Newton's method: from a ratio, find a cycle that takes longer and take its own, until there is none (Dasdan 2004, section 3).

    edges: of micro-operations in the order of the program; those within an iteration make no cycle

    >>> longest_chain([ChainEdge(made=0, user=1, clocks=3, back=0), ChainEdge(made=1, user=0, clocks=4, back=2)])
    (3.5, (0, 1))
    """
    ordered = sorted(edges, key=lambda edge: edge.user)
    ratio, chain = 0.0, tuple[int, ...]()
    while True:
        cycle = _longer(ordered, ratio)
        if not cycle:
            return ratio, chain
        back = sum(edge.back for edge in cycle)
        if not back:
            raise ValueError(f"the micro-operations {[edge.user for edge in cycle]} wait for each other in one iteration")
        found = sum(edge.clocks for edge in cycle) / back
        if found <= ratio + SMALL:
            return ratio, chain
        ratio, chain = found, tuple(sorted(edge.user for edge in cycle))


def _longer(edges: Sequence[ChainEdge], ratio: float) -> tuple[ChainEdge, ...]:
    """A cycle that takes more than a ratio for each iteration; none where there is no such."""
    nodes = {edge.user for edge in edges} | {edge.made for edge in edges}
    value = dict.fromkeys(nodes, 0.0)
    parent: dict[int, ChainEdge] = {}
    for _ in range(len(nodes) + 1):
        changed = False
        for edge in edges:
            ends = value[edge.made] + edge.clocks - ratio * edge.back
            if ends > value[edge.user] + SMALL:
                value[edge.user], parent[edge.user] = ends, edge
                changed = True
        if not changed:
            return ()
        cycle = _cycle(parent)
        if cycle:
            return cycle
    return ()


def _cycle(parent: Mapping[int, ChainEdge]) -> tuple[ChainEdge, ...]:
    """A cycle among who waits last for whom."""
    seen: dict[int, int] = {}
    for start in parent:
        node = start
        while node in parent and node not in seen:
            seen[node] = start
            node = parent[node].made
        if node in parent and seen.get(node) == start:
            found = [parent[node]]
            while found[-1].made != node:
                found.append(parent[found[-1].made])
            return tuple(found)
    return ()


def lines_touched(loop: CoreLoop, stream: int, line: int, rows: Sequence[MicroOperation]) -> float:
    """Lines of a stream that an iteration is the first to touch.

    A stream goes on to higher addresses; a line behind the furthest one is in the L1 already.
    """
    one = loop.streams[stream]
    mine = [row for row in rows if row.stream == stream and row.kind != layout.NOTHING]
    if not mine:
        return 0.0
    if chased(loop, one.name):
        return float(len(mine))
    if one.stride <= 0:
        return 0.0
    period = line // gcd(line, one.stride)
    first = -(-max(row.offset + row.size for row in mine) // one.stride) + 1  # until every operation follows another
    if first > TOUCHED:
        return 0.0
    furthest, counted = -1 << 62, 0
    for iteration in range(first + period):
        for row in mine:
            at = one.start + iteration * one.stride + row.offset
            for touched in range(at // line, (at + max(row.size, 1) - 1) // line + 1):
                if touched > furthest:
                    furthest = touched
                    counted += iteration >= first
    return counted / period


def _split(machine: CoreMachine, loop: CoreLoop, row: MicroOperation) -> float:
    """The share of iterations in which a load lies across two lines, and takes its port once more."""
    if row.kind != layout.LOAD or round(float(machine.pipeline.split or 1)) < 1:
        return 0.0
    one, line = loop.streams[row.stream], machine.line
    period = line // gcd(line, abs(one.stride))
    begins = ((one.start + iteration * one.stride + row.offset) % line for iteration in range(period))
    return sum(begin + row.size > line for begin in begins) / period


def _beyond(machine: CoreMachine, loop: CoreLoop, rows: Sequence[MicroOperation]) -> dict[str, float]:
    """The levels behind the L1: lines over bandwidth, and over what is on its way at once.

    lines * line / bandwidth        and        lines * latency / buffers        (Little 1961)

    A line keeps a miss buffer of the L1 for the latency of its level where nobody foresees it, else for that of the L2 at least;
    one from beyond the L2 a buffer of the L2 for the rest. In a stream that is written, as many lines go back.
    """
    come, back = [0.0] * len(machine.near), [0.0] * len(machine.near)
    held, far, second, written = 0.0, 0.0, round(machine.near[0][1]), stored_to(loop)
    for at, level in enumerate(levels(loop, machine.sizes)):
        if level < 2:
            continue
        lines = lines_touched(loop, at, machine.line, rows)
        own = min(level - 2, len(machine.near) - 1)
        for place in {0, own}:
            come[place] += lines
            back[place] += lines * (loop.streams[at].name in written)
        rest = round(machine.near[own][1]) - second
        far += lines * rest
        held += lines * (second + rest * chased(loop, loop.streams[at].name))
    found = {"L1 miss buffers": held / machine.buffers, "L2 miss buffers": far / machine.far_buffers}
    for at, lines in enumerate(come):
        found |= crossing(machine, at, lines, back[at])
    return found
