"""What a scoreboard says: which predictor is nearest to the measurements, on which rows, and what others say of themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from archsim.answers.cells import FEW
from archsim.answers.validation import (
    SCORES,
    baseline_cells,
    finite,
    group_record,
    origin,
    provenance,
    scores,
    share,
)
from archsim.evidence.claims import NOTE, Claim
from archsim.evidence.columns import OWN, quantity
from archsim.evidence.identity import ID
from archsim.evidence.pattern import ServingPattern
from archsim.render.blocks import (
    Block,
    Cell,
    Facts,
    Note,
    Piece,
    Table,
    Verdict,
    columns,
    count,
    number,
    percent,
    words,
)
from archsim.render.csv import csv_lines
from archsim.validation import scoreboard
from archsim.validation.evaluation import GroupScore
from archsim.validation.score import score
from archsim.validation.scoreboard import Scoreboard, ScoredPredictor

SCHEMA = "archsim-scoreboard/1"
TITLE = "Predictors on the same measurements"
MODELS = (scoreboard.OWN, scoreboard.ROOFLINE)
COLUMNS = (ID, *OWN, "measured", "predictor", "predicted", "error", "lo", "hi")
PHASES = {"prefill": "the time of prefill", "decode": "the time of a decode step", "end to end": "the end-to-end time"}
TERMS = ("Errors are of the rows that a predictor answers; a rate counts as its time. archsim and roofline: their median errors "
         "on these same rows, which makes predictors of different rows comparable. each: time of one prediction, - where nobody "
         "states it.")  # fmt: skip


def record(b: Scoreboard) -> dict[str, Any]:
    """The scoreboard as plain values, keys in the documented order."""
    common = {e.predictions.name: groups for e, groups in zip(b.entrants, b.common, strict=False)}
    return {
        "schema": SCHEMA, "fidelity": b.settings.fidelity, "provenance": provenance(b.settings, b.data), "asked": b.asked,
        "rows": len(b.cases), "skipped": len(b.skips),
        "predictors": [
            {"name": e.predictions.name, "about": e.predictions.about, "seconds": e.predictions.seconds, "answered": e.answered,
             "overall": [group_record(group) for group in e.overall], "groups": [group_record(group) for group in e.groups],
             "common": [group_record(group) for group in common.get(e.predictions.name, ())]}
            for e in b.entrants
        ],
        "predictions": [dict(zip(COLUMNS, row, strict=True)) for row in rows(b)],
        "claims": [one.model_dump() for one in b.claims],
    }  # fmt: skip


def rows(b: Scoreboard) -> list[list[Any]]:
    """One row for each value that each predictor gives, in the order of COLUMNS."""
    return [
        [case.fields[ID], *(value(case) for value in OWN.values()), case.measured, e.predictions.name,
         *(finite(values[i]) for values in (e.predicted, e.error, e.low, e.high))]
        for e in b.entrants for i, case in enumerate(b.cases) if math.isfinite(e.predicted[i])
    ]  # fmt: skip


def csv(b: Scoreboard) -> str:
    """One line for each value that each predictor gives."""
    return csv_lines([COLUMNS, *rows(b)])


def sections(b: Scoreboard) -> list[Block]:
    """The blocks of a scoreboard."""
    kinds = list(dict.fromkeys(map(quantity, b.cases)))
    asked = [f"{len(b.entrants)} predictors", f"{len(b.cases):,} of {b.asked:,} measured values", f"{b.settings.fidelity} model"]
    found: list[Block] = [Verdict(title=TITLE, asked=asked, sentences=[*(nearest(b, kind) for kind in kinds)]
                                  or ["No row is answered."])]  # fmt: skip
    found += [main_table(b, kind) for kind in kinds]
    if kinds:
        found.append(Note(text=TERMS, tone="quiet"))
    found += [Facts(title="What each answers", rows=coverage(b)), *_common(b), *_groups(b)]
    cuts: tuple[tuple[str, Callable[[int], str]], ...] = (
        ("kind", lambda i: _kind(b, i)), ("device", lambda i: b.cases[i].hardware), ("network", lambda i: b.cases[i].label))
    found += [_cut(b, title, of) for title, of in cuts if b.cases]
    abouts = [(e.predictions.name, e.predictions.about or "given on the command line") for e in b.entrants]
    return [*found, Facts(title="Predictors", rows=abouts, level=1), *_claims(b.claims), origin(provenance(b.settings, b.data))]


def _scored(b: Scoreboard, kind: str) -> list[tuple[ScoredPredictor, GroupScore]]:
    """The predictors of a quantity with their scores: first those that answer most rows, by their median error."""
    found = [(e, group) for e in b.entrants for group in e.overall if group.by["quantity"] == kind]
    most = max(group.score.n for _, group in found)
    return sorted(found, key=lambda pair: (pair[1].score.n < most, pair[1].score.median_ape))


def nearest(b: Scoreboard, kind: str) -> str:
    """`Time: archsim is nearest, half of its 29 predictions within 2.8 %; then neusight (29 rows, 6.7 %), ...`."""
    first, *others = [(e.predictions.name, group.score) for e, group in _scored(b, kind)]
    rest = ", ".join(f"{name} ({s.n:,} rows, {100 * s.median_ape:.1f} %)" for name, s in others)
    said = f"{kind.capitalize()}: {first[0]} is nearest, half of its {first[1].n:,} predictions are within "
    return f"{said}{100 * first[1].median_ape:.1f} %{f'; then {rest}' if rest else ''}."


def main_table(b: Scoreboard, kind: str) -> Table:
    """The predictors of a quantity, the nearest first; bars reach to the median error, marks stand at the 90th percentile."""
    scored = _scored(b, kind)
    most = max(group.score.p90_ape for _, group in scored) or 1.0
    found = [[words(e.predictions.name), *_cells(group), *baseline_cells(group, MODELS), number(e.predictions.seconds, "s"),
              _reach(group, most)] for e, group in scored]  # fmt: skip
    heads = ("predictor", *HEAD, *MODELS, "each", "median and p90")
    return Table(title=f"Error of {PHASES.get(kind, kind)}", rows=found,
                 columns=columns(*heads, numbers=range(1, len(heads) - 1), bars=(len(heads) - 1,)))  # fmt: skip


def _reach(group: GroupScore, most: float) -> Cell:
    median, decile = group.score.median_ape / most, group.score.p90_ape / most
    return Cell(bar=[Piece(start=0.0, end=median, tone="0"), Piece(start=decile, end=decile, sign="|")], value=median)


HEAD = tuple(name for name in SCORES if name != "stacks")


def _cells(group: GroupScore) -> list[Cell]:
    return [cell for name, cell in zip(SCORES, scores(group), strict=True) if name != "stacks"]


def coverage(b: Scoreboard) -> list[tuple[str, str]]:
    """How many of the rows each of the others answers; nothing is left out of a score without being counted here."""
    found = []
    for e in b.entrants:
        if e.predictions.name not in MODELS:
            rest = b.asked - e.answered
            left = "all of them" if not rest else f"{100 * e.answered / b.asked:.2g} %; the other {rest:,} are in no score of it"
            found.append((e.predictions.name, f"{e.answered:,} of {b.asked:,} rows: {left}"))
        elif e.answered < len(b.cases):
            found.append((e.predictions.name, f"no answer to {len(b.cases) - e.answered:,} of the {len(b.cases):,} rows"))
    skips = f"{len(b.skips):,} rows, because their words are not known here" if b.skips else ""
    return [*found, *([("skipped", skips)] if skips else [])]


def _common(b: Scoreboard) -> list[Block]:
    if all(e.answered == len(b.cases) for e in b.entrants):
        return []
    if not b.common:
        return [Note(text="No row is answered by all.")] if len(b.entrants) > 1 else []
    found = [[words(e.predictions.name), words(group.by["quantity"]), *_cells(group)]
             for e, groups in zip(b.entrants, b.common, strict=True) for group in groups]  # fmt: skip
    return [Table(title="The rows that all answer", columns=columns("predictor", "quantity", *HEAD, numbers=range(2, 20)),
                  rows=found)]  # fmt: skip


def _groups(b: Scoreboard) -> list[Block]:
    by = tuple(b.settings.by)
    if by == ("quantity",):
        return []
    found = sorted(((e, group) for e in b.entrants for group in e.groups), key=lambda pair: tuple(pair[1].by.values()))
    lines = [[*map(words, group.by.values()), words(e.predictions.name), *_cells(group), *baseline_cells(group, MODELS)]
             for e, group in found]  # fmt: skip
    heads = (*by, "predictor", *HEAD, *MODELS)
    return [Table(title=f"By {', '.join(by)}", columns=columns(*heads, numbers=range(len(by) + 1, len(heads))), rows=lines,
                  long=len(lines) > FEW)]  # fmt: skip


def _kind(b: Scoreboard, i: int) -> str:
    """What was timed: a whole network, one op, or a power."""
    case = b.cases[i]
    if isinstance(case.pattern, ServingPattern):
        return f"{case.spec.kind}, served model, {quantity(case)}"
    what = "one kernel or layer" if case.work is None else (case.fields.get("task") or case.task).replace("_", " ")
    return f"{case.spec.kind}, {what}, {quantity(case)}"


def _cut(b: Scoreboard, title: str, of: Callable[[int], str]) -> Table:
    """Median errors side by side: a row for each value, a column for each predictor, with the share of rows that it answers."""
    found: dict[str, list[int]] = {}
    for i in range(len(b.cases)):
        found.setdefault(of(i), []).append(i)
    lines = [[words(name), count(len(own), 9), *(_median(e, own) for e in b.entrants)]
             for name, own in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))]  # fmt: skip
    heads = (title, "rows", *(e.predictions.name for e in b.entrants))
    return Table(title=f"By {title}", columns=columns(*heads, numbers=range(1, len(heads))), rows=lines, long=len(lines) > FEW,
                 level=1)  # fmt: skip


def _median(e: ScoredPredictor, own: Sequence[int]) -> Cell:
    found = e.error[list(own)]
    left = found[found == found]
    if not left.size:
        return share(None)
    median = score(left).median_ape
    return percent(median) if left.size == len(own) else Cell(
        text=f"{100 * median:.1f} % of {100 * left.size / len(own):.0f} %", value=median)  # fmt: skip


def _claims(claims: Sequence[Claim]) -> list[Block]:
    if not claims:
        return []
    lines: list[tuple[str, Sequence[Cell | str]]] = [
        (one.tool, [f"{one.says}; {one.of}.", f"Here: {one.here}.", words(f"{one.source}, {one.url}", tone="quiet")])
        for one in claims
    ]
    return [Note(text=f"What other tools say of themselves stands behind --all. {NOTE}", tone="quiet"),
            Facts(title="What other tools say of themselves", rows=lines, level=2)]  # fmt: skip
