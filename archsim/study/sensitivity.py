"""What one per cent of each spec value buys: elasticities by central differences in log space, from the points of a sweep.

The elasticity of y with respect to x is d ln y / d ln x, taken as ln(y+ / y-) / ln(x+ / x-) between two neighbours of the base:
x (1 - h) and x (1 + h), or the nearest other whole numbers; one of the two and the base where the other is no machine.
A library's choices and the rounding to whole waves make y jump in places, so that a small step can meet a jump or miss it: what a
wide step shows stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archsim.base.errors import ArchsimError, UnknownName
from archsim.base.units import TEXT
from archsim.cost.cost import Array
from archsim.device.part import Unit
from archsim.device.spec import keys
from archsim.estimation.request import Request
from archsim.study.grid import outcomes

STEP = 0.01  # of the value, either way
SPAN = 0.25  # the same for the tornado
STEEP, SMALL = 0.7, 0.05  # a jump: slopes that differ by this share of the larger, which is at least so large
NOTHING = 1e-9  # elasticity below which an output does not depend on a value
OUTPUTS = ("latency_s", "energy_j", "power_w")
NAMES_A_ROW = ("chip.node",)  # a process node chooses constants; there is nothing between two nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Elasticity:
    """How the outputs follow one value of the spec. `local` is {output: elasticity}; `sides` the same to less and to more alone,
    None where that is no machine; `swing` is {output: (ln y(low) - ln y, ln y(high) - ln y)} for the wide step, whose ends in
    the base unit are `low` and `high`.

    `why` says why there is no elasticity.
    """

    key: str
    unit: Unit
    value: float
    low: float
    high: float
    local: Mapping[str, float]
    sides: Mapping[str, tuple[float | None, float | None]]
    swing: Mapping[str, tuple[float | None, float | None]]
    why: str = ""

    @property
    def matters(self) -> bool:
        """Whether an output depends on it."""
        reach = [abs(v) for v in self.local.values()] + [abs(v) for pair in self.swing.values() for v in pair if v is not None]
        return max(reach, default=0.0) > NOTHING

    @property
    def jump(self) -> str:
        """What a reader must know where the two sides differ much: the base stands at a jump of the latency; "" elsewhere."""
        less, more = self.sides.get("latency_s", (None, None))
        if less is None or more is None:
            return ""
        larger = max(abs(less), abs(more))
        if abs(less - more) <= STEEP * larger or larger < SMALL:
            return ""
        return "less costs, more buys little" if abs(less) > abs(more) else "more jumps, less changes little"


def sensitivity(request: Request, wanted: Sequence[str] = (), step: float = STEP, span: float = SPAN) -> list[Elasticity]:
    """The elasticities with respect to every numeric value of the spec, or to those `wanted`, in the order of the spec.

    Raises UnknownName for a key that the device does not have.
    """
    known = {key: unit for key, unit, _ in keys(request.spec.kind) if unit.unit != TEXT and key in request.spec.entries}
    for key in wanted:
        if key not in known:
            raise UnknownName(f"number of {request.spec.identity.id}", key, list(known), hint="`archsim show hw NAME` prints all")
    return [_of(request, key, unit, step, span) for key, unit in known.items() if not wanted or key in wanted]


def _of(request: Request, key: str, unit: Unit, step: float, span: float) -> Elasticity:
    value = float(np.ravel(request.spec.entries[key].number)[0])
    if key in NAMES_A_ROW:
        return _none(key, unit, value, "chooses constants of the model; there is nothing between two of them")
    if value == 0:
        return _none(key, unit, value, "is 0, of which a per cent is nothing")
    near, wide = (neighbours(value, size, unit) for size in (step, span))
    points = np.array([near[0], value, near[1], wide[0], wide[1]])
    try:
        # A base that is written down as such may follow other rules than one that nobody has set, so it is a point as well.
        found = outcomes(request, {key: points})
    except ArchsimError as error:
        return _none(key, unit, value, str(error))
    logs = {name: np.log(found.values[name]) for name in OUTPUTS}
    local = {name: slope(points[:3], y[:3]) for name, y in logs.items()}
    if any(math.isnan(v) for v in local.values()):
        return _none(key, unit, value, next((text for text in found.problems if text), "has no neighbour"))
    sides = {name: (_side(points, y, 0), _side(points, y, 2)) for name, y in logs.items()}
    swing = {name: (_moved(y[3], y[1]), _moved(y[4], y[1])) for name, y in logs.items()}
    return Elasticity(key=key, unit=unit, value=value, low=wide[0], high=wide[1], local=local, sides=sides,
                      swing=swing)  # fmt: skip


def _none(key: str, unit: Unit, value: float, why: str) -> Elasticity:
    return Elasticity(key=key, unit=unit, value=value, low=value, high=value, local={}, sides={}, swing={}, why=why)


def neighbours(value: float, share: float, unit: Unit) -> tuple[float, float]:
    """A value less and more by a share of it, inside the range of its unit; whole numbers differ by one at least.

    >>> from archsim.device.part import Unit
    >>> neighbours(24.0, 0.01, Unit(unit="1", doc="", whole=True, low=1, above=False))
    (23.0, 25.0)
    >>> neighbours(0.9, 0.25, Unit(unit="1", doc="", high=1.0))
    (0.675, 1.0)
    """
    low, high = value * (1.0 - share), value * (1.0 + share)
    if unit.whole:
        low, high = min(round(low), value - 1.0), max(round(high), value + 1.0)
    least = unit.low if not unit.above else 0.0
    return max(float(low), least), min(float(high), unit.high)


def slope(x: Array, y: Array) -> float:
    """d y / d ln x from three points, the base in the middle: over both sides, or over the one that has a value.

    `y` are logs, NaN where there is none; NaN if neither side has one.
    """
    u = np.log(x)
    sides = [i for i in (0, 2) if not math.isnan(y[i]) and u[i] != u[1]]
    if len(sides) == 2:
        return float((y[2] - y[0]) / (u[2] - u[0]))
    return float((y[sides[0]] - y[1]) / (u[sides[0]] - u[1])) if sides and not math.isnan(y[1]) else math.nan


def _side(x: Array, y: Array, i: int) -> float | None:
    if math.isnan(y[i]) or x[i] == x[1]:
        return None
    return float((y[i] - y[1]) / math.log(x[i] / x[1]))


def _moved(y: float, base: float) -> float | None:
    return None if math.isnan(y) else float(y - base)


def ranked(found: Sequence[Elasticity], output: str = "latency_s") -> list[Elasticity]:
    """Those that matter, what moves `output` most in the wide step first: a tornado."""
    return sorted((e for e in found if e.matters), key=lambda e: (-_reach(e, output), -abs(e.local[output])))


def _reach(e: Elasticity, output: str) -> float:
    return sum(abs(v) for v in e.swing[output] if v is not None)
