"""Many points at once: the same models as for one estimate, over columns of devices and settings.

A point is one value for each knob. Points that share their kernels (network, stack, precision, batch, ...) are computed together,
some hundred rows at a time, so that intermediate arrays stay in the cache of a core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.base.errors import ArchsimError, ArgumentError, InputError
from archsim.cost.cost import Array
from archsim.estimation.memory import USABLE, needed_bytes
from archsim.estimation.pipeline import Run, lowered_of, mean_clock, run
from archsim.estimation.request import Request, make_request, with_spec
from archsim.lower.kernel import Index
from archsim.study.knob import ARGUMENTS, CHOICES, SIZES, point_problems

OUTPUTS = {  # with their units
    "latency_s": "s", "throughput_per_s": "1/s", "power_w": "W", "energy_j": "J", "throughput_per_w": "1/s/W", "dram_bytes": "B",
    "memory_bytes": "B", "fits": "1", "clock_hz": "Hz",
}  # fmt: skip
VALUES = 1 << 15  # elements of one array [rows, variants]: a quarter of a megabyte
LEAST_ROWS = 16
Columns = Mapping[str, Any]  # knob -> [D] numbers in base units, or names


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The outputs of D points, each [D]; NaN where the point's entry in `problems` says why it has none."""

    values: Mapping[str, Array]
    problems: list[str]


def evaluate(request: Request, columns: Columns) -> Mapping[str, Array]:
    """The outputs of all points by name (`OUTPUTS`), each [D].

    request: the base of all points
    columns: arrays [D] of what differs from it: spec keys, `clock`, `memory_clock`, `power_limit`, `threads`, `batch`, `seq_len`
        in base units; names for `net`, `hw`, `stack`, `task`, `precision`

    Equal to single estimates to the last bits. Raises UnknownName for an unknown knob, and InputError naming the first points
    that are impossible or not modelled.

    >>> from archsim.estimation.request import make_request
    >>> found = evaluate(make_request("alexnet", "gtx_1080"), {"sm.count": [10, 20]})
    >>> bool(found["latency_s"][0] > found["latency_s"][1])  # fewer SMs take longer
    True
    """
    found = outcomes(request, columns)
    wrong = [f"point {i}: {problem}" for i, problem in enumerate(found.problems) if problem]
    if wrong:
        raise InputError("points", wrong)
    return found.values


def outcomes(request: Request, columns: Columns) -> Outcomes:
    """As `evaluate`, with a problem for each impossible point instead of an error."""
    count = max((len(column) for column in columns.values()), default=1)
    values = {name: np.full(count, np.nan) for name in OUTPUTS}
    problems = [""] * count
    for choices, rows in groups(columns, count):
        numbers = {knob: np.asarray(column, dtype=float)[rows] for knob, column in columns.items() if knob not in CHOICES}
        said, sound, found = _group(request, choices, numbers, rows.size)
        for name, column in found.items():
            values[name][rows[sound]] = column
        for i, text in zip(rows.tolist(), said, strict=True):
            problems[i] = text
    return Outcomes(values=values, problems=problems)


def groups(columns: Columns, count: int) -> Iterator[tuple[dict[str, Any], Index]]:
    """The distinct combinations of choices with the positions of their points, in order of first occurrence."""
    code = np.zeros(count, dtype=np.intp)
    for knob in CHOICES:
        if knob in columns:
            _, inverse = np.unique(np.asarray(columns[knob]), return_inverse=True)
            _, code = np.unique(code * (int(inverse.max(initial=0)) + 1) + inverse, return_inverse=True)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    for rows in sorted(np.split(order, starts[1:]), key=lambda rows: int(rows[0])) if count else ():
        picked = {knob: columns[knob][rows[0]] for knob in CHOICES if knob in columns}
        yield {knob: value if knob in SIZES else str(value) for knob, value in picked.items()}, rows


def with_choices(request: Request, choices: Mapping[str, Any]) -> Request:
    """The request with other choices; defaults that depend on them are chosen again. Raises what `make_request` raises."""
    if not choices:
        return request
    sizes = {knob: _size(knob, choices[knob]) for knob in SIZES if knob in choices}
    return make_request(**{**request.asked, **choices, **sizes})


def _size(knob: str, value: Any) -> int:
    problem = ARGUMENTS[knob].problem(float(value))
    if problem is not None:
        raise ArgumentError(f"{knob}: {float(value):g} {problem}")
    return int(value)


def _group(
    request: Request, choices: Mapping[str, Any], numbers: Mapping[str, Array], count: int
) -> tuple[list[str], Index, dict[str, Array]]:
    """For points that share their choices: the problem of each, the positions of those without, and their outputs by name."""
    try:
        base = with_choices(request, choices)
    except ArchsimError as error:
        return [str(error)] * count, np.arange(0), {}
    said = point_problems(base.spec, numbers) or [""] * count
    sound = np.flatnonzero([not text for text in said])
    if not sound.size:
        return said, sound, {}
    try:
        parts = list(_in_chunks(base, {knob: column[sound] for knob, column in numbers.items()}, sound.size))
    except ArchsimError as error:  # Unsupported shows only when the model runs
        return [text or str(error) for text in said], np.arange(0), {}
    return said, sound, {name: np.concatenate([part[name] for part in parts]) for name in OUTPUTS}


def _in_chunks(base: Request, numbers: Mapping[str, Array], count: int) -> Iterator[dict[str, Array]]:
    """The outputs of points that share their kernels, some rows at a time."""
    rows = max(LEAST_ROWS, VALUES // lowered_of(base).kernels.m.size)
    for start in range(0, count, rows):
        size = min(rows, count - start)
        request = with_columns(base, {knob: column[start : start + size] for knob, column in numbers.items()})
        yield {name: np.broadcast_to(column, (size,)) for name, column in outputs_of(request, run(request)).items()}


def with_columns(base: Request, numbers: Mapping[str, Array]) -> Request:
    """The request for D devices: `numbers` are columns [D] of spec keys and of arguments of an estimate.

    A column of equal values becomes one number, so that what depends on it is computed once.
    """
    columns: dict[str, Any] = {knob: _column(column) for knob, column in numbers.items()}
    asked = {knob: columns.pop(knob) for knob in tuple(columns) if knob in ARGUMENTS}
    return with_spec(base, base.spec.with_values(columns) if columns else base.spec, **asked) if columns or asked else base


def _column(column: Array) -> Array | float:
    return float(column[0]) if column.size == 1 or (column == column[0]).all() else column[:, None]


def outputs_of(request: Request, result: Run) -> dict[str, Array]:
    """The outputs of a run by name, each [D], or [1] where all D devices agree."""
    latency, energy = result.latency_s, result.total_energy_j
    memory = needed_bytes(request, result)
    capacity = np.ravel(np.asarray(request.device.memory.capacity))
    return {
        "latency_s": latency,
        "throughput_per_s": request.batch / latency,
        "power_w": energy / latency,
        "energy_j": energy,
        "throughput_per_w": request.batch / energy,
        "dram_bytes": result.total_dram_bytes,
        "memory_bytes": memory,
        "fits": np.asarray(memory <= USABLE * capacity, dtype=float),
        "clock_hz": mean_clock(request, result),
    }
