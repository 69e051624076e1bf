"""Options that several commands share, and the values that their texts become."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from archsim.base.arguments import ARGUMENTS, Argument, given_of, rows_of
from archsim.base.errors import nearest
from archsim.base.values import parts
from archsim.cli.types import Decorator, ListOption, option, options

BATCHES = click.option("--batch", "batch_text", cls=ListOption, show_default="1", metavar="N|RANGE",
                       help="Samples per run: one number, a list 1,4,16, or a range 1:256:x2 or 8:64:8.")  # fmt: skip
FIDELITY = option(ARGUMENTS["fidelity"])
setting_options = options(rows_of("run"))  # all that say what runs and how


def some_options(*without: str) -> Decorator:
    """Those except the named ones, whose arguments keep their defaults."""
    return options(rows_of("run", without=without))


def energy_budget_option(text: str) -> Decorator:
    """`--energy-budget ENERGY`: the most that a sample may take."""
    return option(replace(ARGUMENTS["energy_budget"], doc=text))


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


def refuse_others(mode: str, allowed: Container[str]) -> None:
    """Raise UsageError for options that were given and that a mode does not read."""
    context = click.get_current_context()
    given = [one.opts[0] for one in context.command.params if one.expose_value and one.name not in allowed
             and context.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE]  # fmt: skip
    if given:
        raise click.UsageError(f"{', '.join(given)}: no effect with {mode}; leave it out")
