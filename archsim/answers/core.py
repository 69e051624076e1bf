"""What loops say that one core ran: what binds, how far from the peak, and the first micro-operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archsim.base.units import show
from archsim.cycle.core import layout
from archsim.render.blocks import (
    Axis,
    Block,
    Chart,
    Facts,
    Series,
    Table,
    Verdict,
    columns,
    number,
    percent,
    stacked,
    words,
)
from archsim.render.text import records_csv
from archsim.simulate.core import SCHEMA, SimulatedCore, SimulatedCores

WORTH = 0.005  # clocks or lines of an iteration: less is not told
DRAWN = 60  # micro-operations of the picture
PARTS = ("waits for operands or a port", "executes", "waits for those before it")


def record(c: SimulatedCores) -> dict[str, Any]:
    """One object with every loop; `trace` has the first micro-operations where they were kept."""
    loops = []
    for s in c.loops:
        one = _record(s)
        if s.result.trace:
            names = ("row", "iteration", "renamed", "started", "ended", "retired", "port")
            one["trace"] = [dict(zip(names, each, strict=True)) for each in s.result.trace]
        loops.append(one)
    left_out = [{"name": name, "reason": reason} for name, reason in c.skipped]
    return {"schema": SCHEMA, "hardware": c.hardware, "clock_hz": c.clock_hz, "loops": loops, "skipped": left_out}


def _record(s: SimulatedCore) -> dict[str, Any]:
    r = s.result
    return {
        "name": s.name, "isa": s.loop.isa, "cycles": r.cycles, "measured": s.loop.measured, "error": s.error,
        "first_cycles": r.first, "operations": len(s.loop.operations), "micro_operations": r.operations, "flop": s.loop.flop,
        "flop_per_clock": s.flop_per_clock, "peak_flop_per_clock": s.peak, "peak_share": s.peak_share,
        "bytes_loaded": s.loop.bytes_loaded, "bytes_stored": s.loop.bytes_stored, "binds": s.binds, "explained": s.explained,
        "bounds": dict(s.bounds), "ports": dict(r.ports), "waits": dict(r.waits), "lines": levels(s),
    }  # fmt: skip


def csv(c: SimulatedCores) -> str:
    """A line for each loop; ports, waits and bounds are left to the JSON."""
    nested = {"bounds", "ports", "waits", "lines"}
    rows = [{name: value for name, value in _record(s).items() if name not in nested} for s in c.loops]
    return records_csv(rows, {"hardware": c.hardware, "clock_hz": c.clock_hz})


def sections(c: SimulatedCores) -> list[Block]:
    """The blocks: of one loop all that is known, of several a row each."""
    if len(c.loops) == 1 and not c.skipped:
        return _one(c.loops[0])
    left = f"{len(c.skipped)} left out, the first {c.skipped[0][0]}: {c.skipped[0][1]}" if c.skipped else ""
    verdict = Verdict(title=f"{len(c.loops)} loops on one core of {c.hardware}", asked=[show(c.clock_hz, "Hz", 3)],
                      sentences=[left] if left else [])  # fmt: skip
    return [verdict, _loops(c)]


def _loops(c: SimulatedCores) -> Table:
    measured = any(s.error is not None for s in c.loops)
    rows = []
    for s in c.loops:
        beside = [number(s.loop.measured), words("-") if s.error is None else percent(s.error, "+.1f")] if measured else []
        rows.append([words(s.name), words(f"{s.result.cycles:.2f}"), *beside, words(f"{s.flop_per_clock:.2f}" if s.loop.flop else
                     "-"), words("-") if s.peak_share is None else percent(s.peak_share, ".0f"), words(s.binds),
                     percent(s.explained, ".0f")])  # fmt: skip
    heads = ("", "cycles", *(("measured", "error") if measured else ()), "FLOP/clk", "of peak", "binds", "explains")
    right = {1, *range(1, len(heads) - 2), len(heads) - 1}
    return Table(title="Loops", columns=columns(*heads, numbers=right), rows=rows, long=len(rows) > 20)


def _one(s: SimulatedCore) -> list[Block]:
    r = s.result
    lines = [(f"{r.cycles:.2f} clocks per iteration", show(r.cycles / s.clock_hz, "s", 3),
              "" if s.error is None else f"measured {s.loop.measured:.2f} clocks, {100 * s.error:+.1f} %")]  # fmt: skip
    if s.loop.flop:
        lines.append((f"{s.flop_per_clock:.2f} FLOP/clk", show(s.flop_per_clock * s.clock_hz, "FLOP/s", 3),
                      "" if s.peak_share is None else f"{100 * s.peak_share:.1f} % of the peak of {s.peak:g}"))  # fmt: skip
    moved = (s.loop.bytes_loaded + s.loop.bytes_stored) / r.cycles
    if moved:
        lines.append((f"{moved:.2f} B/clk", show(moved * s.clock_hz, "B/s", 3), "loaded and stored"))
    lines.append((f"{r.operations / r.cycles:.2f} operations/clk", f"{r.operations:g} micro-operations", ""))
    rows = [[words(name), number(clocks, "clk"), percent(clocks / r.cycles), stacked({"0": clocks}, r.cycles)]
            for name, clocks in s.bounds.items()]  # fmt: skip
    bounds = Table(title="What an iteration takes at least", rows=rows,
                   columns=columns("", "clocks", "share", "", numbers=(1, 2), bars=(3,)))  # fmt: skip
    verdict = Verdict(title=f"{s.name} on one core of {s.hardware}", asked=[show(s.clock_hz, "Hz", 3)], lines=lines,
                      sentences=[s.limit])  # fmt: skip
    return [verdict, bounds, Facts(title="Its parts", rows=_facts(s)), *([_picture(s)] if s.result.trace else [])]


def _facts(s: SimulatedCore) -> list[tuple[str, str]]:
    r = s.result
    waits = {name: clocks for name, clocks in sorted(r.waits.items(), key=lambda one: -one[1]) if clocks > WORTH}
    return [
        ("ports", shares({name: clocks / r.cycles for name, clocks in r.ports.items()})),
        ("rename waits", ", ".join(f"{name} {clocks:.2f}" for name, clocks in waits.items()) or "for nothing"),
        ("lines", _lines(s) if any(lines > WORTH for lines in r.lines) else ""),
    ]  # fmt: skip


def _lines(s: SimulatedCore) -> str:
    """Lines from and to each level, with their bandwidth."""
    rate = s.machine.line / s.result.cycles * s.clock_hz
    found = (f"{lines:.2f} of {'memory' if level == 'memory' else f'the {level}'} ({show(lines * rate, 'B/s', 3)})"
             for level, lines in levels(s).items() if lines > WORTH)  # fmt: skip
    return f"{', '.join(found)} per iteration"


def levels(s: SimulatedCore) -> dict[str, float]:
    """Lines of an iteration by the level from which they came or to which they went back."""
    second, third, memory = s.result.lines
    if len(s.machine.near) < 3:
        return {"L2": second - third - memory, "memory": third + memory}
    return {"L2": second - third - memory, "L3": third, "memory": memory}


def shares(use: Mapping[str, float]) -> str:
    """Ports with the share of clocks in which each was taken."""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in use.items() if share > WORTH) or "none"


def _name(s: SimulatedCore, one: tuple[int, ...]) -> str:
    row = s.result.rows[one[0]]
    operation = s.loop.operations[row.operation]
    text = operation.text or operation.kind
    if operation.kind == "store":
        return "store data" if row.kind == layout.STORE else "store addr"
    return text if operation.memory is None or row.kind != layout.ARITHMETIC else f"{text} op"


def _picture(s: SimulatedCore) -> Chart:
    """A row for each of the first micro-operations: three bars side by side, from rename to retirement."""
    seen = s.result.trace[:DRAWN]
    first = seen[0][2]
    spans = [  # begin and end of each part
        [(one[2], one[3]) if one[6] >= 0 else (one[2], one[2]) for one in seen],
        [(one[3], one[4]) if one[6] >= 0 else (one[2], one[4]) for one in seen],
        [(one[4], one[5]) for one in seen],
    ]  # fmt: skip
    ports = (*s.machine.ports, "-")  # the last one where it takes none, -1
    tips = [f"{_name(s, one)}, iteration {one[1]}, port {ports[one[6]]}: renamed {one[2] - first}, starts {one[3] - first}, "
            f"ends {one[4] - first}, retires {one[5] - first}" for one in seen]  # fmt: skip
    series = [Series(name=name, tone=tone, x=[begin - first for begin, _ in part], y=range(len(seen)), tips=tips,
                     ends=[max(begin, end) - first for begin, end in part])
              for name, part, tone in zip(PARTS, spans, ("energy.base", "0", "energy.leakage"), strict=True)]  # fmt: skip
    end = max((one[5] - first for one in seen), default=1)
    return Chart(title=f"The first {len(seen)} micro-operations", series=series,
                 x=Axis(title="clock", log=False, ends=(0.0, 1.01 * end)),
                 y=Axis(title="", names=[f"{one[1]}: {_name(s, one)}" for one in seen]),
                 notes=["A row for each micro-operation, with its iteration: from rename to its start, to its end, to "
                        "retirement."])  # fmt: skip
