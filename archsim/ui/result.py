"""What the page of networks draws of a state: totals, limits, rooflines, layers, other variants, and how to run it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from archsim.answers.whatif import layers_table
from archsim.base.errors import ArchsimError
from archsim.estimation.fidelity import SIMULATED
from archsim.estimation.result import Estimate
from archsim.render.html import sections as drawn
from archsim.report.bars import bars
from archsim.report.layer_tree import tree_html
from archsim.report.layers import by_kind, by_op, is_large
from archsim.report.markup import items, text
from archsim.report.page import layers_section
from archsim.report.references import references
from archsim.report.roofline import RooflineChart, roof
from archsim.report.roofline_svg import NARROW, inline
from archsim.report.text import limit_line, rate_unit, task_words
from archsim.study.whatif import Change, changed_limits
from archsim.ui.estimates import change_of, estimated
from archsim.ui.export import export
from archsim.ui.issue import issue_section
from archsim.ui.state import PageState
from archsim.ui.variants import Total, cards, heading, pair, total, variants


def result(state: PageState) -> str:
    """The part of the page that a change draws anew. Raises ArchsimError."""
    c = change_of(state)
    b, changed = c.before, bool(state.settings)
    asked = f"{task_words(b)} · batch {b.batch} · {b.precision} · stack {b.stack} · {b.fidelity} model"
    sections = [
        heading(state, b.network, asked, state.spec.identity.name),
        "".join(f'<p class="warn">{text(line)}</p>' for line in c.after.warnings),
        cards(totals(b), totals(c.after), changed), _expected(c.after), _limits(c, changed),
        variants(state, _of_variant), _rooflines(c, changed), _bars(c, changed), _tree(c, changed),
        issue_section(state) if b.fidelity == SIMULATED else "",
        _layers(c, changed), _measured(c.before, changed),
        export(state, c),
    ]  # fmt: skip
    return "\n".join(filter(None, sections))


def problem(message: str, field: str) -> str:
    """What the page says instead of a result; its script says it at the field."""
    return f'<p class="warn" role="alert" data-field="{text(field)}"><b>Not possible:</b> <span>{text(message)}</span></p>'


def totals(e: Estimate) -> tuple[Total, ...]:
    """Latency, throughput, power and energy with their intervals."""
    low, high = (e.throughput_per_s * e.latency_s / end for end in reversed(e.latency_interval_s))
    return (
        total("latency", e.latency_s, "s", e.latency_interval_s),
        total("throughput", e.throughput_per_s, rate_unit(e), (low, high)),
        total("power", e.power_w, "W", e.power_interval_w), total("energy", e.energy_j, "J", e.energy_interval_j),
    )  # fmt: skip


def _of_variant(state: PageState) -> tuple[Sequence[Total], str]:
    e = estimated(state)
    return totals(e), e.limited_by


def _expected(e: Estimate) -> str:
    memory = "" if e.fits else '<p class="warn">It does not fit in the memory of the device.</p>'
    level = f"{100 * e.interval_level:.0f} % of measured values are expected within the intervals."
    return f'{memory}<p class="quiet">{level}</p>'


def _limits(c: Change, changed: bool) -> str:
    if not changed:
        return f"<h2>What limits it</h2>\n<p>{text(limit_line(c.before))}.</p>"
    return (f"<h2>What limits it</h2>\n<p>Before: {text(limit_line(c.before))}.<br>After: {text(limit_line(c.after))}.</p>\n"
            + items(changed_limits(c)))  # fmt: skip


def _rooflines(c: Change, changed: bool) -> str:
    """Both on the axes that hold both."""
    charts: list[RooflineChart] = []
    for e in (c.before, c.after):
        try:
            charts.append(roof(e, e.spec))
        except ArchsimError as error:
            return f'<h2>Roofline</h2>\n<p class="quiet">{text(str(error))}</p>'
    x, y = ((min(min(side) for side in sides), max(max(side) for side in sides))
            for sides in ([one.x for one in charts], [one.y for one in charts]))  # fmt: skip
    sizes = {"width": NARROW} if changed else {}
    drawn = [f'<div class="drawing">{inline(replace(one, x=x, y=y), f"{e.network} on {e.hardware_name}{when}", **sizes)}</div>'
             for one, e, when in zip(charts, (c.before, c.after), (", before", ""), strict=True)]  # fmt: skip
    note = "Each mark is an op; its area is proportional to its time, its colour says what limits it."
    return f'<h2>Roofline</h2>\n<p class="quiet">{note}</p>\n{pair(drawn[0], drawn[1], changed)}'


def _bars(c: Change, changed: bool) -> str:
    rows_of = by_kind if is_large(c.before) else by_op
    what = "kind of layer" if is_large(c.before) else "layer"
    drawn = bars(rows_of(c.after), c.after.latency_s, c.after.energy_j, before=rows_of(c.before) if changed else ())
    note = f"Coloured by what limits each.{' The pale bar is that before the change.' if changed else ''}"
    return f'<h2>Time and energy by {what}</h2>\n<p class="quiet">{note}</p>\n{drawn}'


def _tree(c: Change, changed: bool) -> str:
    """The layers folded by block, of a network that has many."""
    if not is_large(c.before):
        return ""
    note = "Width is time or energy after the change; a click or Enter opens a block." if changed else \
           "Width is time or energy; a click or Enter opens a block."  # fmt: skip
    return f'<h2>Time and energy by block</h2>\n<p class="quiet">{note}</p>\n{tree_html(c.after)}'


def _layers(c: Change, changed: bool) -> str:
    if not changed:
        return layers_section(c.before)
    return drawn([layers_table(c)])


def _measured(e: Estimate, changed: bool) -> str:
    when = ", before the change" if changed else ""
    if not e.references:
        return f"<h2>Measured by others{when}</h2>\n<p>The corpus has no published measurement of this case.</p>"
    note = "Each prediction is for the conditions of its own row."
    return f'<h2>Measured by others{when}</h2>\n<p class="quiet">{note}</p>\n{references(e)}'
