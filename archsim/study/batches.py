"""Time against batch size: marginal time, curvature, the memory limit, and the batch from which one device overtakes another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from archsim.base.arguments import LARGEST_BATCH
from archsim.base.errors import ArchsimError
from archsim.cost.dispatch import link_rate
from archsim.device.device import Device, Gpu
from archsim.estimation.result import Estimate
from archsim.study.certainty import probability_less
from archsim.study.contender import HOST_ELEMENT, Contender, time_spread
from archsim.study.ranking import pair_correlation
from archsim.trace.trace import BoundOp

STRAIGHT = 0.05  # relative change of the marginal time below which the curve counts as straight
MOST_BATCHES = 200


class BadRange(ArchsimError):
    """A range of batches that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCurve:
    """One device over increasing batches.

    `runs` are stretches of equal curvature of the batch time, with first and last batch: "falling" where the time that one more
    sample adds falls, "rising" where it rises, else "straight".
    """

    name: str
    points: tuple[Contender, ...]
    max_batch: int | None
    runs: tuple[tuple[str, int, int], ...]

    @property
    def batches(self) -> tuple[int, ...]:
        """The batches of the points."""
        return tuple([p.estimate.batch for p in self.points])

    @property
    def per_sample_s(self) -> tuple[float, ...]:
        """Time per sample at each batch [s]."""
        return tuple([p.latency_s / p.estimate.batch for p in self.points])

    @property
    def efficiency(self) -> tuple[float, ...]:
        """Throughput as a share of the highest among batches that fit the memory (among all, where none fits)."""
        inside = [p.throughput_per_s for p in self.points if p.estimate.fits]
        best = max(inside or [p.throughput_per_s for p in self.points])
        return tuple([p.throughput_per_s / best for p in self.points])

    @property
    def limit(self) -> str:
        """The largest batch that the memory holds, in words."""
        return "any batch fits" if self.max_batch is None else f"largest batch that fits {self.max_batch}"


def batches_of(text: str) -> list[int]:
    """The batches named by `16`, `1,4,16`, `1:256:x2` (factor), `8:64:8` (step) or a mixture, in increasing order.

    Raises BadRange for anything else.

    >>> batches_of("1:16:x2,12")
    [1, 2, 4, 8, 12, 16]
    """
    found: set[int] = set()
    for part in text.split(","):
        found.update(_part(part.strip(), text))
        if len(found) > MOST_BATCHES:
            raise BadRange(f"batch {text!r} names more than {MOST_BATCHES} batches")
    return sorted(found)


def _part(part: str, text: str) -> list[int]:
    fields = part.split(":")
    if len(fields) == 1:
        return [_whole(part, text)]
    if len(fields) != 3:
        raise BadRange(f"batch {text!r}: a range is FIRST:LAST:STEP, like 1:256:x2 or 8:64:8")
    first, last, step = _whole(fields[0], text), _whole(fields[1], text), fields[2]
    factor = step.startswith("x")
    by = _whole(step.removeprefix("x"), text)
    if last < first:
        raise BadRange(f"batch {text!r}: {last} comes before {first}")
    if by < 1 + factor or first < 1:
        raise BadRange(f"batch {text!r}: steps lead from {first} up; a factor is at least 2")
    if not factor and (last - first) // by >= MOST_BATCHES:
        raise BadRange(f"batch {text!r} names more than {MOST_BATCHES} batches")
    values = [first]
    while (after := values[-1] * by if factor else values[-1] + by) <= last:
        values.append(after)
    return values


def _whole(word: str, text: str) -> int:
    if not (word.isascii() and word.isdigit()) or len(word) > len(str(LARGEST_BATCH)):
        raise BadRange(f"batch {text!r}: {word!r} is not a batch; write 16, 1,4,16 or 1:256:x2")
    return int(word)


def batch_curve(points: Sequence[Contender]) -> BatchCurve:
    """The curve of one device from its estimates, in increasing order of batch; at least one.

    Time that one more sample adds: (t_{i+1} - t_i) / (b_{i+1} - b_i), t: time of a batch [s], b: its samples
    """
    batches = [p.estimate.batch for p in points]
    times = [p.latency_s for p in points]
    marginal = [(t1 - t0) / (b1 - b0) for t0, t1, b0, b1 in zip(times, times[1:], batches, batches[1:], strict=False)]
    bends = [_bend(before, after) for before, after in pairwise(marginal)]
    limits = [p.estimate.max_batch for p in points if p.estimate.max_batch is not None]
    return BatchCurve(
        name=points[0].name, points=tuple(points), max_batch=limits[-1] if limits else None, runs=tuple(_runs(bends, batches)),
    )  # fmt: skip


def _bend(before: float, after: float) -> str:
    if abs(after - before) <= STRAIGHT * max(abs(before), abs(after)):
        return "straight"
    return "rising" if after > before else "falling"


def _runs(bends: Sequence[str], batches: Sequence[int]) -> list[tuple[str, int, int]]:
    """Neighbouring stretches of equal curvature merged; a bend at batch i lies between batch i - 1 and i + 1."""
    runs: list[tuple[str, int, int]] = []
    for i, name in enumerate(bends):
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1], batches[i + 2])
        else:
            runs.append((name, batches[i] if not runs else batches[i + 1], batches[i + 2]))
    return runs


# ----------------------------------------------------------------------------------------------------------- crossovers


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
    rate = float(link_rate(device)) if isinstance(device, Gpu) else float("inf")
    return {op.name: HOST_ELEMENT * (sum(map(prod, op.input_shapes)) + prod(op.shape)) / rate for op in ops}
