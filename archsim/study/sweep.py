"""A sweep: parts of a space computed by an executor, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.cost.cost import Array
from archsim.device.variant import called
from archsim.estimation.die import die_columns
from archsim.estimation.request import Request
from archsim.study.grid import OUTPUTS, Outcomes, outcomes
from archsim.study.knob import CHOICES, WORDS, meaning
from archsim.study.space import Part, Space

TIMED_POINTS = 256  # timed to predict how long all points take
PROBED_POINTS = 24  # of the sweep at which a knob is tried, to see whether it changes any output


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The points of a part: what its network and device are called, knobs, each [D], and outcomes."""

    part: Part
    called: tuple[str, str, str]
    columns: Mapping[str, Array]
    outcomes: Outcomes
    die: Mapping[str, Array]  # area and whether masks can make it, each [D]; empty where the die is not modelled


def compute(space: Space, number: int) -> Chunk:
    """Part `number` of a space; the same numbers to the last bit in every process."""
    part = space.part(number)
    request = space.request(part.base)
    columns = space.columns(part, request)
    found = outcomes(request, columns)
    die = _die(request, columns, part.stop - part.start)
    return Chunk(part=part, called=called_in(request), columns=columns, outcomes=found, die=die)


def _die(request: Request, columns: Mapping[str, Array], count: int) -> dict[str, Array]:
    keys = {knob: column for knob, column in columns.items() if knob not in CHOICES and "." in knob}
    found = die_columns(request.spec, keys, count)
    return {name: found[name] for name in DIE if name in found}


def in_this_process(space: Space, numbers: Iterable[int]) -> Iterator[Chunk]:
    """The parts one after the other in this process."""
    for number in numbers:
        yield compute(space, number)


def rows(chunk: Chunk, space: Space) -> Iterator[tuple[Any, ...]]:
    """The rows of a chunk with the columns of `names`; a missing output is None."""
    lists, size = points_of(space, chunk.part, chunk.called, chunk.columns), chunk.part.stop - chunk.part.start
    sound = [not problem for problem in chunk.outcomes.problems]
    for name in OUTPUTS:
        column = chunk.outcomes.values[name]
        values = _listed(np.nan_to_num(column) if name == "fits" else column, name == "fits")
        lists.append(values if all(sound) else [v if ok else None for v, ok in zip(values, sound, strict=True)])
    for name in DIE:
        values = _listed(chunk.die[name], name == "one_die") if name in chunk.die else [None] * size
        lists.append([v if ok else None for v, ok in zip(values, sound, strict=True)])
    lists.append([problem or None for problem in chunk.outcomes.problems])
    return zip(*lists, strict=True)


def points_of(space: Space, part: Part, called: Sequence[str], columns: Mapping[str, Array]) -> list[list[Any]]:
    """The columns that say which points these are: the first ones of `names`."""
    numbers = list(range(part.start, part.stop))
    named = [[name.encode("utf-8", "backslashreplace").decode()] * len(numbers) for name in called]  # of a file: any bytes
    return [numbers, *named, *(_listed(columns[knob], knob in space.whole) for knob in space.knobs)]


def called_in(request: Request) -> tuple[str, str, str]:
    """The names in the rows of a base: of the network, and the id and the name of the device."""
    return request.network, request.spec.identity.id, called(request.spec)


def _listed(column: Any, whole: bool) -> list[Any]:
    listed: list[Any] = (column.astype(np.int64) if whole else column).tolist()
    return listed


def names(space: Space, kind: str) -> dict[str, str]:
    """The columns of a sweep with their units; `text` for names."""
    knobs = {knob: "text" if knob in WORDS else meaning(kind, knob).unit for knob in space.knobs}
    own = dict.fromkeys(("network", "hardware", "hardware_name"), "text")
    return {"point": "1", **own, **knobs, **OUTPUTS, **DIE, "problem": "text"}


DIE = {"area_mm2": "mm2", "one_die": "1"}  # of a GPU's die, an estimate


def points_per_second(space: Space, request: Request) -> float:
    """Speed of this process on the first base [points/s], measured on some of its points."""
    from time import perf_counter

    part = Part(base=0, start=0, stop=min(space.each, TIMED_POINTS))
    columns = space.columns(part, request)
    outcomes(request, columns)
    began = perf_counter()
    outcomes(request, columns)
    return part.stop / (perf_counter() - began)


def knobs_without_effect(space: Space, requests: list[Request]) -> dict[str, list[str]]:
    """The knobs that changed no output in any trial, each with the devices on which that is so.

    A trial takes a point of the sweep and gives one knob its other values.
    """
    found: dict[str, list[str]] = {}
    for base, request in enumerate(requests):
        part = Part(base=base, start=base * space.each, stop=base * space.each + min(space.each, PROBED_POINTS))
        near = space.columns(part, request)
        for axis in space.axes:
            if axis.knob in CHOICES:
                continue
            shares = (np.arange(len(near[axis.knob])) + 0.5) / len(near[axis.knob])
            if not _has_effect(request, near, axis.knob, axis.drawn(shares)):
                found.setdefault(axis.knob, []).append(request.spec.identity.id)
    return found


def _has_effect(request: Request, near: Mapping[str, Array], knob: str, values: Array) -> bool:
    """Whether another value of a knob changes an output at one of the points `near`, with the other knobs unchanged."""
    for i in range(min(3, len(values))):
        others = {name: np.repeat(column[i : i + 1], len(values)) for name, column in near.items() if name != knob}
        found = outcomes(request, {**others, knob: values})
        if any(found.problems) or any(np.ptp(column) > 0 for column in found.values.values()):
            return True
    return len(values) < 2
