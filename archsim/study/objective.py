"""Objectives and targets of a search, and conditions on its outputs and knobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archsim.base.errors import ArchsimError, UnknownName
from archsim.cost.cost import Array
from archsim.study.condition import Condition, limit_of, nameable, read_conditions

OUTPUTS = {  # output -> (short name, unit, whether more is better); energy_delay: energy of a sample x latency of its batch
    "latency_s": ("latency", "s", False), "throughput_per_s": ("throughput", "/s", True), "power_w": ("power", "W", False),
    "energy_j": ("energy", "J", False), "throughput_per_w": ("efficiency", "/s/W", True),
    "dram_bytes": ("traffic", "B", False), "memory_bytes": ("memory", "B", False), "clock_hz": ("clock", "Hz", True),
    "area_mm2": ("area", "mm2", False), "cost_usd": ("cost", "USD", False),
    "energy_per_sample_j": ("sample_energy", "J", False), "energy_delay_js": ("energy_delay", "Js", False),
}  # fmt: skip
SILICON = ("area_mm2", "cost_usd")
SHORT = {short: output for output, (short, _, _) in OUTPUTS.items()}
OUTPUT_NAMES = nameable({output: unit for output, (_, unit, _) in OUTPUTS.items()}, SHORT)


class BadGoal(ArchsimError):
    """An objective or a target that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An output to minimise or maximise."""

    output: str
    maximise: bool

    @property
    def written(self) -> str:
        """As a reader sees it."""
        return f"{'most' if self.maximise else 'least'} {OUTPUTS[self.output][0]}"

    def cost(self, values: Mapping[str, Array]) -> Array:
        """The quantity to minimise, [D]."""
        return -values[self.output] if self.maximise else values[self.output]


def output_of(name: str) -> str:
    """The output with a full or short name. Raises UnknownName.

    >>> output_of("energy"), output_of("latency_s")
    ('energy_j', 'latency_s')
    """
    for output, (short, _, _) in OUTPUTS.items():
        if name in (output, short):
            return output
    known = [*OUTPUTS, *(short for short, _, _ in OUTPUTS.values())]
    raise UnknownName("output", name, known, hint=f"one of {', '.join(short for short, _, _ in OUTPUTS.values())}")


def objectives(minimise: Sequence[str], maximise: Sequence[str]) -> list[Objective]:
    """The objectives of a search. Raises UnknownName, or BadGoal for one that is named twice."""
    found = [Objective(output=output_of(n), maximise=m) for given, m in ((minimise, False), (maximise, True)) for n in given]
    names = [o.output for o in found]
    for name in names:
        if names.count(name) > 1:
            raise BadGoal(f"{name}: is an objective twice")
    return found


def in_better_direction(named: Sequence[str]) -> list[Objective]:
    """Objectives that minimise or maximise each output, whichever is better.

    >>> [objective.written for objective in in_better_direction(["throughput", "area"])]
    ['most throughput', 'least area']
    """
    return [Objective(output=output, maximise=OUTPUTS[output][2]) for output in map(output_of, dict.fromkeys(named))]


def conditions(text: str, knobs: Mapping[str, str]) -> list[Condition]:
    """The conditions of `latency < 50ms and power_w < 150` on outputs and on the varied `knobs`, which have these units.

    Raises BadCondition or UnknownName.

    >>> [(c.name, c.sign, c.limit) for c in conditions("latency < 50ms and sm.count >= 8", {"sm.count": "1"})]
    [('latency_s', '<', 0.05), ('sm.count', '>=', 8.0)]
    """
    return read_conditions(text, OUTPUT_NAMES | nameable(dict(knobs), {}))


def target_of(text: str) -> Condition:
    """The condition of `throughput=1000/s` (at least) or `latency=50ms` (at most). Raises BadGoal."""
    name, separator, written = (part.strip() for part in text.partition("="))
    if not separator or not written:
        raise BadGoal(f"{text!r} is not OUTPUT=VALUE, like throughput=1000/s or latency=50ms")
    output = output_of(name)
    _, unit, more = OUTPUTS[output]
    limit = limit_of(written, unit, plain=name == output)
    if limit <= 0:
        raise BadGoal(f"{text!r}: a target is more than 0")
    return Condition(name=output, sign=">=" if more else "<=", limit=limit, written=f"{OUTPUTS[output][0]} {written}")
