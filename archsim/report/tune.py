"""The best setting of a device as text, JSON, CSV, a table for notebooks, and a page with the front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from archsim.base.units import show
from archsim.report import figures
from archsim.report.data import rows_as_csv
from archsim.report.frame import document
from archsim.report.markup import TableCell, items, text, valued, words
from archsim.report.markup import table as html_table
from archsim.report.search import first_limit, thin
from archsim.report.study_figures import PlotAxis, Series, lines
from archsim.report.text import clean, table
from archsim.study.objective import OUTPUTS
from archsim.study.saving import Saving
from archsim.study.tune import FRONT, OperatingPoint, Tuning

SCHEMA = "archsim-tune/1"
ZOOM = "Drag over a part of the chart to enlarge it; a double click shows all of it again. Each point names its setting."
MOST_ROWS = 15  # of a front in a terminal
SETTINGS = {"clock_hz": ("core clock", "Hz"), "memory_clock_hz": ("memory clock", "Hz"), "power_limit_w": ("power limit", "W"),
            "batch": ("batch", "")}  # fmt: skip
OUTCOMES = {"latency_s": ("latency", "s"), "energy_per_sample_j": ("energy per sample", "J"), "power_w": ("power", "W"),
            "throughput_per_s": ("samples per second", "")}  # fmt: skip


def tune_text(t: Tuning) -> str:
    """What was wanted and tried, the best setting beside the default, what limits both, and the front."""
    parts = [heading(t), f"wanted      {wanted(t)}\ntried       {tried(t)}"]
    if t.best is None:
        nearest = f"No setting meets the conditions; the nearest:\n{_settings_table(t, _with_nearest(t))}"
        return "\n\n".join([*parts, nearest if t.nearest else f"N{nearest_words(t)[1:]}."])
    parts.append(_settings_table(t, (("default", t.default), ("best", t.best))))
    parts.append(f"changes     {saved_words(t)}")
    parts.append(f"limited by  {first_limit(t.limits)}; the default by {first_limit(t.default_limits)}")
    shown = thin(t.front, MOST_ROWS)
    left_out = len(t.front) - len(shown)
    more = f"\n({left_out} between them not listed; --csv and --html list all)" if left_out else ""
    rows = [("", one) for one in shown]
    parts.append(f"Pareto front of latency and energy per sample, {len(t.front)} settings:\n{_settings_table(t, rows)}{more}")
    return "\n\n".join(parts)


def heading(t: Tuning) -> str:
    """What runs on one line."""
    return (f"{clean(t.network)} on {clean(t.hardware_name)}: {t.task}, {t.precision}, stack {t.stack}, "
            f"{t.fidelity} model")  # fmt: skip


def wanted(t: Tuning) -> str:
    """The objective and the conditions."""
    limits = " and ".join(t.where)
    return f"{'most' if t.objective.maximise else 'least'} {title(t.minimise)}{f' where {limits}' if limits else ''}"


def title(output: str) -> str:
    """What an output is called."""
    known = {**OUTCOMES, "energy_delay_js": ("energy per sample x latency", "Js")}
    return known[output][0] if output in known else OUTPUTS[output][0]


def tried(t: Tuning) -> str:
    """The ranges, and how many settings met the conditions."""
    broken = f"; {t.impossible:,} are impossible ({t.why})" if t.impossible else ""
    return f"{t.points:,} settings: {'; '.join(t.ranges)}. {t.feasible:,} meet the conditions and fit the memory{broken}"


def saved_words(t: Tuning) -> str:
    """What the best setting changes beside the default, each with its interval; one line for each output, the aim first."""
    if all(one.ratio == 1.0 for one in t.saved.values()):
        return "nothing: no setting is better than the default"
    said = [f"{title(name)} {_percent(one.ratio)} ({100 * t.interval_level:.0f} % interval {_percent(one.interval[0])} to "
            f"{_percent(one.interval[1])}{doubt(one)})"
            for name, one in sorted(t.saved.items(), key=lambda pair: pair[0] != t.minimise)]  # fmt: skip
    return f"\n{'':<12}".join(said)


def doubt(one: Saving) -> str:
    """What is said of a change that errors of the prediction could undo."""
    return ", uncertain" if one.uncertain else ""


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def nearest_words(t: Tuning) -> str:
    """On one line, that nothing meets the conditions, and what comes nearest."""
    if t.impossible == t.points:
        return f"no setting is possible: {t.why}"
    if t.nearest is None:
        return "no setting fits the memory of the device"
    at = ", ".join(f"{name} {cell(t.nearest, key, unit)}" for key, (name, unit) in columns(t).items())
    return f"no setting meets {' and '.join(t.where)}; the nearest has {at}"


def _with_nearest(t: Tuning) -> Sequence[tuple[str, OperatingPoint]]:
    return [("default", t.default), *([("nearest", t.nearest)] if t.nearest else [])]


def _settings_table(t: Tuning, rows: Sequence[tuple[str, OperatingPoint]]) -> str:
    head = ("", *(name for name, _ in columns(t).values()))
    return table(head, [(name, *(cell(one, key, unit) for key, (_, unit) in columns(t).items())) for name, one in rows])


def columns(t: Tuning) -> dict[str, tuple[str, str]]:
    """The columns of tables: settings, outcomes, and the objective where it is none of these."""
    more = t.minimise not in OUTCOMES and t.minimise in _names()
    aim = {t.minimise: (title(t.minimise), OUTPUTS[t.minimise][1])} if more else {}
    known = t.default.memory_clock_hz is not None
    return {**{name: one for name, one in SETTINGS.items() if known or name != "memory_clock_hz"}, **OUTCOMES, **aim}


def _names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(OperatingPoint))


def cell(one: OperatingPoint, key: str, unit: str) -> str:
    """A number of a setting with its unit."""
    value = getattr(one, key)
    if value is None:
        return "-"
    return show(value, unit)


def record(t: Tuning) -> dict[str, Any]:
    """Plain values for JSON."""
    plain = {name: getattr(t, name) for name in (field.name for field in fields(Tuning))}
    points = {name: None if plain[name] is None else asdict(plain[name]) for name in ("default", "best", "nearest")}
    return {"schema": SCHEMA, **plain, **points, "changes": dict(t.changes), "limits": dict(t.limits),
            "default_limits": dict(t.default_limits), "saved": {name: asdict(one) for name, one in t.saved.items()},
            "front": [asdict(one) for one in t.front]}  # fmt: skip


def tune_csv(t: Tuning) -> str:
    """One row for the default, the best, or the nearest, and each setting of the front."""
    rows = [("default", t.default), *([("best", t.best)] if t.best else []), *([("nearest", t.nearest)] if t.nearest else []),
            *(("front", one) for one in t.front)]  # fmt: skip
    return rows_as_csv(("which", "network", "hardware_name", *_names()),
                       [(which, t.network, t.hardware_name, *asdict(one).values()) for which, one in rows])  # fmt: skip


def tune_table(t: Tuning) -> str:
    """The default and the best setting, for a notebook."""
    from archsim.report.notebook import settings_table

    rows = [("default", t.default), *([("best", t.best)] if t.best else _with_nearest(t)[1:])]
    head = [name for name, _ in columns(t).values()]
    cells = [(name, *(cell(one, key, unit) for key, (_, unit) in columns(t).items())) for name, one in rows]
    return settings_table(f"<b>{text(heading(t))}</b>: {text(wanted(t))}", ("", *head), cells)


def tune_page(t: Tuning) -> str:
    """The front as a chart of which a part can be enlarged, each point with its setting, and tables."""
    sections = [f'<h1>Tune: {text(wanted(t))}</h1>\n<p class="asked">{text(heading(t))}</p>', f"<p>{text(tried(t))}.</p>"]
    if t.best is None:
        sections += ['<p class="warn">No setting meets the conditions.</p>', _html(t, _with_nearest(t), "Nearest")]
        return document("Tune", sections)
    saved = items(map(str.strip, saved_words(t).split("\n")))
    sections += [_html(t, (("default", t.default), ("best", t.best)), "Best"), saved,
                 f"<p>Limited by {text(first_limit(t.limits))}; the default by {text(first_limit(t.default_limits))}.</p>",
                 f'<h2>Pareto front</h2>\n<p class="quiet">{ZOOM}</p>\n{figures.embed(_chart(t, t.best), "front")}',
                 _html(t, [("", one) for one in t.front], "All settings of the front")]  # fmt: skip
    return document("Tune", sections, figures.library())


def _chart(t: Tuning, best: OperatingPoint) -> Any:
    across, up = (PlotAxis(title=OUTCOMES[name][0], unit=OUTCOMES[name][1], zooms=True) for name in FRONT)

    def series(name: str, points: Sequence[OperatingPoint], mode: str, hollow: bool = False) -> Series:
        return Series(name=name, x=[one.latency_s for one in points], y=[one.energy_per_sample_j for one in points], mode=mode,
                      notes=[_note(t, name, one) for one in points], hollow=[hollow] * len(points))  # fmt: skip

    return lines([series("Pareto front", t.front, "lines+markers"), series("default", [t.default], "markers", hollow=True),
                  series("best", [best], "markers")], across, up)  # fmt: skip


def _note(t: Tuning, name: str, one: OperatingPoint) -> str:
    return "<br>".join([name, *(f"{title} {cell(one, key, unit)}" for key, (title, unit) in columns(t).items())])


def _html(t: Tuning, rows: Sequence[tuple[str, OperatingPoint]], head: str) -> str:
    def number(one: OperatingPoint, key: str, unit: str) -> TableCell:
        value = getattr(one, key)
        shown = cell(one, key, unit)
        return words(shown) if value is None else valued(shown, float(value))

    body = [[words(name), *(number(one, key, unit) for key, (_, unit) in columns(t).items())] for name, one in rows]
    titles = ("", *(name for name, _ in columns(t).values()))
    return f'<h2>{head}</h2>\n<div class="scroll">\n{html_table(titles, body)}\n</div>'
