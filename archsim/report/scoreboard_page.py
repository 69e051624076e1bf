"""A scoreboard of predictors as a self-contained HTML page without scripts of a chart library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archsim.evidence.claims import NOTE, Claim
from archsim.evidence.columns import quantity
from archsim.evidence.pattern import ServingPattern
from archsim.report.drawing import drawing
from archsim.report.frame import document
from archsim.report.markup import TableCell, items, table, text, valued, words
from archsim.report.scoreboard import HEAD, MODELS, all_answer, coverage_text, each_text, score_words
from archsim.report.scoreboard_svg import Place, scoreboard_svg
from archsim.report.validation_page import baselines, count, origin, share
from archsim.validation.evaluation import GroupScore
from archsim.validation.score import score
from archsim.validation.scoreboard import Scoreboard, ScoredPredictor

PHASES = {"prefill": "the time of prefill", "decode": "the time of a decode step", "end to end": "the end-to-end time"}
TERMS = (
    "An error is predicted / measured - 1 of a time, power or energy; a rate counts as the time that it stands for. MAPE, median "
    "and p90 are of its absolute value on the rows that a predictor answers, the bias is its signed median. The columns archsim "
    "and roofline are their median errors on these same rows, which makes predictors of different rows comparable."
)


def scoreboard_page(b: Scoreboard, provenance: Mapping[str, str], claims: Sequence[Claim] = ()) -> str:
    """The whole page; `claims` are what other tools say of themselves."""
    asked = f"{len(b.entrants)} predictors · {len(b.cases):,} of {b.asked:,} measured values · {b.settings.fidelity} model"
    sections = [
        f'<h1>Predictors on the same measurements</h1>\n<p class="asked">{text(asked)}</p>',
        f'<p class="quiet">{text(TERMS)}</p>', *(_quantity(b, kind) for kind in dict.fromkeys(map(quantity, b.cases))),
        _coverage(b), _common(b),
        _cut(b, "Kind", lambda i: _kind(b, i)), _cut(b, "Device", lambda i: b.cases[i].hardware),
        _cut(b, "Network", lambda i: b.cases[i].label), _claims(claims),
        _origin(b, provenance),
    ]  # fmt: skip
    return document("Predictors on the same measurements", sections)


def _quantity(b: Scoreboard, kind: str) -> str:
    """The picture and the table of one quantity."""
    scored = [(e, group) for e in b.entrants for group in e.overall if group.by["quantity"] == kind]
    places = [Place(e.predictions.name, e.predictions.seconds, group.score.median_ape, group.score.n) for e, group in scored]
    rows = [(p.name, p.seconds if p.seconds is not None else "", p.error, p.rows) for p in places]
    names = [e.predictions.name for e in b.entrants]  # so that each has one colour on all pictures
    picture = drawing(scoreboard_svg(places, names), f"{kind} error against time",
                      ("predictor", "seconds", "median_error", "rows"), rows)  # fmt: skip
    head = ("predictor", *HEAD, *(f"{name}, median" for name in MODELS), "each")
    lines = [[words(e.predictions.name), *_cells(group), *baselines(group, MODELS),
              valued(each_text(e), e.predictions.seconds or -1.0)] for e, group in scored]
    return (f'<h2>Error of {text(PHASES.get(kind, kind))} against the time of a prediction</h2>\n{picture}\n'
            f'<div class="scroll">\n{table(head, lines)}\n</div>')  # fmt: skip


def _cells(group: GroupScore) -> list[TableCell]:
    s = group.score
    order = -2.0 if group.order is None else group.order.mean
    keys = (s.n, s.mape, s.mape_interval[1] - s.mape_interval[0], s.median_ape, s.p90_ape, s.bias, order, s.coverage or -1.0)
    return [valued(word, float(key)) for word, key in zip(score_words(group), keys, strict=True)]


def _coverage(b: Scoreboard) -> str:
    lines = items(coverage_text(b).splitlines())
    return f"<h2>What each answers</h2>\n{lines}" if lines else ""


def _common(b: Scoreboard) -> str:
    if all_answer(b):
        return ""
    if not b.common:
        return "<h2>The rows that all answer</h2>\n<p>There are none.</p>"
    rows = [
        [words(e.predictions.name), words(group.by["quantity"]), *_cells(group)]
        for e, groups in zip(b.entrants, b.common, strict=True) for group in groups
    ]  # fmt: skip
    return f"<h2>The rows that all answer</h2>\n{table(('predictor', 'quantity', *HEAD), rows)}"


def _kind(b: Scoreboard, i: int) -> str:
    """What was timed: a whole network, one op, or a power."""
    case = b.cases[i]
    if isinstance(case.pattern, ServingPattern):
        return f"{case.spec.kind}, served model, {quantity(case)}"
    what = "one kernel or layer" if case.work is None else (case.fields.get("task") or case.task).replace("_", " ")
    return f"{case.spec.kind}, {what}, {quantity(case)}"


def _cut(b: Scoreboard, title: str, of: Callable[[int], str]) -> str:
    """Median errors side by side: a row for each value, a column for each predictor, with the share of rows that it answers."""
    rows: dict[str, list[int]] = {}
    for i in range(len(b.cases)):
        rows.setdefault(of(i), []).append(i)
    lines = [
        [words(name), count(len(own)), *(_median(e, own) for e in b.entrants)]
        for name, own in sorted(rows.items(), key=lambda item: (-len(item[1]), item[0]))
    ]  # fmt: skip
    head = (title.lower(), "rows", *(e.predictions.name for e in b.entrants))
    return f'<h2>By {text(title.lower())}</h2>\n<div class="scroll">\n{table(head, lines)}\n</div>'


def _median(e: ScoredPredictor, own: Sequence[int]) -> TableCell:
    found = e.error[list(own)]
    left = found[found == found]
    if not left.size:
        return share(None)
    median = score(left).median_ape
    part = "" if left.size == len(own) else f" of {100 * left.size / len(own):.0f} %"
    return valued(f"{100 * median:.1f} %{part}", median)


def _claims(claims: Sequence[Claim]) -> str:
    if not claims:
        return ""
    rows = [(words(one.tool), TableCell(body=f"{text(one.says)}; {text(one.of)}.<br>Here: {text(one.here)}.<br>"
                                             f'<span class="quiet">{text(one.source)}, {text(one.url)}</span>'))
            for one in claims]  # fmt: skip
    head = ("tool", "what it says, and what of it stands here")
    return (f'<h2>What other tools say of themselves</h2>\n<p class="quiet">{text(NOTE)}</p>\n'
            f'{table(head, rows, style="pairs")}')  # fmt: skip


def _origin(b: Scoreboard, provenance: Mapping[str, str]) -> str:
    rows = [(words(e.predictions.name), words(e.predictions.about or "given on the command line")) for e in b.entrants]
    rows += origin(provenance.items())
    return f"<h2>Provenance</h2>\n{table(('what', 'where it is from'), rows, style='pairs')}"
