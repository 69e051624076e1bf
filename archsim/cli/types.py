"""Types of option values, what a shell completes of them, and the options of `ARGUMENTS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archsim.base.arguments import ARGUMENTS, Argument
from archsim.base.units import COUNT, show
from archsim.base.values import quantity, share

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # what adds options to a command
T = TypeVar("T")


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, the first of them the first in the help."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def read(option: str, reader: Callable[..., T], *given: object) -> T:
    """What a reader makes of the words of an option; its error names the option."""
    try:
        return reader(*given)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


class Quantity(click.ParamType):  # type: ignore[type-arg]  # earlier versions of click have no argument
    """A number with its unit, like 690MHz, in the base unit; within `low` and `high`."""

    def __init__(self, unit: str, *, low: float = -math.inf, high: float = math.inf) -> None:
        self.unit, self.low, self.high = unit, low, high
        self.name = unit if unit != COUNT else "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, in the base unit."""
        try:
            number = self.parsed(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self.low <= number <= self.high:
            low, high = self.shown(self.low), self.shown(self.high)
            said = f"between {low} and {high}" if math.isfinite(self.high) else f"at least {low}"
            self.fail(f"{value} is not {said}", param, ctx)
        return number

    def parsed(self, value: Any) -> float:
        """The number that was given; ValueError where it is none."""
        return quantity(value, self.unit)

    def shown(self, value: float) -> str:
        """A number as a user would write it."""
        return show(value, self.unit)


class Share(Quantity):
    """A share, like 20% or 0.2, within `low` and `high`."""

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        super().__init__(COUNT, low=low, high=high)
        self.name = "share"

    def parsed(self, value: Any) -> float:
        """The fraction."""
        return share(value)

    def shown(self, value: float) -> str:
        """In per cent."""
        return f"{100 * value:g}%"


# ----------------------------------------------------------------------------------------------- completion


class Known(click.ParamType):  # type: ignore[type-arg]  # earlier versions of click have no argument
    """A text whose usual values a shell completes: those of a catalog; `many` of them with commas between."""

    name = "text"

    def __init__(self, what: str, *, many: bool = False) -> None:
        self.what, self.many = what, many

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text as it is; what it means is found out where it is used."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, or the files of the shell where a path begins."""
        from archsim.study.names import are_files, names_of

        done, _, last = incomplete.rpartition(",") if self.many else ("", "", incomplete)
        if are_files(self.what) and ("/" in last or last.startswith(".")) and not done:
            return [_item(last, "file")]
        prefix = f"{done}," if done else ""
        given = set(done.split(",")) if done else set()
        return items((name for name in names_of(self.what) if name not in given), last, prefix)


class Shown(Known):
    """The name of a thing whose kind is the argument before it: `show hw NAME`."""

    def __init__(self) -> None:
        super().__init__("")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of that kind."""
        what = {"hw": "device", "node": "node", "net": "network", "stack": "stack"}.get(str(ctx.params.get("what")))
        return [] if what is None else Known(what).shell_complete(ctx, param, incomplete)


class Keyed(click.ParamType):  # type: ignore[type-arg]
    """A text KEY=VALUE whose keys are `more` words, and those of a device."""

    name = "text"

    def __init__(self, *more: str, device: bool = True) -> None:
        self.more, self.device = more, device

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is."""
        return str(value)

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

    def process_value(self, ctx: click.Context, value: Any) -> str | None:
        """All words, with commas between; None without any."""
        found = super().process_value(ctx, value)
        return ",".join(found) if found else None


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
    words: dict[str, Any] = {"help": row.doc, "default": row.default, "type": ArgumentType(row), "metavar": row.metavar or None}
    words["show_default"] = row.usual if row.usual and row.default is None else row.default is not None
    if row.choices:
        words["metavar"] = f"[{'|'.join(row.choices)}]"
    if row.kind == "flag":
        words |= {"type": None, "is_flag": True, "show_default": False}
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
