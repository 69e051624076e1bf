"""The controls of the page: what runs where, and a slider for every number of the device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.base.units import TEXT, UNITS
from archsim.device.device import PRECISION_BYTES
from archsim.device.entry import quantity
from archsim.device.part import Unit
from archsim.device.spec import keys, read_by
from archsim.report.markup import text
from archsim.study.knob import ARGUMENTS
from archsim.ui.state import TUNED, PageState, estimated, known_devices, known_nets, plain

FIRST = ("clock", "sm.count", "core.count", "threads", "tpu.cores", "memory.bandwidth", "l2.size", "l3.size", "power_limit")
REACH = 4.0  # a slider goes from a quarter of the value of the device to four times it
STEPS = 1000  # of a slider, equal in the logarithm


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
    found = [_slider(key, unit, value) for key, (unit, value) in [*_tuned(state).items(), *values.items()]]
    return sorted(found, key=lambda one: FIRST.index(one.key) if one.key in FIRST else len(FIRST))


def _tuned(state: PageState) -> dict[str, tuple[Unit, float]]:
    """Clock, power limit and threads as they are before the change; none where the choices cannot be estimated."""
    try:
        before = estimated(state, changed=False)
    except ArchsimError:
        return {}
    values = dict(zip(TUNED, (before.clock_hz, before.power_limit_w, before.threads), strict=True))
    return {name: (ARGUMENTS[name], float(value)) for name, value in values.items() if value}


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
        f'<form id="state" action="/" method="get">\n{_choices(state)}\n'
        f'<fieldset><legend>Values of the device</legend>\n{"".join(_knob(one, state) for one in first)}</fieldset>\n'
        f'<details{shown}><summary>All {len(rest)} other numbers</summary>\n'
        f'{"".join(_knob(one, state) for one in rest)}</details>\n'
        f'{odd}{"".join(_hidden("pin", pin) for pin in state.pins)}'
        f'<p><button type="submit">Estimate</button> <a href="/?{text(_reset(state))}">Reset the values</a></p>\n</form>'
    )


def _reset(state: PageState) -> str:
    return PageState(net=state.net, hw=state.hw, choices=state.choices, pins=state.pins).query


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{text(name)}" value="{text(value)}">'


def _choices(state: PageState) -> str:
    from archsim.trace.training import TASKS

    kind, asked = state.spec.kind, state.choices
    fields = [
        _select("net", "Network", known_nets(), state.net),
        _select("hw", "Device", known_devices(), state.hw),
        _select("stack", "Software stack", ("", *_stacks(kind)), asked.get("stack", "")),
        _select("precision", "Precision", ("", *PRECISION_BYTES), asked.get("precision", "")),
        _select("task", "Task", ("", *TASKS), asked.get("task", "")),
        f'<label>Batch <input type="text" inputmode="numeric" name="batch" value="{text(asked.get("batch", ""))}" '
        'placeholder="default"></label>',
    ]
    return f'<fieldset class="choices"><legend>What runs where</legend>\n{"".join(fields)}</fieldset>'


@cache
def _stacks(kind: str) -> tuple[str, ...]:
    """The stacks of a kind of device."""
    from archsim.stack.choose import candidates

    return tuple(sorted(candidates("", kind)))


def _select(name: str, title: str, values: tuple[str, ...], chosen: str) -> str:
    listed = values if chosen in values else (*values, chosen)
    options = "".join(
        f'<option value="{text(value)}"{" selected" if value == chosen else ""}>{text(value or "default")}</option>'
        for value in listed
    )
    return f'<label>{title} <select name="{name}">{options}</select></label>'


def _knob(one: SliderRange, state: PageState) -> str:
    written = state.settings.get(one.key, "")
    value, problem = quantity(written, one.unit) if written else (one.value, None)
    now = float(value) if problem is None else one.value
    base, unit, name = plain(one.value, one.unit.unit), one.unit.unit, text(one.key)
    prefixes = "yes" if UNITS.get(unit, (False, False))[0] else "no"
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
