"""What the page shows: a result, and the words around it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from archsim.answers import llm
from archsim.answers.estimate import asked, groups_table, limits_table, measured_table, rate_unit
from archsim.answers.layers import layer_table, roofline, tree_chart
from archsim.answers.simulated import sections as of_layer
from archsim.answers.whatif import groups_table as changed_groups
from archsim.answers.whatif import layers_table as changed_layers
from archsim.answers.whatif import ratio_text
from archsim.answers.whatif import verdict as changed_verdict
from archsim.base.errors import ArchsimError
from archsim.base.units import show
from archsim.base.values import parts
from archsim.cost.bounds import bound_word
from archsim.estimation.fidelity import SIMULATED
from archsim.estimation.request import Request
from archsim.estimation.result import Estimate
from archsim.explain.layer import slowest
from archsim.explain.simulated import simulate_layer
from archsim.explain.summary import why
from archsim.generation.estimate import GenerationEstimate, limit_word
from archsim.generation.estimate import why as why_served
from archsim.render.blocks import Block, Cell, Chart, Facts, Note, Table, Verdict, columns, number, stacked, words
from archsim.render.html import templated
from archsim.study.whatif import Change
from archsim.ui.estimates import change_of, estimated, requested
from archsim.ui.form import in_words
from archsim.ui.state import MODELS, MOST_PINS, PageState, read_state


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


# ----------------------------------------------------------------------------------------------------- language models


def model_result(state: PageState) -> str:
    """The part of the page that a change draws anew. Raises ArchsimError."""
    before, after = estimated(state, changed=False), estimated(state)
    phases: Table = _phases(before, after) if state.settings else llm.phases_table(after)
    return drawn(state, before, after, model_totals, llm.asked(before), why_served(after), [
        phases, llm.memory_table(after), Facts(title="How far to trust it", rows=llm.trust(before)), _basis(after)])  # fmt: skip


def model_totals(e: GenerationEstimate) -> tuple[Sequence[Total], str]:
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
    for name, took, _, _, *limited in llm.phases_table(after).rows:
        old, new = (e.phases[name.text] for e in (before, after))
        bar = [piece for half, one in (("upper", old), ("lower", new))
               for piece in stacked(one.breakdown_s, longest, "s", llm.TONES, half).bar]  # type: ignore[arg-type]  # fmt: skip
        rows.append([name, number(old.time_s, "s"), took, Cell(bar=bar), *limited])
    heads = columns("", "before", "after", "", "limited by", "energy", numbers=(1, 2, 5), bars=(3,), spare=(4, 5))
    return Table(title="Where the time goes", columns=heads, rows=rows)


def _basis(e: GenerationEstimate) -> Block:
    notes = [*(f"{name}: {said}" for name, said in e.basis.items()), *(in_words(said, MODELS) for said in e.assumptions)]
    return Facts(title="What the numbers rest on", rows=[("", notes), ("measure it", e.benchmark)])


# ------------------------------------------------------------------------------------------------------------- the page

Pair = tuple[Sequence[Block], Sequence[Block]]  # side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A number of an estimate: as text with its unit, and what measured values are expected between."""

    title: str
    value: float
    shown: str
    span: str = ""


Totals = Callable[[Any], tuple[Sequence[Total], str]]  # the numbers of an estimate, and what limits it


def total(title: str, value: float, unit: str, ends: tuple[float, float] | None = None) -> Total:
    """A number of a unit with its interval."""
    span = " to ".join(show(end, unit, 3) for end in ends or ())
    return Total(title=title, value=value, shown=show(value, unit), span=span)


def drawn(
    state: PageState, before: Any, after: Any, totals: Totals, asked: Sequence[str], why: Sequence[str],
    rest: Sequence[Block | Pair],
) -> str:  # fmt: skip
    """What a change draws anew: the estimates before and after, variants, the rest, and how to run it elsewhere.

    asked: what runs where; why: sentences that follow
    """
    changed = f"what if {', '.join(state.words)}" if state.settings else "move a slider or write a value with its unit"
    lines = [(new.shown, ", ".join(filter(None, (new.title, new.span))),
              f"was {old.shown}: {ratio_text(new.value / old.value if old.value else None)}" if state.settings else "")
             for old, new in zip(totals(before)[0], totals(after)[0], strict=True)]  # fmt: skip
    full = [] if after.fits else ["It does not fit in the memory of the device."]
    first: list[Block] = [
        Verdict(
            title=f"{state.title(state.net)} on {state.spec.identity.name}", asked=[*asked, changed], lines=lines, sentences=why
        ),
        Note(text="\n".join([*full, *after.warnings]), tone="warning"),
        Note(text=f"{100 * after.interval_level:.0f} % of measured values are expected within the intervals.", tone="quiet"),
    ]  # fmt: skip
    own = [state.title(name) for name in (state.net, state.hw) if name in state.files]
    return templated("shown.html", "archsim.ui", first=first, variants=_variants(state, totals), links=_links(state),
                     parts=rest, commands=commands(state), own=own)  # fmt: skip


def _variants(state: PageState, totals: Totals) -> Block:
    """This state beside the pinned ones."""
    if not state.pins:
        said = "A pinned variant stays here, beside what is changed after it."
        return Facts(title="Variants", rows=[("none yet", words(said, tone="quiet"))])
    titles = [one.title for one in totals(estimated(state))[0]]
    rows: list[list[Cell]] = []
    for shown in (*(read_state(pin, state.view, state.files) for pin in state.pins), state):
        chosen = [f"{key} {value}" for key, value in shown.choices.items()]
        name = ", ".join([f"{shown.title(shown.net)} on {shown.title(shown.hw)}", *chosen, *shown.words])
        try:
            found, limit = totals(estimated(shown))
            values = [*(f"{one.shown} ({one.span})" if one.span else one.shown for one in found), limit]
        except ArchsimError as error:
            values = [str(error), *[""] * len(titles)]
        rows.append([*map(words, (f"{name} (this one)" if shown is state else name, *values))])
    return Table(title="Variants", columns=columns("variant", *titles, "limited by"), rows=rows)


def _links(state: PageState) -> list[tuple[PageState, str]]:
    """States that a click leads to."""
    own = replace(state, pins=()).query
    free = own not in state.pins and len(state.pins) < MOST_PINS
    links = [(replace(state, pins=(*state.pins, own)), "Pin this variant")] if free else []
    for i, pin in enumerate(state.pins, 1):
        opened = replace(read_state(pin, state.view, state.files), pins=state.pins)
        others = tuple([one for one in state.pins if one != pin])
        links += [(opened, f"Open variant {i}"), (replace(state, pins=others), f"Remove variant {i}")]
    return links


def commands(state: PageState) -> list[str]:
    """The commands that give the same numbers: of a change `whatif`, and what estimates what is changed alone."""
    to = [(("--to" if key in state.view.tuned else "--set"), f"{key}={value}") for key, value in state.settings.items()]
    given = [*((f"--{name.replace('_', '-')}", value) for name, value in state.tuned.items()),
             *(("--set", f"{key}={value}") for key, value in state.of_device.items())]  # fmt: skip
    both = [_joined("whatif", state, to)] if state.settings and state.view is not MODELS else []
    return [*both, _joined(state.view.command, state, given)]


def _joined(command: str, state: PageState, more: Iterable[tuple[str, str]]) -> str:
    said = ["archsim", command, "--net", state.title(state.net), "--hw", state.title(state.hw)]
    for name, value in state.arguments.items():
        row = state.view.arguments[name]
        if row.kind == "flag":
            said += [row.option] if row.read(value) else []
            continue
        for one in parts(value) if row.kind == "sizes" else [value]:
            said += [row.option, one]
    return shlex.join([*said, *(word for pair in more for word in pair)])
