"""Power by unit as text, JSON, CSV and a table of a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from archsim.base.units import show
from archsim.device.units import AWAKE, CORE
from archsim.estimation.power_estimate import PowerEstimate
from archsim.report.data import rows_as_csv
from archsim.report.markup import text as markup
from archsim.report.text import clean, table, wall_lines, wall_words

SCHEMA = "archsim-power/1"
AT_WORK = (AWAKE, CORE)  # whose share the part `awake` has
COLUMNS = ("hardware", "hardware_name", "name", "clock_hz", "memory_clock_hz", "counted_clock_hz", "counted_memory_clock_hz",
           "voltage", "power_w", "measured_w", "error")  # fmt: skip


def power_record(found: PowerEstimate) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"schema": SCHEMA, **asdict(found), "power_interval_w": [*found.power_interval_w]}


def power_csv(found: Sequence[PowerEstimate]) -> str:
    """One row for each answer: clocks, power with its interval and limit, shares and watts of every part."""
    head = (*COLUMNS, "power_low_w", "power_high_w", "idle_w", "power_limit_w", "above_limit", "clock_within_limit_hz",
            *(f"share.{name}" for name in found[0].shares), *(f"power_w.{part}" for part in found[0].parts_w))  # fmt: skip
    rows = [
        [*(getattr(one, name) for name in COLUMNS), *one.power_interval_w, one.idle_w, one.power_limit_w, one.above_limit,
         one.clock_within_limit_hz, *one.shares.values(), *one.parts_w.values()]
        for one in found
    ]  # fmt: skip
    return rows_as_csv(head, rows)


def power_text(found: PowerEstimate) -> str:
    """Heading, power, a table of the parts, assumptions and warnings."""
    rows = [(part, _share(found, part), show(watts, "W", 3), f"{100 * watts / found.power_w:.0f} %")
            for part, watts in found.parts_w.items() if watts > 0.0 or found.shares.get(part)]  # fmt: skip
    body = table(("part", "share", "power", "of all"), rows)
    return "\n\n".join(filter(None, (heading(found), body, _total(found), notes(found))))


def rows_text(found: Sequence[PowerEstimate]) -> str:
    """A line for each row of a file, beside what was measured where rows say that, then what was assumed of any of them."""
    known = [abs(one.error) for one in found if one.error is not None]
    rows = [
        (clean(one.name) or str(number), show(one.clock_hz, "Hz"), _memory(one), f"{one.voltage:.3f}", show(one.idle_w, "W", 3),
         show(one.power_w, "W", 3), *(show(end, "W", 3) for end in one.power_interval_w), "ABOVE" if one.above_limit else "",
         *(_measured(one) if known else ()))
        for number, one in enumerate(found, 1)
    ]  # fmt: skip
    head = ("row", "clock", "memory", "voltage", "idle", "power", "from", "to", "limit",
            *(("measured", "error") if known else ()))  # fmt: skip
    first = found[0]
    covers = f"{clean(first.hardware_name)}: power of the {first.power_boundary}, limit {show(first.power_limit_w, 'W', 3)}"
    said = [f"measured    {len(known)} of {len(found)} rows: median error {100 * median(known):.1f} %"] if known else []
    said += [f"assumed     {line}" for line in dict.fromkeys(line for one in found for line in one.assumptions)]
    warned = [f"warning     {one.name or f'row {number}'}: {line}"
              for number, one in enumerate(found, 1) for line in one.warnings]  # fmt: skip
    return "\n\n".join(filter(None, (covers, table(head, rows), "\n".join(map(clean, (*said, *warned))))))


def _measured(found: PowerEstimate) -> tuple[str, str]:
    """What was measured, and how far from it the prediction is."""
    if found.measured_w is None or found.error is None:
        return "", ""
    return show(found.measured_w, "W", 3), f"{100 * found.error:+.1f} %"


def heading(found: PowerEstimate) -> str:
    """Device and clocks on one line."""
    counted = (found.counted_clock_hz, found.counted_memory_clock_hz)
    here = counted == (found.clock_hz, found.memory_clock_hz)
    elsewhere = "" if here else f"; shares counted at {show(counted[0], 'Hz')}, memory " + (
        "unknown" if counted[1] is None else show(counted[1], "Hz"))  # fmt: skip
    memory = "" if CORE in found.shares else f"memory {_memory(found)}, "
    return (f"{clean(found.hardware_name)} at {show(found.clock_hz, 'Hz')}, {memory}"
            f"voltage {found.voltage:.3f} of the highest{elsewhere}")  # fmt: skip


def notes(found: PowerEstimate) -> str:
    """What the interval comes from, assumptions and warnings."""
    seen = found.held_out
    lines = [f"held out    on {seen.rows} held-out measurements of this class ({found.interval_class}): "
             f"median error {100 * seen.median:.0f} %, p90 {100 * seen.p90:.0f} %"] if seen.rows else []  # fmt: skip
    lines += [f"nearest     evidence: {seen.basis.partition(' with ')[0]}"] if seen.rows and seen.basis else []
    lines += [f"assumed     {line}" for line in found.assumptions]
    lines += [] if found.wall is None else wall_lines(found.wall)[1:]
    if found.assumed_values:
        values = ", ".join(found.assumed_values)
        lines.append(f"assumed     {len(found.assumed_values)} values of the spec are not published: {values}")
    return "\n".join([*lines, *(f"warning     {line}" for line in found.warnings)])


def power_table(found: PowerEstimate) -> str:
    """The parts, for a notebook."""
    rows = "".join(
        f'<tr><th style="text-align:left">{markup(part)}</th><td>{markup(_share(found, part))}</td>'
        f"<td>{markup(show(watts, 'W', 3))}</td></tr>\n"
        for part, watts in found.parts_w.items() if watts > 0.0
    )  # fmt: skip
    caption = f"<b>{markup(heading(found))}</b><br>{markup(_total(found))}"
    return f'<table>\n<caption style="text-align:left">{caption}</caption>\n<tbody>\n{rows}</tbody>\n</table>'


def _total(found: PowerEstimate) -> str:
    low, high = found.power_interval_w
    return (f"power       {show(found.power_w, 'W', 3)} ({100 * found.interval_level:.0f} % interval {show(low, 'W', 3)} to "
            f"{show(high, 'W', 3)}) {_boundary(found)}; "
            f"idle at these clocks {show(found.idle_w, 'W', 3)}")  # fmt: skip


def _boundary(found: PowerEstimate) -> str:
    limit = f"of at most {show(found.power_limit_w, 'W', 3)}"
    if found.wall is None:
        return f"{limit} ({found.power_boundary})"
    device = f"the device {show(found.wall.device_w, 'W', 3)} {limit} ({found.wall.device_boundary})"
    return f"at the wall, {wall_words(found.wall)}; {device}"


def _share(found: PowerEstimate, part: str) -> str:
    name = next((name for name in AT_WORK if name in found.shares), part) if part == "awake" else part
    share = found.shares.get(name)
    return "" if share is None else f"{100 * share:.1f} %"


def _memory(found: PowerEstimate) -> str:
    return "unknown" if found.memory_clock_hz is None else show(found.memory_clock_hz, "Hz")
