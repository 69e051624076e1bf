"""Every measured value beside its prediction, one line each, with the reason where it is far off."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill, shorten

from archsim.base.units import grouped, show
from archsim.evidence.case import Case
from archsim.evidence.columns import RATES, error_of
from archsim.evidence.misses import FAR, published_stack
from archsim.report.markup import TableCell, percent, valued, words
from archsim.report.markup import table as html_table
from archsim.report.text import clean, table
from archsim.validation.baseline import PLAIN
from archsim.validation.evaluation import Validation

UNITS = {  # how the name of a metric ends -> its unit
    "_per_s": "1/s", "_per_token": "J", "_s_per_token": "s", "_s": "s", "_w": "W", "_j": "J", "_hz": "Hz", "_bps": "B/s",
    "_v": "V", "_clk": "clk", "_load": "clk", "_iteration": "clk",
}  # fmt: skip
OF_RATES = "the error of a rate is that of the time that it stands for: + is predicted too slow"
LONGEST = 120  # characters of a line of reasons
WIDEST = 32  # characters of a place in a source, where it differs from row to row
LETTERS = "abcdefghijklmnopqrstuvwxyz"

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
    "where": lambda case: case.fields.get("source_ref", ""),
}
UNSAID = {"threads": "", "devices": "1", "where": ""}  # what all rows have is not worth a word if it is this


def cells_text(v: Validation) -> str:
    """One line for each measured value in the order of its file; what all have in common stands above, reasons below."""
    if not v.cases:
        return ""
    said = {head: [clean(word(case)) for case in v.cases] for head, word in WORDS.items()}
    common = {head: values[0] for head, values in said.items() if len({*values}) == 1 and len(v.cases) > 1}
    shown = [head for head in said if head not in common]
    said["where"] = [shorten(place, WIDEST, placeholder="…") for place in said["where"]]
    reasons, lacking = _numbered(v.reasons, str), _numbered(["; ".join(own) for own in v.conditions], _letters)
    plain = plain_errors(v)
    head = [*shown, "measured", "predicted", "error", "inside", *(["plain"] if PLAIN in v.baselines else [])]
    head += ["note"] if reasons or lacking else []
    rows = []
    for i, case in enumerate(v.cases):
        marks = [reasons.get(v.reasons[i], ""), lacking.get("; ".join(v.conditions[i]), "") if v.conditions else ""]
        rows.append([
            *(said[name][i] for name in shown), _value(case, case.measured), _value(case, v.predicted[i]), _signed(v.error[i]),
            _yes(inside(v, i)), *([_signed(plain[i])] if PLAIN in v.baselines else []),
            *([" ".join(filter(None, marks))] if reasons or lacking else []),
        ])  # fmt: skip
    above = [f"{name} {value}" for name, value in common.items() if UNSAID.get(name) != value]
    rated = any(case.metric in RATES for case in v.cases)
    parts = [f"all rows: {', '.join(above)}" if above else "", OF_RATES if rated else ""]
    parts += [table(head, rows, left=len(shown)), reasons_text(v, reasons)]
    parts += ["what the words of a row leave out (plain: the error without it)\n" + _listed(lacking)] if lacking else []
    return "\n\n".join(part for part in parts if part)


def reasons_text(v: Validation, numbers: Mapping[str, str] | None = None) -> str:
    """The rows that are far off by their reason: how many, from which error to which, why; nothing without a known reason."""
    marks = _numbered(v.reasons, str) if numbers is None else numbers
    if not marks:
        return ""
    far = [i for i in range(len(v.cases)) if abs(v.error[i]) > FAR]
    rows = []
    for reason in [*marks, ""]:
        own = [100 * v.error[i] for i in far if v.reasons[i] == reason]
        if own:
            span = f"{min(own):+.0f} to {max(own):+.0f} %" if len(own) > 1 else f"{own[0]:+.0f} %"
            rows.append([marks.get(reason, ""), str(len(own)), span, reason or "no reason is known"])
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    marked = [("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[3]) for row in rows]
    return f"{len(far)} of {len(v.cases)} are more than {100 * FAR:.0f} % off\n{_hanging(marked)}"


def cells_html(v: Validation) -> str:
    """The same as a section of a page."""
    if not v.cases:
        return ""
    far, plain = bool(any(v.reasons)), plain_errors(v)
    head = [*WORDS, "measured", "predicted", "error", "inside", *(["reason"] if far else [])]
    head += ["plain", "what the words leave out"] if PLAIN in v.baselines else []
    rows = []
    for i, case in enumerate(v.cases):
        row = [*(words(word(case)) for word in WORDS.values())]
        row += [valued(_value(case, value), float(value)) for value in (case.measured, v.predicted[i])]
        row += [_off(v.error[i]), words(_yes(inside(v, i))), *([words(v.reasons[i])] if far else [])]
        row += [_off(plain[i]), words("; ".join(v.conditions[i]))] if PLAIN in v.baselines else []
        rows.append(row)
    return f'<h2>Cells</h2>\n<div class="scroll">\n{html_table(head, rows)}\n</div>'


def inside(v: Validation, i: int) -> bool | None:
    """Whether the interval of a prediction holds the measured value; None without an interval."""
    return bool(v.low[i] <= v.cases[i].measured <= v.high[i]) if math.isfinite(v.low[i]) else None


def plain_errors(v: Validation) -> Sequence[float]:
    """The error of each row's plain prediction, NaN where there is none; nothing unless they were asked for."""
    if PLAIN not in v.baselines:
        return ()
    return [error_of(case.metric, case.measured, float(plain)) for case, plain in zip(v.cases, v.baselines[PLAIN], strict=True)]


def _numbered(texts: Sequence[str], mark: Callable[[int], str]) -> dict[str, str]:
    return {text: mark(i) for i, text in enumerate((text for text in dict.fromkeys(texts) if text), 1)}


def _letters(number: int) -> str:
    """a to z, then aa, ab, ...

    >>> _letters(1), _letters(27)
    ('a', 'aa')
    """
    number -= 1
    return (LETTERS[number // 26 - 1] if number >= 26 else "") + LETTERS[number % 26] if number < 27 * 26 else str(number)


def _listed(marks: Mapping[str, str]) -> str:
    width = max(map(len, marks.values()))
    return _hanging([(mark.rjust(width), text) for text, mark in marks.items()])


def _hanging(rows: Sequence[tuple[str, str]]) -> str:
    """Texts beside their marks, of one width, in lines of a readable length."""
    return "\n".join(
        fill(clean(text), LONGEST, initial_indent=f"{mark}  ", subsequent_indent=" " * (len(mark) + 2)) for mark, text in rows
    )


def _value(case: Case, value: float) -> str:
    unit = UNITS[max((end for end in UNITS if case.metric.endswith(end)), key=len)]
    return f"{grouped(value)} {unit}" if unit in ("1/s", "clk") else show(float(value), unit, 4)


def _signed(error: float) -> str:
    return f"{100 * error:+.1f} %" if math.isfinite(error) else "-"


def _off(error: float) -> TableCell:
    return percent(float(error), "+.1f") if math.isfinite(error) else valued("-", 0.0)


def _yes(known: bool | None) -> str:
    return "-" if known is None else "yes" if known else "no"
