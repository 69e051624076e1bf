"""The best setting of a device: what it saves beside the default, with intervals, what limits it, and the front."""

from __future__ import annotations

from dataclasses import asdict, fields

from archsim.answers import tagged
from archsim.answers.front import FrontPoint, front_chart, points_table, saves
from archsim.answers.whatif import share_words, sure_words
from archsim.base.units import show
from archsim.render.blocks import Axis, Block, Cell, Facts, Note, Table, Verdict, words
from archsim.render.text import csv_lines
from archsim.study.objective import OUTPUTS
from archsim.study.tune import OperatingPoint, Tuning

SCHEMA = "archsim-tune/1"
SETTINGS = {"clock_hz": ("core clock", "Hz"), "memory_clock_hz": ("memory clock", "Hz"), "power_limit_w": ("power limit", "W"),
            "batch": ("batch", "")}  # fmt: skip
OUTCOMES = {"latency_s": ("latency", "s"), "energy_per_sample_j": ("energy per sample", "J"), "power_w": ("power", "W"),
            "throughput_per_s": ("samples per second", "")}  # fmt: skip


def sections(t: Tuning) -> list[Block]:
    """The blocks of a tuning."""
    ratios = [("ratios", f"{100 * t.interval_level:.0f} % of measured ones are expected in such intervals, counted on pairs of "
                        "measured rows of one device with two such settings")]  # fmt: skip
    if t.best is None:
        return [_verdict(t), _table(t), Facts(rows=[("tried", _tried(t))])]
    said = f"The best is limited by {saves(t.limits)}; the default by {saves(t.default_limits)}."
    return [_verdict(t), _chart(t, t.best), _table(t), Note(text=said),
            Facts(title="How far to trust it", rows=[*ratios, ("tried", _tried(t))])]  # fmt: skip


def _verdict(t: Tuning) -> Verdict:
    asked = [f"{t.network} on {t.hardware_name}", t.task.replace("_", " "), t.precision,
             f"{t.stack} ({t.stack_rows.own:,} rows)", f"{t.fidelity} model"]  # fmt: skip
    where = f" where {' and '.join(t.where)}" if t.where else ""
    title = f"{'Most' if t.objective.maximise else 'Least'} {_title(t.minimise)}{where}"
    if t.best is None:
        said = nearest_words(t)
        return Verdict(title=title, asked=asked, sentences=[f"{said[0].upper()}{said[1:]}."])
    if all(one.ratio == 1.0 for one in t.saved.values()):
        return Verdict(title=title, asked=asked, sentences=["No setting is better than the default."])
    lines = []
    for name, one in sorted(t.saved.items(), key=lambda pair: pair[0] != t.minimise):
        now, was = (_cell(point, name, OUTCOMES[name][1]).text for point in (t.best, t.default))
        sure = sure_words(one, t.interval_level, one.ratio > 2) + (", uncertain" if one.uncertain else "")
        lines.append((share_words(one.ratio, OUTCOMES[name][0]), sure, f"{now}, not {was}"))
    best, own = (", ".join(text for key, text in _told(t, point).items() if key in SETTINGS) for point in (t.best, t.default))
    return Verdict(title=title, asked=asked, lines=lines, sentences=[f"Best with {best}; the default is {own}."])


def _told(t: Tuning, one: OperatingPoint) -> dict[str, str]:
    """Settings and outcomes of a point in words, by key."""
    return {key: f"{name} {_cell(one, key, unit).text}" for key, (name, unit) in _columns(t).items()}


def _marked(t: Tuning) -> list[tuple[str, OperatingPoint]]:
    """The default, the best or the nearest."""
    points = {"default": t.default, "best": t.best, "nearest": t.nearest}
    return [(name, one) for name, one in points.items() if one is not None]


def _title(output: str) -> str:
    """What an output is called."""
    known = {**OUTCOMES, "energy_delay_js": ("energy per sample x latency", "Js")}
    return known[output][0] if output in known else OUTPUTS[output][0]


def _tried(t: Tuning) -> list[str]:
    """The ranges, and how many settings met the conditions."""
    broken = f"; {t.impossible:,} are impossible ({t.why})" if t.impossible else ""
    return [f"{t.points:,} settings, of which {t.feasible:,} meet the conditions and fit the memory{broken}", *t.ranges]


def nearest_words(t: Tuning) -> str:
    """On one line, that nothing meets the conditions, and what comes nearest."""
    if t.impossible == t.points:
        return f"no setting is possible: {t.why}"
    if t.nearest is None:
        return "no setting fits the memory of the device"
    return f"no setting meets {' and '.join(t.where)}; the nearest has {', '.join(_told(t, t.nearest).values())}"


def _table(t: Tuning) -> Table:
    """The default, the best or the nearest, and the front."""
    shown = _columns(t)

    def cells(which: str, one: OperatingPoint) -> list[Cell]:
        values = (_cell(one, key, unit) for key, (_, unit) in shown.items())
        return [words(which, tone="good" if which == "best" else ""), *values]

    front = [cells("front", one) for one in t.front if one != t.best]
    note = "front: no other setting has both less latency and less energy per sample"
    heads = ("", *(name for name, _ in shown.values()))
    return points_table("Settings", heads, [cells(*pair) for pair in _marked(t)], front, note)


def _columns(t: Tuning) -> dict[str, tuple[str, str]]:
    """The columns of tables: settings, outcomes, and the objective where it is none of these."""
    more = t.minimise not in OUTCOMES and t.minimise in _names()
    aim = {t.minimise: (_title(t.minimise), OUTPUTS[t.minimise][1])} if more else {}
    known = t.default.memory_clock_hz is not None
    return {**{name: one for name, one in SETTINGS.items() if known or name != "memory_clock_hz"}, **OUTCOMES, **aim}


def _names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(OperatingPoint))


def _cell(one: OperatingPoint, key: str, unit: str) -> Cell:
    """A number of a setting with its unit."""
    value = getattr(one, key)
    return words("-") if value is None else Cell(text=show(value, unit), value=float(value))


def _chart(t: Tuning, best: OperatingPoint) -> Block:
    """Latency and energy of the front, with the batches beside its points, or the clocks where there is one batch."""
    named = "batch" if len({one.batch for one in t.front}) > 1 else "clock_hz"

    def point(one: OperatingPoint) -> FrontPoint:
        told = _told(t, one)
        return FrontPoint(x=one.latency_s, y=one.energy_per_sample_j, label=told[named], tip="\n".join(told.values()))

    across, up = Axis(title="latency of a batch", unit="s"), Axis(title="energy per sample", unit="J")
    marked = {"default": point(t.default), "best": point(best)}
    return front_chart("Pareto front of latency and energy", across, up, list(map(point, t.front)), [], marked)


record = tagged(SCHEMA)


def csv(t: Tuning) -> str:
    """One row for the default, the best, or the nearest, and each setting of the front."""
    rows = [*_marked(t), *(("front", one) for one in t.front)]
    return csv_lines([("which", "network", "hardware_name", *_names()),
                      *((which, t.network, t.hardware_name, *asdict(one).values()) for which, one in rows)])  # fmt: skip
