"""What devices over batches say: who is the best at which batch, time per sample, where one overtakes another, ops that gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from archsim.answers.compare import COPIES, asked, title
from archsim.answers.contenders import Called, CsvRows, besides, besides_record, excluded_record, own, rows_csv
from archsim.answers.costs import money_facts, price_rows, work_table
from archsim.base.units import COUNT, show
from archsim.render.blocks import Axis, Block, Cell, Chart, Column, Facts, Note, Series, Table, Verdict, number, words
from archsim.study.batches import CURVATURE, BatchCurve
from archsim.study.comparison import Comparison, CurveComparison, excluded_line
from archsim.study.contender import Contender, job_totals
from archsim.study.crossover import Payoff, crossing_lines
from archsim.study.difference import software_note
from archsim.study.standing import best_over, chance, titles
from archsim.study.usage import Workload

SCHEMA = "archsim-curves/1"
MOST_ACROSS = 5  # devices that have columns of their own; of more, each has a row
MOST_COLOURED = 8  # lines of a chart; of more, those that are the best at some batch
MOST_MARKS = 12  # batches that an axis names
MOST_BANDS = 3  # devices whose intervals a chart has
MOST_SAID = 3  # crossings of those that are the fastest somewhere, on the first screen
FIRST = 10  # rows on the first screen
NEARLY = 0.9  # of the highest rate


def sections(c: CurveComparison) -> list[Block]:
    """The blocks of a comparison over batches."""
    first = [curve.points[0] for curve in c.curves]
    called = titles(first)
    ahead = {r.order[0].name for one in c.best for r in one.rankings if r.criterion.name == "speed" and r.order}
    leaders = [one for one in c.crossings if one.winner in ahead and one.loser in ahead]
    met = crossing_lines(leaders, c.curves, called, overtaken=True)
    found: list[Block] = [
        _verdict(c, called, met), _times(c, called), _chart(c, called),
        *work_table(c.best[0].workload, quickest_points(c), called, level=0),
        *([Facts(rows=[("cannot run", [excluded_line(one) for one in c.excluded])])] if c.excluded else []),
    ]
    prices = next((one for one in c.best if one.contenders), c.best[0])
    alone = len(c.curves) == 1
    found += [
        Facts(title="By device", rows=[(called[curve.name], _reach(curve)) for curve in c.curves], level=0 if alone else 2),
        Facts(title="How far to trust it",
              rows=[*besides(first, called), ("software", software_note(c.best[0], called)),
                    *price_rows(prices, called)]),
        *([] if alone else [_best(c, called)]),
        Facts(title="Crossings", level=2,
              rows=[("faster", crossing_lines(c.crossings, c.curves, called)), ("left out", list(c.notes))]),
        Facts(title="Curvature", rows=[*((called[x.name], x.curvature) for x in c.curves), ("means", CURVATURE)], level=2),
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
        lines, said = [], [_best_batch(c.curves[0])]
    elif not lines:
        said = ["No device holds this work at any of these batches."]
    return Verdict(title=title(first, called), asked=asked(first, f"batch {batches[0]} to {batches[-1]}"), lines=lines,
                   sentences=said)  # fmt: skip


def _best_batch(curve: BatchCurve) -> str:
    """What a larger batch gains on a device."""
    fitting = [p for p in curve.points if p.fits]
    if not fitting:
        return "No batch fits."
    best = max(fitting, key=lambda p: p.throughput_per_s)
    sample, first = best.estimate.sample, fitting[0]
    energy = best.throughput_per_w / first.throughput_per_w
    rate = best.throughput_per_s / first.throughput_per_s
    return (f"Batch {best.estimate.batch} does {rate:.3g} times the {sample}/s of batch {first.estimate.batch}, and {energy:.3g} "
            f"times the {sample} per joule.")  # fmt: skip


def _reach(curve: BatchCurve) -> str:
    """From which batch on nearly all of the rate is reached, and the largest batch that fits."""
    near = [p.estimate.batch for p, share in zip(curve.points, curve.efficiency, strict=True) if p.fits and share >= NEARLY]
    reached = f"{100 * NEARLY:.0f} % of its highest rate from batch {near[0]}; " if near else ""
    return f"{reached}{curve.limit}"


def _times(c: CurveComparison, called: Called) -> Table:
    """Time per sample: a row for each batch, or for each device where these are many; the fastest of a batch marked."""
    curves, batches = c.curves, c.curves[0].batches
    best = [min((curve.per_sample_s[i] for curve in curves if curve.points[i].fits), default=None) for i in range(len(batches))]
    cells = [[_time(time, p.fits, time == top and len(curves) > 1)
              for time, p, top in zip(curve.per_sample_s, curve.points, best, strict=True)] for curve in curves]  # fmt: skip
    lacking = [] if all(p.fits for curve in curves for p in curve.points) else ["NO: does not fit the memory."]
    name = f"Time per {curves[0].points[0].estimate.sample}"
    if len(curves) <= MOST_ACROSS:
        head = [Column(head="batch"), *(Column(head=called[curve.name], kind="number") for curve in curves)]
        rows = [[Cell(text=str(batch), value=batch), *row] for batch, row in zip(batches, zip(*cells, strict=True), strict=True)]
        few = [*range(FIRST - 1), len(rows) - 1] if len(rows) > FIRST + 2 else []
        return Table(title=f"{name}, by batch", columns=head, rows=rows, first=few, notes=lacking)
    order = sorted(range(len(curves)), key=lambda i: max(p.throughput_per_s if p.fits else 0.0 for p in curves[i].points),
                   reverse=True)  # fmt: skip
    head = [Column(head="device"), *(Column(head=str(batch), kind="number") for batch in batches)]
    return Table(title=f"{name} at batch", columns=head, rows=[[words(called[curves[i].name]), *cells[i]] for i in order],
                 first=range(FIRST) if len(order) > FIRST + 2 else (), long=len(order) > 20, notes=lacking)  # fmt: skip


def _time(seconds: float, fits: bool, best: bool) -> Cell:
    return number(seconds, "s", tone="good" if best else "") if fits else words("NO", tone="bad")


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


def _best(c: CurveComparison, called: Called) -> Table:
    """For each batch and criterion, the best device of those that fit, its score, and the probability that it is."""
    criteria = [r.criterion for r in c.best[0].rankings]
    head, rows = [Column(head="batch")], []
    for k in criteria:
        unit = k.unit_for(c.curves[0].points[0])
        head += [Column(head=f"by {k.title}"), Column(head=unit, kind="number"), Column(head="sure", kind="number", needed=False)]
    for batch, one in zip(c.curves[0].batches, c.best, strict=True):
        row = [Cell(text=str(batch), value=batch)]
        for k in criteria:
            r = next(r for r in one.rankings if r.criterion is k)
            row += [words(called[r.order[0].name]), Cell(text=show(r.scores[0], COUNT, 3), value=r.scores[0]),
                    words("the only one" if len(r.order) == 1 else chance(r.best[0]))] if r.order else [words("-")] * 3
        rows.append(row)
    return Table(title="Best of those that fit", columns=head, rows=rows, level=2)


def _payoffs(home: str, guest: str, rows: Sequence[Payoff]) -> Table:
    """From which batch on each op gains."""
    def begins(batch: int | None) -> Cell:
        return words("never", tone="quiet") if batch is None else Cell(text=f"from batch {batch}", value=batch)

    moved = sum(r.alone is not None for r in rows)
    note = (f"From which batch on {guest} is faster than {home}: with the data of the op already there, and with its inputs and "
            f"output copied over the link, which {moved} of {len(rows)} ops repay.")  # fmt: skip
    return Table(title=f"Ops that gain on {guest} beside {home}", notes=[note], long=len(rows) > 20, level=2,
                 columns=[Column(head=head) for head in ("op", "kind", "data on the device", "moved alone")],
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
        "cannot_run": [excluded_record(one) for one in c.excluded],
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


def rows(c: CurveComparison) -> CsvRows:
    """All that become rows of CSV."""
    return CsvRows([p for curve in c.curves for p in curve.points], [(c.network, one) for one in c.excluded], c.best[0].workload)


def csv(c: CurveComparison) -> str:
    """One row for each device and batch."""
    return rows_csv([rows(c)])
