"""What both pages show of a change: totals before and after, and the pinned variants side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from archsim.answers.whatif import ratio_text
from archsim.base.errors import ArchsimError
from archsim.base.units import show
from archsim.render.blocks import Cell, Note, Table, Verdict, columns, words
from archsim.render.html import escaped, sections
from archsim.ui.state import MOST_PINS, PageState, read_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A number of an estimate: as text with its unit, and what measured values are expected between."""

    title: str
    value: float
    shown: str
    span: str = ""


def total(title: str, value: float, unit: str, ends: tuple[float, float] | None = None) -> Total:
    """A number of a unit with its interval."""
    span = " to ".join(show(end, unit, 3) for end in ends or ())
    return Total(title=title, value=value, shown=show(value, unit), span=span)


def verdict(
    state: PageState, asked: Sequence[str], before: Sequence[Total], after: Sequence[Total], why: Sequence[str]
) -> Verdict:
    """What runs where, what is changed, and each total with its interval, the value before and the ratio."""
    changed = f"what if {', '.join(state.words)}" if state.settings else "move a slider or write a value with its unit"
    lines = [(new.shown, ", ".join(filter(None, (new.title, new.span))),
              f"was {old.shown}: {ratio_text(new.value / old.value if old.value else None)}" if state.settings else "")
             for old, new in zip(before, after, strict=True)]  # fmt: skip
    title = f"{state.title(state.net)} on {state.spec.identity.name}"
    return Verdict(title=title, asked=[*asked, changed], lines=lines, sentences=why)


def variants(state: PageState, totals: Callable[[PageState], tuple[Sequence[Total], str]]) -> str:
    """This state beside the pinned ones. `totals` gives the numbers of a state, and what limits it."""
    links = f"<p>{_links(state)}</p>"
    if not state.pins:
        said = Note(text="A pinned variant stays here, beside what is changed after it.", tone="quiet")
        return f"<h2>Variants</h2>\n{sections([said])}{links}"
    titles = [one.title for one in totals(state)[0]]
    rows: list[list[Cell]] = []
    for shown in (*(read_state(pin, state.view, state.files) for pin in state.pins), state):
        chosen = [f"{key} {value}" for key, value in shown.choices.items()]
        name = ", ".join([f"{shown.title(shown.net)} on {shown.title(shown.hw)}", *chosen, *shown.words])
        try:
            found, limit = totals(shown)
            values = [*(f"{one.shown} ({one.span})" if one.span else one.shown for one in found), limit]
        except ArchsimError as error:
            values = [str(error), *[""] * len(titles)]
        rows.append([*map(words, (f"{name} (this one)" if shown is state else name, *values))])
    return sections([Table(title="Variants", columns=columns("variant", *titles, "limited by"), rows=rows)]) + links


def _links(state: PageState) -> str:
    own = state.alone.query
    links = []
    if own not in state.pins and len(state.pins) < MOST_PINS:
        links.append(_link(replace(state, pins=(*state.pins, own)), "Pin this variant"))
    for i, pin in enumerate(state.pins, 1):
        opened = replace(read_state(pin, state.view, state.files), pins=state.pins)
        others = tuple([one for one in state.pins if one != pin])
        links += [_link(opened, f"Open variant {i}"), _link(replace(state, pins=others), f"Remove variant {i}")]
    return " · ".join(links)


def _link(state: PageState, shown: str) -> str:
    return f'<a href="{state.view.path}?{escaped(state.query)}">{shown}</a>'


def pair(before: str, after: str) -> str:
    """Two pictures side by side."""
    return f'<div class="pair"><div>{before}</div><div>{after}</div></div>'
