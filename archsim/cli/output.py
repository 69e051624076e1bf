"""Options that name files to write. They are checked while the command line is read, before any work starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from archsim.base.writer import TIMELINE, OutputFile, OutputKind
from archsim.cli.terminal import note
from archsim.cli.types import Decorator

if TYPE_CHECKING:
    from archsim.estimation.power_curve import PowerCurve
    from archsim.render.blocks import Block
    from archsim.schedule.observer import Recording

FORCED, NAMED = "archsim.forced", "archsim.outputs"  # where click keeps them while it reads a command line


def _checked(kind: OutputKind, prints: bool) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """What makes the name of a file an OutputFile, once it has been checked.

    Where a command prints what it does not write, `-` is standard output.
    """

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> OutputFile | None:
        if value is None or (value == "-" and prints):
            return None
        if value == "-":
            raise click.BadParameter("'-' is no file, and standard output has the text of the command; name a file", ctx, param)
        found = output_file(value, kind, ctx)
        place, named = found.check(), ctx.meta.setdefault(NAMED, {})
        if place in named:
            raise click.UsageError(f"{named[place]} and {param.opts[0]} both name {value}", ctx)
        named[place] = param.opts[0]
        return found

    return check


def output_file(path: str, kind: OutputKind, ctx: click.Context | None = None) -> OutputFile:
    """A file that the running command writes."""
    context = ctx or click.get_current_context()
    return OutputFile(path=path, kind=kind, command=str(context.info_name), force=context.meta.get(FORCED, False))


def output(name: str, kind: OutputKind, text: str, *, prints: bool = False) -> Decorator:
    """An option that names a file to write; it arrives as an OutputFile, or None."""
    return click.option(name, metavar="FILE", type=click.Path(), callback=_checked(kind, prints), help=text)


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[FORCED] = value


FORCE = click.option("--force", is_flag=True, is_eager=True, expose_value=False, callback=_remember,
                     help="Overwrite files that this command did not write.")  # fmt: skip


def timeline_option(text: str) -> Decorator:
    """`--timeline FILE`: when what ran."""
    return output("--timeline", TIMELINE, text)


def write(file: OutputFile, text: str) -> None:
    """Write a file and say so."""
    file.write(text)
    note(f"wrote {file.path}")


def write_page(file: OutputFile, blocks: Sequence[Block]) -> None:
    """Write an answer as a page."""
    from archsim.render.html import page

    write(file, page(blocks))


def write_timeline(file: OutputFile, recording: Recording, title: str, power: PowerCurve | None = None) -> None:
    """Write a timeline for Perfetto, with the power of the run if it is known; InputError where it cannot be written."""
    from archsim.render.chrome_trace import chrome_trace

    write(file, chrome_trace(recording, title, power))
