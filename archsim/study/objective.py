"""What a search wants: conditions as a user writes them (`latency < 5ms and power_w <= 150`), objectives, the Pareto front.

A name that ends with its unit (`latency_s`) takes a plain number in that unit or a text with one; any other name of a physical
quantity (`latency`, `memory.bandwidth`) takes a number with its unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archsim.base.errors import ArchsimError, UnknownName, one_of
from archsim.base.units import COUNT, parse
from archsim.cost.cost import Array
from archsim.lower.kernel import Index

# ----------------------------------------------------------------------------------------------------------- conditions

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
    found = known[one_of("number", name, known)]
    try:
        limit = limit_of(written, found.unit, found.plain)
    except BadCondition as error:
        raise BadCondition(f"{name}: {error}") from None
    return Condition(name=found.key, sign=sign, limit=limit, written=f"{found.key} {sign} {written}")


# ----------------------------------------------------------------------------------------------------- the Pareto front

DIGITS = 9  # to which costs are compared: what differs by less is arithmetic, and no choice


def rounded(costs: Array) -> Array:
    """The costs to `DIGITS` significant digits.

    >>> near = rounded(np.array([0.1, 0.1 + 1e-15, 0.1001, 0.0, np.inf]))
    >>> bool(near[0] == near[1]), bool(near[1] == near[2]), near[3:].tolist()
    (True, False, [0.0, inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(costs))) - DIGITS + 1)
        found = np.round(costs / unit) * unit
    return np.where(np.isfinite(costs) & (costs != 0), found, costs)


def pareto_front(costs: Array) -> Index:
    """Positions of the rows of `costs` [D, K] that no other row dominates, in order of the first cost; less is better.

    A row dominates another if it is at most equal in all K costs, to nine digits, and less in one. Of equal rows the first
    counts; rows with NaN never do. In lexicographic order the first row cannot be dominated by later ones; taking it and
    dropping what it dominates, repeatedly, leaves the front.

    >>> pareto_front(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
    [1, 2, 0]
    """
    costs = rounded(costs)
    rest = np.lexsort([np.arange(len(costs)), *costs.T[::-1]])
    rest = rest[~np.isnan(costs[rest]).any(axis=1)]
    kept = []
    while rest.size:
        first = rest[0]
        kept.append(first)
        rest = rest[(costs[rest] < costs[first]).any(axis=1)]
    return np.array(kept, dtype=np.intp)


# ----------------------------------------------------------------------------------------------- objectives and targets

OUTPUTS = {  # output -> (short name, unit, whether more is better); energy_delay: energy of a sample x latency of its batch
    "latency_s": ("latency", "s", False), "throughput_per_s": ("throughput", "/s", True), "power_w": ("power", "W", False),
    "energy_j": ("energy", "J", False), "throughput_per_w": ("efficiency", "/s/W", True),
    "dram_bytes": ("traffic", "B", False), "memory_bytes": ("memory", "B", False), "clock_hz": ("clock", "Hz", True),
    "area_mm2": ("area", "mm2", False), "cost_usd": ("cost", "USD", False),
    "energy_per_sample_j": ("sample_energy", "J", False), "energy_delay_js": ("energy_delay", "Js", False),
}  # fmt: skip
SILICON = ("area_mm2", "cost_usd")
SHORT = {short: output for output, (short, _, _) in OUTPUTS.items()}
OUTPUT_NAMES = nameable({output: unit for output, (_, unit, _) in OUTPUTS.items()}, SHORT)


class BadGoal(ArchsimError):
    """An objective or a target that cannot be read."""


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
    """The conditions of `latency < 50ms and power_w < 150` on outputs and on the varied `knobs`, which have these units.

    Raises BadCondition or UnknownName.

    >>> [(c.name, c.sign, c.limit) for c in conditions("latency < 50ms and sm.count >= 8", {"sm.count": "1"})]
    [('latency_s', '<', 0.05), ('sm.count', '>=', 8.0)]
    """
    return read_conditions(text, OUTPUT_NAMES | nameable(dict(knobs), {}))


def target_of(text: str) -> Condition:
    """The condition of `throughput=1000/s` (at least) or `latency=50ms` (at most). Raises BadGoal."""
    name, separator, written = (part.strip() for part in text.partition("="))
    if not separator or not written:
        raise BadGoal(f"{text!r} is not OUTPUT=VALUE, like throughput=1000/s or latency=50ms")
    output = output_of(name)
    _, unit, more = OUTPUTS[output]
    limit = limit_of(written, unit, plain=name == output)
    if limit <= 0:
        raise BadGoal(f"{text!r}: a target is more than 0")
    return Condition(name=output, sign=">=" if more else "<=", limit=limit, written=f"{OUTPUTS[output][0]} {written}")
