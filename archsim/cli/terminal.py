"""What standard output is, what is said beside it, and how a command leaves.

Colour follows `--color`, then NO_COLOR (https://no-color.org), then whether standard output is a terminal.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from archsim.base.errors import EXIT

if TYPE_CHECKING:
    from archsim.render.blocks import Block
    from archsim.render.text import Screen

MODES = ("auto", "always", "never")
CHOSEN = "archsim.color"  # where click keeps the value of --color


def color_option(command: click.Command) -> click.Command:
    """The command with the option `--color`."""
    if not any(parameter.name == "color" for parameter in command.params):
        command.params.append(click.Option(
            ["--color"], type=click.Choice(MODES), expose_value=False, callback=_choose,
            help="Colour on standard output: always, never, or auto (a terminal without NO_COLOR), which is usual."))  # fmt: skip
    return command


def _choose(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[CHOSEN] = value


def screen() -> Screen:
    """Standard output as it is now."""
    from archsim.render.text import Screen

    context = click.get_current_context(silent=True)
    mode = (context.meta.get(CHOSEN) if context else None) or "auto"
    terminal = sys.stdout.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return Screen(width=shutil.get_terminal_size().columns if terminal else None, blocks=encoding.startswith("utf"),
                  color=mode == "always" or (mode == "auto" and terminal and not plain))  # fmt: skip


def say(text: str) -> None:
    """Print the text of an answer that is no blocks yet."""
    click.echo(text)


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
