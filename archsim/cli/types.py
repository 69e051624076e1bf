"""Types of option values: numbers with units, and shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from archsim.base.units import COUNT, parse, parse_share, show

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # what adds options to a command


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, the first of them the first in the help."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


class Quantity(click.ParamType):  # type: ignore[type-arg]  # earlier versions of click have no argument
    """A number with its unit, like 690MHz, in the base unit; within `low` and `high`."""

    def __init__(self, unit: str, *, low: float = -math.inf, high: float = math.inf) -> None:
        self.unit, self.low, self.high = unit, low, high
        self.name = unit if unit != COUNT else "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, in the base unit."""
        try:
            number = self.parsed(value) if isinstance(value, str) else float(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self.low <= number <= self.high:
            self.fail(f"{value} is not {self.range_said()}", param, ctx)
        return number

    def parsed(self, text: str) -> float:
        """The number of a text; ValueError where it is none."""
        return parse(text, self.unit)

    def shown(self, value: float) -> str:
        """A number as a user would write it."""
        return show(value, self.unit)

    def range_said(self) -> str:
        """`between 1 s and 5 s`, or `at least 1 s`."""
        if math.isfinite(self.high):
            return f"between {self.shown(self.low)} and {self.shown(self.high)}"
        return f"at least {self.shown(self.low)}"


class Share(Quantity):
    """A share, like 20% or 0.2, within `low` and `high`."""

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        super().__init__(COUNT, low=low, high=high)
        self.name = "share"

    def parsed(self, text: str) -> float:
        """The fraction."""
        return parse_share(text)

    def shown(self, value: float) -> str:
        """In per cent."""
        return f"{100 * value:g}%"
