"""What devices over batches say: who is the best at which batch, time per sample, where one overtakes another, ops that gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.answers.batches import verdict
from archsim.answers.compare import COPIES, asked, title
from archsim.answers.contenders import besides, besides_record, own, rows_csv, rows_of
from archsim.answers.costs import FIRST, LONG, Called, money_facts, price_rows, work_table
from archsim.answers.front import thin
from archsim.base.units import show
from archsim.render.blocks import Axis, Block, Cell, Chart, Facts, Note, Series, Table, Verdict, columns, number, words
from archsim.study.batches import BatchCurve, Payoff, overtakings
from archsim.study.comparison import Comparison, CurveComparison, excluded_line
from archsim.study.contender import Contender, job_totals
from archsim.study.price import Workload
from archsim.study.standing import best_over, software_note, titles

SCHEMA = "archsim-curves/1"
MOST_ACROSS = 5  # devices that have columns of their own; of more, each has a row
MOST_COLOURED = 8  # lines of a chart; of more, those that are the best at some batch
MOST_MARKS = 12  # batches that an axis names
MOST_BANDS = 3  # devices whose intervals a chart has
MOST_SAID = 3  # crossings of those that are the fastest somewhere, on the first screen
NEARLY = 0.9  # of the highest rate


def sections(c: CurveComparison) -> list[Block]:
    """The blocks of a comparison over batches."""
    first = [curve.points[0] for curve in c.curves]
    called = titles(first)
    ahead = {r.order[0].name for one in c.best for r in one.rankings if r.criterion.name == "speed" and r.order}
    met = overtakings([one for one in c.crossings if {one.winner, one.loser} <= ahead], called)
    found: list[Block] = [
        _verdict(c, called, met), _times(c, called), _chart(c, called),
        *work_table(c.best[0].workload, quickest_points(c), called),
        *([Facts(rows=[("cannot run", [excluded_line(one) for one in c.excluded])])] if c.excluded else []),
    ]
    prices = next((one for one in c.best if one.contenders), c.best[0])
    alone = len(c.curves) == 1
    found += [
        Facts(title="By device", level=0 if alone else 2,
              rows=[*((called[curve.name], _reach(curve)) for curve in c.curves),
                    ("crossings", overtakings(c.crossings, called)), ("left out", list(c.notes))]),
        Facts(title="How far to trust it",
              rows=[*besides(first, called), ("software", software_note(c.best[0], called)),
                    *price_rows(prices, called)]),
        *(_payoffs(called[home], called[guest], rows) for home, guest, rows in c.pays if rows),
    ]  # fmt: skip
    found += [money_facts(prices, called)] if prices.contenders else []
    return [*found, *([Note(text=COPIES, level=2)] if first[0].copies else [])]


def _verdict(c: CurveComparison, called: Called, met: Sequence[str]) -> Verdict:
    """Who is the best at which batch, and who overtakes whom; of a single device which batch is the best."""
    first, batches = [curve.points[0] for curve in c.curves], c.curves[0].batches
    criteria = [r.criterion for r in c.best[0].rankings]
    lines = [line for one in criteria if (line := best_over(c, one, called)) is not None]
    said = list(met[:MOST_SAID])
    if len(c.curves) == 1:
        lines, said = [], [verdict([p.estimate for p in c.curves[0].points])]
    elif not lines:
        said = ["No device holds this work at any of these batches."]
    return Verdict(title=title(first, called), asked=asked(first, f"batch {batches[0]} to {batches[-1]}"), lines=lines,
                   sentences=said)  # fmt: skip


def _reach(curve: BatchCurve) -> str:
    """From which batch on nearly all of the rate is reached, and the largest batch that fits."""
    near = [p.estimate.batch for p, share in zip(curve.points, curve.efficiency, strict=True) if p.fits and share >= NEARLY]
    reached = f"{100 * NEARLY:.0f} % of its highest rate from batch {near[0]}; " if near else ""
    return f"{reached}{curve.limit}"


def _times(c: CurveComparison, called: Called) -> Table:
    """Time per sample: a row for each batch, or for each device where these are many; the fastest of a batch marked."""
    curves = sorted(c.curves, key=lambda curve: -max((p.throughput_per_s for p in curve.points if p.fits), default=0.0))
    names, batches = [called[curve.name] for curve in curves], c.curves[0].batches
    known = [[time if p.fits else math.inf for p, time in zip(curve.points, curve.per_sample_s, strict=True)] for curve in curves]
    best = [min(column) for column in zip(*known, strict=True)]
    cells = [[words("NO", tone="bad") if time == math.inf else number(time, "s", tone="good" if time == top else "")
              for time, top in zip(row, best, strict=True)] for row in known]  # fmt: skip
    title = f"Time per {curves[0].points[0].estimate.sample}"
    notes = ["NO: does not fit the memory."] if any(math.inf in row for row in known) else []
    if len(curves) > MOST_ACROSS:
        return Table(title=f"{title} at batch", columns=columns("device", *map(str, batches), numbers=range(1, len(batches) + 1)),
                     rows=[[words(name), *row] for name, row in zip(names, cells, strict=True)], first=range(FIRST),
                     long=len(curves) > LONG, notes=notes)  # fmt: skip
    rows = [[Cell(text=str(batch), value=batch), *row] for batch, *row in zip(batches, *cells, strict=True)]
    return Table(title=f"{title}, by batch", columns=columns("batch", *names, numbers=range(1, len(names) + 1)), rows=rows,
                 first=thin(range(len(rows)), FIRST), notes=notes)  # fmt: skip


def _chart(c: CurveComparison, called: Called) -> Chart:
    """Time per sample against batch, with intervals of few devices; of many devices, those that are the best at some batch."""
    best = {r.order[0].name for one in c.best for r in one.rankings if r.order}
    curves = c.curves if len(c.curves) <= MOST_COLOURED else [curve for curve in c.curves if curve.name in best]
    few, series = len(curves) <= MOST_BANDS, []
    for curve in curves:
        name, points = called[curve.name], [*zip(curve.batches, curve.points, curve.per_sample_s, strict=True)]
        low, high = ([p.latency_interval_s[i] / batch for batch, p, _ in points] if few else () for i in (0, 1))
        tips = [f"{name}, batch {batch}: {show(time, 's', 3)}" for batch, _, time in points]
        series.append(Series(name=name, x=curve.batches, y=curve.per_sample_s, low=low, high=high, tips=tips,
                             hollow=[not p.fits for p in curve.points]))  # fmt: skip
    notes = ["A hollow mark does not fit the memory of the device."] if any(any(s.hollow) for s in series) else []
    notes += [f"Bands: {100 * c.curves[0].points[0].estimate.interval_level:.0f} % intervals."] if few else []
    left = len(c.curves) - len(curves)
    notes += [f"{left} devices that are the best at no batch are not drawn."] if left else []
    batches = c.curves[0].batches
    return Chart(title="Time per sample", series=series, notes=notes, y=Axis(title="time per sample", unit="s"),
                 x=Axis(title="batch", log=True, marks=batches if len(batches) <= MOST_MARKS else ()))  # fmt: skip


def _payoffs(home: str, guest: str, rows: Sequence[Payoff]) -> Table:
    """From which batch on each op gains."""
    def begins(batch: int | None) -> Cell:
        return words("never" if batch is None else f"from batch {batch}")

    moved = sum(r.alone is not None for r in rows)
    note = (f"From which batch on {guest} is faster than {home}: with the data of the op already there, and with its inputs and "
            f"output copied over the link, which {moved} of {len(rows)} ops repay.")  # fmt: skip
    return Table(title=f"Ops that gain on {guest} beside {home}", notes=[note], long=len(rows) > LONG, level=2,
                 columns=columns("op", "kind", "data on the device", "moved alone"),
                 rows=[[words(r.op), words(r.kind), begins(r.resident), begins(r.alone)] for r in rows])  # fmt: skip


def quickest_points(c: CurveComparison) -> list[Contender]:
    """Each device at the batch at which it does the work in the least time; none without work of a given size."""
    work = c.best[0].workload
    if work is None:
        return []
    each = [[p for p in curve.points if p.fits] for curve in c.curves]
    return [min(points, key=lambda p: job_totals(p, work).time_s) for points in each if points]


def record(c: CurveComparison) -> dict[str, Any]:
    """One object: a curve for each device, the best at each batch, the crossings, and from which batch on each op gains."""
    first = [curve.points[0] for curve in c.curves]
    return {
        "schema": SCHEMA,
        "network": c.network,
        "copies": first[0].copies,
        "curves": [_curve(curve, c.best[0].workload) for curve in c.curves],
        "best": [_best_record(one, curve_batch) for one, curve_batch in zip(c.best, c.curves[0].batches, strict=True)],
        "crossings": [asdict(crossing) for crossing in c.crossings],
        "payoffs": [{"home": home, "guest": guest, "ops": [asdict(row) for row in rows]} for home, guest, rows in c.pays],
        "besides_the_device": besides_record(first),
        "cannot_run": [asdict(one) for one in c.excluded],
        "notes": list(c.notes),
    }


def _best_record(c: Comparison, batch: int) -> dict[str, Any]:
    return {"batch": batch} | {
        r.criterion.name: {"name": r.order[0].name, "score": r.scores[0], "probability": r.best[0]} if r.order else None
        for r in c.rankings
    }


def _curve(c: BatchCurve, work: Workload | None) -> dict[str, Any]:
    points = [
        {"batch": p.estimate.batch, **own(p, work), "latency_interval_s": list(p.estimate.latency_interval_s),
         "per_sample_s": time, "efficiency": share, "fits": p.fits, "memory_bytes": p.estimate.memory_bytes}
        for p, time, share in zip(c.points, c.per_sample_s, c.efficiency, strict=True)
    ]  # fmt: skip
    runs = [{"curvature": name, "from": low, "to": high} for name, low, high in c.runs]
    first = c.points[0]
    return {"hardware": first.estimate.hardware, "hardware_name": first.full_name, "name": c.name, "stack": first.estimate.stack,
            "max_batch": c.max_batch, "points": points, "curvature": runs}  # fmt: skip


def rows(c: CurveComparison) -> list[dict[str, Any]]:
    """Those of CSV."""
    return rows_of([p for curve in c.curves for p in curve.points], c.best[0].workload, c.excluded, c.network)


def csv(c: CurveComparison) -> str:
    """One row for each device and batch."""
    return rows_csv(rows(c))
