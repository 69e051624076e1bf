"""What an estimate warns of: memory and power beyond the device's, extrapolation, settings of the device without an effect."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from archsim.calibration.constants import EXTRAPOLATED
from archsim.cost.power import SLOWEST
from archsim.device.catalog import is_shipped
from archsim.device.device import Tpu
from archsim.device.spec import unit_of
from archsim.estimation.die import moves_area, too_large
from archsim.estimation.fidelity import CLOSED, SIMULATED
from archsim.estimation.hardware import find_device, unneeded_keys
from archsim.estimation.measured import class_of
from archsim.estimation.memory import fits, footprint_of, needed_bytes
from archsim.estimation.network import STRICT, bounded
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request, with_spec
from archsim.lower.kernel import Kernels


def warnings_of(request: Request, result: Run) -> tuple[str, ...]:
    """The warnings of an estimate, one sentence each."""
    device, memory = request.device, footprint_of(request, result)
    capacity, clock, boost = (float(np.ravel(value)[0]) for value in (device.memory.capacity, request.clock, device.clock.boost))
    found = []
    if not fits(memory, capacity):
        found.append(f"does not fit: needs {memory.total / 2**30:.2f} GiB of {capacity / 2**30:.2f} GiB")
    if isinstance(request.spec.device, Tpu):
        found.append(spilled(request.spec.device, result.lowered.kernels))
    found += [f"{said}, {STRICT}" for said in bounded(request.trace)]
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
    if not is_shipped(request.spec):  # a shipped device needs no model of areas
        found.append(too_large(request.spec))
    lowest, clocks = SLOWEST * clock, result.cost.kernel_clock[result.cost.kernel_time_s > 0.0]
    if request.limit is not None and np.any(clocks <= lowest * (1.0 + 1e-9)):
        found.append(f"some kernels would draw more than {float(np.ravel(request.limit)[0]):g} W even at {lowest / 1e6:.0f} MHz, "
                     "the lowest clock that is modelled: their power is cut to the limit")  # fmt: skip
    found.append(request.fidelity.warning)
    if clock > 1.25 * boost:
        found.append(f"clock {clock / 1e6:.0f} MHz is far above the rated boost of {boost / 1e6:.0f} MHz")
    return tuple(filter(None, found))


def without_effect(request: Request) -> dict[str, str]:
    """The spec keys that were set or scaled without an effect on time, energy, traffic or memory of the request.

    A key's value is what the spec has for it, where it was set to just that; empty for a key that no model reads here.
    """
    settings, scales = (request.asked.get(name) or {} for name in ("settings", "scales"))
    if not settings and not scales:
        return {}
    hw, threads, here = request.asked["hw"], request.thread_count or 0, _outcome(request)

    def same(others: Mapping[str, str], scaled: Mapping[str, float]) -> bool:
        return _outcome(with_spec(request, find_device(hw, others, scaled, threads))) == here

    before, after = find_device(hw, None, threads=threads).entries, request.spec.entries
    return {key: before[key].written if key in before and before[key].value == after[key].value else ""
            for key in unneeded_keys(settings, scales, same)}  # fmt: skip


def read_by(request: Request, key: str) -> str:
    """What reads a key that the request does not, in words: simulated traffic, the cycle model, the area of the die; or nothing.

    >>> from archsim.estimation.request import make_request
    >>> read_by(make_request("alexnet", "gtx_1080"), "sm.alu_latency")
    '--fidelity cycle reads it'
    """
    unit = unit_of(request.spec.kind, key)
    if unit.cache and request.traffic == CLOSED and request.fidelity.caches:
        return "--traffic simulated reads it"
    if unit.cycle and request.fidelity.name != SIMULATED:
        return f"--fidelity {SIMULATED} reads it"
    return "the area of the die follows it (`archsim whatif --area`)" if moves_area(request.spec, key) else ""


def _outcome(request: Request) -> tuple[float, ...]:
    result = run(request)
    outputs = (result.latency_s, result.energy_j.sum(axis=-1), result.dram_bytes.sum(axis=-1), needed_bytes(request, result))
    return (*(float(output[0]) for output in outputs), float(request.device.memory.capacity))


def spilled(device: Tpu, kernels: Kernels) -> str:
    """A warning where activations stay in the buffer from op to op and those of an op do not fit into it; else empty."""
    needed, size = kernels.b_bytes + kernels.c_bytes, float(np.ravel(device.buffer.size)[0])
    over = int(np.count_nonzero(needed > size))
    if not over or not np.all(np.asarray(device.buffer.resident) > 0):
        return ""
    return (f"{over} of {needed.size} kernels have more activations than the buffer holds, {needed.max() / 2**20:.3g} MiB of "
            f"{size / 2**20:.3g} MiB at most: what is over goes through memory, of which no measurement is known")  # fmt: skip
