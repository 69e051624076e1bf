"""The batch from which on one device overtakes another, and the ops that never gain from running on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from archsim.device.device import Device, Gpu
from archsim.estimation.result import Estimate
from archsim.study.batches import BatchCurve
from archsim.study.certainty import probability_less
from archsim.study.contender import HOST_ELEMENT, time_spread
from archsim.study.correlation import pair_correlation
from archsim.trace.trace import BoundOp


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """`winner` is faster than `loser` from `batch` on; `start` if it is so from the first batch on.

    `sure` is the first batch at which it is faster with a probability of 90 %, None if there is none.
    """

    winner: str
    loser: str
    batch: int
    start: bool
    sure: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Payoff:
    """One op on two devices.

    `resident` is the first batch at which the guest device is faster with its data already there; `alone` the first at which it
    is faster even though the op's inputs and output cross the link. None where there is no such batch.
    """

    op: str
    kind: str
    resident: int | None
    alone: int | None


CERTAIN = 0.9  # probability from which on a device counts as certainly faster


def crossings(
    slow: BatchCurve, fast: BatchCurve, time_at: Callable[[str, int], float], correlation: float | None = None
) -> list[Crossing]:
    """The batches at which the faster of two devices changes, in increasing order, among those that fit the memory of both.

    Between two given batches with different orders, bisection with `time_at(device, batch)` [s] finds one batch of change.
    correlation: as in `archsim.study.ranking.rank`
    """
    found: list[Crossing] = []
    previous: tuple[int, bool] | None = None
    for a, b in zip(slow.points, fast.points, strict=True):
        if not (a.fits and b.fits):
            continue
        batch, ahead = a.estimate.batch, b.latency_s < a.latency_s
        if previous is None or previous[1] != ahead:
            winner, loser = (fast, slow) if ahead else (slow, fast)
            at = batch if previous is None else _first_batch(winner.name, loser.name, previous[0], batch, time_at)
            found.append(Crossing(winner=winner.name, loser=loser.name, batch=at, start=previous is None,
                                  sure=_certain_batch(winner, loser, at, correlation)))  # fmt: skip
        previous = batch, ahead
    return found


def _first_batch(winner: str, loser: str, low: int, high: int, time_at: Callable[[str, int], float]) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if time_at(winner, middle) < time_at(loser, middle) else (middle, high)
    return high


def _certain_batch(winner: BatchCurve, loser: BatchCurve, start: int, correlation: float | None) -> int | None:
    for a, b in zip(winner.points, loser.points, strict=True):
        if a.estimate.batch >= start and a.fits and b.fits:
            (m, s), (n, t) = time_spread(a), time_spread(b)
            if probability_less((m, n), (s, t), pair_correlation(a, b, correlation)) >= CERTAIN:
                return a.estimate.batch
    return None


def overtakings(crossings: Sequence[Crossing], called: Mapping[str, str]) -> list[str]:
    """Where the faster one of two changes, as sentences, with what each curve is `called`."""
    level = f"{100 * CERTAIN:.0f} % sure"
    return [f"{called[c.winner]} overtakes {called[c.loser]} at batch {c.batch} "
            f"({f'{level} from batch {c.sure}' if c.sure else f'{level} at no batch'})."
            for c in crossings if not c.start]  # fmt: skip


def payoffs(
    home: Sequence[Estimate], guest: Sequence[Estimate], ops: Sequence[Sequence[BoundOp]], device: Device
) -> list[Payoff]:
    """For each op that both devices run, from which batch on it is faster on the guest; all three sequences in order of batch.

    `ops` are those of the guest, `device` is the guest. An op that is moved alone copies its inputs and its output over the
    link at 4 B a value; parameters stay on the device.
    """
    resident: dict[str, int] = {}
    alone: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for there, here, bound in zip(home, guest, ops, strict=True):
        at_home = {op.name: op.time_s for op in there.ops}
        moved = _copy_times(bound, device)
        for op in here.ops:
            if op.time_s <= 0 or at_home.get(op.name, 0.0) <= 0:
                continue
            kinds[op.name] = op.kind
            if op.time_s < at_home[op.name]:
                resident.setdefault(op.name, here.batch)
            if op.time_s + moved[op.name] < at_home[op.name]:
                alone.setdefault(op.name, here.batch)
    return [Payoff(op=name, kind=kind, resident=resident.get(name), alone=alone.get(name)) for name, kind in kinds.items()]


def _copy_times(ops: Sequence[BoundOp], device: Device) -> Mapping[str, float]:
    """Time to copy the inputs of each op to the device and its output back [s]; 0 without a link."""
    if not isinstance(device, Gpu) or device.link is None:
        return dict.fromkeys((op.name for op in ops), 0.0)
    rate = float(device.link.bandwidth * device.link.achievable)
    return {op.name: HOST_ELEMENT * (sum(map(prod, op.input_shapes)) + prod(op.shape)) / rate for op in ops}
