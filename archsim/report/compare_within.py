"""Devices at the largest batch that meets conditions, as text and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from archsim.base.units import grouped, show
from archsim.report.compare import precisions
from archsim.report.compare_data import comparison_record
from archsim.report.compare_notes import besides, copy_note, left_out, price_notes, software_note, usage_notes
from archsim.report.text import clean, rate_unit, table, task_words
from archsim.study.within import HOW, BestStack, Held


def held_text(h: Held) -> str:
    """The devices that meet the conditions in the order of the first ranking, those that do not, and faster software."""
    c = h.comparison
    e, where = c.all[0].estimate, " and ".join(h.where)
    parts = [f"{clean(c.network)}: {task_words(e)}, the largest batch with {where}, {precisions(c.all)}, {e.fidelity} model"]
    parts.append(_table(h) if c.contenders else f"no device reaches {where}")
    if c.unfit:
        short = [f"  {clean(x.name)}: {said}" for x, said in zip(c.unfit, h.missed, strict=True)]
        parts.append("\n".join(["closest of those that do not reach it:", *short]))
    parts += ["\n".join(["cannot run:", *(f"  {clean(line)}" for line in lines)]) for _, lines in left_out((), c.excluded)]
    parts.append("\n".join(map(hint_line, h.best_stacks)))
    notes = [*price_notes(c), *usage_notes(c.contenders)] if c.contenders else []
    return "\n\n".join(filter(None, [*parts, besides(c.all), software_note(c), "\n".join([*notes, HOW]), copy_note(c.all)]))


def _table(h: Held) -> str:
    found = h.comparison.contenders
    rate = rate_unit(found[0].estimate)
    sample = rate.removesuffix("/s")
    rows = [
        (clean(x.device_name), x.estimate.stack, str(x.estimate.batch), show(x.latency_s, "s", 3), grouped(x.throughput_per_s),
         show(x.energy_j / x.latency_s, "W", 3), show(x.energy_j / x.estimate.batch, "J", 3), f"{x.throughput_per_w:.3g}",
         "-" if x.usd_per_million is None else f"{x.usd_per_million:.3g}", show(x.estimate.memory_bytes, "B", 3))
        for x in found
    ]  # fmt: skip
    head = ("device", "stack", "batch", "latency", rate, "power", f"energy/{sample}", f"{rate}/W", f"USD/M {sample}", "memory")
    return table(head, rows, left=2)


def hint_line(best: BestStack) -> str:
    """Faster software as a sentence."""
    return (f"{best.hardware} with {best.stack} {best.precision}: predicted {best.ratio:.1f} times as fast as with {best.of} at "
            f"batch {best.batch} (--stack {best.stack} --precision {best.precision})")  # fmt: skip


def held_record(h: Held) -> list[dict[str, Any]]:
    """The rows of a comparison, each with the conditions, what it misses of them (null: nothing) and faster software."""
    c = h.comparison
    missed = {id(x): said for x, said in zip(c.unfit, h.missed, strict=True)}
    faster = {best.hardware: asdict(best) for best in h.best_stacks}
    more = [{"where": list(h.where), "missed": missed.get(id(x)), "best_stack": faster.get(x.device_name)} for x in c.all]
    rows = comparison_record([c])
    return [row | own for row, own in zip(rows, more, strict=False)] + rows[len(more) :]
