"""Knobs: everything that a study can vary, and which of its values are impossible.

A knob is a numeric key of the spec (`memory.bandwidth`), or an argument of an estimate that `varies`: a number (`clock`,
`power_limit`), or one of the choices that decide which kernels run (`batch`, `precision`, `stack`, `hw`, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from archsim.base import arguments
from archsim.base.arguments import chosen
from archsim.base.errors import InputError, UnknownName
from archsim.base.units import TEXT, show
from archsim.cost.cost import Array
from archsim.device import catalog as devices
from archsim.device.part import LARGEST, SMALLEST, Unit
from archsim.device.spec import BANDWIDTH, BUS, EQUAL, MEMORY, ORDER, RATE, TOLERANCE, Spec, gap, keys, unit_of
from archsim.estimation.clock import FARTHEST, far_clock, memory_clock_problems
from archsim.estimation.request import precision_of
from archsim.stack import choose
from archsim.trace import file as networks
from archsim.trace.task import optimiser_of, task_of

VARIED = tuple(row for row in arguments.ARGUMENTS.values() if row.varies)
WORDS = chosen(lambda row: not row.numeric, VARIED)
SIZES = chosen(lambda row: row.numeric and row.kernels, VARIED)
CHOICES = chosen(lambda row: row.kernels, VARIED)  # each value gives another set of kernels
ARGUMENTS = {
    row.name: Unit(unit=row.unit, doc=row.title, low=row.low, high=row.high, above=not row.low, whole=row.kind == "whole")
    for row in VARIED if row.numeric
}  # fmt: skip

RESOLVED: dict[str, Callable[[str], str]] = {
    "net": networks.canonical, "hw": devices.canonical, "precision": precision_of, "task": task_of, "optimiser": optimiser_of,
}  # fmt: skip


def known(kind: str) -> list[str]:
    """The names of all knobs of a kind of device."""
    return [*(row.name for row in VARIED), *(key for key, unit, _ in keys(kind) if unit.unit != TEXT)]


def exact_word(kind: str, knob: str, word: str) -> str:
    """The id that a word of a knob stands for: the same resolution as for an estimate. Raises UnknownName.

    A framework alone is no stack here, because what it means may differ from device to device: AmbiguousName lists the stacks.

    >>> exact_word("gpu", "precision", "FP16")
    'fp16'
    """
    if knob == "stack":
        return choose.chosen(word, kind, "")
    return RESOLVED[knob](word)


def meaning(kind: str, knob: str) -> Unit:
    """Unit, meaning and range of a numeric knob. Raises UnknownName with the nearest names."""
    if knob in ARGUMENTS:
        return ARGUMENTS[knob]
    if "." not in knob or knob not in known(kind):
        raise UnknownName(f"{kind} knob", knob, known(kind), hint="`archsim show hw NAME` prints the keys of its spec")
    return unit_of(kind, knob)


def point_problems(spec: Spec, columns: Mapping[str, Array]) -> list[str]:
    """For each of D points why its numbers are impossible, "" where they are not. `columns` are [D], in base units."""
    said = [""] * max((np.size(column) for column in columns.values()), default=0)
    for knob, column in columns.items():
        unit = meaning(spec.kind, knob)
        for i in np.flatnonzero(outside(unit, column)):
            problem = unit.problem(float(column[i]))
            said[i] = said[i] or f"{knob}: {show(float(column[i]), unit.unit)} {problem}"
    if "memory_clock" in columns:
        said = [text or problem for text, problem in zip(said, memory_clock_problems(spec, columns["memory_clock"]), strict=True)]
    for row in VARIED:
        if row.name in columns and spec.kind not in row.devices:
            said = [text or f"{row.name}: only a {' or '.join(row.devices).upper()} has one" for text in said]
    numbers = {knob: column[:, None] for knob, column in columns.items() if "." in knob}
    try:
        with np.errstate(all="ignore"):  # of numbers that are refused already
            entries = spec.with_values(numbers).entries if numbers else spec.entries
    except InputError as error:
        return [text or str(error) for text in said]

    def value(key: str) -> Array:
        return np.broadcast_to(np.ravel(columns[key] if key in columns else entries[key].number), (len(said),))

    for i in np.flatnonzero(columns["clock"] > FARTHEST * value("clock.boost")) if "clock" in columns else ():
        said[i] = said[i] or far_clock(spec, float(columns["clock"][i]), float(value("clock.boost")[i]))
    apart = np.ravel(gap({key: entries[key].number for key in MEMORY if key in entries}))
    for i in np.flatnonzero(np.broadcast_to(apart > TOLERANCE, (len(said),))):
        said[i] = said[i] or f"{BANDWIDTH}: is not {BUS} x {RATE}; leave one of the three out"
    for small, large in _pairs(spec, columns):
        low, high, shown = value(small), value(large), meaning(spec.kind, small).unit
        for i in np.flatnonzero(low > high * EQUAL):
            said[i] = said[i] or f"{small}: {show(float(low[i]), shown)} is more than {large} ({show(float(high[i]), shown)})"
    return said


def outside(unit: Unit, column: Array) -> Array:
    """Which values are outside the range of a knob, [D]: the rules of `Unit.problem` for a whole column."""
    low = column <= unit.low if unit.above else column < unit.low
    wrong = low | (column > min(unit.high, LARGEST)) | ((column > 0) & (column < SMALLEST)) | ~np.isfinite(column)
    return np.asarray(wrong | (column != np.floor(column)) if unit.whole else wrong)


def _pairs(spec: Spec, columns: Mapping[str, Array]) -> Iterable[tuple[str, str]]:
    """The pairs (small, large) that must be ordered, of which a column holds one."""
    pairs = [*ORDER[spec.kind], *([("power.idle", "power_limit")] if "power_limit" in columns else [])]
    there = {*spec.entries, *columns}
    return [pair for pair in pairs if there.issuperset(pair) and not columns.keys().isdisjoint(pair)]
