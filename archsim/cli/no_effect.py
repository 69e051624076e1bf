"""Warnings on standard error about options without an effect on the result, and about ops of which only a bound is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from archsim.cli.terminal import note

if TYPE_CHECKING:
    from archsim.estimation.request import Request
    from archsim.study.space import Space
    from archsim.trace.trace import BoundTrace


def tell_without_effect(requests: Iterable[Request], beyond: str = "") -> None:
    """Name the keys of --set and --scale that change no output of the requests, with the devices if not on all of them, and the
    ops of their networks of which only a bound is known.

    Keys that begin with `beyond` have an effect that an estimate does not show.
    """
    from archsim.estimation.no_effect import without_effect

    asked = list(requests)
    still: dict[str, list[str]] = {}
    for request in asked:
        for key in without_effect(request):
            if not (beyond and key.startswith(beyond)):
                still.setdefault(key, []).append(request.spec.identity.id)
    _tell(still, asked)
    tell_bounds({request.network: request.trace for request in asked})


def tell_bounds(traces: Mapping[str, BoundTrace]) -> None:
    """Name the ops of networks of which only a bound is known."""
    from archsim.estimation.unknown import STRICT, bounded

    for network, trace in traces.items():
        for said in bounded(trace):
            note(f"{network}: {said}, {STRICT}")


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
    for key, where in still.items():
        devices = dict.fromkeys(where)
        if len(where) == len(requests):
            note(f"{key} changes no output{_why(key, requests)}")
        elif all(where.count(name) == sum(request.spec.identity.id == name for request in requests) for name in devices):
            note(f"{key} changes no output on {', '.join(devices)}{_why(key, requests)}")
