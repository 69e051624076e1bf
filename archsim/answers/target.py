"""What it takes to reach a target: the least change of each value alone, and of all together."""

from __future__ import annotations

import math
from typing import Any

from archsim.answers.asked import asked, knob_text
from archsim.answers.front import saves
from archsim.answers.search import ESTIMATE, output_text, plain
from archsim.device.variant import device_fields
from archsim.render.blocks import Block, Cell, Note, Table, Verdict, columns, words
from archsim.study.objective import OUTPUTS
from archsim.study.target import LARGEST_FACTOR, TargetChange, TargetWays

SCHEMA = "archsim-target/1"
BESIDE = ("latency_s", "power_w", "energy_j", "area_mm2")


def sections(t: TargetWays) -> list[Block]:
    """The blocks of a target."""
    own = output_text(t.target.name, t.base)
    verdict = Verdict(title=f"To reach {t.target.written}", asked=asked(t.request), sentences=[f"{_verdict(t)} As it is: {own}."])
    names = [name for name in BESIDE if name in t.base and name != t.target.name]
    rows = [[words(_knobs(way)), *_way(t, way), *(words(output_text(n, way.values) if way.factor else "") for n in names),
             words(saves(way.limits) if way.limits else "")] for way in t.ways]  # fmt: skip
    heads = ("change", "times", "to", OUTPUTS[t.target.name][0], *(OUTPUTS[name][0] for name in names), "then limited by")
    table = Table(title="Change", columns=columns(*heads, numbers=range(1, 4 + len(names))), rows=rows)
    return [verdict, table, *([Note(text=ESTIMATE, tone="quiet")] if "area_mm2" in t.base else [])]


def _verdict(t: TargetWays) -> str:
    """The least change that is enough."""
    single = [way for way in t.ways if len(way.knobs) == 1 and way.factor is not None]
    if any(math.isclose(way.factor or 0.0, 1.0) for way in t.ways):
        return "It is reached as it is."
    if single:
        least = min(single, key=lambda way: way.factor or math.inf)
        to = knob_text(t.request, least.knobs[0], least.settings[least.knobs[0]])
        others = f"; {len(single) - 1} other values alone would do as well" if len(single) > 1 else ""
        return f"The least change is {least.knobs[0]} x {least.factor:.3g}, to {to}{others}."
    joint = [way for way in t.ways if way.factor is not None]
    if joint:
        return f"No value alone is enough up to x {LARGEST_FACTOR:g}; {_knobs(joint[0])} x {joint[0].factor:.3g} are."
    nearest = max(t.ways, key=lambda way: way.reached if t.target.sign == ">=" else -way.reached)
    most = f"x {LARGEST_FACTOR:g}"
    return f"No change up to {most} is enough; {_knobs(nearest)} come nearest, limited by {saves(nearest.limits)}."


def _knobs(way: TargetChange) -> str:
    if len(way.knobs) > 2 and way.knobs[-1] == "batch":
        return "all hardware values and batch"
    return " + ".join(way.knobs) if len(way.knobs) < 3 else "all hardware values"


def _way(t: TargetWays, way: TargetChange) -> tuple[Cell, Cell, Cell]:
    reached = output_text(t.target.name, {t.target.name: way.reached})
    if way.factor is None:
        return words("never", tone="quiet"), words(f"at x {LARGEST_FACTOR:g}"), words(f"at best {reached}")
    if math.isclose(way.factor, 1.0):
        return words("x 1"), words("as it is"), words(reached)
    to = knob_text(t.request, way.knobs[0], way.settings[way.knobs[0]]) if len(way.knobs) < 3 else ""
    return Cell(text=f"x {way.factor:.3g}", value=way.factor, tone="good"), words(to), words(reached)


def record(t: TargetWays) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "schema": SCHEMA, "network": t.request.network, **device_fields(t.request.spec),
        "output": t.target.name, "limit": t.target.limit, "base": plain(t.base),
        "ways": [{"knobs": list(w.knobs), "factor": w.factor, "settings": plain(w.settings), **plain({"reached": w.reached}),
                  "outputs": plain(w.values) if w.factor else None, "limits": dict(w.limits) if w.limits else None}
                 for w in t.ways],
    }  # fmt: skip
