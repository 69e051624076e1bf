"""Settings that change nothing: said to the user, who would look for their effect in vain."""

from __future__ import annotations

from archsim.base.errors import ArchsimError
from archsim.estimation.memory import needed_bytes
from archsim.estimation.pipeline import run
from archsim.estimation.request import Request, find_device, with_spec


def without_effect(request: Request) -> dict[str, str]:
    """The spec keys that were set or scaled without any effect on time, energy, traffic or memory of the request.

    Beside a key stands the value that it has without being set, where it was set to that; nothing for a key that the models do
    not ask for here.
    """
    settings, scales = (request.asked.get(name) or {} for name in ("settings", "scales"))
    keys = tuple(dict.fromkeys((*settings, *scales)))
    if not keys:
        return {}
    here, before = _outcome(request), find_device(request.asked["hw"], None).entries
    found: dict[str, str] = {}
    for key in keys:
        others = ({name: value for name, value in given.items() if name != key} for given in (settings, scales))
        try:
            same = _outcome(with_spec(request, find_device(request.asked["hw"], *others))) == here
        except ArchsimError:  # without it there is no machine, so it matters
            same = False
        if same:
            as_it_was = key in before and before[key].value == request.spec.entries[key].value
            found[key] = before[key].written if as_it_was else ""
    return found


def _outcome(request: Request) -> tuple[float, ...]:
    result = run(request)
    outputs = (result.latency_s, result.energy_j.sum(axis=-1), result.dram_bytes.sum(axis=-1), needed_bytes(request, result))
    return (*(float(output[0]) for output in outputs), float(request.spec.device.memory.capacity))
