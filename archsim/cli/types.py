"""Types of option values, and the options of `ARGUMENTS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from archsim.base.arguments import Argument
from archsim.base.units import COUNT, show
from archsim.base.values import quantity, share
from archsim.cli.completed import Keyed, Known, items
from archsim.study.names import in_words

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
            return [CompletionItem(incomplete, type="file")]
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
    elif row.kind in ("list", "pairs", "table", "values", "factors", "sizes"):
        words |= {"type": Keyed() if row.word else None, "multiple": True, "default": ()}
        words["callback"] = lambda ctx, param, value: read(row.option, row.read, value) if value else row.default
    elif "{names}" in row.doc:
        words |= {"cls": LateHelpOption, "late_help": lambda: row.doc.format(names=in_words(row.names))}
    return click.option(*spelt, row.name, **{**words, **other})


def options(rows: Iterable[Argument]) -> Decorator:
    """The options of several arguments."""
    return together(*map(option, rows))
