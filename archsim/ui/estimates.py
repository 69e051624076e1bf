"""The estimates of a state, before and after its change."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from archsim.api import functions
from archsim.api.arguments import arguments_of
from archsim.base.arguments import ARGUMENTS, rows_of
from archsim.base.errors import ArchsimError
from archsim.estimation.estimate import estimate_of
from archsim.estimation.fidelity import SIMULATED
from archsim.estimation.request import Request, make_request
from archsim.study.whatif import Change, beside, change
from archsim.ui.state import MODELS, PageState, View, read_state
from archsim.ui.uploads import UploadedFile

MOST_FIELDS = 20  # of an address whose fault is looked for


Asked = tuple[str, str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]  # net, hw, words, what is set of the device


def _asked(state: PageState, changed: bool) -> Asked:
    """The arguments of a function of the API. An own file has another name when it has another content."""
    words = {**state.arguments, **(state.tuned if changed else {})}
    of_device = state.of_device if changed else {}
    return state.place(state.net), state.place(state.hw), tuple(words.items()), tuple(of_device.items())


def _words(pairs: tuple[tuple[str, str], ...], of_device: tuple[tuple[str, str], ...]) -> dict[str, object]:
    return {**dict(pairs), "set": dict(of_device)}


@lru_cache(maxsize=64)
def _made(command: str, net: str, hw: str, *words: tuple[tuple[str, str], ...]) -> Any:
    """What is before a change stays while a slider moves, and so does what is pinned."""
    return getattr(functions, command)(net, hw, **_words(*words))


def estimated(state: PageState, changed: bool = True) -> Any:
    """The estimate of a state, or that of the device before the change: what the function of its view gives.

    Raises ArchsimError.
    """
    return _made(state.view.command, *_asked(state, changed))


def requested(state: PageState, changed: bool = True) -> Request:
    """What is asked of the model for `estimated`. Raises ArchsimError."""
    net, hw, *words = _asked(state, changed)
    return make_request(net, hw, **arguments_of("estimate", _words(*words), rows_of("run")))


def fault_of(query: str, view: View, files: Mapping[str, UploadedFile]) -> tuple[str, str]:
    """Of an address that cannot be estimated the field that is the fault, and the address without it.

    It is the last field without which there is an estimate; empty where there is no such one, or the address is not at fault.
    """
    try:
        pairs = parse_qsl(query, errors="replace", max_num_fields=MOST_FIELDS)
    except ValueError:
        return "", view.default
    pairs = [pair for pair in pairs if pair[0] != "pin" and pair != ("fidelity", SIMULATED)]  # which takes seconds
    usual = dict(parse_qsl(view.default))

    def without(field: str) -> str:
        given = {name for name, _ in pairs} - {field}
        kept = [(name, usual[name]) for name in ("net", "hw") if name not in given]
        return urlencode([*kept, *(pair for pair in pairs if pair[0] != field)])

    for name in ("", *dict(reversed(pairs))):
        try:
            estimated(read_state(without(name), view, files))
        except ArchsimError:
            continue
        return name, without(name)
    return "", view.default


def change_of(state: PageState) -> Change:
    """Before and after. Raises ArchsimError."""
    sold = requested(state, changed=False)
    compared = beside(sold, requested(state))
    before = estimated(state, changed=False) if compared is sold else estimate_of(compared)
    return change(before, estimated(state), state.words)


def usual(state: PageState) -> Mapping[str, str]:
    """What the choices that nobody made come to; nothing where they cannot be estimated."""
    try:
        e = estimated(state, changed=False)
    except ArchsimError:
        return state.view.usual
    found = {name: getattr(e, name) for name in state.view.choices if name not in state.choices and hasattr(e, name)}
    return {name: "no" if value is False else str(value) for name, value in found.items()}


def tuned_values(state: PageState) -> Mapping[str, float | None]:
    """What the view tunes as it is before the change; nothing where the choices cannot be estimated."""
    try:
        if state.view is MODELS:
            device = state.spec.device
            return {"clock": float(device.usual_clock), "power_limit": float(device.power.tdp)}
        before = estimated(state, changed=False)
    except ArchsimError:
        return {}
    return {name: getattr(before, ARGUMENTS[name].estimated) for name in state.view.tuned}
