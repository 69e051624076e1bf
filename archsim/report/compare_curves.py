"""Devices over batches as text: time per sample, the best at each batch, curvature, crossings, and ops that gain."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import COUNT, show
from archsim.report.compare import criterion_unit, title
from archsim.report.compare_cost import quickest, workload_text
from archsim.report.compare_notes import besides, chance, copy_note, left_out, price_notes, software_note, usage_notes
from archsim.report.text import clean, table
from archsim.study.batches import BatchCurve
from archsim.study.comparison import Comparison, CurveComparison
from archsim.study.contender import Contender
from archsim.study.crossover import CERTAIN, Crossing, Payoff
from archsim.study.ranking import Criterion, Ranking

ONLY = "with their data already on the device"
CURVATURE = (
    "Curvature of the batch time. Falling: each further sample adds less time than the one before; rising: more; straight: equal."
)
MOST_ACROSS = 4  # devices that have columns of their own; of more, each has a row


def curves_text(c: CurveComparison, ops: bool = False) -> str:
    """Devices over batches: time per sample, the best of each batch, curvature, crossings; with `ops` also those that gain."""
    curves, batches = c.curves, c.curves[0].batches
    first = [curve.points[0] for curve in curves]
    wide = len(curves) > MOST_ACROSS
    parts = [title(first, f"{batches[0]} to {batches[-1]}"), _down(curves) if wide else _across(curves)]
    parts += [besides(first), software_note(c.best[0])]
    parts += ["\n".join(f"{why}: {clean(line)}" for why, lines in left_out([], c.excluded) for line in lines)]
    parts += [best_text(c) if len(curves) > 1 else "", workload_text(c.best[0].workload, quickest_points(c))]
    bent = [CURVATURE] if any(curve.bends for curve in curves) else []
    parts.append("\n".join([*map(curvature_line, curves), *bent]))
    if c.crossings:
        parts.append("\n".join(crossing_lines(c.crossings, curves)))
    parts += [_payoff(home, guest, rows) for home, guest, rows in c.pays if rows and ops]
    return "\n\n".join(filter(None, [*parts, "\n".join(curve_notes(c)), copy_note(first)]))


def quickest_points(c: CurveComparison) -> list[Contender]:
    """Each device at the batch at which it does the work in the least time; none without work of a given size."""
    work = c.best[0].workload
    found = [] if work is None else [quickest(work, curve.points) for curve in c.curves]
    return [point for point in found if point is not None]


def curve_notes(c: CurveComparison) -> list[str]:
    """What was left out, prices, and what was assumed of the use."""
    found = [one for one in c.best if one.contenders]
    lines = list(c.notes) + (price_notes(found[0]) if found else [])
    if found and any(r.criterion.usage for r in found[0].rankings):
        lines += usage_notes(found[0].contenders)
    return lines


def _across(curves: Sequence[BatchCurve]) -> str:
    head = ["batch"]
    rows = [[str(batch)] for batch in curves[0].batches]
    for c in curves:
        head += [c.name, "of best", "fits"]
        for row, p, time, share in zip(rows, c.points, c.per_sample_s, c.efficiency, strict=True):
            row += [show(time, "s", 3), f"{100 * share:.0f} %", ""] if p.fits else ["-", "-", "NO"]
    return "Time per sample, and throughput as a share of the best that fits:\n" + table(head, rows, left=0)


def _down(curves: Sequence[BatchCurve]) -> str:
    rows = [(c.name, *(show(time, "s", 3) if p.fits else "NO" for p, time in zip(c.points, c.per_sample_s, strict=True)))
            for c in curves]  # fmt: skip
    return "Time per sample (NO: does not fit) at batch:\n" + table(("device", *map(str, curves[0].batches)), rows)


def best_head(c: CurveComparison) -> tuple[str, ...]:
    """The columns of the table of the best devices: each criterion with its unit and the probability."""
    point = c.curves[0].points[0]
    heads = [(f"by {k.title}", criterion_unit(k, point), "probability") for k in _criteria(c.best)]
    return ("batch", *(word for head in heads for word in head))


def best_rows(c: CurveComparison) -> list[tuple[str, ...]]:
    """For each batch, the best device by each criterion among those that fit."""
    rows = []
    for batch, one in zip(c.curves[0].batches, c.best, strict=True):
        row = [str(batch)]
        for k in _criteria(c.best):
            r = next(r for r in one.rankings if r.criterion is k)
            row += [r.order[0].name, show(r.scores[0], COUNT, 3), _sure(r)] if r.order else ["-", "-", "-"]
        rows.append(tuple(row))
    return rows


def _sure(r: Ranking) -> str:
    return "the only one" if len(r.order) == 1 else chance(r.best[0])


def best_text(c: CurveComparison) -> str:
    """The best of those that fit at each batch, with the probability that it is."""
    rows, head = best_rows(c), best_head(c)
    return "Best of those that fit:\n" + table(head, rows, left=0)


def _criteria(best: Sequence[Comparison]) -> list[Criterion]:
    return [r.criterion for r in best[0].rankings]


def curvature_line(c: BatchCurve) -> str:
    """The curvature of one device, and its largest batch."""
    limit = "any batch fits" if c.max_batch is None else f"largest batch that fits {c.max_batch}"
    if not c.bends:
        return f"{c.name}: {limit}"
    parts = [f"{name} from {low} to {high}" for name, low, high in c.runs]
    return f"{c.name}: curvature {', '.join(parts)}; {limit}"


def crossing_lines(crossings: Sequence[Crossing], curves: Sequence[BatchCurve]) -> list[str]:
    """Crossings as sentences; of one device that is faster than several from the first batch on, one."""
    ahead: dict[str, list[str]] = {}
    for c in crossings:
        if c.start and c.batch == curves[0].batches[0]:
            ahead.setdefault(c.winner, []).append(c.loser)
    many = {winner: losers for winner, losers in ahead.items() if len(losers) > 1}
    lines = [f"{winner} is faster than {', '.join(losers)} from the first batch" for winner, losers in many.items()]
    return lines + [crossing_line(c, curves) for c in crossings if not (c.start and c.loser in many.get(c.winner, ()))]


def crossing_line(c: Crossing, curves: Sequence[BatchCurve]) -> str:
    """A crossing as a sentence."""
    fitting = [{p.estimate.batch for p in curve.points if p.fits} for curve in curves if curve.name in (c.winner, c.loser)]
    shared = sorted(set.intersection(*fitting))
    level = f"{100 * CERTAIN:.0f} % sure"
    sure = f"{level} from batch {c.sure}" if c.sure else f"not {level} up to batch {shared[-1]}"
    if c.start:
        words = "the first batch" if c.batch == curves[0].batches[0] else "the first batch that fits both"
        return f"{c.winner} is faster than {c.loser} from {words}, {c.batch} ({sure})"
    return f"{c.winner} overtakes {c.loser} at batch {c.batch} ({sure})"


def _payoff(home: str, guest: str, rows: Sequence[Payoff]) -> str:
    never = [r.op for r in rows if r.resident is None]
    only = [r for r in rows if r.resident is not None and r.alone is None]
    earliest = min((r.resident for r in rows if r.resident is not None), default=0)
    begins = ["" if r.resident == earliest else f" (from batch {r.resident})" for r in only]
    moved = sum(r.alone is not None for r in rows)
    lines = [f"of {len(rows)} ops, {moved} are faster on {guest} than on {home} even if their inputs and output cross the link"]
    lines.append(f"  faster only {ONLY}: " + (_listed([r.op + begin for r, begin in zip(only, begins, strict=True)]) or "none"))
    lines.append("  never faster: " + (_listed(never) or "none"))
    return "\n".join(lines)


def _listed(names: Sequence[str], most: int = 30) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(clean, names[:most])) + more
