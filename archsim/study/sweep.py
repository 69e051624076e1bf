"""A sweep: the parts of a space computed, here, in processes or on a cluster, and handed over in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.cost.cost import Array
from archsim.estimation.request import Request
from archsim.study.grid import OUTPUTS, Outcomes, outcomes
from archsim.study.knob import CHOICES, WORDS, meaning
from archsim.study.space import Part, Space

TIMED = 256  # points that are timed to say how long all of them take
PROBES = 24  # points at which a knob is tried that seems to change nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The points of a part with their knobs, [D] each, and what they give."""

    part: Part
    network: str
    hardware: str
    columns: Mapping[str, Array]
    outcomes: Outcomes


def compute(space: Space, number: int) -> Chunk:
    """Part `number` of a space. The same numbers to the last bit wherever it runs: parts do not depend on who computes them."""
    part = space.part(number)
    request = space.request(part.base)
    columns = space.columns(part, request)
    found = outcomes(request, columns)
    return Chunk(part=part, network=request.network, hardware=request.spec.identity.id, columns=columns, outcomes=found)


def here(space: Space, numbers: Iterable[int]) -> Iterator[Chunk]:
    """The parts one after the other in this process."""
    for number in numbers:
        yield compute(space, number)


Source = Callable[[Space, Iterable[int]], Iterator[Chunk]]


def rows(chunk: Chunk, space: Space) -> Iterator[tuple[Any, ...]]:
    """The rows of a chunk in the order of `names`; an output without a value is None."""
    lists: list[Iterable[Any]] = [range(chunk.part.start, chunk.part.stop)]
    size = chunk.part.stop - chunk.part.start
    lists += [[chunk.network] * size, [chunk.hardware] * size]
    lists += [_listed(chunk.columns[knob], knob in space.whole) for knob in space.knobs]
    sound = [not problem for problem in chunk.outcomes.problems]
    for name in OUTPUTS:
        column = chunk.outcomes.values[name]
        values = _listed(np.nan_to_num(column) if name == "fits" else column, name == "fits")
        lists.append(values if all(sound) else [v if ok else None for v, ok in zip(values, sound, strict=True)])
    lists.append([problem or None for problem in chunk.outcomes.problems])
    return zip(*lists, strict=True)


def _listed(column: Any, whole: bool) -> list[Any]:
    listed: list[Any] = (column.astype(np.int64) if whole else column).tolist()
    return listed


def names(space: Space, kind: str) -> dict[str, str]:
    """The columns of a sweep and the unit of each; `text` for words."""
    knobs = {knob: "text" if knob in WORDS else meaning(kind, knob).unit for knob in space.knobs}
    return {"point": "1", "network": "text", "hardware": "text", **knobs, **UNITS, "problem": "text"}


UNITS = {
    "latency_s": "s", "throughput_per_s": "1/s", "power_w": "W", "energy_j": "J", "throughput_per_w": "1/s/W", "dram_bytes": "B",
    "memory_bytes": "B", "fits": "1", "clock_hz": "Hz",
}  # fmt: skip


def pace(space: Space, request: Request) -> float:
    """Points per second of the first base in this process, from a few of them."""
    from time import perf_counter

    part = Part(base=0, start=0, stop=min(space.each, TIMED))
    columns = space.columns(part, request)
    outcomes(request, columns)
    began = perf_counter()
    outcomes(request, columns)
    return part.stop / (perf_counter() - began)


def idle_knobs(space: Space, requests: list[Request]) -> dict[str, list[str]]:
    """The knobs that change no output in any of some tries, each with the devices on which it is so.

    Tries are points of the sweep, with this knob at its other values.
    """
    found: dict[str, list[str]] = {}
    for base, request in enumerate(requests):
        part = Part(base=base, start=base * space.each, stop=base * space.each + min(space.each, PROBES))
        near = space.columns(part, request)
        for axis in space.axes:
            if axis.knob in CHOICES:
                continue
            shares = (np.arange(len(near[axis.knob])) + 0.5) / len(near[axis.knob])
            if not _moves(request, near, axis.knob, axis.drawn(shares)):
                found.setdefault(axis.knob, []).append(request.spec.identity.id)
    return found


def _moves(request: Request, near: Mapping[str, Array], knob: str, values: Array) -> bool:
    """Whether another value of a knob changes an output at one of the points `near`, what else they have staying as it is."""
    for i in range(min(3, len(values))):
        others = {name: np.repeat(column[i : i + 1], len(values)) for name, column in near.items() if name != knob}
        found = outcomes(request, {**others, knob: values})
        if any(found.problems) or any(np.ptp(column) > 0 for column in found.values.values()):
            return True
    return len(values) < 2
