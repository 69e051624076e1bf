"""What a power by unit says: how much, where it goes, beside the limit and what was measured; of one or of rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean, median
from typing import Any

from archsim.answers.estimate import counted, interval, listed, wall_words
from archsim.base.units import show
from archsim.device.units import AWAKE, CORE
from archsim.estimation.power import PowerEstimate, why_power
from archsim.render.blocks import Block, Cell, Facts, Note, Piece, Table, Verdict, columns, number, percent, stacked, words
from archsim.render.text import csv_lines

SCHEMA = "archsim-power/1"
AT_WORK = (AWAKE, CORE)  # whose share the part `active_units` has
COLUMNS = ("hardware", "hardware_name", "name", "clock_hz", "memory_clock_hz", "counted_clock_hz", "counted_memory_clock_hz",
           "voltage", "power_w", "measured_w", "error")  # fmt: skip
MEANING = {
    "standing": "drawn whatever runs", "leakage": "of the transistors at this voltage", "clocks": "the clock tree",
    "uncore": "caches, rings and controllers that no core owns", "active_units": "cores or SMs that are not asleep",
}  # fmt: skip
FIRST = 16  # rows of a file on the first screen

Powers = PowerEstimate | Sequence[PowerEstimate]


def _rows(found: Powers) -> Sequence[PowerEstimate]:
    return [found] if isinstance(found, PowerEstimate) else found


def record(found: Powers) -> Any:
    """Plain values for JSON; a list of the rows of a file."""
    if isinstance(found, PowerEstimate):
        return {"schema": SCHEMA, **asdict(found)}
    return [record(one) for one in found]


def csv(found: Powers) -> str:
    """One row for each power: clocks, power with its interval and limit, shares and watts of every part."""
    of = _rows(found)
    head = (*COLUMNS, "power_low_w", "power_high_w", "idle_w", "power_limit_w", "above_limit", "clock_within_limit_hz",
            *(f"share.{name}" for name in of[0].shares), *(f"power_w.{part}" for part in of[0].parts_w))  # fmt: skip
    rows = [
        [*(getattr(one, name) for name in COLUMNS), *one.power_interval_w, one.idle_w, one.power_limit_w, one.above_limit,
         one.clock_within_limit_hz, *one.shares.values(), *one.parts_w.values()]
        for one in of
    ]  # fmt: skip
    return csv_lines([head, *rows])


def sections(found: Powers) -> list[Block]:
    """The blocks of a power, or of the rows of a file."""
    if not isinstance(found, PowerEstimate):
        return _of_file(found)
    trust = [("expected", spread_words(found)), ("assumed", counted(found.assumptions, found.assumed_values))]
    return [verdict(found), *(Note(text=line, tone="warning") for line in found.warnings), parts_table(found),
            Facts(title="How far to trust it", rows=trust), listed(found.assumptions, found.assumed_values)]  # fmt: skip


def verdict(p: PowerEstimate) -> Verdict:
    """Device and clocks, the power beside its limit, and what most of it is."""
    counts = (p.counted_clock_hz, p.counted_memory_clock_hz)
    elsewhere = f"shares counted at {show(counts[0], 'Hz')}, memory {'unknown' if counts[1] is None else show(counts[1], 'Hz')}"
    asked = [show(p.clock_hz, "Hz"), *([] if CORE in p.shares else [f"memory {_memory(p)}"]),
             f"voltage {p.voltage:.3f} of the highest",
             *([] if counts == (p.clock_hz, p.memory_clock_hz) else [elsewhere])]  # fmt: skip
    whole = (f"{show(p.power_w, 'W', 3)}{_beside(p)}", interval(p.power_interval_w, "W", p.interval_level),
             f"idle at these clocks {show(p.idle_w, 'W', 3)}")  # fmt: skip
    device = [] if p.wall is None else [
        (f"{show(p.wall.device_w, 'W', 3)} of {show(p.power_limit_w, 'W', 3)}", f"the device ({p.wall.device_boundary})", ""),
    ]
    return Verdict(title=p.hardware_name, asked=asked, lines=[whole, *device], sentences=[why_power(p)])


def _beside(p: PowerEstimate) -> str:
    if p.wall is not None:
        return f" at the wall, {wall_words(p.wall)}"
    return f" of {show(p.power_limit_w, 'W', 3)} ({p.power_boundary})"


def spread_words(p: PowerEstimate) -> list[str]:
    """How far such powers are off."""
    seen = p.held_out
    if not seen.rows:
        return []
    return [f"half of such predictions are within {100 * seen.median:.0f} %, nine in ten within {100 * seen.p90:.0f} % "
            f"({seen.rows:,} held-out measurements of {p.interval_class})",
            *([f"nearest evidence: {seen.basis.partition(' with ')[0]}"] if seen.basis else [])]  # fmt: skip


def parts_table(p: PowerEstimate) -> Table:
    """The parts that draw, the share of the time in which each works, and what they draw."""
    most = max(p.parts_w.values())
    rows = [[words(part.replace("_", " ")), words(_share(p, part)), number(watts, "W"), percent(watts / p.power_w, ".0f"),
             stacked({part: watts}, most, "W", {part: "quiet" if part in MEANING else "0"}), words(MEANING.get(part, ""))]
            for part, watts in p.parts_w.items() if watts > 0.0 or p.shares.get(part)]  # fmt: skip
    heads = columns("", "share of time", "power", "of all", "", "", numbers=(1, 2, 3), bars=(4,), spare=(5,))
    return Table(title="Where the power goes", columns=heads, rows=rows)


def _share(p: PowerEstimate, part: str) -> str:
    name = next((name for name in AT_WORK if name in p.shares), part) if part == "active_units" else part
    share = p.shares.get(name)
    return "" if share is None else f"{100 * share:.1f} %"


def _memory(p: PowerEstimate) -> str:
    return "unknown" if p.memory_clock_hz is None else show(p.memory_clock_hz, "Hz")


def _of_file(rows: Sequence[PowerEstimate]) -> list[Block]:
    """A line for each row of a file, beside what was measured where rows say that."""
    first, known = rows[0], [abs(one.error) for one in rows if one.error is not None]
    powers = [one.power_w for one in rows]
    above = sum(one.above_limit for one in rows)
    said = [f"Of {len(known)} measured rows half are within {100 * median(known):.1f} % of what was measured."] if known else []
    said += [f"Above the limit: {above} of {len(rows)} rows."] if above else []
    line = (f"{show(min(powers), 'W', 3)} to {show(max(powers), 'W', 3)}", f"mean {show(fmean(powers), 'W', 3)}",
            f"limit {show(first.power_limit_w, 'W', 3)}")  # fmt: skip
    chosen = list(dict.fromkeys(note for one in rows for note in one.assumptions))
    warned = [f"{one.name or f'row {place}'}: {note}" for place, one in enumerate(rows, 1) for note in one.warnings]
    trust = [("expected", spread_words(first)), ("assumed", counted(chosen, first.assumed_values))]
    title = f"{first.hardware_name}: power of the {first.power_boundary}"
    return [Verdict(title=title, asked=[f"{len(rows)} rows"], lines=[line], sentences=said),
            *(Note(text=note, tone="warning") for note in warned), rows_table(rows),
            Facts(title="How far to trust it", rows=trust), listed(chosen, first.assumed_values)]  # fmt: skip


def rows_table(rows: Sequence[PowerEstimate]) -> Table:
    """A row for each power: clocks, voltage, the prediction with its interval, and what was measured."""
    most = 1.03 * max(max(one.power_interval_w[1], one.power_limit_w, one.measured_w or 0.0) for one in rows)
    body = [[words(one.name or str(place)), number(one.clock_hz, "Hz", 4), words(_memory(one)), words(f"{one.voltage:.3f}"),
             number(one.idle_w, "W"), number(one.power_w, "W"), words(_ends(one)), _dumbbell(one, most),
             words("") if one.measured_w is None else number(one.measured_w, "W"),
             words("") if one.error is None else percent(one.error, "+.1f"),
             words("above the limit" if one.above_limit else "", tone="bad")] for place, one in enumerate(rows, 1)]  # fmt: skip
    heads = columns("row", "clock", "memory", "voltage", "idle", "power", "interval", "", "measured", "error", "",
                    numbers=(*range(1, 7), 8, 9), bars=(7,), spare=(2, 3, 4, 6))  # fmt: skip
    note = f"Bars are intervals of {100 * rows[0].interval_level:.0f} % around a mark at the prediction; a ring was measured."
    return Table(columns=heads, rows=body, long=len(body) > FIRST, notes=[note])


def _ends(p: PowerEstimate) -> str:
    return interval(p.power_interval_w, "W", p.interval_level).partition(": ")[2]


def _dumbbell(p: PowerEstimate, most: float) -> Cell:
    low, high = p.power_interval_w
    found = [Piece(start=low / most, end=high / most, tone="7", tip=_ends(p)),
             Piece(start=0.0, end=p.power_w / most, sign="|", tip=show(p.power_w, "W", 3))]  # fmt: skip
    if p.measured_w is not None:
        found.append(Piece(start=0.0, end=p.measured_w / most, sign="o", tip=f"measured {show(p.measured_w, 'W', 3)}"))
    return Cell(value=p.power_w, bar=found)
