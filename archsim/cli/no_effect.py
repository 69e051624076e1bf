"""Knobs that change nothing, named on standard error: who turned one would look for its effect in vain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from archsim.estimation.request import Query
    from archsim.study.space import Space


def tell_unmoved(queries: Iterable[Query], beyond: str = "") -> None:
    """The keys of --set and --scale that move no output of the queries; on some devices, if it is not so on all of them.

    Keys that begin with `beyond` have an effect that an estimate does not show.
    """
    from archsim.estimation.no_effect import unmoved

    asked = list(queries)
    still: dict[str, list[str]] = {}
    for query in asked:
        for key in unmoved(query):
            if not (beyond and key.startswith(beyond)):
                still.setdefault(key, []).append(query.spec.identity.id)
    _tell(still, asked)


def tell_idle(space: Space, queries: Sequence[Query]) -> None:
    """The same of what a space varies, and of what its bases were set to."""
    from archsim.study.sweep import idle_knobs

    tell_unmoved(queries)
    _tell(idle_knobs(space, list(queries)), queries)


def _tell(still: Mapping[str, Sequence[str]], queries: Sequence[Query]) -> None:
    for key, where in still.items():
        devices = dict.fromkeys(where)
        if len(where) == len(queries):
            click.echo(f"archsim: {key} changes no output", err=True)
        elif all(where.count(name) == sum(query.spec.identity.id == name for query in queries) for name in devices):
            click.echo(f"archsim: {key} changes no output on {', '.join(devices)}", err=True)
