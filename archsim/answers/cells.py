"""Every measured value beside its prediction and interval, one line each, with the reason where it is far off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import ascii_lowercase

from archsim.base.units import show
from archsim.evidence.case import Case
from archsim.evidence.columns import error_of, quantity
from archsim.evidence.misses import FAR, published_stack
from archsim.render.blocks import Block, Cell, Column, Note, Piece, Table, number, percent, words
from archsim.validation.baseline import PLAIN
from archsim.validation.evaluation import Validation
from archsim.validation.selection import USUAL
from archsim.validation.verdict import inside, off_words, unit_of

METRICS = {"latency_s": "latency", "throughput_per_s": "throughput", "system_power_w": "power at the wall",
           "system_energy_j": "energy at the wall"}  # fmt: skip
BARS = ("Bars: the interval, with a mark (|) at the prediction and a ring (o) at the measurement, on one logarithmic scale for "
        "each table.")  # fmt: skip
FEW = 30  # rows up to which each is a line of its own
FURTHEST = 8.0  # ratio at which the scale of ratios ends
ROOM = 1.05  # of a scale beyond its values

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


def is_listed(v: Validation) -> bool:
    """Whether each row is a line: where that is asked for, and of few rows that nobody grouped otherwise."""
    return v.settings.cells or (len(v.cases) <= FEW and tuple(v.settings.by) == USUAL)


def common_words(v: Validation) -> dict[str, str]:
    """What all rows have in common, by head."""
    said = {head: {word(case) for case in v.cases} for head, word in WORDS.items()}
    return {head: min(values) for head, values in said.items() if len(values) == 1}


def asked_words(v: Validation) -> list[str]:
    """What all rows have in common, as far as it is worth a word."""
    return [_said(head, value) for head, value in common_words(v).items() if UNSAID.get(head) != value]


def _said(head: str, value: str) -> str:
    return f"{BARE.get(head, '')}{value.replace('_', ' ') if head == 'task' else value}"


def cell_tables(v: Validation) -> list[Block]:
    """A table for each metric, that with most rows first, and what the marks in it mean."""
    common = common_words(v)
    heads = [head for head in WORDS if head not in common] or ["network"]
    reasons, lacking = numbered(v.reasons, str), numbered(["; ".join(own) for own in v.conditions], _letters)
    marks = [" ".join(filter(None, (reasons.get(reason, ""), lacking.get("; ".join(own), ""))))
             for reason, own in zip(v.reasons, v.conditions or [()] * len(v.cases), strict=True)]  # fmt: skip
    by_metric: dict[str, list[int]] = {}
    for i, case in enumerate(v.cases):
        by_metric.setdefault(case.metric, []).append(i)
    ranked = sorted(by_metric.items(), key=lambda item: -len(item[1]))
    found: list[Block] = [_table(v, metric, rows, heads, marks, len(rows) > FEW) for metric, rows in ranked]
    found.append(Note(text=BARS, tone="quiet"))
    if reasons:
        found.append(reasons_table(v, reasons))
    if lacking:
        rows = [[words(mark), words(text)] for text, mark in lacking.items()]
        found.append(Table(title="Left out by the words of a row (plain: the error without it)",
                           columns=[Column(head="note"), Column(head="conditions")], rows=rows))  # fmt: skip
    return found


def _table(v: Validation, metric: str, own: Sequence[int], heads: Sequence[str], marks: Sequence[str], long: bool) -> Table:
    name, plain = METRICS.get(metric, quantity(v.cases[own[0]])), plain_errors(v)
    place = scale([value for i in own for value in (v.cases[i].measured, v.predicted[i], v.low[i], v.high[i])])
    noted, level = any(marks[i] for i in own), f"{100 * v.settings.calibration.level:.0f} %"
    rows = []
    for i in own:
        case, of = v.cases[i], quantity(v.cases[i])
        unit, holds = unit_of(case), inside(v, i)
        what = ", ".join(_said(head, WORDS[head](case)) for head in heads if UNSAID.get(head) != WORDS[head](case))
        row = [words(what, tip=case.fields.get("source_ref", "")), number(case.measured, unit, 4),
               number(float(v.predicted[i]), unit, 4), _dumbbell(v, i, place, unit),
               Cell(text=off_words(v.error[i], of), value=float(v.error[i])),
               words("-" if holds is None else "yes" if holds else "no", tone="bad" if holds is False else "")]  # fmt: skip
        if plain:
            row.append(percent(plain[i], "+.1f") if math.isfinite(plain[i]) else words("-"))
        rows.append([*row, *([words(marks[i], tip=v.reasons[i])] if noted else [])])
    columns = [Column(head=""), Column(head="measured", kind="number"), Column(head="predicted", kind="number"),
               Column(head="", kind="bar"), Column(head="error", kind="number", needed=False),
               Column(head=f"inside {level}", needed=False)]  # fmt: skip
    columns += [Column(head="plain", kind="number", needed=False)] if plain else []
    columns += [Column(head="note")] if noted else []
    return Table(title=name.capitalize(), columns=columns, rows=rows, long=long)


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


def reasons_table(v: Validation, marks: Mapping[str, str], level: int = 0) -> Table:
    """The rows that are far off by their reason: how many, from which error to which, why."""
    far = [i for i in range(len(v.cases)) if abs(v.error[i]) > FAR]
    rows = []
    for reason in [*marks, ""]:
        own = [100 * v.error[i] for i in far if v.reasons[i] == reason]
        if own:
            span = f"{min(own):+.0f} to {max(own):+.0f} %" if len(own) > 1 else f"{own[0]:+.0f} %"
            rows.append([words(marks.get(reason, "")), Cell(text=f"{len(own):,}", value=len(own)), words(span),
                         words(reason or "no reason is known")])  # fmt: skip
    columns = [Column(head="note"), Column(head="rows", kind="number"), Column(head="error", kind="number"), Column(head="why")]
    if not is_listed(v):  # no line refers to a mark
        columns, rows = columns[1:], [row[1:] for row in rows]
    return Table(title=f"{len(far):,} of {len(v.cases):,} are more than {100 * FAR:.0f} % off", columns=columns, rows=rows,
                 level=level)  # fmt: skip


def plain_errors(v: Validation) -> Sequence[float]:
    """The error of each row's plain prediction, NaN where there is none; nothing unless they were asked for."""
    if PLAIN not in v.baselines:
        return ()
    return [error_of(case.metric, case.measured, float(plain)) for case, plain in zip(v.cases, v.baselines[PLAIN], strict=True)]


def numbered(texts: Sequence[str], mark: Callable[[int], str]) -> dict[str, str]:
    """A mark for each text that is not empty, in order."""
    return {text: mark(i) for i, text in enumerate((text for text in dict.fromkeys(texts) if text), 1)}


def _letters(place: int) -> str:
    """a to z, then a1, b1, ...

    >>> _letters(1), _letters(27)
    ('a', 'a1')
    """
    turn, letter = divmod(place - 1, len(ascii_lowercase))
    return ascii_lowercase[letter] + (str(turn) if turn else "")
