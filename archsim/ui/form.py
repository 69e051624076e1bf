"""The controls of the page: what runs where, and a slider for every number of the device."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from archsim.base.errors import ArchsimError
from archsim.base.record import by_key
from archsim.base.units import BARE, COUNT, TEXT, UNITS
from archsim.device.catalog import heads
from archsim.device.part import Unit
from archsim.device.spec import keys, read_by
from archsim.device.variant import first_of
from archsim.estimation.fidelity import SIMULATED
from archsim.render.html import templated
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SliderRange:
    """A number that can be changed: its value before, and the ends of its slider [base unit]."""

    key: str
    unit: Unit
    value: float
    low: float
    high: float

    @property
    def counts(self) -> bool:
        """Whether it counts things."""
        return self.unit.whole and self.unit.unit == COUNT

    @property
    def prefixed(self) -> bool:
        """Whether its unit is written with prefixes."""
        return UNITS.get(self.unit.unit, BARE) is not BARE

    def written(self, value: float, digits: int = 6) -> str:
        """A value of it as it is typed."""
        return plain(value, self.unit.unit, digits)


def knobs(state: PageState) -> list[SliderRange]:
    """Every number of the device that a model reads, with clock, power limit and threads; those that move most come first."""
    spec = state.spec
    values = {key: (unit, first_of(spec.entries[key].number)) for key, unit, _ in keys(spec.kind)
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
    rest = [one for one in every if one.key not in FIRST]
    listed = {one.key for one in every}
    return templated(
        "form.html", "archsim.ui", state=state, views=VIEWS, help=HELP, fields=_fields(state), shortest=SHORT,
        first=[one for one in every if one.key in FIRST], rest=rest, open=any(one.key in state.settings for one in rest),
        odd=[(key, value) for key, value in state.settings.items() if key not in listed], most=MOST_BYTES,
        endings=(*NETWORK_FILES, SPEC), reset=replace(state, settings={}).query,
    )  # fmt: skip


def in_words(message: str, view: View) -> str:
    """What an error says of options of the command line, said of the fields of a page.

    >>> in_words("--set: sm.count: 'two' is not a number", VIEWS[0])
    "sm.count: 'two' is not a number"
    >>> in_words("height, width: unknown; give --bind height=SIZE --bind width=SIZE", VIEWS[0])
    'height, width: unknown; give Other sizes height=SIZE,width=SIZE'
    """
    message = message.replace("--set: ", "").replace("SIZE --bind ", "SIZE,")
    return re.sub(r"--([a-z][a-z-]*)", lambda option: view.fields.get(option[1].replace("-", "_"), option[0]), message)


def _fields(state: PageState) -> list[dict[str, Any]]:
    """The fields of what runs where: lists have `groups`; an empty field says what it comes to, its `usual`."""
    own, layers, tokens = state.net in state.files, list[str](), False
    with suppress(ArchsimError):
        request = requested(state)
        layers, tokens = [op.name for op in request.trace.ops], SEQUENCE in request.template.free_symbols
    files, rows = state.files.values(), state.view.arguments
    plain_lists = {
        **{name: ("yes",) if row.kind == "flag" else names_of(row.names) for name, row in rows.items()
           if row.names or row.kind == "flag"},
        "stack": sorted(candidates(None, state.spec.kind)), "layer": layers, "net": sorted(state.view.nets()),
    }  # fmt: skip
    lists: dict[str, Groups] = {name: {"": [(value, value) for value in values]} for name, values in plain_lists.items()}
    lists["hw"] = devices()
    for name, of_device in (("net", False), ("hw", True)):
        lists[name] = {"Your files": [(one.name, one.title) for one in files if one.hw == of_device], **lists[name]}
    defaults = {name: "no" if row.kind == "flag" else str(row.example or row.default or row.usual) for name, row in rows.items()}
    comes = {**{name: said for name, said in defaults.items() if said}, "layer": "the slowest", **usual(state)}
    seen = {"layer": state.choices.get("fidelity") == SIMULATED, "seq_len": own or tokens, "bind": own,
            "optimiser": state.choices.get("task") in UPDATED}  # fmt: skip
    chosen, place = {"net": state.net, "hw": state.hw, **state.choices}, ("net", "hw")
    return [{"name": name, "title": title, "value": chosen.get(name, ""), "usual": None if name in place else comes.get(name, ""),
             "groups": lists.get(name), "known": {value for pairs in lists.get(name, {}).values() for value, _ in pairs},
             "draws": name in DRAWS, "numeric": name in rows and rows[name].numeric}
            for name, title in state.view.fields.items() if (name in state.choices and name != "layer")
            or (seen.get(name, True) and (name not in rows or state.spec.kind in rows[name].devices))]  # fmt: skip


@cache
def devices() -> Groups:
    """The shipped devices by maker and year, the newest of a maker first: ids with names."""
    made = by_key(((head["vendor"], -head["year"]), (name, head["name"].removeprefix(head["vendor"]).strip()))
                  for name, head in heads().items())  # fmt: skip
    by_maker = sorted(made.items(), key=lambda group: (group[0][0].casefold(), group[0][1]))
    return {f"{maker}, {-year}": sorted(own, key=lambda one: one[1]) for (maker, year), own in by_maker}
