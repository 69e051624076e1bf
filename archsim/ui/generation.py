"""What the page of language models draws of a state: prefill and decode before and after, memory, variants, assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.answers.llm import TONES, asked, memory_table, phases_table, trust
from archsim.generation.estimate import GenerationEstimate, limit_word, why
from archsim.render.blocks import Block, Cell, Facts, Table, columns, number, stacked
from archsim.ui.estimates import estimated
from archsim.ui.form import in_words
from archsim.ui.shown import Total, drawn, total
from archsim.ui.state import MODELS, PageState


def model_result(state: PageState) -> str:
    """The part of the page that a change draws anew. Raises ArchsimError."""
    before, after = estimated(state, changed=False), estimated(state)
    phases: Table = _phases(before, after) if state.settings else phases_table(after)
    return drawn(state, before, after, totals, asked(before), why(after), [
        phases, memory_table(after), Facts(title="How far to trust it", rows=trust(before)), _basis(after)])  # fmt: skip


def totals(e: GenerationEstimate) -> tuple[Sequence[Total], str]:
    """What a user of the model waits for, what its owner gets and pays for; and what limits the phases."""
    low, high = (e.tokens_per_s * e.e2e_s / end for end in reversed(e.e2e_interval_s))
    return (
        total("time to first token", e.ttft_s, "s", e.ttft_interval_s), total("time per token", e.tpot_s, "s", e.tpot_interval_s),
        total("all answered", e.e2e_s, "s", e.e2e_interval_s), total("tokens per second", e.tokens_per_s, "", (low, high)),
        total("energy per token", e.energy_per_token_j, "J", e.energy_per_token_interval_j),
        total("most requests at once", e.max_batch, ""),
    ), ", ".join(f"{phase}: {limit_word(limit)}" for phase, limit in e.limited_by.items())  # fmt: skip


def _phases(before: GenerationEstimate, after: GenerationEstimate) -> Table:
    """The time of each phase with what limits it, before in the upper half of its bar."""
    longest, rows = max(one.time_s for e in (before, after) for one in e.phases.values()), []
    for name, took, _, _, *limited in phases_table(after).rows:
        old, new = (e.phases[name.text] for e in (before, after))
        bar = [piece for half, one in (("upper", old), ("lower", new))
               for piece in stacked(one.breakdown_s, longest, "s", TONES, half).bar]  # type: ignore[arg-type]  # fmt: skip
        rows.append([name, number(old.time_s, "s"), took, Cell(bar=bar), *limited])
    heads = columns("", "before", "after", "", "limited by", "energy", numbers=(1, 2, 5), bars=(3,), spare=(4, 5))
    return Table(title="Where the time goes", columns=heads, rows=rows)


def _basis(e: GenerationEstimate) -> Block:
    notes = [*(f"{name}: {said}" for name, said in e.basis.items()), *(in_words(said, MODELS) for said in e.assumptions)]
    return Facts(title="What the numbers rest on", rows=[("", notes), ("measure it", e.benchmark)])
