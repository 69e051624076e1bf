"""The issue slots of a layer by the cycle model, before and after a change: a picture of some clocks, and what is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from archsim.base.units import show
from archsim.cycle.program import PIPES
from archsim.cycle.stalls import MEANINGS
from archsim.explain.issue_slots import IssueSlot, IssueSlots
from archsim.render.blocks import Axis, Block, Chart, Series, Table, columns, percent, words

EDGE = 3.0  # clocks beside those that are shown, so that marks stand inside
SECOND = 0.3  # how far below the first of its clock a lane's second one is drawn, in rows
WHERE = "The clocks are from the middle of the kernel in which the layer spends most time."


def sections(before: IssueSlots, after: IssueSlots | None) -> list[Block]:
    """The pictures of both, and where their clocks go; `after` is None where nothing has changed."""
    sides = [(", before", before), (", after", after)] if after else [("", before)]
    return [*(chart for when, one in sides for chart in _charts(one, when)), _waits(before, after)]


def _charts(one: IssueSlots, when: str) -> list[Chart]:
    """What each lane issued in each clock, and of a GPU which warp."""
    kinds = PIPES if one.occupancy is not None else sorted({slot.kind for slot in one.slots})
    by_kind = {kind: [slot for slot in one.slots if slot.kind == kind] for kind in kinds}
    x = Axis(title="clock", log=False, ends=(0.0, one.end - one.begin))
    seen, seconds = set[tuple[int, float]](), set[int]()
    for slot in one.slots:
        if (slot.lane, slot.clock) in seen:
            seconds.add(id(slot))
        seen.add((slot.lane, slot.clock))
    lanes = [Series(name=kind, x=_clocks(one, own), ends=[clock + 0.9 for clock in _clocks(one, own)], tips=[*map(_tip, own)],
                    y=[slot.lane + SECOND * (id(slot) in seconds) for slot in own], tone=str(place))
             for place, (kind, own) in enumerate(by_kind.items())]  # fmt: skip
    what = "an instruction that was issued, in the colour of its pipe" if one.occupancy is not None else \
           "a micro-operation that began"  # fmt: skip
    found = [Chart(title=f"Issue slots of {one.layer}{when}", x=x, y=Axis(title="", names=one.lanes), series=lanes,
                   notes=[_said(one), f"A mark is {what}. {WHERE}"])]  # fmt: skip
    warps = {slot.thread for slot in one.slots if slot.thread is not None}
    if warps:
        marks = [Series(name=kind, x=_clocks(one, own), y=[slot.thread or 0 for slot in own], tone=str(place), joined=False,
                        sizes=[0.0] * len(own), tips=[*map(_tip, own)])
                 for place, (kind, own) in enumerate(by_kind.items())]  # fmt: skip
        y = Axis(title="warp", log=False, ends=(-1.0, max(warps) + 1.0))
        wider = replace(x, ends=(-EDGE, one.end - one.begin + EDGE))
        found.append(Chart(title=f"Warps that issue{when}", x=wider, y=y, series=marks, height=max(160, 4 * len(warps))))
    return found


def _clocks(one: IssueSlots, slots: Sequence[IssueSlot]) -> list[float]:
    return [slot.clock - one.begin for slot in slots]


def _tip(slot: IssueSlot) -> str:
    warp = "" if slot.thread is None else f"warp {slot.thread}, "
    return f"{slot.name or slot.kind}, {warp}clock {slot.clock:.0f}"


def _said(one: IssueSlots) -> str:
    times = f", {one.launches:g} launches" if one.launches != 1 else ""
    full = f", {100 * one.occupancy:.0f} % occupancy" if one.occupancy is not None else f", waits for {one.limit}"
    return f"{one.kernel}, {show(one.time_s, 's', 3)}{times}, {100 * one.use:.1f} % of the issue slots taken{full}"


def _waits(before: IssueSlots, after: IssueSlots | None) -> Table:
    """Where the clocks of the warps go; of a core what an iteration of its loop takes at least, over what it takes."""
    of_warps, sides = before.occupancy is not None, [before, *([after] if after else [])]
    what = ("stall", "meaning") if of_warps else ("bound of an iteration",)
    names = dict.fromkeys(name for one in reversed(sides) for name in one.waits)
    rows = [[words(name), *([words(MEANINGS[name])] if of_warps else []), *(percent(one.waits.get(name, 0.0)) for one in sides)]
            for name in names]  # fmt: skip
    heads = (*what, *(("before", "after") if after else ("share of the clocks",)))
    return Table(title="Where the clocks go", columns=columns(*heads, numbers=range(len(what), len(heads))), rows=rows)
