"""A search, and what a target takes, as text, JSON, CSV, and a page with the front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from archsim.base.units import show
from archsim.device.variant import called, device_fields
from archsim.estimation.request import Request
from archsim.report import figures
from archsim.report.data import rows_as_csv
from archsim.report.frame import document
from archsim.report.markup import TableCell, text, valued, words
from archsim.report.markup import table as html_table
from archsim.report.sensitivity import asked_record, heading
from archsim.report.study_figures import PlotAxis, Series, lines
from archsim.report.text import FASTER_TEXT, table
from archsim.study.condition import Condition
from archsim.study.knob import WORDS, meaning
from archsim.study.objective import OUTPUTS, SILICON
from archsim.study.search import SearchResult
from archsim.study.target import LARGEST_FACTOR, TargetChange, limits_at

T = TypeVar("T")
SCHEMA = "archsim-search/1"
MOST_ROWS = 20  # of a front in a terminal
SHOWN = ("latency_s", "energy_j", "power_w", "area_mm2", "cost_usd")
WHAT_IFS = "what-ifs of "
ESTIMATE = "area and cost are estimates: `archsim show silicon` prints their parts and errors"


def wanted(f: SearchResult) -> str:
    """The objectives and conditions as text."""
    aims = ", ".join(o.written for o in f.goal.objectives)
    limits = " and ".join(c.written for c in f.goal.conditions)
    memory = "" if f.goal.any_memory else "; only what fits the memory"
    return f"{aims}{f' where {limits}' if limits else ''}{memory}"


def search_text(request: Request, f: SearchResult) -> str:
    """The best points and the front, each beside the base."""
    broken = f"; {f.broken:,} are impossible ({f.why})" if f.broken else ""
    parts = [
        heading(request, WHAT_IFS),
        f"wanted      {wanted(f)}\nsearched    {f.how}: {f.points:,}, of which {f.feasible:,} are within the limits"
        f"{broken}{large_words(f)}",
    ]
    if not f.best:
        parts.append("No point meets the conditions: relax one, or widen a range.")
        return "\n\n".join(parts)
    columns = columns_of(f)
    parts.append("Best:\n" + _rows(request, f, columns, f.best, base=True))
    parts.append(limit_words(request, f))
    axes = " and ".join(OUTPUTS[o.output][0] for o in f.goal.front)
    thinned = thin(f.front, MOST_ROWS)
    more = f"\n({len(f.front) - MOST_ROWS} between them not listed; --csv and --html list all)" if thinned != f.front else ""
    parts.append(f"Pareto front of {axes}, {len(f.front)} points:\n" + _rows(request, f, columns, thinned, base=False) + more)
    if "area_mm2" in f.base:
        parts.append(ESTIMATE)
    return "\n\n".join(parts)


def limit_words(request: Request, f: SearchResult) -> str:
    """What limits the best point and the base: the resource that would save most if it were faster."""
    best, base = (first_limit(limits_at(request, row)) for row in ({knob: f.best[0][knob] for knob in f.knobs}, {}))
    return f"limited by  {best}; the base by {base}"


def first_limit(limits: Mapping[str, float]) -> str:
    """The resource that would save most."""
    name, share = next(iter(limits.items()), ("none", 0.0))
    return f"{name} ({100 * share:.0f} % saved if {FASTER_TEXT} faster)"


def large_words(f: SearchResult) -> str:
    """What was left out because no mask can make it, as the end of a sentence."""
    many = f"{f.large:,} {'is' if f.large == 1 else 'are'}"
    return f"; {many} left out because no mask can make so large a die (--any-die counts them)" if f.large else ""


def thin(rows: Sequence[T], most: int) -> Sequence[T]:
    """At most so many of the rows, evenly picked, both ends among them."""
    return rows if len(rows) <= most else [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


def columns_of(f: SearchResult) -> tuple[str, ...]:
    """The outputs that a table of results shows."""
    named = [o.output for o in (*f.goal.objectives, *f.goal.front)] + [c.name for c in f.goal.conditions if c.name in OUTPUTS]
    return tuple(dict.fromkeys([*named, *(name for name in SHOWN if name in f.base)]))


def _rows(request: Request, f: SearchResult, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], base: bool) -> str:
    head = ("", *f.knobs, *(OUTPUTS[name][0] for name in columns))
    body = [(str(i + 1), *(knob_text(request, k, row[k]) for k in f.knobs), *(output_text(n, row) for n in columns))
            for i, row in enumerate(rows)]  # fmt: skip
    if base:
        own = ("base", *(knob_text(request, k, base_value(request, k)) for k in f.knobs))
        body.append((*own, *(output_text(n, f.base) for n in columns)))
    return table(head, body)


def base_value(request: Request, knob: str) -> Any:
    """The value of a knob at the base."""
    from archsim.study.coupling import base_value

    if knob in WORDS:
        return {"precision": request.precision, "stack": request.stack.id, "task": request.task}.get(knob, "")
    return base_value(request, knob)


def knob_text(request: Request, knob: str, value: Any) -> str:
    """The value of a knob with its unit."""
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "-"
    return show(float(value), meaning(request.spec.kind, knob).unit, 4)


def output_text(name: str, row: Mapping[str, Any]) -> str:
    """An output of a row with its unit; an area that no mask can make is marked."""
    value = row[name]
    unit = OUTPUTS[name][1]
    if math.isnan(value):
        return "-"
    if name == "area_mm2" and row.get("one_die") == 0:
        return f"{value:.4g} mm2, no mask"
    return show(value, unit)


def search_record(request: Request, f: SearchResult) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "schema": SCHEMA, **asked_record(request), "wanted": wanted(f), "how": f.how,
        "points": f.points, "feasible": f.feasible, "no_machine": f.broken, "no_mask": f.large, "base": _plain(f.base),
        "best": [_plain(row) for row in f.best], "front": [_plain(row) for row in f.front],
        "front_of": [o.output for o in f.goal.front], "estimated": [name for name in SILICON if name in f.base],
        "relief": None if not f.best else {"best": limits_at(request, {knob: f.best[0][knob] for knob in f.knobs}),
                                           "base": limits_at(request, {})},
    }  # fmt: skip


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _finite(value) for name, value in row.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def search_csv(request: Request, f: SearchResult) -> str:
    """One row for each of the best and each point of the front; `hardware_name` is the device that they start from."""
    names, start = list((f.best or f.front or ({},))[0]), called(request.spec)
    rows = [[which, start, *(row[n] for n in names)] for which, found in (("best", f.best), ("front", f.front)) for row in found]
    return rows_as_csv(("which", "hardware_name", *names), rows)


def search_page(request: Request, f: SearchResult) -> str:
    """The front as a chart, and tables."""
    sections = [
        f'<h1>Search: {text(wanted(f))}</h1>\n<p class="asked">{text(heading(request, WHAT_IFS))}</p>',
        f"<p>{text(f.how.capitalize())}: {f.points:,} points, {f.feasible:,} within the limits{text(large_words(f))}.</p>",
    ]
    if not f.best:
        return document("Search", [*sections, '<p class="warn">No point meets the conditions.</p>'])
    a, b = f.goal.front[0].output, f.goal.front[1].output
    across, up = (PlotAxis(title=OUTPUTS[name][0], unit=OUTPUTS[name][1]) for name in (a, b))
    cloud = Series(name="within the limits", x=[r[a] for r in f.cloud], y=[r[b] for r in f.cloud], mode="markers", faint=True)
    edge = sorted(f.front, key=lambda r: float(r[a]))
    notes = [_tooltip(request, f, r) for r in edge]
    front = Series(name="Pareto front", x=[r[a] for r in edge], y=[r[b] for r in edge], notes=notes,
                   mode="lines+markers" if len(f.goal.front) == 2 else "markers")  # fmt: skip
    base = Series(name="base", x=[f.base[a]], y=[f.base[b]], mode="markers", hollow=[True])
    series = [s for s in (cloud, front, base) if s.x]
    chart = figures.embed(lines(series, across, up), "front")
    columns = columns_of(f)
    note = f'<p class="quiet">{text(ESTIMATE)}.</p>' if "area_mm2" in f.base else ""
    sections += [f"<h2>Pareto front</h2>\n{chart}\n{note}", _html(request, f, columns, f.best, "Best"),
                 f"<p>{text(limit_words(request, f).capitalize())}.</p>",
                 _html(request, f, columns, f.front, "All points of the front")]  # fmt: skip
    return document("Search", sections, figures.library())


def _tooltip(request: Request, f: SearchResult, row: Mapping[str, Any]) -> str:
    knobs = "<br>".join(f"{text(k)} = {text(knob_text(request, k, row[k]))}" for k in f.knobs)
    return f"{knobs}<br>{'<br>'.join(f'{OUTPUTS[n][0]} {output_text(n, row)}' for n in columns_of(f))}"


def _html(request: Request, f: SearchResult, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], title: str) -> str:
    def number(value: Any, written: str) -> TableCell:
        return words(written) if isinstance(value, str) else valued(written, float(value))

    cells = [
        [*(number(r[k], knob_text(request, k, r[k])) for k in f.knobs), *(number(r[n], output_text(n, r)) for n in columns)]
        for r in rows
    ]
    body = html_table((*f.knobs, *(OUTPUTS[n][0] for n in columns)), cells)
    return f'<h2>{title}</h2>\n<div class="scroll">\n{body}\n</div>'


def target_text(request: Request, target: Condition, found: Sequence[TargetChange], base: Mapping[str, float]) -> str:
    """What each change would take to meet the target."""
    rows = [(_knobs(way), *_way(request, target, way)) for way in found]
    names = [name for name in ("latency_s", "power_w", "energy_j", "area_mm2") if name in base and name != target.name]
    head = ("change", "times", "to", OUTPUTS[target.name][0], *(OUTPUTS[name][0] for name in names))
    body = [(*row, *(output_text(n, way.values) if way.factor else "" for n in names), _limit(way))
            for row, way in zip(rows, found, strict=True)]  # fmt: skip
    head = (*head, "then limited by")
    if not any(way.limits for way in found):
        head, body = head[:-1], [row[:-1] for row in body]
    note = f"\n\n{ESTIMATE}" if "area_mm2" in base else ""
    return (
        f"{heading(request, WHAT_IFS)}\n\ntarget      {target.written}; the base device has {output_text(target.name, base)}\n\n"
        + table(head, body) + note
    )  # fmt: skip


def _limit(way: TargetChange) -> str:
    """What limits where a change does not meet its target, and what more of it would save."""
    return first_limit(way.limits) if way.limits else ""


def _knobs(way: TargetChange) -> str:
    if len(way.knobs) > 2 and way.knobs[-1] == "batch":
        return "all of these and batch"
    return way.knobs[0] if len(way.knobs) == 1 else " + ".join(way.knobs) if len(way.knobs) < 3 else "all hardware values"


def _way(request: Request, target: Condition, way: TargetChange) -> tuple[str, str, str]:
    reached = output_text(target.name, {target.name: way.reached})
    if way.factor is None:
        return "never", f"at x {LARGEST_FACTOR:g}", f"at best {reached}"
    if math.isclose(way.factor, 1.0):
        return "x 1", "as it is", reached
    to = knob_text(request, way.knobs[0], way.settings[way.knobs[0]]) if len(way.knobs) < 3 else ""
    return f"x {way.factor:.3g}", to, reached


def target_record(
    request: Request, target: Condition, found: Sequence[TargetChange], base: Mapping[str, float]
) -> dict[str, Any]:  # fmt: skip
    """Plain values for JSON."""
    return {
        "schema": "archsim-target/1", "network": request.network, **device_fields(request.spec),
        "output": target.name,
        "limit": target.limit, "base": _plain(base),
        "ways": [{"knobs": list(w.knobs), "factor": w.factor, "settings": _plain(w.settings), "reached": _finite(w.reached),
                  "outputs": _plain(w.values) if w.factor else None, "limits": dict(w.limits) if w.limits else None}
                 for w in found],
    }  # fmt: skip
