"""The estimates of a state, before and after its change."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from archsim.base.arguments import ARGUMENTS, SERVED, rows_of
from archsim.base.errors import ArchsimError
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request
from archsim.estimation.result import Estimate
from archsim.generation.estimate import GenerationEstimate
from archsim.study.whatif import Change, change
from archsim.ui.state import MODELS, PageState

USUAL = {row.name: row.usual for row in SERVED.values() if row.usual}  # tokens, where nobody says

Asked = tuple[str, str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]  # net, hw, words, what is set of the device


def _asked(state: PageState, changed: bool) -> Asked:
    """The arguments of a function of the API. An own file has another name when it has another content."""
    words = {**state.arguments, **(state.tuned if changed else {})}
    of_device = state.of_device if changed else {}
    return state.place(state.net), state.place(state.hw), tuple(words.items()), tuple(of_device.items())


def _words(pairs: tuple[tuple[str, str], ...], of_device: tuple[tuple[str, str], ...]) -> dict[str, object]:
    return {**dict(pairs), "set": dict(of_device)}


def estimated(state: PageState, changed: bool = True) -> Estimate:
    """The estimate of a network, or that of the device before the change. Raises ArchsimError."""
    return _estimate(_asked(state, changed))


@lru_cache(maxsize=32)
def _estimate(asked: Asked) -> Estimate:
    """What is before a change stays while a slider moves, and so does what is pinned."""
    from archsim.api.functions import estimate

    return estimate(asked[0], asked[1], **_words(*asked[2:]))  # type: ignore[arg-type]


def requested(state: PageState, changed: bool = True) -> Request:
    """What is asked of the model for `estimated`. Raises ArchsimError."""
    from archsim.api.arguments import arguments_of
    from archsim.estimation.request import make_request

    net, hw, *words = _asked(state, changed)
    return make_request(net, hw, **arguments_of("estimate", _words(*words), rows_of("run")))


def generated(state: PageState, changed: bool = True) -> GenerationEstimate:
    """The estimate of a language model that an engine serves. Raises ArchsimError."""
    return _generate(_asked(state, changed))


@lru_cache(maxsize=32)
def _generate(asked: Asked) -> GenerationEstimate:
    from archsim.api.functions import llm

    return llm(asked[0], asked[1], **{**USUAL, **_words(*asked[2:])})  # type: ignore[arg-type]


def change_of(state: PageState) -> Change:
    """Before and after. Raises ArchsimError."""
    from archsim.study.whatif import beside

    sold = requested(state, changed=False)
    compared = beside(sold, requested(state))
    before = estimated(state, changed=False) if compared is sold else estimate_of(compared)
    return change(before, estimated(state), state.words)


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
