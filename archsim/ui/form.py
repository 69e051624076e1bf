"""The controls of the page: what runs where, and a slider for every number of the device."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.base.units import BARE, COUNT, TEXT, UNITS
from archsim.device.catalog import heads
from archsim.device.part import Unit
from archsim.device.spec import keys, read_by
from archsim.estimation.fidelity import SIMULATED
from archsim.render.html import escaped as text
from archsim.stack.choose import candidates
from archsim.study.knob import ARGUMENTS
from archsim.study.names import names_of
from archsim.trace.dims import SEQUENCE
from archsim.trace.training import UPDATED
from archsim.ui.estimates import requested, tuned_values, usual
from archsim.ui.state import HELP, VIEWS, PageState, View, plain
from archsim.ui.uploads import MOST_BYTES, SPEC
from archsim.ui.uploads import NETWORKS as NETWORK_FILES

FIRST = ("clock", "sm.count", "core.count", "threads", "tpu.cores", "memory.bandwidth", "l2.size", "l3.size", "power_limit")
REACH = 4.0  # a slider goes from a quarter of the value of the device to four times it
Groups = Mapping[str, Sequence[tuple[str, str]]]  # of a long list: heading -> values with what is shown
DRAWS, SHORT = ("net", "hw", "task", "fidelity"), 12  # fields that the form depends on; entries of a list that needs no search
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


def form(state: PageState) -> str:
    """The form; its fields are named as in the address."""
    every = knobs(state)
    first = [one for one in every if one.key in FIRST]
    rest = [one for one in every if one.key not in FIRST]
    shown = " open" if any(one.key in state.settings for one in rest) else ""
    listed = {one.key for one in every}
    odd = "".join(_hidden(key, value) for key, value in state.settings.items() if key not in listed)
    return (
        f'<form id="state" action="{state.view.path}" method="get">\n{_views(state)}\n'
        f'<fieldset class="choices"><legend>What runs where</legend>\n{"".join(_choices(state))}{_drop()}</fieldset>\n'
        f'<fieldset><legend>Values of the device</legend>\n{"".join(_knob(one, state) for one in first)}'
        f'<details{shown}><summary>All {len(rest)} other numbers</summary>\n'
        f'{"".join(_knob(one, state) for one in rest)}</details></fieldset>\n'
        f'{odd}{"".join(_hidden("pin", pin) for pin in state.pins)}'
        f'<p><button type="submit">Estimate</button> <a href="{state.view.path}?{text(replace(state, settings={}).query)}">'
        "Reset the values</a></p>\n</form>"
    )


def in_words(message: str, view: View) -> str:
    """What an error says of options of the command line, said of the fields of a page.

    >>> in_words("--set: sm.count: 'two' is not a number", VIEWS[0])
    "sm.count: 'two' is not a number"
    >>> in_words("height, width: unknown; give --bind height=SIZE --bind width=SIZE", VIEWS[0])
    'height, width: unknown; give Other sizes height=SIZE,width=SIZE'
    """
    message = message.replace("--set: ", "").replace("SIZE --bind ", "SIZE,")
    return re.sub(r"--([a-z][a-z-]*)", lambda option: view.fields.get(option[1].replace("-", "_"), option[0]), message)


def _views(state: PageState) -> str:
    """The pages; the device goes along from one to the other."""
    current = {state.view.path: ' aria-current="page"'}
    links = [f'<a href="{one.path}"{current.get(one.path, "")}>{one.title}</a>' for one in VIEWS]
    return f'<nav aria-label="Pages">{" ".join(links)} <a class="help" href="{HELP}">Help</a></nav>'


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{text(name)}" value="{text(value)}">'


def _choices(state: PageState) -> list[str]:
    """The fields of what runs where; an empty one says what it comes to."""
    own, layers, tokens = state.net in state.files, list[str](), False
    with suppress(ArchsimError):
        request = requested(state)
        layers, tokens = [op.name for op in request.trace.ops], SEQUENCE in request.template.free_symbols
    files = [(one.name, one.title, one.hw) for one in state.files.values()]
    rows = state.view.arguments
    listed = {name: ("yes",) if row.kind == "flag" else names_of(row.names) for name, row in rows.items()
              if name != "stack" and (row.names or row.kind == "flag")}  # fmt: skip
    lists: dict[str, Groups] = {
        **{name: {"": [(value, value) for value in values]} for name, values in (*listed.items(), ("layer", layers))},
        "net": {"Your files": [(name, title) for name, title, hw in files if not hw], **families(state.view.nets())},
        "hw": {"Your files": [(name, title) for name, title, hw in files if hw], **devices()},
        "stack": families(sorted(candidates(None, state.spec.kind))),
    }  # fmt: skip
    defaults = {name: "no" if row.kind == "flag" else str(row.example or row.default or row.usual) for name, row in rows.items()}
    comes = {**{name: said for name, said in defaults.items() if said}, "layer": "the slowest", **usual(state)}
    seen = {"layer": state.choices.get("fidelity") == SIMULATED, "seq_len": own or tokens, "bind": own,
            "optimiser": state.choices.get("task") in UPDATED}  # fmt: skip
    return [_list(state, name, lists[name], comes) if name in lists else _written(state, name, comes)
            for name in state.view.fields if (name in state.choices and name != "layer")
            or (seen.get(name, True) and (name not in rows or state.spec.kind in rows[name].devices))]  # fmt: skip


@cache
def devices() -> Groups:
    """The shipped devices by maker and year, the newest of a maker first: ids with names."""
    made: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for name, head in heads().items():
        made.setdefault((head["vendor"], -head["year"]), []).append((name, head["name"].removeprefix(head["vendor"]).strip()))
    by_maker = sorted(made.items(), key=lambda group: (group[0][0].casefold(), group[0][1]))
    return {f"{maker}, {-year}": sorted(own, key=lambda one: one[1]) for (maker, year), own in by_maker}


def families(names: Iterable[str]) -> Groups:
    """Names by their first letters; those that have no kin come last.

    >>> families(("vgg_16", "nin", "vgg_19"))
    {'vgg': [('vgg_16', 'vgg_16'), ('vgg_19', 'vgg_19')], 'others': [('nin', 'nin')]}
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        found.setdefault((re.match("[A-Za-z]*", name) or [""])[0], []).append((name, name))
    alone = [pair for pairs in found.values() if len(pairs) == 1 for pair in pairs]
    return {family: pairs for family, pairs in found.items() if len(pairs) > 1} | ({"others": alone} if alone else {})


def _field(state: PageState, name: str, control: str) -> str:
    return f'<div class="field"><label for="f-{name}">{state.view.fields[name]}</label> {control}</div>\n'


def _list(state: PageState, name: str, groups: Groups, comes: Mapping[str, str]) -> str:
    """A list in groups, a long one with a search by the script. What the form itself depends on loads the page anew."""
    chosen = {"net": state.net, "hw": state.hw, **state.choices}.get(name, "")
    known = {value for pairs in groups.values() for value, _ in pairs}
    head = [] if name in ("net", "hw") else [("", f"usual: {comes[name]}" if name in comes else "usual")]
    options = "".join(_option(value, shown, chosen) for value, shown in (*head, *([] if chosen in known else [(chosen, chosen)])))
    for group, pairs in groups.items():
        inner = "".join(_option(value, shown, chosen) for value, shown in pairs)
        options += f'<optgroup label="{text(group)}">{inner}</optgroup>' if group and inner else inner
    marks = ' class="combo"' * (len(known) > SHORT) + " data-draws=form" * (name in DRAWS)
    return _field(state, name, f'<select id="f-{name}" name="{name}"{marks}>{options}</select>')


def _option(value: str, shown: str, chosen: str) -> str:
    return f'<option value="{text(value)}"{" selected" if value == chosen else ""}>{text(shown)}</option>'


def _written(state: PageState, name: str, comes: Mapping[str, str]) -> str:
    row = state.view.arguments.get(name)
    mode = "numeric" if row is not None and row.numeric else "text"
    return _field(state, name, f'<input type="text" inputmode="{mode}" id="f-{name}" name="{name}" '
                  f'value="{text(state.choices.get(name, ""))}" placeholder="{text(comes.get(name, ""))}">')  # fmt: skip


def _drop() -> str:
    """Where a file is dropped; the script shows it."""
    endings = (*NETWORK_FILES, SPEC)
    said = f"Your own: drop a network or a device here ({', '.join(endings)}), or choose a file."
    return (f'<label id="drop" class="drop" data-most="{MOST_BYTES}" hidden><span>{text(said)}</span> '
            f'<input type="file" accept="{",".join(endings)},.gz"></label><p id="told" role="status"></p>')  # fmt: skip


def _knob(one: SliderRange, state: PageState) -> str:
    written = state.settings.get(one.key, "")
    base, unit, name = plain(one.value, one.unit.unit), one.unit.unit, text(one.key)
    prefixes = "no" if UNITS.get(unit, BARE) is BARE else "yes"
    slider = (
        f'<input type="range" min="0" max="{STEPS}" step="1" aria-label="{name} slider" '
        f'data-low="{one.low:.9g}" data-high="{one.high:.9g}" data-unit="{"" if unit == "1" else text(unit)}" '
        f'data-prefixes="{prefixes}" data-whole="{"yes" if one.unit.whole else "no"}">'
        f'<span class="ends"><span>{text(plain(one.low, unit, 3))}</span> <span>{text(plain(one.high, unit, 3))}</span></span>'
        if 0 < one.low < one.high else ""
    )  # fmt: skip
    whole = "; a whole number" if one.unit.whole and unit == COUNT else ""
    return (
        f'<div class="knob"><label for="k-{name}"><b>{name}</b> <span class="quiet">{text(one.unit.doc)}{whole}</span></label>'
        f'<span>{slider}</span>'
        f'<input type="text" id="k-{name}" name="{name}" value="{text(written)}" placeholder="{text(base)}"></div>\n'
    )
