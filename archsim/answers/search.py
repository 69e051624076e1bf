"""The best points of a space of devices beside the device as it is, what limits them, and the front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from archsim.answers.asked import asked, asked_record, changed_by, knob_text
from archsim.answers.front import FrontPoint, front_chart, points_table, saves
from archsim.base.units import show
from archsim.device.variant import called
from archsim.render.blocks import Axis, Block, Cell, Facts, Table, Verdict, words
from archsim.render.text import csv_lines
from archsim.stack.catalog import rows_of
from archsim.study.objective import OUTPUTS, SILICON
from archsim.study.search import SearchResult
from archsim.study.swept import knob_at_base
from archsim.study.target import limits_at

SCHEMA = "archsim-search/1"
SHOWN = ("latency_s", "energy_j", "power_w", "area_mm2", "cost_usd")
MOST_SAID = 4  # outputs of the best point in the verdict
ESTIMATE = "area and cost are estimates: `archsim show silicon` prints their parts and errors"


def sections(f: SearchResult) -> list[Block]:
    """The blocks of a search."""
    return [_verdict(f), *([_chart(f), _table(f)] if f.best else []), Facts(title="How far to trust it", rows=_trust(f))]


def wanted(f: SearchResult) -> str:
    """The objectives and conditions as text."""
    aims = ", ".join(o.written for o in f.goal.objectives)
    limits = " and ".join(c.written for c in f.goal.conditions)
    memory = "" if f.goal.any_memory else "; only what fits the memory"
    return f"{aims}{f' where {limits}' if limits else ''}{memory}"


def _verdict(f: SearchResult) -> Verdict:
    title = f"{wanted(f)[0].upper()}{wanted(f)[1:]}"
    if not f.best:
        said = f"No point of {f.points:,} is possible: {f.why}." if f.broken == f.points else \
               f"No point of {f.points:,} meets the conditions{large_words(f)}: relax one, or widen a range."  # fmt: skip
        return Verdict(title=title, asked=asked(f.request), sentences=[said])
    best, lines = f.best[0], []
    for name in columns_of(f)[:MOST_SAID]:
        now, was = output_text(name, best), output_text(name, f.base)
        changed = changed_by(name, best[name] / f.base[name]) if f.base[name] > 0 else ""
        lines.append((f"{now} {OUTPUTS[name][0].replace('_', ' ')}", changed, f"not {was}" if was != now else "as it is"))
    own = all(best[knob] == knob_at_base(f.request, knob) for knob in f.knobs)
    setting = ", ".join(f"{knob} {knob_text(f.request, knob, best[knob])}" for knob in f.knobs)
    as_it_is = ", ".join(knob_text(f.request, knob, knob_at_base(f.request, knob)) for knob in f.knobs)
    chosen = "Best as it is" if own else f"Best with {setting} (as it is: {as_it_is})"
    there, base = (saves(limits_at(f.request, knobs)) for knobs in ({knob: best[knob] for knob in f.knobs}, {}))
    return Verdict(title=title, asked=asked(f.request, f.knobs), lines=lines,
                   sentences=[f"{chosen}.", f"Limited by {there}; the device as it is by {base}."])  # fmt: skip


def large_words(f: SearchResult) -> str:
    """What was left out because no mask can make it, as the end of a sentence."""
    many = f"{f.large:,} {'is' if f.large == 1 else 'are'}"
    return f"; {many} left out because no mask can make so large a die (--any-die counts them)" if f.large else ""


def _trust(f: SearchResult) -> list[tuple[str, Any]]:
    broken = f"; {f.broken:,} are impossible ({f.why})" if f.broken else ""
    apart = sum(row.get("held") == 0 for row in [*f.best, *(row for row in f.front if row not in f.best)])
    cycle = f"of {apart} points --fidelity cycle tells another latency than the interval holds (apart): trust them less"
    return [("searched", f"{f.how}: {f.points:,}, of which {f.feasible:,} are within the limits{broken}{large_words(f)}"),
            ("cycle", cycle if apart else ""), ("stack", rows_of(f.request.stack).words),
            ("silicon", ESTIMATE if "area_mm2" in f.base else "")]  # fmt: skip


def columns_of(f: SearchResult) -> tuple[str, ...]:
    """The outputs that a table of results shows."""
    named = [o.output for o in (*f.goal.objectives, *f.goal.front)] + [c.name for c in f.goal.conditions if c.name in OUTPUTS]
    return tuple(dict.fromkeys([*named, *(name for name in SHOWN if name in f.base)]))


def _table(f: SearchResult) -> Table:
    """The device as it is, the best points, and the others of the front."""
    by_cycle = ("simulated_s",) if f.best and "simulated_s" in f.best[0] else ()
    outputs, front = (*columns_of(f), *by_cycle), sorted(f.front, key=lambda row: float(row[f.goal.front[0].output]))
    base = {**{knob: knob_at_base(f.request, knob) for knob in f.knobs}, **f.base}
    listed = [("as it is", base), *(("best" if not i else f"{i + 1}", row) for i, row in enumerate(f.best))]

    def cells(which: str, row: Mapping[str, Any]) -> list[Cell]:
        return [words(which, tone="good" if which == "best" else ""), *(_knob(f, knob, row[knob]) for knob in f.knobs),
                *(Cell(text=output_text(name, row), value=_finite(row.get(name))) for name in outputs),
                words("yes" if row in f.front else "")]  # fmt: skip

    heads = ("", *f.knobs, *(OUTPUTS[name][0].replace("_", " ") for name in columns_of(f)),
             *("by cycle" for _ in by_cycle), "on the front")
    names = " and ".join(OUTPUTS[o.output][0].replace("_", " ") for o in f.goal.front)
    return points_table("Points", heads, [cells(*row) for row in listed], [cells("", row) for row in front if row not in f.best],
                        f"front of {names}: {len(f.front):,} points")  # fmt: skip


def _knob(f: SearchResult, knob: str, value: Any) -> Cell:
    return words(value) if isinstance(value, str) else Cell(text=knob_text(f.request, knob, value), value=_finite(value))


def output_text(name: str, row: Mapping[str, Any]) -> str:
    """An output of a row with its unit; an area that no mask can make and a latency outside the interval are marked."""
    value = row.get(name, math.nan)
    if math.isnan(value):
        return "-"
    if name == "area_mm2" and row.get("one_die") == 0:
        return f"{value:.4g} mm2, no mask"
    if name == "simulated_s":
        return f"{show(value, 's')}{'' if row['held'] else ', apart'}"
    return show(value, OUTPUTS[name][1])


def _chart(f: SearchResult) -> Block:
    """The front before other points that meet the conditions; the best and the device as it is."""
    across, up = (o.output for o in f.goal.front[:2])

    def point(row: Mapping[str, Any], named: bool = False) -> FrontPoint:
        setting = [f"{knob} {knob_text(f.request, knob, row[knob])}" for knob in f.knobs if knob in row]
        outputs = [f"{OUTPUTS[name][0]} {output_text(name, row)}" for name in columns_of(f)]
        label = ", ".join(setting) if named else ""
        return FrontPoint(x=row[across], y=row[up], label=label, tip="\n".join([*setting, *outputs]))

    x, y = (Axis(title=OUTPUTS[name][0].replace("_", " "), unit=OUTPUTS[name][1]) for name in (across, up))
    return front_chart("Pareto front", x, y, [point(row, named=True) for row in f.front], [point(row) for row in f.cloud],
                       {"as it is": point(f.base), "best": point(f.best[0])})  # fmt: skip


def record(f: SearchResult) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "schema": SCHEMA, **asked_record(f.request), "stack_rows": asdict(rows_of(f.request.stack)),
        "wanted": wanted(f), "how": f.how,
        "points": f.points, "feasible": f.feasible, "no_machine": f.broken, "no_mask": f.large, "base": plain(f.base),
        "best": [plain(row) for row in f.best], "front": [plain(row) for row in f.front],
        "front_of": [o.output for o in f.goal.front], "estimated": [name for name in SILICON if name in f.base],
        "saved": None if not f.best else {"best": limits_at(f.request, {knob: f.best[0][knob] for knob in f.knobs}),
                                           "base": limits_at(f.request, {})},
    }  # fmt: skip


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON has it: what is not finite is null."""
    return {name: _finite(value) for name, value in row.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv(f: SearchResult) -> str:
    """One row for each of the best and each point of the front; `hardware_name` is the device that they start from."""
    names: Sequence[str] = list((f.best or f.front or ({},))[0])
    rows = [[which, called(f.request.spec), *(row[n] for n in names)] for which, found in (("best", f.best), ("front", f.front))
            for row in found]  # fmt: skip
    return csv_lines([("which", "hardware_name", *names), *rows])
