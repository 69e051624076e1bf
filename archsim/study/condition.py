"""Conditions on the numbers of a result, as a user writes them: `latency < 5ms and power_w <= 150`.

A name that ends with its unit (`latency_s`) takes a plain number in that unit or a text with one; any other name of a physical
quantity (`latency`, `memory.bandwidth`) takes a number with its unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArchsimError, UnknownName
from archsim.base.units import COUNT, parse
from archsim.cost.cost import Array

SIGNS = {"<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal}
# ending of a name -> unit of its number; longer endings first
ENDINGS = {
    "_per_s": "/s", "_per_w": "/s/W", "_js": "Js", "_s": "s", "_w": "W", "_j": "J", "_hz": "Hz", "_bytes": "B", "_mm2": "mm2",
    "_usd": "USD",
}  # fmt: skip
LONGEST = 1000  # characters; patterns take long for more
_AND = re.compile(r"\s+and\s+")
_TERM = re.compile(r"\s*([a-z0-9_.]+)\s*(<=|>=|<|>)\s*([^<>=]+?)\s*\Z")


class BadCondition(ArchsimError):
    """A condition or a limit that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition `name sign limit` on a number of a result, the limit in the base unit."""

    name: str
    sign: str
    limit: float
    written: str

    def holds(self, values: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Where it is true, [D]."""
        return np.asarray(SIGNS[self.sign](np.asarray(values[self.name], dtype=float), self.limit))

    def excess(self, values: Mapping[str, Array]) -> Array:
        """By how much it is violated, as |ln(value / limit)|, [D]; 0 where it holds."""
        ratio = np.log(np.maximum(np.asarray(values[self.name], dtype=float), 1e-300) / max(self.limit, 1e-300))
        return np.asarray(np.maximum(0.0, ratio if self.sign[0] == "<" else -ratio))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nameable:
    """A number that a condition may name: its key in the result, its unit, and whether the name itself says the unit."""

    key: str
    unit: str
    plain: bool


def read_conditions(text: str, known: Mapping[str, Nameable]) -> list[Condition]:
    """The conditions of `latency < 5ms and power_w < 150` on the numbers in `known`. Raises BadCondition or UnknownName.

    >>> named = {"latency": Nameable(key="latency_s", unit="s", plain=False)}
    >>> [(c.name, c.sign, c.limit) for c in read_conditions("latency < 5ms", named)]
    [('latency_s', '<', 0.005)]
    """
    if len(text) > LONGEST:
        raise BadCondition(f"a condition of {len(text)} characters; {LONGEST} at most")
    return [_condition(term, known) for term in _AND.split(text.strip())]


def nameable(keys: Mapping[str, str], short: Mapping[str, str]) -> dict[str, Nameable]:
    """The names of a result's numbers: `keys` with their units, and `short` names of keys, which take a unit.

    >>> sorted(nameable({"latency_s": "s"}, {"latency": "latency_s"}))
    ['latency', 'latency_s']
    """
    brief = {name: Nameable(key=key, unit=keys[key], plain=False) for name, key in short.items() if key in keys}
    return brief | {key: Nameable(key=key, unit=unit, plain=unit_of(key) == unit) for key, unit in keys.items()}


def unit_of(key: str) -> str:
    """The unit that the name of a number ends with; a pure number without such an ending.

    >>> unit_of("latency_s"), unit_of("throughput_per_w"), unit_of("batch")
    ('s', '/s/W', '1')
    """
    return next((unit for ending, unit in ENDINGS.items() if key.endswith(ending)), COUNT)


def limit_of(written: str, unit: str, plain: bool = False) -> float:
    """The number of `written` in the base unit; a number without a unit only if `plain`. Raises BadCondition.

    >>> limit_of("50ms", "s"), limit_of("0.05", "s", plain=True), limit_of("1000/s", "/s"), limit_of("1e3 img/s", "/s")
    (0.05, 0.05, 1000.0, 1000.0)
    """
    try:
        value = float(written) if plain else math.nan
    except ValueError:
        value = math.nan
    if plain and not math.isfinite(value) and _is_word(written):
        raise BadCondition(f"{written!r} is not a finite number")
    if math.isfinite(value):
        return value
    try:
        return parse(written, unit)
    except ValueError as error:
        raise BadCondition(str(error)) from None


def _is_word(written: str) -> bool:
    return written.strip("+-").lower() in ("nan", "inf", "infinity")


def _condition(term: str, known: Mapping[str, Nameable]) -> Condition:
    match = _TERM.match(term)
    if match is None:
        raise BadCondition(f"{term.strip()!r} is not a condition like 'latency < 5ms' or 'power_w < 150'")
    name, sign, written = match.groups()
    if name not in known:
        raise UnknownName("number", name, list(known), hint=f"one of {', '.join(known)}")
    found = known[name]
    try:
        limit = limit_of(written, found.unit, found.plain)
    except BadCondition as error:
        raise BadCondition(f"{name}: {error}") from None
    return Condition(name=found.key, sign=sign, limit=limit, written=f"{found.key} {sign} {written}")
