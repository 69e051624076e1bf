"""Predictors beside each other: closed form and cycle model on random kernels, archsim and others on measured rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from archsim.answers.validation import FEW, baseline_cells, finite, group_record, origin, provenance, score_heads, scores
from archsim.evidence.columns import ID, OWN, quantity
from archsim.evidence.sources import NOTE, Claim
from archsim.render.blocks import Block, Cell, Facts, Note, Piece, Table, Verdict, columns, count, number, percent, words
from archsim.render.text import records_csv
from archsim.validation import scoreboard
from archsim.validation.evaluation import GroupScore
from archsim.validation.random_kernels import Judged, SurrogateRow
from archsim.validation.scoreboard import Scoreboard, ScoredPredictor
from archsim.validation.traffic import BATCH, RoleDistance, TrafficRow

TRAFFIC, KERNELS = "archsim-traffic/1", "archsim-surrogate/1"  # schemas
BAND = 0.15
WORST = ("hardware", "network", "task", "layer", "phase", "kernel", "closed", "simulated")  # that is said of a kernel
GROUPS: Mapping[str, Callable[[SurrogateRow], str]] = {
    "op": lambda row: row.op, "machine": lambda row: "scaled" if row.scaled else "as shipped",
    "architecture": lambda row: row.architecture, "precision": lambda row: row.precision,
}  # fmt: skip
Record = dict[str, Any]


def rounded(value: Any, digits: int) -> Any:
    """Plain values, floats with so many digits."""
    if isinstance(value, Mapping):
        return {name: rounded(inner, digits) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, digits) for inner in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def traffic_record(rows: Sequence[TrafficRow], roles: Sequence[RoleDistance] = ()) -> Record:
    """Products of convolutions one by one, and all kernels of some runs by role."""
    kinds = [{**asdict(role), "worst": [{name: getattr(one, name) for name in WORST} for one in role.worst]} for role in roles]
    found: Record = rounded({
        "schema": TRAFFIC, "batch": BATCH, "dram_median_error": float(np.median([abs(row.dram_error) for row in rows])),
        "l2_median_error": float(np.median([abs(row.l2_error) for row in rows])), "rows": [asdict(row) for row in rows],
        "roles": kinds,
    }, 6)  # fmt: skip
    return found


def traffic_sections(r: Record) -> list[Block]:
    """How far the traffic is off, by product and by role, of what `traffic_record` has."""
    errors = {name: [row[f"{name}_model"] / row[f"{name}_simulated"] - 1.0 for row in r["rows"]] for name in ("dram", "l2")}
    close = sum(abs(error) <= BAND for error in errors["dram"])
    said = (f"Median error of the closed form: DRAM {100 * r['dram_median_error']:.1f} %, L2 {100 * r['l2_median_error']:.1f} %; "
            f"{close} of {len(r['rows'])} products within {100 * BAND:.0f} % (DRAM).")  # fmt: skip
    products = [[words(f"{row['hardware']} {row['network']} {row['layer']}"), number(row["dram_simulated"], "B"),
                 percent(dram, "+.1f"), number(row["l2_simulated"], "B"), percent(l2, "+.1f")]
                for row, dram, l2 in zip(r["rows"], errors["dram"], errors["l2"], strict=True)]  # fmt: skip
    roles = [[words(f"{row['device_kind'].upper()} {row['role'].replace('_', ' ')}"), words(row["level"]), count(row["kernels"]),
              percent(row["median"], ".0f"), percent(row["p90"], ".0f"),
              words(" ".join(row["worst"][0][name] for name in ("hardware", "network", "layer", "kernel")))]
             for row in r["roles"]]  # fmt: skip
    return [
        Verdict(title="Closed-form traffic beside simulated caches", asked=[f"batch {BATCH}", "fp32"], sentences=[said]),
        Table(title="Products", rows=products, columns=columns("", "DRAM", "error", "L2", "error", numbers=range(1, 5))),
        Table(title="Distance by role", rows=roles,
              columns=columns("", "level", "kernels", "median", "90 % below", "worst kernel", numbers=(2, 3, 4))),
    ]  # fmt: skip


def kernels_record(rows: Sequence[SurrogateRow], verdicts: Sequence[Judged], seed: int) -> Record:
    """Distances, |closed form / simulated - 1|, of all kernels and by group; `verdicts`: which one published times agree with."""

    def entry(some: Sequence[SurrogateRow]) -> Record:
        ratios = np.exp([row.distance for row in some])
        median, p90 = np.quantile(np.abs(ratios - 1.0), (0.5, 0.9))
        return {"kernels": len(some), "median": float(median), "p90": float(p90), "bias": float(np.median(ratios)) - 1.0}

    groups = {name: {group: entry([row for row in rows if of(row) == group]) for group in sorted({*map(of, rows)})}
              for name, of in GROUPS.items()}  # fmt: skip
    found: Record = rounded({
        "schema": KERNELS, "seed": seed, **entry(rows), **groups, "published": [asdict(verdict) for verdict in verdicts],
    }, 4)  # fmt: skip
    return found


def kernels_sections(r: Record) -> list[Block]:
    """How far apart the times are, of what `kernels_record` has."""
    said = (f"The closed form is within {100 * r['median']:.1f} % of the cycle model for half of the kernels, within "
            f"{100 * r['p90']:.1f} % for nine in ten; {100 * r['bias']:+.1f} % in the median.")  # fmt: skip
    found: list[Block] = [Verdict(title="The closed form beside the cycle model", sentences=[said],
                                  asked=[f"{r['kernels']:,} random kernels", f"seed {r['seed']}"])]  # fmt: skip
    for name in GROUPS:
        rows = [[words(group.replace("_", " ")), count(one["kernels"]), percent(one["median"]), percent(one["p90"]),
                 percent(one["bias"], "+.1f")] for group, one in r[name].items()]  # fmt: skip
        found.append(Table(title=f"By {name}", rows=rows,
                           columns=columns("", "kernels", "median", "90 % below", "bias", numbers=range(1, 5))))  # fmt: skip
    published = [[words(one["op"]), count(one["rows"]), percent(one["closed"]), percent(one["simulated"])]
                 for one in r["published"]]  # fmt: skip
    return [*found, Table(title="Errors on published times", rows=published,
                          columns=columns("", "rows", "closed form", "cycle model", numbers=(1, 2, 3)))]  # fmt: skip


# ------------------------------------------------------------------------------------------------------- the scoreboard

SCHEMA = "archsim-scoreboard/1"
TITLE = "Predictors on the same measurements"
MODELS = (scoreboard.OWN, scoreboard.ROOFLINE)
PHASES = {"prefill": "the time of prefill", "decode": "the time of a decode step", "end to end": "the end-to-end time"}
TERMS = ("Errors are of the rows that a predictor answers; a rate counts as its time. archsim and roofline: their median errors "
         "on these same rows, which makes predictors of different rows comparable. each: time of one prediction, - where nobody "
         "states it. Bars reach to the median error, marks stand at the 90th percentile.")  # fmt: skip


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
        "predictions": predictions(b),
        "claims": [one.model_dump() for one in b.claims],
    }  # fmt: skip


def predictions(b: Scoreboard) -> list[dict[str, Any]]:
    """One object for each value that each predictor gives."""
    return [
        {ID: case.fields[ID], **{name: value(case) for name, value in OWN.items()}, "measured": case.measured,
         "predictor": e.predictions.name, "predicted": finite(e.predicted[i]), "error": finite(e.error[i]),
         "lo": finite(e.low[i]), "hi": finite(e.high[i])}
        for e in b.entrants for i, case in enumerate(b.cases) if math.isfinite(e.predicted[i])
    ]  # fmt: skip


def csv(b: Scoreboard) -> str:
    """One line for each value that each predictor gives."""
    return records_csv(predictions(b))


def sections(b: Scoreboard) -> list[Block]:
    """The blocks of a scoreboard."""
    kinds = list(dict.fromkeys(map(quantity, b.cases)))
    asked = [f"{len(b.entrants)} predictors", f"{len(b.cases):,} of {b.asked:,} measured values", f"{b.settings.fidelity} model"]
    found: list[Block] = [Verdict(title=TITLE, asked=asked, sentences=[*(nearest(b, kind) for kind in kinds)]
                                  or ["No row is answered."]),
                          *(_table(b, f"Error of {PHASES.get(kind, kind)}", (), _scored(b, kind)) for kind in kinds),
                          Note(text=TERMS, tone="quiet"), Facts(title="What each answers", rows=coverage(b))]  # fmt: skip
    if any(e.answered < len(b.cases) for e in b.entrants):
        common = [(e, group) for e, groups in zip(b.entrants, b.common, strict=False) for group in groups]
        found.append(_table(b, "The rows that all answer", ["quantity"], common))
    if tuple(b.settings.by) != ("quantity",):
        every = sorted(((e, group) for e in b.entrants for group in e.groups), key=lambda pair: tuple(pair[1].by.values()))
        found.append(_table(b, f"By {', '.join(b.settings.by)}", b.settings.by, every))
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


def _table(
    b: Scoreboard, title: str, by: Sequence[str], scored: Iterable[tuple[ScoredPredictor, GroupScore]]
) -> Table:  # fmt: skip
    """A line for each score; bars reach to the median error, marks stand at the 90th percentile."""
    listed = list(scored)
    most = max((group.score.p90_ape for _, group in listed), default=0.0) or 1.0
    rows = []
    for e, group in listed:
        median, decile = group.score.median_ape / most, group.score.p90_ape / most
        bar = Cell(bar=[Piece(start=0.0, end=median, tone="0"), Piece(start=decile, end=decile, sign="|")], value=median)
        rows.append([words(e.predictions.name), *(words(group.by[name]) for name in by), *scores(group),
                     *baseline_cells(group, MODELS), number(e.predictions.seconds, "s"), bar])  # fmt: skip
    heads = ("predictor", *by, *score_heads(b.settings.calibration.level), *MODELS, "each", "")
    return Table(title=title, rows=rows, long=len(rows) > FEW,
                 columns=columns(*heads, numbers=range(1 + len(by), len(heads) - 1), bars=(len(heads) - 1,)))  # fmt: skip


def coverage(b: Scoreboard) -> list[tuple[str, str]]:
    """How many of the rows each of the others answers; nothing is left out of a score without being counted here."""
    found = []
    for e in b.entrants:
        own = e.predictions.name in MODELS
        of = len(b.cases) if own else b.asked
        rest = of - e.answered
        left = f"{100 * e.answered / of:.2g} %; the other {rest:,} are in no score of it" if rest else "all of them"
        if rest or not own:
            found.append((e.predictions.name, f"{e.answered:,} of {of:,} rows: {left}"))
    return [*found, *([("skipped", f"{len(b.skips):,} rows, because their words are not known here")] if b.skips else [])]


def _claims(claims: Sequence[Claim]) -> list[Block]:
    if not claims:
        return []
    lines: list[tuple[str, Sequence[Cell | str]]] = [
        (one.tool, [f"{one.says}; {one.of}.", f"Here: {one.here}.", words(f"{one.source}, {one.url}", tone="quiet")])
        for one in claims
    ]
    return [Note(text=f"What other tools say of themselves stands behind --all. {NOTE}", tone="quiet"),
            Facts(title="What other tools say of themselves", rows=lines, level=2)]  # fmt: skip
