"""What the page of language models draws of a state: prefill and decode before and after, memory, variants, assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.answers.llm import asked, memory_table, trust
from archsim.generation.estimate import GenerationEstimate
from archsim.generation.why import limit_word
from archsim.render.blocks import Block, Cell, Facts, Note, Table, columns, number, percent, stacked, words
from archsim.render.html import sections as drawn
from archsim.ui.estimates import generated
from archsim.ui.export import export
from archsim.ui.form import in_words
from archsim.ui.state import MODELS, PageState
from archsim.ui.variants import Total, cards, heading, total, variants

SHOWN = 0.005  # of the time of a phase: less is not listed


def model_result(state: PageState) -> str:
    """The part of the page that a change draws anew. Raises ArchsimError."""
    before, after = generated(state, changed=False), generated(state)
    changed = bool(state.settings)
    level = f"Intervals of {100 * after.interval_level:.0f} %, from {after.interval_basis}."
    sections = [
        heading(state, before.network, " · ".join(asked(before)), before.hardware_name),
        drawn([Note(text="\n".join(after.warnings), tone="warning")]), cards(totals(before), totals(after), changed),
        drawn([Note(text=level, tone="quiet"), _limits(before, after, changed)]), variants(state, _of_variant),
        drawn([*_phases(before, after, changed), *_memory(after), Facts(title="How far to trust it", rows=trust(before)),
               _basis(after)]),
        export(state),
    ]  # fmt: skip
    return "\n".join(sections)


def totals(e: GenerationEstimate) -> tuple[Total, ...]:
    """What a user of the model waits for, what its owner gets and pays for."""
    low, high = (e.tokens_per_s * e.e2e_s / end for end in reversed(e.e2e_interval_s))
    return (
        total("time to first token", e.ttft_s, "s", e.ttft_interval_s), total("time per token", e.tpot_s, "s", e.tpot_interval_s),
        total("all answered", e.e2e_s, "s", e.e2e_interval_s), total("tokens per second", e.tokens_per_s, "", (low, high)),
        total("energy per token", e.energy_per_token_j, "J", e.energy_per_token_interval_j),
        total("most requests at once", e.max_batch, ""),
    )  # fmt: skip


def _of_variant(state: PageState) -> tuple[Sequence[Total], str]:
    e = generated(state)
    return totals(e), ", ".join(f"{phase}: {limit_word(limit)}" for phase, limit in e.limited_by.items())


def _limits(before: GenerationEstimate, after: GenerationEstimate, changed: bool) -> Block:
    rows = []
    for phase, limit in after.limited_by.items():
        was = before.limited_by[phase]
        earlier = f", by {limit_word(was)} before" if changed and was != limit else ""
        rows.append((phase, f"is limited by {limit_word(limit)}{earlier}"))
    return Facts(title="What limits it", rows=rows)


def _phases(before: GenerationEstimate, after: GenerationEstimate, changed: bool) -> list[Block]:
    """The time of each phase, before in the upper half of its bar, and what limits the parts of it."""
    note = ("All prompts are read, then all tokens are made. Colours say what limits each part of the time: engine is the host's "
            "work between steps, links are collectives.")  # fmt: skip
    live = [name for name, one in after.phases.items() if one.time_s > 0]
    longest = max(one.time_s for e in (before, after) for one in e.phases.values())
    rows = [[words(name), _bar(before, after, name, longest, changed), *_old(before.phases[name].time_s, changed),
             number(after.phases[name].time_s, "s"), number(after.phases[name].energy_j, "J")] for name in live]  # fmt: skip
    times = ("before", "after") if changed else ("time",)
    heads = columns("phase", "", *times, "energy", numbers=range(2, 5), bars=(1,))
    parts = [
        [words(name), words(limit_word(limit), tone=limit), *_old(before.phases[name].breakdown_s.get(limit, 0.0), changed),
         number(time, "s"), percent(time / after.phases[name].time_s)]
        for name in live for limit, time in after.phases[name].breakdown_s.items() if time > SHOWN * after.phases[name].time_s
    ]  # fmt: skip
    limits = columns("phase", "limit", *times, "share", numbers=range(2, 5))
    return [Table(title="Prefill and decode", columns=heads, rows=rows, notes=[note]), Table(columns=limits, rows=parts)]


def _old(time: float, changed: bool) -> list[Cell]:
    return [number(time, "s")] if changed else []


def _bar(before: GenerationEstimate, after: GenerationEstimate, name: str, longest: float, changed: bool) -> Cell:
    new = after.phases[name].breakdown_s
    if not changed:
        return stacked(new, longest, "s")
    old = stacked(before.phases[name].breakdown_s, longest, "s", half="upper")
    return Cell(bar=[*old.bar, *stacked(new, longest, "s", half="lower").bar])


def _memory(e: GenerationEstimate) -> list[Block]:
    """What is held on each device after the change."""
    full = [] if e.fits else [Note(text="All requests do not fit in the memory of a device at once.", tone="warning")]
    return [*full, memory_table(e)]


def _basis(e: GenerationEstimate) -> Block:
    notes = [*(f"{name}: {said}" for name, said in e.basis.items()), *(in_words(said, MODELS) for said in e.assumptions)]
    return Facts(title="What the numbers rest on", rows=[("", notes), ("measure it", e.benchmark)])
