"""Axes of a sweep: the values of one knob as a user writes them; and keys that follow a knob (`power.tdp=clock^3`).

    memory.bandwidth=100GB/s:1TB/s:50log   50 values, equal ratios          batch=1:256:x2       factors of 2
    memory.bandwidth=100GB/s:1TB/s:10lin   10 values, equal differences     sm.count=8:160:8     steps of 8
    memory.bandwidth=100GB/s:1TB/s[:log]   any value between (samples)      precision=fp32,fp16  a list
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.base.units import COUNT, parse
from archsim.cost.cost import Array
from archsim.device.part import Unit
from archsim.device.variant import first_of
from archsim.estimation.clock import memory_clock_of
from archsim.estimation.request import Request
from archsim.study.knob import CHOICES, WORDS, exact_word, meaning
from archsim.trace.dims import SEQUENCE

MOST_VALUES = 10_000_000  # of one axis, because they are held in memory
T = TypeVar("T", float, str)
_COUNTED = re.compile(r"(\d{1,9})(log|lin)\Z")


class BadAxis(ArchsimError):
    """A description of what to vary that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobAxis:
    """The values of a knob: a list `values`, or, without one, any number from `low` to `high` (evenly in ratio if `log`)."""

    knob: str
    written: str
    values: tuple[float | str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False

    @property
    def words(self) -> bool:
        """Whether its values are names, not numbers."""
        return self.knob in WORDS

    def picked(self, index: Array) -> Array:
        """The values at positions of the list, [D]."""
        return np.asarray(self.values)[index.astype(np.intp)]

    def drawn(self, share: Array) -> Array:
        """The values at shares in [0, 1) of the list or range, [D]."""
        if self.values:
            return self.picked(np.floor(share * len(self.values)))
        if self.log:
            value = self.low * (self.high / self.low) ** share
            return np.clip(np.round(value) if self.whole else value, self.low, self.high)
        if self.whole:
            return np.asarray(np.floor(self.low + share * (self.high - self.low + 1.0)))
        return np.asarray(self.low + share * (self.high - self.low))


def axis_of(text: str, kind: str) -> KnobAxis:
    """The axis that `KEY=VALUES` describes for a kind of device. Raises BadAxis or UnknownName.

    >>> axis_of("sm.count=8:32:8", "gpu").values
    (8.0, 16.0, 24.0, 32.0)
    """
    knob, separator, written = (part.strip() for part in text.partition("="))
    if not separator or not knob or not written:
        raise BadAxis(f"{text!r} is not KEY=VALUES, like memory.bandwidth=100GB/s:1TB/s:50log or batch=1,4,16")
    if knob in WORDS:
        said = [exact_word(kind, knob, word) for word in _list(knob, written)]
        return KnobAxis(knob=knob, written=",".join(said), values=_distinct(knob, tuple(said)))
    unit = meaning(kind, knob)
    if ":" not in written:
        values = tuple([_number(knob, word, unit) for word in _list(knob, written)])
        return KnobAxis(knob=knob, written=written, values=_distinct(knob, values), whole=unit.whole)
    parts = [part.strip() for part in written.split(":")]
    if len(parts) > 3:
        raise BadAxis(f"{knob}: {written!r} has more than FROM:TO:STEP")
    low, high = _number(knob, parts[0], unit), _number(knob, parts[1], unit)
    if low > high:
        raise BadAxis(f"{knob}: the range {parts[0]}:{parts[1]} runs backwards; write the smaller value first")
    step = parts[2] if len(parts) == 3 else ""
    if step in ("", "log", "lin"):
        if low <= 0 and step == "log":
            raise BadAxis(f"{knob}: a range of ratios must begin above 0")
        return KnobAxis(knob=knob, written=written, low=low, high=high, log=step == "log", whole=unit.whole)
    return KnobAxis(knob=knob, written=written, values=_steps(knob, low, high, step, unit), whole=unit.whole)


def _list(knob: str, written: str) -> tuple[str, ...]:
    words = tuple([word.strip() for word in written.split(",")])
    if not all(words):
        raise BadAxis(f"{knob}: the list {written!r} has an empty place")
    return _distinct(knob, words)


def _distinct(knob: str, values: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise BadAxis(f"{knob}: {twice} stands in the list twice")
    return values


def _number(knob: str, written: str, unit: Unit) -> float:
    try:
        value = parse(written, unit.unit)
    except ValueError as error:
        raise BadAxis(f"{knob}: {error}") from None
    problem = unit.problem(value)
    if problem is not None:
        raise BadAxis(f"{knob}: {written} {problem}")
    return value


def _steps(knob: str, low: float, high: float, step: str, unit: Unit) -> tuple[float, ...]:
    """The values of a range with a step, a factor or a count; `high` is one of them where the steps reach it."""
    counted = _COUNTED.match(step)
    if counted:
        values = _counted(knob, low, high, int(counted[1]), counted[2])
    elif step.startswith("x"):
        values = _multiplied(knob, low, high, step)
    else:
        try:
            size = parse(step, unit.unit)
        except ValueError as error:
            hint = "a step like the ends, a factor like x2, or a number of values like 50log or 20lin"
            raise BadAxis(f"{knob}: {error}; a range ends with {hint}") from None
        if size <= 0:
            raise BadAxis(f"{knob}: the step {step} must be more than 0")
        count = _floored((high - low) / size * (1 + 1e-12)) + 1
        _check_count(knob, count)
        values = np.asarray(low + size * np.arange(count), dtype=float)
    if unit.whole:
        values = np.unique(np.round(values))
    return tuple(values.tolist())


def _floored(number: float) -> int:
    """The whole number below; what is too large for one is as many values as no range may have."""
    return math.floor(number) if number < 1e18 else 10**18


def _counted(knob: str, low: float, high: float, count: int, how: str) -> Array:
    _check_count(knob, count)
    if count == 0:
        raise BadAxis(f"{knob}: a range of 0 values is empty")
    if count == 1 or low == high:
        return np.array([low])
    if how == "lin":
        return np.asarray(np.linspace(low, high, count))
    if low <= 0:
        raise BadAxis(f"{knob}: a range of ratios must begin above 0")
    values = low * (high / low) ** (np.arange(count) / (count - 1))
    values[-1] = high
    return np.asarray(values)


def _multiplied(knob: str, low: float, high: float, step: str) -> Array:
    try:
        factor = parse(step[1:], COUNT)
    except ValueError as error:
        raise BadAxis(f"{knob}: {error}") from None
    if factor <= 1 or low <= 0:
        raise BadAxis(f"{knob}: {step} must be more than x1, and the range begin above 0")
    count = _floored((math.log(high) - math.log(low)) / math.log(factor) + 1e-9) + 1
    _check_count(knob, count)
    return np.asarray(np.minimum(low * factor ** np.arange(count), high))


def _check_count(knob: str, count: int) -> None:
    if count > MOST_VALUES:
        raise BadAxis(f"{knob}: {count:,} values; one axis has at most {MOST_VALUES:,}")


# ----------------------------------------------------------------------------------------------------- keys that follow

_FORM = re.compile(r"\s*([a-z0-9_.]+)\s*=\s*([a-z0-9_.]+)\s*(?:\^\s*([-+]?[0-9.]+))?\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupling:
    """knob = base value of `knob` x (value of `follows` / its base value)^`exponent`."""

    knob: str
    follows: str
    exponent: float = 1.0

    @property
    def written(self) -> str:
        """As the user writes it."""
        return f"{self.knob}={self.follows}" + (f"^{self.exponent:g}" if self.exponent != 1 else "")

    def values(self, request: Request, column: Array) -> Array:
        """The values of the knob where the followed one has these values, [D]; whole numbers are rounded."""
        own, other = base_value(request, self.knob), base_value(request, self.follows)
        value = own * (np.asarray(column, dtype=float) / other) ** self.exponent
        return np.maximum(1.0, np.round(value)) if meaning(request.spec.kind, self.knob).whole else value

    def check(self, request: Request) -> None:
        """Raises BadAxis or UnknownName for a coupling that the device cannot have."""
        for knob in (self.knob, self.follows):
            meaning(request.spec.kind, knob)
            if not base_value(request, knob) > 0:
                raise BadAxis(f"{self.written}: {request.spec.identity.id} has no {knob} above 0 to start from")


def base_value(request: Request, knob: str) -> float:
    """The value of a knob in the request, in its base unit; NaN where it has none."""
    value: Array | float | None
    if knob == "seq_len":
        value = request.trace.symbols.get(SEQUENCE)
    elif knob in ("clock", "batch", "threads"):
        value = getattr(request, knob)
    elif knob == "memory_clock":
        value = memory_clock_of(request.spec, request.memory)
    elif knob == "power_limit":
        value = request.device.power.tdp if request.limit is None else request.limit
    else:
        value = request.spec.entries[knob].number if knob in request.spec.entries else None
    return float("nan") if value is None else first_of(value)


def coupling_of(text: str, axes: tuple[str, ...]) -> Coupling:
    """The coupling that `KEY=KNOB` or `KEY=KNOB^EXPONENT` describes; KNOB is one of the `axes`. Raises BadAxis.

    >>> coupling_of("power.tdp=clock^3", ("clock",)).exponent
    3.0
    """
    match = _FORM.match(text)
    if match is None:
        raise BadAxis(f"{text!r} is not KEY=KNOB or KEY=KNOB^EXPONENT, like l2.bandwidth=sm.count or power.tdp=clock^3")
    if match[2] not in axes or match[2] in WORDS:
        raise BadAxis(f"{text}: {match[2]} is not varied, so that nothing can follow it; varied: {', '.join(axes) or 'nothing'}")
    if match[1] in CHOICES:
        raise BadAxis(f"{text}: {match[1]} chooses kernels; only numbers of a device and its clock can follow")
    try:
        exponent = float(match[3] or 1)
    except ValueError:
        raise BadAxis(f"{text}: {match[3]} is not a number") from None
    return Coupling(knob=match[1], follows=match[2], exponent=exponent)
