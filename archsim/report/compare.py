"""A comparison of devices at one batch as text: side by side, ranked, by stack and by network."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import COUNT, grouped, show
from archsim.report.compare_cost import cost_text, workload_text
from archsim.report.compare_notes import besides, certainty, chance, copy_note, left_out, price_notes, price_text, software_note
from archsim.report.text import clean, rate_unit, table, task_words
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender
from archsim.study.crosstable import CrossTable, by_network, by_stack
from archsim.study.ranking import Criterion, Ranking

MOST_SIDE_BY_SIDE = 3  # rankings in one block of lines


def comparison_text(c: Comparison) -> str:
    """Devices at one batch in the order of the first ranking, all rankings, costs, and who is left out."""
    found = c.contenders
    parts = [title(c.all, str(c.all[0].estimate.batch)), _side_by_side(found) if found else "no device holds this work"]
    parts += [left_out_text(c), besides(c.all), software_note(c)]
    cross = by_stack(c)
    if cross is not None:
        parts.append(cross_text(cross))
    if len(found) > 1:
        parts += [*_blocks(c.rankings), "\n".join(certainty(c.rankings))]
    if found:
        parts += [cost_text(c), workload_text(c.workload, found), "\n".join(price_notes(c))]
    return "\n\n".join(filter(None, [*parts, copy_note(found)]))


def comparisons_text(comparisons: Sequence[Comparison]) -> str:
    """One or several networks, each on its own, then all of them side by side."""
    parts = [comparison_text(c) for c in comparisons]
    cross = by_network(comparisons)
    return "\n\n\n".join([*parts, *([] if cross is None else [cross_text(cross)])])


def title(contenders: Sequence[Contender], batch: str) -> str:
    """What is asked, in one line."""
    e = contenders[0].estimate
    return f"{clean(e.network)}: {task_words(e)}, batch {batch}, {precisions(contenders)}, {e.fidelity} model"


def precisions(contenders: Sequence[Contender]) -> str:
    """The precision; several where stacks differ in what their users get."""
    return " or ".join(dict.fromkeys(c.estimate.precision for c in contenders))


def left_out_text(c: Comparison) -> str:
    """Those that are not ranked, each with the reason."""
    found = left_out(c.unfit, c.excluded)
    return "\n".join("\n".join([f"{why}:", *(f"  {clean(line)}" for line in lines)]) for why, lines in found)


def _side_by_side(contenders: Sequence[Contender]) -> str:
    e, fastest = contenders[0].estimate, min(c.latency_s for c in contenders)
    rate = rate_unit(e)
    rows = []
    for c in contenders:
        r = c.estimate
        low, high = c.latency_interval_s
        rows.append(
            (clean(c.device_name), r.stack, show(r.clock_hz, "Hz", 3), show(c.latency_s, "s", 3),
             f"{show(low, 's', 3)} to {show(high, 's', 3)}", f"{c.latency_s / fastest:.2f}x", grouped(c.throughput_per_s),
             show(r.power_w, "W", 3), show(c.energy_j, "J", 3), f"{c.throughput_per_w:.3g}", price_text(c.price),
             r.limited_by, show(r.memory_bytes, "B", 3), _errors(c))
        )  # fmt: skip
    head = ("device", "stack", "clock", "latency", f"{100 * e.interval_level:.0f} % interval", "time", rate, "power", "energy",
            f"{rate}/W", "price", "limited by", "memory", "measured")  # fmt: skip
    return table(head, rows, left=2)


def _errors(c: Contender) -> str:
    """The measured time of the same case and stack, with the error of the prediction under its own conditions."""
    e = c.estimate
    for r in e.references:
        if r.stack == e.stack and r.metric in ("latency_s", "throughput_per_s"):
            time = e.batch / r.measured if r.metric == "throughput_per_s" else r.measured
            return f"{show(time, 's', 3)} ({100 * r.error:+.0f} %)"
    return "-"


def criterion_unit(criterion: Criterion, c: Contender) -> str:
    """The unit of a criterion for what the network of a contender counts.

    >>> from types import SimpleNamespace as Some
    >>> from archsim.study.ranking import CRITERIA
    >>> [criterion_unit(criterion, Some(estimate=Some(sample="img"))) for criterion in CRITERIA]
    ['img/s', 'img/s/W', 'img/s/USD', 'USD/M img']
    """
    rate = rate_unit(c.estimate)
    return criterion.unit.format(rate=rate, sample=rate.removesuffix("/s"))


def _blocks(rankings: Sequence[Ranking]) -> list[str]:
    """The rankings that rank anything, a few side by side."""
    live = [r for r in rankings if r.order]
    width = MOST_SIDE_BY_SIDE if len(live) <= MOST_SIDE_BY_SIDE else (len(live) + 1) // 2
    return [_ranks(live[i : i + width]) for i in range(0, len(live), width)]


def _ranks(rankings: Sequence[Ranking]) -> str:
    """Rankings side by side; each place with the probability that it is before the next one."""
    head, places = ["place"], max(len(r.order) for r in rankings)
    rows = [[str(i + 1)] for i in range(places)]
    for r in rankings:
        head += [f"by {r.criterion.title}", criterion_unit(r.criterion, r.order[0]), "before next"]
        for i, row in enumerate(rows):
            row += _place(r, i)
    return table(head, rows, left=(0, *range(1, len(head), 3)))


def _place(r: Ranking, i: int) -> list[str]:
    if i >= len(r.order):
        return ["", "", ""]
    return [r.order[i].name, show(r.scores[i], COUNT, 3), chance(r.ahead[i]) if i < len(r.ahead) else ""]


def cross_text(cross: CrossTable) -> str:
    """A table of devices and stacks, or of devices and networks, with the best marked."""
    rows = [(row.name, *(_cell(value, why, best) for value, why, best in row.cells), row.note) for row in cross.rows]
    return f"{cross.title}:\n" + table(("device", *cross.columns, cross.note), rows)


def _cell(value: float | None, why: str, best: bool) -> str:
    return why if value is None else f"{value:.4g}{' *' if best else '  '}"
