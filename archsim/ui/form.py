"""The controls of the page: what runs where, and a slider for every number of the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from archsim.base.arguments import Argument
from archsim.base.errors import ArchsimError
from archsim.base.units import BARE, TEXT, UNITS
from archsim.device.entry import quantity
from archsim.device.part import Unit
from archsim.device.spec import keys, read_by
from archsim.estimation.fidelity import SIMULATED
from archsim.report.markup import text
from archsim.study.knob import ARGUMENTS
from archsim.study.names import names_of
from archsim.trace.training import UPDATED
from archsim.ui.estimates import requested, tuned_values
from archsim.ui.state import MODELS, VIEWS, PageState, known_devices, plain
from archsim.ui.uploads import MOST_BYTES, SPEC
from archsim.ui.uploads import NETWORKS as NETWORK_FILES

FIRST = ("clock", "sm.count", "core.count", "threads", "tpu.cores", "memory.bandwidth", "l2.size", "l3.size", "power_limit")
REACH = 4.0  # a slider goes from a quarter of the value of the device to four times it
STEPS = 1000  # of a slider, equal in the logarithm
DRAWING = ("task", "fidelity")  # choices on which the form itself depends


@dataclass(frozen=True, slots=True, kw_only=True)
class SliderRange:
    """A number that can be changed: its value before, and the ends of its slider [base unit]."""

    key: str
    unit: Unit
    value: float
    low: float
    high: float


def knobs(state: PageState) -> list[SliderRange]:
    """Every number of the device that a model reads, with clock, power limit and threads; those that move most come first."""
    spec = state.spec
    values = {key: (unit, float(np.ravel(spec.entries[key].number)[0])) for key, unit, _ in keys(spec.kind)
              if unit.unit != TEXT and key in spec.entries and "analytical" in read_by(unit)}  # fmt: skip
    tuned = {name: (ARGUMENTS[name], float(value)) for name, value in tuned_values(state).items() if value}
    found = [_slider(key, unit, value) for key, (unit, value) in [*tuned.items(), *values.items()]]
    return sorted(found, key=lambda one: FIRST.index(one.key) if one.key in FIRST else len(FIRST))


def _slider(key: str, unit: Unit, value: float) -> SliderRange:
    """Ends within the range of the key; whole numbers move by at least one."""
    low, high = value / REACH, value * REACH
    if unit.whole:
        low, high = max(1.0, math.floor(low)), math.ceil(high)
    if low < unit.low or (unit.above and low <= unit.low):
        low = value
    return SliderRange(key=key, unit=unit, value=value, low=low, high=min(high, unit.high))


def form(state: PageState, problem: bool = False) -> str:
    """The form; its fields are named as in the address. `problem` opens the list of all values, to find the wrong one."""
    every = knobs(state)
    first = [one for one in every if one.key in FIRST]
    rest = [one for one in every if one.key not in FIRST]
    shown = " open" if problem or any(one.key in state.settings for one in rest) else ""
    listed = {one.key for one in every}
    odd = "".join(_hidden(key, value) for key, value in state.settings.items() if key not in listed)
    return (
        f'<form id="state" action="{state.view.path}" method="get">\n{_views(state)}\n{_choices(state)}\n'
        f'<fieldset><legend>Values of the device</legend>\n{"".join(_knob(one, state) for one in first)}'
        f'<details{shown}><summary>All {len(rest)} other numbers</summary>\n'
        f'{"".join(_knob(one, state) for one in rest)}</details></fieldset>\n'
        f'{odd}{"".join(_hidden("pin", pin) for pin in state.pins)}'
        f'<p><button type="submit">Estimate</button> <a href="{state.view.path}?{text(_reset(state))}">Reset the values</a></p>\n'
        "</form>"
    )


def _reset(state: PageState) -> str:
    return replace(state, settings={}).query


def _views(state: PageState) -> str:
    """The pages; the device goes along from one to the other."""
    links = [f'<a href="{one.path}"{_current(one is state.view)}>{one.title}</a>' for one in VIEWS]
    return f'<nav aria-label="Pages">{" ".join(links)}</nav>'


def _current(yes: bool) -> str:
    return ' aria-current="page"' if yes else ""


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{text(name)}" value="{text(value)}">'


def _choices(state: PageState) -> str:
    own = [_own_select(state, "net", "Model" if state.view is MODELS else "Network"), _own_select(state, "hw", "Device")]
    fields = [_field(state, row) for row in state.view.arguments.values() if row.page == "field" and _belongs(state, row)]
    if state.choices.get("fidelity") == SIMULATED:
        fields.append(_select(state, "layer", "Layer shown", _layers(state), usual="the slowest"))
    return f'<fieldset class="choices"><legend>What runs where</legend>\n{"".join([*own, *fields])}{_drop()}</fieldset>'


def _belongs(state: PageState, row: Argument) -> bool:
    """Whether an argument means something for what is chosen."""
    if row.name in state.choices:
        return True
    if row.name == "optimiser":
        return state.choices.get("task") in UPDATED
    if row.name in ("seq_len", "bind"):
        return state.net in state.files or (row.name == "seq_len" and _takes_tokens(state))
    return state.spec.kind in row.devices


def _field(state: PageState, row: Argument) -> str:
    """The field of an argument: a list of the words that it takes, or a text."""
    title, usual = row.title[0].upper() + row.title[1:], str(row.default or row.usual or "default")
    if row.kind == "flag":
        return _select(state, row.name, title, ("yes",), usual="no")
    if not row.names:
        return _text(state, row.name, title, row.example or usual, numeric=row.numeric)
    words = _stacks(state.spec.kind) if row.name == "stack" else names_of(row.names)
    return _select(state, row.name, title, [word for word in words if word != usual], row.name in DRAWING, usual)


@cache
def _stacks(kind: str) -> tuple[str, ...]:
    """The stacks of a kind of device."""
    from archsim.stack.choose import candidates

    return tuple(sorted(candidates(None, kind)))


def _layers(state: PageState) -> tuple[str, ...]:
    """The ops of the network, which the picture of the issue slots may be of."""
    try:
        return tuple(dict.fromkeys(op.name for op in requested(state).trace.ops))
    except ArchsimError:
        return ()


def _takes_tokens(state: PageState) -> bool:
    """Whether the network is of sequences whose length can be set."""
    from archsim.trace.dims import SEQUENCE

    try:
        return SEQUENCE in requested(state).template.free_symbols
    except ArchsimError:
        return False


def _own_select(state: PageState, name: str, title: str) -> str:
    """What is shipped, and what the user has dropped."""
    shipped, chosen = (state.view.nets(), state.net) if name == "net" else (known_devices(), state.hw)
    own = [one for one in state.files.values() if one.hw == (name == "hw")]
    options = "".join(_option(one, one, chosen) for one in shipped)
    if own:
        files = "".join(_option(one.name, one.title, chosen) for one in own)
        options = f'<optgroup label="Your files">{files}</optgroup><optgroup label="Shipped">{options}</optgroup>'
    return f'<label>{title} <select name="{name}" data-draws="form">{options}</select></label>'


def _option(value: str, shown: str, chosen: str) -> str:
    return f'<option value="{text(value)}"{" selected" if value == chosen else ""}>{text(shown)}</option>'


def _select(
    state: PageState, name: str, title: str, values: Sequence[str], draws: bool = False, usual: str = "default"
) -> str:  # fmt: skip
    """Nothing is `usual`; `draws`: the form itself depends on it."""
    chosen = state.choices.get(name, "")
    listed = dict.fromkeys(("", *values, chosen))
    options = "".join(_option(value, value or usual, chosen) for value in listed)
    return f'<label>{title} <select name="{name}"{" data-draws=form" if draws else ""}>{options}</select></label>'


def _text(state: PageState, name: str, title: str, hint: str, numeric: bool = True) -> str:
    mode = ' inputmode="numeric"' if numeric else ""
    return (f'<label>{title} <input type="text"{mode} name="{name}" value="{text(state.choices.get(name, ""))}" '
            f'placeholder="{text(hint)}"></label>')  # fmt: skip


def _drop() -> str:
    """Where a file is dropped; the script shows it."""
    endings = (*NETWORK_FILES, SPEC)
    said = f"Your own: drop a network or a device here ({', '.join(endings)}), or choose a file."
    return (f'<label id="drop" class="drop" data-most="{MOST_BYTES}" hidden><span>{text(said)}</span> '
            f'<input type="file" accept="{",".join(endings)},.gz"></label>')  # fmt: skip


def _knob(one: SliderRange, state: PageState) -> str:
    written = state.settings.get(one.key, "")
    value, problem = quantity(written, one.unit) if written else (one.value, None)
    now = float(value) if problem is None else one.value
    base, unit, name = plain(one.value, one.unit.unit), one.unit.unit, text(one.key)
    prefixes = "no" if UNITS.get(unit, BARE) is BARE else "yes"
    slider = (
        f'<input type="range" min="0" max="{STEPS}" step="1" value="{_position(one, now)}" aria-label="{name} slider" '
        f'aria-valuetext="{text(written or base)}" '
        f'data-low="{one.low:.9g}" data-high="{one.high:.9g}" data-unit="{"" if unit == "1" else text(unit)}" '
        f'data-prefixes="{prefixes}" data-whole="{"yes" if one.unit.whole else "no"}">'
        if 0 < one.low < one.high else "<span></span>"
    )  # fmt: skip
    return (
        f'<div class="knob"><label for="k-{name}"><b>{name}</b> <span class="quiet">{text(one.unit.doc)}; '
        f'{text(one.unit.range)}</span></label>'
        f'{slider}<input type="text" id="k-{name}" name="{name}" value="{text(written)}" placeholder="{text(base)}"></div>\n'
    )


def _position(one: SliderRange, value: float) -> int:
    """Where a slider stands, 0 to STEPS."""
    if not 0 < one.low < one.high or value <= 0:
        return 0
    share = math.log(value / one.low) / math.log(one.high / one.low)
    return round(STEPS * min(max(share, 0.0), 1.0))
