"""What a validation says: how far predictions are from measured values, by row or by group, and which rows were left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from archsim.answers.cells import (
    FEW,
    asked_words,
    cell_tables,
    is_listed,
    numbered,
    plain_errors,
    ratio_scale,
    reasons_table,
    spread,
)
from archsim.base.version import __version__
from archsim.evidence.case import Skip
from archsim.evidence.columns import OWN, quantity
from archsim.evidence.misses import FAR
from archsim.evidence.pattern import LoopPattern
from archsim.render.blocks import (
    Axis,
    Block,
    Cell,
    Chart,
    Column,
    Facts,
    Note,
    Series,
    Table,
    Verdict,
    columns,
    count,
    number,
    percent,
    words,
)
from archsim.render.csv import csv_lines
from archsim.validation.evaluation import GroupScore, Validation, ValidationSettings
from archsim.validation.score import LEVEL, Score
from archsim.validation.verdict import (
    case_words,
    furthest,
    held,
    inside,
    off_words,
    quantiles,
    rows_by,
    sentences,
    unit_of,
)

SCHEMA = "archsim-validation/1"
FIRST, WORST = 15, 8  # groups on the first screen; rows that are named of those furthest off
MOST_REASONS, MOST_LINES = 3, 3  # of skipped rows on the first screen
DRAWN, NAMED = 2000, 7  # points of a chart; sources with a colour of their own
ZOOMED = 300  # points from which on a reader may enlarge a part
BAND = 0.25  # relative distance of the dashed lines from the diagonal
QUANTITIES = {"time": "s", "power": "W", "energy": "J"}  # that are drawn -> unit
_RESULTS = ("measured", "predicted", "error", "lo", "hi")


def record(v: Validation) -> dict[str, Any]:
    """The validation as plain values, keys in the documented order."""
    r = v.settings
    return {
        "schema": SCHEMA, "fidelity": r.fidelity, "without": sorted(r.without), "cross_validated": r.fold,
        "provenance": provenance(r, v.data), "groups": [group_record(group) for group in v.groups],
        "overall": [group_record(group) for group in v.overall], "rows": [*row_records(v)],
        "skipped": [{"file": skip.file, "row": skip.line, "reason": skip.reason, "source": skipped_source(skip),
                     "hardware": skip.fields.get("hardware", "")} for skip in v.skips],
        "skipped_by_reason": dict(Counter(skip.reason for skip in v.skips).most_common()),
    }  # fmt: skip


def provenance(settings: ValidationSettings, data: str) -> dict[str, str]:
    """The versions and hashes of whatever is compared by these settings; `data` is that of the measurement files."""
    c = settings.calibration
    return {"version": __version__, "calibration": f"{c.version}+{c.digest}", "data": data}


def skipped_source(skip: Skip) -> str:
    """The source of a row that was skipped."""
    return skip.fields.get("source") or skip.fields.get("source_id", "")


def group_record(group: GroupScore) -> dict[str, Any]:
    """The score of a group as plain values."""
    order = group.order
    return {
        "by": dict(group.by), **_figures(group.score), "coverage": group.score.coverage,
        "kendall_tau": None if order is None else order.mean, "kendall_tau_least": None if order is None else order.least,
        "kendall_tau_groups": 0 if order is None else order.groups,
        "stack_pairs": 0 if group.stacks is None else group.stacks.all,
        "stack_pairs_in_order": 0 if group.stacks is None else group.stacks.right,
        "baselines": {name: _figures(score) for name, score in group.baselines.items()},
    }  # fmt: skip


def _figures(s: Score) -> dict[str, Any]:
    return {"n": s.n, "mape": s.mape, "mape_interval": list(s.mape_interval), "median_ape": s.median_ape, "p90_ape": s.p90_ape,
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
    kinds = {quantity(case) for case in v.cases}
    if v.cases and is_listed(v):
        found += cell_tables(v)
    elif v.cases:
        found += [*group_tables(v), *_reasons(v), *(scatter(v, kind) for kind in QUANTITIES if kind in kinds)]
    if v.cases and not is_listed(v):
        loops = all(isinstance(case.pattern, LoopPattern) for case in v.cases)
        found.append(furthest_table(v, 0 if loops else 2))
    found += skipped(v)
    if v.cases:
        found.append(statistics(v.groups, v.overall, v.settings.by, list(v.baselines)))
    return [*found, origin({**provenance(v.settings, v.data), **_constants(v)})]


def verdict(v: Validation) -> Verdict:
    """How many values, of what, and how far off."""
    r, count = v.settings, len(v.cases)
    odd = ([f"{r.fidelity} model"] if r.fidelity != "analytical" else []) + [f"without {part}" for part in sorted(r.without)]
    odd += [f"each predicted without its {r.fold}"] if r.fold else []
    title = f"{count:,} measured {'value' if count == 1 else 'values'} beside {'its' if count == 1 else 'their'} predictions"
    return Verdict(title=title.replace("its predictions", "its prediction"), asked=[*(asked_words(v) if count else []), *odd],
                   sentences=sentences(v))  # fmt: skip


def group_tables(v: Validation) -> list[Block]:
    """A line for each group: of many the largest on the first screen."""
    rows = _group_rows(v)
    level = f"inside {100 * v.settings.calibration.level:.0f} %"
    heads = [Column(head=name, needed=not i) for i, name in enumerate(v.settings.by)]
    heads += [Column(head="rows", kind="number"), Column(head="half within", kind="number"),
              Column(head="9 in 10 within", kind="number", needed=False), Column(head="", kind="bar"),
              Column(head="in the median", kind="number"), Column(head=level, kind="number", needed=False)]  # fmt: skip
    note = ("Bars: predicted / measured, from the 10th to the 90th percentile of the rows, the middle half darker, the mark at "
            "the median, the ring where predicted is as measured; a rate counts as its time.")  # fmt: skip
    if len(rows) <= FIRST + 2:
        return [Table(title=f"By {v.settings.by[0]}", columns=heads, rows=rows), Note(text=note, tone="quiet", only="page")]
    more = f"{len(rows) - FIRST} more groups: --all"
    return [Table(title=f"By {v.settings.by[0]}", columns=heads, rows=rows[:FIRST], notes=[more], only="text"),
            Table(title=f"By {v.settings.by[0]}", columns=heads, rows=rows, notes=[note], long=True, only="page")]


def _group_rows(v: Validation) -> list[list[Cell]]:
    own = rows_by(v, v.settings.by)
    spreads = {names: quantiles(1.0 + v.error[rows]) for names, rows in own.items()}
    place = ratio_scale(spreads.values())
    found = []
    for group in v.groups:
        names, s = tuple(group.by.values()), group.score
        holds, known = held(v, own[names])
        of = quantity(v.cases[own[names][0]])
        found.append([
            *map(words, names), count(s.n, 9), percent(s.median_ape), percent(s.p90_ape), spread(spreads[names], place),
            Cell(text=off_words(s.bias, of), value=s.bias), percent(holds / known, ".0f") if known else words("-"),
        ])  # fmt: skip
    return found


def statistics(
    groups: Iterable[GroupScore], overall: Iterable[GroupScore], by: Sequence[str], baselines: Sequence[str], level: int = 2
) -> Table:
    """Every score of every group, and of all rows."""
    heads = (*by, *SCORES, *(f"{name}, median" for name in baselines))
    rows = [[*map(words, group.by.values()), *scores(group), *baseline_cells(group, baselines)] for group in groups]
    rows += [[words(f"all {group.by['quantity']}"), *[words("")] * (len(by) - 1), *scores(group),
              *baseline_cells(group, baselines)] for group in overall]  # fmt: skip
    return Table(title="Statistics", columns=columns(*heads, numbers=range(len(by), len(heads))), rows=rows, notes=TERMS,
                 long=len(rows) > FEW, level=level)  # fmt: skip


SCORES = ("rows", "MAPE", f"{100 * LEVEL:.0f} % interval", "median", "p90", "bias", "order", "stacks", "covered")
TERMS = (
    "An error is predicted / measured - 1 of a time, power or energy; a rate counts as the time that it stands for. MAPE, "
    "median and p90 are of its absolute value, the bias is its signed median.",
    "order: Kendall's tau of the devices inside each network, mean (least); stacks: pairs of stacks with which a source ran the "
    "same network on the same device, in the measured order (of all); covered: share of measured values inside the interval.",
)


def scores(group: GroupScore) -> list[Cell]:
    """The score of a group, a cell for each of `SCORES`."""
    s, order, pairs = group.score, group.order, group.stacks
    return [
        *figures(s.n, s.mape, s.mape_interval, s.median_ape, s.p90_ape, s.bias),
        words("-") if order is None else Cell(text=f"{order.mean:.2f} ({order.least:.2f})", value=order.mean),
        words("-") if pairs is None else Cell(text=f"{pairs.right} ({pairs.all})", value=pairs.right / pairs.all),
        share(s.coverage, ".0f"),
    ]  # fmt: skip


def figures(n: int, mape: float, ci: Sequence[float], median: float, p90: float, bias: float) -> list[Cell]:
    """Rows, MAPE with its interval, median, 90th percentile and bias."""
    interval = Cell(text=f"{100 * ci[0]:.1f} to {100 * ci[1]:.1f} %", value=ci[1] - ci[0])
    return [Cell(text=f"{n:,}", value=n), percent(mape), interval, percent(median), percent(p90), percent(bias, "+.1f")]


def share(value: float | None, form: str = ".1f") -> Cell:
    """A share, or a dash where there is none."""
    return words("-") if value is None else percent(value, form)


def baseline_cells(group: GroupScore, names: Iterable[str]) -> list[Cell]:
    """The median error of each baseline of a group."""
    return [share(group.baselines[name].median_ape if name in group.baselines else None) for name in names]


def _reasons(v: Validation) -> list[Block]:
    """Why rows are far off, where most of them have a reason; of most rows of a corpus nobody knows."""
    known = sum(map(bool, v.reasons))
    level = 0 if 2 * known > sum(abs(v.error) > FAR) else 2
    return [reasons_table(v, numbered(v.reasons, str), level)] if known else []


def furthest_table(v: Validation, level: int) -> Table:
    """The predictions that are furthest off."""
    rows = [[words(case_words(v.cases[i])), number(v.cases[i].measured, unit_of(v.cases[i])),
             number(float(v.predicted[i]), unit_of(v.cases[i])),
             Cell(text=off_words(v.error[i], quantity(v.cases[i])), value=float(v.error[i])), words(v.reasons[i])]
            for i in furthest(v, WORST)]  # fmt: skip
    return Table(title="Furthest off", columns=columns("", "measured", "predicted", "error", "why", numbers=(1, 2, 3)), rows=rows,
                 level=level)  # fmt: skip


def skipped(v: Validation) -> list[Block]:
    """How many rows were skipped, and why; with their lines where they are few, and all of them deeper."""
    if not v.skips:
        return []
    counted = Counter(skip.reason for skip in v.skips).most_common()
    told = [f"{'' if len(counted) == 1 else f'{times:,} '}{reason}{_places(v.skips, reason, MOST_LINES)}"
            for reason, times in counted[:MOST_REASONS]]  # fmt: skip
    others, whole = sum(times for _, times in counted[MOST_REASONS:]), len(v.skips)
    rest = f"; {others:,} for other reasons: --all" if others else ""
    head = f"{whole:,} {'row was' if whole == 1 else 'rows were'} skipped"
    return [Note(text=f"{head}: {'; '.join(told)}{rest}", only="text"), skips_table(dict(counted), v.skips)]


def skips_table(counted: Mapping[str, int], skips: Sequence[Skip] = ()) -> Table:
    """Every reason for which rows were skipped, and where those stand, if they are few."""
    rows = [[Cell(text=f"{times:,}", value=times), words(reason + _places(skips, reason, 8))]
            for reason, times in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]  # fmt: skip
    whole = sum(counted.values())
    return Table(title=f"Skipped: {whole:,} {'row' if whole == 1 else 'rows'}", columns=columns("rows", "reason", numbers=(0,)),
                 rows=rows, long=len(rows) > FEW, level=2)  # fmt: skip


def _places(skips: Sequence[Skip], reason: str, most: int) -> str:
    several = len({skip.file for skip in skips}) > 1
    places = [f"{skip.file}:{skip.line}" if several else str(skip.line) for skip in skips if skip.reason == reason]
    return f" (line {', '.join(places)})" if 0 < len(places) <= most else ""


def _constants(v: Validation) -> dict[str, str]:
    c = v.constants
    return {} if c is None else {
        "baseline constants": f"the roofline at {100 * c.compute:.1f} % of the peak and {100 * c.bandwidth:.1f} % of the "
                              f"bandwidth, and {1e6 * c.per_op_s:.1f} us for each op, fitted to {c.rows:,} rows",
    }  # fmt: skip


def origin(values: Mapping[str, str]) -> Facts:
    """Versions and hashes with what they are of."""
    return Facts(title="Provenance", rows=list(values.items()), level=2)


# ---------------------------------------------------------------------------------------------------------- the charts


def scatter(v: Validation, kind: str) -> Chart:
    """Predicted against measured, coloured by source; a rate is drawn as the time of one batch."""
    own: dict[str, list[int]] = {}
    for i, case in enumerate(v.cases):
        if quantity(case) == kind:
            own.setdefault(case.source, []).append(i)
    ordered = sorted(own.items(), key=lambda item: (-len(item[1]), item[0]))
    named = ordered if len(ordered) <= NAMED + 1 else ordered[:NAMED]
    rest = [i for _, rows in ordered[len(named):] for i in rows]
    groups = [*([(f"{len(ordered) - NAMED} other sources", rest)] if rest else []), *named]
    whole = sum(len(rows) for _, rows in groups)
    quota = fair_share([len(rows) for _, rows in groups], DRAWN)
    series, ends = list[Series](), [math.inf, 0.0]
    for name, rows in groups:
        shown = thin(rows, quota)
        points = [_point(v, i) for i in shown]
        ends = [pick(ends[j], *(value for point in points for value in point)) for j, pick in enumerate((min, max))]
        series.append(Series(name=f"{name} ({len(rows):,})", x=[x for x, _ in points], y=[y for _, y in points], joined=False,
                             tone="quiet" if rows is rest else "", tips=[_tip(v, i) for i in shown]))  # fmt: skip
    span = 0.8 * ends[0], 1.25 * ends[1]
    lines = [Series(name="" if factor != 1 else "as measured", x=span, y=(factor * span[0], factor * span[1]), tone="quiet",
                    mark="", dashed=factor != 1, labels=("", said))
             for factor, said in ((1.0, "as measured"), (1 + BAND, ""), (1 - BAND, ""))]  # fmt: skip
    note = f"Dashed: {100 * BAND:.0f} % more and less." + (" A rate is drawn as the time of one batch." if kind == "time" else "")
    thinned = f" At most {DRAWN:,} of {whole:,} rows are drawn: the largest sources are thinned evenly." if whole > DRAWN else ""
    return Chart(title=f"Predicted against measured {kind}", series=[*lines, *series], zooms=whole > ZOOMED,
                 height=520, notes=[note + thinned],
                 x=Axis(title=f"measured {kind}", unit=QUANTITIES[kind], log=True, ends=span),
                 y=Axis(title=f"predicted {kind}", unit=QUANTITIES[kind], log=True, ends=span))  # fmt: skip


def _point(v: Validation, i: int) -> tuple[float, float]:
    """Measured and predicted value, a rate as the time of one batch."""
    case, predicted = v.cases[i], float(v.predicted[i])
    rate = case.metric == "throughput_per_s"
    return _short(case.batch / case.measured if rate else case.measured), _short(case.batch / predicted if rate else predicted)


def _short(value: float) -> float:
    """A value with four digits, which is as much as a chart shows."""
    return float(f"{value:.4g}")


def _tip(v: Validation, i: int) -> str:
    return f"{case_words(v.cases[i])}: {off_words(v.error[i], quantity(v.cases[i]))}"


def thin(rows: Sequence[int], most: int) -> list[int]:
    """At most so many of the rows, evenly picked.

    >>> thin(range(10), 4)
    [0, 3, 6, 9]
    """
    return list(rows) if len(rows) <= most else [rows[int(i)] for i in np.linspace(0, len(rows) - 1, most)]


def fair_share(sizes: Sequence[int], most: int) -> int:
    """The largest number of rows that every source may show so that all together show at most `most`.

    >>> fair_share([10, 50, 100], 70)
    30
    """
    return max(n for n in range(max([*sizes, 0]) + 1) if sum(min(size, n) for size in sizes) <= most)
