"""A simulated SM as text, JSON, a page, and a timeline of its first clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from archsim.base.units import show
from archsim.cycle.program import PIPES
from archsim.cycle.stalls import MEANINGS, StalledInstruction, shares
from archsim.report import figures
from archsim.report.frame import document
from archsim.report.markup import label, percent, table, text, words
from archsim.report.palette import SERIES
from archsim.schedule.observer import Recording
from archsim.simulate.sm import SCHEMA, SimulatedSm

FIRST = 1000  # clocks of the picture


def sm_text(s: SimulatedSm) -> str:
    """Every figure on a line."""
    return "\n".join([heading(s), "", *(f"{name:<13} {value}" for name, value in sm_lines(s)), "",
                      *stall_lines(shares(s.result)), *stalled_lines(s.stalled)])  # fmt: skip


def heading(s: SimulatedSm) -> str:
    """What was simulated."""
    return (f"one SM of {s.hardware} at {show(s.clock_hz, 'Hz', 3)}: {s.kernel}; {s.result.ctas} CTAs, "
            f"{s.result.resident} at once, scheduler {s.scheduler}")  # fmt: skip


def sm_lines(s: SimulatedSm) -> list[tuple[str, str]]:
    """The figures besides the stalls."""
    r = s.result
    levels = bandwidths(s.bandwidth_bps)
    lines = [
        ("time", f"{show(s.time_s, 's')}, {r.clocks:,.0f} clocks"),
        ("issue", f"{r.ipc:.2f} warp instructions per clock ({r.issued:,} in all), {100 * s.issue_use:.1f} % of the issue slots"
                  + (f", {100 * r.paired / r.issued:.1f} % beside another" if r.paired else "")),
        ("pipes", pipes(s.pipe_use)),
        ("occupancy", f"{100 * s.occupancy:.0f} % of {s.machine.warps} warps, {100 * s.achieved_occupancy:.0f} % on average"),
    ]  # fmt: skip
    if s.peak_share is not None:
        lines.append(("efficiency", f"{100 * s.peak_share:.1f} % of the peak of the pipe that multiplies"))
    if levels:
        lines.append(("bandwidth", f"{levels} of one SM; memory of all SMs {show(_all(s), 'B/s', 3)}"))
    parts = ", ".join(f"{name} {show(part, 'J', 3)}" for name, part in s.energy_j.items() if part)
    joules = show(sum(s.energy_j.values()), "J", 3)
    lines.append(("energy", f"{joules} of one SM ({parts}); {show(s.power_w, 'W', 3)} if all SMs do the same"))
    return lines


def pipes(use: Mapping[str, float]) -> str:
    """The pipes that are used."""
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in use.items() if share > 0.0005)


def bandwidths(levels: Mapping[str, float]) -> str:
    """Bytes per second of one SM by level."""
    return ", ".join(f"{level} {show(rate, 'B/s', 3)}" for level, rate in levels.items())


def _all(s: SimulatedSm) -> float:
    """Memory bandwidth if all SMs do the same [B/s]."""
    return s.bandwidth_bps.get("memory", 0.0) * s.sms


def stall_lines(found: Mapping[str, float]) -> list[str]:
    """A line for each reason with its share."""
    return [f"{name:<19} {100 * share:5.1f} %  {MEANINGS[name]}" for name, share in found.items()]


def stalled_lines(found: Sequence[StalledInstruction]) -> list[str]:
    """A line for each instruction at which warps wait, below a heading; none where no warp waits."""
    if not found:
        return []
    width = max(len(i.reason) for i in found)
    return ["", "Where warps wait", *(f"{100 * i.share:5.1f} %  {i.reason:<{width}}  {i.words}" for i in found)]


def sm_record(s: SimulatedSm) -> dict[str, Any]:
    """Plain values for JSON."""
    r = s.result
    return {
        "schema": SCHEMA, "hardware": s.hardware, "kernel": s.kernel, "clock_hz": s.clock_hz, "scheduler": s.scheduler,
        "time_s": s.time_s, "clocks": r.clocks, "ctas": r.ctas, "resident_ctas": r.resident,
        "occupancy": s.occupancy, "achieved_occupancy": s.achieved_occupancy,
        "instructions": r.issued, "instructions_per_clock": r.ipc, "issue_use": s.issue_use, "pipe_use": dict(s.pipe_use),
        "peak_share": s.peak_share, "bandwidth_bps": dict(s.bandwidth_bps),
        "energy_j": dict(s.energy_j), "power_w": s.power_w,
        "stalls": shares(r), "stalled": [asdict(i) for i in s.stalled],
    }  # fmt: skip


def recording_of(s: SimulatedSm) -> Recording:
    """The first instructions as a timeline: a track for each warp of each scheduler, and one for each pipe's issues."""
    found = Recording()
    for clock, scheduler, warp, at in s.result.record:
        i = s.program.instructions[at]
        start, end = clock / s.clock_hz, (clock + 1.0) / s.clock_hz
        found.ran(f"scheduler {scheduler} warp {warp}", i.name, start, end, {"kind": PIPES[i.pipe], "instruction": at})
    return found


def sm_page(s: SimulatedSm) -> str:
    """The whole page."""
    sections = [
        f"<h1>One SM of {text(s.hardware)}</h1>", f'<p class="asked">{text(heading(s))}</p>',
        table(("what", "figure"), [(words(name), words(value)) for name, value in sm_lines(s)], style="pairs"),
        "<h2>Where the warps' clocks go</h2>",
        table(("stall", "share", "meaning"), [(words(name), percent(share), words(MEANINGS[name]))
                                              for name, share in shares(s.result).items()]),
        "<h2>Where warps wait</h2>",
        table(("share", "stall", "instruction", "place"), [
            (percent(i.share), words(i.reason), words(f"{i.name} after {i.after}" if i.after else i.name), words(i.place))
            for i in s.stalled]),
        f"<h2>The first {FIRST} clocks</h2>",
        '<p class="quiet">A mark for each instruction, in the colour of its pipe; a row for each warp, by scheduler.</p>',
        figures.embed(_picture(s), "issue"),
    ]  # fmt: skip
    return document(heading(s), sections, figures.library())


def _picture(s: SimulatedSm) -> Any:
    import plotly.graph_objects as go

    seen = [(clock, scheduler, warp, at) for clock, scheduler, warp, at in s.result.record if clock <= s.begins + FIRST]
    rows = {pair: row for row, pair in enumerate(sorted({(scheduler, warp) for _, scheduler, warp, _ in seen}))}
    figure = go.Figure(layout={
        **figures.common(14 * max(8, len(rows)) + 120, 120, 20, 20, 50),
        "xaxis": {"title": {"text": "clock"}, "zeroline": False, "gridcolor": figures.RULE},
        "yaxis": {"tickvals": list(rows.values()), "ticktext": [f"scheduler {a} warp {b}" for a, b in rows],
                  "autorange": "reversed", "zeroline": False, "gridcolor": figures.RULE, "tickfont": {"size": 9}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"}, "showlegend": True,
    })  # fmt: skip
    for pipe, name in enumerate(PIPES):
        mine = [one for one in seen if s.program.instructions[one[3]].pipe == pipe]
        if mine:
            figure.add_trace(go.Scatter(
                mode="markers", name=name, x=[one[0] for one in mine], y=[rows[one[1], one[2]] for one in mine], hoverinfo="text",
                marker={"size": 5, "symbol": "square", "color": SERIES[pipe % len(SERIES)]},
                hovertext=[f"{label(s.program.instructions[one[3]].name)}, clock {one[0]:.1f}" for one in mine],
            ))  # fmt: skip
    return figure
