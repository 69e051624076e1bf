"""What a comparison at one batch says: who is the best and how sure that is, a line a device, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

from archsim.answers.contenders import (
    besides,
    besides_record,
    detail_table,
    devices_table,
    left_out,
    measured_words,
    row_record,
    rows_csv,
    rows_of,
)
from archsim.answers.costs import LONG, Called, cost_table, money_facts, price_rows, price_text, work_table
from archsim.answers.estimate import interval, rate_unit, task_words
from archsim.answers.front import FrontPoint, front_chart
from archsim.base.units import COUNT, grouped, show
from archsim.render.blocks import Axis, Block, Cell, Chart, Facts, Note, Table, Verdict, columns, number, percent, words
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender
from archsim.study.ranking import Ranking, pair_correlation
from archsim.study.stack_change import StackChange
from archsim.study.standing import best_line, certainty, chance, software_note, titles, toss_ups

COPIES = "Times include copying inputs from host memory and the results of an inference back; --no-copies leaves that out."
NONE = "No device holds this work."


def sections(c: Comparison) -> list[Block]:
    """The blocks of a comparison."""
    called = titles(c.all)
    return [verdict(c, called, f"batch {c.all[0].estimate.batch}"), *body(c, called)]


def body(c: Comparison, called: Called, missed: Sequence[str] = (), hints: Sequence[str] = ()) -> list[Block]:
    """All below the verdict.

    missed: what those that do not meet conditions miss; hints: software that is worth a try
    """
    found: list[Block] = [devices_table(c, called), *work_table(c.workload, c.contenders, called)] if c.contenders else []
    found += left_out(c, called, missed, hints)
    found += by_stack(c, called)
    for change in c.changes:
        found += change_blocks(change)
    found.append(Facts(title="How far to trust it", rows=[
        *besides(c.all, called), ("software", software_note(c, called)), *price_rows(c, called),
        ("measured", measured_words(c.contenders, called) if c.contenders else ""),
    ]))  # fmt: skip
    found.append(Facts(title="Measured rows", level=2,
                       rows=[("stacks", [*{x.estimate.stack_rows.words: 0 for x in c.all}])]))  # fmt: skip
    if len(c.contenders) > 1:
        found += [*price_chart(c, called), ranking_table(c.rankings, called)]
    if c.contenders:
        found += [detail_table(c, called), *cost_table(c, called), money_facts(c, called)]
    return [*found, *([Note(text=COPIES, level=2)] if c.all[0].copies else [])]


def verdict(c: Comparison, called: Called, batch: str, at: Called | None = None, none: str = NONE) -> Verdict:
    """Who is the best by each criterion, that which was asked for first.

    at: names of contenders in the lines, where these are others; none: what is said where nobody is left
    """
    names = called if at is None else at
    lines = [line for r in c.rankings if (line := best_line(r, names)) is not None]
    if len(c.contenders) == 1:
        one = c.contenders[0]
        level = one.estimate.interval_level
        lines = [(f"{names[one.name]}: {show(one.latency_s, 's', 3)}", interval(one.latency_interval_s, "s", level),
                  f"{grouped(one.throughput_per_s, 4)} {rate_unit(one.estimate)}")]  # fmt: skip
    said = toss_ups(c.rankings[0], called) if c.contenders else none
    return Verdict(title=title(c.all, called), asked=asked(c.all, batch), lines=lines, sentences=[said] if said else [])


def title(contenders: Sequence[Contender], called: Called) -> str:
    """What runs on what."""
    devices, stacks = ({getattr(c.estimate, name) for c in contenders} for name in ("hardware", "stack"))
    names = {c.device_name for c in contenders}
    many = called[min(names)] if len(names) == 1 else f"{len(names)} devices"
    many += f" with {len(stacks)} stacks" if len(stacks) > len(devices) else ""
    return f"{Path(contenders[0].estimate.network).name} on {many}"


def asked(contenders: Sequence[Contender], batch: str) -> list[str]:
    """What runs, part by part: the precisions are several where stacks differ in what their users get."""
    e = contenders[0].estimate
    precisions = " or ".join(dict.fromkeys(c.estimate.precision for c in contenders))
    odd = ((f"{e.seq_len} tokens", e.seq_len), ("replayed graph", e.graph), ("cold caches", e.cold),
           ("with copies", contenders[0].copies), (f"{e.fidelity} model", e.fidelity != "analytical"))  # fmt: skip
    return [task_words(e), batch, precisions, *(said for said, holds in odd if holds)]


def by_stack(c: Comparison, called: Called) -> list[Table]:
    """Which stack on which device, by the first criterion, the best of each device marked; nothing if none has several."""
    criterion = c.rankings[0].criterion
    found = {(x.device_name, x.estimate.stack): x for x in c.all}
    devices = list(dict.fromkeys(x.device_name for x in c.all))
    asked = [*(name for name, _ in found), *(one.hardware for one in c.excluded)]
    if len(devices) < 2 or len(set(asked)) == len(asked):
        return []
    rows = []
    for name in devices:
        here = {stack: found.get((name, stack)) for stack in c.stacks}
        known = {stack: score for stack, x in here.items()
                 if x is not None and x.fits and (score := criterion.score(x)) is not None}  # fmt: skip
        best = (min if criterion.less else max)(known, key=known.__getitem__, default="none")
        rows.append([words(called[name]), *(score_cell(x, known.get(stack), stack == best) for stack, x in here.items()),
                     words(best)])  # fmt: skip
    title = f"Which stack on which device, by {criterion.title} (*: best of the device)."
    return [cross_table((*c.stacks, "best"), rows, title)]


def cross_table(heads: Sequence[str], rows: Sequence[Sequence[Cell]], title: str) -> Table:
    """Devices against stacks, or against networks, with a last column of text."""
    return Table(columns=columns("device", *heads, numbers=range(1, len(heads)), spare=(len(heads),)), rows=rows, notes=[title],
                 long=len(rows) > LONG)  # fmt: skip


def score_cell(c: Contender | None, score: float | None, best: bool) -> Cell:
    """A score, marked if it is the best; without one, whether the memory is why."""
    if score is None:
        return words("-" if c is None or c.fits else "does not fit", tone="quiet")
    return Cell(text=f"{show(score, COUNT, 4)}{' *' if best else '  '}", value=score, tone="good" if best else "")


def ranking_table(rankings: Sequence[Ranking], called: Called) -> Table:
    """The places by every criterion, side by side."""
    live = [r for r in rankings if r.order]
    heads, cells = ["place"], [[Cell(text=str(i + 1), value=i) for i in range(max(len(r.order) for r in live))]]
    for r in live:
        heads += [f"by {r.criterion.title}", r.criterion.unit_for(r.order[0]), "before next"]
        cells += [[words(called[x.name]) for x in r.order], list(map(number, r.scores)),
                  [Cell(text=chance(p), value=p) for p in r.ahead]]  # fmt: skip
    after = range(3, len(heads), 3)
    return Table(title="Rankings", columns=columns(*heads, numbers=(*range(2, len(heads), 3), *after), spare=after),
                 rows=list(zip_longest(*cells, fillvalue=words(""))), notes=certainty(rankings), long=len(live[0].order) > LONG,
                 level=2)  # fmt: skip


def price_chart(c: Comparison, called: Called) -> list[Chart]:
    """Speed against price of those that have one, if these are several; a line joins those that none beats in both."""
    known = sorted((x for x in c.contenders if x.price_usd is not None), key=lambda x: (x.price_usd or 0.0, -x.throughput_per_s))
    if len({x.device_name for x in known}) < 2:
        return []
    unit, front, others = rate_unit(c.contenders[0].estimate), list[FrontPoint](), list[FrontPoint]()
    for x in known:
        tip = f"{called[x.name]}: {price_text(x.price)}, {grouped(x.throughput_per_s)} {unit}"
        point = FrontPoint(x=x.price_usd or 0.0, y=x.throughput_per_s, label=called[x.name], tip=tip)
        (others if front and point.y <= front[-1].y else front).append(point)
    note = "Devices whose price is known; a line joins those that no other one beats in both."
    return [front_chart("Speed against price", Axis(title="price", unit="USD"), Axis(title="speed", unit=unit), front, others, {},
                        notes=[note])]  # fmt: skip


def record(c: Comparison) -> list[dict[str, Any]]:
    """The estimates, each with its price, costs, place in every ranking, and the change from the first of several stacks to its
    own, null without; those that cannot run have `cannot_run` only.
    """
    known = {change.after: asdict(change) for change in c.changes}
    more = besides_record(c.all)
    ran = [
        row_record(x, c.workload) | {"ranking": _places(x, c.rankings), "besides_the_device": more,
                                     "stack_change": known.get(x.estimate.stack)}
        for x in c.all
    ]  # fmt: skip
    return [*ran, *({"network": c.network, **asdict(one)} for one in c.excluded)]


def _places(c: Contender, rankings: Sequence[Ranking]) -> dict[str, Any]:
    places: dict[str, Any] = {}
    for r in rankings:
        i = next((i for i, other in enumerate(r.order) if other is c), None)
        places[r.criterion.name] = None if i is None else {
            "place": i + 1, "score": r.scores[i], "before_next": r.ahead[i] if i < len(r.ahead) else None,
            "best": r.best[i], "whole_order": r.whole, "correlation": r.correlation,
            "correlation_with_next": pair_correlation(c, r.order[i + 1], r.correlation) if i < len(r.ahead) else None,
        }  # fmt: skip
    return places


def rows(c: Comparison) -> list[dict[str, Any]]:
    """Those of CSV."""
    return rows_of(c.all, c.workload, c.excluded, c.network)


def csv(c: Comparison) -> str:
    """One row for each device and stack."""
    return rows_csv(rows(c))


def change_blocks(c: StackChange) -> list[Block]:
    """The steps from one stack to the other, then every layer of the second, and what takes part in it.

    The record has keys and sources of each step.
    """
    steps = [[words(one.title), number(one.latency_s, "s"), number(one.saved_s, "s"), percent(one.saved_s / c.before_s, "+.1f")]
             for one in c.steps]  # fmt: skip
    layers = [[words(one.layer), words(", ".join(one.fused)), words(one.kind), number(one.before_s, "s"),
               number(one.after_s, "s"), number(one.before_s - one.after_s, "s")] for one in c.layers]  # fmt: skip
    was, now = show(c.before_s, "s", 3), show(c.after_s, "s", 3)
    title = f"From {c.before} to {c.after}"
    heads = columns("kernel of", "with", "kind", "before", "after", "saved", numbers=(3, 4, 5), spare=(1, 2))
    return [
        Table(title=title, columns=columns("", "latency", "saved", "of the first", numbers=(1, 2, 3)), rows=steps, notes=[
            f"One after the other, from {c.before} ({was}) to {c.after} ({now}), {c.before_s / c.after_s:.2f} times as fast.",
            *([] if steps else ["No value differs that changes a time."])]),
        Table(title=f"{title}, layer by layer", columns=heads, rows=layers, long=len(layers) > 20, level=1,
              notes=[f'Ops under "with" share the kernel that {c.after} launches.']),
    ]  # fmt: skip
