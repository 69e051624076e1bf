"""Warnings on standard error about options without an effect on the result, and about ops of which only a bound is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archsim.cli.terminal import note

if TYPE_CHECKING:
    from archsim.estimation.request import Request
    from archsim.study.space import Space


def tell_without_effect(requests: Iterable[Request], beyond: str = "") -> None:
    """Name the keys of --set and --scale that change no output of the requests, with the devices if not on all of them, and the
    ops of their networks of which only a bound is known.

    Keys that begin with `beyond` have an effect that an estimate does not show.
    """
    from archsim.estimation.no_effect import without_effect
    from archsim.estimation.unknown import STRICT, bounded

    asked = list(requests)
    still: dict[str, list[str]] = {}
    for request in asked:
        for key in without_effect(request):
            if not (beyond and key.startswith(beyond)):
                still.setdefault(key, []).append(request.spec.identity.id)
    _tell(still, asked)
    for network, trace in {request.network: request.trace for request in asked}.items():
        for said in bounded(trace):
            note(f"{network}: {said}, {STRICT}")


def told_request(beyond: str = "", **arguments: Any) -> Request:
    """The request of a command, after the same is said of it."""
    from archsim.estimation.request import make_request

    request = make_request(**arguments)
    tell_without_effect([request], beyond)
    return request


def _why(key: str, requests: Sequence[Request]) -> str:
    """Which other fidelity would read a key, behind a semicolon."""
    from archsim.estimation.no_effect import read_by

    said = {read_by(request, key) for request in requests} if "." in key else set()
    return f"; {said.pop()}" if len(said) == 1 and "" not in said else ""


def tell_idle(space: Space, requests: Sequence[Request]) -> None:
    """The same for the knobs of a space, and for the settings of its bases."""
    from archsim.study.sweep import knobs_without_effect

    tell_without_effect(requests)
    _tell(knobs_without_effect(space, list(requests)), requests)


def _tell(still: Mapping[str, Sequence[str]], requests: Sequence[Request]) -> None:
    """Name keys with the devices on which they have no effect for any network."""
    asked = Counter(request.spec.identity.id for request in requests)
    for key, where in still.items():
        devices = [name for name, count in Counter(where).items() if count == asked[name]]
        if devices:
            on = f" on {', '.join(devices)}" if len(devices) < len(asked) else ""
            note(f"{key} changes no output{on}{_why(key, requests)}")
