"""Keys that follow a knob: `l2.bandwidth=sm.count` keeps their ratio, `power.tdp=clock^3` follows the cube."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from archsim.cost.cost import Array
from archsim.estimation.clock import memory_clock_of
from archsim.estimation.request import Request
from archsim.study.axis import BadAxis
from archsim.study.knob import CHOICES, WORDS, meaning
from archsim.trace.dims import SEQUENCE

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
    return float("nan") if value is None else float(np.ravel(value)[0])


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
