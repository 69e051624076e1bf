"""The words that every command shares: what runs, on what, with which measurements, and in which form the answer comes.

A command takes them as decorators, so that a word has one name, one meaning and one help text everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

import click

from archsim.base.writer import PAGE
from archsim.cli.completed import Known
from archsim.cli.output import FORCE, output
from archsim.cli.terminal import say, show_text
from archsim.cli.types import Decorator, together


class ListOption(click.Option):
    """An option whose words are separated by commas, or named again: `--hw a,b` or `--hw a --hw b`."""

    def __init__(self, *names: Any, **words: Any) -> None:
        usual = words.get("default")
        super().__init__(*names, **{**words, "multiple": True, "default": (usual,) if isinstance(usual, str) else usual})

    def process_value(self, ctx: click.Context, value: Any) -> str | None:
        """All words, with commas between; None without any."""
        found = super().process_value(ctx, value)
        return ",".join(found) if found else None


NET = click.option("--net", type=Known("network"), required=True,
                   help="A shipped network, or a path: trace file, ONNX, prototxt, config.json, Chakra, profile.")  # fmt: skip
NETS = click.option("--net", cls=ListOption, type=Known("network", many=True), required=True,
                    help="Networks, or paths of their files, separated by commas.")  # fmt: skip
HW = click.option("--hw", type=Known("device"), required=True, help="A shipped device, an alias, or the path of a spec file.")
HWS = click.option("--hw", cls=ListOption, type=Known("devices", many=True), required=True,
                   help="Devices, separated by commas; also all, gpu, cpu, or a pattern like 'a100*'.")  # fmt: skip
MEASUREMENTS = click.option("--measurements", type=click.Path(), multiple=True, metavar="FILE",
                            help="Measurement files; the shipped corpus if none is given.")  # fmt: skip
ROWS_OF = click.option("--hw", cls=ListOption, type=Known("device", many=True), default=None, metavar="DEVICE,...",
                       help="Only rows of these devices; yours are named by path (FILE.toml at FILE.csv is found).")  # fmt: skip


boundary_options = together(  # power at the device, or at the plug of its computer
    click.option("--boundary", type=click.Choice(["device", "wall"]), default=None, show_default="device",
                 help="Where power is measured: at the board, module or package, or at the wall."),
    click.option("--system", default=None, metavar="NAME[:DEVICES]",
                 help="The computer at the wall and the devices in it (`archsim list systems`)."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """In which form an answer goes to standard output: as JSON, as CSV, or else as text, of which `level` says how much."""

    json: bool
    csv: bool
    level: int = 0

    def show(self, answer: Any, module: ModuleType | None = None, **told: Any) -> None:
        """Print an answer as the module of `archsim.answers` that is of its class says it, or the `module` that is given.

        told: what else its `sections` are made of
        """
        from archsim.answers import module_of

        of = module_of(answer) if module is None else module
        if self.json:
            import json

            click.echo(json.dumps(of.record(answer), indent=2, allow_nan=False))
        elif self.csv:
            click.echo(of.csv(answer), nl=False)
        else:
            show_text(of.sections(answer, **told), self.level)

    def say(
        self, text: Callable[..., str], record: Callable[..., Any], *of: Any, csv: Callable[..., str] | None = None
    ) -> None:  # fmt: skip
        """Print an answer, which each of the functions makes of the same arguments; `record` returns plain values."""
        if self.json:
            import json

            click.echo(json.dumps(record(*of), indent=2, allow_nan=False))
        elif self.csv and csv is not None:
            click.echo(csv(*of), nl=False)
        else:
            say(text(*of))


def answer_forms(csv: str = "", json: str = "Print one JSON object.", layers: str = "", all: str = "") -> Decorator:
    """`--json`, and where their helps are given `--csv`, `--layers`, `--all`: the command gets them as `form`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def asked(as_json: bool, as_csv: bool = False, everything: bool = False, **given: Any) -> Any:
            if as_json and as_csv:
                raise click.UsageError("--json and --csv both print to standard output; choose one")
            deeper = bool(layers) and given.pop("layers")
            return command(form=AnswerForm(json=as_json, csv=as_csv, level=2 if everything else int(deeper)), **given)

        flags = (("--all", "everything", all), ("--layers", "layers", layers), ("--csv", "as_csv", csv),
                 ("--json", "as_json", json))  # fmt: skip
        wrapped: Callable[..., Any] = asked
        for flag, name, text in flags:
            wrapped = click.option(flag, name, is_flag=True, help=text)(wrapped) if text else wrapped
        return wrapped

    return add


def html_option(what: str = "Also write a self-contained page with charts.") -> Decorator:
    """`--html FILE`: a page beside what is printed; and `--force`."""
    return together(output("--html", PAGE, what), FORCE)


# option that other tools or earlier versions have -> the one here
ELSEWHERE = {
    "--base": "--hw", "--hardware": "--hw", "--device": "--hw", "--gpu": "--hw", "--cpu": "--hw", "--spec": "--hw",
    "--network": "--net", "--model": "--net", "--measured": "--measurements", "--framework": "--stack", "--library": "--stack",
    "--dtype": "--precision", "--batch-size": "--batch", "--freq": "--clock", "--frequency": "--clock", "--output": "--out",
    "--sequence-length": "--seq-len",
}  # fmt: skip


def with_nearest(error: click.NoSuchOption, params: Sequence[click.Parameter]) -> click.UsageError:
    """The error for an unknown option, naming the option of the command that is called differently here."""
    here = ELSEWHERE.get(error.option_name)
    if here is not None and any(here in param.opts for param in params):
        return click.UsageError(f"no option {error.option_name!r}; here it is called {here}", error.ctx)
    return error
