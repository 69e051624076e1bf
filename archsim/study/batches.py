"""Time per sample against batch size: marginal time of a sample, curvature, and the memory limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from archsim.base.arguments import LARGEST_BATCH
from archsim.base.errors import ArchsimError
from archsim.study.contender import Contender

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
