"""The settings of a device that its owner may choose, and which values of them are tried where nobody names any."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cache

import numpy as np

from archsim.base.arguments import ARGUMENTS, chosen
from archsim.base.errors import UnknownName
from archsim.base.files import data_folder
from archsim.base.units import show
from archsim.cost.power import SLOWEST
from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.estimation.clock import ROUNDED, highest_clock
from archsim.study.axis import BadAxis, KnobAxis, axis_of
from archsim.study.knob import meaning

SETTINGS = (*chosen(lambda row: row.tuned and row.kind == "quantity"), *chosen(lambda row: row.tuned and row.kind == "whole"))
CLOCK_STEP = {"gpu": 15e6, "cpu": 100e6}  # Hz; of NVIDIA's drivers since 2017, and of the multiplier of x86
LIMITS = tuple(round(1.0 - 0.05 * i, 2) for i in range(13))  # power limits, as shares of the TDP: boards admit down to about 0.4
BATCHES = tuple(2.0**i for i in range(7))  # samples of a run


def axes_of(spec: Spec, vary: Sequence[str], fixed: Container[str]) -> tuple[KnobAxis, ...]:
    """The axes of a search for a setting: those of `vary` as KEY=VALUES, and the usual ones of all others that are not fixed.

    The highest clock and limit come first, so that of equal settings the one with the least restrictions is found.

    Raises BadAxis, or UnknownName for what is no setting.
    """
    named = [_named(text, spec.kind) for text in vary]
    given = {axis.knob: axis for axis in named}
    for axis in named:
        if named.count(axis) > 1 or given[axis.knob] is not axis:
            raise BadAxis(f"{axis.knob}: is varied twice")
    usual = {"clock": core_clocks(spec), "memory_clock": memory_clocks(spec), "power_limit": power_limits(spec),
             "batch": BATCHES}
    found = [given[knob] if knob in given else KnobAxis(knob=knob, written=_written(knob, usual[knob]), values=usual[knob])
             for knob in SETTINGS if knob in given or (usual.get(knob) and knob not in fixed)]  # fmt: skip
    return tuple(map(_from_above, found))


def _named(text: str, kind: str) -> KnobAxis:
    knob = text.partition("=")[0].strip()
    if knob not in SETTINGS:
        raise UnknownName("setting", knob, SETTINGS, hint=f"one of {', '.join(SETTINGS)}; `archsim search` varies the device")
    return axis_of(text, kind)


def _from_above(axis: KnobAxis) -> KnobAxis:
    values = tuple(sorted((float(value) for value in axis.values), reverse=True))
    return axis if not values else KnobAxis(knob=axis.knob, written=axis.written, values=values, whole=axis.whole)


def core_clocks(spec: Spec) -> tuple[float, ...]:
    """Core clocks from the highest that the device takes by itself down to a tenth of it, where clock tables end [Hz]; none of a
    TPU, which lets nobody set one."""
    if spec.kind not in CLOCK_STEP:
        return ()
    top = float(np.ravel(highest_clock(spec.device))[0])
    return tuple(float(clock) for clock in np.arange(top, SLOWEST * top, -CLOCK_STEP[spec.kind]))


def memory_clocks(spec: Spec) -> tuple[float, ...]:
    """Memory clocks that a driver offers [Hz]: those at which the card was measured, and the usual one; none of a CPU.

    >>> from archsim.device.catalog import find
    >>> [round(clock / 1e6) for clock in memory_clocks(find("titan_x_maxwell"))]
    [3505, 810]
    """
    device = spec.device
    usual = device.memory_clock if isinstance(device, Gpu) else None
    if usual is None:
        return ()
    seen = [clock for clock in measured_memory_clocks().get(spec.identity.id, ()) if clock * ROUNDED < usual]
    return (usual, *sorted(seen, reverse=True))


@cache
def measured_memory_clocks() -> Mapping[str, tuple[float, ...]]:
    """For each device the memory clocks of the published powers by unit [Hz]."""
    from archsim.evidence.table import read_table

    table = read_table(data_folder("reports/published").joinpath("unit_power.csv.gz"))
    found: dict[str, set[float]] = {}
    for row in table.rows:
        if row.cells["mem_mhz"]:
            found.setdefault(row.cells["hardware"], set()).add(1e6 * float(row.cells["mem_mhz"]))
    return {device: tuple(sorted(clocks)) for device, clocks in found.items()}


def power_limits(spec: Spec) -> tuple[float, ...]:
    """Power limits from the TDP down to 40 % of it, above the idle power [W]; none of a TPU, of which they are not modelled."""
    if spec.kind not in CLOCK_STEP:
        return ()
    power = spec.device.power
    tdp, idle = (float(np.ravel(value)[0]) for value in (power.tdp, power.idle))
    return tuple(share * tdp for share in LIMITS if share * tdp > idle)


def _written(knob: str, values: Sequence[float]) -> str:
    unit = meaning("gpu", knob).unit
    return ",".join(show(value, unit, 6).replace(" ", "") for value in values)


def range_words(axis: KnobAxis, kind: str) -> str:
    """An axis in words: its values where they are few, otherwise its ends."""
    unit = meaning(kind, axis.knob).unit
    values = [show(float(value), unit) for value in sorted(float(value) for value in axis.values)]
    name = ARGUMENTS[axis.knob].title
    return f"{name} {', '.join(values)}" if len(values) < 5 else f"{name} {values[0]} to {values[-1]} ({len(values)})"
