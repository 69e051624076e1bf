"""Units and meanings of quantities, from the docstrings of the functions and records that have them."""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from typing import Any

from archsim.base.units import COUNT, UNITS

SHAPE = "V"  # of one value for each variant, not volts
_BRACKET = re.compile(r"\s*\[([^\]\[]*)\]")
_SYMBOL = re.compile(r"([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): (\S.*)\Z")


def unit_in(text: str) -> str:
    """The first unit in brackets; a pure number where there is none. Shapes stand in brackets too.

    >>> unit_in("Memory traffic of one launch [B], [D, V]"), unit_in("CTAs of one launch, [V].")
    ('B', '1')
    """
    return next((word for word in _BRACKET.findall(text) if word in UNITS and word != SHAPE), COUNT)


def meaning_in(text: str) -> str:
    """The first sentence without what stands in brackets.

    >>> meaning_in("Time of the busiest SM [s], [D, V]: its CTAs. More of it.")
    'time of the busiest SM: its CTAs'
    """
    plain = _BRACKET.sub("", text).replace(",:", ":").partition(". ")[0].rstrip(" .,")
    return plain[:1].lower() + plain[1:] if plain[1:2].islower() and "'s " not in plain.partition(" ")[0] + " " else plain


@cache
def of(thing: Any) -> tuple[str, str]:
    """Unit and meaning of what a function or property gives, from the first line of its docstring."""
    first = (inspect.getdoc(thing) or "").partition("\n")[0]
    return unit_in(first), meaning_in(first)


@cache
def comment(module: str, name: str) -> str:
    """What the comment beside a fixed number says of it, in this module or in the one of its folder that has the number.

    >>> import archsim.cost.occupancy
    >>> comment("archsim.cost.occupancy", "WARP")
    'threads; the unit in which every NVIDIA GPU schedules, for a spec that does not say'
    """
    folder = module.rpartition(".")[0] + "."
    for place in (module, *[other for other in sorted(sys.modules) if other.startswith(folder)]):
        if hasattr(sys.modules[place], name):
            found = re.search(rf"^{name} = [^#\n]*# (.*)$", inspect.getsource(sys.modules[place]), flags=re.MULTILINE)
            if found:
                return found[1]
    return ""


@cache
def symbols(thing: Any) -> dict[str, tuple[str, str]]:
    """Unit and meaning of the symbols that the docstring of a function or record lists, one a line: `name: meaning [unit]`.

    Of a record, also those of what it inherits.
    """
    found = {}
    docs = [inspect.getdoc(each) or "" for each in reversed(getattr(thing, "__mro__", (thing,)))]
    for line in "\n".join(docs).splitlines():
        match = _SYMBOL.match(line.strip())
        if match:
            names, text = match.groups()
            found.update(dict.fromkeys(names.split(", "), (unit_in(text), meaning_in(text))))
    return found
