"""The largest batch of each device that meets conditions, such as a limit of the latency, and the best stack there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from archsim.base.arguments import LARGEST_BATCH
from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.record import Answer
from archsim.base.units import show
from archsim.estimation.pipeline import run
from archsim.estimation.request import make_request
from archsim.stack import catalog, choose
from archsim.study.comparison import ComparedDevices, Comparison, Entrant, Tell
from archsim.study.contender import Contender, with_host_inputs
from archsim.study.objective import Condition, nameable, read_conditions

NUMBERS: dict[str, tuple[str, str, Callable[[Contender], float]]] = {  # name in a condition -> key, unit, value
    "latency": ("latency_s", "s", lambda c: c.latency_s),
    "throughput": ("throughput_per_s", "/s", lambda c: c.throughput_per_s),
    "power": ("power_w", "W", lambda c: c.energy_j / c.latency_s),
    "energy": ("energy_per_sample_j", "J", lambda c: c.energy_j / c.estimate.batch),
    "efficiency": ("throughput_per_w", "/s/W", lambda c: c.throughput_per_w),
    "memory": ("memory_bytes", "B", lambda c: c.estimate.memory_bytes),
}
NAMES = {key: name for name, (key, _, _) in NUMBERS.items()}
MOST_HINTED = 8  # devices whose other stacks are looked at
TOUCHING = 1e-12  # excess of a value that equals a limit that it should be below
NOTABLE = 1.1  # times as fast: less is no hint
NARROWER = {"inference": ("fp16", "int8")}  # precisions that a stack may take instead of its usual one; none in training


@dataclass(frozen=True, slots=True, kw_only=True)
class BestStack:
    """The stack and precision that are predicted to be fastest on a device, at the batch of its own: `ratio` times as fast."""

    hardware: str
    batch: int
    stack: str
    precision: str
    ratio: float
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Answer):
    """Devices under conditions.

    where: the conditions as written
    comparison: its contenders are the devices that meet them, each at the largest batch; its `unfit` are the others, each at the
        batch that misses least
    missed: what each of the others misses there, in words
    best_stacks: faster software of a device; none where stacks were named
    """

    where: tuple[str, ...]
    comparison: Comparison
    missed: tuple[str, ...]
    best_stacks: tuple[BestStack, ...]

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """Those that meet the conditions."""
        return self.comparison.contenders


def conditions_of(text: str) -> list[Condition]:
    """The conditions of `latency < 10ms and power < 200W`; energy is that of a sample. Raises BadCondition or UnknownName."""
    known = nameable({key: unit for key, unit, _ in NUMBERS.values()}, {name: key for key, name in NAMES.items()})
    return read_conditions(text, known)


def held(
    field: ComparedDevices, net: str, conditions: Sequence[Condition], copies: bool, correlation: float | None, tell: Tell
) -> Held:  # fmt: skip
    """Every device at its largest batch under the conditions. Raises the reason if none can run the network."""
    hinted = not field.stacks and len(field.entrants) <= MOST_HINTED

    def ask(entrant: Entrant) -> tuple[Contender, bool, BestStack | None]:
        point, meets = largest_within(_points(field, net, entrant, copies), conditions)
        return point, meets, best_stack(field, net, entrant, point) if hinted and point.fits else None

    asked, excluded = field.each(net, ask, tell)
    found, missed = ([point for point, meets, _ in asked if meets is wanted] for wanted in (True, False))
    return Held(
        where=tuple([f"{NAMES[c.name]} {c.written.partition(' ')[2]}" for c in conditions]),
        comparison=replace(field.ranked(found, excluded, correlation), unfit=tuple(missed)),
        missed=tuple(missed_words(c, conditions) for c in missed),
        best_stacks=tuple(best for _, _, best in asked if best is not None),
    )  # fmt: skip


def compared(
    field: ComparedDevices, nets: Sequence[str], batches: Sequence[int], where: str | None = None, copies: bool | None = None,
    correlation: float | None = None, tell: Tell = lambda text: None, ops: bool = True,
) -> tuple[Any, ...]:  # fmt: skip
    """A comparison of each network: a `Held` under the conditions `where`, a `CurveComparison` over several batches, else a
    `Comparison`.

    copies: without, those of a comparison of CPUs and GPUs at several batches count
    Raises ArgumentError for a batch beside conditions, which find it, and what the comparisons raise.
    """
    moved = field.mixed if copies is None else copies
    if where is not None:
        if batches:
            raise ArgumentError("where finds the batch of each device: leave out batch")
        conditions = conditions_of(where)
        return tuple([held(field, net, conditions, moved, correlation, tell) for net in nets])
    if len(batches) < 2:
        return tuple([field.at(net, batches[0] if batches else None, bool(copies), correlation, tell) for net in nets])
    return tuple([field.over(net, batches, moved, correlation, tell, ops) for net in nets])


def _points(field: ComparedDevices, net: str, entrant: Entrant, copies: bool) -> Callable[[int | None], Contender | None]:
    @cache
    def at(batch: int | None) -> Contender | None:
        try:
            return field.contender(net, entrant, batch, copies)
        except ArgumentError:
            if batch is None or batch == 1:
                raise
            return None

    return at


def largest_within(at: Callable[[int | None], Contender | None], conditions: Sequence[Condition]) -> tuple[Contender, bool]:
    """The largest batch that meets the conditions, and whether there is one; without, that which misses them least.

    at: the device at a batch, None at the only one of a network that fixes it; None for a batch whose tensors no memory holds

    Tried are all powers of two that fit the memory. Above the largest that meets the conditions, the interval to the next power
    is halved; where none meets them, the neighbourhood of the one that misses least is searched for one between two powers.
    """
    first = at(None)
    assert first is not None
    if first.estimate.max_batch is None or not first.fits:  # the only batch of a network that fixes it, or not even that
        return first, first.fits and _excess(first, conditions) == 0.0

    @cache
    def excess(batch: int) -> float:
        point = at(batch)
        return float("inf") if point is None or not point.fits else _excess(point, conditions)

    powers = [1]
    while 2 * powers[-1] <= LARGEST_BATCH and excess(2 * powers[-1]) < float("inf"):
        powers.append(2 * powers[-1])
    meeting = [batch for batch in powers if excess(batch) == 0.0]
    low = meeting[-1] if meeting else _least(excess, min(powers, key=excess))
    high = next(batch for batch in (*powers, 2 * powers[-1]) if batch > low)
    while excess(low) == 0.0 and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(middle) == 0.0 else (low, middle)
    point = at(low)
    assert point is not None
    return point, excess(low) == 0.0


def _least(excess: Callable[[int], float], power: int) -> int:
    """The batch with the least excess between the powers of two beside `power`, by thirds: one condition falls, another rises."""
    low, high = max(1, power // 2), 2 * power
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if excess(left) <= excess(right) else (left, high)
    return int(min((power, *range(low, high + 1)), key=excess))


def _excess(c: Contender, conditions: Sequence[Condition]) -> float:
    """By how much conditions are missed, the sum of |ln(value / limit)|, above 0 also where a value only equals its limit."""
    values = {key: np.asarray(of(c)) for key, _, of in NUMBERS.values()}
    return sum(float(one.excess(values)) + (0.0 if one.holds(values) else TOUCHING) for one in conditions)


def missed_words(c: Contender, conditions: Sequence[Condition]) -> str:
    """What a device misses at its best: `batch 1: latency 13.3 ms, 33 % too much`."""
    if not c.fits:
        return f"not even batch {c.estimate.batch} fits its memory"
    said = []
    for one in conditions:
        name = NAMES[one.name]
        _, unit, of = NUMBERS[name]
        if _excess(c, [one]) > 0.0:
            share = f"{100 * abs(of(c) / one.limit - 1.0):.0f} % " if one.limit > 0 else ""
            said.append(f"{name} {show(of(c), unit, 3)}, {share}too {'much' if one.sign[0] == '<' else 'little'}")
    return f"batch {c.estimate.batch}: {' and '.join(said)}"


def best_stack(field: ComparedDevices, net: str, entrant: Entrant, point: Contender) -> BestStack | None:
    """The fastest stack and precision at the batch of `point` that somebody has measured and that has kernels for the device.

    A precision that was asked for stays. None where that is no more than `NOTABLE` times as fast as the device's own choice.
    """
    asked = {**field.asked(entrant), "batch": None if point.estimate.max_batch is None else point.estimate.batch}
    own, best = point.estimate, point.latency_s / NOTABLE
    precision = asked.get("precision")
    found: BestStack | None = None
    for stack, narrow in product(_natural(entrant), [precision] if precision else [None, *NARROWER.get(own.task, ())]):
        try:
            request = make_request(net, entrant.name, **{**asked, "stack": stack, "precision": narrow})
            time = float(run(with_host_inputs(request) if point.copies else request).latency_s[0]) + point.back_s
        except (Unsupported, ArgumentError):
            continue
        if time < best:
            best = time
            found = BestStack(hardware=entrant.device, batch=own.batch, stack=request.stack.id, precision=request.precision,
                              ratio=point.latency_s / time, of=f"{own.stack} {own.precision}")  # fmt: skip
    return found


def _natural(entrant: Entrant) -> list[str]:
    """The stacks that somebody has measured and that run on a device as they are, no part of them replaced by a later one."""
    on = entrant.spec.identity.kernels_of
    return [name for name in choose.candidates(None, entrant.spec.kind)
            if catalog.composition(name).parts == catalog.composition(name, on).parts
            and catalog.rows_of(catalog.find(name, on)).own]  # fmt: skip
