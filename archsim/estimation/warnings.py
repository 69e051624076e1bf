"""Warnings beside an estimate: what does not fit, has no effect, or is beyond what was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archsim.calibration.constants import EXTRAPOLATED
from archsim.device.catalog import is_shipped
from archsim.device.device import Tpu
from archsim.estimation.intervals import class_of
from archsim.estimation.memory import fits, footprint_of
from archsim.estimation.no_effect import read_by, without_effect
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request

NOTABLE = 0.01  # of the latency: a smaller loss to the board's own power limit is no warning


def warnings_of(request: Request, result: Run) -> tuple[str, ...]:
    """The warnings of an estimate, one sentence each."""
    found = []
    device, memory = request.device, footprint_of(request, result)
    capacity = float(device.memory.capacity)
    if not fits(memory, capacity):
        found.append(f"does not fit: needs {memory.total / 2**30:.2f} GiB of {capacity / 2**30:.2f} GiB")
    if isinstance(request.spec.device, Tpu):
        from archsim.estimation.tpu import spilled

        found += spilled(request.spec.device, result.lowered.kernels)
    found += _unknown(request)
    for key, value in without_effect(request).items():
        why = f": it is {value} already" if value else f"; {read_by(request, key)}" if read_by(request, key) else ""
        found.append(f"{key} changes no output of this estimate{why}")
    found += _throttled(request, result)
    kind, spread = class_of(request)
    if kind.endswith(EXTRAPOLATED) and not spread.rows:
        found.append(f"no measured row of a {request.spec.kind.upper()} stands behind this: the interval is the widest of other "
                     "kinds of device, not one of its own")  # fmt: skip
    elif kind.endswith(EXTRAPOLATED):
        found.append("extrapolated: no measured row is like this cell, so the interval is wide")
    found += _too_large(request)
    found += [request.fidelity.warning] if request.fidelity.warning else []
    clock = float(np.ravel(request.clock)[0])
    if clock > 1.25 * float(device.clock.boost):
        found.append(f"clock {clock / 1e6:.0f} MHz is far above the rated boost of {float(device.clock.boost) / 1e6:.0f} MHz")
    return tuple(found)


def _unknown(request: Request) -> list[str]:
    """Warnings where of ops of the network's file only a bound is known."""
    from archsim.estimation.unknown import STRICT, bounded

    return [f"{said}, {STRICT}" for said in bounded(request.trace)]


def _too_large(request: Request) -> list[str]:
    """A warning where no mask can make the die of a changed device; a shipped one needs no model of areas."""
    if is_shipped(request.spec):
        return []
    from archsim.estimation.die import too_large

    said = too_large(request.spec)
    return [said] if said else []


def _throttled(request: Request, result: Run) -> list[str]:
    """A warning where the board's own power limit would lower the clock that a changed device runs at here.

    A spec's sustained clock is that of the device as sold; with other values its kernels may draw more than the TDP.
    """
    changed = any(request.asked.get(name) for name in ("settings", "scales", "clock"))
    if not changed or request.limit is not None or not request.fidelity.overheads:
        return []
    tdp = float(np.ravel(request.device.power.tdp)[0])
    slower = float(run(replace(request, limit=tdp)).latency_s[0]) / float(result.latency_s[0])
    if slower < 1.0 + NOTABLE:
        return []
    more = f"at this clock kernels would draw more than {tdp:g} W"
    return [f"{more}; --power-limit {tdp:g}W lowers it for them: latency x {slower:.2f}"]
