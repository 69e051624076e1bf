"""Elasticities of the outputs with respect to every value of the spec.

The elasticity of y with respect to x is d ln y / d ln x, here ln(y+ / y-) / ln(x+ / x-) between x (1 - h) and x (1 + h), or the
nearest other whole numbers; a one-sided difference where one of the two is impossible.

y has steps, because a library switches algorithms and CTAs fill whole waves. A small step h can hit one of these or miss it, so
a wide step is computed as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.base.errors import ArchsimError, UnknownName
from archsim.base.record import Answer
from archsim.base.units import TEXT
from archsim.cost.cost import Array
from archsim.device.part import Unit
from archsim.device.spec import keys
from archsim.device.variant import first_of
from archsim.estimation.request import Request
from archsim.study.grid import outcomes

STEP = 0.01  # h, as a share of the value
SPAN = 0.25  # the wide step, of the tornado
STEEP, SMALL = 0.7, 0.05  # a step of y: one-sided slopes that differ by this share of the larger one, if that is not small
ALIKE = 7  # digits of an elasticity by which values that act alike are told
NOTHING = 1e-9  # elasticity below which an output counts as independent of a value
OUTPUTS = ("latency_s", "energy_j", "power_w")
WITHOUT_MEANING = {  # keys of which small changes have no meaning, and why
    "chip.node": "selects constants of the model, so a small change has no meaning",
    "sm.schedulers": "is 1, 2 or 4, between which warps are dealt in equal shares, so a small change has no meaning",
    "sm.warp": "is a power of two, so a small change has no meaning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Elasticity:
    """How the outputs depend on one value of the spec.

    local: {output: elasticity}
    sides: {output: (elasticity to less, to more)}, None on an impossible side
    swing: {output: (ln y(low) - ln y, ln y(high) - ln y)} of the wide step from `low` to `high` [base unit]
    why: why there is no elasticity, else ""
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
        """Whether any output depends on it."""
        reach = [abs(v) for v in self.local.values()] + [abs(v) for pair in self.swing.values() for v in pair if v is not None]
        return max(reach, default=0.0) > NOTHING

    @property
    def jump(self) -> str:
        """A remark where the latency has a step at the base value, so that the two one-sided slopes differ much; else ""."""
        less, more = self.sides.get("latency_s", (None, None))
        if less is None or more is None:
            return ""
        larger = max(abs(less), abs(more))
        if abs(less - more) <= STEEP * larger or larger < SMALL:
            return ""
        return "at a step: " + ("less has an effect, more little" if abs(less) > abs(more) else "more has an effect, less little")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity(Answer):
    """The values of a device in the order of its spec, with the small and the wide step as shares; `output` is the one asked for.
    """

    request: Request
    values: tuple[Elasticity, ...]
    step: float
    span: float
    output: str


def sensitivity(request: Request, wanted: Sequence[str] = (), step: float = STEP, span: float = SPAN,
                tell: Callable[[str], None] = lambda text: None) -> list[Elasticity]:  # fmt: skip
    """The elasticities with respect to all numeric values of the spec, or to those `wanted`, in the order of the spec.

    step, span: small and wide step, as shares of the value; tell: takes the progress

    Raises UnknownName for a key that the device does not have.
    """
    known = {key: unit for key, unit, _ in keys(request.spec.kind) if unit.unit != TEXT and key in request.spec.entries}
    for key in wanted:
        if key not in known:
            raise UnknownName(f"number of {request.spec.identity.id}", key, list(known), hint="`archsim show hw NAME` prints all")
    asked = {key: unit for key, unit in known.items() if not wanted or key in wanted}
    found = []
    for done, (key, unit) in enumerate(asked.items()):
        tell(f"{done} of {len(asked)} values")
        found.append(_elasticity(request, key, unit, step, span))
    return found


def _elasticity(request: Request, key: str, unit: Unit, step: float, span: float) -> Elasticity:
    value = first_of(request.spec.entries[key].number)
    if key in WITHOUT_MEANING:
        return _undefined(key, unit, value, WITHOUT_MEANING[key])
    if value == 0:
        return _undefined(key, unit, value, "is 0, so a relative change has no meaning")
    near, wide = (neighbours(value, size, unit) for size in (step, span))
    points = np.array([near[0], value, near[1], wide[0], wide[1]])
    try:
        # The base is computed as a point too: defaults that follow from other values are no longer derived once a key is set.
        found = outcomes(request, {key: points})
    except ArchsimError as error:
        return _undefined(key, unit, value, str(error))
    logs = {name: np.log(found.values[name]) for name in OUTPUTS}
    local = {name: slope(points[:3], y[:3]) for name, y in logs.items()}
    if any(math.isnan(v) for v in local.values()):
        return _undefined(key, unit, value, next((text for text in found.problems if text), "has no neighbour"))
    sides = {name: (_side(points, y, 0), _side(points, y, 2)) for name, y in logs.items()}
    swing = {name: (_log_change(y[3], y[1]), _log_change(y[4], y[1])) for name, y in logs.items()}
    return Elasticity(key=key, unit=unit, value=value, low=wide[0], high=wide[1], local=local, sides=sides,
                      swing=swing)  # fmt: skip


def _undefined(key: str, unit: Unit, value: float, why: str) -> Elasticity:
    return Elasticity(key=key, unit=unit, value=value, low=value, high=value, local={}, sides={}, swing={}, why=why)


def neighbours(value: float, share: float, unit: Unit) -> tuple[float, float]:
    """A value less and plus a share of it, within the range of its unit; whole numbers change by at least one.

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
    """d y / d ln x from three points, the base in the middle: a central difference, or a one-sided one where a value is missing.

    x: three values, [3]; y: logs of an output, [3], NaN where there is none. NaN if both sides are missing.

    >>> round(slope(np.array([0.5, 1.0, 2.0]), np.log([2.0, 1.0, 0.5])), 6)  # y = 1 / x
    -1.0
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


def _log_change(y: float, base: float) -> float | None:
    return None if math.isnan(y) else float(y - base)


def by_swing(found: Sequence[Elasticity], output: str = "latency_s") -> list[Elasticity]:
    """The values that matter, in decreasing order of their swing of `output`: the rows of a tornado.

    Values that act alike (a bandwidth, and the share of it that is reached) are one row, that of the widest swing, with the names
    of all: equal but for the last digits, which differ from one version of numpy to the next.
    """
    rows: dict[object, list[Elasticity]] = {}
    for e in sorted((e for e in found if e.matters), key=lambda e: (-_rounded(_swing_width(e, output)), e.key)):
        alike = tuple([round(e.local[name], ALIKE) for name in OUTPUTS])
        rows.setdefault(alike if any(alike) else e.key, []).append(e)
    merged = [replace(of[0], key=", ".join(e.key for e in of)) for of in rows.values()]
    return sorted(merged, key=lambda e: (-_rounded(_swing_width(e, output)), -_rounded(abs(e.local[output])), e.key))


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _swing_width(e: Elasticity, output: str) -> float:
    return sum(abs(v) for v in e.swing[output] if v is not None)
