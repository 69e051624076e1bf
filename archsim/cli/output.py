"""What a command puts out: the form of its answer on standard output, and files.

Names of files are checked while the command line is read, before any work starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from archsim.base.writer import PAGE, TIMELINE, OutputFile, OutputKind, json_with
from archsim.cli.terminal import note, show_text
from archsim.cli.vocabulary import Decorator, flag, together

if TYPE_CHECKING:
    from archsim.estimation.power_curve import PowerCurve
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


def files_in(folder: str, schemas: Mapping[str, str]) -> list[OutputFile]:
    """JSON files of a folder by their names and schemas, in any version, refused before any work where they cannot be written."""
    if not folder:
        raise click.UsageError("an empty text names no folder")
    found = [output_file(str(Path(folder) / f"{name}.json"), json_with(schema.partition("/")[0] + "/"))
             for name, schema in schemas.items()]  # fmt: skip
    for file in found:
        file.check()
    return found


def output(name: str, kind: OutputKind, text: str, *, prints: bool = False) -> Decorator:
    """An option that names a file to write; it arrives as an OutputFile, or None."""
    return click.option(name, metavar="FILE", type=click.Path(), callback=_checked(kind, prints), help=text)


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[FORCED] = value


FORCE = flag("--force", "Overwrite files that this command did not write.", is_eager=True, expose_value=False,
             callback=_remember)


def write(file: OutputFile, text: str) -> None:
    """Write a file and say so."""
    file.write(text)
    note(f"wrote {file.path}")


def write_json(file: OutputFile, record: Any) -> None:
    """Write plain values, one a line, so that a change shows as such."""
    write(file, json.dumps(record, indent=1, allow_nan=False) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """In which form an answer goes to standard output: as JSON, as CSV, or else as text, of which `level` says how much; and the
    page and the timeline of it that are written.
    """

    json: bool
    csv: bool
    level: int = 0
    html: OutputFile | None = None
    timeline: OutputFile | None = None

    def show(self, answer: Any, module: ModuleType | None = None, **told: Any) -> None:
        """Print an answer, and write its page, as the module of `archsim.answers` that is of its class says it, or the `module`
        that is given.

        told: what else its `sections` are made of
        """
        of = module or _module_of(answer)
        self.write(answer, of, **told)
        if self.json:
            click.echo(json.dumps(of.record(answer), indent=2, allow_nan=False))
        elif self.csv:
            click.echo(of.csv(answer), nl=False)
        else:
            show_text(of.sections(answer, **told), self.level)

    def write(self, answer: Any, module: ModuleType | None = None, **told: Any) -> None:
        """Write its page alone, if one is asked for."""
        if self.html is not None:
            from archsim.render.html import page

            write(self.html, page((module or _module_of(answer)).sections(answer, **told)))

    def draw(self, recording: Recording, title: str, power: PowerCurve | None = None) -> None:
        """Write its timeline for Perfetto, with the power of the run if it is known, if one is asked for."""
        if self.timeline is not None:
            from archsim.render.chrome_trace import chrome_trace

            write(self.timeline, chrome_trace(recording, title, power))


def _module_of(answer: Any) -> ModuleType:
    from archsim.answers import module_of

    return module_of(answer)


PAGE_OPTIONS = (output("--html", PAGE, "Also write a self-contained page with charts."), FORCE)


def answer_forms(
    csv: str = "", json: str = "Print one JSON object.", layers: str = "", all: str = "", timeline: str = "",
    page: bool = False,
) -> Decorator:  # fmt: skip
    """`--json`, and where their helps are given `--csv`, `--layers`, `--all` and `--timeline`, and of an answer with a `page`
    `--html` and `--force`: the command gets them as `form`.
    """
    flags = {"--json as_json": json, "--csv as_csv": csv, "--layers": layers, "--all everything": all}
    shown = [*(flag(words, text) for words, text in flags.items() if text), *(PAGE_OPTIONS if page else ())]
    if timeline:
        shown.append(output("--timeline", TIMELINE, timeline))

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def asked(
            as_json: bool, as_csv: bool = False, layers: bool = False, everything: bool = False, html: OutputFile | None = None,
            timeline: OutputFile | None = None, **given: Any,
        ) -> Any:  # fmt: skip
            if as_json and as_csv:
                raise click.UsageError("--json and --csv both print to standard output; choose one")
            level = 2 if everything else int(layers)
            return command(form=AnswerForm(json=as_json, csv=as_csv, level=level, html=html, timeline=timeline), **given)

        return together(*shown)(asked)

    return add
