"""A simulated core as text, JSON, CSV, and a page with a picture of its pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.units import show
from archsim.report import figures
from archsim.report.core_timeline import DRAWN, timeline_figure, timeline_text
from archsim.report.data import records_csv
from archsim.report.frame import document
from archsim.report.markup import number, percent, text, words
from archsim.report.markup import table as html_table
from archsim.report.text import clean, table
from archsim.simulate.core import SCHEMA, SimulatedCore

WORTH = 0.005  # clocks or lines of an iteration: less is not told


def core_text(s: SimulatedCore) -> str:
    """Every figure on a line, the bounds, and the first micro-operations."""
    return "\n".join([
        heading(s), "", *(f"{name:<13} {value}" for name, value in core_lines(s)), "", *_bound_lines(s), "", *timeline_text(s),
    ]).rstrip()  # fmt: skip


def heading(s: SimulatedCore) -> str:
    """What was simulated."""
    return f"one core of {s.hardware} at {show(s.clock_hz, 'Hz', 3)}: {clean(s.name)}"


def core_lines(s: SimulatedCore) -> list[tuple[str, str]]:
    """The figures besides the bounds."""
    r = s.result
    lines = [("cycles", f"{r.cycles:.2f} clocks per iteration, {show(r.cycles / s.clock_hz, 's', 3)}")]
    if s.error is not None:
        lines.append(("measured", f"{s.loop.measured:.2f} clocks, {100 * s.error:+.1f} %"))
    if s.loop.flop:
        share = "" if s.peak_share is None else f", {100 * s.peak_share:.1f} % of the peak of {s.peak:g}"
        lines.append(("flop", f"{s.flop_per_clock:.2f} per clock{share}"))
    lines.append(("operations", f"{len(s.loop.operations)} in an iteration, {r.operations:g} micro-operations, "
                                f"{r.operations / r.cycles:.2f} per clock"))  # fmt: skip
    lines.append(("ports", shares({name: clocks / r.cycles for name, clocks in r.ports.items()})))
    explained = f"{100 * s.explained:.0f} % of the cycles"
    largest = next(iter(s.bounds), "nothing")
    further = f"; the largest bound, {largest}, explains {explained}"
    lines.append(("binds", f"{s.binds} ({explained})" if s.binds == largest else s.binds + further))
    waits = {name: clocks for name, clocks in sorted(r.waits.items(), key=lambda one: -one[1]) if clocks > WORTH}
    lines.append(("rename waits", ", ".join(f"{name} {clocks:.2f}" for name, clocks in waits.items()) or "for nothing"))
    if any(lines_ > WORTH for lines_ in r.lines):
        lines.append(("lines", _lines(s)))
    return lines


def _lines(s: SimulatedCore) -> str:
    """Lines from each level, with their bandwidth."""
    rate = s.machine.line / s.result.cycles * s.clock_hz
    found = (f"{count:.2f} from {'memory' if level == 'memory' else f'the {level}'} ({show(count * rate, 'B/s', 3)})"
             for level, count in levels(s).items() if count > WORTH)  # fmt: skip
    return f"{', '.join(found)} per iteration"


def levels(s: SimulatedCore) -> dict[str, float]:
    """Lines of an iteration by the level from which they came."""
    second, third, memory = s.result.lines
    if len(s.machine.near) < 3:
        return {"L2": second - third - memory, "memory": third + memory}
    return {"L2": second - third - memory, "L3": third, "memory": memory}


def shares(use: Mapping[str, float]) -> str:
    """Ports with the share of clocks in which each was taken."""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in use.items() if share > WORTH) or "none"


def _bound_lines(s: SimulatedCore) -> list[str]:
    width = max((len(name) for name in s.bounds), default=0)
    return ["At least", *(f"{clocks:9.2f} clk  {name:<{width}}  {100 * clocks / s.result.cycles:5.1f} %"
                          for name, clocks in s.bounds.items())]  # fmt: skip


def loops_text(found: Sequence[SimulatedCore], skipped: Sequence[tuple[str, str]]) -> str:
    """A line for each loop of a file."""
    measured = any(s.error is not None for s in found)
    head = ("loop", "cycles", *(("measured", "error") if measured else ()), "flop/clk", "of peak", "binds", "explains")
    rows = []
    for s in found:
        beside = ("-", "-") if s.error is None else (f"{s.loop.measured:.2f}", f"{100 * s.error:+.1f} %")
        share = "-" if s.peak_share is None else f"{100 * s.peak_share:.0f} %"
        rows.append((clean(s.name), f"{s.result.cycles:.2f}", *(beside if measured else ()),
                     f"{s.flop_per_clock:.2f}" if s.loop.flop else "-", share, s.binds, f"{100 * s.explained:.0f} %"))
    lines = [table(head, rows)] if rows else []
    if skipped:
        lines.append(f"left out: {len(skipped)}, of which the first is {clean(skipped[0][0])}: {skipped[0][1]}")
    return "\n".join(lines)


def core_record(s: SimulatedCore) -> dict[str, Any]:
    """A loop as in the JSON."""
    r = s.result
    return {
        "name": s.name, "isa": s.loop.isa, "cycles": r.cycles, "measured": s.loop.measured, "error": s.error,
        "first_cycles": r.first, "operations": len(s.loop.operations), "micro_operations": r.operations, "flop": s.loop.flop,
        "flop_per_clock": s.flop_per_clock, "peak_flop_per_clock": s.peak, "peak_share": s.peak_share,
        "bytes_loaded": s.loop.bytes_loaded, "bytes_stored": s.loop.bytes_stored, "binds": s.binds, "explained": s.explained,
        "bounds": dict(s.bounds), "ports": dict(r.ports), "waits": dict(r.waits), "lines": levels(s),
    }  # fmt: skip


def cores_record(
    hardware: str, clock_hz: float, found: Sequence[SimulatedCore], skipped: Sequence[tuple[str, str]]
) -> dict[str, Any]:  # fmt: skip
    """One object with every loop; `trace` has the first micro-operations where they were kept."""
    loops = []
    for s in found:
        one = core_record(s)
        if s.result.trace:
            names = ("row", "iteration", "renamed", "started", "ended", "retired", "port")
            one["trace"] = [dict(zip(names, each, strict=True)) for each in s.result.trace]
        loops.append(one)
    left_out = [{"name": name, "reason": reason} for name, reason in skipped]
    return {"schema": SCHEMA, "hardware": hardware, "clock_hz": clock_hz, "loops": loops, "skipped": left_out}


def cores_csv(hardware: str, clock_hz: float, found: Sequence[SimulatedCore]) -> str:
    """A line for each loop; ports, waits and bounds are left to the JSON."""
    nested = {"bounds", "ports", "waits", "lines"}
    rows = [{name: value for name, value in core_record(s).items() if name not in nested} for s in found]
    return records_csv(rows, {"hardware": hardware, "clock_hz": clock_hz})


def core_page(s: SimulatedCore) -> str:
    """The whole page."""
    r = s.result
    sections = [
        f"<h1>One core of {text(s.hardware)}</h1>", f'<p class="asked">{text(heading(s))}</p>',
        html_table(("what", "figure"), [(words(name), words(value)) for name, value in core_lines(s)], style="pairs"),
        "<h2>What an iteration takes at least</h2>",
        html_table(("bound", "clocks", "share of the cycles"), [
            (words(name), number(clocks, "clk"), percent(clocks / r.cycles)) for name, clocks in s.bounds.items()]),
        "<h2>Ports</h2>",
        html_table(("port", "clocks per iteration", "taken"), [
            (words(name), number(clocks, "clk"), percent(clocks / r.cycles)) for name, clocks in r.ports.items()]),
        f"<h2>The first {min(DRAWN, len(r.trace))} micro-operations</h2>",
        '<p class="quiet">A row for each micro-operation, with its iteration: from rename to its start, to its end, to '
        "retirement.</p>",
        figures.embed(timeline_figure(s), "pipeline"),
    ]  # fmt: skip
    return document(heading(s), sections, figures.library())
