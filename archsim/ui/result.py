"""What the page of networks draws of a state: totals, why, rooflines, layers, other variants, and how to run it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from archsim.answers.estimate import asked, groups_table, limits_table, measured_table, rate_unit
from archsim.answers.layers import layer_table, tree_chart
from archsim.answers.roofline import roofline
from archsim.answers.simulated import sections as of_layer
from archsim.answers.whatif import groups_table as changed_groups
from archsim.answers.whatif import layers_table as changed_layers
from archsim.answers.whatif import verdict as changed_verdict
from archsim.cost.bounds import bound_word
from archsim.estimation.fidelity import SIMULATED
from archsim.estimation.request import Request
from archsim.estimation.result import Estimate
from archsim.explain.layer import slowest
from archsim.explain.simulated import simulate_layer
from archsim.explain.summary import why
from archsim.render.blocks import Block, Chart, Facts, Note
from archsim.study.whatif import Change
from archsim.ui.estimates import change_of, requested
from archsim.ui.shown import Pair, Total, drawn, total
from archsim.ui.state import PageState


def result(state: PageState) -> str:
    """The part of the page that a change draws anew. Raises ArchsimError."""
    c = change_of(state)
    b, changed = c.before, bool(state.settings)
    reason = changed_verdict(c).sentences if changed else why(b)
    return drawn(state, b, c.after, totals, asked(b), reason, [
        *_times(c, changed), _rooflines(c) if changed else roofline(b), *(_layer(state) if b.fidelity == SIMULATED else ()),
        changed_layers(c) if changed else layer_table(b), _measured(b, changed)])  # fmt: skip


def totals(e: Estimate) -> tuple[Sequence[Total], str]:
    """Latency, throughput, power and energy with their intervals, and what limits the run."""
    low, high = (e.throughput_per_s * e.latency_s / end for end in reversed(e.latency_interval_s))
    return (
        total("latency", e.latency_s, "s", e.latency_interval_s),
        total("throughput", e.throughput_per_s, rate_unit(e), (low, high)),
        total("power", e.power_w, "W", e.power_interval_w), total("energy", e.energy_j, "J", e.energy_interval_j),
    ), bound_word(e.limited_by)  # fmt: skip


def _times(c: Change, changed: bool) -> list[Block]:
    """Where the time goes and what limits it."""
    if changed:
        sides = [("before", why(c.before)), ("after", why(c.after))]
        return [changed_groups(c), Facts(title="What limits it", rows=sides), *tree_chart(c.after)]
    return [groups_table(c.before), replace(limits_table(c.before), level=0), *tree_chart(c.before)]


def _layer(state: PageState) -> list[Block | Pair]:
    """What the kernels of a layer wait for, before and after, as the cycle model explains it."""
    before = requested(state, changed=False)
    layer = state.choices.get("layer") or slowest(before).ops[0].layer

    def side(request: Request, when: str) -> list[Block]:
        return [Note(text=f"{layer} {when}", tone="verdict"), *of_layer(simulate_layer(request, layer), hint=False)[1:]]

    return [(side(before, "before"), side(requested(state), "after"))] if state.settings else [*side(before, "")]


def _rooflines(c: Change) -> Pair:
    """Both on the axes that hold both."""
    charts = [roofline(e) for e in (c.before, c.after)]
    x, y = (_ends(charts, axis) for axis in ("x", "y"))
    before, after = (replace(chart, x=replace(chart.x, ends=x), y=replace(chart.y, ends=y)) for chart in charts)
    return [replace(before, title="Roofline before")], [replace(after, title="Roofline after")]


def _ends(charts: Sequence[Chart], axis: str) -> tuple[float, float]:
    values = [value for chart in charts for series in chart.series for value in getattr(series, axis)]
    return min(values) / 1.1, max(values) * 1.1


def _measured(e: Estimate, changed: bool) -> Block:
    when = ", before the change" if changed else ""
    if not e.references:
        return Facts(title=f"Measured by others{when}", rows=[("", "The corpus has no published measurement of this case.")])
    return replace(measured_table(e), title=f"Measured by others{when}", level=0)
