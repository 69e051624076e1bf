"""The words that every command shares: what runs, on what, with which measurements, and in which form the answer comes.

A command takes them as decorators, so that a word has one name, one meaning and one help text everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

import click
from click.core import ParameterSource

from archsim.base.arguments import ARGUMENTS, Argument, given_of, rows_of
from archsim.base.errors import nearest
from archsim.base.values import parts
from archsim.base.writer import PAGE, OutputFile
from archsim.cli.output import FORCE, output, write_page
from archsim.cli.terminal import say, show_text
from archsim.cli.types import Decorator, Known, ListOption, option, options, together

NET, HW = (option(ARGUMENTS[name], required=True) for name in ("net", "hw"))
MODEL = click.option("--net", type=Known("model"), required=True,
                     help="A shipped model (`archsim list models`), its Hugging Face id, or the path of a config.json.")
PLAIN = click.option("--plain", is_flag=True, help="Do not use compiled code, even if numba is installed.")
NETS = click.option("--net", cls=ListOption, type=Known("network", many=True), required=True,
                    help="Networks, or paths of their files, separated by commas.")  # fmt: skip
HWS = click.option("--hw", cls=ListOption, type=Known("devices", many=True), required=True,
                   help="Devices, separated by commas; also all, gpu, cpu, or a pattern like 'a100*'.")  # fmt: skip
MEASUREMENTS = click.option("--measurements", type=click.Path(), multiple=True, metavar="FILE",
                            help="Measurement files; the shipped corpus if none is given.")  # fmt: skip
ROWS_OF = click.option("--hw", cls=ListOption, type=Known("device", many=True), metavar="DEVICE,...",
                       help="Only rows of these devices; yours are named by path (FILE.toml at FILE.csv is found).")  # fmt: skip


BATCHES = click.option("--batch", "batch_text", cls=ListOption, show_default="1", metavar="N|RANGE",
                       help="Samples per run: one number, a list 1,4,16, or a range 1:256:x2 or 8:64:8.")  # fmt: skip
FIDELITY = option(ARGUMENTS["fidelity"])
setting_options = options(rows_of("run"))  # all that say what runs and how
boundary_options = options(rows_of("wall"))  # power at the device, or at the plug of its computer


def some_options(*without: str) -> Decorator:
    """Those except the named ones, whose arguments keep their defaults."""
    return options(rows_of("run", without=without))


def choices(given: Mapping[str, Any], table: Mapping[str, Argument] = ARGUMENTS) -> dict[str, Any]:
    """The arguments of a model that somebody has given, from the options of a command."""
    found = given_of(given, table)
    if "calibration" in found:
        from archsim.calibration.constants import load

        found["calibration"] = load(found["calibration"])
    return found


def pairs(text: str, known: Sequence[str], option: str) -> dict[str, str]:
    """`max=32,wait=5ms` as {"max": "32", "wait": "5ms"}; a word without a value has the empty one.

    >>> pairs("disk,decode=8", ["disk", "decode"], "--input")
    {'disk': '', 'decode': '8'}
    """
    found: dict[str, str] = {}
    for part in parts(text):
        key, _, value = (word.strip() for word in part.partition("="))
        if key not in known:
            near = nearest(key, known) or list(known)
            raise click.BadParameter(f"no {key!r}; nearest: {', '.join(near)}", param_hint=option)
        if key in found:
            raise click.BadParameter(f"{key} is given twice", param_hint=option)
        found[key] = value
    return found


def holds(condition: str, record: dict[str, Any]) -> bool:
    """Whether `latency > 5ms and power_w < 10` is true of a result.

    >>> holds("latency > 5ms and power_w < 10", {"latency_s": 0.01, "power_w": 5.0})
    True
    """
    import numpy as np

    from archsim.study.condition import nameable, read_conditions, unit_of
    from archsim.study.objective import SHORT

    numbers = {name: value for name, value in record.items() if isinstance(value, int | float)}
    known = nameable({name: unit_of(name) for name in numbers}, SHORT)
    return all(bool(c.holds({c.name: np.asarray(numbers[c.name])})) for c in read_conditions(condition, known))


def refuse(names: Container[str | None], why: str) -> None:
    """Raise UsageError for those of these options that were given: they have no effect with what `why` names."""
    context = click.get_current_context()
    given = [one.opts[0] for one in context.command.params if one.expose_value and one.name in names
             and context.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE]  # fmt: skip
    if given:
        raise click.UsageError(f"{', '.join(given)}: no effect with {why}; leave it out")


def refuse_others(mode: str, allowed: Container[str | None]) -> None:
    """The same for all options but those that a mode reads."""
    refuse({one.name for one in click.get_current_context().command.params if one.name not in allowed}, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """In which form an answer goes to standard output: as JSON, as CSV, or else as text, of which `level` says how much; and the
    page of it that is written.
    """

    json: bool
    csv: bool
    level: int = 0
    html: OutputFile | None = None

    def show(self, answer: Any, module: ModuleType | None = None, **told: Any) -> None:
        """Print an answer, and write its page, as the module of `archsim.answers` that is of its class says it, or the `module`
        that is given.

        told: what else its `sections` are made of
        """
        of = module or _module_of(answer)
        self.write(answer, of, **told)
        if self.json:
            import json

            click.echo(json.dumps(of.record(answer), indent=2, allow_nan=False))
        elif self.csv:
            click.echo(of.csv(answer), nl=False)
        else:
            show_text(of.sections(answer, **told), self.level)

    def write(self, answer: Any, module: ModuleType | None = None, **told: Any) -> None:
        """Write its page alone, if one is asked for."""
        if self.html is not None:
            write_page(self.html, (module or _module_of(answer)).sections(answer, **told))

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


def _module_of(answer: Any) -> ModuleType:
    from archsim.answers import module_of

    return module_of(answer)


def answer_forms(
    csv: str = "", json: str = "Print one JSON object.", layers: str = "", all: str = "", page: bool = False
) -> Decorator:  # fmt: skip
    """`--json`, and where their helps are given `--csv`, `--layers`, `--all`, and of an answer with a `page` `--html` and
    `--force`: the command gets them as `form`.
    """
    flags = {"--json as_json": json, "--csv as_csv": csv, "--layers": layers, "--all everything": all}
    shown = [click.option(*words.split(), is_flag=True, help=text) for words, text in flags.items() if text]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def asked(as_json: bool, as_csv: bool = False, everything: bool = False, **given: Any) -> Any:
            if as_json and as_csv:
                raise click.UsageError("--json and --csv both print to standard output; choose one")
            deeper, html = bool(layers) and given.pop("layers"), given.pop("html") if page else None
            form = AnswerForm(json=as_json, csv=as_csv, level=2 if everything else int(deeper), html=html)
            return command(form=form, **given)

        return together(*shown, *([html_option()] if page else []))(asked)

    return add


def html_option(what: str = "Also write a self-contained page with charts.") -> Decorator:
    """`--html FILE`: a page beside what is printed; and `--force`."""
    return together(output("--html", PAGE, what), FORCE)


# option that other tools or earlier versions have -> the one here
ELSEWHERE = {f"--{alias.replace('_', '-')}": row.option for row in ARGUMENTS.values() for alias in row.aliases}
ELSEWHERE |= {"--measured": "--measurements", "--output": "--out"}
OF_OTHERS = {"--layer": "archsim explain", "--where": "archsim compare or tune", "--p99": "archsim simulate serve"}




def explained(error: click.UsageError, words: Sequence[str]) -> click.UsageError:
    """An error of click about a command line, with what the user may have meant: an option that is called differently here, one
    that another command has, or names without their options.
    """
    context = error.ctx
    assert context is not None
    params = context.command.params
    if isinstance(error, click.NoSuchOption):
        here = ELSEWHERE.get(error.option_name)
        if here is not None and any(here in param.opts for param in params):
            return click.UsageError(f"no option {error.option_name!r}; here it is called {here}", context)
        if error.option_name in OF_OTHERS:
            return click.UsageError(f"no option {error.option_name!r} here; {OF_OTHERS[error.option_name]} has it", context)
    if type(error) in (click.UsageError, click.MissingParameter):
        bare = _bare(context, words)
        named = {word.partition("=")[0] for word in words}
        missing = [param.opts[0] for param in params
                   if isinstance(param, click.Option) and param.required and named.isdisjoint(param.opts)]  # fmt: skip
        meant = [f"{option} {word}" for option, word in zip(missing, bare, strict=False)]
        if meant:
            return click.UsageError(f"{' '.join(bare)}: without an option; write {' '.join(meant)}", context)
    return error


def _bare(context: click.Context, words: Sequence[str]) -> list[str]:
    """The words that belong to no option of a command."""
    try:
        return list(context.command.make_parser(context).parse_args(list(words))[1])
    except click.UsageError:
        return []
