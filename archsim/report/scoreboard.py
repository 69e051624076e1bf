"""A scoreboard of predictors as text, JSON and CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.units import show
from archsim.evidence.claims import NOTE, Claim
from archsim.evidence.columns import OWN
from archsim.evidence.identity import ID
from archsim.report.data import rows_as_csv
from archsim.report.text import clean, per_cent, table
from archsim.report.validation import finite, group_record
from archsim.validation import scoreboard
from archsim.validation.evaluation import GroupScore
from archsim.validation.scoreboard import Scoreboard, ScoredPredictor

SCHEMA = "archsim-scoreboard/1"
MODELS = (scoreboard.OWN, scoreboard.ROOFLINE)
HEAD = ("rows", "MAPE", "95 % interval", "median", "p90", "bias", "order", "covered")
TERMS = (
    "MAPE, median and p90 of |predicted / measured - 1| on the rows that a predictor answers; bias: its signed median; archsim\n"
    "and roofline: their median on these same rows; order: Kendall's tau of devices on the same work; covered: share of\n"
    "measured values in the predictor's interval; each: time of one prediction, - where nobody states it"
)


def scoreboard_text(b: Scoreboard, provenance: Mapping[str, str], claims: Sequence[Claim] = ()) -> str:
    """The predictors, what each answers, the rows that all answer, the groups that were asked for, and what others claim."""
    head = f"{len(b.entrants)} predictors on {len(b.cases):,} of {b.asked:,} measured values, by the {b.settings.fidelity} model"
    parts = [head, _overall(b), TERMS, coverage_text(b), _common(b), _groups(b), _abouts(b), _claims(claims),
             ", ".join(f"{name} {value}" for name, value in provenance.items())]  # fmt: skip
    return "\n\n".join(part for part in parts if part)


def _overall(b: Scoreboard) -> str:
    if not b.cases:
        return "no row is answered"
    rows = [
        [clean(e.predictions.name), group.by["quantity"], *score_words(group), *_beside(group), each_text(e)]
        for e in b.entrants for group in e.overall
    ]  # fmt: skip
    return table(("predictor", "quantity", *HEAD, *MODELS, "each"), rows, left=2)


def score_words(group: GroupScore) -> list[str]:
    """The score of a group, one word a column of HEAD."""
    s = group.score
    return [
        f"{s.n:,}", per_cent(s.mape), f"{per_cent(s.mape_interval[0])} to {per_cent(s.mape_interval[1])}", per_cent(s.median_ape),
        per_cent(s.p90_ape), f"{100 * s.bias:+.1f} %", "-" if group.order is None else f"{group.order.mean:.2f}",
        "-" if s.coverage is None else f"{100 * s.coverage:.0f} %",
    ]  # fmt: skip


def _beside(group: GroupScore) -> list[str]:
    return [per_cent(group.baselines[name].median_ape) if name in group.baselines else "-" for name in MODELS]


def each_text(e: ScoredPredictor) -> str:
    """What one prediction takes."""
    return "-" if e.predictions.seconds is None else show(e.predictions.seconds, "s", 3)


def coverage_text(b: Scoreboard) -> str:
    """How many of the rows each of the others answers; nothing is left out of a score without being counted here."""
    lines = []
    for e in b.entrants:
        if e.predictions.name not in MODELS:
            rest = b.asked - e.answered
            left = "all of them" if not rest else f"{100 * e.answered / b.asked:.2g} %; the other {rest:,} are in no score of it"
            lines.append(f"{clean(e.predictions.name)} answers {e.answered:,} of {b.asked:,} rows: {left}")
        elif e.answered < len(b.cases):
            lines.append(f"{e.predictions.name} has no answer to {len(b.cases) - e.answered:,} of the {len(b.cases):,} rows")
    skipped = f"{len(b.skips):,} rows were skipped, because their words are not known here" if b.skips else ""
    return "\n".join([*lines, *filter(None, [skipped])])


def _common(b: Scoreboard) -> str:
    if not b.common or all_answer(b):
        return "" if b.common or len(b.entrants) < 2 else "no row is answered by all"
    rows = [
        [clean(e.predictions.name), group.by["quantity"], *score_words(group)]
        for e, groups in zip(b.entrants, b.common, strict=True) for group in groups
    ]  # fmt: skip
    return "the rows that all answer\n" + table(("predictor", "quantity", *HEAD), rows, left=2)


def all_answer(b: Scoreboard) -> bool:
    """Whether every predictor answers every row that is scored."""
    return all(e.answered == len(b.cases) for e in b.entrants)


def _groups(b: Scoreboard) -> str:
    if tuple(b.settings.by) == ("quantity",):
        return ""
    rows = [
        [*group.by.values(), clean(e.predictions.name), *score_words(group), *_beside(group)]
        for e in b.entrants for group in e.groups
    ]  # fmt: skip
    order = [*b.settings.by, "predictor"]
    rows.sort(key=lambda row: row[: len(order) - 1])
    return table((*order, *HEAD, *MODELS), [[clean(cell) for cell in row] for row in rows], left=len(order))


def _abouts(b: Scoreboard) -> str:
    return "\n".join(f"{clean(e.predictions.name)}: {clean(e.predictions.about)}" for e in b.entrants if e.predictions.about)


def _claims(claims: Sequence[Claim]) -> str:
    if not claims:
        return ""
    lines = [f"{clean(one.tool)}: {clean(one.says)} ({clean(one.of)}; {clean(one.source)})" for one in claims]
    return "\n".join(["what other tools say of themselves", NOTE, *lines])


def record(b: Scoreboard, provenance: Mapping[str, str], claims: Sequence[Claim] = ()) -> dict[str, Any]:
    """Plain values for JSON."""
    common = dict(zip([e.predictions.name for e in b.entrants], b.common, strict=False))
    return {
        "schema": SCHEMA, "fidelity": b.settings.fidelity, "provenance": dict(provenance), "asked": b.asked,
        "rows": len(b.cases), "skipped": len(b.skips),
        "predictors": [
            {"name": e.predictions.name, "about": e.predictions.about, "seconds": e.predictions.seconds, "answered": e.answered,
             "overall": [group_record(group) for group in e.overall], "groups": [group_record(group) for group in e.groups],
             "common": [group_record(group) for group in common.get(e.predictions.name, ())]}
            for e in b.entrants
        ],
        "predictions": [dict(zip(COLUMNS, row, strict=True)) for row in rows(b)],
        "claims": [one.model_dump() for one in claims],
    }  # fmt: skip


def scoreboard_json(b: Scoreboard, provenance: Mapping[str, str], claims: Sequence[Claim] = ()) -> str:
    """One JSON object; never NaN or Infinity."""
    return json.dumps(record(b, provenance, claims), allow_nan=False, ensure_ascii=True)


COLUMNS = (ID, *OWN, "measured", "predictor", "predicted", "error", "lo", "hi")


def rows(b: Scoreboard) -> list[list[Any]]:
    """One row for each value that each predictor gives, in the order of COLUMNS."""
    return [
        [case.fields[ID], *(value(case) for value in OWN.values()), case.measured, e.predictions.name,
         *(finite(values[i]) for values in (e.predicted, e.error, e.low, e.high))]
        for e in b.entrants for i, case in enumerate(b.cases) if math.isfinite(e.predicted[i])
    ]  # fmt: skip


def scoreboard_csv(b: Scoreboard) -> str:
    """One line for each value that each predictor gives."""
    found: Sequence[Sequence[Any]] = rows(b)
    return rows_as_csv(COLUMNS, [["" if cell is None else cell for cell in row] for row in found])
