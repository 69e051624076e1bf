"""What standard output is, what is said beside it, and how a command leaves.

Colour follows `--color`, then NO_COLOR (https://no-color.org), then whether standard output is a terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from archsim.base.errors import EXIT
from archsim.base.record import by_key

if TYPE_CHECKING:
    from archsim.estimation.request import Request
    from archsim.render.blocks import Block
    from archsim.render.text import Screen
    from archsim.study.space import Space


# ---------------------------------------------------------------------------------------------------------------- terminal


def color_option(command: click.Command) -> click.Command:
    """The command with the option `--color`."""
    if not any(parameter.name == "color" for parameter in command.params):
        command.params.append(click.Option(
            ["--color"], type=click.Choice(("auto", "always", "never")), expose_value=False, callback=_choose,
            help="Colour on standard output: always, never, or auto (a terminal without NO_COLOR), which is usual."))  # fmt: skip
    return command


def _choose(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    ctx.color = {"always": True, "never": False}.get(value or "")


def screen() -> Screen:
    """Standard output as it is now."""
    from archsim.render.text import Screen

    context = click.get_current_context(silent=True)
    wanted = context.color if context else None
    terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return Screen(width=shutil.get_terminal_size().columns if terminal else None, blocks=encoding.startswith("utf"),
                  color=terminal and not plain if wanted is None else wanted)  # fmt: skip


def show_text(blocks: Sequence[Block], level: int = 0) -> None:
    """Print the blocks of an answer, as deep as is asked for."""
    from archsim.render.text import text_of

    on = screen()
    click.echo(text_of(blocks, level, on), color=on.color)


def note(text: str) -> None:
    """Say on standard error what is no part of an answer."""
    click.echo(f"archsim: {text}", err=True)


def missed(why: str = "") -> NoReturn:
    """Leave with the exit code of an unmet condition, after saying which."""
    if why:
        note(why)
    raise click.exceptions.Exit(EXIT["bound missed"])


# ---------------------------------------------------------------------------------------------------------------- progress


QUIET, STEP = 0.5, 0.1  # seconds before the first line, and between two lines
_COUNT = re.compile(r"(\d[\d,]*) of (?:at most )?(\d[\d,]*)")


class Progress:
    """A progress line on standard error, only on a terminal and only for work that takes long.

    Where what is told counts (`3 of 14 rows`), it ends with the time that the rest will take at the pace so far.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._shown, self._next = False, time.monotonic() + QUIET
        self._pace = (0, 0, 0.0)  # of what is counted: how many, the first that was told, and when

    def __enter__(self) -> Callable[[str], None]:
        return self._tell

    def _tell(self, text: str) -> None:
        now = time.monotonic()
        left = self._left(text, now)
        if self._stream.isatty() and now >= self._next:
            self._shown, self._next = True, now + STEP
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{f'archsim: {text}'[: max(width - len(left), 0)]}{left[:width]}")
            self._stream.flush()

    def _left(self, text: str, now: float) -> str:
        """How long the rest takes; nothing before there is a pace."""
        counted = _COUNT.search(text)
        if counted is None:
            return ""
        done, count = (int(number.replace(",", "")) for number in counted.groups())
        if self._pace[0] != count or done < self._pace[1]:
            self._pace = (count, done, now)
        _, first, began = self._pace
        return f", {duration((now - began) / (done - first) * max(count - done, 0))} left" if done > first and now > began else ""

    def __exit__(self, *failure: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Make room for what is printed in between."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def duration(seconds: float) -> str:
    """A time in the largest unit of which it has two.

    >>> duration(90.0), duration(7200.0)
    ('90 s', '2 hours')
    """
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} s"


# --------------------------------------------------------------------------------------------------------------- no_effect


def tell_without_effect(requests: Iterable[Request], beyond: str = "") -> None:
    """Name the keys of --set and --scale that change no output of the requests, with the devices if not on all of them, and the
    ops of their networks of which only a bound is known.

    Keys that begin with `beyond` have an effect that an estimate does not show.
    """
    from archsim.estimation.estimate import without_effect
    from archsim.estimation.network import STRICT, bounded

    asked = list(requests)
    still = by_key((key, request.spec.identity.id) for request in asked for key in without_effect(request)
                   if not (beyond and key.startswith(beyond)))  # fmt: skip
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
    from archsim.estimation.estimate import read_by

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
