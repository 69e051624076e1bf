"""The words that every command shares: types of values and what a shell completes of them, and the options of `ARGUMENTS`.

A command takes them as decorators, so that a word has one name, one meaning and one help text everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archsim.base.arguments import ARGUMENTS, Argument, chosen, given_of, rows_of
from archsim.base.errors import near_words
from archsim.base.units import COUNT, show
from archsim.base.values import parts, quantity, read, share
from archsim.cli.terminal import duration

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from archsim.estimation.request import Request
    from archsim.study.space import Space

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # what adds options to a command


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, the first of them the first in the help."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


class Quantity(click.ParamType):  # type: ignore[type-arg]  # earlier versions of click have no argument
    """A number with its unit, like 690MHz, in the base unit; within `low` and `high`; with `%` a share, like 20% or 0.2."""

    def __init__(self, unit: str, *, low: float = -math.inf, high: float = math.inf) -> None:
        self.unit, self.low, self.high = unit, low, high
        self.name = {COUNT: "number", "%": "share"}.get(unit, unit)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, in the base unit."""
        try:
            number = share(value) if self.unit == "%" else quantity(value, self.unit)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self.low <= number <= self.high:
            low, high = (f"{100 * end:g}%" if self.unit == "%" else show(end, self.unit) for end in (self.low, self.high))
            said = f"between {low} and {high}" if math.isfinite(self.high) else f"at least {low}"
            self.fail(f"{value} is not {said}", param, ctx)
        return number


# ----------------------------------------------------------------------------------------------- completion


class Known(click.ParamType):  # type: ignore[type-arg]  # earlier versions of click have no argument
    """A text whose usual values a shell completes: those of a catalog; `many` of them with commas between."""

    name = "text"

    def __init__(self, what: str, *, many: bool = False) -> None:
        self.what, self.many = what, many

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, or the files of the shell where a path begins."""
        from archsim.study.names import are_files, names_of

        done, _, last = incomplete.rpartition(",") if self.many else ("", "", incomplete)
        if are_files(self.what) and ("/" in last or last.startswith(".")) and not done:
            return [_item(last, "file")]
        prefix = f"{done}," if done else ""
        given = set(done.split(",")) if done else set()
        return items((name for name in names_of(self.what) if name not in given), last, prefix)


class Keyed(click.ParamType):  # type: ignore[type-arg]
    """A text KEY=VALUE whose keys are `more` words, and those of a device."""

    name = "text"

    def __init__(self, *more: str, device: bool = True) -> None:
        self.more, self.device = more, device

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Keys up to the `=`, then the words that an argument of that name takes."""
        key, separator, value = incomplete.partition("=")
        if separator:
            from archsim.study.names import names_of

            row = ARGUMENTS.get(key) if key in self.more else None
            return items(row.choices or names_of(row.names), value, f"{key}=") if row and (row.names or row.choices) else []
        own: dict[str, None] = {}
        if self.device:
            from archsim.device.spec import keys

            own = {name: None for kind in ("gpu", "cpu", "tpu") for name, _, _ in keys(kind)}
        return items((f"{name}=" for name in (*self.more, *own)), incomplete)


def items(names: Iterable[str], begun: str, prefix: str = "") -> list[CompletionItem]:
    """The names that begin so, with what stands before them; case and separators of what is begun do not matter."""
    listed = [*names]
    exact = [name for name in listed if name.startswith(begun)]
    alike = begun.lower().replace("-", "_").replace(" ", "_")
    return [_item(f"{prefix}{name}") for name in exact or [name for name in listed if name.startswith(alike)]]


def _item(text: str, kind: str = "plain") -> CompletionItem:
    from click.shell_completion import CompletionItem

    return CompletionItem(text, type=kind)


# -------------------------------------------------------------------------------------------------- options


class ListOption(click.Option):
    """An option whose words are separated by commas, or named again: `--hw a,b` or `--hw a --hw b`."""

    def __init__(self, *names: Any, **words: Any) -> None:
        usual = words.get("default")
        super().__init__(*names, **{**words, "multiple": True, "default": (usual,) if isinstance(usual, str) else usual})

    def process_value(self, ctx: click.Context, value: Any) -> list[str]:
        """All words, each once; none where the option is not given."""
        found = super().process_value(ctx, value)
        words = list(dict.fromkeys(parts(",".join(found or ()))))
        if found and not words:
            raise click.BadParameter("names nothing", ctx, self)
        return words


class LateHelpOption(click.Option):
    """An option whose help names rows of a model: a function that is called only when help is printed, so that no command
    imports them earlier.
    """

    def __init__(self, *names: Any, late_help: Callable[[], str], **words: Any) -> None:
        super().__init__(*names, **words)
        self.late_help = late_help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help."""
        self.help = self.late_help()
        return super().get_help_record(ctx)


FILE = click.Path()


def own(names: str, text: str, of: Any = None, usual: Any = None, **words: Any) -> Decorator:
    """An option that is no argument of a model, or one of a command alone.

    names: `--k depth`, where the command calls it otherwise; text: its help; usual: its default
    of: what its values are: a type of click, the catalog whose names they are, or all words that it takes
    """
    if of is FILE:
        words.setdefault("metavar", "FILE")
    kind = Known(of) if isinstance(of, str) else click.Choice(of) if isinstance(of, list | tuple) else of
    if usual is not None:
        words["default"] = usual
    return click.option(*names.split(), help=text, type=kind, **words)


def listed(names: str, text: str, catalog: str = "", usual: Any = None, **words: Any) -> Decorator:
    """An option of several words, which may be names of a catalog."""
    return own(names, text, Known(catalog, many=True) if catalog else None, usual, cls=ListOption, **words)


def flag(names: str, text: str, **words: Any) -> Decorator:
    """An option without a value."""
    return own(names, text, is_flag=True, **words)


# ------------------------------------------------------------------------------------------------ arguments


class ArgumentType(Known):
    """The value of an argument: read as everywhere, completed from its choices, its catalog, or files."""

    def __init__(self, row: Argument) -> None:
        super().__init__(row.names)
        self.row = row
        self.name = {"whole": "integer", "quantity": row.unit}.get(row.kind, "text")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What a model takes."""
        try:
            return self.row.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words that begin so."""
        if self.row.kind in ("file", "constants"):
            return [_item(incomplete, "file")]
        return super().shell_complete(ctx, param, incomplete) if self.what else items(self.row.choices, incomplete)


def option(row: Argument, **other: Any) -> Decorator:
    """The option of an argument; `other` words of click go before those that follow from its row."""
    spelt = [row.option, *(f"--{word}" for word in row.spelt)]
    words: dict[str, Any] = {"help": row.doc, "default": row.default, "type": ArgumentType(row), "metavar": row.metavar or None,
                             "show_default": row.usual or None}
    if row.choices:
        words["metavar"] = f"[{'|'.join(row.choices)}]"
    if row.kind == "flag":
        words |= {"type": None, "is_flag": True}
        spelt = spelt if row.default is not None else [f"{row.option}/--no-{row.called}"]
    elif row.kind in ("list", "pairs", "values", "factors", "sizes"):
        words |= {"type": Keyed() if row.word else None, "multiple": True, "default": ()}
        words["callback"] = lambda ctx, param, value: read(row.option, row.read, value) if value else row.default
    elif "{names}" in row.doc:
        words |= {"cls": LateHelpOption, "late_help": lambda: _named(row)}
    words |= other
    if words.get("required"):
        del words["default"]  # None, too, is a value for click
    return click.option(*spelt, row.name, **words)


def _named(row: Argument) -> str:
    from archsim.study.names import in_words

    return row.doc.format(names=in_words(row.names))


def options(rows: Iterable[Argument]) -> Decorator:
    """The options of several arguments."""
    return together(*map(option, rows))


# ------------------------------------------------------------------------------------------------------------- what runs, and how

NET, HW = (option(ARGUMENTS[name], required=True) for name in ("net", "hw"))
PLACE = together(NET, HW)
MODEL = own("--net", "A shipped model (`archsim list models`), its Hugging Face id, or the path of a config.json.", "model",
            required=True)
PLAIN = flag("--plain", "Do not use compiled code, even if numba is installed.")
NETS = listed("--net", "Networks, or paths of their files, separated by commas.", "network", required=True)
HWS = listed("--hw", "Devices, separated by commas; also all, gpu, cpu, or a pattern like 'a100*'.", "devices", required=True)
MEASUREMENTS = own("--measurements", "Measurement files; the shipped corpus if none is given.", FILE, multiple=True)
ROWS_OF = listed("--hw", "Only rows of these devices; yours are named by path (FILE.toml at FILE.csv is found).", "device",
                 metavar="DEVICE,...")


BATCHES = listed("--batch batch_text", "Samples per run: one number, a list 1,4,16, or a range 1:256:x2 or 8:64:8.",
                 show_default="1", metavar="N|RANGE")
FIDELITY = option(ARGUMENTS["fidelity"])
setting_options = options(rows_of("run"))  # all that say what runs and how
boundary_options = options(rows_of("wall"))  # power at the device, or at the plug of its computer


KNOBS = chosen(lambda row: row.varies and row.group != "place")  # beside the keys of a device
ROW_BYTES = 150  # of a point in the file of a sweep


space_options = together(
    own("--vary", "A knob and its values: FROM:TO:STEP, FROM:TO:x2, FROM:TO:50log, FROM:TO:20lin, or a list. Knobs are the "
        f"keys that `archsim show hw` prints, and {', '.join(KNOBS)}.", Keyed(*KNOBS), multiple=True, metavar="KEY=VALUES"),
    own("--link", "Let a value follow a knob: l2.bandwidth=sm.count in proportion, power.tdp=clock^3 to a power.",
        multiple=True, metavar="KEY=KNOB[^E]"),
    own("--sample", "N points of a Latin hypercube instead of the whole grid.", click.IntRange(min=1), metavar="N"),
    flag("--yes", "Go on even with a very large number of points."),
)  # fmt: skip


def some_options(*without: str) -> Decorator:
    """Those except the named ones, whose arguments keep their defaults."""
    return options(rows_of("run", without=without))


def ask_about(space: Space, request: Request, yes: bool, many: int, stored: bool = False) -> None:
    """Refuse `many` points and more without --yes, with the time that they would take, and the size of their file if `stored`."""
    if space.count < many or yes:
        return
    from archsim.study.sweep import points_per_second

    rate = points_per_second(space, request)
    size = f" and {space.count * ROW_BYTES / 1e9:,.1f} GB" if stored else ""
    raise click.UsageError(f"{space.count:,} points would take about {duration(space.count / rate)} on one core{size}; "
                           "--sample N takes some of them, --yes goes on")  # fmt: skip


def choices(given: Mapping[str, Any], table: Mapping[str, Argument] = ARGUMENTS) -> dict[str, Any]:
    """The arguments of a model that somebody has given, from the options of a command."""
    found = given_of(given, table)
    if "calibration" in found:
        from archsim.calibration.constants import load

        found["calibration"] = load(found["calibration"])
    return found


def pairs(words: Iterable[str], known: Sequence[str], option: str) -> dict[str, str]:
    """`max=32,wait=5ms` as {"max": "32", "wait": "5ms"}; a word without a value has the empty one.

    >>> pairs(["disk", "decode=8"], ["disk", "decode"], "--input")
    {'disk': '', 'decode': '8'}
    """
    found: dict[str, str] = {}
    for one in words:
        key, _, value = (word.strip() for word in one.partition("="))
        if key not in known:
            raise click.BadParameter(f"no {key!r}; nearest: {near_words(key, known)}", param_hint=option)
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

    from archsim.study.objective import SHORT, nameable, read_conditions, unit_of

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
