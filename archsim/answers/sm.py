"""What a simulated SM says: what limits it, how far it is from its peak, and where its warps wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from archsim.answers.schemas import SCHEMAS
from archsim.answers.timeline import timeline_chart
from archsim.base.units import show
from archsim.cycle.program import PIPES
from archsim.cycle.stalls import MEANINGS, SmUse, limit
from archsim.render.blocks import Block, Column, Facts, Table, Verdict, columns, percent, stacked, words
from archsim.schedule.observer import Recording
from archsim.simulate.sm import SCHEMA, SimulatedSm

FIRST = 1500  # instructions of the picture
SHOWN = 0.0005  # of the clocks of the warps: a smaller stall is left to JSON


def record(s: SimulatedSm) -> dict[str, Any]:
    """Plain values for JSON."""
    found = {name: getattr(s, "resident" if name == "resident_ctas" else name) for name in SCHEMAS["sm"][1]}
    return {"schema": SCHEMA, **found, "stalled": [asdict(one) for one in s.stalled]}


def sections(s: SimulatedSm) -> list[Block]:
    """The blocks of a simulated SM."""
    found: list[Block] = [verdict(s), *stall_tables(s),
                          Facts(title="Pipes, bandwidth, energy", rows=_facts(s), level=1)]  # fmt: skip
    return [*found, timeline_chart(recording_of(s, FIRST), "The first instructions")] if s.result.record else found


def verdict(s: SimulatedSm) -> Verdict:
    """Time, rate and power, what limits, and how far it is from the peak."""
    asked = [show(s.clock_hz, "Hz", 3), f"{s.ctas} CTAs, {s.resident} at once", f"scheduler {s.scheduler}"]
    lines = [
        (show(s.time_s, "s"), f"{s.clocks:,.0f} clocks", ""),
        (f"{s.instructions_per_clock:.2f} instructions/clk", f"{100 * s.issue_use:.1f} % of the issue slots",
         f"{s.instructions:,} in all"),
        (f"{100 * s.occupancy:.0f} % of {s.on.machine.warps} warps at once", f"{100 * s.achieved_occupancy:.0f} % on average",
         "occupancy"),
        (show(s.power_w, "W", 3), "if all SMs do the same", f"{show(sum(s.energy_j.values()), 'J', 3)} of one SM"),
    ]  # fmt: skip
    peak = [] if s.peak_share is None else [f"It does {100 * s.peak_share:.1f} % of what the pipe that multiplies could."]
    return Verdict(title=f"{s.kernel} on one SM of {s.hardware}", asked=asked, lines=lines,
                   sentences=[limit(s.pipe_use, s.issue_use, s.stalls), *peak, *_addressed(s)])  # fmt: skip


def _addressed(s: SimulatedSm) -> Iterator[str]:
    """What the addresses of a warp touch, and what nothing reads."""
    if s.addresses:
        yield f"Of a warp's load: {', '.join(f'{name} {count}' for name, count in s.addresses.items())}."
    if s.unread:
        yield f"Not read: {', '.join(s.unread)}; the words of the kernel say how many loads hit."


def _facts(s: SimulatedSm) -> list[tuple[str, str]]:
    """The figures besides the stalls."""
    r, levels = s.result, bandwidths(s.bandwidth_bps)
    whole = show(s.bandwidth_bps.get("memory", 0.0) * s.sms, "B/s", 3)
    parts = ", ".join(f"{name} {show(part, 'J', 3)}" for name, part in s.energy_j.items() if part)
    return [
        ("pipes", pipes(s.pipe_use)), ("paired", f"{100 * r.paired / r.issued:.1f} % issue beside another" if r.paired else ""),
        ("bandwidth", f"{levels} of one SM; memory of all SMs {whole}" if levels else ""), ("energy", parts),
        ("hits", ", ".join(f"{level} {100 * share:.1f} %" for level, share in s.hits.items())),
    ]  # fmt: skip


def pipes(use: Mapping[str, float]) -> str:
    """The pipes that are used."""
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in use.items() if share > SHOWN)


def bandwidths(levels: Mapping[str, float]) -> str:
    """Bytes per second of one SM by level."""
    return ", ".join(f"{level} {show(rate, 'B/s', 3)}" for level, rate in levels.items())


def stall_tables(use: SmUse, kernel: str = "", level: int = 0) -> list[Table]:
    """The clocks of the warps by what they did in them, and the instructions at which they wait most, if they wait."""
    of, most = f" in {kernel}" if kernel else "", max(use.stalls.values(), default=0.0)
    rows = [[words(name), percent(share), stacked({"0": share}, most), words(MEANINGS[name])]
            for name, share in use.stalls.items() if share > SHOWN]  # fmt: skip
    found = [Table(title=f"Where the warps' clocks go{of}", rows=rows, level=level,
                   columns=[*columns("", "share", "", numbers=(1,), bars=(2,)), Column(head="", needed=False)])]  # fmt: skip
    waits = [[words(i.words), percent(i.share), words(i.reason)] for i in use.stalled]
    heads = columns("", "share", "stall", numbers=(1,))
    return [*found, *([Table(title=f"Where warps wait{of}", columns=heads, rows=waits, level=level)] if waits else [])]


def recording_of(s: SimulatedSm, most: int | None = None) -> Recording:
    """The first instructions as a timeline, a track for each warp of each scheduler; `most` of them from the first one on."""
    found, begin = Recording(), s.result.record[0][0] if most else 0.0
    for clock, scheduler, warp, at in s.result.record[:most]:
        i = s.on.program.instructions[at]
        start, end = (clock - begin) / s.clock_hz, (clock - begin + 1.0) / s.clock_hz
        found.ran(f"scheduler {scheduler} warp {warp}", i.name, start, end, {"kind": PIPES[i.pipe], "instruction": at})
    return found
