"""Warnings beside an estimate: what does not fit, has no effect, or is beyond what was measured."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import EXTRAPOLATED
from archsim.cost.power import SLOWEST
from archsim.device.catalog import is_shipped
from archsim.device.device import Tpu
from archsim.estimation.intervals import class_of
from archsim.estimation.memory import fits, footprint_of
from archsim.estimation.no_effect import read_by, without_effect
from archsim.estimation.pipeline import Run
from archsim.estimation.request import Request


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
    kind, spread = class_of(request)
    if kind.endswith(EXTRAPOLATED) and not spread.rows:
        found.append(f"no measured row of a {request.spec.kind.upper()} stands behind this: the interval is the widest of other "
                     "kinds of device, not one of its own")  # fmt: skip
    elif kind.endswith(EXTRAPOLATED):
        near = spread.basis or "rows of other cells"
        found.append(f"extrapolated: the interval rests on {near} and is wider for it")
    found += _too_large(request) + _above_limit(request, result)
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


def _above_limit(request: Request, result: Run) -> list[str]:
    """A warning where kernels would draw more than the power limit at the lowest clock that is modelled."""
    lowest = SLOWEST * float(np.ravel(request.clock)[0])
    clocks = result.cost.kernel_clock[result.cost.kernel_time_s > 0.0]
    if request.limit is None or not np.any(clocks <= lowest * (1.0 + 1e-9)):
        return []
    return [f"some kernels would draw more than {float(np.ravel(request.limit)[0]):g} W even at {lowest / 1e6:.0f} MHz, the "
            "lowest clock that is modelled: their power is cut to the limit"]  # fmt: skip
