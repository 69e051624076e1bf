"""Settings of the device that change no output of a request, so that the user can be told."""

from __future__ import annotations

from archsim.base.errors import ArchsimError
from archsim.device.spec import unit_of
from archsim.estimation.fidelity import CLOSED, SIMULATED
from archsim.estimation.memory import needed_bytes
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, find_device, with_spec


def without_effect(request: Request) -> dict[str, str]:
    """The spec keys that were set or scaled without an effect on time, energy, traffic or memory of the request.

    A key's value is what the spec has for it, where it was set to just that; empty for a key that no model reads here.
    """
    settings, scales = (request.asked.get(name) or {} for name in ("settings", "scales"))
    keys = tuple(dict.fromkeys((*settings, *scales)))
    if not keys:
        return {}
    threads = request.thread_count or 0
    here, before = _outcome(request), find_device(request.asked["hw"], None, threads=threads).entries
    found: dict[str, str] = {}
    for key in keys:
        others, scaled = ({name: value for name, value in given.items() if name != key} for given in (settings, scales))
        try:
            same = _outcome(with_spec(request, find_device(request.asked["hw"], others, scaled, threads))) == here
        except ArchsimError:  # without this setting the others make no device, so it has an effect
            same = False
        if same:
            as_it_was = key in before and before[key].value == request.spec.entries[key].value
            found[key] = before[key].written if as_it_was else ""
    return found


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
    from archsim.estimation.die import moves_area  # which no other estimate needs

    return "the area of the die follows it (`archsim whatif --area`)" if moves_area(request.spec, key) else ""


def _outcome(request: Request) -> tuple[float, ...]:
    result = run(request)
    outputs = (result.latency_s, result.energy_j.sum(axis=-1), result.dram_bytes.sum(axis=-1), needed_bytes(request, result))
    return (*(float(output[0]) for output in outputs), float(request.device.memory.capacity))
