"""What the page of language models draws of a state: prefill and decode before and after, memory, variants, assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.answers.llm import asked, memory_table, trust
from archsim.base.units import grouped, show
from archsim.generation.estimate import GenerationEstimate
from archsim.render import html
from archsim.render.blocks import Facts
from archsim.report.bars import bars
from archsim.report.layers import LayerRow
from archsim.report.markup import bound_cell, items, number, percent, table, text, words
from archsim.ui.estimates import generated
from archsim.ui.export import export
from archsim.ui.state import PageState
from archsim.ui.variants import Total, cards, heading, pair, variants

SHOWN = 0.005  # of the time of a phase: less is not listed


def model_result(state: PageState) -> str:
    """The part of the page that a change draws anew. Raises ArchsimError."""
    before, after = generated(state, changed=False), generated(state)
    changed = bool(state.settings)
    level = f"Intervals of {100 * after.interval_level:.0f} %, from {after.interval_basis}."
    sections = [
        heading(state, before.network, " · ".join(asked(before)), before.hardware_name),
        "".join(f'<p class="warn">{text(line)}</p>' for line in after.warnings),
        cards(totals(before), totals(after), changed), f'<p class="quiet">{text(level)}</p>', _limits(before, after, changed),
        variants(state, _of_variant), _phases(before, after, changed), _memory(after),
        html.sections([Facts(title="How far to trust it", rows=trust(before))]), _basis(after),
        export(state),
    ]  # fmt: skip
    return "\n".join(sections)


def totals(e: GenerationEstimate) -> tuple[Total, ...]:
    """What a user of the model waits for, what its owner gets and pays for."""
    timed = [("time to first token", e.ttft_s, e.ttft_interval_s), ("time per token", e.tpot_s, e.tpot_interval_s),
             ("all answered", e.e2e_s, e.e2e_interval_s)]  # fmt: skip
    low, high = (e.tokens_per_s * e.e2e_s / end for end in reversed(e.e2e_interval_s))
    least, most = e.energy_per_token_interval_j
    return (
        *(Total(title=title, value=value, shown=show(value, "s"), span=f"{show(ends[0], 's', 3)} to {show(ends[1], 's', 3)}")
          for title, value, ends in timed),
        Total(title="tokens per second", value=e.tokens_per_s, shown=grouped(e.tokens_per_s),
              span=f"{grouped(low, 3)} to {grouped(high, 3)}"),
        Total(title="energy per token", value=e.energy_per_token_j, shown=show(e.energy_per_token_j, "J"),
              span=f"{show(least, 'J', 3)} to {show(most, 'J', 3)}"),
        Total(title="most requests at once", value=e.max_batch, shown=f"{e.max_batch}"),
    )  # fmt: skip


def _of_variant(state: PageState) -> tuple[Sequence[Total], str]:
    e = generated(state)
    return totals(e), ", ".join(f"{phase}: {limit}" for phase, limit in e.limited_by.items())


def _limits(before: GenerationEstimate, after: GenerationEstimate, changed: bool) -> str:
    lines = []
    for phase, limit in after.limited_by.items():
        was = before.limited_by[phase]
        now = f", by {was} before" if changed and was != limit else ""
        lines.append(f"<li>{text(f'{phase} is limited by {limit}{now}')}</li>")
    return f"<h2>What limits it</h2>\n<ul>{''.join(lines)}</ul>"


def _phases(before: GenerationEstimate, after: GenerationEstimate, changed: bool) -> str:
    note = ("All prompts are read, then all tokens are made. Colours say what limits each part of the time: engine is the host's "
            "work between steps, links are collectives.")  # fmt: skip
    rows = [_rows(e) for e in (before, after)]
    drawn = [bars(own, e.e2e_s, e.energy_j, what="phase", beside=other)
             for own, e, other in ((rows[0], before, rows[1]), (rows[1], after, rows[0]))]  # fmt: skip
    pictures = pair(drawn[0], drawn[1], changed, broad=True)
    return f'<h2>Prefill and decode</h2>\n<p class="quiet">{text(note)}</p>\n{pictures}\n{_parts(before, after, changed)}'


def _rows(e: GenerationEstimate) -> list[LayerRow]:
    return [LayerRow(name=name, time_s=dict(one.breakdown_s), energy_j={one.limited_by: one.energy_j}, component_j={})
            for name, one in e.phases.items() if one.time_s > 0]  # fmt: skip


def _parts(before: GenerationEstimate, after: GenerationEstimate, changed: bool) -> str:
    """The time of each phase by what limits it."""
    rows = []
    for name, one in after.phases.items():
        was = before.phases[name].breakdown_s
        for limit, time in one.breakdown_s.items():
            if time > SHOWN * one.time_s:
                old = [number(was.get(limit, 0.0), "s")] if changed else []
                rows.append((words(name), bound_cell(limit), *old, number(time, "s"), percent(time / one.time_s)))
    return table(("phase", "limit", *(("before", "after") if changed else ("time",)), "share"), rows)


def _memory(e: GenerationEstimate) -> str:
    """What is held on each device after the change."""
    full = "" if e.fits else '<p class="warn">All requests do not fit in the memory of a device at once.</p>\n'
    return f"{full}{html.sections([memory_table(e)])}"


def _basis(e: GenerationEstimate) -> str:
    notes = [*(f"{name}: {said}" for name, said in e.basis.items()), *e.assumptions]
    measure = f"<p>The engine measures the same by</p>\n<pre>{text(e.benchmark)}</pre>" if e.benchmark else ""
    return f"<h2>What the numbers rest on</h2>\n{items(notes)}\n{measure}"
