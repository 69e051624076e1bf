"""A comparison of devices as text: side by side, ranked, over batches, and crossings."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.report.text import clean, rate_unit, table
from archsim.study.batches import BatchCurve
from archsim.study.crossover import CERTAIN, Crossing, Payoff
from archsim.study.ranking import SAME_STACK, Contender, Ranking

ONLY = "with their data already on the device"
CURVATURE = (
    "Curvature of the batch time. Falling: each further sample adds less time than the one before; rising: more; straight: equal."
)


def comparison_text(contenders: Sequence[Contender], rankings: Sequence[Ranking]) -> str:
    """Devices at one batch in the order of the first ranking, and all rankings below."""
    parts = [_title(contenders[0], str(contenders[0].estimate.batch)), _side_by_side(contenders)]
    if len(contenders) > 1:
        parts += [_ranks(rankings), certainty(rankings)]
    notes = [_price_note(contenders), _copy_note(contenders)]
    return "\n\n".join([*parts, *filter(None, notes)])


def curves_text(
    curves: Sequence[BatchCurve], found: Sequence[Crossing], pays: Sequence[tuple[str, str, Sequence[Payoff]]]
) -> str:
    """Devices over batches: time per sample, efficiency and curvature, crossings, and ops that gain or never do."""
    first = curves[0].points[0]
    batches = curves[0].batches
    parts = [_title(first, f"{batches[0]} to {batches[-1]}"), _over_batches(curves)]
    parts += ["\n".join([*(curvature_line(c) for c in curves), CURVATURE])]
    if found:
        parts.append("\n".join(crossing_line(c, curves) for c in found))
    parts += [_payoff(home, guest, rows) for home, guest, rows in pays if rows]
    notes = [_copy_note([c.points[0] for c in curves])]
    return "\n\n".join([*filter(None, parts), *filter(None, notes)])


def _title(c: Contender, batch: str) -> str:
    e = c.estimate
    return f"{clean(e.network)}: {e.task}, batch {batch}, {e.precision}, {e.fidelity} model"


def _side_by_side(contenders: Sequence[Contender]) -> str:
    e, fastest = contenders[0].estimate, min(c.latency_s for c in contenders)
    rate = rate_unit(e)
    rows = []
    for c in contenders:
        r = c.estimate
        low, high = (bound * c.latency_s / r.latency_s for bound in r.latency_interval_s)
        rows.append(
            (r.hardware, r.stack, show(r.clock_hz, "Hz", 3), show(c.latency_s, "s", 3),
             f"{show(low, 's', 3)} to {show(high, 's', 3)}", f"{c.latency_s / fastest:.2f}x", f"{c.throughput_per_s:.4g}",
             show(r.power_w, "W", 3), show(c.energy_j, "J", 3), f"{c.throughput_per_w:.3g}", _price(c),
             r.limited_by, "yes" if r.fits else "NO", _errors(c))
        )  # fmt: skip
    head = ("device", "stack", "clock", "latency", f"{100 * e.interval_level:.0f} % interval", "time", rate, "power", "energy",
            f"{rate}/W", "price", "limited by", "fits", "measured")  # fmt: skip
    return table(head, rows, left=2)


def _price(c: Contender) -> str:
    if c.price_usd is None:
        return "-"
    return f"{c.price_usd:.0f} USD" + ("?" if c.price_kind == "assumed" else "")


def _errors(c: Contender) -> str:
    """The measured time of the same case and stack, with the error of the prediction under its own conditions."""
    e = c.estimate
    for r in e.references:
        if r.stack == e.stack and r.metric in ("latency_s", "throughput_per_s"):
            rate = r.metric == "throughput_per_s"
            time, error = (e.batch / r.measured, r.measured / r.predicted - 1) if rate else (r.measured, r.error)
            return f"{show(time, 's', 3)} ({100 * error:+.0f} %)"
    return "-"


def _ranks(rankings: Sequence[Ranking]) -> str:
    """The rankings side by side; each place with the probability that it is before the next one."""
    rate = rate_unit(rankings[0].order[0].estimate)
    head, places = ["place"], max(len(r.order) for r in rankings)
    rows = [[str(i + 1)] for i in range(places)]
    for r in rankings:
        head += [f"by {r.criterion.title}", rate + r.criterion.unit, "before next"]
        for i, row in enumerate(rows):
            row += _place(r, i)
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    to_left = {0} | set(range(1, len(head), 3))
    lines = [_aligned(line, widths, to_left) for line in (head, ["-" * w for w in widths], *rows)]
    return "\n".join(lines)


def _place(r: Ranking, i: int) -> list[str]:
    if i >= len(r.order):
        return ["", "", ""]
    ahead = f"{100 * r.ahead[i]:.0f} %" if i < len(r.ahead) else ""
    return [r.order[i].name, f"{r.scores[i]:.3g}", ahead]


def _aligned(line: Sequence[str], widths: Sequence[int], to_left: set[int]) -> str:
    cells = [c.ljust(w) if i in to_left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))]
    return "  ".join(cells).rstrip()


def certainty(rankings: Sequence[Ranking]) -> str:
    """The probability of each whole order, and the assumptions behind it."""
    ranked = [r for r in rankings if len(r.order) > 1]
    whole = ", ".join(f"by {r.criterion.title} {100 * r.whole:.0f} %" for r in ranked)
    best = ", ".join(f"{r.order[0].name} {100 * r.best[0]:.0f} % by {r.criterion.title}" for r in ranked)
    r = rankings[0].correlation
    shared = "assumed independent" if r == 0 else f"assumed to have the correlation {r:g}"
    lines = [f"whole order right: {whole}", f"best of all: {best}",
             f"Errors of two devices are {shared} (--correlation); a shared error does not change their order."]  # fmt: skip
    if all(r.shared is not None for r in ranked):
        likely = ", ".join(f"by {r.criterion.title} {100 * (r.shared or 0.0):.0f} %" for r in ranked)
        lines.append(f"Measured GPUs with one stack had a correlation of {SAME_STACK:g}; whole order right with that: {likely}")
    return "\n".join(lines)


def _price_note(contenders: Sequence[Contender]) -> str:
    missing = [c.name for c in contenders if c.price_usd is None]
    assumed = [c.name for c in contenders if c.price_kind == "assumed"]
    lines = []
    if missing:
        lines.append(f"no launch price is known of {', '.join(missing)}: not ranked by dollar (market.price of a spec)")
    if assumed:
        lines.append(f"USD?: no list price of {', '.join(assumed)} is published; the spec assumes one")
    return "\n".join(lines)


def _copy_note(contenders: Sequence[Contender]) -> str:
    if not contenders[0].copies:
        return ""
    return "Times include copying inputs from host memory and the results of an inference back; --no-copies leaves that out."


def _over_batches(curves: Sequence[BatchCurve]) -> str:
    head = ["batch"]
    rows = [[str(batch)] for batch in curves[0].batches]
    for c in curves:
        head += [c.name, "of best", "fits"]
        for row, p, time, share in zip(rows, c.points, c.per_sample_s, c.efficiency, strict=True):
            row += [show(time, "s", 3), f"{100 * share:.0f} %", "" if p.estimate.fits else "NO"]
    return "Time per sample, and throughput as a share of the best that fits:\n" + table(head, rows, left=0)


def curvature_line(c: BatchCurve) -> str:
    """The curvature of one device, and its largest batch."""
    limit = "any batch fits" if c.max_batch is None else f"largest batch that fits {c.max_batch}"
    if not c.bends:
        return f"{c.name}: {limit}"
    parts = [f"{name} from {low} to {high}" for name, low, high in c.runs]
    return f"{c.name}: curvature {', '.join(parts)}; {limit}"


def crossing_line(c: Crossing, curves: Sequence[BatchCurve]) -> str:
    """A crossing as a sentence."""
    last = curves[0].batches[-1]
    sure = f"{100 * CERTAIN:.0f} % sure from batch {c.sure}" if c.sure else f"not {100 * CERTAIN:.0f} % sure up to batch {last}"
    if c.start:
        return f"{c.winner} is faster than {c.loser} from the first batch, {c.batch} ({sure})"
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
