"""Objectives of a search, and conditions on outputs and knobs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArchsimError, UnknownName
from archsim.base.units import UNITS, parse
from archsim.cost.cost import Array

OUTPUTS = {  # output -> (short name, unit, whether more is better)
    "latency_s": ("latency", "s", False), "throughput_per_s": ("throughput", "/s", True), "power_w": ("power", "W", False),
    "energy_j": ("energy", "J", False), "throughput_per_w": ("efficiency", "/s/W", True),
    "dram_bytes": ("traffic", "B", False), "memory_bytes": ("memory", "B", False), "clock_hz": ("clock_hz", "Hz", True),
    "area_mm2": ("area", "mm2", False), "cost_usd": ("cost", "USD", False),
}  # fmt: skip
SILICON = ("area_mm2", "cost_usd")
SIGNS = {"<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal}
_AND = re.compile(r"\s+and\s+")
_TERM = re.compile(r"\s*([a-z0-9_.]+)\s*(<=|>=|<|>)\s*([^<>=]+?)\s*\Z")


class BadGoal(ArchsimError):
    """An objective, a condition or a target that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An output to minimise or maximise."""

    output: str
    maximise: bool

    @property
    def written(self) -> str:
        """As a reader sees it."""
        return f"{'most' if self.maximise else 'least'} {OUTPUTS[self.output][0]}"

    def cost(self, values: Mapping[str, Array]) -> Array:
        """The quantity to minimise, [D]."""
        return -values[self.output] if self.maximise else values[self.output]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition `name sign limit` on an output or knob, the limit in the base unit."""

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


def output_of(name: str) -> str:
    """The output with a full or short name. Raises UnknownName.

    >>> output_of("energy"), output_of("latency_s")
    ('energy_j', 'latency_s')
    """
    for output, (short, _, _) in OUTPUTS.items():
        if name in (output, short):
            return output
    known = [*OUTPUTS, *(short for short, _, _ in OUTPUTS.values())]
    raise UnknownName("output", name, known, hint=f"one of {', '.join(short for short, _, _ in OUTPUTS.values())}")


def objectives(minimise: Sequence[str], maximise: Sequence[str]) -> list[Objective]:
    """The objectives of a search. Raises UnknownName, or BadGoal for one that is named twice."""
    found = [Objective(output=output_of(n), maximise=m) for given, m in ((minimise, False), (maximise, True)) for n in given]
    names = [o.output for o in found]
    for name in names:
        if names.count(name) > 1:
            raise BadGoal(f"{name}: is an objective twice")
    return found


def in_better_direction(named: Sequence[str]) -> list[Objective]:
    """Objectives that minimise or maximise each output, whichever is better.

    >>> [objective.written for objective in in_better_direction(["throughput", "area"])]
    ['most throughput', 'least area']
    """
    return [Objective(output=output, maximise=OUTPUTS[output][2]) for output in map(output_of, dict.fromkeys(named))]


def conditions(text: str, knobs: Mapping[str, str]) -> list[Condition]:
    """The conditions of `latency_s < 0.05 and power < 150W`; `knobs` are the varied ones with their units.

    A limit is a number in the base unit, or has a unit. Raises BadGoal or UnknownName.

    >>> [(c.name, c.sign, c.limit) for c in conditions("latency < 50ms and sm.count >= 8", {"sm.count": "1"})]
    [('latency_s', '<', 0.05), ('sm.count', '>=', 8.0)]
    """
    return [_condition(term, knobs) for term in _AND.split(text.strip())]


def _condition(term: str, knobs: Mapping[str, str]) -> Condition:
    match = _TERM.match(term)
    if match is None:
        raise BadGoal(f"{term.strip()!r} is not a condition like 'latency_s < 0.05' or 'power < 150W'")
    name, sign, written = match.groups()
    unit = knobs.get(name)
    if unit is None:
        name = output_of(name)
        unit = OUTPUTS[name][1]
    return Condition(name=name, sign=sign, limit=limit_of(written, unit), written=f"{name} {sign} {written}")


def limit_of(written: str, unit: str) -> float:
    """A number in the base unit, with or without it. Raises BadGoal.

    >>> limit_of("50ms", "s"), limit_of("0.05", "s"), limit_of("1000/s", "/s"), limit_of("1e3 img/s", "/s")
    (0.05, 0.05, 1000.0, 1000.0)
    """
    try:
        value = float(written)
    except ValueError:
        bare = re.sub(r"\s*(img|seq)?/s(/W)?\Z", "", written) if unit.startswith("/") else written
        try:
            value = float(bare) if unit not in UNITS else parse(bare, unit)
        except ValueError:
            raise BadGoal(f"{written!r} is not a number{f' of {unit}' if unit in UNITS else ''}") from None
    if not math.isfinite(value):
        raise BadGoal(f"{written!r} is not finite")
    return value


def target_of(text: str) -> Condition:
    """The condition of `throughput=1000/s` (at least) or `latency=50ms` (at most). Raises BadGoal."""
    name, separator, written = (part.strip() for part in text.partition("="))
    if not separator or not written:
        raise BadGoal(f"{text!r} is not OUTPUT=VALUE, like throughput=1000/s or latency=50ms")
    output = output_of(name)
    _, unit, more = OUTPUTS[output]
    limit = limit_of(written, unit)
    if limit <= 0:
        raise BadGoal(f"{text!r}: a target is more than 0")
    return Condition(name=output, sign=">=" if more else "<=", limit=limit, written=f"{OUTPUTS[output][0]} {written}")
