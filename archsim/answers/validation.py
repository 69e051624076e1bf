"""What a validation says: how far predictions are from measured values, by row or by group, and which rows were left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from archsim.base.record import by_key
from archsim.base.units import show
from archsim.base.version import __version__
from archsim.evidence.case import Case, LoopPattern, Skip, error_of
from archsim.evidence.columns import OWN, quantity
from archsim.evidence.sources import FAR, published_stack
from archsim.render.blocks import (
    Axis,
    Block,
    Cell,
    Chart,
    Facts,
    Note,
    Piece,
    Series,
    Table,
    Verdict,
    columns,
    count,
    number,
    percent,
    words,
)
from archsim.render.text import csv_lines
from archsim.validation.baseline import PLAIN
from archsim.validation.crossvalidate import Removal
from archsim.validation.evaluation import USUAL, GroupScore, Validation, ValidationSettings
from archsim.validation.score import Score
from archsim.validation.verdict import case_words, furthest, inside, off_words, quantiles, sentences, unit_of

SCHEMA = "archsim-validation/1"
FEW = 30  # rows up to which each is a line of its own
FIRST, WORST = 10, 8  # groups on the first screen; rows that are named of those furthest off
MOST_REASONS, MOST_LINES = 3, 8  # of skipped rows on the first screen; that are named for a reason
DRAWN = 200  # points of a source in a chart, at most
ZOOMED = 300  # rows from which on a reader may enlarge a part
NAMED = 7  # sources with a colour of their own
BAND = 0.25  # relative distance of the dashed lines from the diagonal
FURTHEST = 8.0  # ratio at which the scale of ratios ends
ROOM = 1.05  # of a scale beyond its values
QUANTITIES = {"time": "s", "power": "W", "energy": "J"}  # that are drawn -> unit
METRICS = {"latency_s": "latency", "throughput_per_s": "throughput", "system_power_w": "power at the wall",
           "system_energy_j": "energy at the wall"}  # fmt: skip
BARS = ("Bars: the interval, with a mark (|) at the prediction and a ring (o) at the measurement, on one logarithmic scale for "
        "each table.")  # fmt: skip
_RESULTS = ("measured", "predicted", "error", "lo", "hi")

# head -> value: what a row is, as the source writes it
WORDS: dict[str, Callable[[Case], str]] = {
    "source": lambda case: case.source,
    "network": lambda case: case.label,
    "hardware": lambda case: case.hardware,
    "stack": published_stack,
    "task": lambda case: case.fields.get("task", case.task),
    "batch": lambda case: str(case.batch),
    "threads": lambda case: case.fields.get("threads", ""),
    "devices": lambda case: case.fields.get("devices", "") or "1",
    "precision": lambda case: case.precision,
}
UNSAID = {"threads": "", "devices": "1"}  # what all rows have is not worth a word if it is this
BARE = {"batch": "batch ", "threads": "threads ", "devices": "devices "}  # before numbers


def record(v: Validation) -> dict[str, Any]:
    """The validation as plain values, keys in the documented order."""
    r = v.settings
    return {
        "schema": SCHEMA, "fidelity": r.fidelity, "without": sorted(r.without),
        "provenance": provenance(r, v.data), "groups": [group_record(group) for group in v.groups],
        "overall": [group_record(group) for group in v.overall], "rows": [*row_records(v)],
        "skipped": [{"file": skip.file, "row": skip.line, "reason": skip.reason,
                     "source": skip.fields.get("source") or skip.fields.get("source_id", ""),
                     "hardware": skip.fields.get("hardware", "")} for skip in v.skips],
        "skipped_by_reason": dict(Counter(skip.reason for skip in v.skips).most_common()),
    }  # fmt: skip


def provenance(settings: ValidationSettings, data: str) -> dict[str, str]:
    """The versions and hashes of whatever is compared by these settings; `data` is that of the measurement files."""
    c = settings.calibration
    return {"version": __version__, "calibration": f"{c.version}+{c.digest}", "data": data}


def group_record(group: GroupScore) -> dict[str, Any]:
    """The score of a group as plain values."""
    order = group.order
    return {
        "by": dict(group.by), **_figures(group.score), "coverage": group.score.coverage,
        "kendall_tau": None if order is None else order.mean, "kendall_tau_least": None if order is None else order.least,
        "kendall_tau_groups": 0 if order is None else order.groups,
        "baselines": {name: _figures(score) for name, score in group.baselines.items()},
    }  # fmt: skip


def _figures(s: Score) -> dict[str, Any]:
    return {"n": s.n, "mape": s.mape, "median_ape": s.median_ape, "p90_ape": s.p90_ape,
            "bias": s.bias}  # fmt: skip


def row_records(v: Validation) -> list[dict[str, Any]]:
    """One object for each row: the columns of its file, what they were read as, and the results."""
    found, plain = [], plain_errors(v)
    for i, case in enumerate(v.cases):
        numbers = (case.measured, v.predicted[i], v.error[i], v.low[i], v.high[i])
        found.append({
            **case.fields, **{name: value(case) for name, value in OWN.items()},
            **{name: finite(value) for name, value in zip(_RESULTS, numbers, strict=True)},
            "inside": inside(v, i), "reason": v.reasons[i],
            **{name: finite(values[i]) for name, values in v.baselines.items()},
            **({"plain_error": finite(plain[i]), "conditions": "; ".join(v.conditions[i])} if plain else {}),
        })  # fmt: skip
    return found


def finite(value: Any) -> float | None:
    """A number for JSON, which knows no infinity."""
    return float(value) if math.isfinite(value) else None


def csv(v: Validation) -> str:
    """One line per row: what it is, the results, then the other columns of its file."""
    listed = row_records(v)
    head = list(dict.fromkeys([*OWN, *_RESULTS, "inside", "reason", *v.baselines, *(name for row in listed for name in row)]))
    return csv_lines([head, *([row.get(name, "") for name in head] for row in listed)])


def sections(v: Validation) -> list[Block]:
    """The blocks of a validation: each row where there are few of them or `cells` are asked for, else each group."""
    found: list[Block] = [verdict(v)]
    listed = v.settings.cells or (len(v.cases) <= FEW and tuple(v.settings.by) == USUAL)
    if v.cases:
        kinds = {quantity(case) for case in v.cases}
        loops = all(isinstance(case.pattern, LoopPattern) for case in v.cases)
        found += value_tables(v) if listed else [groups_table(v), *(scatter(v, kind) for kind in QUANTITIES if kind in kinds)]
        found += [furthest_table(v, 0 if listed or loops else 2)] if (abs(v.error) > FAR).any() else []
    if v.skips:
        found.append(skips_table(v.skips))
    return [*found, statistics(v), origin(provenance(v.settings, v.data))]


def verdict(v: Validation) -> Verdict:
    """How many values, of what, and how far off."""
    r, n = v.settings, len(v.cases)
    odd = ([f"{r.fidelity} model"] if r.fidelity != "analytical" else []) + [f"without {part}" for part in sorted(r.without)]
    title = "1 measured value beside its prediction" if n == 1 else f"{n:,} measured values beside their predictions"
    common = [_said(head, value) for head, value in common_words(v).items() if UNSAID.get(head) != value]
    return Verdict(title=title, asked=[*common, *odd], sentences=sentences(v))


def common_words(v: Validation) -> dict[str, str]:
    """What all rows have in common, by head."""
    said = {head: {word(case) for case in v.cases} for head, word in WORDS.items()}
    return {head: min(values) for head, values in said.items() if len(values) == 1}


def _said(head: str, value: str) -> str:
    return f"{BARE.get(head, '')}{value.replace('_', ' ') if head == 'task' else value}"


# ------------------------------------------------------------------------------------------------------------- by group


def score_heads(level: float) -> tuple[str, ...]:
    """The heads of `scores`; `level`: the share of values that intervals are meant to hold."""
    return ("rows", "half within", "9 in 10 within", "in the median", f"inside {100 * level:.0f} %")


def scores(group: GroupScore, of: str = "") -> list[Cell]:
    """The score of a group, of a quantity if it is of one."""
    s = group.score
    return [count(s.n, 9), percent(s.median_ape), percent(s.p90_ape),
            Cell(text=off_words(s.bias, group.by.get("quantity", of)), value=s.bias), percent(s.coverage, ".0f")]  # fmt: skip


def baseline_cells(group: GroupScore, names: Iterable[str]) -> list[Cell]:
    """The median error of each baseline of a group."""
    return [percent(group.baselines[name].median_ape if name in group.baselines else None) for name in names]


def groups_table(v: Validation) -> Table:
    """A line for each group: of many the largest on the first screen."""
    by, spreads = v.settings.by, [quantiles(1.0 + v.error[list(group.rows)]) for group in v.groups]
    place = ratio_scale(spreads)
    rows = [[*map(words, group.by.values()), *scores(group, quantity(v.cases[group.rows[0]])), spread(ratios, place)]
            for group, ratios in zip(v.groups, spreads, strict=True)]  # fmt: skip
    heads, n = (*by, *score_heads(v.settings.calibration.level), ""), len(by)
    note = ("Bars: predicted / measured, from the 10th to the 90th percentile of the rows, the middle half darker, the mark at "
            "the median, the ring where predicted is as measured; a rate counts as its time.")  # fmt: skip
    return Table(title=f"By {by[0]}", rows=rows, notes=[note], first=range(min(len(rows), FIRST)), long=len(rows) > FEW,
                 columns=columns(*heads, numbers=range(n, n + 5), bars=(n + 5,), spare=(*range(1, n), n + 2, n + 4)))  # fmt: skip


def statistics(v: Validation) -> Table:
    """What the first screen leaves out of the scores of every group, and of all rows."""
    by, rows = v.settings.by, []
    wholes = [((f"all {group.by['quantity']}", *[""] * (len(by) - 1)), group) for group in v.overall]
    for names, group in [*((tuple(group.by.values()), group) for group in v.groups), *wholes]:
        s, order = group.score, group.order
        rows.append([
            *map(words, names), percent(s.mape),
            words("-" if order is None else f"{order.mean:.2f} ({order.least:.2f})"),
            *baseline_cells(group, v.baselines),
        ])  # fmt: skip
    heads = (*by, "MAPE", "order", *v.baselines)
    note = ("MAPE: mean of |predicted / measured - 1|; a rate counts as the time that it stands for. order: Kendall's tau of the "
            "devices inside each network, mean (least); baselines: their median errors.")  # fmt: skip
    return Table(title="Statistics", columns=columns(*heads, numbers=range(len(by), len(heads))), rows=rows, notes=[note],
                 long=len(rows) > FEW, level=2)  # fmt: skip


def furthest_table(v: Validation, level: int) -> Table:
    """The predictions that are furthest off, and why, where that is known."""
    rows = [[words(case_words(v.cases[i])), number(v.cases[i].measured, unit_of(v.cases[i])),
             number(float(v.predicted[i]), unit_of(v.cases[i])), _off(v, i), words(v.reasons[i])]
            for i in furthest(v, WORST)]  # fmt: skip
    return Table(title=f"Furthest of {(abs(v.error) > FAR).sum():,} that are more than {100 * FAR:.0f} % off", rows=rows,
                 level=level, columns=columns("", "measured", "predicted", "error", "why", numbers=(1, 2, 3)))  # fmt: skip


def _off(v: Validation, i: int) -> Cell:
    return Cell(text=off_words(v.error[i], quantity(v.cases[i])), value=float(v.error[i]), tip=v.reasons[i])


def skips_table(skips: Sequence[Skip]) -> Table:
    """For which reasons rows were skipped, and where those stand, if they are few."""
    several, rows = len({skip.file for skip in skips}) > 1, []
    for reason, times in Counter(skip.reason for skip in skips).most_common():
        places = [f"{skip.file}:{skip.line}" if several else str(skip.line) for skip in skips if skip.reason == reason]
        rows.append([count(times, 9), words(reason + (f" (line {', '.join(places)})" if times <= MOST_LINES else ""))])
    return Table(title=f"Skipped: {len(skips):,} {'row' if len(skips) == 1 else 'rows'}", rows=rows, long=len(rows) > FEW,
                 columns=columns("rows", "reason", numbers=(0,)), first=range(min(len(rows), MOST_REASONS)))  # fmt: skip


def origin(values: Mapping[str, str]) -> Facts:
    """Versions and hashes with what they are of."""
    return Facts(title="Provenance", rows=list(values.items()), level=2)


# --------------------------------------------------------------------------------------------------------------- by row


def value_tables(v: Validation) -> list[Block]:
    """A table for each metric, that with most rows first."""
    ranked = sorted(by_key((case.metric, i) for i, case in enumerate(v.cases)).items(), key=lambda item: -len(item[1]))
    return [*(_values(v, metric, rows) for metric, rows in ranked), Note(text=BARS, tone="quiet")]


def _values(v: Validation, metric: str, own: Sequence[int]) -> Table:
    common, plain, rows = common_words(v), plain_errors(v), []
    heads = [head for head in WORDS if head not in common] or ["network"]
    place = scale([value for i in own for value in (v.cases[i].measured, v.predicted[i], v.low[i], v.high[i])])
    for i in own:
        case, unit, holds = v.cases[i], unit_of(v.cases[i]), inside(v, i)
        what = ", ".join(_said(head, WORDS[head](case)) for head in heads if UNSAID.get(head) != WORDS[head](case))
        row = [words(what, tip=case.fields.get("source_ref", "")), number(case.measured, unit, 4),
               number(float(v.predicted[i]), unit, 4), _dumbbell(v, i, place, unit), _off(v, i),
               words("-" if holds is None else "yes" if holds else "no", tone="bad" if holds is False else "")]  # fmt: skip
        rows.append([*row, *([percent(finite(plain[i]), "+.1f"), words("; ".join(v.conditions[i]))] if plain else [])])
    inside_ = f"inside {100 * v.settings.calibration.level:.0f} %"
    more = ("plain", "which leaves out") if plain else ()
    return Table(title=METRICS.get(metric, quantity(v.cases[own[0]])).capitalize(), rows=rows, long=len(rows) > FEW,
                 columns=columns("", "measured", "predicted", "", "error", inside_, *more, numbers=(1, 2, 4, 6), bars=(3,),
                                 spare=(4, 5, 6, 7)))  # fmt: skip


def scale(values: Sequence[float]) -> Callable[[float], float]:
    """From a value to its place on a common logarithmic scale [1]; what is not finite or positive has none.

    >>> place = scale([1.0, 100.0])
    >>> round(place(10.0), 3)
    0.5
    """
    known = [math.log(value) for value in values if math.isfinite(value) and value > 0] or [0.0]
    low, high = min(known) - math.log(ROOM), max(known) + math.log(ROOM)
    return lambda value: (math.log(value) - low) / (high - low)


def ratio_scale(spreads: Iterable[Sequence[float]]) -> Callable[[float], float]:
    """The scale of predicted over measured that holds these quantiles, as far as they are within a factor of `FURTHEST`."""
    ends = [float(end) for quantiles in spreads for end in (quantiles[0], quantiles[-1])]
    return scale([1.0, *(min(max(end, 1 / FURTHEST), FURTHEST) for end in ends)])


def spread(quantiles: Sequence[float], place: Callable[[float], float]) -> Cell:
    """The percentiles 10, 25, 50, 75 and 90 of a ratio as a bar, its middle half darker; a mark at the median, a ring at 1."""
    at = [min(max(place(max(float(q), 1e-9)), 0.0), 1.0) for q in quantiles]
    tip = f"{', '.join(f'{100 * (q - 1):+.0f} %' for q in quantiles)}: percentiles 10, 25, 50, 75, 90"
    one = place(1.0)
    return Cell(value=float(quantiles[2]), bar=[
        Piece(start=at[0], end=at[4], tip=tip), Piece(start=at[1], end=at[3], tone="0", tip=tip),
        Piece(start=at[2], end=at[2], sign="|", tip=tip), Piece(start=one, end=one, sign="o", tip="equal"),
    ])  # fmt: skip


def _dumbbell(v: Validation, i: int, place: Callable[[float], float], unit: str) -> Cell:
    """The interval as a bar, the prediction as a mark, the measurement as a ring."""
    measured, predicted = v.cases[i].measured, float(v.predicted[i])
    pieces = []
    if math.isfinite(v.low[i]) and v.low[i] > 0:
        ends = f"{show(float(v.low[i]), unit, 3)} to {show(float(v.high[i]), unit, 3)}"
        pieces.append(Piece(start=place(v.low[i]), end=place(v.high[i]), tip=f"interval {ends}"))
    for value, sign, what in ((predicted, "|", "predicted"), (measured, "o", "measured")):
        if value > 0:
            pieces.append(Piece(start=place(value), end=place(value), sign=sign,  # type: ignore[arg-type]
                                tip=f"{what} {show(value, unit)}"))  # fmt: skip
    return Cell(bar=pieces, value=predicted)


def plain_errors(v: Validation) -> Sequence[float]:
    """The error of each row's plain prediction, NaN where there is none; nothing unless they were asked for."""
    if PLAIN not in v.baselines:
        return ()
    return [error_of(case.metric, case.measured, float(plain)) for case, plain in zip(v.cases, v.baselines[PLAIN], strict=True)]


# ----------------------------------------------------------------------------------------------------------- the charts


def scatter(v: Validation, kind: str) -> Chart:
    """Predicted against measured, coloured by source; a rate is drawn as the time of one batch."""
    own = by_key((case.source, i) for i, case in enumerate(v.cases) if quantity(case) == kind)
    ordered = sorted(own.items(), key=lambda item: (-len(item[1]), item[0]))
    others = [i for _, rows in ordered[NAMED:] for i in rows]
    series = []
    for name, rows in [*ordered[:NAMED], *([("other sources", others)] if others else [])]:
        shown = rows[:: 1 + (len(rows) - 1) // DRAWN]
        points = [_point(v, i) for i in shown]
        series.append(Series(
            name=f"{name} ({len(rows):,})", x=[x for x, _ in points], y=[y for _, y in points], joined=False,
            tone="quiet" if rows is others else "", tips=[f"{case_words(v.cases[i])}: {_off(v, i).text}" for i in shown],
        ))  # fmt: skip
    values = [value for one in series for value in (*one.x, *one.y)]
    span = 0.8 * min(values), 1.25 * max(values)
    lines = [Series(name="", x=span, y=(factor * span[0], factor * span[1]), tone="quiet", mark="", dashed=factor != 1,
                    labels=("", "as measured" if factor == 1 else ""))
             for factor in (1.0, 1 + BAND, 1 - BAND)]  # fmt: skip
    x, y = (Axis(title=f"{of} {kind}", unit=QUANTITIES[kind], log=True, ends=span) for of in ("measured", "predicted"))
    note = (f"Dashed: {100 * BAND:.0f} % more and less. A rate is drawn as the time of one batch, a source of more than {DRAWN} "
            "rows by every second, third, ... of them.")  # fmt: skip
    return Chart(title=f"Predicted against measured {kind}", series=[*lines, *series], height=520, notes=[note], x=x, y=y,
                 zooms=len(v.cases) > ZOOMED)  # fmt: skip


def _point(v: Validation, i: int) -> tuple[float, float]:
    """Measured and predicted value with four digits, as much as a chart shows; a rate as the time of one batch."""
    case = v.cases[i]
    rate = case.metric == "throughput_per_s"
    measured, predicted = (case.batch / value if rate else value for value in (case.measured, float(v.predicted[i])))
    return float(f"{measured:.4g}"), float(f"{predicted:.4g}")


def selected(path: Sequence[Removal]) -> Table:
    """The constants of a fit in the order in which they can be left out, and the errors that remain."""
    rows = [[words(one.name or "none"), *map(percent, (one.seen, one.source, one.architecture, one.unfitted, one.unseen))]
            for one in path]  # fmt: skip
    heads = ("left out, after those above", "seen", "source held out", "architecture held out", "not fitted", "unseen")
    return Table(columns=columns(*heads, numbers=range(1, 6)), rows=rows)
