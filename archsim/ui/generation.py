"""What the page of language models draws of a state: prefill and decode before and after, memory, variants, assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.generation.estimate import GenerationEstimate
from archsim.report.bars import bars
from archsim.report.layers import LayerRow
from archsim.report.llm import PARTS, measured_section
from archsim.report.llm import heading as asked_line
from archsim.report.markup import bound_cell, items, number, percent, table, text, words
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
        heading(state, before.network, asked_line(before).partition(" with ")[2], before.hardware_name),
        "".join(f'<p class="warn">{text(line)}</p>' for line in after.warnings),
        cards(totals(before), totals(after), changed), f'<p class="quiet">{text(level)}</p>', _limits(before, after, changed),
        variants(state, _of_variant), _phases(before, after, changed), _memory(after), measured_section(before), _basis(after),
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
    drawn = bars(_rows(after), after.e2e_s, after.energy_j, what="phase", before=_rows(before) if changed else ())
    return f'<h2>Prefill and decode</h2>\n<p class="quiet">{text(note)}</p>\n{drawn}\n{_parts(before, after, changed)}'


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
    whole = e.memory_room_bytes
    rows = [(words(part.replace("_", " ")), number(e.memory_bytes[part], "B", 3), percent(e.memory_bytes[part] / whole))
            for part in (*PARTS, "total") if e.memory_bytes[part] > 0]  # fmt: skip
    room = f"Of {show(whole, 'B', 3)} that the engine may take; at {min(e.batch, e.max_batch)} at once a request may be " \
           f"{e.max_context} tokens long."  # fmt: skip
    full = "" if e.fits else '<p class="warn">All requests do not fit in the memory of a device at once.</p>'
    return f'<h2>Memory of a device</h2>\n{full}<p class="quiet">{text(room)}</p>\n{table(("part", "size", "share"), rows)}'


def _basis(e: GenerationEstimate) -> str:
    notes = [*(f"{name}: {said}" for name, said in e.basis.items()), *(in_words(said, MODELS) for said in e.assumptions)]
    measure = f"<p>The engine measures the same by</p>\n<pre>{text(e.benchmark)}</pre>" if e.benchmark else ""
    return f"<h2>What the numbers rest on</h2>\n{items(notes)}\n{measure}"
