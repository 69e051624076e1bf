"""The picture of the issue slots: by the cycle model, for the kernel that a layer spends most time in, before and after."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.errors import ArchsimError
from archsim.base.units import show
from archsim.cycle.program import PIPES
from archsim.cycle.stalls import MEANINGS
from archsim.explain.issue_slots import IssueSlots, issue_slots
from archsim.report.lines_svg import INK, QUIET, RULE, svg
from archsim.report.markup import TableCell, label, percent, table, text, words
from archsim.report.palette import SERIES
from archsim.ui.estimates import requested
from archsim.ui.state import PageState

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 900, 96, 16, 30, 26  # [px]
LANE, THREAD, GAP = 13, 4, 8  # height of a slot of a lane and of one of a warp, and between lanes [px]


def issue_section(state: PageState) -> str:
    """The slots before and after, with what the warps wait for; a sentence where there is nothing to simulate."""
    try:
        before = issue_slots(requested(state, changed=False), state.choices.get("layer"))
        after = issue_slots(requested(state), before.layer) if state.settings else before
    except ArchsimError as error:
        return f'<h2>Issue slots</h2>\n<p class="quiet">{text(str(error))}</p>'
    sides = [("", before)] if after is before else [("Before: ", before), ("After: ", after)]
    pictures = "".join(f'<h3>{when}{text(_said(one))}</h3>\n<div class="drawing">{issue_svg(one)}</div>' for when, one in sides)
    note = ("A row for each scheduler of an SM, below it its warps; a mark is an instruction that was issued in a clock, in the "
            "colour of its pipe." if before.occupancy is not None else
            "A row for each port of a core; a mark is a micro-operation that began in a clock.")  # fmt: skip
    where = "The clocks are from the middle of the kernel in which the layer spends most time."
    return (f'<h2>Issue slots of {text(before.layer)}</h2>\n<p class="quiet">{note} {where}</p>\n{pictures}\n'
            f"{_waits(before, after)}")  # fmt: skip


def _said(one: IssueSlots) -> str:
    times = f", {one.launches:g} launches" if one.launches != 1 else ""
    full = f", {100 * one.occupancy:.0f} % occupancy" if one.occupancy is not None else f", waits for {one.limit}"
    return f"{one.kernel}, {show(one.time_s, 's', 3)}{times}, {100 * one.use:.1f} % of the issue slots taken{full}"


def _waits(before: IssueSlots, after: IssueSlots) -> str:
    """Where the clocks of the warps go; of a core what an iteration of its loop takes at least, over what it takes."""
    of_warps, both = before.occupancy is not None, after is not before
    what = ("stall", "meaning") if of_warps else ("bound of an iteration",)
    rows: list[Sequence[TableCell]] = [
        (words(name), *([words(MEANINGS[name])] if of_warps else []), *([_share(before, name)] if both else []),
         _share(after, name)) for name in dict.fromkeys([*after.waits, *before.waits])]  # fmt: skip
    return table((*what, *(("before", "after") if both else ("share of the clocks",))), rows)


def _share(one: IssueSlots, name: str) -> TableCell:
    return percent(one.waits.get(name, 0.0))


def issue_svg(one: IssueSlots) -> str:
    """The slots as static SVG: clocks from left to right, a row for each lane, and one for each warp of it."""
    kinds = PIPES if one.occupancy is not None else sorted({slot.kind for slot in one.slots})
    colours = {kind: SERIES[i % len(SERIES)] for i, kind in enumerate(kinds) if any(slot.kind == kind for slot in one.slots)}
    step = (WIDTH - LEFT - RIGHT) / (one.end - one.begin)
    rows = {lane: sorted({slot.thread for slot in one.slots if slot.lane == lane and slot.thread is not None})
            for lane in range(len(one.lanes))}  # fmt: skip
    tops, y = [], float(TOP)
    for lane in rows:
        tops.append(y)
        y += LANE + THREAD * len(rows[lane]) + GAP
    body = [*_key(colours), *_clocks(one, step, y)]
    for lane, name in enumerate(one.lanes):
        body.append(f'<text x="{LEFT - 8}" y="{tops[lane] + 10:.1f}" font-size="12" fill="{INK}" text-anchor="end">'
                    f"{label(name)}</text>")  # fmt: skip
        body.append(f'<rect x="{LEFT}" y="{tops[lane]:.1f}" width="{WIDTH - LEFT - RIGHT}" height="{LANE}" fill="{RULE}" '
                    f'fill-opacity="0.5"/>')  # fmt: skip
    taken: set[tuple[int, float]] = set()
    for slot in one.slots:
        x, top, colour = LEFT + step * (slot.clock - one.begin), tops[slot.lane], colours[slot.kind]
        half = LANE // 2 if (slot.lane, slot.clock) in taken else 0  # the second of a pair
        taken.add((slot.lane, slot.clock))
        wide = f'width="{max(1.0, step - 0.6):.1f}"'
        tip = f"{label(slot.name or slot.kind, 60)}, clock {slot.clock:.0f}"
        body.append(f'<rect x="{x:.1f}" y="{top + half:.1f}" {wide} height="{LANE - half}" fill="{colour}">'
                    f"<title>{tip}</title></rect>")  # fmt: skip
        if slot.thread is not None:
            below = top + LANE + 1 + THREAD * rows[slot.lane].index(slot.thread)
            body.append(f'<rect x="{x:.1f}" y="{below:.1f}" {wide} height="{THREAD - 1}" fill="{colour}"/>')
    return svg(WIDTH, round(y + BOTTOM), f"Issue slots of {label(one.kernel, 80)}", body)


def _key(colours: dict[str, str]) -> list[str]:
    parts, x = [], float(LEFT)
    for kind, colour in colours.items():
        parts.append(f'<rect x="{x:.1f}" y="6" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{x + 15:.1f}" y="15" font-size="12" fill="{INK}">{label(kind)}</text>')  # fmt: skip
        x += 36 + 7 * len(kind)
    return parts


def _clocks(one: IssueSlots, step: float, floor: float) -> list[str]:
    parts, every = [], 20
    for clock in range(0, int(one.end - one.begin) + 1, every):
        x = LEFT + step * clock
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{floor:.1f}" stroke="{RULE}"/>'
                     f'<text x="{x:.1f}" y="{floor + 14:.1f}" font-size="12" fill="{QUIET}" text-anchor="middle">{clock}</text>')
    return parts
